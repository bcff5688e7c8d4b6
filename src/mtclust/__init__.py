"""mtclust: cluster several related data sets at once, and see how they are related."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from mtclust.app.cluster import cluster, load
    from mtclust.app.clustering import Clustering
    from mtclust.core.tasks import split_by_task, stack_tasks
    from mtclust.estimators import DMTFC, DMTRC, DSTC
    from mtclust.scoring import task_scorer

__version__ = "0.3.0"

__all__ = [
    "DMTFC", "DMTRC", "DSTC", "Clustering", "__version__", "cluster", "load", "split_by_task", "stack_tasks",
    "task_scorer",
]  # fmt: skip

#: imported when first asked for: a model needs no tables, and the version and the help of the command line no model
_LATER = {
    "Clustering": "mtclust.app.clustering", "cluster": "mtclust.app.cluster", "load": "mtclust.app.cluster",
    "DMTFC": "mtclust.estimators", "DMTRC": "mtclust.estimators", "DSTC": "mtclust.estimators",
    "split_by_task": "mtclust.core.tasks", "stack_tasks": "mtclust.core.tasks", "task_scorer": "mtclust.scoring",
}  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"_Any", "_TYPE_CHECKING"})
