"""Labels, objectives, scores and predictions of some thirty fits, to see whether a change of the code changes results.

    PYTHONPATH=src python tools/golden.py --record results/golden/golden.json     write them down
    PYTHONPATH=src python tools/golden.py --compare results/golden/golden.json    what differs from those written down

Labels are compared by the adjusted Rand index over all rows and by the share of rows whose cluster id is the same.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from mtclust import DMTFC, DMTRC, DSTC, load


def gaussian(m: int = 3, rows: int = 40, d: int = 4, C: int = 3, spread: float = 1.0, shift: float = 1.0) -> Any:
    """Clusters at the same places in every task, tasks shifted against each other."""
    rng = np.random.default_rng(0)
    tasks = np.repeat(np.arange(m), rows)
    centres, shifts = 2 * rng.normal(size=(C, d)), shift * rng.normal(size=(m, d))
    labels = rng.integers(C, size=len(tasks))
    return centres[labels] + shifts[tasks] + spread * rng.normal(size=(len(tasks), d)), tasks, labels


def real(name: str) -> Any:
    bunch = {"iris": load_iris, "wine": load_wine, "digits": load_digits}[name]()
    X = StandardScaler().fit_transform(bunch.data) if name != "digits" else bunch.data / 16
    keep = slice(None) if name != "digits" else np.arange(0, 1797, 6)
    return X[keep], np.arange(len(X[keep])) % 3, bunch.target[keep]


def text(n: int = 300, d: int = 8000, m: int = 3, C: int = 3) -> Any:
    rng = np.random.default_rng(0)
    topics = rng.integers(C, size=n)
    words = np.where(rng.random((n, 40)) < 0.5, topics[:, None] * 300, 0) + rng.integers(300, size=(n, 40))
    counts = sp.csr_matrix((np.ones(words.size), (np.repeat(np.arange(n), 40), words.ravel())), shape=(n, d))
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)))
    return sp.csr_matrix(counts.multiply(1 / norms)), np.arange(n) % m


def facts(model: Any, X: Any, tasks: Any) -> dict[str, Any]:
    """What is written down of a fitted model."""
    single = getattr(model, "single_task_labels_", None)
    return {
        "labels": np.asarray(model.labels_).tolist(),
        "single": None if single is None else np.asarray(single).tolist(),
        "predict": np.asarray(model.predict(X, tasks=tasks)).tolist(),
        "objective": float(model.objective_),
        "loo_score": float(model.loo_score_),
    }


def fits() -> dict[str, Callable[[], dict[str, Any]]]:
    """Name of every fit → what does it."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}

    def add(name: str, estimator: Any, X: Any, tasks: Any, **given: Any) -> None:
        found[name] = lambda: facts(estimator.fit(X, tasks=tasks, **given), X, tasks)

    X, T, y = gaussian()
    for cls in (DMTRC, DMTFC, DSTC):
        add(f"{cls.__name__} defaults", cls(3, random_state=0), X, T)
        for kernel in ("linear", "rbf"):
            given = cls(3, kernel=kernel, width=0.5, lambda1=1e-3, lambda2=1e-3, sizes="balanced", random_state=0)
            add(f"{cls.__name__} {kernel} balanced", given, X, T)
    for name in ("iris", "wine", "digits"):
        rows, tasks, target = real(name)
        add(f"DMTRC {name}", DMTRC(len(set(target)), random_state=0), rows, tasks)
    for frame in ("task", "all", "aligned"):
        add(f"center {frame}", DMTRC(3, center=frame, random_state=0), X, T)
    add("precomputed", DMTRC(3, kernel="precomputed", sizes="balanced", random_state=0), X @ X.T, T)
    add("callable", DMTRC(3, kernel=_cubic, sizes="balanced", random_state=0), X, T)
    add("no intercept", DMTRC(3, fit_intercept=False, sizes="balanced", random_state=0), X, T)
    add("l = .3", DMTRC(3, sizes=0.3, kernel="linear", random_state=0), X, T)
    add("fractions", DMTRC(3, sizes=(0.2, 0.5), kernel="linear", random_state=0), X, T)
    add("coupling .5", DMTRC(3, coupling=0.5, sizes="balanced", random_state=0), X, T)
    add("coupling none", DMTRC(3, coupling="none", sizes="balanced", random_state=0), X, T)
    add("mapping", DMTRC({0: 3, 1: 3, 2: 2}, sizes="balanced", random_state=0), X, T)
    known = np.where(np.arange(len(X)) % 10 == 0, y, -1)
    add("known", DMTRC(3, random_state=0), X, T, known=known)
    pairs = np.array([[0, 50], [1, 51]])
    links = {
        "must_link": pairs[y[pairs[:, 0]] == y[pairs[:, 1]]],
        "cannot_link": pairs[y[pairs[:, 0]] != y[pairs[:, 1]]],
    }
    add("links", DMTRC(3, random_state=0), X, T, **links)
    add("weights", DMTRC(3, sizes="balanced", random_state=0), X, T, sample_weight=1 + np.arange(len(X)) % 2)
    add("sparse", DMTRC(3, random_state=0), sp.csr_matrix(X), T)
    add("text", DMTRC(3, random_state=0), *text())
    cut = {"max_cuts": 5, "init": "k-means"}
    add("cutting planes", DMTRC(3, solver="cutting-plane", sizes="balanced", solver_options=cut, random_state=0), X, T)
    large, large_tasks, _ = gaussian(m=4, rows=1500, d=6, C=4)
    add("6 000 rows balanced", DMTRC(4, kernel="linear", sizes="balanced", random_state=0), large, large_tasks)
    add("6 000 rows rbf", DMTRC(4, kernel="rbf", width=1.0, sizes="balanced", random_state=0), large, large_tasks)
    add("6 000 rows defaults", DMTRC(4, random_state=0), large, large_tasks)

    def new_task() -> dict[str, Any]:
        model = DMTRC(3, sizes="balanced", random_state=0).fit(X[T < 2], tasks=T[T < 2])
        result = model.fit_task(X[T == 2])
        return {"labels": np.asarray(result.labels_).tolist()}

    def loaded() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            DMTRC(3, sizes="balanced", random_state=0).fit(X, tasks=T).save(Path(folder) / "model")
            return facts(load(Path(folder) / "model"), X, T)

    def dask() -> dict[str, Any]:
        import dask.array as da

        estimator = DMTRC(4, kernel="linear", sizes="balanced", random_state=0)
        rows, tasks = da.from_array(large, chunks=(2000, -1)), da.from_array(large_tasks, chunks=2000)
        return facts(estimator.fit(rows, tasks=tasks), large, large_tasks)

    return {**found, "fit_task": new_task, "loaded": loaded, "Dask": dask}


def _cubic(A: Any, B: Any) -> Any:
    return (1 + A @ B.T) ** 3


def compare(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """One line for every fit that differs."""
    lines = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old is None or new is None:
            lines.append(f"{name}: {'new' if old is None else 'gone'}")
        elif old != new:
            words = []
            for key in old:
                if old[key] == new.get(key):
                    continue
                if isinstance(old[key], list) and isinstance(new.get(key), list) and len(old[key]) == len(new[key]):
                    same = np.mean(np.array(old[key]) == np.array(new[key]))
                    words.append(f"{key} ARI {adjusted_rand_score(old[key], new[key]):.3f}, same ids {same:.3f}")
                else:
                    words.append(f"{key} {old[key]} → {new.get(key)}")
            lines.append(f"{name}: " + "; ".join(words))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--record", type=Path, metavar="FILE")
    action.add_argument("--compare", type=Path, metavar="FILE")
    chosen = parser.parse_args()
    now: dict[str, Any] = {}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for name, fit in fits().items():
            now[name] = fit()
    if chosen.record is not None:
        chosen.record.parent.mkdir(parents=True, exist_ok=True)
        chosen.record.write_text(
            "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in now.items()) + "\n}\n"
        )
        print(f"{len(now)} fits written to {chosen.record}")
    else:
        lines = compare(json.loads(chosen.compare.read_text()), now)
        print("\n".join(lines) if lines else f"all {len(now)} fits as before")


if __name__ == "__main__":
    main()
