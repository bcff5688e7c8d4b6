"""Missing values, handled in the open: filled in from the rows of the same task, and said in words.

Whether a value is missing becomes a feature of its own only where it goes together with other columns: then its absence
says something about the row (customers without a date of a last order have not ordered yet).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from mtclust.app.tables.columns import CategoryColumn, MissingColumn, TextColumn, centred
from mtclust.app.tables.kinds import Column
from mtclust.app.tables.parsing import Cells
from mtclust.app.wording import option
from mtclust.exceptions import TableError
from mtclust.util.names import listing

Array = NDArray[np.float64]

#: fewer missing values are never a feature
_LEAST_ROWS = 10
#: absence informs if it is correlated so much with a feature of another column, within tasks
_LEAST_CORRELATION = 0.15
#: and so much that it happens by chance with less than this probability, over all features that were looked at
_CHANCE = 1e-3
#: columns that a note names
_NAMED = 8
#: tasks that a note names
_TASKS = 3
#: features that are looked at
_MOST_FEATURES = 200


def informative(
    columns: Sequence[Column], cells: Mapping[str, Cells], tasks: NDArray[np.str_], scaling: str
) -> tuple[list[Column], dict[str, str]]:
    """The columns with features for absence where it informs, and for each of those the column it goes with."""
    gone = [column for column in columns if cells[column.name].missing.sum() >= _LEAST_ROWS]
    if not gone or len(columns) < 2 or any(isinstance(column, TextColumn) for column in columns):
        return list(columns), {}
    blocks = [centred(column.transform(cells[column.name], tasks), tasks) for column in columns]
    found, goes_with = list(columns), {}
    for column in gone:
        absent = cells[column.name]
        partner = _partner(centred(absent.missing[:, None].astype(float), tasks), column, columns, blocks)
        if partner is None:
            continue
        goes_with[column.name] = partner
        if isinstance(column, CategoryColumn):
            found[found.index(column)] = CategoryColumn.learn(absent, scaling, tasks, missing_level=True)
        else:
            found.append(MissingColumn.learn(absent, scaling))
    return found, goes_with


def _partner(absence: Array, column: Column, columns: Sequence[Column], blocks: Sequence[Array]) -> str | None:
    """The other column that absence goes together with most, if it does so beyond chance."""
    others = [(other.name, block) for other, block in zip(columns, blocks) if other.name != column.name]
    names = [name for name, block in others for _ in range(block.shape[1])][:_MOST_FEATURES]
    features = np.column_stack([block for _, block in others])[:, :_MOST_FEATURES]
    length = np.linalg.norm(features, axis=0) * np.linalg.norm(absence)
    correlation = np.abs(absence[:, 0] @ features) / np.where(length > 0, length, np.inf)
    best = int(np.argmax(correlation))
    chance = len(names) * 2 * norm.sf(correlation[best] * np.sqrt(len(absence)))
    return names[best] if correlation[best] >= _LEAST_CORRELATION and chance < _CHANCE else None


def missing_notes(
    cells: Mapping[str, Cells], columns: Sequence[Column], goes_with: Mapping[str, str], tasks: NDArray[np.str_]
) -> list[str]:
    """What was done about missing values, in words."""
    kinds = {column.name: column for column in columns if not isinstance(column, MissingColumn)}
    said: dict[str, list[str]] = {}
    for name, column in kinds.items():
        count = int(cells[name].missing.sum())
        if not count:
            continue
        words = {
            "number": "the median of the task",
            "date": "the median of the task",
            "text": "no words",
            "topics": "no words",
        }
        how = words.get(column.kind, "the shares of the task")
        unknown = sorted(set(tasks[cells[name].missing].tolist()) - set(getattr(column, "fills", tasks)))
        if isinstance(column, CategoryColumn) and name in goes_with:
            how, unknown = "a level of their own", []
        nowhere = f"; none is known in {listing(unknown, _TASKS)}: there from all rows" if unknown else ""
        said.setdefault(how, []).append(f"{name} ({count}{nowhere})")
    if not said:
        return []
    filled = "; ".join(f"by {how}: {_some(names)}" for how, names in said.items())
    notes = [f"Missing values were filled in {filled}."]
    if goes_with:
        pairs = _some([f"{name} with {other}" for name, other in goes_with.items()])
        notes.append(
            f"Absence goes together with another column, so that it counts as something known of the row: {pairs}."
        )
    return notes


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more columns" if more > 0 else "")


def refuse_missing(incomplete: Sequence[Cells]) -> None:
    """Say which values are missing, where they are not to be filled in."""
    shown = ", ".join(f"{cells.name} ({int(cells.missing.sum())} rows)" for cells in incomplete)
    raise TableError(
        f"values are missing in: {shown}. Let them be filled in ({option('impute')}: numbers and dates by the median "
        f"of the task, categories by its shares, text as empty), or leave columns out ({option('columns')})."
    )
