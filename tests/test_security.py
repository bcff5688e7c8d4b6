"""What the library must never do: run code that comes from data, or fetch anything over an open line."""

import ast
import re
from pathlib import Path

import pytest

import mtclust
from paper.experiments.table import as_row, read_rows

ROOT = Path(mtclust.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))
#: modules that turn bytes into code, and calls that do
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "code", "codeop"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
#: loaders of others that read a pickle from a cache
FORBIDDEN_NAMES = {"fetch_20newsgroups", "fetch_20newsgroups_vectorized", "fetch_openml", "fetch_olivetti_faces"}
FORBIDDEN_METHODS = {("os", "system"), ("os", "popen"), ("joblib", "load"), ("yaml", "load"), ("pandas", "read_pickle")}


def forbidden(tree):
    """Everything in a module that could execute what it reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in FORBIDDEN_MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in FORBIDDEN_MODULES:
            yield node.module
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.name in FORBIDDEN_NAMES)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
                yield node.func.id
            if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                name = (node.func.value.id, node.func.attr)
                if name in FORBIDDEN_METHODS:
                    yield ".".join(name)
            for keyword in node.keywords:
                risky = keyword.arg in ("shell", "allow_pickle") and not (
                    isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                )
                if risky:
                    yield f"{keyword.arg}={ast.unparse(keyword.value)}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_unpickled_evaluated_or_given_to_a_shell(path):
    assert list(forbidden(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle", "from pickle import loads", "eval('1')", "exec('1')", "np.load(f, allow_pickle=True)",
        "subprocess.run(c, shell=True)", "import os; os.system('ls')", "joblib.load(f)",
        "from sklearn.datasets import fetch_20newsgroups",
    ],
)  # fmt: skip
def test_the_check_itself_finds_what_it_looks_for(code):
    assert list(forbidden(ast.parse(code)))


def test_arrays_are_never_loaded_with_pickle():
    for path in SOURCES:
        for call in re.findall(r"np\.load\([^)]*\)", path.read_text(encoding="utf-8")):
            assert "allow_pickle=False" in call, (path, call)


def test_every_download_is_encrypted_and_has_a_checksum_of_the_file_or_of_its_content():
    from paper.datasets import tasks
    from paper.datasets.files import DataFile

    held, remote = vars(tasks), []
    for name, value in held.items():
        content = held.get(f"{name.partition('_')[0]}_CONTENT", "")
        for file in value if isinstance(value, tuple) else (value,):
            if isinstance(file, DataFile) and file.url:
                remote.append(file.url)
                assert re.fullmatch(r"[0-9a-f]{64}", file.sha256 or content)
    assert len(remote) == 4
    assert all(url.startswith("https://") for url in remote)


HOSTILE_START = tuple("=+-@\t\r\n＝＋－＠")


def test_tables_of_experiments_hold_nothing_that_a_spreadsheet_would_execute():
    """They are ours from end to end: names, numbers, JSON, and errors that begin with their type."""
    rows = [as_row(experiment="e", dataset="d", draw=-1, method="m", setting={"=x": "=1"}, nmi=-0.5, error="E: =1")]
    tables = [rows] + [read_rows(path) for path in (ROOT.parent.parent / "results" / "reproduce").rglob("runs.csv")]
    for cell in {cell for rows in tables for row in rows for cell in row.values()}:
        assert not cell.startswith(HOSTILE_START) or re.fullmatch(r"-[\d.]+(e[-+]\d+)?", cell), cell


def test_parquet_is_not_read_by_a_version_that_executes_what_is_in_it():
    """CVE-2023-47248: pyarrow before 14.0.1."""
    needs = (ROOT.parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert set(re.findall(r'"pyarrow>=([\d.]+)"', needs)) == {"14.0.1"}
