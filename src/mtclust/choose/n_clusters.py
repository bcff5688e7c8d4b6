r"""The number of clusters, and whether there are any.

On a few hundred rows, for every number C of a range, the rows are labelled (:mod:`mtclust.choose.sweep`) and judged
(:mod:`mtclust.choose.judge`), and so are Gaussian rows with the mean and covariance of every task. Of the ways to look
at several tasks (alone, together, in a common frame) the one with the largest lead over that noise is taken. No single
signal is right on all tables, so that three have a vote there, and the median counts:

- *separation*: the number with the largest lead R² − R²₀ of leave-one-out prediction over noise, times how well the
  clusters of one task are recovered in the others,
- *distance*: the number with the highest silhouette of k-means,
- *density*: the number with the lowest BIC of Gaussian mixtures.

Whether there is anything is answered in three steps: columns that do not depend on each other within tasks have *no
structure beyond the marginals*; rows that are separated no better than Gaussian rows have *no structure beyond one
elliptical cloud*; else there are *clusters*. Nothing depends on ``random_state``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust._extras import require
from mtclust._names import shown_name
from mtclust._threads import one_blas_thread
from mtclust._warnings import warn_user
from mtclust.choose.judge import Judge, noise_level
from mtclust.choose.settings import sample_rows
from mtclust.choose.structure import columns_depend, deciding_column, gaussian_kernel, gaussian_rows
from mtclust.choose.sweep import Look, Swept, sweep
from mtclust.choose.views import KernelSpec, View, judging_kernels
from mtclust.choose.votes import by_density, by_distance
from mtclust.exceptions import ClusterNumberWarning
from mtclust.features import Kernel
from mtclust.tasks import TaskIndex, index_tasks
from mtclust.validation import split_task_column

Array = NDArray[np.float64]
Structure = Literal["marginals", "cloud", "clusters"]

#: candidates when none are given
CANDIDATES = range(2, 13)
#: rows that the number is chosen on
ROWS = 400
#: sets of Gaussian rows
_NULL_DRAWS = 2
#: agreement below this counts as this: chance may make it negative
_LEAST_AGREEMENT = 0.01
#: share of tables with independent columns that may be taken for dependent
_LEVEL = 0.02
#: mean gap to Gaussian rows, over numbers up to this, that clusters must have: few Gaussian rows reach it
_FEW_CLUSTERS = 6
CLEAR_GAP = 0.1

_IN_WORDS: dict[Structure, str] = {
    "marginals": "no structure beyond the marginals: within tasks the columns do not depend on each other",
    "cloud": "no structure beyond one elliptical cloud: Gaussian rows of the same covariance separate about as well",
    "clusters": "clusters: the rows separate clearly better than Gaussian rows of the same covariance",
}
_SIGNALS = {"separation": "by separation", "distance": "by distance", "density": "by density"}
_LOOKS: dict[Look, str] = {
    "alone": "",
    "together": ", tasks around their own centres",
    "common": ", all tasks in one frame",
}


@dataclass(frozen=True)
class ClusterNumberChoice:
    """What :func:`select_n_clusters` found.

    Attributes
    ----------
    n_clusters : int
        The median of the votes.
    candidates : list of int
    scores : ndarray
        Separation of the data, per candidate; nan where there are too few rows.
    null : ndarray of shape (n_candidates, n_null)
        The same of Gaussian rows.
    agreement : ndarray, optional
        Whether clusters found in one task are recovered in the others, per candidate: 1 for the same clusters, 0 for
        chance.
    votes : dict
        The numbers that "separation", "distance" and "density" would take.
    structure : {"clusters", "cloud", "marginals"}
        Whether there is anything beyond one elliptical cloud, or beyond the columns one by one.
    look : {"alone", "together", "common"}
        How several tasks were looked at: each alone, around their own centres, or in one frame.
    column : int or str, optional
        The column that alone decides the clusters, if one does.

    Examples
    --------
    >>> import numpy as np
    >>> from mtclust.selection import ClusterNumberChoice
    >>> choice = ClusterNumberChoice(3, [2, 3, 4], np.array([0.7, 0.8, 0.6]), np.array([[0.6], [0.5], [0.5]]))
    >>> choice.gap.round(2).tolist(), choice.supported, choice.runner_up, choice.at_end
    ([0.1, 0.3, 0.1], True, 4, False)
    """

    n_clusters: int
    candidates: list[int]
    scores: Array
    null: Array
    agreement: Array | None = None
    votes: dict[str, int] = field(default_factory=dict)
    structure: Structure = "clusters"
    look: Look = "alone"
    column: Any = None

    @property
    def gap(self) -> Array:
        """How far the separation of the data exceeds that of Gaussian rows."""
        return self.scores - self.null.mean(axis=1)

    @property
    def lead(self) -> Array:
        """The same in units of R², times the agreement across tasks; −inf where there are too few rows."""
        return lead_over_noise(self.candidates, self.gap, self.agreement)

    @property
    def supported(self) -> bool:
        """Whether there are clusters, and not one elliptical cloud or marginals only."""
        return self.structure == "clusters"

    @property
    def runner_up(self) -> int | None:
        """The next best number: that of most of the other votes, or else the one with the largest lead."""
        others = [C for C in self.candidates if self.n_clusters != C]
        lead = dict(zip(self.candidates, self.lead.tolist()))
        votes = list(self.votes.values())
        return max(others, key=lambda C: (votes.count(C), lead[C], -C)) if others else None

    @property
    def at_end(self) -> bool:
        """Whether the number stands at an end of the range that could have gone on."""
        ends = {self.candidates[-1]} | ({self.candidates[0]} if self.candidates[0] > 2 else set())
        return len(self.candidates) > 1 and self.n_clusters in ends

    @property
    def answer(self) -> str:
        """Whether there are clusters, in words."""
        words = _IN_WORDS[self.structure]
        if self.column is not None:
            words += f"; column {shown_name(self.column)} alone decides the clusters"
        return words

    @property
    def reason(self) -> str:
        """The choice in words."""
        best = self.candidates.index(self.n_clusters)
        words = (
            f"with {self.n_clusters} clusters the separation is {self.scores[best]:.2f}{_LOOKS[self.look]}, that of "
            f"Gaussian rows {self.null[best].mean():.2f}"
        )
        if len(set(self.votes.values())) > 1:
            words += "; " + ", ".join(f"{_SIGNALS[name]} {C}" for name, C in self.votes.items()) + ": the median"
        elif self.votes:
            words += "; separation, distance and density agree"
        if self.agreement is not None and np.isfinite(self.agreement[best]):
            words += f"; clusters of one task are recovered in the others ({self.agreement[best]:.2f} of 1)"
        return words + (f"; next is {self.runner_up}" if self.runner_up is not None else "")

    def plot(self, ax: Any = None) -> Any:
        """Draw scores, noise and gap against the number of clusters; returns the axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.
        """
        if ax is None:
            _, ax = require("matplotlib.pyplot", "plot").subplots(layout="constrained")
        ax.plot(self.candidates, self.scores, "o-", label="data")
        ax.errorbar(
            self.candidates, self.null.mean(axis=1), self.null.std(axis=1), fmt="s--", color="grey", label="noise"
        )
        ax.plot(self.candidates, self.gap, "^-", color="#D55E00", label="gap")
        if self.agreement is not None:
            ax.plot(self.candidates, self.agreement, "v:", color="#0072B2", label="agreement across tasks")
        ax.axvline(self.n_clusters, color="#D55E00", linewidth=0.8, linestyle=":")
        ax.set_xticks(self.candidates)
        ax.set_xlabel("number of clusters")
        ax.set_ylabel("separation")
        ax.set_title(f"{self.n_clusters} clusters")
        ax.legend(frameon=False)
        return ax


def select_n_clusters(
    estimator: Any, X: Any, *, tasks: Any = None, candidates: Iterable[int] = CANDIDATES
) -> ClusterNumberChoice:
    """Choose the number of clusters without labels, and say whether there are any.

    Costs about as much as a few fits of some hundred rows, however many rows there are. The same data give the same
    answer.

    Parameters
    ----------
    estimator : DMTRC, DMTFC or DSTC
        Only its kernel and ``task_column`` matter.
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
    numbers = sorted({int(c) for c in candidates})
    if not numbers or numbers[0] < 2:
        raise ValueError(f"candidates={numbers} must hold numbers of clusters >= 2.")
    if estimator.task_column is not None:
        X, tasks = split_task_column(X if hasattr(X, "shape") else np.asarray(X), estimator.task_column)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    rows = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    return choose_n_clusters(estimator, rows, index_tasks(tasks, rows.shape[0]), numbers, names)


def choose_n_clusters(
    estimator: Any, table: Any, index: TaskIndex, numbers: list[int], names: list[str] | None = None
) -> ClusterNumberChoice:
    """The same for a table that numbers of rows index, and its tasks.

    Parameters
    ----------
    estimator : DMTRC, DMTFC or DSTC
    table : array, CSR matrix or table of a Dask collection
    index : TaskIndex
    numbers : list of int
        At least 2, ascending.
    names : list of str, optional
        Of the columns.
    """
    precomputed = isinstance(estimator.kernel, str) and estimator.kernel == "precomputed"
    sample = sample_rows(np.arange(table.shape[0])[:, None] if precomputed else table, index, ROWS)
    rows, offsets = sample.rows, sample.index.offsets
    if precomputed:
        chosen = rows[:, 0].astype(np.int64)
        rows = table[chosen][:, chosen]
    with one_blas_thread():
        if precomputed or sp.issparse(rows) or not isinstance(estimator.kernel, str):
            return _of_kernel(_kernel_of(estimator, rows, precomputed), offsets, numbers)
        return _of_rows(estimator, rows, offsets, numbers, names)


def _kernel_of(estimator: Any, rows: Any, precomputed: bool) -> Array:
    """The kernel matrix of rows that are known through it, or of texts."""
    if precomputed:
        kernel = rows
    elif isinstance(estimator.kernel, str):
        kernel = rows @ rows.T
    else:
        kernel = Kernel("callable", function=estimator.kernel)(rows, rows)
    return np.asarray(kernel.toarray() if sp.issparse(kernel) else kernel, dtype=np.float64)


def _of_kernel(kernel: Array, offsets: NDArray[np.int64], numbers: list[int]) -> ClusterNumberChoice:
    spec = (KernelSpec("precomputed"),)
    data = _swept(View(kernel, offsets), spec, spec, numbers, across=True)
    noise = [
        _swept(View(gaussian_kernel(kernel, offsets, np.random.default_rng(draw)), offsets), spec, spec, numbers)
        for draw in range(_NULL_DRAWS)
    ]
    return _choice(View(kernel, offsets), spec[0], numbers, data, noise)[0]


def _of_rows(
    estimator: Any, rows: Array, offsets: NDArray[np.int64], numbers: list[int], names: list[str] | None
) -> ClusterNumberChoice:
    specs, judging = _search_kernels(estimator.kernel, estimator.width), judging_kernels(estimator.kernel)
    view = View(rows, offsets)
    data = _swept(view, specs, judging, numbers, across=True)
    noise = [
        _swept(View(gaussian_rows(rows, offsets, np.random.default_rng(draw)), offsets), specs, judging, numbers)
        for draw in range(_NULL_DRAWS)
    ]
    choice, labels = _choice(view, KernelSpec("linear"), numbers, data, noise)
    structure, column = choice.structure, None
    if rows.shape[1] > 1 and not columns_depend(rows, offsets, _LEVEL):
        structure = "marginals"
    if labels is not None:
        column = deciding_column(rows, offsets, labels, choice.n_clusters)
    name = column if column is None or names is None else names[column]
    return replace(choice, structure=structure, column=name)


def _search_kernels(kernel: str, width: Any) -> tuple[KernelSpec, ...]:
    """The kernels that labels are searched with."""
    rbf = KernelSpec("rbf", 1.0 if width == "auto" else float(width))
    return {"auto": (KernelSpec("linear"), rbf), "linear": (KernelSpec("linear"),), "rbf": (rbf,)}[kernel]


def _swept(
    view: View, specs: tuple[KernelSpec, ...], judging: tuple[KernelSpec, ...], numbers: list[int], across: bool = False
) -> list[Swept]:
    judge = Judge({spec.name: view.through(spec, "task").centred.matrix for spec in judging}, view.offsets)
    looks: tuple[Look, ...] = ("alone", "together", "common") if len(view.offsets) > 2 else ("alone",)
    return sweep(view, specs, judge, numbers, looks, across)


def lead_over_noise(numbers: list[int], gap: Array, agreement: Array | None = None) -> Array:
    """Separation beyond noise in units of R², which many clusters have more of to explain; times the agreement."""
    lead = gap * np.array([1.0 - noise_level(C) for C in numbers])
    if agreement is not None and not np.all(np.isnan(agreement)):
        lead = lead * np.maximum(np.where(np.isnan(agreement), np.nanmin(agreement), agreement), _LEAST_AGREEMENT)
    return np.where(np.isnan(lead), -np.inf, lead)


def _choice(
    view: View, spec: KernelSpec, numbers: list[int], data: list[Swept], noise: list[list[Swept]]
) -> tuple[ClusterNumberChoice, NDArray[np.int64] | None]:
    """The look with the largest lead over noise, the median of the votes in it, and the labels for that."""
    nulls = [np.stack([draw[look].separation for draw in noise], axis=1) for look in range(len(data))]
    leads = [lead_over_noise(numbers, swept.separation - null.mean(axis=1)) for swept, null in zip(data, nulls)]
    best = int(np.argmax([lead.max() for lead in leads]))
    swept, agreement = data[best], data[0].agreement
    gaps = swept.separation - nulls[best].mean(axis=1)
    kernel = view.through(spec, "all" if swept.look == "common" else "task").centred.matrix
    votes = {"separation": numbers[int(lead_over_noise(numbers, gaps, agreement).argmax())]}
    for name, vote in (("distance", by_distance(kernel, numbers)), ("density", by_density(kernel, numbers))):
        if vote is not None:
            votes[name] = vote
    chosen = sorted(votes.values())[(len(votes) - 1) // 2]
    k = numbers.index(chosen)
    structure: Structure = "clusters" if _evidence(numbers, data, nulls) > CLEAR_GAP else "cloud"
    choice = ClusterNumberChoice(
        chosen, numbers, swept.separation, nulls[best], agreement, votes, structure, swept.look
    )
    return choice, swept.labels[k]


def _evidence(numbers: list[int], data: list[Swept], nulls: list[Array]) -> float:
    """Mean gap over the smaller numbers, tasks around their own centres: less at the mercy of chance than one gap."""
    few = np.array(numbers) <= max(_FEW_CLUSTERS, numbers[0])
    gaps = [(swept.separation - null.mean(axis=1))[few] for swept, null in zip(data, nulls) if swept.look != "common"]
    known = np.concatenate(gaps)
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else 0.0


def words_of_choice(choice: ClusterNumberChoice | None) -> dict[str, Any]:
    """The entry of ``selection_`` for a number of clusters that was chosen."""
    if choice is None:
        return {}
    gaps = dict(zip(choice.candidates, choice.gap.tolist()))
    return {
        "n_clusters": {
            "chosen": choice.n_clusters, "reason": choice.reason, "gaps": gaps, "runner_up": choice.runner_up,
            "votes": dict(choice.votes), "structure": choice.structure, "answer": choice.answer,
        }
    }  # fmt: skip


def warn_of_choice(choice: ClusterNumberChoice) -> None:
    """Say it when there may be no clusters, and when the number stands at an end of its range."""
    tried = f"from {choice.candidates[0]} to {choice.candidates[-1]}"
    if choice.structure == "cloud":
        warn_user(
            f"No number of clusters {tried} separates the data clearly better than Gaussian noise of the same "
            f"covariance (no structure beyond one elliptical cloud); n_clusters={choice.n_clusters} is a weak choice.",
            ClusterNumberWarning,
        )
    elif choice.structure == "marginals":
        warn_user(
            "Within tasks the columns do not depend on each other (no structure beyond the marginals): "
            f"n_clusters={choice.n_clusters} only cuts single columns into pieces and is a weak choice.",
            ClusterNumberWarning,
        )
    elif choice.at_end:
        more = "more" if choice.n_clusters == choice.candidates[-1] else "fewer"
        warn_user(
            f"n_clusters={choice.n_clusters} stands at the end of the range that was tried ({tried}); there may be "
            f"{more} clusters. Try a wider range.",
            ClusterNumberWarning,
        )
