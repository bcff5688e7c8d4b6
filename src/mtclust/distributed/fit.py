"""``fit``, ``predict`` and ``decision_function`` of the estimators for Dask collections."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtclust.choose.settings import SAMPLE_ROWS, Params, rows_by_task
from mtclust.core.labels import offsets_of
from mtclust.core.model import DecisionModel
from mtclust.core.order import Content
from mtclust.core.tasks import TaskIndex, numbers_of_known_tasks
from mtclust.distributed import chunk
from mtclust.distributed.engine import Engine
from mtclust.distributed.source import ChunkedRows
from mtclust.distributed.table import ChunkedTable, lengths_of, read
from mtclust.rows.features import source_of
from mtclust.util.messages import phase, reporting
from mtclust.util.system import require

if TYPE_CHECKING:
    from mtclust.estimators.base import MultitaskClusterer

#: up to this many rows are fitted in memory
ALL_ROWS = 30_000
source_of.register(ChunkedTable, lambda X, features, index, centre: ChunkedRows(X, features))


@dataclass(frozen=True)
class ChunkedIndex(TaskIndex):
    """Tasks of rows in chunks: rows are named by their position in the order of the tasks."""

    in_memory = False
    table: Any = None  # the rows
    _first: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    def by_content(self, X: ChunkedTable) -> ChunkedIndex:
        return replace(self, content=Content.of(X.over, self.n_tasks), _first={})

    def first_rows(self, tasks: NDArray[np.int64], numbers: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        if self.content is None:
            return super().first_rows(tasks, numbers)
        asked = dict(zip(tasks.tolist(), numbers.tolist()))
        if any(len(self._first.get(task, ())) < k for task, k in asked.items()):
            # once for all samples of these tasks
            most = {task: max(k, min(int(self.sizes[task]), SAMPLE_ROWS // len(tasks))) for task, k in asked.items()}
            self._first.update(self.table.first_rows(self.content, most))
        return [self._first[task][:k] for task, k in asked.items()]

    def input_rows(self, positions: NDArray[Any]) -> NDArray[Any]:
        return positions

    def to_input_order(self, sorted_values: Any, new_ids: NDArray[np.int64] | None = None) -> Any:
        return sorted_values.in_input_order(new_ids)


def fit_distributed(estimator: MultitaskClusterer, X: Any, tasks: Any) -> Any:
    """Cluster the rows of a Dask collection; see :meth:`MultitaskClusterer.fit`."""
    params = estimator._read_params()
    _check_possible(params)
    engine = Engine()
    parts, ids, _, reading = read(engine, estimator, X, tasks, reset=True)
    with reporting(estimator):
        table = ChunkedTable.of(engine, parts, ids, reading)
        sizes, none = table.counts.sum(axis=0), np.empty(0, dtype=np.int64)
        with phase(f"{sizes.sum()} rows of {len(sizes)} tasks in {len(parts)} chunks"):
            if sizes.sum() <= ALL_ROWS:
                return _fit_gathered(estimator, engine, X, tasks, table.counts.sum(axis=1).tolist())
            index = ChunkedIndex(table.names, none, none, offsets_of(sizes), table=table)
            return estimator._fit_rows(params, table, rows_by_task(params, table, index))


def _check_possible(params: Params) -> None:
    """What needs all pairs of rows cannot be done in chunks."""
    impossible = {
        'kernel="precomputed"': params.kernel == "precomputed",
        'solver="cutting-plane"': params.solver == "cutting-plane",
        'solver_options["form"]="dual"': params.form == "dual",
    }
    for wrong in [name for name, asked_for in impossible.items() if asked_for]:
        raise ValueError(
            f"{wrong} needs a kernel matrix of all rows at once, which a Dask collection cannot give. Use rows with a "
            'linear, RBF or callable kernel and solver="exchange", or fit the data in memory (X.compute()).'
        )


def _fit_gathered(estimator: MultitaskClusterer, engine: Engine, X: Any, tasks: Any, lengths: list[int]) -> Any:
    """So few rows that they are fitted in memory."""
    da = require("dask.array", "dask")
    X, tasks = (engine.gather([item])[0] if hasattr(item, "__dask_graph__") else item for item in (X, tasks))
    estimator.fit(X, tasks=tasks)
    for name in ("labels_", "single_task_labels_", "probabilities_", "outlier_scores_"):
        values = getattr(estimator, name)
        if values is not None:
            setattr(estimator, name, da.from_array(values, chunks=(tuple(lengths), *values.shape[1:])))
    return estimator


def scores_distributed(estimator: MultitaskClusterer, X: Any, tasks: Any) -> Any:
    """``decision_function`` as a Dask array with the chunks of X, computed when it is asked for."""
    engine, da = Engine(), require("dask.array", "dask")
    parts, ids, lengths, reading = read(engine, estimator, X, tasks, reset=False)
    lengths, width = lengths_of(engine, parts, lengths), estimator._model.intercept.shape[1]
    if tasks is None and estimator.task_column is None:
        ids = [None] * len(lengths)  # of the one task of the model
    constants = [engine.constant(value) for value in (reading, estimator._model, estimator.tasks_)]
    steps = [engine.step(_scores, part, own, *constants) for part, own in zip(parts, ids)]
    return da.concatenate([da.from_delayed(step, (n, width), float) for step, n in zip(steps, lengths)])


def _scores(raw: Any, ids: Any, reading: chunk.Reading, model: DecisionModel, names: NDArray[Any]) -> NDArray[Any]:
    rows = chunk.rows_of(raw, reading)
    chunk.require_numbers(rows)
    return model.scores(rows, numbers_of_known_tasks(ids, len(rows), names))
