"""What the loaders of the paper's data do with rows: draw some, scale columns, check that they are the right ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def draw_fraction(target: NDArray[np.int64], fraction: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of a random ``fraction`` of each class, sorted; at least one row of every class.

    A smaller fraction drawn with the same generator state is a subset of a larger one.
    """
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must be in (0, 1]; got {fraction}.")
    chosen = []
    for label in np.unique(target):
        rows = rng.permutation(np.flatnonzero(target == label))
        chosen.append(rows[: max(1, round(fraction * len(rows)))])
    return np.sort(np.concatenate(chosen)).astype(np.int64)


def scale_columns(data: NDArray[Any]) -> NDArray[np.float64]:
    """Each column mapped to [0, 1] over the given rows; a constant column becomes 0."""
    low, high = data.min(axis=0), data.max(axis=0)
    width = np.where(high > low, high - low, 1)
    return np.asarray((data - low) / width, dtype=np.float64)


def check_content(digest: str, expected: str, what: str, source: str) -> None:
    """Compare a hash of parsed rows with the one of the canonical data set.

    The bytes of a file may differ between sources (compression, extra members); the rows, in canonical order, may not:
    otherwise one seed would mean different draws in different places.
    """
    if digest != expected:
        raise ValueError(
            f"{what} read from {source} is not the expected data set: "
            f"its rows have the sha256 {digest}, not {expected}. "
            "The file is damaged or another version: delete it to have it downloaded again."
        )


def content_hash(parts: Sequence[bytes]) -> str:
    """sha256 of byte strings, each preceded by its length so that no two sequences share one stream."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
