"""What a search ends with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.problem.protocol import Point, Problem

Array = NDArray[np.float64]


@dataclass
class Outcome:
    """Where the search ended on all rows, and what every task alone gave.

    Attributes
    ----------
    problem : Problem
        All rows; its bounds say which clusters each task has.
    point : Point
    single : Point
        Every task alone, cluster ids common to all tasks.
    few, few_point, few_single
        The same on the rows that the search ran on.
    similarity : ndarray of shape (m, m)
        V of the tasks alone.
    groups : list of ndarrays
        Tasks whose clusters resemble each other.
    model_codes : ndarray of shape (N, C), optional
        What the models are fitted to, where that is not the labels.
    relaxation : object, optional
        Of the cutting-plane solver.
    named : bool
        Whether the ids of clusters come from known rows, so that they are not to be changed.
    """

    problem: Problem
    point: Point
    single: Point
    few: Problem
    few_point: Point
    few_single: Point
    similarity: Array
    groups: list[NDArray[np.int64]] = field(default_factory=list)
    model_codes: Array | None = None
    relaxation: Any = None
    named: bool = False
