"""``fit``, ``predict`` and ``decision_function`` of the estimators for Dask collections."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtclust.choose.settings import Params
from mtclust.core.kernels import is_precomputed
from mtclust.core.model import DecisionModel
from mtclust.core.tasks import TaskIndex, numbers_of_known_tasks, task_ids
from mtclust.distributed import chunk
from mtclust.distributed.engine import Engine
from mtclust.distributed.inputs import Layout, Table, lay_out, lengths_of, read
from mtclust.distributed.source import ChunkedRows, picked
from mtclust.distributed.unusable import chunks_named
from mtclust.rows.features import FeatureMap, held_as, source_of
from mtclust.rows.moments import block_rows, far_from_zero
from mtclust.util.system import require

if TYPE_CHECKING:
    from mtclust.estimators.base import MultitaskClusterer

#: up to this many rows are fitted in memory
ALL_ROWS = 30_000


class ChunkedTable:
    """The rows of X in chunks, indexed by their positions in the order of the tasks."""

    def __init__(self, engine: Engine, table: Table, layout: Layout) -> None:
        self.engine, self.table, self.layout = engine, table, layout
        self.shape = (int(layout.sizes.sum()), table.n_features)
        self.dtype = table.dtype
        self._reading = chunk.Reading(len(layout.names), table.dtype, table.columns)

    def __getitem__(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        distinct, back = np.unique(positions, return_inverse=True)
        offsets = self.layout.offsets
        edges = np.searchsorted(distinct, offsets)
        asked = [distinct[a:b] - offsets[i] for i, (a, b) in enumerate(zip(edges[:-1], edges[1:]))]
        return np.concatenate(self._picked(asked))[back]

    def _picked(self, asked: list[NDArray[np.int64]]) -> list[NDArray[Any]]:
        reading = self.engine.constant(self._reading)
        return picked(self.engine, self.layout, self.table.parts, reading, self._reading, asked)

    def source(self, features: FeatureMap, centre: bool) -> ChunkedRows:
        engine, layout, raw = self.engine, self.layout, self.table.parts
        if features.projection is None:
            shift = self._shift() if centre else None
            reading = replace(self._reading, features=features, shift=shift)
            return ChunkedRows(engine, layout, raw, reading, self.shape[1])
        reading, rank = replace(self._reading, features=features), features.projection.shape[1]
        dtype = held_as(self.shape[0], rank, engine.memory())
        if dtype is None:
            return ChunkedRows(engine, layout, raw, reading, rank)
        sent = engine.keep([engine.constant(reading)])[0]
        parts = zip(raw, layout.task_numbers)
        held = engine.keep(
            [engine.step(chunk.features_of, part, task_numbers, sent, dtype) for part, task_numbers in parts]
        )
        return ChunkedRows(engine, layout, raw, reading, rank, held, chunk.Reading(len(layout.names), dtype))

    def _shift(self) -> NDArray[Any] | None:
        """Roughly the means of the tasks, if any of them lies far from 0; from the first rows, as in memory."""
        engine, layout = self.engine, self.layout
        left = np.clip(block_rows(self.shape[1], np.dtype(self.dtype).itemsize) - layout.base, 0, layout.counts)
        reading = engine.constant(self._reading)
        found = engine.gather(
            [
                engine.step(
                    chunk.levels_of, self.table.parts[k], layout.task_numbers[k], reading,
                    {int(i): int(left[k, i]) for i in np.flatnonzero(left[k])},
                )
                for k in np.flatnonzero(left.any(axis=1))
            ]
        )  # fmt: skip
        means, squares = np.zeros((2, len(layout.names), self.shape[1]))
        seen = np.zeros(len(layout.names))
        for part in found:
            for i, (n, mean, square) in part.items():
                apart = mean - means[i]
                total = seen[i] + n
                means[i] += apart * n / total
                with np.errstate(over="ignore", invalid="ignore"):  # refused below
                    squares[i] += square + apart**2 * seen[i] * n / total
                seen[i] = total
        chunk.require_numbers(means)
        if not np.isfinite(squares).all():
            raise ValueError("X has values too large to be squared; divide X by its largest absolute value.")
        far = far_from_zero(means, np.sqrt(squares / seen[:, None]))
        return means.astype(self.dtype) if far else None


@source_of.register
def _(X: ChunkedTable, features: FeatureMap, index: TaskIndex, centre: bool) -> ChunkedRows:
    return X.source(features, centre)


class ChunkedIndex(TaskIndex):
    """Tasks of rows in chunks: rows are named by their position in the order of the tasks."""

    in_memory = False

    def input_rows(self, positions: NDArray[Any]) -> NDArray[Any]:
        return positions

    def to_input_order(self, sorted_values: Any) -> Any:
        return sorted_values.in_input_order()

    def with_plain_ids(
        self, labels: Any, single: Any, n_clusters: int, free: bool
    ) -> tuple[Any, Any, NDArray[np.int64] | None]:
        return labels.with_plain_ids(single, n_clusters, free)


def chunked_index(layout: Layout) -> ChunkedIndex:
    """The tasks of rows in chunks."""
    none = np.empty(0, dtype=np.int64)
    return ChunkedIndex(layout.names, none, none, layout.offsets)


def fit_distributed(estimator: MultitaskClusterer, X: Any, tasks: Any) -> Any:
    """Cluster the rows of a Dask collection; see :meth:`MultitaskClusterer.fit`."""
    params = estimator._read_params()
    _check_possible(params)
    name = type(estimator).__name__
    engine = Engine((lambda text: print(f"[{name}] {text}", flush=True)) if estimator.verbose else lambda text: None)
    table = read(engine, estimator, X, tasks, reset=True)
    with chunks_named(engine, table):
        return _fit(estimator, params, engine, table, X, tasks)


def _fit(estimator: MultitaskClusterer, params: Params, engine: Engine, table: Table, X: Any, tasks: Any) -> Any:
    layout = lay_out(engine, table)
    n = int(layout.sizes.sum())
    engine.report(f"{n} rows of {len(layout.names)} tasks in {len(table.parts)} chunks")
    if n <= ALL_ROWS:
        return _fit_gathered(estimator, engine, X, tasks, layout.lengths)
    return estimator._fit_rows(params, ChunkedTable(engine, table, layout), chunked_index(layout), "primal")


def _check_possible(params: Params) -> None:
    """What needs all pairs of rows cannot be done in chunks."""
    wrong = None
    if is_precomputed(params.kernel):
        wrong = 'kernel="precomputed"'
    elif params.solver == "cutting-plane":
        wrong = 'solver="cutting-plane"'
    elif params.form == "dual":
        wrong = 'solver_options["form"]="dual"'
    if wrong is not None:
        raise ValueError(
            f"{wrong} needs a kernel matrix of all rows at once, which a Dask collection cannot give. Use rows with a "
            'linear, RBF or callable kernel and solver="exchange", or fit the data in memory (X.compute()).'
        )


def _fit_gathered(estimator: MultitaskClusterer, engine: Engine, X: Any, tasks: Any, lengths: list[int]) -> Any:
    """So few rows that the search would be run on all of them anyway."""
    da = require("dask.array", "dask")
    X, tasks = (engine.gather([item])[0] if hasattr(item, "__dask_graph__") else item for item in (X, tasks))
    engine.report(f"up to {ALL_ROWS} rows are fitted here, in memory")
    estimator.fit(X, tasks=tasks)
    for name in ("labels_", "single_task_labels_", "probabilities_", "outlier_scores_"):
        values = getattr(estimator, name)
        if values is not None:
            setattr(estimator, name, da.from_array(values, chunks=(tuple(lengths), *values.shape[1:])))
    return estimator


def scores_distributed(estimator: MultitaskClusterer, X: Any, tasks: Any) -> Any:
    """``decision_function`` as a Dask array with the chunks of X, computed when it is asked for."""
    engine = Engine()
    table = read(engine, estimator, X, tasks, reset=False)
    if table.ids is None and table.given is not None and np.ndim(table.given) > 0:
        lengths = lengths_of(engine, table)
        ends = np.cumsum(lengths)
        ids: list[Any] = np.split(task_ids(table.given, sum(lengths)), ends[:-1])
    else:
        lengths = lengths_of(engine, table)
        ids = [table.given] * len(lengths) if table.ids is None else table.ids
    reading = engine.constant(chunk.Reading(1, table.dtype, table.columns))
    model, names = engine.constant(estimator._model), engine.constant(estimator.tasks_)
    da = require("dask.array", "dask")
    width = estimator._model.intercept.shape[1]
    return da.concatenate(
        [
            da.from_delayed(
                engine.step(_scores, part, own, reading, model, names, f"chunk {k} of {len(lengths)}"),
                (n, width),
                float,
            )
            for k, (part, own, n) in enumerate(zip(table.parts, ids, lengths))
        ]
    )


def _scores(
    raw: Any, ids: Any, reading: chunk.Reading, model: DecisionModel, names: NDArray[Any], where: str
) -> NDArray[Any]:
    rows = chunk.rows_of(raw, reading)
    chunk.require_numbers(rows, where)
    return model.scores(rows, numbers_of_known_tasks(ids, len(rows), names))
