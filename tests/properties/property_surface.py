"""Generated uses of the public surface: what people pass as X, as task ids and as parameters, in every form."""

from dataclasses import dataclass, field

import dask.array as da
import numpy as np
import pandas as pd
import polars
import scipy.sparse as sp
from hypothesis import strategies as st
from property_problems import KINDS, METHODS, rows_of
from tests.id_types import IDS, repeated

from mtclust.tasks import index_tasks

DTYPES = ("float64", "float32", "float16", "longdouble", "int64", "int8", "uint16", "bool")
CONTAINERS = ("array", "list", "csr_array", "csr_matrix", "csc_array", "coo_matrix", "pandas", "polars", "fortran")
ID_TYPES = sorted(name for name in IDS if hasattr(np.dtypes, "StringDType") or not name.startswith("StringDType"))
#: decimal exponents that a dtype can hold, where these are fewer than those that are asked for
EXPONENTS = {"float16": (-2, 2), "int64": (0, 6), "int8": (0, 1), "uint16": (0, 3), "bool": (0, 0)}


def cosine(A, B):
    """A kernel of the user's own."""
    A, B = (np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=float) for rows in (A, B))
    return A @ B.T / (1e-300 + np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1))


@dataclass(frozen=True)
class Use:
    """One estimator with its parameters, and the table it is given."""

    method: str
    parameters: dict
    numbers: np.ndarray = field(repr=False)
    rows: np.ndarray = field(repr=False)
    container: str
    id_type: str
    in_column: bool
    told: dict

    @property
    def precomputed(self):
        return self.parameters["kernel"] == "precomputed"

    def estimator(self):
        given = self.parameters | ({"task_column": "task"} if self.in_column else {})
        if given["random_state"] == "generator":
            given["random_state"] = np.random.RandomState(3)
        return METHODS[self.method](**given)

    def table(self, which=slice(None)):
        """X of some rows as the user holds it, with the task ids in it or beside it: ``(X, tasks)``."""
        ids = repeated(IDS[self.id_type](), self.rows[which])
        if self.precomputed:
            kernel = self.numbers.astype(float) @ self.numbers.astype(float).T
            return kernel[which], ids
        if self.in_column:
            frame = pd.DataFrame(self.numbers[which]).rename(columns=str)
            frame["task"] = ids if isinstance(ids, list) else list(ids)
            return frame, None
        return _contained(self.container, self.numbers[which]), ids

    def new_rows(self):
        """Rows of a task that was not in ``fit``."""
        plain = self.in_column or self.container == "dask"
        return _contained("array" if plain else self.container, self.numbers[:8][::-1].copy())


def _contained(container, numbers):
    make = {
        "array": np.asarray, "list": lambda a: a.tolist(), "pandas": pd.DataFrame, "fortran": np.asfortranarray,
        "polars": lambda a: polars.DataFrame({str(k): column for k, column in enumerate(a.T)}),
        "dask": lambda a: da.from_array(a, chunks=(5, a.shape[1])),
        "csr_array": sp.csr_array, "csr_matrix": sp.csr_matrix, "csc_array": sp.csc_array, "coo_matrix": sp.coo_matrix,
    }  # fmt: skip
    return make[container](numbers)


@st.composite
def uses(draw):
    """A use that is allowed: any error is a failure."""
    method = draw(st.sampled_from(sorted(METHODS)))
    C = draw(st.integers(2, 3))
    counts = draw(st.lists(st.integers(C + 1, 14), min_size=1, max_size=2).filter(lambda n: sum(n) >= 10))
    numbers, rows, told = _numbers(draw, counts)
    solver = draw(st.sampled_from(["exchange"] * 11 + ["cutting-plane"]))
    form = draw(st.sampled_from(["auto", "dual", "primal"])) if solver == "exchange" else "auto"
    kernels = ["linear", "linear", "rbf", "rbf", cosine]
    if solver == "exchange" and form != "primal" and not told["in_column"]:
        kernels.append("precomputed")
    kernel = draw(st.sampled_from(kernels))
    id_type = draw(st.sampled_from(ID_TYPES))
    index = index_tasks(repeated(IDS[id_type](), rows), len(rows))
    names = [] if told["in_column"] else index.names.tolist()
    parameters = {
        "kernel": kernel,
        "width": draw(st.sampled_from(["auto", 0.5, 2])),
        "lambda1": draw(st.sampled_from(["auto", 0.1, 0.1, np.float32(0.01), 1])),
        "lambda2": draw(st.sampled_from(["auto", 0.05])),
        "fit_intercept": draw(st.booleans()),
        "n_init": 1,
        "random_state": draw(st.sampled_from([0, 7, None, "generator"])),
        "n_components": draw(st.sampled_from([None, None, 2, 50])),
        "solver": solver,
        "solver_options": {"form": form},
    }
    if solver == "cutting-plane":
        parameters["solver_options"] = {"max_cuts": 2, "max_level_steps": 30}
    elif form == "auto":
        parameters["solver_options"] = draw(st.sampled_from([None, {}]))
    choices = [C, C, C, np.int64(C)]
    if solver == "exchange":
        choices += [range(2, C + 1)] + [{name: draw(st.integers(2, C)) for name in names}] * bool(names)
    parameters["n_clusters"] = draw(st.sampled_from(choices))
    parameters["sizes"] = _sizes(draw, index.sizes.tolist(), C, names, parameters["n_clusters"])
    if method == "DMTRC":
        strengths = [0.5] if solver == "exchange" else []  # cutting planes refuse anything between
        parameters["coupling"] = draw(st.sampled_from(["auto", "full", "none", *strengths]))
    if kernel != "precomputed" and solver == "exchange" and form != "dual" and not told["in_column"]:
        told["container"] = draw(st.sampled_from([told["container"]] * 8 + ["dask"]))
    return Use(method, parameters, numbers, rows, told["container"], id_type, told["in_column"], told)


def _numbers(draw, counts):
    kind, dtype = draw(st.sampled_from(KINDS)), draw(st.sampled_from(DTYPES))
    low, high = EXPONENTS.get(dtype, (-12, 12))
    exponent = draw(st.integers(low, high))
    seed = draw(st.integers(0, 2**31))
    X, rows = rows_of(kind, counts, draw(st.integers(1, 4)), seed)
    X = np.clip(X, -20, 20) * 10.0**exponent
    if dtype in ("uint16", "bool"):
        X = np.abs(X)
    if dtype in EXPONENTS and dtype != "float16":
        X = np.clip(np.round(X), *(np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype != "bool" else (0, 1))
    sparse_has_no = dtype in ("float16", "longdouble")
    container = draw(st.sampled_from([c for c in CONTAINERS if not (sparse_has_no and c[-1] in "yx" and "_" in c)]))
    if container == "polars" and sparse_has_no:
        container = "array"
    in_column = draw(st.sampled_from([False, False, True])) and dtype != "float16"
    told = {"kind": kind, "dtype": dtype, "exponent": exponent, "seed": seed, "counts": counts}
    return X.astype(dtype), rows, told | {"container": container, "in_column": in_column}


def _sizes(draw, counts, C, names, n_clusters):
    exact = [[n // C + (c < n % C) for c in range(C)] for n in counts]
    bounds = [[(0, n)] * C for n in counts]
    choices = ["auto", "balanced", "balanced", 0.3, 0, 1.0, (0.0, 1.0)]
    if isinstance(n_clusters, int | np.integer):
        choices += [exact, np.array(exact), tuple(map(tuple, exact)), bounds]
        choices += [dict(zip(names, exact))] * bool(names)
    return draw(st.sampled_from(choices))
