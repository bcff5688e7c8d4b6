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

from mtclust.choose.record import Selection
from mtclust.core.coupling import COUPLINGS
from mtclust.core.ids import keys, missing_ids
from mtclust.core.kernels import Kernel
from mtclust.core.labels import SizeBounds
from mtclust.core.model import DecisionModel
from mtclust.core.stability import Stability
from mtclust.persistence.codec import check_hashes
from mtclust.primal.features import FeatureMap
from mtclust.primal.rows import Moments
from mtclust.problem.common import CommonKept
from mtclust.problem.feature_kept import FeatureKept
from mtclust.problem.kept import KernelKept

_FLOAT: tuple[Any, ...] = (np.float64,)
_ROWS: tuple[Any, ...] = (np.float64, np.float32)
_OF_ROWS: tuple[Any, ...] = (np.float32, np.float64)
_INT: tuple[Any, ...] = (np.int64,)


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
    # of models saved before there were any, and of very many rows, there are none
    for name, shape in {"probabilities_": "nC", "outlier_scores_": "n"}.items():
        if getattr(model, name, None) is not None:
            sizes.array(name, getattr(model, name), _FLOAT, *shape, low=0.0, high=1.0)
    if getattr(model, "cluster_scores_", None) is not None:
        sizes.array("cluster_scores_", model.cluster_scores_, _FLOAT, "C")
    if getattr(model, "stability_", None) is not None:
        _check_stability(sizes, model.stability_)
    _of_type("selection_", model.selection_, Selection)
    if model.selection_.task_similarity is not None:
        sizes.array("task_similarity", model.selection_.task_similarity, _FLOAT, "m", "m")
    for name in ("objective_", "loo_score_"):
        if not isinstance(getattr(model, name), Real):
            raise ValueError(f"{name} is no number")
    _check_decision(sizes, "decision", model._model)
    _check_kept(sizes, model._kept, model._model)


def _check_stability(sizes: _Sizes, stability: Any) -> None:
    _of_type("stability_", stability, Stability)
    _number("stability_.overall", stability.overall)
    _number("stability_.n_refits", stability.n_refits, 1, whole=True)
    _number("stability_.share", stability.share, 0)
    # a row that no refit has seen and a cluster that none has are NaN
    sizes.array("stability_.rows", np.nan_to_num(stability.rows), _FLOAT, "n", low=0.0, high=1.0)
    sizes.array("stability_.clusters", np.nan_to_num(stability.clusters), _FLOAT, "C", low=0.0, high=1.0)
    sizes.array("stability_.shares", stability.shares, _FLOAT, "m", "C", "2", low=0.0, high=1.0)
    for name in ("task_correlation", "task_covariance"):
        if getattr(stability, name) is not None:
            sizes.array(f"stability_.{name}", getattr(stability, name), _FLOAT, "m", "m", "2")


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


def _check_decision(sizes: _Sizes, name: str, decision: Any) -> None:
    _of_type(name, decision, DecisionModel)
    _check_kernel(decision.kernel)
    sizes.array(f"{name}.intercept", decision.intercept, _FLOAT, "m", "C")
    sizes.array(f"{name}.present", decision.present, (np.bool_,), "m", "C")
    _number(f"{name}.temperature", decision.temperature, np.finfo(float).tiny)
    if decision.centres is not None:
        sizes.array(f"{name}.centres", decision.centres, _FLOAT, "m", "d")
    if decision.rows is None and decision.kernel.kind == "linear":
        sizes.array(f"{name}.coefficients", decision.coefficients, _FLOAT, "m", "C", "d")
        return
    if decision.rows is not None:
        sizes.array(f"{name}.rows", decision.rows, _ROWS, f"rows of {name}", "d")
    elif decision.kernel.kind == "precomputed":
        sizes.array(f"{name}.coefficients", decision.coefficients, _FLOAT, "m", "n", "C")
        return
    else:
        raise ValueError(f"{name} has no rows")
    sizes.array(f"{name}.coefficients", decision.coefficients, _FLOAT, "m", f"rows of {name}", "C")


def _check_kept(sizes: _Sizes, kept: Any, decision: DecisionModel) -> None:
    """What new tasks are clustered with."""
    if type(kept) not in (KernelKept, FeatureKept, CommonKept):
        raise ValueError(f"it holds no state for new tasks but a {type(kept).__name__}")
    bounds = kept.bounds
    _of_type("bounds", bounds, SizeBounds)
    sizes.array("bounds.lower", bounds.lower, _INT, "m", "C", low=0)
    sizes.array("bounds.upper", bounds.upper, _INT, "m", "C", low=0)
    if np.any(bounds.lower > bounds.upper) or not isinstance(bounds.movable, bool | np.bool_):
        raise ValueError("its cluster sizes have lower bounds above the upper ones")
    if type(kept) is CommonKept:
        _check_decision(_Sizes(m=1, **{size: sizes.known[size] for size in "nCd"}), "the common model", kept.model)
        if not (kept.model.present.all() and decision.present.all()):
            raise ValueError("its one model for all tasks lacks clusters")
        if (kept.moves is None) != (kept.means is None):
            raise ValueError("its tasks are aligned by half of what that takes")
        if kept.moves is not None:
            sizes.array("moves", kept.moves, _FLOAT, "m", "d")
            sizes.array("means", kept.means, _FLOAT, "C", "d")
        return
    if not np.array_equal(bounds.present, decision.present):
        raise ValueError("its tasks do not have the clusters that it decides about")
    sizes.array("lambda1", kept.lambda1, _FLOAT, "m", low=0)
    _number("lambda2", kept.lambda2, 0)
    if kept.method not in COUPLINGS:
        raise ValueError(f"its tasks are coupled in an unknown way, {kept.method!r:.40}")
    if kept.criterion not in ("J", "E"):
        raise ValueError(f"its labels are judged by something unknown, {kept.criterion!r:.40}")
    _of_type("centred", kept.centred, bool)
    if type(kept) is KernelKept:
        _check_rows(sizes, kept)
    else:
        _check_moments(sizes, kept)


def _check_rows(sizes: _Sizes, kept: KernelKept) -> None:
    """Rows and labels of a fit with kernel matrices: all of them, or the few that were searched on."""
    _check_kernel(kept.kernel)
    m = sizes.known["m"]
    sizes.array("labels of rows", kept.labels, _INT, "rows", low=0, high=sizes.known["C"] - 1)
    sizes.array("offsets", kept.offsets, _INT, "m+1", low=0)
    if len(kept.offsets) != m + 1 or _wrong_offsets(kept.offsets, len(kept.labels)):
        raise ValueError(f"its rows are not those of {m} tasks")
    _number("the scale of the kernel", kept.scale, 0)
    _of_type("centred_rows", kept.centred_rows, bool)
    if kept.rank is not None:
        _number("rank", kept.rank, 0, whole=True)
    if kept.rows is None and kept.kernel.kind != "precomputed":
        raise ValueError("it has no rows")
    if kept.rows is not None:
        sizes.array("rows", kept.rows, _ROWS, "rows", "d")
        if kept.centred_rows and sp.issparse(kept.rows):
            raise ValueError("its rows are sparse but have their means taken off")


def _wrong_offsets(offsets: NDArray[np.int64], n: int) -> bool:
    return bool(offsets[0] != 0 or offsets[-1] != n or np.any(np.diff(offsets) < 1))


def _check_moments(sizes: _Sizes, kept: FeatureKept) -> None:
    """Moments and class vectors of a fit with explicit features."""
    features, moments = kept.features, kept.moments
    _of_type("features", features, FeatureMap)
    _of_type("moments", moments, Moments)
    _check_kernel(features.kernel)
    if features.landmarks is not None:
        sizes.array("landmarks", features.landmarks, _ROWS, "landmarks", "d")
        sizes.array("projection", features.projection, _OF_ROWS, "landmarks", "r")
    elif features.kernel.kind != "linear":
        raise ValueError("it has no landmarks")
    elif features.projection is not None:
        sizes.array("projection", features.projection, _FLOAT, "d", "r")
    else:
        sizes.known["r"] = sizes.known["d"]
    if features.centres is not None:
        sizes.array("centres", features.centres, _FLOAT, "m", "d")
    for name, value, shape in (
        ("mean", moments.mean, "mr"), ("total", moments.total, "mr"), ("gram", moments.gram, "mrr"),
        ("class vectors", kept.b, "mrC"),
    ):  # fmt: skip
        sizes.array(name, value, _FLOAT, *shape)
    if moments.offset is not None:
        sizes.array("offset", moments.offset, _FLOAT, "m", "C")
    sizes.array("sizes", moments.sizes, _INT, "m", low=1)
    if moments.sizes.sum() != sizes.known["n"]:
        raise ValueError("the sizes of its tasks are not those of its rows")
    sizes.array("counts", kept.counts, _INT, "m", "C", low=0)
    if not np.array_equal(kept.counts.sum(axis=1), moments.sizes):
        raise ValueError("the sizes of its clusters are not those of its tasks")
    sizes.array("largest", moments.largest, _FLOAT, "m", low=0)
    _number("the scale of the features", moments.scale, 0)
