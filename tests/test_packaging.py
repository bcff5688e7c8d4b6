"""The package as others install it."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

SMOKE = """
import numpy as np, mtclust
X = np.concatenate([np.random.default_rng(0).normal(size=(10, 2)) + c for c in ([0, 0], [9, 0], [0, 9])] * 2)
model = mtclust.DMTRC(3, kernel="linear", random_state=0).fit(X, tasks=np.repeat([0, 1], 30))
assert model.cluster_sizes_.tolist() == [[10] * 3] * 2, model.cluster_sizes_
print(mtclust.__file__)
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    # a build writes into its tree: give it one of its own
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "src" / "mtclust", source / "src" / "mtclust", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "build", "--outdir", str(out), str(source)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    return out


def test_wheel_runs_from_an_empty_directory(distributions, tmp_path):
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path)
    assert "mtclust/py.typed" in names
    assert {f"mtclust/app/report/templates/report.{ending}" for ending in ("html.jinja", "css", "js")} <= set(names)
    assert not any(name.startswith("tests/") for name in names)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", SMOKE], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip().startswith(str(tmp_path))


def test_sdist_holds_what_a_build_needs(distributions):
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/mtclust/core/compiled.py", "src/mtclust/py.typed"} <= names


def test_a_missing_extra_is_named():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from mtclust.plotting import plot_task_relationship\n"
        "plot_task_relationship(object())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'in a clone of mtclust: pip install ".[plot]"' in run.stderr


#: what an import of the package must not load: optional or slow libraries, and parts of ours that not every fit needs
NOT_AT_IMPORT = (
    "numba", "matplotlib", "jinja2", "dask", "cvxpy", "mtclust.rows", "mtclust.persistence",
    "mtclust.distributed.fit", "mtclust.relaxation.cutting_plane", "mtclust.search.all_rows",
    "mtclust.app.words", "mtclust.text", "mtclust.nuisance",
)  # fmt: skip


def test_importing_the_package_loads_only_what_every_fit_needs():
    code = f"import sys, mtclust; print([m for m in {NOT_AT_IMPORT} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_names_that_are_imported_late_are_listed_and_found():
    code = (
        "import mtclust; print([n for n in ['load'] if n not in dir(mtclust)]); "
        "print(mtclust.load.__name__ == 'load', hasattr(mtclust, 'no_such_name'))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == ["[]", "True False"]
