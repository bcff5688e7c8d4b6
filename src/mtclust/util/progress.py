"""What a long fit is doing: on the logger "mtclust" at level INFO, and printed by estimators with ``verbose``."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
LOGGER = logging.getLogger("mtclust")
LOGGER.addHandler(logging.NullHandler())


class _UnderWay(NamedTuple):
    """The estimator that is being fitted, its ``verbose``, and the phases it is in, the outermost first."""

    name: str = ""
    verbose: int = 0
    phases: tuple[str, ...] = ()

    def inside(self, phase: str) -> _UnderWay:
        """The same fit in one more phase, which is logged; ``verbose=1`` prints outermost phases, 2 all of them."""
        phases = (*self.phases, phase)
        text = ", ".join(phases)
        LOGGER.info(text)
        if self.verbose and (len(phases) == 1 or self.verbose > 1):
            print(f"[{self.name}] {text}", flush=True)
        return self._replace(phases=phases)


_NO_FIT = _UnderWay()
#: every thread has its own, so that two fits do not speak for each other
_under_way: ContextVar[_UnderWay] = ContextVar("under_way", default=_NO_FIT)


@contextmanager
def _now(under_way: _UnderWay) -> Iterator[None]:
    token = _under_way.set(under_way)
    try:
        yield
    finally:
        _under_way.reset(token)


@contextmanager
def reporting(estimator: Any) -> Iterator[None]:
    """What happens inside the ``with`` block is the fit of this estimator."""
    with _now(_UnderWay(type(estimator).__name__, int(estimator.verbose))):
        yield


@contextmanager
def phase(name: str) -> Iterator[None]:
    """A part of a fit; phases inside it are named together with it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> with reporting(SimpleNamespace(verbose=2)), phase("sizes"), phase("restarts"):
    ...     pass
    [SimpleNamespace] sizes
    [SimpleNamespace] sizes, restarts
    """
    with _now(_under_way.get().inside(name)):
        yield


def counted(items: Iterable[T], name: str, total: int) -> Iterator[T]:
    """The items, each reported as one of ``total`` when it is taken, in whichever thread takes it."""
    under_way = _under_way.get()

    def taken() -> Iterator[T]:
        for k, item in enumerate(items, start=1):
            under_way.inside(f"{name} {k} of {total}")
            yield item

    return taken()
