"""Rows seen through every kernel that may be chosen, in the frame of each task and in one common to all.

In the own frame rows and features are centred within each task, so that a shift of a whole task changes nothing; in the
common frame they are centred over all rows, and the tasks' levels tell which clusters a task lacks. RBF kernels have
the width w · (mean distance of two rows of a task; of any two, or from 0, where no others differ). Small sparse
tables are treated as dense ones; large ones (more than ``LARGEST_DENSE`` cells) are not centred for distances.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from mtclust.core import Array, Integers
from mtclust.core.kernels import (
    KERNELS,
    Kernel,
    centre_kernel,
    is_rounding,
    linear,
    rbf_from_distances,
    require_finite,
    squared_distances,
)
from mtclust.core.labels import tasks_of_rows
from mtclust.core.model import KernelOrigin
from mtclust.core.order import LARGEST_DENSE

#: rows that spread over more directions than this are far from each other by nearly the same distance, as texts are
MANY_DIRECTIONS = 50
#: widths of the RBF kernels that models may have
WIDTHS = (0.5, 1.0)


@dataclass(frozen=True)
class KernelSpec:
    """A kernel before its rows are known: its kind, and for RBF its width in units of the mean distance."""

    kind: str
    width: float | None = None
    function: Any = None

    @property
    def name(self) -> str:
        return self.kind if self.width is None else f"RBF {self.width:g}"


def candidate_kernels(kernel: Any, width: Any, many_directions: bool = False) -> tuple[KernelSpec, ...]:
    """The kernels that the arguments ``kernel`` and ``width`` of an estimator leave to choose from.

    Where distances between rows are nearly all equal the linear one is left.
    """
    if not isinstance(kernel, str):
        return (KernelSpec("callable", function=kernel),)
    widths = WIDTHS if width == "auto" else (float(width),)
    narrow = tuple(KernelSpec("rbf", w) for w in widths)
    if kernel == "auto":
        return (KernelSpec("linear"), *(() if many_directions else narrow))
    return narrow if kernel == "rbf" else (KernelSpec(kernel),)


def is_wide(rows: Any) -> bool:
    """Whether rows are a sparse table too large to be made dense."""
    return bool(sp.issparse(rows) and np.prod(rows.shape) > LARGEST_DENSE)


def in_many_directions(rows: Any, offsets: Integers) -> bool:
    r"""Whether the variance within tasks is spread over many directions: (Σ_k s_k)²/Σ_k s_k² of its eigenvalues.

    Documents are, however they are stored: as weights of words, or of the leading directions of these.
    """
    if rows.shape[1] <= MANY_DIRECTIONS:
        return False
    K = centre_kernel(linear(rows, rows), offsets, centre=True).matrix
    return bool(np.trace(K) ** 2 > MANY_DIRECTIONS * np.sum(K**2))


@dataclass
class View:
    """Rows (N × d) sorted by task; the kernel matrix (N × N) where that is all there is."""

    rows: Any
    offsets: Integers
    order: Integers | None = None  # rows of the input in sorted order
    centre: bool = True  # False as in the paper: nothing is centred, and there is one frame
    columns: Integers | None = None  # in which order they are summed over; as they come by default
    _origins: dict[str, KernelOrigin] = field(default_factory=dict, repr=False, init=False)

    def as_one_task(self, moves: Array | None = None) -> View:
        """The rows as those of one task, those of every task moved back by its own of ``moves`` (m × d)."""
        if moves is None and len(self.offsets) == 2:
            return self
        rows = self.rows
        if moves is not None:
            rows = (rows.toarray() if sp.issparse(rows) else rows) - moves[tasks_of_rows(self.offsets)]
        return replace(self, rows=rows, offsets=self.offsets[[0, -1]])

    def through(self, spec: KernelSpec) -> KernelOrigin:
        """The rows through one kernel; computed once."""
        if spec.name in self._origins:
            return self._origins[spec.name]
        # a function of the user's own gets rows as they are
        rows, centres = self.centred_rows if spec.kind in KERNELS else (self.rows, None)
        kernel = Kernel(spec.kind, function=spec.function)
        if spec.kind == "precomputed":
            raw = self._precomputed()
        elif spec.kind == "rbf":
            squared, unit = self._distances
            assert spec.width is not None
            kernel = Kernel("rbf", sigma=spec.width * unit)
            raw = rbf_from_distances(squared, spec.width * unit)
        else:
            ordered = rows if self.columns is None or spec.kind != "linear" else rows[:, self.columns]
            raw = kernel(ordered, ordered)
        order = np.arange(self.rows.shape[0]) if self.order is None else self.order
        centred = centre_kernel(raw, self.offsets, self.centre)
        return self._origins.setdefault(spec.name, KernelOrigin(kernel, rows, centred, order, centres))

    def _precomputed(self) -> Array:
        """The kernel matrix with its columns, too, in the order of the tasks."""
        matrix = self.rows.toarray() if sp.issparse(self.rows) else self.rows
        square = matrix.shape[0] == matrix.shape[1]
        matrix = matrix if self.order is None or not square else matrix[:, self.order]
        if not square or not np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-8 * float(np.abs(matrix).max())):
            raise ValueError(
                f'X, of shape {matrix.shape}, is {"not symmetric" if square else "not square"}; kernel="precomputed" '
                "needs the kernel matrix of all rows with each other."
            )
        return np.asarray(matrix)

    @cached_property
    def centred_rows(self) -> tuple[Any, Array | None]:
        rows, offsets = self.rows, self.offsets
        if not self.centre or is_wide(rows):
            return rows, None
        rows = rows.toarray() if sp.issparse(rows) else rows
        with np.errstate(over="ignore", invalid="ignore"):
            means = require_finite(np.add.reduceat(rows, offsets[:-1], axis=0) / np.diff(offsets)[:, None])
        return rows - np.repeat(means, np.diff(offsets), axis=0), means

    @cached_property
    def _distances(self) -> tuple[Array, float]:
        """Squared distances, and the mean one of two rows of a task, or of any two, or from 0 where all are equal."""
        rows = self.centred_rows[0] if self.columns is None else self.centred_rows[0][:, self.columns]
        squared, level = require_finite(squared_distances(rows, rows)), float(row_norms(rows, squared=True).mean())
        for offsets in (self.offsets, self.offsets[[0, -1]]):  # of any two where those of no task differ
            total, pairs = 0.0, 0
            for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
                total += float(np.sqrt(squared[a:b, a:b]).sum())
                pairs += (b - a) * (b - a - 1)
            unit = total / max(pairs, 1)
            if not is_rounding(unit**2, level):  # distances whose squares have no digits left count as none
                return squared, unit
        return squared, 1.0 if is_rounding(level, 0.0) else float(np.sqrt(level))
