"""The experiments of the paper, one file each, behind ``mtclust reproduce``.

Cells (:mod:`~mtclust.paper.experiments.runner`) → tidy table (:mod:`~mtclust.paper.experiments.table`) → figures and
page. Needs ``pip install "mtclust[experiments]"``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtclust.paper.experiments.base import Experiment


def load_experiment(name: str) -> Experiment:
    """The experiment of this name; its module is imported only now.

    Examples
    --------
    >>> load_experiment("balance").repeats
    5
    """
    experiment: Experiment = importlib.import_module(f"mtclust.paper.experiments.{name}").EXPERIMENT
    return experiment
