"""labels.csv: the cluster of every row."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mtclust.app.commands.output import write_csv
from mtclust.exceptions import CommandError

#: columns that are written beside the keys
_OWN = ("task", "cluster", "margin")
#: and those that only rows which were clustered have
_MORE = ("probability", "stability", "outlier", "alone")


def check_keys(keys: Sequence[str]) -> None:
    """Refuse key columns whose names the result needs itself."""
    clash = sorted(set(keys) & {*_OWN, *_MORE})
    if clash:
        raise CommandError(f"--key {clash[0]!r} clashes with a column of labels.csv; rename it in the file.")


def labels_csv(
    table: Any, keys: Sequence[str], labels: Any, margins: Any, more: Mapping[str, Any] | None = None, *, safe: bool
) -> str:
    """What labels.csv holds: what names the row, its task, its cluster (number or name) and how clear that is.

    ``more`` are further columns.
    """
    from mtclust.app.tables.parsing import column_strings

    names = [column_strings(table.frame[key]) for key in keys]
    header = [*keys, *_OWN, *(more or {})]
    if not keys:
        names, header = [table.row_numbers.tolist()], ["row", *header]
    columns = [*names, table.tasks, labels.tolist(), [_short(value) for value in margins]]
    for values in (more or {}).values():
        number = values.dtype.kind == "f"
        columns.append([_short(value) for value in values] if number else values.tolist())
    text = io.StringIO(newline="")
    write_csv(text, header, zip(*columns), safe=safe)
    return text.getvalue()


def _short(margin: float) -> str:
    """Four decimals; nothing where there is no other cluster to compare with."""
    return f"{margin:.4f}" if np.isfinite(margin) else ""
