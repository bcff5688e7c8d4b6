"""What a loaded model must be like: shapes, types, ranges and finiteness of everything that is computed with later.

A file may be whole by its checksums and still not be one that ``save`` wrote. Compiled code takes labels and offsets as
addresses, and scores of NaN would be silent, so that nothing is taken on trust.
"""

from __future__ import annotations

from collections import Counter
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust._ids import keys, missing_ids
from mtclust.estimators.large import LargeFit
from mtclust.estimators.preparation import Prepared
from mtclust.features import Kernel
from mtclust.labels import SizeBounds
from mtclust.model import DecisionModel
from mtclust.persistence.codec import check_hashes

_FLOAT: tuple[Any, ...] = (np.float64,)
_ROWS: tuple[Any, ...] = (np.float64, np.float32)
_OF_ROWS: tuple[Any, ...] = (np.float32, np.float64)
_INT: tuple[Any, ...] = (np.int64,)
_INDEX: tuple[Any, ...] = (np.int64, np.int32)


class _Sizes:
    """The sizes n (rows), m (tasks), C (clusters) and d (features); others are bound where they first occur."""

    def __init__(self, **known: int) -> None:
        self.known = known

    def array(
        self, name: str, value: Any, types: tuple[Any, ...], *shape: str, low: float = -np.inf, high: float = np.inf
    ) -> None:
        """An array of one of these types and this shape, all of it finite and within these limits."""
        sparse = sp.issparse(value) and types is _ROWS
        if not (sparse or isinstance(value, np.ndarray)) or value.dtype not in types:
            raise ValueError(f"{name} is {_described(value)} in the place of an array of {np.dtype(types[0])}")
        self._bind(name, value.shape, shape)
        numbers = value.data if sparse else value
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            raise ValueError(f"{name} holds values that are not finite")
        if numbers.size and numbers.dtype.kind in "fi" and not (low <= numbers.min() and numbers.max() <= high):
            raise ValueError(f"{name} holds values outside of {low} to {high}")

    def _bind(self, name: str, found: tuple[int, ...], shape: tuple[str, ...]) -> None:
        expected = tuple(int(size) if size.isdigit() else self.known.get(size, -1) for size in shape)
        if len(found) != len(shape) or any(want not in (-1, size) for want, size in zip(expected, found)):
            raise ValueError(f"{name} has the shape {found}, not ({', '.join(shape)}) with {self.known}")
        self.known |= {size: length for size, length in zip(shape, found) if not size.isdigit()}


def _described(value: Any) -> str:
    return f"an array of {value.dtype}" if hasattr(value, "dtype") else f"a {type(value).__name__}"


def _number(name: str, value: Any, low: float = -np.inf, *, whole: bool = False) -> None:
    kind = Integral if whole else Real
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= float(value) < np.inf:
        raise ValueError(f"{name} is {value!r:.40}, not a {'whole ' if whole else ''}number from {low} on")


def _of_type(name: str, value: Any, kind: type) -> None:
    if type(value) is not kind:
        raise ValueError(f"{name} is a {type(value).__name__} in the place of a {kind.__name__}")


def check_state(model: Any) -> None:
    """Everything that ``predict``, ``decision_function``, ``fit_task`` and ``summary`` of a loaded model use."""
    _number("n_clusters_", model.n_clusters_, 1, whole=True)
    _number("n_features_in_", model.n_features_in_, 1, whole=True)
    _check_tasks(model.tasks_)
    d = model.n_features_in_ - (model.task_column is not None)
    sizes = _Sizes(n=len(model.labels_), m=len(model.tasks_), C=int(model.n_clusters_), d=d)
    highest = model.n_clusters_ - 1
    sizes.array("labels_", model.labels_, _INT, "n", low=0, high=highest)
    sizes.array("single_task_labels_", model.single_task_labels_, _INT, "n", low=0, high=highest)
    sizes.array("cluster_sizes_", model.cluster_sizes_, _INT, "m", "C", low=0)
    if not np.array_equal(model.cluster_sizes_.sum(axis=0), np.bincount(model.labels_, minlength=highest + 1)):
        raise ValueError("cluster_sizes_ are not those of labels_")
    for name, shape in {
        "intercept_": "mC", "coef_": "mCd", "task_covariance_": "mm", "task_correlation_": "mm",
        "feature_covariance_": "qq", "relaxed_labels_": "nC",
    }.items():  # fmt: skip
        if getattr(model, name, None) is not None:
            sizes.array(name, getattr(model, name), _FLOAT, *shape)
    _of_type("selection_", model.selection_, dict)
    if model.selection_.get("task_similarity") is not None:
        sizes.array("task_similarity", model.selection_["task_similarity"], _FLOAT, "m", "m")
    for name in ("objective_", "loo_score_"):
        if not isinstance(getattr(model, name), Real):
            raise ValueError(f"{name} is no number")
    lambda1, lambda2 = model._lambdas
    sizes.array("lambda1", lambda1, _FLOAT, "m", low=0)
    _number("lambda2", lambda2, 0)
    _check_decision(sizes, model._model)
    if model._prepared is not None:
        _check_prepared(sizes, model._prepared, model._model)
        sizes.array("_result_labels", model._result_labels, _INT, "n", low=0, high=highest)
    elif model._large is not None:
        _check_large(sizes, model._large, model._model)
    elif model._sample is None or type(model._sample) is not type(model):
        raise ValueError("it has nothing that new tasks could be clustered with")
    if getattr(model, "_features", None) is not None:
        _Sizes().array("_features.values", model._features.values, _FLOAT, "0", "r")


def _check_tasks(tasks: Any) -> None:
    if not isinstance(tasks, np.ndarray) or tasks.ndim != 1 or not len(tasks) or missing_ids(tasks).any():
        raise ValueError("tasks_ are no task ids")
    found = keys(tasks)
    check_hashes(found)
    ((_, count),) = Counter(found).most_common(1)
    if count > 1:
        raise ValueError("tasks_ has an id twice")


def _check_kernel(kernel: Any) -> None:
    _of_type("kernel", kernel, Kernel)
    if kernel.kind not in ("linear", "rbf", "precomputed"):
        raise ValueError(f"kernel is of the unknown kind {kernel.kind!r}")
    if kernel.kind == "rbf":
        _number("the width of the kernel", kernel.sigma, np.finfo(float).tiny)


def _check_decision(sizes: _Sizes, decision: Any) -> None:
    _of_type("_model", decision, DecisionModel)
    _check_kernel(decision.kernel)
    sizes.array("_model.intercept", decision.intercept, _FLOAT, "m", "C")
    sizes.array("_model.present", decision.present, (np.bool_,), "m", "C")
    if decision.rows is None and decision.kernel.kind == "linear":
        sizes.array("_model.coefficients", decision.coefficients, _FLOAT, "m", "C", "d")
        return
    if decision.rows is not None:
        sizes.array("_model.rows", decision.rows, _ROWS, "k", "d")
    elif decision.kernel.kind != "precomputed":
        raise ValueError("_model has no rows")
    sizes.array("_model.coefficients", decision.coefficients, _FLOAT, "m", "k", "C")


def _check_bounds(sizes: _Sizes, bounds: Any, decision: DecisionModel) -> None:
    _of_type("bounds", bounds, SizeBounds)
    sizes.array("bounds.lower", bounds.lower, _INT, "m", "C", low=0)
    sizes.array("bounds.upper", bounds.upper, _INT, "m", "C", low=0)
    if np.any(bounds.lower > bounds.upper) or not isinstance(bounds.movable, bool | np.bool_):
        raise ValueError("its cluster sizes have lower bounds above the upper ones")
    if not np.array_equal(bounds.present, decision.present):
        raise ValueError("its tasks do not have the clusters that it decides about")


def _check_prepared(sizes: _Sizes, prepared: Any, decision: DecisionModel) -> None:
    """Rows and tasks of a fit with kernel matrices, which are not saved themselves."""
    _of_type("_prepared", prepared, Prepared)
    index, problem, centred = prepared.index, prepared.problem, prepared.centred
    _check_kernel(prepared.kernel)
    sizes.array("offsets", index.offsets, _INT, "m+1", low=0)
    n, m = sizes.known["n"], sizes.known["m"]
    if len(index.offsets) != m + 1 or _wrong_offsets(index.offsets, n):
        raise ValueError(f"its rows are not those of {m} tasks")
    for found in (problem.offsets, centred.offsets):
        if not isinstance(found, np.ndarray) or found.dtype != np.int64 or not np.array_equal(found, index.offsets):
            raise ValueError("its tasks are not those of its problem")
    sizes.array("order", index.order, _INDEX, "n", low=0, high=n - 1)
    sizes.array("codes", index.codes, _INDEX, "n", low=0, high=m - 1)
    if not np.array_equal(np.bincount(index.order, minlength=n), np.ones(n)):
        raise ValueError("the order of its rows is none")
    _check_bounds(sizes, problem.bounds, decision)
    sizes.array("problem.lambda1", problem.lambda1, _FLOAT, "m", low=0)
    _number("problem.lambda2", problem.lambda2, 0)
    _number("the scale of the kernel", centred.scale, 0)
    if prepared.rows is not None:
        sizes.array("rows", prepared.rows, _ROWS, "n", "d")
    elif prepared.kernel.kind != "precomputed":
        raise ValueError("it has no rows")


def _wrong_offsets(offsets: NDArray[np.int64], n: int) -> bool:
    return bool(offsets[0] != 0 or offsets[-1] != n or np.any(np.diff(offsets) < 1))


def _check_large(sizes: _Sizes, large: Any, decision: DecisionModel) -> None:
    """Moments and class vectors of a fit with explicit features."""
    _of_type("_large", large, LargeFit)
    _check_kernel(large.features.kernel)
    _check_bounds(sizes, large.bounds, decision)
    if large.features.projection is not None:
        sizes.array("landmarks", large.features.landmarks, _ROWS, "l", "d")
        sizes.array("projection", large.features.projection, _OF_ROWS, "l", "r")
    moments = large.moments
    for name, value, shape in (
        ("mean", moments.mean, "mr"), ("total", moments.total, "mr"), ("gram", moments.gram, "mrr"),
        ("class vectors", large.b, "mrC"),
    ):  # fmt: skip
        sizes.array(name, value, _FLOAT, *shape)
    sizes.array("sizes", moments.sizes, _INT, "m", low=1)
    if moments.sizes.sum() != sizes.known["n"]:
        raise ValueError("the sizes of its tasks are not those of its rows")
    sizes.array("largest", moments.largest, _FLOAT, "m", low=0)
    sizes.array("lambda1", large.lambda1, _FLOAT, "m", low=0)
    _number("lambda2", large.lambda2, 0)
    _number("the scale of the features", moments.scale, 0)
    if large.method not in ("relationship", "features", "independent"):
        raise ValueError(f"its tasks are coupled in an unknown way, {large.method!r:.40}")
