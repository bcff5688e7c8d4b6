"""One fit of one method, as the values of table rows: our three models and the paper's reference methods."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.datasets import TaskData
from mtclust.metrics import nmi, per_task
from paper.experiments.runner import Outcome
from paper.reference import REFERENCE_METHODS

OURS: Mapping[str, Any] = {"DSTC": DSTC, "DMTFC": DMTFC, "DMTRC": DMTRC}
#: the rows that a fit with everything chosen without labels gives; of DMTRC those of the paper's model, always coupled,
#: and of our default, which may refuse to couple
ROWS_OF = {"DSTC": ("DSTC",), "DMTFC": ("DMTFC",), "DMTRC": ("DMTRC", "DMTRC auto")}
#: decimals of Ω in the table
_OMEGA_DECIMALS = 4


def n_classes(data: TaskData) -> int:
    """The largest number of classes of a task."""
    return max(len(np.unique(data.target[data.tasks == task])) for task in np.unique(data.tasks))


def true_sizes(data: TaskData) -> Any:
    """The rows of every class, as the paper gives them: "balanced", or task → sizes in the order of the classes."""
    counts = {task: np.unique(data.target[data.tasks == task], return_counts=True)[1] for task in np.unique(data.tasks)}
    if all(len(set(sizes.tolist())) == 1 for sizes in counts.values()):
        return "balanced"
    return {task: sizes.tolist() for task, sizes in counts.items()}


def scores(data: TaskData, labels: Any, rows: Any = ...) -> dict[str, Any]:
    """``nmi`` and ``nmi_per_task`` of labels, which may be those of some rows."""
    by_task = per_task(nmi, data.target[rows], labels, data.tasks[rows])
    found = {str(task): value for task, value in by_task.items()}
    return {"nmi": float(np.mean(list(found.values()))), "nmi_per_task": found}


def fit_ours(name: str, data: TaskData, seed: int, *, keep_as: str | None = None, **options: Any) -> list[Outcome]:
    """Fit DSTC, DMTFC or DMTRC; what ``options`` leaves open is chosen without labels.

    The outcomes are those of :data:`ROWS_OF`, or one if the coupling is given. D of DMTFC is kept under the name
    ``keep_as``, for the figures.
    """
    warm_up()
    model = OURS[name](n_classes(data), random_state=seed, **options)
    begin = time.process_time()
    model.fit(data.data, tasks=data.tasks)
    seconds = time.process_time() - begin
    selection = model.selection_
    chosen = {key: selection[key] for key in ("width", "lambda1", "lambda2", "n_components") if key in selection}
    chosen |= {"sizes": "free"} if str(selection.sizes) == "free" else {}
    common: dict[str, Any] = {"seconds": seconds, "chosen": chosen}
    details: dict[str, Any] = {"nmi_alone": scores(data, model.single_task_labels_)["nmi"]}
    arrays = {}
    if name == "DMTFC":
        D = model.feature_covariance_
        details["off_diagonal"], details["off_diagonal_null"] = off_diagonal_share(D)
        arrays = {keep_as: D} if keep_as else {}
    own = {"objective": model.objective_, **common, **scores(data, model.labels_)}
    choice = selection["coupling"] if name == "DMTRC" else {}
    if "coupled_labels" in choice:
        accepted = choice["decision"] == "full"
        details |= {"Z": choice["statistic"], "V": choice["similarity"], "accepted": accepted}
        coupled = scores(data, choice["coupled_labels"]) | {"objective": model.objective_ if accepted else None}
        omega = np.round(choice["task_covariance"], _OMEGA_DECIMALS).tolist()
        return [
            Outcome("DMTRC", **common, **coupled, details=details | {"omega": omega}),
            Outcome("DMTRC auto", details=details, **own),
        ]
    if name == "DMTRC":
        details["omega"] = np.round(model.task_covariance_, _OMEGA_DECIMALS).tolist()
    return [Outcome(name, details=details, arrays=arrays, **own)]


@cache
def warm_up() -> None:
    """Compile, or load, the numba loops once per process, so that no row's time holds it."""
    X = np.arange(24.0).reshape(12, 2)
    for estimator in OURS.values():
        estimator(2, kernel="linear", lambda1=0.1, random_state=0).fit(X, tasks=np.repeat([0, 1], 6))


def fit_reference(name: str, data: TaskData, seed: int, n_init: int, **setting: Any) -> list[Outcome]:
    """Fit a reference method: the run with the lowest own objective of ``n_init``, and the mean over all of them."""
    method = REFERENCE_METHODS[name]
    begin = time.process_time()
    found = method.fit(data.data, data.tasks, n_classes(data), n_init=n_init, seed=seed, **setting)
    return [
        Outcome(
            name,
            seconds=time.process_time() - begin,
            nmi_of_starts=float(np.mean([scores(data, labels)["nmi"] for labels in found.starts])),
            objective=found.objective,
            chosen={**method.default, **setting, "n_init": n_init},
            **scores(data, found.labels),
        )
    ]


def off_diagonal_share(matrix: NDArray[np.float64]) -> tuple[float, float]:
    """Share of the squared entries of D that is off its diagonal, and what it is in random axes.

    0 for independent features. In random axes, that is for QDQᵀ with Q uniform on the rotations, it only tells the
    eigenvalues: E Σ_i D_ii² = (2|D|² + (tr D)²)/(d + 2), so a D of low rank has a large share whatever it has learned.
    """
    total = float((matrix**2).sum())
    chance = 1 - (2 + float(np.trace(matrix)) ** 2 / total) / (len(matrix) + 2)
    return 1 - float((np.diag(matrix) ** 2).sum()) / total, chance
