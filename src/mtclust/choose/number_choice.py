"""What was found about the number of clusters, in figures, words, warnings and a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mtclust.choose._old.judge import noise_level
from mtclust.choose.sweep import Look
from mtclust.exceptions import ClusterNumberWarning
from mtclust.util.extras import require
from mtclust.util.names import shown_name
from mtclust.util.warning import warn_user

Array = NDArray[np.float64]
Structure = Literal["marginals", "cloud", "clusters"]

#: agreement below this counts as this: chance may make it negative
_LEAST_AGREEMENT = 0.01

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
        lead = self.scores[best] - self.null[best].mean()
        words = (
            f"a quick trial with {self.n_clusters} clusters stands {abs(lead):.2f} {'above' if lead >= 0 else 'below'} "
            f"Gaussian rows of the same covariance{_LOOKS[self.look]}"
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


def lead_over_noise(numbers: list[int], gap: Array, agreement: Array | None = None) -> Array:
    """Separation beyond noise in units of R², which many clusters have more of to explain; times the agreement."""
    lead = gap * np.array([1.0 - noise_level(C) for C in numbers])
    if agreement is not None and not np.all(np.isnan(agreement)):
        lead = lead * np.maximum(np.where(np.isnan(agreement), np.nanmin(agreement), agreement), _LEAST_AGREEMENT)
    return np.where(np.isnan(lead), -np.inf, lead)


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
