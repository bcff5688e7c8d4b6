"""Which tests know which module: what :mod:`mutation` runs when it has changed one.

A module of the core rooms is tried with its doctests and the test files that bear its name
(``core/labels.py``: ``tests/test_labels.py``), then with the tests of ``make quick``.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "mtclust"
#: stands for the doctests of the changed module
DOCTESTS = "doctests"
#: rooms whose modules are changed
ROOMS = ("core", "rows", "search", "choose", "relaxation")


def tests_of(module: str) -> list[list[str]]:
    """Lists of tests that are tried in turn, the quickest first, until one notices."""
    name = Path(module).stem.strip("_")
    found = sorted((ROOT / "tests").rglob(f"test_*{name}*.py"), key=lambda path: (len(path.name), path))
    files = [path.relative_to(ROOT).as_posix() for path in found]
    doctests = [DOCTESTS] if ">>> " in (PACKAGE / module).read_text(encoding="utf-8") else []
    return [*([[*doctests, *files]] if doctests or files else []), ["tests", "-m", "quick"]]


_MODULES = sorted(path for room in ROOMS for path in (PACKAGE / room).glob("*.py") if path.name != "__init__.py")
TESTS = {path.relative_to(PACKAGE).as_posix(): tests_of(path.relative_to(PACKAGE).as_posix()) for path in _MODULES}
