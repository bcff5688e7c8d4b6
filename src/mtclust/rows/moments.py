r"""Rows of explicit features, read task by task in blocks.

A source of rows yields blocks of raw values k; what the model sees is

.. math:: \phi(x) = (z(x) - \mu_i)/\sqrt s, \qquad z(x) = P^T k(x)

with a projection P of the source (of kernel values with landmarks; mostly there is none), the mean μ_i of the row's
task (0 without centring) and one scale s, the mean of ‖z − μ_i‖² over all rows. Neither is ever applied to stored data:
models and sums are instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core import Array
from mtclust.core.kernels import is_rounding, require_finite
from mtclust.core.labels import SizeBounds

if TYPE_CHECKING:
    from mtclust.rows.passes import TaskLabels
    from mtclust.rows.source import LocalRows


#: bytes of a block: it stays in the cache between its scores and its class sums
_BLOCK_BYTES = 2**19
_FEWEST_ROWS = 256
#: rows whose mean is this many standard deviations away from 0 are shifted before anything is squared
_FAR = 10.0


@dataclass(frozen=True)
class Data:
    """Rows, their moments, and the sizes their clusters may have."""

    source: RowSource
    moments: Moments
    bounds: SizeBounds
    constants: Array | None = None  # added to the scores of every row of a task (m × C)

    def projected(self, raw: NDArray[Any]) -> NDArray[Any]:
        """Raw rows k, or sums of them, as z."""
        return raw if self.source.projection is None else raw @ self.source.projection

    def on_raw(self, task: int, W: Array) -> tuple[Array, Array]:
        """Weights and constant with which raw rows k of a task score as φ does with W: φᵀW = kᵀ·weights + constant."""
        moments, projection = self.moments, self.source.projection
        weights = W / moments.root_scale
        added = 0.0 if self.constants is None else self.constants[task]
        constant = added - (moments.mean[task] @ W) / moments.root_scale
        return weights if projection is None else projection @ weights, constant


class RowSource(ABC):
    """Rows of explicit features, sorted by task, wherever they lie: what a problem asks of them.

    Rows at hand answer by passes over blocks (:class:`mtclust.rows.source.LocalRows`), rows in the chunks of a Dask
    collection by steps at the workers (:class:`mtclust.distributed.source.ChunkedRows`).
    """

    offsets: NDArray[np.int64]
    n_features: Any  # numbers of a raw row
    projection: Any = None  # what raw rows are multiplied with, None for nothing
    shift: Any = None  # what is taken off the raw rows of every task (m × d), None for nothing

    @abstractmethod
    def take(self, task: int, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Some raw rows of a task."""

    def take_all(self, positions: list[NDArray[np.int64]]) -> list[NDArray[Any]]:
        """Some raw rows of every task."""
        return [self.take(task, where) for task, where in enumerate(positions)]

    @abstractmethod
    def moments(self, centre: bool, scale: float | None = None) -> Moments:
        """Means, Gram matrices and the scale of the features."""

    @abstractmethod
    def best_labels(self, data: Data, W: Array) -> list[TaskLabels]:
        """The best labels under models W, in one pass."""

    @abstractmethod
    def relabel(self, data: Data, W: Array, labels: list[TaskLabels], tasks: list[int]) -> int:
        """The best labels of some tasks under models W, in place; returns how many changed."""


def far_from_zero(means: Array, spreads: Array) -> bool:
    """Whether the mean of any task is so far from 0 that squares would cancel; from means and deviations (m × d)."""
    return bool(np.any(np.abs(means).max(axis=1) > _FAR * spreads.max(axis=1)))


def block_rows(n_features: int, itemsize: int) -> int:
    return max(_FEWEST_ROWS, _BLOCK_BYTES // max(1, n_features * itemsize))


@dataclass(frozen=True)
class Moments:
    """What one pass over the raw features leaves of every task."""

    sizes: NDArray[np.int64]  # (m,)
    mean: Array  # μ_i (m × r), zeros without centring
    total: Array  # Σ φ over the rows of a task (m × r): zeros with centring
    gram: Array  # S_i = Φ_iᵀΦ_i of the centred, scaled features (m × r × r)
    scale: float  # s; 0 where the rows of no task differ

    @property
    def root_scale(self) -> float:
        return float(np.sqrt(self.scale)) if self.scale > 0 else 1.0

    def joined(self, new: Moments) -> Moments:
        """These tasks and then those, with the scale of these."""
        return Moments(
            np.append(self.sizes, new.sizes), np.vstack([self.mean, new.mean]), np.vstack([self.total, new.total]),
            np.concatenate([self.gram, new.gram]), self.scale,
        )  # fmt: skip

    def centred(self, task: int, block: NDArray[Any]) -> Array:
        """φ of projected rows of a task."""
        return (np.asarray(block, dtype=np.float64) - self.mean[task]) / self.root_scale


def raw_sums(source: LocalRows) -> tuple[Array, Array]:
    """Sums (m × r) and Gram matrices (m × r × r) of raw features, in one pass."""
    m, r = len(source.offsets) - 1, source.n_features
    sums, grams = np.zeros((m, r)), np.zeros((m, r, r))
    with np.errstate(over="ignore", invalid="ignore"):
        for task in range(m):
            for _, _, block in source.blocks(task):
                rows = np.asarray(block, dtype=np.float64)
                sums[task] += np.ones(len(rows)) @ rows  # quicker than sum(axis=0)
                grams[task] += rows.T @ rows
    require_finite(grams)
    return sums, grams


def combine(
    sizes: NDArray[np.int64], sums: Array, grams: Array, centre: bool, scale: float | None, projection: Array | None
) -> Moments:
    """Moments of tasks of these sizes from raw sums; the scale is found where it is not given."""
    if projection is not None:
        sums, grams = sums @ projection, projection.T @ grams @ projection
    raw_level = float(np.einsum("irr->", grams)) / sizes.sum()
    mean = sums / sizes[:, None] if centre else np.zeros_like(sums)
    total = np.zeros_like(sums) if centre else sums
    if centre:
        grams = grams - np.einsum("ir,is->irs", mean, mean) * sizes[:, None, None]
    if scale is None:
        scale = float(np.einsum("irr->", grams)) / sizes.sum()
    if is_rounding(scale, raw_level):
        return Moments(sizes, mean, total, np.zeros_like(grams), 0.0)
    return Moments(sizes, mean, total / np.sqrt(scale), grams / scale, scale)
