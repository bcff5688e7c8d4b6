"""What an option is called: ``--text-column`` on the command line, ``text_column=`` in Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ON_COMMAND_LINE: ContextVar[bool] = ContextVar("on_command_line", default=False)
#: options whose name on the command line is another one
_NAMES = {"task": "--task-column", "n_clusters": "--clusters", "keys": "--key", "new_tasks": "--new-task"}
#: options that are said or not said
_FLAGS = ("common_columns", "impute", "new_tasks")


@contextmanager
def on_command_line() -> Iterator[None]:
    """Name options as the command line does, inside the ``with`` block."""
    token = _ON_COMMAND_LINE.set(True)
    try:
        yield
    finally:
        _ON_COMMAND_LINE.reset(token)


def advice(in_python: str, on_line: str) -> str:
    """What to do about something, as the user of Python or of the command line would."""
    return on_line if _ON_COMMAND_LINE.get() else in_python


def option(name: str, value: str = "") -> str:
    """An option as the user writes it.

    Parameters
    ----------
    name : str
        In Python.
    value : str
        What it is given.

    Examples
    --------
    >>> option("text_column", "'review'"), option("keys")
    ("text_column='review'", 'keys')
    >>> with on_command_line():
    ...     option("text_column", "'review'"), option("keys")
    ("--text-column 'review'", '--key')
    """
    if not _ON_COMMAND_LINE.get():
        value = value or ("True" if name in _FLAGS else "")
        return f"{name}={value}" if value else name
    spelled = _NAMES.get(name, "--" + name.replace("_", "-"))
    return f"{spelled} {value}" if value else spelled
