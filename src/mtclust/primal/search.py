r"""Descent in labels and coupling over the rows of a source: J never rises.

A round is one pass over the rows (batch step: models fixed, best labels within the sizes; then the models of the new
labels), steps of the coupling in closed form and a renaming of whole clusters, which need no pass. On feasible labels J
is a constant minus a convex quadratic of the class sums, so the batch step lowers it. It cannot see that a row pulls
its own model along; the polish can: among the few rows for which that could matter every exchange of two is tried
exactly, and where none is left the labels are certified optimal for single exchanges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.alignment import allowed_permutations, best_relabelling
from mtclust.labels import SizeBounds
from mtclust.primal.gaps import KnownGaps
from mtclust.primal.labelling import TaskLabels, first_prices, move_sums, relabel, scores_of
from mtclust.primal.rows import Moments, RemoteSource, Source
from mtclust.primal.systems import Solver, System, objective, whitened
from mtclust.solvers.acceleration import Accelerator
from mtclust.solvers.pool import EXCHANGE_TOLERANCE

Array = NDArray[np.float64]

#: the passes end when a smaller share of the rows changes its label
SETTLED = 1e-3
#: or when J falls by less than this share of ``tol``: equal rows can trade places for ever without any gain
_STALLED = 1e-3
#: steps of the coupling between two passes, once the labels have settled and before
_COUPLING_STEPS = 8
_EARLY_STEPS = 2
#: rows of a task that one polish takes up, those with most to gain first
MOST_CANDIDATES = 1000
#: tasks with fewer rows than this are polished whole
FEW_ROWS = 150
#: rows whose own pull is looked at to find these
_MOST_NEAR = 20_000


@dataclass
class Data:
    """Rows, their moments, and the sizes their clusters may have."""

    source: Source
    moments: Moments
    bounds: SizeBounds

    @property
    def n_tasks(self) -> int:
        return self.moments.n_tasks


@dataclass
class State:
    """Labels of every task, the coupling and the models that belong to them."""

    tasks: list[TaskLabels]
    solver: Solver
    b: Array
    W: Array
    value: float
    history: list[dict[str, Any]] = field(default_factory=list)
    n_rounds: int = 0
    converged: bool = False
    certified: bool = False

    @property
    def labels(self) -> Any:
        """Labels of all rows, sorted by task; a handle to them where the rows lie elsewhere."""
        return type(self.tasks[0]).joined(self.tasks)


@dataclass(frozen=True)
class NearRows:
    """Rows of a task that a gainful exchange could involve.

    Attributes
    ----------
    positions : ndarray of shape (k,)
        In ascending order.
    wants : ndarray of shape (k,)
        How much better the best other cluster is for the row than its own.
    rows : ndarray of shape (k, r)
        Raw features.
    labels : ndarray of shape (k,)
    complete : bool
        Whether these are all of them.
    """

    positions: NDArray[np.int64]
    wants: Array
    rows: NDArray[Any]
    labels: NDArray[np.int32]
    complete: bool


def code_scale(n_clusters: int) -> tuple[float, float]:
    """C/(C−1) and 1/(C−1): codes are C/(C−1)·indicator − 1/(C−1)."""
    return (n_clusters / (n_clusters - 1), 1.0 / (n_clusters - 1)) if n_clusters > 1 else (1.0, 0.0)


def class_vector(moments: Moments, task: int, current: TaskLabels) -> Array:
    """b_i = 2Φ_iᵀY_i/n_i (r × C) from raw class sums."""
    return class_vectors(moments, [task], [current])[0]


def class_vectors(moments: Moments, which: list[int], tasks: list[TaskLabels]) -> Array:
    """b_i of some tasks, whose labels are given, shape (k, r, C)."""
    a, rest = code_scale(len(tasks[0].prices))
    counts, sums = np.stack([task.counts for task in tasks]), np.stack([task.sums for task in tasks])
    centred = (sums - counts[:, :, None] * moments.mean[which, None]) / moments.root_scale
    per_row = (2.0 / moments.sizes[which])[:, None, None]
    return per_row * (a * centred.transpose(0, 2, 1) - rest * moments.total[which][:, :, None])


def begin(data: Data, system: System, Z: Array, W: Array, prices: list[Array] | None = None) -> State:
    """The state of the best labels under given models; costs one pass. ``prices`` (of a sample) make it quicker."""
    if isinstance(data.source, RemoteSource):
        return state_of(data, system, Z, data.source.begin(data, W, prices))
    C, r = data.bounds.n_clusters, data.moments.n_features
    tasks = [TaskLabels.none(int(n), C, r) for n in data.moments.sizes]
    for i, task in enumerate(tasks):
        lower, upper = data.bounds.lower[i], data.bounds.upper[i]
        warm = task.prices if prices is None else prices[i].copy()
        task.prices = first_prices(data.source, i, data.moments, W[i], warm, lower, upper)
        relabel(data.source, i, data.moments, W[i], task, lower, upper)
    return state_of(data, system, Z, tasks)


def state_of(data: Data, system: System, Z: Array, tasks: list[TaskLabels]) -> State:
    """The state of given labels."""
    b = class_vectors(data.moments, list(range(len(tasks))), tasks)
    solver = system.condition(Z)
    W = solver.models(b)
    return State(tasks, solver, b, W, objective(b, W))


def descend(
    data: Data, system: System, state: State, rng: np.random.Generator, *, max_rounds: int, tol: float, stage: str,
    learn: bool = True, polish_rounds: int = 1, active: list[int] | None = None,
) -> State:  # fmt: skip
    """Rounds until fewer than ``SETTLED`` of the rows move and J falls by less than ``tol``, then the polish.

    In place; only the tasks in ``active`` (all by default) change their labels.
    """
    tasks = list(range(data.n_tasks)) if active is None else active
    n_rows = int(data.moments.sizes[tasks].sum())
    state.converged = False
    _record(state, stage, "start")
    for _ in range(max_rounds):
        before = state.value
        changed = _relabel_all(data, state, tasks)
        state.b[tasks] = class_vectors(data.moments, tasks, [state.tasks[i] for i in tasks])
        _refresh(state)
        _record(state, stage, "labels")
        settled = changed <= SETTLED * n_rows
        if learn:
            _coupling_steps(system, state, tol, stage, _COUPLING_STEPS if settled else _EARLY_STEPS)
        state.n_rounds += 1
        least = tol * abs(before) * (1.0 if settled else _STALLED)
        if before - state.value > least:
            continue
        # names need the blocks of an inverse: they are looked at where the search would end
        if system.couples_labels:
            _rename(data, state, tasks, stage)
        if before - state.value <= least:
            state.converged = True
            break
    for _ in range(polish_rounds):
        state.certified = polish(data, state, tasks, rng)
        _record(state, stage, "polish")
        if state.certified:
            break
        if learn:
            _coupling_steps(system, state, tol, stage)
    return state


def _relabel_all(data: Data, state: State, tasks: list[int]) -> int:
    if isinstance(data.source, RemoteSource):
        return data.source.relabel(data, state.W, state.tasks)
    lower, upper = data.bounds.lower, data.bounds.upper
    return sum(relabel(data.source, i, data.moments, state.W[i], state.tasks[i], lower[i], upper[i]) for i in tasks)


def _refresh(state: State) -> None:
    state.W = state.solver.models(state.b)
    state.value = objective(state.b, state.W)


def _record(state: State, stage: str, step: str) -> None:
    state.history.append({"stage": stage, "step": step, "objective": state.value})


def _coupling_steps(system: System, state: State, tol: float, stage: str, most: int = _COUPLING_STEPS) -> None:
    """Steps of the coupling while they lower J, accelerated where that pays; no pass over the rows."""
    accelerator = Accelerator()
    for _ in range(most):
        before = state.value
        target = system.closed_form(state.W)
        if isinstance(target, np.ndarray) and not _take(system, state, accelerator.propose(state.solver.Z, target)):
            accelerator.restart()
        if state.value == before and not _take(system, state, target):
            break
        if before - state.value <= tol * abs(before):
            break
    _record(state, stage, "coupling")


def _take(system: System, state: State, Z: Any) -> bool:
    """Move to another coupling if that lowers J."""
    solver = system.condition(Z)
    W = solver.models(state.b)
    value = objective(state.b, W)
    if value >= state.value:
        return False
    state.solver, state.W, state.value = solver, W, value
    return True


def _rename(data: Data, state: State, tasks: list[int], stage: str) -> None:
    """Rename the clusters of one task at a time where that lowers J: a matching of its b to what the others ask for."""
    renamed, blocks = False, state.solver.blocks()
    profits = state.b.transpose(0, 2, 1) @ (state.W - blocks @ state.b)
    as_they_are = np.all(profits <= np.einsum("icc->ic", profits)[:, :, None], axis=(1, 2))
    for i in tasks:
        if as_they_are[i] and not renamed:  # every cluster has the best name for itself
            continue
        own = state.b[i]
        wanted = state.W[i] - blocks[i] @ own
        counts = state.tasks[i].counts
        new_ids = best_relabelling(own.T @ wanted, allowed_permutations(data.bounds, i, counts))
        if np.array_equal(new_ids, np.arange(len(new_ids))):
            continue
        b = state.b.copy()
        b[i][:, new_ids] = own
        W = state.solver.models(b)
        value = objective(b, W)
        if value >= state.value:
            continue
        state.b, state.W, state.value, renamed = b, W, value, True
        state.tasks[i].rename(new_ids)
    if renamed:
        _record(state, stage, "rename")


def polish(data: Data, state: State, tasks: list[int], rng: np.random.Generator) -> bool:
    """Exchange rows near the boundaries one by one, exactly; one pass. True if no task had an exchange left."""
    if data.bounds.n_clusters == 1 or data.moments.scale == 0:
        return True
    remote = data.source.near(data, state) if isinstance(data.source, RemoteSource) else None
    certified = True
    factors = whitened(state.solver.blocks()[tasks])
    for i, factor in zip(tasks, factors):
        near = _near(data, state, i, factor) if remote is None else remote(i)
        certified &= _polish_task(data, state, i, factor, near, rng)
    return certified


def _polish_task(data: Data, state: State, i: int, factor: Array, near: NearRows, rng: np.random.Generator) -> bool:
    from mtclust import _compiled

    moments, task, n = data.moments, state.tasks[i], int(data.moments.sizes[i])
    a, rest = code_scale(data.bounds.n_clusters)
    keep, complete = _candidates(moments, i, factor, near, data.bounds.n_clusters)
    if len(keep) == 0:
        return complete
    candidates, rows = near.positions[keep], near.rows[keep]
    Phi = moments.centred(i, rows)
    Psi = np.sqrt(2.0 / n) * (Phi @ factor)
    M = (-2.0 / n) * (Psi @ Psi.T)
    M.flat[:: len(M) + 1] += 2.0 / n
    before = near.labels[keep]
    labels = before.astype(np.int64)
    # in the order of the other callers' arrays: for another one the exchanges would be compiled again
    P = np.ascontiguousarray((-2.0 / n) * (Phi @ state.W[i]).T - (2.0 / n) * rest)
    P[labels, np.arange(len(labels))] += (2.0 / n) * a
    seed = rng.integers(2**63, size=1, dtype=np.uint64)
    tolerance = EXCHANGE_TOLERANCE * float(M.diagonal().mean())
    lower, upper = data.bounds.lower[i], data.bounds.upper[i]
    n_exchanges, _ = _compiled.exchange(M, P, labels, task.counts, lower, upper, tolerance, seed)
    if n_exchanges:
        after = labels.astype(np.int32)
        move_sums(rows, before, after, task.sums)
        task.put(candidates, before, after)
        state.b[i] = class_vector(moments, i, task)
        _refresh(state)
    return complete and n_exchanges == 0


def _near(data: Data, state: State, i: int, factor: Array) -> NearRows:
    """Rows that a gainful exchange could involve, by a bound on how much they pull their own model.

    An exchange of j and k gains at most e_j + e_k, e = (how much better another cluster is for the row) + 2a‖ψ‖²; with
    ‖ψ‖² ≤ (2/n)‖φ‖²·(largest row sum of |Q_i|) most rows need no second look.
    """
    moments, task, n = data.moments, state.tasks[i], int(data.moments.sizes[i])
    if n <= FEW_ROWS:
        near = np.arange(n)
        return NearRows(near, np.full(n, np.inf), data.source.take(i, near), task.labels.copy(), True)
    pull = 2 * largest_pull(moments, i, factor, data.bounds.n_clusters)
    if task.gaps is not None:
        found = _near_by_gaps(data, state, i, pull, task.gaps)
        if found is not None:
            return found
    wants = wants_of(data.source, i, moments, state.W[i], task.prices, task.labels)
    near = np.flatnonzero(wants + float(wants.max()) + pull > 0)
    complete = len(near) <= _MOST_NEAR
    if not complete:
        near = np.sort(near[np.argpartition(-wants[near], _MOST_NEAR)[:_MOST_NEAR]])
    return NearRows(near, wants[near], data.source.take(i, near), task.labels[near], complete)


def _near_by_gaps(data: Data, state: State, i: int, pull: float, known: KnownGaps) -> NearRows | None:
    """The same from rows that cannot be far from a boundary, without a pass; None where these are too many."""
    from mtclust.primal import _compiled

    moments, task = data.moments, state.tasks[i]
    known.move_on(state.W[i], task.prices, float(moments.largest[i]))
    weights, constant = moments.on_raw(i, state.W[i])
    widest = pull
    for _ in range(2):
        near = known.within(widest)
        if len(near) > _MOST_NEAR:
            return None
        rows, wants = data.source.take(i, near), np.empty(len(near))
        _compiled.eagerness(scores_of(rows, weights), task.prices - constant, task.labels[near], wants)
        most = float(wants.max(initial=-widest))
        if most + pull <= widest:  # rows not looked at want less than −widest: no exchange with one of them gains
            keep = np.flatnonzero(wants + most + pull > 0)
            return NearRows(near[keep], wants[keep], rows[keep], task.labels[near[keep]], True)
        widest = most + pull
    return None


def wants_of(source: Source, task: int, moments: Moments, W: Array, prices: Array, labels: NDArray[np.int32]) -> Array:
    """How much better the best other cluster is for every row of a task than its own, by score − price."""
    from mtclust.primal import _compiled

    weights, constant = moments.on_raw(task, W)
    wants = np.empty(len(labels))
    for first, last, block in source.blocks(task):
        scores = scores_of(block, weights)
        _compiled.eagerness(scores, prices - constant, labels[first:last], wants[first:last])
    return wants


def largest_pull(moments: Moments, task: int, factor: Array, n_clusters: int) -> float:
    """A bound of 2a‖ψ‖² over the rows of a task."""
    a, _ = code_scale(n_clusters)
    norm = float(np.abs(factor @ factor.T).sum(axis=0).max())  # at least the largest eigenvalue of Q
    return 2 * a * (2.0 / int(moments.sizes[task])) * float(moments.largest[task]) * norm


def pulls_of(moments: Moments, task: int, factor: Array, rows: NDArray[Any], n_clusters: int) -> Array:
    """2a‖ψ‖² of some rows of a task."""
    a, _ = code_scale(n_clusters)
    Psi = np.sqrt(2.0 / int(moments.sizes[task])) * (moments.centred(task, rows) @ factor)
    return 2 * a * np.einsum("ij,ij->i", Psi, Psi)


def _candidates(
    moments: Moments, task: int, factor: Array, near: NearRows, n_clusters: int
) -> tuple[NDArray[np.int64], bool]:
    """Which of the rows near a boundary an exchange is tried with, and whether these are all it could involve."""
    eager = near.wants + pulls_of(moments, task, factor, near.rows, n_clusters)
    keep = np.flatnonzero(eager + eager.max(initial=-np.inf) > 0)
    if len(keep) <= MOST_CANDIDATES:
        return keep, near.complete
    return np.sort(keep[np.argpartition(-eager[keep], MOST_CANDIDATES)[:MOST_CANDIDATES]]), False
