"""The kinds of columns, and how they are saved."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mtclust.app.tables.columns import CategoryColumn, DateColumn, MissingColumn, NumberColumn, TextColumn
from mtclust.app.tables.topics import TopicColumn

Column = NumberColumn | CategoryColumn | MissingColumn | DateColumn | TextColumn | TopicColumn
_KINDS: dict[str, type[Column]] = {
    kind.kind: kind for kind in (NumberColumn, CategoryColumn, MissingColumn, DateColumn, TextColumn, TopicColumn)
}


def column_to_dict(column: Column) -> dict[str, Any]:
    """A column in plain lists, numbers and strings."""
    return {"kind": column.kind} | asdict(column)


def column_from_dict(saved: dict[str, Any]) -> Column:
    """The column that :func:`column_to_dict` described."""
    values = {key: value for key, value in saved.items() if key != "kind"}
    kind = _KINDS[saved["kind"]]
    return TopicColumn.from_dict(values) if kind is TopicColumn else kind(**values)
