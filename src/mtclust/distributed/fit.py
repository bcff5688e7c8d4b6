"""``fit``, ``predict`` and ``decision_function`` of the estimators for Dask collections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtclust.choose.settings import Params, rows_by_task
from mtclust.core.model import DecisionModel
from mtclust.core.order import Content, Over, bits_of, first_hashes, in_sequence
from mtclust.core.tasks import TaskIndex, numbers_of_known_tasks
from mtclust.distributed import chunk
from mtclust.distributed.engine import Engine
from mtclust.distributed.inputs import Layout, Table, lay_out, lengths_of, read
from mtclust.distributed.source import ChunkedRows, over_chunks, picked
from mtclust.rows.features import FeatureMap, source_of
from mtclust.util.messages import phase, reporting
from mtclust.util.system import require

if TYPE_CHECKING:
    from mtclust.estimators.base import MultitaskClusterer

#: up to this many rows are fitted in memory; rows of any sample that is asked for, all tasks together
ALL_ROWS, _MOST_SAMPLED = 30_000, 600


class ChunkedTable:
    """The rows of X in chunks, indexed by their positions in the order of the tasks."""

    def __init__(self, engine: Engine, table: Table, layout: Layout, reading: chunk.Reading | None = None) -> None:
        self.engine, self.table, self.layout = engine, table, layout
        self.shape = (int(layout.sizes.sum()), table.n_features)
        self.dtype = table.dtype
        self._reading = reading or chunk.Reading(len(layout.names), table.dtype, table.columns)

    def __getitem__(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        return picked(self.engine, self.layout, self.table.parts, self.engine.constant(self._reading), positions)

    def over(self, read: Callable[..., Any], merge: Callable[[list[Any]], Any]) -> Any:
        """What a function of rows and numbers of tasks finds in all blocks of all chunks, merged on the way here."""
        reading, read = self.engine.constant(self._reading), self.engine.constant(read)
        steps = self._steps(chunk.over_rows, reading, read, merge)
        steps = [step for step, n in zip(steps, self.layout.lengths) if n]
        return self.engine.gather([self.engine.merged(steps, merge)])[0]

    def as_one_task(self, moves: NDArray[Any] | None) -> ChunkedTable:
        """The same rows as those of one task, after ``moves`` were taken off the rows of every task."""
        moves = None if moves is None else moves.astype(self.dtype)
        reading = replace(self._reading, moves=moves, one_task=True)
        return ChunkedTable(self.engine, self.table, self.layout.as_one_task(), reading)

    def source(self, features: FeatureMap) -> ChunkedRows:
        width = self.shape[1] if features.landmarks is None else len(features.landmarks)
        reading = replace(self._reading, features=features)
        return ChunkedRows(self.engine, self.layout, self.table.parts, reading, width)

    def first_rows(self, content: Content, numbers: dict[int, int]) -> dict[int, NDArray[np.int64]]:
        """Positions within some tasks of as many rows as are asked for, which come first in the order of content.

        Chunks tell which hashes may come first; told these of all chunks, how many rows have them, and which.
        """
        engine, layout, reading = self.engine, self.layout, self.engine.constant(self._reading)
        content = engine.keep([engine.constant(content)])[0]
        hashes = engine.keep(self._steps(chunk.hashes_of, reading, content, engine.constant(list(numbers))))
        zeros = {task: list(bits_of(int(layout.sizes[task]), k)) for task, k in numbers.items()}
        result: dict[int, NDArray[np.int64]] = {}
        while len(result) < len(numbers):
            bits = {task: zeros[task].pop(0) for task in numbers if task not in result}
            asked = {task: (int(layout.sizes[task]), own) for task, own in bits.items()}
            steps = [engine.step(chunk.likely_hashes, part, asked) for part in hashes]
            found = engine.keep([engine.merged(steps, chunk.merge_hashes)])[0]
            steps = self._steps(chunk.rows_with_hashes, list(layout.base), reading, content, hashes, found, numbers)
            likely, *parts = engine.gather([found, *steps])
            for task, own in bits.items():
                fields = list(zip(*[part[task] for part in parts]))
                sequence = first_hashes(likely[task], np.sum(fields[0], axis=0), own, numbers[task])
                if sequence is not None:
                    hashed, finer, positions = map(np.concatenate, fields[1:])
                    result[task] = in_sequence(hashed, finer, positions, sequence)
        return result

    def _steps(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """One step per chunk; arguments that are lists have one entry per chunk."""
        return over_chunks(self.engine, self.table.parts, self.layout.task_numbers, function, *arguments)


@source_of.register
def _(X: ChunkedTable, features: FeatureMap, index: TaskIndex, centre: bool) -> ChunkedRows:
    return X.source(features)


@dataclass(frozen=True)
class ChunkedIndex(TaskIndex):
    """Tasks of rows in chunks: rows are named by their position in the order of the tasks."""

    in_memory = False
    table: ChunkedTable | None = None
    _first: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    def by_content(self, X: ChunkedTable) -> ChunkedIndex:
        return replace(self, content=Content.of(X.over, self.n_tasks), table=X, _first={})

    def first_rows(self, tasks: NDArray[np.int64], numbers: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        if self.table is None or self.content is None:
            return super().first_rows(tasks, numbers)
        asked = dict(zip(tasks.tolist(), numbers.tolist()))
        if any(len(self._first.get(task, ())) < k for task, k in asked.items()):
            # once for all samples of these tasks
            least = {task: min(int(self.sizes[task]), _MOST_SAMPLED // len(tasks)) for task in asked}
            most = {task: max(k, least[task]) for task, k in asked.items()}
            self._first.update(self.table.first_rows(self.content, most))
        return [self._first[task][:k] for task, k in asked.items()]

    def as_one_task(self) -> ChunkedIndex:
        return ChunkedIndex(self.names[:1], self.task_numbers, self.order, self.offsets[[0, -1]])

    def over(self, X: ChunkedTable) -> Over:
        return X.over

    def input_rows(self, positions: NDArray[Any]) -> NDArray[Any]:
        return positions

    def to_input_order(self, sorted_values: Any) -> Any:
        return sorted_values.in_input_order()

    def labels_at(self, labels: Any, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        assert self.table is not None
        return labels.at(self.table.layout.by_chunk(positions), len(positions))

    def with_plain_ids(
        self, labels: Any, single: Any, n_clusters: int, free: bool
    ) -> tuple[Any, Any, NDArray[np.int64] | None]:
        return labels.with_plain_ids(single, n_clusters, free)


def fit_distributed(estimator: MultitaskClusterer, X: Any, tasks: Any) -> Any:
    """Cluster the rows of a Dask collection; see :meth:`MultitaskClusterer.fit`."""
    params = estimator._read_params()
    _check_possible(params)
    engine = Engine()
    table = read(engine, estimator, X, tasks, reset=True)
    with reporting(estimator):
        layout = lay_out(engine, table)
        n = int(layout.sizes.sum())
        with phase(f"{n} rows of {len(layout.names)} tasks in {len(table.parts)} chunks"):
            if n <= ALL_ROWS:
                return _fit_gathered(estimator, engine, X, tasks, layout.lengths)
            rows, none = ChunkedTable(engine, table, layout), np.empty(0, dtype=np.int64)
            index = ChunkedIndex(layout.names, none, none, layout.offsets, table=rows)
            return estimator._fit_rows(params, rows, rows_by_task(params, rows, index))


def _check_possible(params: Params) -> None:
    """What needs all pairs of rows cannot be done in chunks."""
    wrong = None
    if params.kernel == "precomputed":
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
    lengths, ids = lengths_of(engine, table), table.ids
    if tasks is None and estimator.task_column is None:
        ids = [None] * len(lengths)  # of the one task of the model
    reading = engine.constant(chunk.Reading(1, table.dtype, table.columns))
    model, names = engine.constant(estimator._model), engine.constant(estimator.tasks_)
    da = require("dask.array", "dask")
    width = estimator._model.intercept.shape[1]
    steps = [engine.step(_scores, part, own, reading, model, names) for part, own in zip(table.parts, ids)]
    return da.concatenate([da.from_delayed(step, (n, width), float) for step, n in zip(steps, lengths)])


def _scores(raw: Any, ids: Any, reading: chunk.Reading, model: DecisionModel, names: NDArray[Any]) -> NDArray[Any]:
    rows = chunk.rows_of(raw, reading)
    chunk.require_numbers(rows)
    return model.scores(rows, numbers_of_known_tasks(ids, len(rows), names))
