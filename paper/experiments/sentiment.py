"""``python -m paper reproduce sentiment``: the paper's section 9.4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paper.experiments.base import Experiment
from paper.experiments.page import Section
from paper.experiments.runner import Cell
from paper.experiments.sections import PROTOCOLS
from paper.experiments.text_jobs import ALL, TextJob, cells_of, execute, report_of

JOB = TextJob(
    "sentiment",
    {0.1: (ALL, ALL), 0.3: (5, 2), 0.5: (2, 1)},
    ("books", "dvd", "electr.", "kitchen"),
    {
        "nmi": "Fig. 12: NMI comparison on the sentiment dataset.",
        "D": "Fig. 13: Visualizations of D of DMTFC_l on the sentiment dataset.",
        "omega": "Fig. 14: Hinton diagrams of Ω of DMTRC_l on the sentiment dataset.",
        "omega raw": "Fig. 15: Hinton diagrams of Ω of *DMTRC_l on the sentiment dataset.",
        "per task": "Fig. 16: NMI comparison between the proposed methods on the individual tasks with respect to "
        "different percentages of data on the sentiment dataset.",
        "time": "Fig. 17: CPU time comparison on the sentiment dataset.",
    },
)


def cells(repeats: int, quick: bool) -> list[Cell]:
    return cells_of(JOB, repeats, quick)


def report(frame: Any, directory: Path) -> list[Section]:
    return report_of(JOB, frame, directory)


EXPERIMENT = Experiment(
    "sentiment",
    "Multi-domain sentiment",
    "The paper's section 9.4: reviews of books, DVDs, electronics and kitchen appliances, positive or negative; 10, 30 "
    "and 50 % of them, 100 principal components, and * without PCA. Terms are weighted by sublinear tf × idf with rows "
    f"of length 1. {PROTOCOLS}\n\n{JOB.costs()} "
    "For the supervised counterparts see `python -m paper reproduce transfer`.",
    5,
    cells,
    execute,
    report,
)
