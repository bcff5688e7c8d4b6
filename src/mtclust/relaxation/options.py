"""What the cutting-plane solver is told and what it returns besides labels."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.exceptions import DegenerateSolutionWarning
from mtclust.util.messages import warn_user

Array = NDArray[np.float64]

#: what ``init`` and ``reduced`` may name
STARTS, REDUCED = ("k-means", "spectral", "random"), ("quadratic", "level")
#: two scores of a row that differ by less than this (the largest score there can be is about 1) are a tie
_TIE = 1e-6
#: below this share of |Y| the relaxed labels Ỹ are nearly zero
_VANISHING = 0.2
#: more tied rows than this share are a collapse, too
_TIED = 0.05


@dataclass(frozen=True)
class CuttingPlaneOptions:
    """Settings of ``solver="cutting-plane"``; the start and the number of cuts are part of the model.

    Attributes
    ----------
    init : {"k-means", "spectral", "random"} or array of labels
        The first labelling in every pool. What a stopped run returns is close to it.
    max_cuts : int
        Labellings added to every pool at most.
    gap_tol : float
        Stop when value and lower bound differ by less than this share of the value.
    zero_tol : float
        Stop when the value is below this share of the largest that labels can have, mC/(C−1): the relaxation has
        collapsed, and going on to 0 takes longer than all the cuts before.
    reduced : {"quadratic", "level"}
        How the weights of the current pools are found: together with Z, a quadratic program for every Z, or by the
        level method, as in the paper. The second takes 15 to 30 times as long.
    level_tol : float
        What ``gap_tol`` is, for the weights of the current pools.
    max_level_steps : int
        Steps of that per cut.
    """

    init: Any = "k-means"
    max_cuts: int = 25
    gap_tol: float = 1e-4
    zero_tol: float = 1e-4
    reduced: str = "quadratic"
    level_tol: float = 1e-3
    max_level_steps: int = 300

    @classmethod
    def from_dict(cls, given: dict[str, Any] | None) -> CuttingPlaneOptions:
        """Check what a user wrote into ``solver_options``.

        Examples
        --------
        >>> CuttingPlaneOptions.from_dict({"max_cuts": 5}).max_cuts
        5
        """
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(given or {}) - set(known))
        if unknown:
            raise ValueError(f"solver_options has unknown keys {unknown}; allowed are {known}.")
        for key, value in (given or {}).items():
            number = isinstance(value, Real) and not isinstance(value, bool)
            if key == "init":
                right, what = not isinstance(value, str) or value in STARTS, f"{', '.join(STARTS)} or labels"
            elif key == "reduced":
                right, what = value in REDUCED, " or ".join(REDUCED)
            elif key.startswith("max_"):
                least = int(key == "max_level_steps")
                right = number and isinstance(value, Integral) and int(value) >= least
                what = f"a whole number >= {least}"
            else:
                right, what = number and float(value) >= 0, "a number >= 0"
            if not right:
                raise ValueError(f"solver_options[{key!r}]={value!r} must be {what}.")
        return cls(**(given or {}))


@dataclass(frozen=True)
class Relaxation:
    """The solution of the relaxed problem; rows sorted by task."""

    codes: Array  # Ỹ = Σ_k μ_kY_k, N × C
    weights: list[Array]  # μ of every task
    pools: list[NDArray[np.int64]]  # K_i × n_i, the labellings Y_k of every task, the start first
    start: NDArray[np.int64]
    scores: Array  # F, the fitted values of Ỹ
    value: float
    lower_bound: float  # of the relaxed optimum
    n_cuts: int

    @property
    def shrinkage(self) -> float:
        """|Ỹ|/|Y|."""
        return shrinkage(self.codes)

    @property
    def n_ties(self) -> int:
        """Rows whose two highest scores are the same."""
        if self.scores.shape[1] < 2:
            return 0
        highest = np.sort(self.scores, axis=1)[:, -2:]
        return int(np.count_nonzero(highest[:, 1] - highest[:, 0] <= _TIE))

    @property
    def collapsed(self) -> bool:
        n, n_clusters = self.codes.shape
        return n_clusters > 1 and (self.shrinkage < _VANISHING or self.n_ties > _TIED * n)


def shrinkage(codes: Array) -> float:
    """‖Ỹ‖/‖Y‖: 1 for integer labels, 0 where nothing is left of them.

    Examples
    --------
    >>> shrinkage(np.array([[1.0, -0.5, -0.5], [0.25, 0.25, -0.5]])).__round__(3)
    0.791
    """
    n, n_clusters = codes.shape
    return float(np.linalg.norm(codes) / np.sqrt(n * n_clusters / max(n_clusters - 1, 1)))


def warn_if_collapsed(relaxation: Relaxation, init: Any) -> None:
    """Say with figures that the relaxed labels carry no information any more."""
    if not relaxation.collapsed:
        return
    named = repr(init) if isinstance(init, str) else "the given labels"
    warn_user(
        f"The convex relaxation has collapsed: after {relaxation.n_cuts} cuts the relaxed labels have "
        f"|Ỹ| = {relaxation.shrinkage:.3g} |Y|, {relaxation.n_ties} of {len(relaxation.codes)} rows are tied between "
        f"clusters, and the objective is {relaxation.value:.3g}. Where all clusters have the same size bounds the "
        f"optimum is Ỹ = 0, which says nothing about clusters: labels_ depend on the start ({named}) and on where the "
        "run was stopped. "
        'Use the default, solver="exchange"; a smaller max_cuts keeps more of the start.',
        DegenerateSolutionWarning,
    )
