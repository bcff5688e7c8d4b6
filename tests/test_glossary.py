"""One word, one meaning: what words stand for in names of the library, and names that are defined once."""

import ast
import re
from pathlib import Path

import pytest

import mtclust

ROOT = Path(mtclust.__file__).parent
TREES = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))}
#: where data are clustered; tables, pictures and words of app speak of things of their own
ROOMS = ("core", "rows", "search", "choose", "estimators", "distributed", "relaxation")
#: a part of names there: what it means, and which names have it, as "file:name"
WORDS = {
    "align": ("tasks are moved by offsets of their own", r"(choose|estimators)/.*"),
    "spread": ("a standard deviation", r".*:(check_)?spreads?"),
    "moves": (
        "how far tasks are moved; users read it in task_offsets_",
        r"(?!core/(criterion|compiled)|search/descent).*",
    ),
    "offset": (
        "where the rows of every task begin; users read moves in task_offsets_",
        r".*:(offsets|offsets_of|task_offsets_)",
    ),
    "by_rows": ("rows are known, not only a kernel of them", r"(choose|estimators)/.*:by_rows"),
    "form": (
        "dual or primal: how the rows of a fit are held",
        r"(choose|estimators|distributed)/.*:(forms?|form_of)",
    ),
    "closed_form": ("the best coupling of given models", r"(core|search|relaxation)/.*"),
}


def names_in(tree):
    """Variables, arguments, attributes, functions and classes."""
    for node in ast.walk(tree):
        for field in ("id", "arg", "attr", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str) and not isinstance(node, ast.alias):
                yield name


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_names_stands_where_it_has_its_meaning(word):
    meaning, allowed = WORDS[word]
    part = re.compile(rf"(^|_){word}" if word != "form" else r"(^|(?<!closed)_)forms?(_|$)")
    trees = [(file, tree) for file, tree in TREES.items() if file.startswith(ROOMS)]
    found = {f"{file}:{name}" for file, tree in trees for name in names_in(tree) if part.search(name)}
    assert found
    assert not {place for place in found if not re.fullmatch(allowed, place)}, f"{word} stands for: {meaning}"


def test_names_of_the_middle_are_defined_once():
    places = {}
    for file, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(file)
    middle = {name: files for name, files in places.items() if re.match("(core|search|rows)/", " ".join(files))}
    assert len(middle) > 100
    assert not {name: files for name, files in middle.items() if len(files) > 1}
