"""What is said to users: names that come from their data, options as they write them, warnings, progress."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

T = TypeVar("T")
LOGGER = logging.getLogger("mtclust")
LOGGER.addHandler(logging.NullHandler())

#: options whose name on the command line is another one
_NAMES = {"task": "--task-column", "n_clusters": "--clusters", "keys": "--key", "new_tasks": "--new-task"}
#: packages whose lines are not the user's: our own, and those that stand between the user and us
_BETWEEN = {"mtclust", "importlib", "sklearn", "joblib", "numba", "dask", "distributed"}


def shown_name(name: Any, longest: int = 24) -> str:
    """A task's or column's name on one line: control characters spelled out, the middle of a long one left out.

    Both ends are kept, since names often differ only in the last characters.
    """
    text, tail = spelled_out(str(name)), (longest - 1) // 2
    return text if len(text) <= longest else text[: longest - 1 - tail] + "…" + text[len(text) - tail :]


def spelled_out(text: str) -> str:
    """A text in which nothing is hidden: control characters and marks that turn the order of reading are visible."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def distinct_names(names: Sequence[Any], longest: int = 24) -> list[str]:
    """Names as :func:`shown_name` has them, or whole where some would become the same."""
    texts = [spelled_out(str(name)) for name in names]
    shown = [shown_name(text, longest) for text in texts]
    return shown if len(set(shown)) == len(set(texts)) else texts


def listing(names: Sequence[Any], most: int = 4) -> str:
    """A few names in a sentence: a, b and c; a, b and 2 more."""
    texts = [str(name) for name in names]
    if len(texts) > most:
        texts[most:] = [f"{len(texts) - most} more"]
    return "".join(texts) if len(texts) < 2 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def how_many(count: Any, one: str, many: str = "") -> str:
    """A number of things: 1 row, 2 rows."""
    return f"{int(count)} {one if count == 1 else many or one + 's'}"


_on_command_line: ContextVar[bool] = ContextVar("on_command_line", default=False)


@contextmanager
def _having(variable: ContextVar[T], value: T) -> Iterator[None]:
    """The variable has this value inside the ``with`` block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def on_command_line() -> AbstractContextManager[None]:
    """Name options as the command line does, inside the ``with`` block."""
    return _having(_on_command_line, True)


def advice(in_python: str, on_line: str) -> str:
    """What to do about something, as the user of Python or of the command line would."""
    return on_line if _on_command_line.get() else in_python


def option(name: str, value: str = "") -> str:
    """An option as the user writes it: ``--text-column`` on the command line, ``text_column=`` in Python."""
    if not _on_command_line.get():
        value = value or ("True" if name == "new_tasks" else "")
        return f"{name}={value}" if value else name
    spelled = _NAMES.get(name, "--" + name.replace("_", "-"))
    return f"{spelled} {value}" if value else spelled


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn with the place outside the library that called it, however deep the warning comes from.

    The package that calls this function is not the user's either.
    """
    frame: Any = sys._getframe(1)
    level, passed = 2, {*_BETWEEN, frame.f_globals.get("__name__", "").partition(".")[0]}
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in passed:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


#: the estimator that is being fitted, its ``verbose``, and the phases it is in, the outermost first; every thread has
#: its own, so that two fits do not speak for each other
_under_way: ContextVar[tuple[str, int, tuple[str, ...]]] = ContextVar("under_way", default=("", 0, ()))


def reporting(estimator: BaseEstimator) -> AbstractContextManager[None]:
    """What happens inside the ``with`` block is the fit of this estimator."""
    return _having(_under_way, (type(estimator).__name__, int(estimator.verbose), ()))


@contextmanager
def phase(name: str) -> Iterator[None]:
    """A part of a fit, logged to "mtclust" at level INFO; phases inside it are named together with it.

    ``verbose=1`` prints outermost phases, 2 all of them.
    """
    estimator, verbose, outer = _under_way.get()
    phases = *outer, name
    LOGGER.info(", ".join(phases))
    if verbose > bool(outer):
        print(f"[{estimator}] {', '.join(phases)}", flush=True)
    with _having(_under_way, (estimator, verbose, phases)):
        yield


def counted(items: Iterable[T], name: str, total: int) -> Iterator[T]:
    """The items, each reported as a phase, one of ``total``, when it is taken, in whichever thread takes it."""
    outer = _under_way.get()
    for k, item in enumerate(items, start=1):
        with _having(_under_way, outer), phase(f"{name} {k} of {total}"):
            pass
        yield item
