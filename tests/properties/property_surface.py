"""Generated uses of the public surface: what people pass as X, as task ids and as parameters, in every form."""

from dataclasses import dataclass, field

import dask.array as da
import numpy as np
import pandas as pd
import polars
import scipy.sparse as sp
from hypothesis import strategies as st
from property_problems import KINDS, METHODS, rows_of
from sklearn.feature_extraction.text import TfidfTransformer

from mtclust.core.tasks import index_tasks
from tests.id_types import IDS, repeated

DTYPES = ("float64", "float32", "float16", "longdouble", "int64", "int8", "uint16", "bool")
SPARSE = ("csr_array", "csr_matrix", "csc_array", "coo_matrix")
CONTAINERS = ("array", "list", *SPARSE, "pandas", "polars", "fortran")
ID_TYPES = sorted(name for name in IDS if hasattr(np.dtypes, "StringDType") or not name.startswith("StringDType"))
#: decimal exponents that a dtype can hold, where these are fewer than those that are asked for
EXPONENTS = {"float16": (-2, 2), "int64": (0, 6), "int8": (0, 1), "uint16": (0, 3), "bool": (0, 0)}
#: as many words as make a sparse table a wide one
WORDS = 1010


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
    known: object
    told: dict

    @property
    def precomputed(self):
        return self.parameters["kernel"] == "precomputed"

    @property
    def seeded(self):
        """Whether the same call gives the same answer."""
        return self.parameters["random_state"] in (0, 7)

    def estimator(self):
        given = self.parameters | ({"task_column": "task"} if self.in_column else {})
        if given["random_state"] == "generator":
            given["random_state"] = np.random.RandomState(3)
        return METHODS[self.method](**given)

    def table(self, which=slice(None)):
        """X of some rows as the user holds it, with the task ids in it or beside it: ``(X, tasks)``."""
        ids = _ids(self.id_type, self.rows[which])
        if self.precomputed:
            kernel = self.numbers.astype(float) @ self.numbers.astype(float).T
            return kernel[which], ids
        if self.in_column:
            frame = pd.DataFrame(self.numbers[which]).rename(columns=str)
            frame["task"] = ids if isinstance(ids, list) else list(ids)
            return frame, None
        if isinstance(ids, pd.Series):  # with the index of X
            ids = ids.reset_index(drop=True)
        return _contained(self.container, self.numbers[which]), ids

    def new_rows(self):
        """Rows of a task that was not in ``fit``."""
        plain = self.in_column or self.container == "dask"
        return _contained("array" if plain else self.container, self.numbers[:8][::-1].copy())


def _ids(id_type, rows):
    """One id per row: none for one task, numbered words where there are more tasks than a type has ids."""
    if id_type == "none":
        return None
    return [f"task {i}" for i in rows] if id_type == "many" else repeated(IDS[id_type](), rows)


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
    counts = draw(st.lists(st.integers(C + 1, 14), min_size=1, max_size=4).filter(lambda n: 10 <= sum(n) <= 30))
    numbers, rows, told = _numbers(draw, counts)
    solver = draw(st.sampled_from(["exchange"] * 15 + ["cutting-plane"]))
    form = draw(st.sampled_from(["auto", "dual", "primal"])) if solver == "exchange" else "auto"
    id_type = _id_type(draw, counts, told)
    index = index_tasks(_ids(id_type, rows), len(rows))
    names = [] if told["in_column"] or id_type == "none" else index.names.tolist()
    parameters = {
        "kernel": _kernel(draw, solver, form, told),
        "width": draw(st.sampled_from(["auto", 0.5, 2])),
        "lambda1": draw(st.sampled_from(["auto", 0.1, 0.1, np.float32(0.01), 1, 0])),
        "lambda2": draw(st.sampled_from(["auto", 0.05])),
        "fit_intercept": draw(st.booleans()),
        "n_init": draw(st.sampled_from([1, 1, 2])),
        "random_state": draw(st.sampled_from([0, 7, None, "generator"])),
        "n_components": draw(st.sampled_from([None, None, 2, 50])),
        "n_jobs": draw(st.sampled_from([None, None, None, 1, 2])),
        "verbose": draw(st.sampled_from([0, 0, 0, 1])),
        "solver": solver,
    }
    if method != "DSTC":
        parameters |= {"max_iter": draw(st.sampled_from([40, 1])), "tol": draw(st.sampled_from([1e-4, 0, 0.1]))}
    if parameters["lambda1"] == 0 and (parameters["lambda2"] == "auto" or solver == "cutting-plane"):
        parameters["lambda1"] = "auto"
    if names and solver == "exchange" and method != "DMTFC" and draw(st.sampled_from([False] * 5 + [True])):
        parameters["lambda1"] = {name: draw(st.sampled_from([0.1, 1])) for name in names}
    parameters["solver_options"] = _solver_options(draw, solver, form)
    choices = [C] * 7 + [np.int64(C)]
    if solver == "exchange":
        choices += ["auto", range(2, C + 1)] + [{name: draw(st.integers(2, C)) for name in names}] * bool(names)
    parameters["n_clusters"] = draw(st.sampled_from(choices))
    parameters["sizes"] = _sizes(draw, index.sizes.tolist(), C, names, parameters["n_clusters"])
    if kernel_may_be_chunked(parameters, form, told):
        told["container"] = draw(st.sampled_from([told["container"]] * 8 + ["dask"]))
    if method == "DMTRC":
        _coupling(draw, parameters, told)
    known = _known(draw, parameters, rows, C, told)
    return Use(method, parameters, numbers, rows, told["container"], id_type, told["in_column"], known, told)


def kernel_may_be_chunked(parameters, form, told):
    exact = parameters["kernel"] == "precomputed" or parameters["solver"] != "exchange" or form == "dual"
    return not (exact or told["in_column"] or told["kind"] == "text")


def _id_type(draw, counts, told):
    if len(counts) > 2:
        return "many"
    return draw(st.sampled_from([*ID_TYPES, *["none"] * (2 if len(counts) == 1 and not told["in_column"] else 0)]))


def _kernel(draw, solver, form, told):
    kernels = ["auto", "linear", "linear", "rbf", "rbf", cosine]
    if solver == "exchange" and form != "primal" and not told["in_column"]:
        kernels.append("precomputed")
    return draw(st.sampled_from(kernels))


def _solver_options(draw, solver, form):
    if solver == "cutting-plane":
        return {"max_cuts": 2, "max_level_steps": 8}
    if form == "auto":
        return draw(st.sampled_from([None, {}]))
    return {"form": form}


def _coupling(draw, parameters, told):
    strengths = [0.5] if parameters["solver"] == "exchange" else []  # cutting planes refuse anything between
    parameters["coupling"] = draw(st.sampled_from(["auto", "full", "none", *strengths]))
    centres = ["auto", "auto", "task"]
    one_frame = (
        repr(parameters["sizes"]) == repr("auto"), parameters["fit_intercept"], parameters["solver"] == "exchange",
        parameters["coupling"] in ("auto", "full"),
        not isinstance(parameters["n_clusters"], dict), told["container"] != "dask", told["kind"] != "text",
    )  # fmt: skip
    if all(one_frame):
        by_rows = isinstance(parameters["kernel"], str) and parameters["kernel"] != "precomputed"
        centres += ["all", "aligned"] if by_rows else ["all"]
    parameters["center"] = draw(st.sampled_from(centres))


def _known(draw, parameters, rows, C, told):
    """Clusters of a few rows, in the containers people have them in; None mostly."""
    free = repr(parameters["sizes"]) in map(repr, ("auto", 1.0, (0.0, 1.0)))
    plain = parameters["solver"] == "exchange" and not isinstance(parameters["n_clusters"], dict | str | range)
    if not free or not plain or told["container"] == "dask" or draw(st.booleans()):
        return None
    found = np.full(len(rows), -1)
    for row in draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=4)):
        found[row] = draw(st.integers(0, C - 1))
    missing = np.where(found < 0, np.nan, found)
    kinds = {"list": found.tolist(), "array": found, "nan": missing, "none": [None if k < 0 else int(k) for k in found]}
    return kinds[draw(st.sampled_from(sorted(kinds)))]


def _numbers(draw, counts):
    kind, dtype = draw(st.sampled_from([*KINDS, "text"])), draw(st.sampled_from(DTYPES))
    seed = draw(st.integers(0, 2**31))
    told = {"kind": kind, "dtype": dtype, "exponent": 0, "seed": seed, "counts": counts}
    if kind == "text":
        X, rows = _words(counts, seed)
        return X, rows, told | {"container": draw(st.sampled_from(SPARSE)), "in_column": False, "dtype": "float64"}
    low, high = EXPONENTS.get(dtype, (-12, 12))
    exponent = draw(st.integers(low, high))
    X, rows = rows_of(kind, counts, draw(st.integers(1, 4)), seed)
    X = np.clip(X, -20, 20) * 10.0**exponent
    if dtype in ("uint16", "bool"):
        X = np.abs(X)
    if dtype in EXPONENTS and dtype != "float16":
        X = np.clip(np.round(X), *(np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype != "bool" else (0, 1))
    sparse_has_no = dtype in ("float16", "longdouble")
    container = draw(st.sampled_from([c for c in CONTAINERS if not (sparse_has_no and c in SPARSE)]))
    if container == "polars" and sparse_has_no:
        container = "array"
    in_column = draw(st.sampled_from([False, False, True])) and dtype != "float16"
    return X.astype(dtype), rows, told | {"container": container, "in_column": in_column, "exponent": exponent}


def _words(counts, seed):
    """Documents of two topics, weighted as text is."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    words = np.zeros((len(rows), WORDS))
    for row, topic in zip(words, rng.integers(2, size=len(rows))):
        np.add.at(row, rng.integers(0, 30, size=12) + 40 * topic, 1.0)
        np.add.at(row, rng.integers(80, WORDS, size=6), 1.0)
    words[0, words.sum(axis=0) == 0] = 1.0
    return TfidfTransformer(sublinear_tf=True).fit_transform(sp.csr_array(words)).toarray(), rows


def _sizes(draw, counts, C, names, n_clusters):
    exact = [[n // C + (c < n % C) for c in range(C)] for n in counts]
    bounds = [[(0, n)] * C for n in counts]
    choices = ["auto", "auto", "balanced", "balanced", 0.3, 0, 1.0, (0.0, 1.0)]
    if isinstance(n_clusters, int | np.integer):
        choices += [exact, np.array(exact), tuple(map(tuple, exact)), bounds]
        choices += [dict(zip(names, exact))] * bool(names)
    return draw(st.sampled_from(choices))
