"""Generated uses with one thing wrong: what is wrong, and the word of the message that names it."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from mtclust import DMTFC, DMTRC, DSTC

#: argument → values that no estimator takes
PARAMETERS = {
    "n_clusters": [0, -1, 2.5, "many", 10**6, {}, {"x": 2}, range(5, 2), None, [2, 3], np.nan, range(0)],
    "kernel": ["poly", 3, None, "precomputed"],
    "width": [0, -1.0, "wide", np.nan],
    "lambda1": [-1, "x", np.nan, {"nobody": 1.0}, None],
    "lambda2": [0, -0.5, "x", None, np.nan],
    "sizes": ["odd", -1, 2.0, (0.9, 0.1), (0.6, 1.0), [[1, 2]], np.zeros((9, 9)), {"x": [1, 2]}, None, np.nan],
    "solver": ["magic", None],
    "solver_options": [{"nope": 1}, {"form": "round"}, [1], {"form": 3}],
    "n_components": [0, -2, 1.5, "all"],
    "fit_intercept": ["yes", 7],
    "n_init": [0, -1, "few", 1.5],
    "task_column": ["nobody", 99, 1.5],
    "random_state": ["dice", -1, 1.5],
    "n_jobs": ["two"],
}
#: X that is no table of numbers, and what the message says of it
TABLES = {
    "NaN": lambda X: _with(X, np.nan),
    "infinity": lambda X: _with(X, -np.inf),
    "too large": lambda X: _with(X, 1e200),
    "one dimension": lambda X: X[:, 0],
    "three dimensions": lambda X: X[None],
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "words": lambda X: np.full(X.shape, "word"),
    "complex": lambda X: X + 1j,
    "masked": lambda X: np.ma.masked_array(X, mask=np.arange(X.size).reshape(X.shape) > 0),
    "nothing": lambda X: None,
    "a number": lambda X: 3.0,
    "frame with words": lambda X: pd.DataFrame(X).assign(colour="red"),
    "ragged": lambda X: [[1.0], [1.0, 2.0]] * len(X),
}
TASKS = {
    "too few": lambda ids: ids[:-1],
    "missing": lambda ids: [None, *ids[1:]],
    "mixed": lambda ids: [str(ids[0]), *ids[1:]],
    "two dimensions": lambda ids: np.stack([ids, ids], axis=1),
    "one per row": lambda ids: [f"row {i}" for i in range(len(ids))],
    "sets": lambda ids: [{i} for i in ids],
}
KNOWN = {
    "too few": lambda n: [0] * (n - 1),
    "no cluster": lambda n: [7] + [-1] * (n - 1),
    "words": lambda n: ["a"] + [None] * (n - 1),
    "fractions": lambda n: [0.5] + [-1] * (n - 1),
    "below": lambda n: [-2] + [-1] * (n - 1),
}


def _with(X, value):
    X = X.copy()
    X[len(X) // 2, 0] = value
    return X


@st.composite
def mistakes(draw):
    """A table of two tasks, the estimator, and what is wrong: ``(estimator, fit arguments, what, words)``."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    n, C = draw(st.integers(22, 40)), draw(st.integers(2, 3))
    given = {"X": rng.normal(size=(n, draw(st.integers(1, 3)))), "tasks": np.arange(n) % 2}
    parameters = {"n_clusters": C, "random_state": 0, "kernel": draw(st.sampled_from(["linear", "rbf", "auto"]))}
    method = draw(st.sampled_from([DMTRC, DMTFC, DSTC]))
    what = draw(st.sampled_from(["parameter"] * 4 + ["X", "X", "tasks", "known"]))
    if what == "parameter":
        name = draw(st.sampled_from(sorted(PARAMETERS)))
        value = draw(st.sampled_from(PARAMETERS[name]))
        parameters[name] = value
        return method(**parameters), given, f"{name}={value!r}", (name, "X") if name == "kernel" else (name,)
    if what == "known":
        given["known"] = KNOWN[draw(st.sampled_from(sorted(KNOWN)))](n)
        return method(**parameters), given, "known", ("known",)
    kinds = TABLES if what == "X" else TASKS
    kind = draw(st.sampled_from(sorted(kinds)))
    given[what] = kinds[kind](given[what])
    return method(**parameters), given, f"{what}: {kind}", ("tasks",) if what == "tasks" else ("X", "array", "Complex")
