"""What to be careful about, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mtclust.exceptions import ClusterNumberWarning, SmallTaskWarning, UncoupledWarning
from mtclust.report.names import listing
from mtclust.selection.coupling import COUPLING_LIMIT

#: a task whose strongest correlation with another is below this shares little
WEAK_CORRELATION = 0.3
#: a cluster with fewer rows, or a smaller share of its task, is tiny
TINY_ROWS, TINY_SHARE = 5, 0.02
#: a task has few rows if it has fewer than this per cluster
FEW_ROWS = 5

#: library warnings that are said in other words below
_SAID_OTHERWISE = (UncoupledWarning, SmallTaskWarning, ConvergenceWarning, ClusterNumberWarning)


@dataclass(frozen=True)
class Caution:
    """One thing to be careful about: a few words for it, and a sentence or two."""

    title: str
    text: str


def cautions(model: Any, warned: Sequence[Any] = ()) -> list[Caution]:
    """What a reader of the clusters should know before trusting them.

    Parameters
    ----------
    model : fitted DMTRC, DMTFC or DSTC
    warned : sequence of warnings.WarningMessage or of warnings
        What ``fit`` warned of.
    """
    raised = [getattr(entry, "message", entry) for entry in warned]
    found = [
        *_about_coupling(model),
        *_about_relationship(model),
        *_about_sizes(model),
        *_about_fit(model),
    ]
    if any(isinstance(warning, ClusterNumberWarning) for warning in raised):
        found.append(
            Caution(
                "Number of clusters uncertain",
                "No number of clusters separates the rows clearly better than it separates random noise. The data may "
                "have no clusters, or too few rows to show them; compare several --clusters.",
            )
        )
    others = [str(warning) for warning in raised if not isinstance(warning, _SAID_OTHERWISE)]
    return found + [Caution("Warning of the library", text) for text in dict.fromkeys(others)]


def _tasks(names: Sequence[Any], *, begin: bool = False) -> str:
    return f"{'T' if begin else 't'}ask{'s' if len(names) > 1 else ''} {listing(names)}"


def _about_coupling(model: Any) -> list[Caution]:
    if len(model.tasks_) == 1:
        return [Caution("One task only", "There is a single task, so nothing could be shared between tasks.")]
    coupling = model.selection_.get("coupling")
    if coupling is None:
        return []
    if coupling["decision"] == "none" and "statistic" in coupling:
        return [
            Caution(
                "Tasks clustered apart",
                f"Every task was clustered on its own: {coupling['reason']}. Cluster ids were matched afterwards. "
                "--coupling full couples them all the same.",
            )
        ]
    if "statistic" not in coupling and coupling["decision"] not in ("none", 0):
        return [
            Caution(
                "Coupling not tested",
                "Coupling was set by hand, so it was not tested whether the tasks' own data support it.",
            )
        ]
    hurt = [name for name, t in coupling.get("per_task", {}).items() if t > COUPLING_LIMIT]
    if hurt and coupling["decision"] != "none":
        return [
            Caution(
                "Negative transfer likely",
                f"The shared clusters fit the own rows of {_tasks(hurt)} clearly worse than clusters found there "
                "alone. What the other tasks have in common may not hold there; compare with --coupling none.",
            )
        ]
    return []


def _about_relationship(model: Any) -> list[Caution]:
    matrix = getattr(model, "task_correlation_", None)
    coupling = model.selection_.get("coupling", {})
    if matrix is None or len(matrix) < 2 or coupling.get("decision") in ("none", 0):
        return []
    strongest = np.where(np.eye(len(matrix), dtype=bool), -np.inf, matrix).max(axis=1)
    weak = [name for name, value in zip(model.tasks_, strongest) if value < WEAK_CORRELATION]
    if not weak:
        return []
    if len(weak) == len(model.tasks_):
        text = "No two tasks are clearly related"
    else:
        text = f"{_tasks(weak, begin=True)} {'has' if len(weak) == 1 else 'have'} little in common with any other task"
    return [
        Caution(
            "Weak relationship",
            f"{text} (correlation below {WEAK_CORRELATION}): sharing hardly matters there, and cluster ids may "
            "not mean the same as elsewhere.",
        )
    ]


def _about_sizes(model: Any) -> list[Caution]:
    found = []
    sizes = np.asarray(model.cluster_sizes_)
    rows = sizes.sum(axis=1)
    tiny = (sizes > 0) & ((sizes < TINY_ROWS) | (sizes < TINY_SHARE * rows[:, None]))
    places = [f"Cluster {c} of task {model.tasks_[i]} ({sizes[i, c]} rows)" for i, c in zip(*np.nonzero(tiny))]
    if places:
        found.append(
            Caution("Tiny clusters", f"{listing(places, 3)}: too few rows to say much about. Try fewer --clusters.")
        )
    small = [str(name) for name, n in zip(model.tasks_, rows) if n < FEW_ROWS * model.n_clusters_]
    if small:
        found.append(
            Caution(
                "Few rows",
                f"{_tasks(small, begin=True)} {'has' if len(small) == 1 else 'have'} fewer than {FEW_ROWS} rows per "
                "cluster; clusters there rest on very little.",
            )
        )
    return found


def _about_fit(model: Any) -> list[Caution]:
    found = []
    if not model.converged_:
        found.append(
            Caution(
                "Not converged",
                "The search was stopped before it settled; another --seed may give noticeably different clusters.",
            )
        )
    gaps = [row["gap"] for row in model.selection_.get("candidates", [])]
    if gaps and max(gaps) <= 0:
        found.append(
            Caution(
                "Hardly more than noise",
                "However the rows are compared, the clusters separate them no better than clusters of random noise of "
                "the same spread. With text this is common even where topics are real; with other data be doubtful.",
            )
        )
    return found
