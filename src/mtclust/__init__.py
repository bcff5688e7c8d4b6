"""mtclust: cluster several related data sets at once, and see how they are related."""

from mtclust.tasks import split_by_task, stack_tasks

__version__ = "0.1.0"

__all__ = ["__version__", "split_by_task", "stack_tasks"]
