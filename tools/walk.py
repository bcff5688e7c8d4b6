"""Count the files and functions of mtclust that a fit, a prediction, a new task and a saved model walk through.

    PYTHONPATH=src python tools/walk.py                     a table of all walks
    PYTHONPATH=src python tools/walk.py --names "small dense"   the functions of one walk, in the order of first calls

Only functions of the package that are entered in this process count, lambdas and comprehensions within them do not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import mtclust

ROOT = str(Path(mtclust.__file__).parent)


def walked(action: Callable[[], Any]) -> list[tuple[str, str]]:
    """File and function of the package in the order they are first entered."""
    seen: dict[tuple[str, str], None] = {}

    def note(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and not code.co_name.startswith("<"):
            seen[str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(seen)


def calls_of(action: Callable[[], Any]) -> int:
    """How many Python functions of the package are called, in this thread."""
    calls = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(ROOT)

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


def tasks_of(n: int, d: int, m: int = 3, n_clusters: int = 3, seed: int = 0) -> tuple[Any, Any]:
    """Separated clusters at the same places in every task."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n)
    centres = 3 * rng.normal(size=(n_clusters, d))
    return centres[labels] + rng.normal(size=(n, d)), np.arange(n) % m


def text_of(n: int, d: int, m: int = 3, n_clusters: int = 3, seed: int = 0) -> tuple[Any, Any]:
    """Sparse rows of words, a third of which are those of the row's topic."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(n_clusters, size=n)
    words = np.where(rng.random((n, 40)) < 1 / 3, topics[:, None] * 300, 0) + rng.integers(300, size=(n, 40))
    anywhere = rng.random((n, 40)) < 0.5
    words = np.where(anywhere, rng.integers(d, size=(n, 40)), words)
    counts = sp.csr_matrix((np.ones(words.size), (np.repeat(np.arange(n), 40), words.ravel())), shape=(n, d))
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)))
    return sp.csr_matrix(counts.multiply(1 / norms)), np.arange(n) % m


def walks() -> dict[str, Callable[[], Any]]:
    """Name of every walk → what is done; models that later walks need are fitted before they are counted."""

    def model(rows: Any, tasks: Any, form: str = "auto") -> Any:
        options = None if form == "auto" else {"form": form}
        return mtclust.DMTRC(3, random_state=0, solver_options=options).fit(rows, tasks=tasks)

    small, large, text = tasks_of(120, 4), tasks_of(40_000, 10), text_of(3000, 6000)
    new_rows, _ = tasks_of(40, 4, m=1)
    fitted = {form: model(*small, form) for form in ("dual", "primal")}
    place = Path(tempfile.mkdtemp()) / "model"
    fitted["dual"].save(place)

    def chunked() -> None:
        import dask.array as da

        rows, tasks = large
        model(da.from_array(rows, chunks=(10_000, -1)), da.from_array(tasks, chunks=10_000))

    return {
        "small dense": lambda: model(*small),
        "large dense": lambda: model(*large),
        "sparse text": lambda: model(*text),
        "Dask": chunked,
        "predict": lambda: fitted["dual"].predict(small[0], tasks=small[1]),
        "fit_task, kernels": lambda: fitted["dual"].fit_task(new_rows),
        "fit_task, features": lambda: fitted["primal"].fit_task(new_rows),
        "save": lambda: fitted["dual"].save(place),
        "load": lambda: mtclust.load(place),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--names", metavar="WALK", help="list the functions of one walk")
    chosen = parser.parse_args().names
    warnings.simplefilter("ignore")
    todo = walks()
    if chosen is not None and chosen not in todo:
        parser.error(f"--names {chosen!r}: there is no such walk; choose from {', '.join(todo)}")
    print("| walk | files | functions |\n|---|---|---|")
    for name, action in todo.items():
        if chosen in (None, name):
            found = walked(action)
            print(f"| {name} | {len({file for file, _ in found})} | {len(found)} |", flush=True)
            for file, function in found if chosen else ():
                print(f"{file}: {function}")


if __name__ == "__main__":
    main()
