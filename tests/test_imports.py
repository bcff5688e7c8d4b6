"""Imports go downwards only: every package of the library knows those below it, never those above."""

import ast
import re
from pathlib import Path

import pytest

import mtclust

ROOT = Path(mtclust.__file__).parent
#: packages and modules, lowest first; modules at the root that are not listed are the core
ROOMS = {
    "util": 0,
    "core": 0,
    "rows": 1,
    "search": 3,
    "relaxation": 4,
    "choose": 5,
    "selection": 5,
    "estimators": 6,
    "distributed": 6,  # a source of rows, which asks an estimator to fit them
    "persistence": 7,
}
#: above all of these: nothing below may know them, and they may know anything
ABOVE = ("app", "plotting", "datasets", "__main__")
#: a late import of what lies above, for the sake of a public method: estimators save themselves
ALLOWED = {
    ("estimators.base", "persistence"),
}


def room_of(module):
    return module.split(".")[0] if module.split(".")[0] in (*ROOMS, *ABOVE) else "core"


def imports_of(path):
    """Modules of the package that a file imports at any level, also late; what is only for typing does not count."""
    tree = ast.parse(path.read_text())
    typing = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mtclust"):
            for name in node.names:
                full = f"{node.module}.{name.name}"
                yield full if (ROOT.parent / full.replace(".", "/")).with_suffix(".py").exists() else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("mtclust"))


FILES = [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] != "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards_only(path):
    own = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    if room_of(own) in ABOVE:
        return
    for imported in imports_of(path):
        target = imported.removeprefix("mtclust").lstrip(".")
        if not target or room_of(target) == room_of(own) or (own, room_of(target)) in ALLOWED:
            continue
        assert room_of(target) not in ABOVE, f"{own} imports {target}"
        assert ROOMS[room_of(target)] <= ROOMS[room_of(own)], f"{own} imports {target}, which lies above it"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_needs_the_experiments_of_the_paper(path):
    assert not re.search(r"^\s*(from|import) paper\b", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
