"""What a long fit is doing at the moment, told to whoever listens.

The parts of a fit say what they begin (:func:`phase`, :func:`counted`); listeners are the command line and ``verbose``.
Nobody listening costs a few microseconds a phase.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
Listener = Callable[[str], None]

#: seconds between two lines of ``verbose``
_SECONDS = 1.0

_listeners: list[Listener] = []
#: the phases under way, the outermost first; every thread has its own
_phases: ContextVar[tuple[str, ...]] = ContextVar("phases", default=())


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell ``listener`` of every phase that begins inside the ``with`` block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """A part of a fit; phases inside it are told together with it.

    Examples
    --------
    >>> with listening(print), phase("sizes"), phase("restarts"):
    ...     pass
    sizes
    sizes, restarts
    """
    token = _phases.set((*_phases.get(), name))
    try:
        text = ", ".join(_phases.get())
        for listener in tuple(_listeners):
            listener(text)
        yield
    finally:
        _phases.reset(token)


def counted(items: Iterable[T], name: str, total: int) -> Iterator[T]:
    """The items, each told as one of ``total`` when it is taken.

    Examples
    --------
    >>> with listening(print):
    ...     taken = list(counted("ab", "task", 2))
    task 1 of 2
    task 2 of 2
    """
    for k, item in enumerate(items, start=1):
        with phase(f"{name} {k} of {total}"):
            pass
        yield item


@contextmanager
def reporting(estimator: Any) -> Iterator[None]:
    """Print what a fit with ``verbose`` is doing, at most once a second."""
    last = time.monotonic()

    def print_now_and_then(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS:
            last = time.monotonic()
            print(f"[{type(estimator).__name__}] {text}", flush=True)

    if estimator.verbose:
        with listening(print_now_and_then):
            yield
    else:
        yield
