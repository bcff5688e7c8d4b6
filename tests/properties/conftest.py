"""Counts of the generated cases, in the summary of the test run."""

import property_cases
import pytest


@pytest.fixture(autouse=True)
def count_cases(request, record_property):
    """Cases a test has run, carried to the summary also from parallel workers."""
    before = property_cases.run.total()
    property_cases.slowest.clear()
    yield
    record_property("generated_cases", property_cases.run.total() - before)
    record_property("slowest_fit", property_cases.slowest["fit"])


def pytest_terminal_summary(terminalreporter):
    reports = [report for some in terminalreporter.stats.values() for report in some]
    told = [dict(report.user_properties) for report in reports if getattr(report, "when", None) == "teardown"]
    total = sum(each.get("generated_cases", 0) for each in told)
    if total:
        longest = max(each.get("slowest_fit", 0.0) for each in told)
        terminalreporter.write_line(f"{total} generated cases; the slowest fit took {longest:.1f} CPU seconds")
