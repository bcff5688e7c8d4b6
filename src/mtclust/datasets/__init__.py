"""Data sets made of several tasks, bundled and generated; the paper's are in :mod:`mtclust.paper.datasets`."""

from mtclust._moved import moved as _moved
from mtclust.datasets._data import TaskData
from mtclust.datasets.digits import load_digits_tasks
from mtclust.datasets.synthetic import make_gaussian_tasks, make_related_tasks

__all__ = ["TaskData", "load_digits_tasks", "make_gaussian_tasks", "make_related_tasks"]

__getattr__ = _moved(
    __name__,
    "mtclust.paper.datasets",
    ("fetch_newsgroups_tasks", "fetch_pendigits", "fetch_pendigits_tasks", "fetch_sentiment_tasks"),
)
