"""mtclust: cluster several related data sets at once, and see how they are related."""

from mtclust.estimators import DMTFC, DMTRC, DSTC
from mtclust.persistence import load
from mtclust.scoring import task_scorer
from mtclust.tasks import split_by_task, stack_tasks

__version__ = "0.1.0"

__all__ = ["DMTFC", "DMTRC", "DSTC", "__version__", "load", "split_by_task", "stack_tasks", "task_scorer"]
