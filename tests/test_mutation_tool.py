"""``tools/mutation.py`` on a toy module: changes that matter are noticed, others survive, nothing is tried twice."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"
ENDLESS = """
def count(n):
    found = 0
    while n > 0:
        n, found = n - 2, found + 2
    return found
"""
MODULE = '''
def larger(a: int, b: int = 1) -> int:
    """The larger of two numbers."""
    if not 0 <= a < 100:
        raise ValueError(f"a={a + 1 - 1} must lie in [0, 100).")
    return a if a > b else b
'''
TESTS = """
import pytest
from mtclust.toy import larger

def test_larger():
    assert (larger(2), larger(0), larger(2, 3), larger(99, 3)) == (2, 1, 3, 99)
    for a in (-1, 100):
        with pytest.raises(ValueError, match="must lie in"):
            larger(a)
"""
SCRIPT = """
import sys
from pathlib import Path
import mutation

here = Path.cwd()
mutation.ROOT, mutation.PACKAGE, mutation.RECORD = here, here / "src" / "mtclust", here / "tried.csv"
mutation._GRACE, mutation.tests_of = 1, lambda module: [["tests/test_toy.py"]]
sys.argv += ["--module", "toy.py"]
sys.exit(mutation.main())
"""


@pytest.fixture
def toy(tmp_path):
    (tmp_path / "src" / "mtclust").mkdir(parents=True)
    (tmp_path / "src" / "mtclust" / "__init__.py").touch()
    (tmp_path / "src" / "mtclust" / "toy.py").write_text(MODULE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").touch()
    (tmp_path / "tests" / "test_toy.py").write_text(TESTS)
    return tmp_path


def run_tool(place, *arguments, script=SCRIPT):
    command = [sys.executable, "-c", script, "--mutants", "0", *arguments]
    environment = {"PYTHONPATH": str(TOOLS), "PATH": ""}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)


def test_every_operator_and_number_is_changed_once_but_no_annotation_or_message(toy, monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    from mutation import mutants

    found = mutants(toy / "src" / "mtclust", "toy.py")
    assert Counter(mutant.change.split("  ->  ")[1] for mutant in found) == Counter(
        ["0 <= a < 100", "0 < a < 100", "0 <= a <= 100", "1", "101", "2", "a >= b"]
    )
    assert {mutant.function for mutant in found} == {"larger"}
    assert len({mutant.key for mutant in found}) == len(found)


def test_changes_that_matter_are_noticed_and_nothing_is_tried_twice(toy):
    first = run_tool(toy, "--jobs", "2")
    assert first.returncode == 0, first.stderr
    # of two equal numbers either is the larger
    assert first.stdout.splitlines()[0] == "survived: toy.py:6 larger: a > b  ->  a >= b"
    assert "7 of 7 mutants, 7 of them tried now" in first.stdout
    assert "6 noticed, 1 survive" in first.stdout
    assert (toy / "src" / "mtclust" / "toy.py").read_text() == MODULE
    again = run_tool(toy)
    assert "7 of 7 mutants, 0 of them tried now" in again.stdout
    assert "6 noticed, 1 survive" in again.stdout


def test_tests_that_fail_without_a_change_are_refused(toy):
    (toy / "tests" / "test_toy.py").write_text("def test_wrong(): assert False")
    failed = run_tool(toy)
    assert failed.returncode == 1
    assert "toy.py: its tests fail without any change; mend them first" in failed.stderr


def test_a_change_that_makes_the_tests_hang_is_noticed(toy):
    (toy / "src" / "mtclust" / "toy.py").write_text(ENDLESS)
    (toy / "tests" / "test_toy.py").write_text(
        "from mtclust.toy import count\n\ndef test_count(): assert count(6) == 6"
    )
    found = run_tool(toy, "--jobs", "2")
    assert found.returncode == 0, found.stderr
    outcomes = dict(row.split(",")[3:5] for row in (toy / "tried.csv").read_text().splitlines())
    assert outcomes["n - 2  ->  n + 2"] == "hung"
    assert outcomes["found + 2  ->  found - 2"] == "noticed"


def test_doctests_of_the_changed_module_are_run(toy):
    source = '\ndef three() -> int:\n    """\n    >>> three()\n    3\n    """\n    return 3\n'
    (toy / "src" / "mtclust" / "toy.py").write_text(source)
    (toy / "tests" / "test_toy.py").write_text("def test_nothing(): assert True")
    (toy / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--strict-markers"\n')
    found = run_tool(toy, script=SCRIPT.replace('[["tests', '[["doctests", "tests'))
    assert "1 noticed, 0 survive" in found.stdout, found.stdout + found.stderr
