"""The number of clusters: where the leave-one-out R² exceeds that of clusterless data most.

For every candidate the model is fitted to the data and to Gaussian data with the same mean and covariance per task. R²
alone prefers few clusters; its gap to noise peaks where the clusters are real.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from mtclust._extras import require
from mtclust._progress import phase
from mtclust._warnings import warn_user
from mtclust.exceptions import ClusterNumberWarning, SmallTaskWarning
from mtclust.selection.null import gaussian_rows
from mtclust.tasks import index_tasks
from mtclust.validation import split_task_column

Array = NDArray[np.float64]

#: candidates when none are given
CANDIDATES = range(2, 9)
#: noise data sets per candidate
_NULL_DRAWS = 3
#: a shorter search than a fit's: many models are compared
_QUICK = {"single_task_n_init": 8, "n_seeds": 1}
#: the balance parameter while comparing, where ``sizes`` is "auto"
_BALANCE = 0.1


@dataclass(frozen=True)
class ClusterNumberChoice:
    """What :func:`select_n_clusters` found.

    Attributes
    ----------
    n_clusters : int
        The candidate with the largest gap.
    candidates : list of int
    scores : ndarray
        Leave-one-out R² of the data, per candidate.
    null : ndarray of shape (n_candidates, n_null)
        The same of Gaussian data.

    Examples
    --------
    >>> import numpy as np
    >>> from mtclust.selection import ClusterNumberChoice
    >>> choice = ClusterNumberChoice(3, [2, 3, 4], np.array([0.7, 0.8, 0.6]), np.array([[0.6], [0.5], [0.5]]))
    >>> choice.gap.round(2).tolist(), choice.supported
    ([0.1, 0.3, 0.1], True)
    """

    n_clusters: int
    candidates: list[int]
    scores: Array
    null: Array

    @property
    def gap(self) -> Array:
        return self.scores - self.null.mean(axis=1)

    @property
    def supported(self) -> bool:
        """Whether the chosen number separates the data better than any of the noise data sets."""
        best = self.candidates.index(self.n_clusters)
        return bool(self.scores[best] > self.null[best].max())

    @property
    def reason(self) -> str:
        """The choice in words."""
        best = self.candidates.index(self.n_clusters)
        return (
            f"with {self.n_clusters} clusters the leave-one-out R² ({self.scores[best]:.3f}) is furthest above that of "
            f"Gaussian noise ({self.null[best].mean():.3f})"
        )

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
        ax.axvline(self.n_clusters, color="#D55E00", linewidth=0.8, linestyle=":")
        ax.set_xticks(self.candidates)
        ax.set_xlabel("number of clusters")
        ax.set_ylabel("leave-one-out R²")
        ax.set_title(f"{self.n_clusters} clusters")
        ax.legend(frameon=False)
        return ax


def select_n_clusters(
    estimator: Any,
    X: Any,
    *,
    tasks: Any = None,
    candidates: Iterable[int] = CANDIDATES,
    n_null: int = _NULL_DRAWS,
    random_state: Any = None,
) -> ClusterNumberChoice:
    """Choose the number of clusters of an estimator without labels.

    Parameters
    ----------
    estimator : DMTRC, DMTFC or DSTC
        Its settings are used; width and λ, where they are "auto", are settled once for all candidates.
    X, tasks
        As in ``fit``.
    candidates : iterable of int, default=range(2, 9)
    n_null : int, default=3
        Noise data sets per candidate.
    random_state : int, RandomState instance or None

    Returns
    -------
    ClusterNumberChoice

    Examples
    --------
    >>> from mtclust import DSTC
    >>> from mtclust.selection import select_n_clusters
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(90, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    >>> select_n_clusters(DSTC(), X, candidates=range(2, 6), random_state=0).n_clusters
    3
    """
    numbers = sorted({int(c) for c in candidates})
    if not numbers or numbers[0] < 2:
        raise ValueError(f"candidates={numbers} must hold numbers of clusters >= 2.")
    if n_null < 1:
        raise ValueError(f"n_null={n_null} must be >= 1.")
    rng = np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    if estimator.task_column is not None:
        X, tasks = split_task_column(X if hasattr(X, "shape") else np.asarray(X), estimator.task_column)
    rows = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    model = _settled(estimator, rows, tasks, numbers[len(numbers) // 2], rng)
    noise = [_noise(model, rows, tasks, rng) for _ in range(n_null)]
    scores, null = np.empty(len(numbers)), np.empty((len(numbers), n_null))
    for k, C in enumerate(numbers):
        with phase(f"{C} clusters"):
            scores[k] = _score(model, rows, tasks, C)
        for draw, (noise_model, data) in enumerate(noise):
            with phase(f"{C} clusters in noise {draw + 1} of {n_null}"):
                null[k, draw] = _score(noise_model, data, tasks, C)
    best = int(np.argmax(scores - null.mean(axis=1)))
    return ClusterNumberChoice(numbers[best], numbers, scores, null)


def no_more_than(candidates: Sequence[int], n_samples: int) -> Sequence[int]:
    """The candidates that are not above the number of rows; of a range without walking through it.

    Examples
    --------
    >>> no_more_than(range(2, 10**15), 4), no_more_than([5, 3], 4)
    (range(2, 5), [3])
    """
    if not isinstance(candidates, range):
        return [c for c in candidates if c <= n_samples]
    rising = candidates if candidates.step > 0 else candidates[::-1]
    return range(rising.start, min(rising.stop, n_samples + 1), rising.step)


def words_of_choice(choice: ClusterNumberChoice | None) -> dict[str, Any]:
    """The entry of ``selection_`` for a number of clusters that was chosen."""
    if choice is None:
        return {}
    gaps = dict(zip(choice.candidates, choice.gap.tolist()))
    return {"n_clusters": {"chosen": choice.n_clusters, "reason": choice.reason, "gaps": gaps}}


def warn_unless_supported(choice: ClusterNumberChoice) -> None:
    """Say it when no number of clusters separates the data better than noise."""
    if not choice.supported:
        warn_user(
            f"No number of clusters from {choice.candidates[0]} to {choice.candidates[-1]} separates the data clearly "
            f"better than Gaussian noise of the same covariance; n_clusters={choice.n_clusters} is a weak choice.",
            ClusterNumberWarning,
        )


def _settled(estimator: Any, rows: Any, tasks: Any, n_clusters: int, rng: np.random.Generator) -> Any:
    """The estimator with everything fixed but the number of clusters, and a shorter search."""
    model = clone(estimator)
    quick: dict[str, Any] = {"task_column": None, "random_state": int(rng.integers(2**31 - 1)), "verbose": 0}
    parameters = model.get_params()
    if "coupling" in parameters:
        quick["coupling"] = "full" if parameters["coupling"] == "auto" else parameters["coupling"]
        if parameters["solver"] == "exchange":
            quick["solver_options"] = {**_QUICK, **(parameters["solver_options"] or {})}
    if isinstance(parameters["sizes"], str) and parameters["sizes"] == "auto":
        quick["sizes"] = _BALANCE
    model.set_params(**quick)
    if "auto" in (parameters["width"], parameters["lambda1"], parameters["lambda2"]):
        chosen = _fitted(clone(model).set_params(n_clusters=n_clusters), rows, tasks).selection_
        model.set_params(lambda1=chosen["lambda1"], lambda2=chosen["lambda2"])
        if "width" in chosen:
            model.set_params(width=chosen["width"])
    return model


def _noise(model: Any, rows: Any, tasks: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """A model and Gaussian data for it, with the mean and covariance that every task has."""
    index = index_tasks(tasks, rows.shape[0])
    linear = isinstance(model.kernel, str) and model.kernel in ("linear", "precomputed")
    options = getattr(model, "solver_options", None) or {}
    in_rows = options.get("form") == "primal" and not sp.issparse(rows)  # that form wants rows, not their kernel
    if not linear or in_rows:
        dense = rows.toarray() if sp.issparse(rows) else rows
        noise = np.empty_like(dense)
        for part in index.slices():
            noise[index.order[part]] = gaussian_rows(dense[index.order[part]], rng)
        return model, noise
    # Gaussian rows mix the rows of their task: R X, so their kernel is R K Rᵀ, without touching the features
    kernel = rows if model.kernel == "precomputed" else rows @ rows.T
    kernel = kernel.toarray() if sp.issparse(kernel) else np.asarray(kernel)
    mixing = np.zeros_like(kernel)
    for part in index.slices():
        mine = index.order[part]
        n = len(mine)
        centre = np.eye(n) - 1 / n
        mixing[np.ix_(mine, mine)] = 1 / n + rng.standard_normal((n, n)) @ centre / np.sqrt(max(n - 1, 1))
    noise_model = clone(model).set_params(kernel="precomputed")
    if "form" in options:
        noise_model.set_params(solver_options={key: value for key, value in options.items() if key != "form"})
    return noise_model, mixing @ kernel @ mixing.T


def _score(model: Any, rows: Any, tasks: Any, n_clusters: int) -> float:
    return float(_fitted(clone(model).set_params(n_clusters=n_clusters), rows, tasks).loo_score_)


def _fitted(model: Any, rows: Any, tasks: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallTaskWarning)
        return model.fit(rows, tasks=tasks)
