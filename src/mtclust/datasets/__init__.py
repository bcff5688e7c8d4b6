"""Data sets made of several tasks, bundled and generated; the paper's are in the folder ``paper`` of the repository."""

from mtclust.datasets.tasks import TaskData, load_digits_tasks, make_related_tasks

__all__ = ["TaskData", "load_digits_tasks", "make_related_tasks"]
