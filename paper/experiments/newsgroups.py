"""``python -m paper reproduce newsgroups``: the paper's section 9.3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paper.datasets.newsgroups import NEWSGROUP_TASKS
from paper.experiments.base import Experiment
from paper.experiments.page import Section
from paper.experiments.runner import Cell
from paper.experiments.sections import PROTOCOLS
from paper.experiments.text_jobs import ALL, TextJob, cells_of, execute, report_of

JOB = TextJob(
    "newsgroups",
    # coupled models at 40 % (7000 rows) need hours through N × N inverses
    {0.05: (ALL, ALL), 0.1: (ALL, ALL), 0.2: (3, 1), 0.4: (1, 0)},
    tuple("123456"),
    {
        "nmi": "Fig. 7: NMI comparison on the 20-newsgroups dataset.",
        "D": "Fig. 8: Visualizations of D of DMTFC_l on the 20-newsgroups dataset.",
        "omega": "Fig. 9: Hinton diagrams of Ω of DMTRC_l on the 20-newsgroups dataset.",
        "omega raw": "Fig. 10: Hinton diagrams of Ω of *DMTRC_l on the 20-newsgroups dataset.",
        "time": "Fig. 11: CPU time comparison on the 20-newsgroups.",
        "per task": "supplement (results on each individual task).",
    },
)


def cells(repeats: int, quick: bool) -> list[Cell]:
    return cells_of(JOB, repeats, quick)


def report(frame: Any, directory: Path) -> list[Section]:
    rows = [(f"Task {number}", " vs. ".join(names)) for number, names in enumerate(NEWSGROUP_TASKS, start=1)]
    text = "Counterpart of the paper's Table 1: Task definition on the 20-newsgroups dataset."
    return [Section("The tasks", text, ("task", "classes"), rows), *report_of(JOB, frame, directory)]


EXPERIMENT = Experiment(
    "newsgroups",
    "20 Newsgroups",
    "The paper's section 9.3: six tasks of three newsgroups (its Table 1, "
    "`paper.datasets.fetch_newsgroups_tasks`), 5, 10, 20 and 40 % of the messages, "
    "100 principal components, and * without PCA. Terms are weighted by sublinear "
    "tf × idf with rows of length 1; the paper's scaling of every word to [0, 1] ruins all methods. "
    f"{PROTOCOLS}\n\n{JOB.costs()}",
    5,
    cells,
    execute,
    report,
)
