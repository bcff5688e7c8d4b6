"""Public names that moved: the old place still gives them, and says where they are now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from mtclust._warnings import warn_user


def moved(old: str, new: str, names: Iterable[str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module whose ``names`` are in module ``new`` now."""
    allowed = frozenset(names)

    def find(name: str) -> Any:
        if name not in allowed:
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        warn_user(f"{old}.{name} is {new}.{name} now; the old place goes in version 1.0.", FutureWarning)
        return getattr(import_module(new), name)

    return find
