"""The rows that a search at scale runs on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtclust.core.labels import offsets_of, proportional
from mtclust.primal.rows import Data
from mtclust.primal.sources import TableRows

#: up to this many rows the search runs on all of them
ALL_ROWS = 30_000
#: otherwise on this many, and at least on so many per task and cluster
SAMPLED_ROWS = 20_000
_FEWEST_PER_CLUSTER = 40


def sample_of(data: Data, rng: np.random.Generator) -> tuple[Data, bool]:
    """The rows the search runs on, held in memory, and whether these are fewer than all."""
    sizes = data.moments.sizes
    if sizes.sum() <= ALL_ROWS:
        return data, False
    fewest = _FEWEST_PER_CLUSTER * data.bounds.n_clusters
    wanted = np.minimum(sizes, np.maximum(fewest, sizes * SAMPLED_ROWS // sizes.sum()))
    return take_rows(data, wanted, rng), True


def take_rows(data: Data, wanted: NDArray[np.int64], rng: np.random.Generator) -> Data:
    """Some rows of every task, at random, with the size bounds in proportion."""
    chosen = [np.sort(rng.choice(int(n), int(k), replace=False)) for n, k in zip(data.moments.sizes, wanted)]
    return rows_at(data, chosen)


def rows_at(data: Data, positions: list[NDArray[np.int64]]) -> Data:
    """These rows of every task, held in memory, with the size bounds in proportion."""
    wanted = np.array([len(part) for part in positions])
    parts = data.source.take_all(positions)
    offsets = offsets_of(wanted)
    source = TableRows(np.concatenate(parts), offsets)
    centre = not np.any(data.moments.total) and bool(np.any(data.moments.mean))
    of_sample = source.moments(centre, data.moments.scale or None)
    return Data(source, of_sample, proportional(data.bounds, data.moments.sizes, wanted))
