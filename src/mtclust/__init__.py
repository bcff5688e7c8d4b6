"""mtclust: cluster several related data sets at once, and see how they are related."""

from typing import TYPE_CHECKING, Any

from mtclust.estimators import DMTFC, DMTRC, DSTC
from mtclust.scoring import task_scorer
from mtclust.tasks import split_by_task, stack_tasks

if TYPE_CHECKING:
    from mtclust.persistence import load

__version__ = "0.1.0"

__all__ = ["DMTFC", "DMTRC", "DSTC", "__version__", "load", "split_by_task", "stack_tasks", "task_scorer"]


def __getattr__(name: str) -> Any:
    if name == "load":  # imported when first asked for: the format of files is not needed to fit
        from mtclust.persistence import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
