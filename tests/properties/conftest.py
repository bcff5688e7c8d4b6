"""Counts of the generated cases, in the summary of the test run."""

import property_cases
import pytest


@pytest.fixture(autouse=True)
def count_cases(request, record_property):
    """Cases a test has run, carried to the summary also from parallel workers."""
    before = property_cases.run.total()
    yield
    record_property("generated_cases", property_cases.run.total() - before)


def pytest_terminal_summary(terminalreporter):
    reports = [report for some in terminalreporter.stats.values() for report in some]
    total = sum(
        dict(report.user_properties).get("generated_cases", 0)
        for report in reports
        if getattr(report, "when", None) == "teardown"
    )
    if total:
        terminalreporter.write_line(f"{total} generated cases")
