"""The process that is killed, and the counts of the kills in the summary of the test run."""

from collections import Counter

import kill_helpers
import pytest
from kill_tasks import fit_command, write_shops

#: kills in all, and how many came before, during and after the writing; full or read-only disks; what went wrong
ORDER = ("kills", "before", "during", "after", "full disks", "defects")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = kill_helpers.Server(tmp_path_factory.mktemp("server"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def fitted(server, tmp_path_factory):
    """A table, the results of a fit, and those of another fit that may replace them."""
    directory = tmp_path_factory.mktemp("fitted")
    data = write_shops(directory / "shops.csv")
    old, new = directory / "old", directory / "new"
    assert server.run("command", *fit_command(data, old, "--seed", "1", "--method", "dstc")).status == 0
    assert server.run("command", *fit_command(data, new)).status == 0
    return data, old, new


@pytest.fixture(autouse=True)
def count_kills(record_property):
    """Kills of a test, carried to the summary also from parallel workers."""
    before = kill_helpers.counted.copy()
    yield
    record_property("kills", dict(kill_helpers.counted - before))


def pytest_terminal_summary(terminalreporter):
    total: Counter[str] = Counter()
    for report in (report for some in terminalreporter.stats.values() for report in some):
        if getattr(report, "when", None) == "teardown":
            total.update(dict(report.user_properties).get("kills", {}))
    if total:
        terminalreporter.write_line(", ".join(f"{name}: {total[name]}" for name in ORDER))
