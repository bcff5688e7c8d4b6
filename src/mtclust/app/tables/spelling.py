"""Names that are written in more than one way: New York, new york and Newyork; they are told, never joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

#: groups of names, and columns, that a note shows
_SHOWN = 3


def spelled_alike(names: Iterable[str]) -> list[list[str]]:
    """Groups of names that differ in nothing but capitals and spaces.

    Examples
    --------
    >>> spelled_alike(["New York", "Oslo", "Newyork"])
    [['New York', 'Newyork']]
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(set(map(str, names))):
        groups.setdefault("".join(name.split()).casefold(), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def task_notes(tasks: Iterable[str]) -> list[str]:
    """A note about tasks that may be one.

    Examples
    --------
    >>> task_notes(["Rome", "Oslo", "rome"])
    ["Tasks whose names differ only in capitals or spaces count as different tasks: 'Rome' and 'rome'."]
    """
    alike = spelled_alike(tasks)
    if not alike:
        return []
    return [f"Tasks whose names differ only in capitals or spaces count as different tasks: {_groups(alike)}."]


def level_notes(levels: Mapping[str, Sequence[str]]) -> list[str]:
    """A note about levels of categories that may be one; ``levels`` of every column.

    Examples
    --------
    >>> level_notes({"sex": ["F", "M", "f"], "city": ["Oslo"]})
    ["Levels that differ only in capitals or spaces count as different: sex ('F' and 'f')."]
    """
    alike = {column: found for column, own in levels.items() if (found := spelled_alike(own))}
    if not alike:
        return []
    shown = [f"{column} ({_groups(found)})" for column, found in list(alike.items())[:_SHOWN]]
    more = f" and {len(alike) - _SHOWN} more columns" if len(alike) > _SHOWN else ""
    return [f"Levels that differ only in capitals or spaces count as different: {', '.join(shown)}{more}."]


def _groups(alike: Sequence[Sequence[str]]) -> str:
    shown = [" and ".join(map(repr, group)) for group in alike[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(alike) - _SHOWN} more" if len(alike) > _SHOWN else "")
