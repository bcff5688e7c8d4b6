"""Running steps on the chunks of a Dask collection: with the current distributed client, or Dask's local scheduler.

Steps are pure functions of the chunks and of small parameters that lie in the graph itself. What a step leaves at the
workers (labels) can therefore be computed again from there: losing a worker costs time and nothing else.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, TypeVar

from mtclust.exceptions import ClusterLostError
from mtclust.util.system import available_memory, readable, require

T = TypeVar("T")

#: seconds in which no worker does anything after which a fit gives up; ``mtclust.patience`` of Dask's configuration
#: changes it
PATIENCE = 60.0
#: seconds after which what a worker said of itself is old
_SILENCE = 10.0
#: states of a step that is being run or whose data are on their way
_UNDER_WAY = ("executing", "long-running", "ready", "flight")
#: results merged at once on their way to the driver
_FAN_IN = 16


class Engine:
    """Runs delayed steps."""

    def __init__(self) -> None:
        self._dask = require("dask", "dask")
        self.client = _current_client(self._dask)
        self._limits: dict[str, int] = {}
        self.patience = float(self._dask.utils.parse_timedelta(self._dask.config.get("mtclust.patience", PATIENCE)))

    def step(self, function: Callable[..., Any], *arguments: Any, at: tuple[str, ...] = ()) -> Any:
        """A step to run later; lists of steps among the arguments become lists of their results.

        It runs on one of the workers ``at`` while any of them lives.
        """
        if not at:
            return self._dask.delayed(function, pure=False, traverse=False)(*arguments)
        with self._dask.annotate(workers=list(at), allow_other_workers=True):
            return self._dask.delayed(function, pure=False, traverse=False)(*arguments)

    def homes(self, parts: Sequence[Any]) -> list[tuple[str, ...]]:
        """The workers that hold these chunks; none for chunks that are made when they are needed.

        Left alone, Dask would now and then move a chunk to a worker that happens to be idle.
        """
        if self.client is None:
            return [()] * len(parts)
        keys = [[part.key, *_held_under(part)] for part in parts]
        with self._explained():
            places = self.client.sync(self.client.scheduler.who_has, keys=[key for own in keys for key in own])
        return [tuple(next((places[key] for key in own if places.get(key)), ())) for own in keys]

    def constant(self, value: Any) -> Any:
        """Something that many steps need, sent once."""
        return self._dask.delayed(value, traverse=False)

    def keep(self, steps: Sequence[Any]) -> list[Any]:
        """Run steps and leave their results where they are."""
        with self._explained():
            return list(self._dask.persist(*steps)) if steps else []

    def gather(self, steps: Sequence[Any]) -> list[Any]:
        """Run steps and bring their results here."""
        if not steps:
            return []
        with self._explained():
            if self.client is None:
                return list(self._dask.compute(*steps))
            self._workers()  # those that are there, to know later whether some are gone
            futures = self.client.compute(list(steps))
            self._wait(futures)
            return list(self.client.gather(futures))

    def merged(self, steps: Sequence[T], merge: Callable[[list[Any]], Any]) -> T:
        """The results of steps merged on the way, neighbours first, always in the same order."""
        level = list(steps)
        while len(level) > 1:
            level = [self.step(merge, level[k : k + _FAN_IN]) for k in range(0, len(level), _FAN_IN)]
        return level[0]

    def memory(self) -> int | None:
        """Bytes the workers may use in all; None where that is not known."""
        if self.client is None:
            return available_memory()
        limits = [worker["memory_limit"] for worker in self._workers().values()]
        return sum(limits) if limits and all(limits) else None

    def _workers(self) -> dict[str, Any]:
        """What is known of the workers by their addresses; one that was ended and started again has another."""
        assert self.client is not None
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        self._limits |= {address: worker["memory_limit"] or 0 for address, worker in workers.items()}
        return workers

    def _wait(self, futures: list[Any]) -> None:
        """Until all are done; raises when nothing has moved on the cluster for too long."""
        distributed = sys.modules["distributed"]
        assert self.client is not None
        moved, done = time.monotonic(), 0
        while True:
            try:
                distributed.wait(futures, timeout=1.0)
                return
            except (TimeoutError, distributed.TimeoutError):
                pass
            finished = sum(future.done() for future in futures)
            running = self.client.status == "running"
            if finished > done or (running and any(self._works(worker) for worker in self._workers().values())):
                moved, done = time.monotonic(), finished
            elif time.monotonic() - moved > self.patience:
                what = self._standstill() if running else f"is {self.client.status}"
                raise ClusterLostError(
                    f"The Dask cluster {what} for more than {self.patience:g} s. Start workers or a new cluster and "
                    "fit again; raise mtclust.patience in Dask's configuration to wait longer."
                )

    def _works(self, worker: dict[str, Any]) -> bool:
        """Whether a worker does something; one that is short of memory pauses, perhaps for ever, and keeps its steps.

        One that has not been heard of for a while may be compiling, which leaves it no time to say so.
        """
        silent = time.time() - worker["last_seen"] > min(_SILENCE, 0.5 * self.patience)
        counts = worker["metrics"].get("task_counts", {"executing": 1})  # versions that do not count are trusted
        return worker["status"] == "running" and (silent or any(counts.get(state) for state in _UNDER_WAY))

    def _standstill(self) -> str:
        """Why a cluster that is there does nothing."""
        workers = list(self._workers().values())
        paused = sum(worker["status"] == "paused" for worker in workers)
        if paused:
            return (
                f"has {paused} of {len(workers)} workers paused for want of memory, with steps of the fit waiting for "
                "them (use smaller chunks or more memory per worker),"
            )
        still = "has done nothing" if workers else "has no worker"
        gone = len(self._limits) - len(workers)
        if gone <= 0:
            return still
        limit = max(self._limits.values())
        had = f", of which each had {readable(limit)}" if limit else ""
        return (
            f"{still}, and {gone} workers are gone, most often for want of memory{had} (use smaller chunks or more "
            "memory per worker),"
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of the cluster, as opposed to those of a step, in words that say what to do."""
        try:
            yield
        except ClusterLostError:
            raise
        except (Exception, CancelledError) as error:
            if self.client is None:
                raise
            distributed = sys.modules["distributed"]
            if isinstance(error, distributed.KilledWorker):
                raise ClusterLostError(
                    f"Workers died again and again while they ran a step of the fit ({error}). Most often their memory "
                    "is too small: use smaller chunks (rechunk, repartition) or more memory per worker."
                ) from error
            lost = (CancelledError, ConnectionError, distributed.CancelledError, distributed.comm.CommClosedError)
            if isinstance(error, lost) or self.client.status != "running":
                raise ClusterLostError(
                    f"The connection to the Dask cluster was lost ({type(error).__name__}: {error}). Connect a new "
                    "distributed.Client and fit again."
                ) from error
            raise


def _held_under(part: Any) -> list[Any]:
    """Keys under which a partition of a persisted frame may be held: the same number in another collection."""
    futures = sys.modules["distributed"].futures_of(part)
    return [future.key for future in futures if future.key[1:] == part.key[1:]] if isinstance(part.key, tuple) else []


def _current_client(dask: Any) -> Any:
    """The distributed client that Dask would use here, None for a local scheduler."""
    distributed = sys.modules.get("distributed")
    if distributed is None or dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None
