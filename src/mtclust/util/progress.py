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


def _report(fit: _UnderWay) -> None:
    """Log what is under way; ``verbose=1`` prints outermost phases, 2 all of them."""
    text = ", ".join(fit.phases)
    LOGGER.info(text)
    if fit.verbose and (len(fit.phases) == 1 or fit.verbose > 1):
        print(f"[{fit.name}] {text}", flush=True)


_NO_FIT = _UnderWay()
#: every thread has its own, so that two fits do not speak for each other
_under_way: ContextVar[_UnderWay] = ContextVar("under_way", default=_NO_FIT)


@contextmanager
def reporting(estimator: Any) -> Iterator[None]:
    """What happens inside the ``with`` block is the fit of this estimator."""
    token = _under_way.set(_UnderWay(type(estimator).__name__, int(estimator.verbose)))
    try:
        yield
    finally:
        _under_way.reset(token)


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
    estimator, verbose, phases = _under_way.get()
    now = _UnderWay(estimator, verbose, (*phases, name))
    token = _under_way.set(now)
    if verbose or LOGGER.isEnabledFor(logging.INFO):
        _report(now)
    try:
        yield
    finally:
        _under_way.reset(token)


def counted(items: Iterable[T], name: str, total: int) -> Iterator[T]:
    """The items, each reported as one of ``total`` when it is taken, in whichever thread takes it."""
    estimator, verbose, phases = _under_way.get()

    def taken() -> Iterator[T]:
        for k, item in enumerate(items, start=1):
            if verbose or LOGGER.isEnabledFor(logging.INFO):
                _report(_UnderWay(estimator, verbose, (*phases, f"{name} {k} of {total}")))
            yield item

    return taken()
