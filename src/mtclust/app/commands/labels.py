"""labels.csv: the cluster of every row."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from mtclust.app.commands.output import write_csv
from mtclust.exceptions import CommandError

#: columns that are written beside the keys
_OWN = ("task", "cluster", "margin")


def check_keys(keys: Sequence[str]) -> None:
    """Refuse key columns whose names the result needs itself."""
    clash = sorted(set(keys) & set(_OWN))
    if clash:
        raise CommandError(f"--key {clash[0]!r} clashes with a column of labels.csv; rename it in the file.")


def labels_csv(table: Any, keys: Sequence[str], labels: Any, margins: Any, *, safe: bool) -> str:
    """What labels.csv holds: what names the row, its task, its cluster (number or name) and how clear that is."""
    from mtclust.app.tables.parsing import column_strings

    names = [column_strings(table.frame[key]) for key in keys]
    header = [*keys, *_OWN]
    if not keys:
        names, header = [table.row_numbers.tolist()], ["row", *header]
    columns = [*names, table.tasks, labels.tolist(), [_short(value) for value in margins]]
    text = io.StringIO(newline="")
    write_csv(text, header, zip(*columns), safe=safe)
    return text.getvalue()


def _short(margin: float) -> str:
    """Four decimals; nothing where there is no other cluster to compare with."""
    return f"{margin:.4f}" if np.isfinite(margin) else ""
