"""How the tasks are related: which matrix to show, in which order, and the tree of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import dendrogram, linkage
from scipy.spatial.distance import squareform

from mtclust.app.shown import natural_order
from mtclust.estimators.facts import likeness_of_tasks

Array = NDArray[np.float64]

#: tasks in pictures; of more, the largest
TASKS_SHOWN = 40
#: title and meaning of what says how alike tasks are
_IN_WORDS = {
    "correlation": (
        "Correlation between tasks",
        "Learned together with the clusters: 1 means that the same features make them in both tasks, 0 that the two "
        "have nothing in common.",
    ),
    "shares": (
        "Similarity of the tasks' shares of clusters",
        "All tasks have one model here, so that they differ in how many rows of each cluster they have. Shown is how "
        "alike these shares are: 1 is the same, 0 no cluster in common.",
    ),
    "similarity": (
        "Similarity of the tasks' clusters",
        "No correlation was learned here. Shown is how alike the centres of the matched clusters are: 1 is the same, 0 "
        "unrelated.",
    ),
}


@dataclass(frozen=True)
class Relationship:
    """What is drawn about the tasks.

    Attributes
    ----------
    title, meaning : str
        What the matrix is, in a few words and in a sentence.
    shown : list of int
        The tasks drawn, in the order of the tree: related ones beside each other.
    matrix : ndarray
        Between the tasks drawn.
    links : list of dict
        Joints of the tree: the branches at the leaves ``low`` and ``high`` (counted from 0) begin at ``x_low`` and
        ``x_high`` and join at ``x``, a distance from 0 (the same) to 2.
    """

    title: str
    meaning: str
    shown: list[int]
    matrix: Array
    links: list[dict[str, float]]

    @property
    def quantity(self) -> str:
        """What the numbers of the matrix are."""
        return "correlation" if self.title.startswith("Correlation") else "similarity"


def task_relationship(model: Any, *, all_tasks: bool = False) -> Relationship | None:
    """The learned correlations of the tasks, or how alike their clusters or shares are where none were learned.

    Of very many tasks the largest, unless all are asked for.
    """
    m = len(model.tasks_)
    if m < 2:
        return None
    kind, matrix = likeness_of_tasks(model)
    assert matrix is not None
    title, meaning = _IN_WORDS[kind]
    sizes = np.asarray(model.cluster_sizes_).sum(axis=1)
    kept = np.arange(m) if all_tasks or m <= TASKS_SHOWN else np.sort(np.argsort(-sizes, kind="stable")[:TASKS_SHOWN])
    kept = kept[natural_order(model.tasks_[kept])]
    order, links = task_tree(matrix[np.ix_(kept, kept)])
    shown = kept[order]
    return Relationship(title, meaning, shown.tolist(), matrix[np.ix_(shown, shown)], links)


def task_tree(matrix: Array) -> tuple[list[int], list[dict[str, float]]]:
    """Average linkage of the distances 1 − correlation: the order of the leaves and the joints, leaves at 0, 1, …

    Examples
    --------
    >>> import numpy as np
    >>> order, links = task_tree(np.array([[1, 0.1, 0.8], [0.1, 1, 0.1], [0.8, 0.1, 1]]))
    >>> order, [round(link["x"], 2) for link in links]
    ([1, 0, 2], [0.2, 0.9])
    """
    distance = np.clip(1.0 - (matrix + matrix.T) / 2, 0.0, 2.0)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), method="average")
    drawn = dendrogram(tree, no_plot=True)
    links = [
        {
            "x": float(x[1]),
            "x_low": float(x[0]),
            "x_high": float(x[3]),
            "low": (float(y[0]) - 5) / 10,
            "high": (float(y[2]) - 5) / 10,
        }
        for y, x in sorted(zip(drawn["icoord"], drawn["dcoord"]), key=lambda pair: pair[1][1])
    ]
    return drawn["leaves"], links
