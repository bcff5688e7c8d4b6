"""Everything that a saved model holds, in one table: types, ranges and shapes; and the check of a loaded one.

A file may be whole by its checksums and still not be one that ``save`` wrote. Compiled code takes labels and offsets as
addresses, and scores of NaN would be silent, so that nothing is taken on trust: a loaded model is complete and
consistent, or it is refused.

To save another attribute that ``fit`` sets, name it beside its form in ``_FORMS``. A class that the state of a model is
made of stands in ``STATES``; its fields are checked by their annotations, and those that ``_FORMS`` names by that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp

from mtclust.choose.record import Selection
from mtclust.core.coupling import COUPLINGS
from mtclust.core.kernels import Kernel
from mtclust.core.labels import SizeBounds, one_per_task, parse_sizes
from mtclust.core.model import CommonKept, DecisionModel
from mtclust.core.tasks import plain_ids
from mtclust.estimators.new_task import FeatureKept, KernelKept
from mtclust.estimators.stability import Stability
from mtclust.rows.features import FeatureMap
from mtclust.rows.moments import Moments

Sizes = dict[str, int]


@dataclass(frozen=True)
class Array:
    """An array of one of these types, finite and within these limits.

    Its shape is in letters: n rows, m tasks, C clusters, d columns; others stand for whatever they are first, and "."
    for anything. ``high`` may be one less than such a letter.
    """

    types: str
    shape: str
    low: float = -np.inf
    high: float | str = np.inf
    nan: bool = False

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        sparse = sp.issparse(value) and self.types == REAL
        if not (sparse or isinstance(value, np.ndarray)) or str(value.dtype) not in self.types.split():
            found = f"an array of {value.dtype}" if hasattr(value, "dtype") else f"a {type(value).__name__}"
            raise ValueError(f"{name} is {found} in the place of an array of {self.types.split()[0]}")
        shape = self.shape.split()
        if len(shape) != value.ndim or any(
            sizes.setdefault(letter, size) != size for letter, size in zip(shape, value.shape) if letter != "."
        ):
            raise ValueError(f"{name} has the shape {value.shape}, not ({', '.join(shape)}) with {sizes}")
        numbers = value.data if sparse else value
        if numbers.dtype.kind == "f":
            numbers = numbers[~np.isnan(numbers)] if self.nan else numbers
            if not np.isfinite(numbers).all():
                raise ValueError(f"{name} holds values that are not finite")
        high = sizes[self.high[0]] - 1 if isinstance(self.high, str) else self.high
        if numbers.size and numbers.dtype.kind in "fiu" and not (self.low <= numbers.min() and numbers.max() <= high):
            raise ValueError(f"{name} holds values outside of {self.low} to {high}")


@dataclass(frozen=True)
class Value:
    """What an annotation says; with limits a number between them."""

    annotation: Any
    low: float = -np.inf
    high: float = np.inf

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        if not _conforms(value, self.annotation):
            raise ValueError(f"{name} is {value!r:.40}, which is no {self.annotation}")
        if (self.low, self.high) != (-np.inf, np.inf) and not self.low <= float(value) <= self.high:
            raise ValueError(f"{name} is {value!r:.40}, not from {self.low} to {self.high}")


FLOAT, INT, BOOL, REAL = "float64", "int64", "bool", "float64 float32"
#: products of λ and scales must not overflow
_MOST = float(np.sqrt(np.finfo(float).max))
_POSITIVE = Value(float, float(np.finfo(float).tiny), _MOST)
#: what is checked by the same form: attributes that ``fit`` sets, whose names end in an underscore (and a question
#: mark where not every model has them), and fields of records by class, or of states by their name alone
_FORMS: tuple[tuple[Array | Value, str], ...] = (
    (Value(int, 1), "n_clusters_ n_features_in_ Stability.n_refits"),
    (Value(int, 0), "n_iter_ KernelKept.rank"),
    (Value(bool), "converged_"),
    (Value(float), "objective_ loo_score_ lower_bound_?"),
    (_POSITIVE, "Kernel.sigma DecisionModel.temperature"),
    (Value(float, 0, _MOST), "lambda2 KernelKept.scale Moments.scale"),
    (Value(float, 0, 1), "Stability.share"),
    (Value(float, -1, 1), "Stability.overall"),
    (Value(Literal["J", "E"]), "criterion Selection.criterion"),
    (Value(Literal["task", "all", "aligned"]), "Selection.center"),
    (Value(Literal["linear", "rbf", "precomputed"]), "Kernel.kind"),
    (Value(Literal[tuple(COUPLINGS)]), "method"),
    (Value(np.ndarray), "tasks_ feature_names_in_?"),
    (Value(list[list]), "task_groups_"),
    (Value(list[np.ndarray]), "mixture_weights_?"),
    (Value(list[dict[str, Any]]), "history_"),
    (Array(INT, "n", 0, "C-1"), "labels_ single_task_labels_ init_labels_?"),
    (Array("int64 int32 int16 int8 uint8", "n", 0, "C-1"), "CouplingDecision.coupled_labels"),
    (Array(INT, "N", 0, "C-1"), "KernelKept.labels"),
    (Array(INT, ".", 0), "KernelKept.offsets"),
    (Array(INT, ".", 0, "d-1"), "spread_columns_?"),
    (Array(INT, "m", 1), "Moments.sizes"),
    (Array(INT, "m C", 0), "cluster_sizes_ SizeBounds.lower SizeBounds.upper FeatureKept.counts"),
    (Array(BOOL, "m C"), "DecisionModel.present"),
    (Array(FLOAT, "n", 0, 1), "outlier_scores_?"),
    (Array(FLOAT, "n", 0, 1, nan=True), "Stability.rows"),
    (Array(FLOAT, "n C", 0, 1), "probabilities_?"),
    (Array(FLOAT, "n C"), "relaxed_labels_?"),
    (Array(FLOAT, "C", nan=True), "cluster_scores_?"),
    (Array(FLOAT, "C", 0, 1, nan=True), "Stability.clusters"),
    (Array(FLOAT, "C d"), "CommonKept.means"),
    (Array(FLOAT, "m", 0), "lambda1"),
    (Array(FLOAT, "m C"), "intercept_ DecisionModel.intercept"),
    (Array(FLOAT, "m C d"), "coef_?"),
    (Array(FLOAT, "m d"), "centres CommonKept.moves"),
    (Array(FLOAT, "m r"), "Moments.mean Moments.total"),
    (Array(FLOAT, "m r r"), "Moments.gram"),
    (Array(FLOAT, "m r C"), "FeatureKept.b"),
    (Array(FLOAT, "m m"), "task_covariance_? task_correlation_?"),
    (Array(FLOAT, "m m"), "Selection.task_similarity CouplingDecision.task_covariance"),
    (Array(FLOAT, "q q"), "feature_covariance_?"),
    (Array(REAL, "N d"), "rows"),
    (Array(REAL, "L d"), "FeatureMap.landmarks"),
    (Value(Selection), "selection_"),
    (Value(Stability), "stability_?"),
)
FORMS = {name.rstrip("?"): form for form, names in _FORMS for name in names.split()}
#: attributes of fitted models, and those that every one has
FITTED = [name for name in FORMS if name.endswith("_")]
ALWAYS = [name for _, names in _FORMS for name in names.split() if name.endswith("_")]
#: what the state of a model is made of: what ``predict`` needs, what ``fit_task`` needs, and what they consist of
STATES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        DecisionModel, KernelKept, FeatureKept, CommonKept, Kernel, SizeBounds, FeatureMap, Moments, Stability,
    )
}  # fmt: skip


def check_model(model: Any) -> None:
    """Refuse a loaded model that ``fit`` could not have made."""
    model._validate_params()
    model._read_params()
    for name in ALWAYS:
        if not hasattr(model, name):
            raise ValueError(f"{name} is missing")
    if not isinstance(model.tasks_, np.ndarray) or model.tasks_.ndim != 1 or not len(model.tasks_):
        raise ValueError("tasks_ are no task ids")
    model.tasks_, missing = plain_ids(model.tasks_, "tasks_")  # earlier versions kept ids of more types
    found = model.tasks_.tolist()
    if missing.any() or len(set(found)) < len(found):
        raise ValueError("tasks_ are no task ids: one is missing, or there twice")
    d = int(model.n_features_in_) - (model.task_column is not None)
    sizes = {"n": len(model.labels_), "m": len(found), "C": int(model.n_clusters_), "d": d}
    for name in FITTED:
        value = getattr(model, name, None)
        if value is not None or name in ALWAYS:
            FORMS[name].check(name, value, sizes)
            check_records(name, value, sizes)
    if not isinstance(model.sizes, tuple | list | np.ndarray | Mapping):  # which are read task by task
        parse_sizes(model.sizes, model.cluster_sizes_.sum(axis=1), sizes["C"])
    if isinstance(model.n_clusters, Mapping):
        one_per_task("n_clusters", model.n_clusters, model.tasks_)
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (names.shape != (model.n_features_in_,) or not all(type(each) is str for each in names)):
        raise ValueError("feature_names_in_ are not the names of its columns")
    for entry in model.history_:
        for key, kind in (("stage", str), ("step", str), ("objective", float)):
            Value(kind).check("history_", entry.get(key), sizes)
    if not np.array_equal(model.cluster_sizes_.sum(axis=0), np.bincount(model.labels_, minlength=sizes["C"])):
        raise ValueError("cluster_sizes_ are not those of labels_")
    Value(DecisionModel).check("decision", model._model, sizes)
    Value(KernelKept | FeatureKept | CommonKept).check("kept", model._kept, sizes)
    check_records("decision", model._model, dict(sizes))
    inner = dict(sizes)
    check_records("kept", model._kept, inner)
    _check_kept(model, inner)


def check_records(name: str, value: Any, sizes: Sizes) -> None:
    """The records that a value consists of: every field, and what holds between them."""
    if type(value) is list:
        for k, item in enumerate(value):
            check_records(f"{name}[{k}]", item, sizes)
    if not is_dataclass(value):
        return
    annotations, kind = get_type_hints(type(value)), type(value).__name__
    for field in (entry.name for entry in fields(value)):
        item = getattr(value, field)
        declared = FORMS.get(f"{kind}.{field}", FORMS.get(field) if kind in STATES else None)
        known = declared if declared is not None and item is not None else Value(annotations[field])
        known.check(f"{name}.{field}", item, sizes)
        # what decides for new tasks in a common frame has one task, and rows of its own
        inner = {letter: sizes[letter] for letter in "nCd"} | {"m": 1} if field == "model" else sizes
        check_records(f"{name}.{field}", item, inner)
    if type(value) is Kernel and value.kind == "rbf":
        _POSITIVE.check(f"{name}.sigma", value.sigma, sizes)
    elif type(value) is SizeBounds and np.any(value.lower > value.upper):
        raise ValueError("its cluster sizes have lower bounds above the upper ones")
    elif type(value) is DecisionModel:
        linear = value.rows is None and value.kernel.kind == "linear"
        if value.rows is None and value.kernel.kind == "rbf":
            raise ValueError(f"{name} has no rows")
        per_row = "m n C" if value.rows is None else "m N C"
        Array(FLOAT, "m C d" if linear else per_row).check(f"{name}.coefficients", value.coefficients, sizes)
    elif type(value) is FeatureMap:
        if value.landmarks is None and value.kernel.kind != "linear":
            raise ValueError("it has no landmarks")
        if value.projection is None and value.landmarks is None:
            sizes["r"] = sizes["d"]
        else:
            shape = "d r" if value.landmarks is None else "L r"
            Array(REAL, shape).check(f"{name}.projection", value.projection, sizes)


def _check_kept(model: Any, sizes: Sizes) -> None:
    """What new tasks are clustered with: rows as often as they counted in ``fit``, so that its sizes are its own."""
    kept, decision = model._kept, model._model
    if type(kept) is CommonKept:
        if not kept.model.present.any() or np.any(kept.model.present != decision.present):
            raise ValueError("its tasks do not have the clusters of their one model")
        if (kept.moves is None) != (kept.means is None):
            raise ValueError("its tasks are aligned by half of what that takes")
        return
    if not np.array_equal(kept.bounds.present, decision.present):
        raise ValueError("its tasks do not have the clusters that it decides about")
    if type(kept) is FeatureKept:
        if not np.array_equal(kept.counts.sum(axis=1), kept.moments.sizes):
            raise ValueError("the sizes of its clusters are not those of its tasks")
        return
    offsets, n = kept.offsets, len(kept.labels)
    if len(offsets) != sizes["m"] + 1 or offsets[0] != 0 or offsets[-1] != n or np.any(np.diff(offsets) < 1):
        raise ValueError(f"its rows are not those of {sizes['m']} tasks")
    if kept.rows is None and kept.kernel.kind != "precomputed":
        raise ValueError("it has no rows")
    if kept.centred_rows and sp.issparse(kept.rows):
        raise ValueError("its rows are sparse but have their means taken off")


def _conforms(value: Any, annotation: Any) -> bool:
    """Whether a value is what an annotation says."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return any(_conforms(value, each) for each in arguments)
    if origin is Literal:
        return value in arguments
    if origin is list:
        return type(value) is list and all(_conforms(item, arguments[0]) for item in value)
    if origin is dict:
        key, item = arguments
        return type(value) is dict and all(_conforms(k, key) and _conforms(v, item) for k, v in value.items())
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if annotation in (float, int):
        return isinstance(value, int | float if annotation is float else int) and not isinstance(value, bool)
    return annotation is Any or (isinstance(annotation, type) and isinstance(value, annotation))
