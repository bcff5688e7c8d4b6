"""Running steps on the chunks of a Dask collection: with the current distributed client, or Dask's local scheduler.

Steps are pure functions of the chunks and of small parameters that lie in the graph itself. What a step leaves at the
workers (labels) can therefore be computed again from there: losing a worker costs time and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from mtclust.exceptions import ClusterLostError
from mtclust.util.system import require

T = TypeVar("T")

#: results merged at once on their way to the driver
_FAN_IN = 16
_MEMORY = "Most often their memory is too small: use smaller chunks (rechunk, repartition) or more memory per worker."


class Engine:
    """Runs delayed steps."""

    def __init__(self) -> None:
        self._dask = require("dask", "dask")
        self.client: Any = None  # for a local scheduler
        if self._dask.config.get("scheduler", None) in (None, "dask.distributed", "distributed"):
            with suppress(KeyError, ValueError):  # there is none
                self.client = sys.modules["distributed"].get_client()

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
        keys = []
        futures_of = sys.modules["distributed"].futures_of
        for part in parts:
            # a partition of a persisted frame may be held under the same number in another collection
            others = [future.key for future in futures_of(part)]
            keys.append([part.key, *(key for key in others if key[1:] == part.key[1:])])
        with self._explained():
            places = self.client.sync(self.client.scheduler.who_has, keys=[key for own in keys for key in own])
        return [tuple(next((places[key] for key in own if places.get(key)), ())) for own in keys]

    def constant(self, value: Any) -> Any:
        """Something that many steps need, sent once."""
        return self._dask.delayed(value, traverse=False)

    def keep(self, steps: Sequence[Any]) -> list[Any]:
        """Run steps and leave their results where they are."""
        with self._explained():
            return list(self._dask.persist(*steps))

    def gather(self, steps: Sequence[Any]) -> list[Any]:
        """Run steps and bring their results here."""
        with self._explained():
            return list(self._dask.compute(*steps))

    def merged(self, steps: Sequence[T], merge: Callable[[list[Any]], Any]) -> T:
        """The results of steps merged on the way, neighbours first, always in the same order."""
        level = list(steps)
        while len(level) > 1:
            level = [self.step(merge, level[k : k + _FAN_IN]) for k in range(0, len(level), _FAN_IN)]
        return level[0]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of the cluster, as opposed to those of a step, in words that say what to do."""
        try:
            yield
        except (Exception, CancelledError) as error:
            if self.client is None:
                raise
            distributed = sys.modules["distributed"]
            gone = (distributed.scheduler.NoWorkerError, distributed.scheduler.NoValidWorkerError)
            lost = (CancelledError, ConnectionError, distributed.CancelledError, distributed.comm.CommClosedError)
            if isinstance(error, distributed.KilledWorker):
                what, way_out = "Workers died again and again while they ran a step of the fit", _MEMORY
            elif isinstance(error, gone):
                what, way_out = "The Dask cluster has no worker", "Start workers or a new cluster and fit again."
            elif isinstance(error, lost) or self.client.status != "running":
                what, way_out = "The connection to the Dask cluster was lost", "Connect a new Client and fit again."
            else:
                raise
            raise ClusterLostError(f"{what} ({type(error).__name__}: {error}). {way_out}") from error
