"""The house may only become smaller: what it counts today is the most it may count tomorrow.

A commit that lowers a count lowers its limit here; no commit raises one.
"""

import ast
import re
import warnings
from pathlib import Path

import pytest

import mtclust
from tools.walk import calls_of, tasks_of, walked

ROOT = Path(mtclust.__file__).parent
FILES = {path: path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
LIMITS = {
    "lines": 16_427,
    "files": 82,
    "modules at the root": 8,
    "modules below 45 lines": 1,
    "numeric constants": 146,
    "numeric constants in files of a default fit": 65,
    "files of a small dense fit": 28,
    "functions of a small dense fit": 220,
    "calls of a small dense fit": 2_804,  # 2 796 with the newest dependencies
    "parameters annotated estimator: Any": 0,
}


def constants_of(text):
    """Names in capitals that a module sets to something with a number in it."""
    names = []
    for node in ast.parse(text).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        plain = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        numbers = [n for n in ast.walk(node) if isinstance(n, ast.Constant) and type(n.value) in (int, float)]
        names += [name for name in plain if re.fullmatch(r"_?[A-Z][A-Z0-9_]*", name) and numbers]
    return names


@pytest.fixture(scope="module")
def counts():
    def fit():
        rows, tasks = tasks_of(120, 4)
        mtclust.DMTRC(3, random_state=0).fit(rows, tasks=tasks)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit()  # imports and compiled code
        seen, calls = walked(fit), calls_of(fit)
    constants = {path: constants_of(text) for path, text in FILES.items()}
    walk = {ROOT / file for file, _ in seen}
    small = [p for p, text in FILES.items() if p.name not in ("__init__.py", "__main__.py") and text.count("\n") < 45]
    return {
        "lines": sum(text.count("\n") for text in FILES.values()),
        "files": len(FILES),
        "modules at the root": sum(path.parent == ROOT for path in FILES),
        "modules below 45 lines": len(small),
        "numeric constants": sum(map(len, constants.values())),
        "numeric constants in files of a default fit": sum(len(constants[path]) for path in walk),
        "files of a small dense fit": len(walk),
        "functions of a small dense fit": len(seen),
        "calls of a small dense fit": calls,
        "parameters annotated estimator: Any": sum(len(re.findall(r"estimator: Any", text)) for text in FILES.values()),
    }


@pytest.mark.parametrize("what", LIMITS)
def test_the_house_does_not_grow(counts, what):
    assert counts[what] <= LIMITS[what], f"{what}: {counts[what]}, the limit is {LIMITS[what]}"
