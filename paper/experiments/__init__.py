"""The experiments of the paper, behind ``python -m paper reproduce``.

Cells (:mod:`~paper.experiments.runner`) → tidy table (:mod:`~paper.experiments.table`) → figures and
page. Needs ``pip install "mtclust[experiments]"``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from mtclust.util.system import require

if TYPE_CHECKING:
    from paper.experiments.driver import Experiment

#: experiment, in the order of the paper → the module that has it
EXPERIMENTS = {
    "pendigits": "comparison",
    "balance": "sweeps",
    "complexity": "sweeps",
    "newsgroups": "comparison",
    "sentiment": "comparison",
    "transfer": "transfer",
}


def load_experiment(name: str) -> Experiment:
    """The experiment of this name; its module and what it needs are imported only now."""
    for package in ("matplotlib", "pandas", "tqdm"):
        require(package, "experiments")
    experiment: Experiment = importlib.import_module(f"paper.experiments.{EXPERIMENTS[name]}").EXPERIMENTS[name]
    return experiment
