r"""The number of clusters, and whether there are any: one signal, a gap to rows without clusters.

On a few hundred rows, k-means that starts from Ward's tree leaves a sum of squares W(C) within C clusters. The same is
done with rows that have no clusters but the same columns and the same correlations (:func:`without_clusters`), W₀(C).
How much more C clusters explain than there,

.. math:: g(C) = \overline{\log W_0(C)/W_0(1)} - \log W(C)/W(1),

answers all three questions:

- *How many?* The C with the largest g(C) − COST·√max g·C: a further cluster has to explain clearly more than it would
  without clusters. Rows are seen around the mean of all and around the means of their tasks; the larger gap counts.
- *Is that certain?* The same is asked of half-samples. The number that all rows and half-samples choose most often is
  taken; where half agree or fewer, or where the silhouette of the same k-means clusters is largest for another number,
  the data do not decide.
- *Is there anything?* The largest g(C) has to exceed its spread over rows without clusters by far.

Rows without clusters have the shifts between tasks as well: these count for nothing. Nothing depends on
``random_state``, nor on the order of columns and tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, ward
from scipy.fft import dct
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.metrics import silhouette_score

from mtclust.choose.frames import DIRECTIONS
from mtclust.choose.record import ClusterNumberChoice
from mtclust.choose.settings import TASK_ROWS, Sample
from mtclust.choose.views import View
from mtclust.core import Array, Integers
from mtclust.core.criterion import indicators
from mtclust.core.kernels import Kernel, centre_kernel, eigen_features
from mtclust.core.labels import offsets_of
from mtclust.core.tasks import TaskIndex, index_tasks
from mtclust.core.validation import check_input, read_rows
from mtclust.exceptions import ClusterNumberWarning
from mtclust.search.recipe import LEADING
from mtclust.util.messages import option, phase, warn_user
from mtclust.util.system import one_blas_thread

if TYPE_CHECKING:
    from mtclust.estimators.base import MultitaskClusterer


#: candidates when none are given
CANDIDATES = range(2, 13)
#: rows that the number is chosen on, of tasks with ``TASK_ROWS`` each at least: very many are not all looked at
NUMBER_ROWS = 400
#: what decides, set on the sets decided on (docs/choosing.md): the cost of a cluster in units of the root of
#: the largest gap; the largest gap in units of its spread over rows without clusters
COST, CLEAR = 0.1, 5.0
_HALVES, _DRAWS = 6, 15
#: the least spread of the gap that is believed
_LEAST_SPREAD = 0.01


def _score(gap: Array, numbers: list[int]) -> Array:
    """The gap less what the clusters cost; −inf where it is nan."""
    gap = np.where(np.isnan(gap), -np.inf, gap)
    return np.asarray(gap - COST * np.sqrt(max(float(gap.max()), 0.0)) * np.array(numbers))


def _either(numbers: list[int]) -> str:
    return " or ".join(filter(None, [", ".join(map(str, numbers[:-1])), str(numbers[-1])]))


def select_n_clusters(
    estimator: MultitaskClusterer, X: Any, *, tasks: Any = None, candidates: Iterable[int] = CANDIDATES
) -> ClusterNumberChoice:
    """Choose the number of clusters without labels, and say whether there are any.

    Costs about as much as a fit of some hundred rows, however many rows there are. The same data give the same answer.

    Parameters
    ----------
    estimator : DMTRC, DMTFC or DSTC
        Of its parameters only ``task_column`` and a kernel that is precomputed or a function are used.
    X, tasks
        As in ``fit``.
    candidates : iterable of int, default=range(2, 13)

    Returns
    -------
    ClusterNumberChoice

    Examples
    --------
    >>> from mtclust import DSTC
    >>> from mtclust.selection import select_n_clusters
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(90, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    >>> choice = select_n_clusters(DSTC(), X, candidates=range(2, 6))
    >>> choice.n_clusters, choice.structure
    (3, 'clusters')
    """
    check_input(X, None, tasks, None, estimator.task_column)
    rows, tasks = read_rows(clone(estimator), X, tasks, reset=True)
    index = index_tasks(tasks, rows.shape[0])
    numbers, n = list(candidates), rows.shape[0]
    if not numbers or any(not isinstance(number, Integral) for number in numbers) or not 2 <= min(numbers) <= n:
        raise ValueError(f"candidates={numbers} must hold whole numbers of clusters >= 2 and <= {n}, the rows.")
    if estimator.kernel != "precomputed":
        index = index.by_content(rows)
    return choose_n_clusters(estimator.kernel, rows, index, sorted({int(number) for number in numbers}))


def choose_n_clusters(kernel: Any, table: Any, index: TaskIndex, numbers: list[int]) -> ClusterNumberChoice:
    """The same for a table that numbers of rows index, and its tasks; ``numbers`` ascend."""
    if kernel == "precomputed" and table.shape[0] != table.shape[1]:
        raise ValueError(f'X, of shape {table.shape}, is not square; kernel="precomputed" needs a column per row.')
    tasks = index.task_order
    largest = tasks[np.argsort(-index.sizes[tasks], kind="stable")[: NUMBER_ROWS // TASK_ROWS]]
    # the largest first, so that nothing depends on names
    wanted = np.minimum(index.sizes[largest], max(TASK_ROWS, NUMBER_ROWS // len(largest)))
    sample = Sample.of(table, index, largest, wanted)
    rows, offsets = sample.rows, sample.index.offsets
    if isinstance(kernel, str) and index.content is not None:  # a function of the user's own gets rows as they are
        rows = rows[:, index.content.columns].copy()  # in the layout of sparse rows made dense
    with one_blas_thread(), phase("choosing the number of clusters"):
        if kernel == "precomputed":
            matrix = rows[:, sample.order]
        elif not isinstance(kernel, str):
            matrix = Kernel("callable", function=kernel)(rows, rows)
        elif rows.shape[1] > LEADING:
            matrix = rows @ rows.T
        else:
            rows = rows.toarray() if sp.issparse(rows) else rows
            centred = rows - rows.mean(axis=0)
            centred /= np.abs(centred).max() or 1.0
            spread = centred.std(axis=0)
            digits = np.where(spread > 0, spread, 1.0) * 1e-6  # equal values stay equal with a little noise
            return _chosen(np.round(centred / digits) * digits, offsets, numbers)
        matrix = matrix.toarray() if sp.issparse(matrix) else matrix
        centred = centre_kernel(matrix, offsets[[0, -1]], centre=True).matrix
        return _chosen(eigen_features(centred, LEADING).values, offsets, numbers)


def _chosen(rows: Array, offsets: Integers, numbers: list[int]) -> ClusterNumberChoice:
    """The choice for rows that are sorted by task."""
    possible = [C for C in numbers if len(rows) > 2 * C]
    gap = np.full(len(numbers), np.nan)
    if not possible or not np.any(rows):
        return in_words(numbers[0], dict(zip(numbers, gap.tolist())), {}, "none")
    gaps, spread = _gaps(rows, offsets, possible, range(_DRAWS))
    gap[: len(possible)] = gaps.max(axis=0)
    score = dict(zip(numbers, _score(gap, numbers)))
    votes = Counter([max(possible, key=lambda C: score[C])])
    for half in range(_HALVES):
        parts = [np.random.default_rng(half).permutation(n)[: (n + 1) // 2] for n in np.diff(offsets)]
        few = np.concatenate([a + np.sort(part) for a, part in zip(offsets, parts)])
        fewer = [C for C in possible if len(few) > 2 * C]
        if fewer:
            own, _ = _gaps(rows[few], offsets_of(np.array([len(part) for part in parts])), fewer, [_DRAWS + half])
            votes[fewer[int(_score(own.max(axis=0), fewer).argmax())]] += 1
    best = max(votes, key=lambda C: (votes[C], score[C]))
    structure = "clusters" if np.any(gaps.max(axis=1) > CLEAR * spread) else "none"
    X = _frames(rows, offsets)[int(gaps.max(axis=1).argmax())]
    found = {C: labels for C, (labels, _) in zip(possible, _clusters(X, possible)) if len(np.unique(labels)) > 1}
    silhouettes = {C: float(silhouette_score(X, labels)) for C, labels in found.items()}
    silhouette = max(silhouettes, key=lambda C: silhouettes[C], default=possible[0])
    return in_words(best, dict(zip(numbers, gap.tolist())), dict(sorted(votes.items())), structure, silhouette)


def in_words(
    number: int, gaps: dict[int, float], votes: dict[int, int], structure: str, silhouette: int | None = None
) -> ClusterNumberChoice:
    """The choice, with what samples and the number of the largest silhouette say against it."""
    shown = {number}
    reason = f"{votes.get(number, 0)} of {sum(votes.values())} samples choose {number}"
    if (not votes or 2 * votes.get(number, 0) > sum(votes.values())) and silhouette in (None, number):
        reason = f"{number} clusters " + (f"explain the most beyond chance; {reason}" if votes else "cannot be judged")
    else:
        shown |= {*votes, number if silhouette is None else silhouette}
        other = "" if silhouette in (None, number) else f", the silhouette is largest for {silhouette}"
        reason = f"{_either(sorted(shown))}: the data do not decide ({reason}{other}); shown: {number}"
    return ClusterNumberChoice(number, reason, gaps, votes, structure, sorted(shown))


def _gaps(rows: Array, offsets: Integers, numbers: list[int], seeds: Iterable[int]) -> tuple[Array, Array]:
    """The gap in every frame (row) for every number, and its spread over sets of rows without clusters."""

    def left_within(rows: Array) -> Array:
        left = [[part for _, part in _clusters(X, numbers)] for X in _frames(rows, offsets)]
        return np.log(np.maximum(left, 1e-9))

    null = np.stack([left_within(without_clusters(rows, offsets, seed)) for seed in seeds])
    return null.mean(axis=0) - left_within(rows), np.maximum(null.std(axis=0).mean(axis=1), _LEAST_SPREAD)


def _frames(rows: Array, offsets: Integers) -> list[Array]:
    """Rows around the mean of all and, where there are several, around those of tasks, in their leading directions."""
    frames = [rows - rows.mean(axis=0)]
    if len(offsets) > 2:
        frames.append(View(rows, offsets).centred_rows[0])
    return [centred @ np.linalg.eigh(centred.T @ centred)[1][:, -DIRECTIONS:] for centred in frames]


def _clusters(X: Array, numbers: list[int]) -> Iterator[tuple[Integers, float]]:
    """Labels of k-means from Ward's tree and W(C)/W(1), for every number C."""
    total, tree = max(float(np.sum(X**2)), np.finfo(float).tiny), ward(X)
    for C in numbers:
        labels = fcluster(tree, C, "maxclust") - 1
        for _ in range(30):
            z = indicators(labels, C)
            counts = np.maximum(z.sum(axis=0), 1e-9)
            means = z.T @ X / counts[:, None]
            squares = np.einsum("cd,cd->c", means, means)
            last, labels = labels, (squares - 2 * X @ means.T).argmin(axis=1)
            if np.array_equal(last, labels):
                break
        yield labels, 1.0 - float(counts @ squares) / total


def without_clusters(rows: Array, offsets: Integers, seed: int) -> Array:
    """Rows with the same values in every column of every task and the same rank correlations, but without clusters.

    Within a task, the columns' normal scores G become HG for a random rotation H, which keeps GᵀG and makes rows
    Gaussian; the values of the columns then take the order of HG. Columns that depend on each other linearly, as the
    levels of a category do, move as one. A single column becomes Gaussian. Rows (n × d) are sorted by task.
    """
    variables, weights = _variables(rows)
    result = np.empty_like(rows)
    for a, b in zip(offsets[:-1], offsets[1:]):
        rng, n = np.random.default_rng(seed), b - a  # the same in every task: their order has no effect
        scores = np.stack([rows[a:b, own] @ weights[own] for own in variables], axis=1)
        scores = np.round(scores / np.maximum(scores.std(axis=0), 1e-12), 6)  # ties stay ties
        G = ndtri((rankdata(scores, axis=0) - 0.5) / n)
        G -= G.mean(axis=0)
        for _ in range(2):
            G = dct(rng.choice([-1.0, 1.0], n)[:, None] * G, axis=0, norm="ortho")
        if len(variables) == 1:
            length = float(np.sqrt(np.sum((rows[a:b] - rows[a:b].mean(axis=0)) ** 2)))
            unit = (G - G.mean()) / max(float(np.linalg.norm(G - G.mean())), np.finfo(float).tiny)
            result[a:b] = rows[a:b].mean(axis=0) + length * unit * weights / np.linalg.norm(weights)
            continue
        places = G.argsort(axis=0, kind="stable")
        sources = scores.argsort(axis=0, kind="stable")
        for v, own in enumerate(variables):
            result[np.ix_(a + places[:, v], own)] = rows[np.ix_(a + sources[:, v], own)]
    return result


def _variables(rows: Array) -> tuple[list[Integers], Array]:
    """Groups of columns that depend on each other linearly, and weights that make one score of each group."""
    d = rows.shape[1]
    spread = rows.std(axis=0)
    unit = (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    values, vectors = np.linalg.eigh(unit.T @ unit / len(rows))
    free = vectors[:, values < 1e-9] if d < len(rows) // 2 else vectors[:, :0]
    groups = connected_components(np.abs(free @ free.T) > 1e-6, directed=False)[1]
    alone = np.bincount(groups)[groups] == 1
    weights = np.where(alone, 1.0, vectors[:, -1] / np.where(spread > 0, spread, 1.0))
    return [np.flatnonzero(groups == group) for group in range(groups.max() + 1)], weights


def warn_of_choice(choice: ClusterNumberChoice) -> None:
    """Say it when there may be no clusters, when the data do not decide, and when the range may be too narrow."""
    number, first, last = choice.chosen, min(choice.gaps), max(choice.gaps)
    if choice.structure == "none":
        said = f"No number of clusters from {first} to {last} explains clearly more than chance does"
        said += f"; {number} clusters are a weak choice."
    elif not choice.decided:
        said = (
            f"{_either(choice.shown or [])} clusters: the data do not decide. {number} are shown; give a number if you "
        )
        said += f"know it ({option('n_clusters')})."
    elif first < last and (number == last or number == first > 2):
        said = f"{number} clusters are at the end of the range that was tried ({first} to {last}); there may be "
        said += f"{'more' if number == last else 'fewer'}. Try a wider range ({option('n_clusters')})."
    else:
        return
    warn_user(said, ClusterNumberWarning)
