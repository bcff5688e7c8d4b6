"""From a table to the matrix that is clustered, and the same again for other rows.

Which columns are used, what each of them holds and how it is scaled is learned by ``fit``, kept as plain JSON and
repeated exactly by ``transform``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.app.tables.columns import (
    MISSING_LEVEL,
    CategoryColumn,
    Column,
    DateColumn,
    Feature,
    MissingColumn,
    NumberColumn,
    TextColumn,
    TopicColumn,
    column_from_dict,
    column_to_dict,
)
from mtclust.app.tables.screening import (
    UNASSOCIATED,
    far_values_doubts,
    identifier,
    informative,
    level_notes,
    missing_notes,
    refuse_missing,
    unrelated,
)
from mtclust.app.tables.table import Table
from mtclust.app.tables.values import (
    BOUNDS,
    MISSING,
    MIXED,
    Cells,
    odd_among_numbers,
    read_cells,
    read_dates,
    read_numbers,
)
from mtclust.core.ids import strings_of
from mtclust.exceptions import TableError
from mtclust.util.messages import option

#: version of the saved form
FORMAT = 2
#: a column of strings with more distinct values is no category but a name or free text
MOST_LEVELS = 50
#: neither is one, in a table of at least so many rows, where more than this share of the rows has a value of its own
_FEW_ROWS, _MOST_DISTINCT = 10, 0.5
#: a name or code is another one in nearly every row, that is in this share of them
_NEARLY = 0.9
#: words per cell from which on a column is called free text
_TEXT_WORDS = 3
#: text repeats itself: so much of a cell are words that so many of the cells have
_COMMON_SHARE, _COMMON_WORD = 0.5, 0.01
#: columns that a note names for one reason
_NAMED = 12
#: rows of a task, on average, that could have differed in a column that is the same in all of them
_ROWS_TO_DIFFER = 5
#: a column that is known in a smaller share of the rows is left out
_LEAST_KNOWN = 0.5


@dataclass(frozen=True)
class EncodingOptions:
    """What the user says about the columns.

    Attributes
    ----------
    columns : sequence of str or None
        The columns to use; None for all that can be.
    text_column : str or None
        The one column of text to use.
    keys : sequence of str
        Columns that name a row and are not used.
    categories : sequence of str
        Columns of numbers that are names, such as postcodes.
    impute : bool
        Fill in missing values; without, they are refused.
    scaling : {"standard", "range", "none"}
    missing : sequence of str
        Cells that mean "not known".
    decimal, date_format : str or None
        None is recognised.
    """

    columns: Sequence[str] | None = None
    text_column: str | None = None
    keys: Sequence[str] = ()
    categories: Sequence[str] = ()
    impute: bool = True
    scaling: str = "standard"
    missing: Sequence[str] = MISSING
    decimal: str | None = None
    date_format: str | None = None


@dataclass
class TableEncoder:
    """The learned encoding of a table.

    Attributes
    ----------
    columns : list
        How each column becomes features.
    impute : bool
    missing : list of str
    task_column : str or None
    notes : list of str
        What the user should know: columns left out, values filled in.
    doubts : list of str
        What may be wrong with the table; not saved.
    identifiers : list of str
        Columns that were recognised as naming the rows; not saved.
    """

    columns: list[Column]
    impute: bool = True
    missing: list[str] = field(default_factory=lambda: list(MISSING))
    task_column: str | None = None
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    identifiers: list[str] = field(default_factory=list)

    @classmethod
    def fit(cls, table: Table, options: EncodingOptions) -> TableEncoder:
        """Decide what each column holds and learn how it becomes features."""
        encoder = cls([], options.impute, list(options.missing), table.task_column)
        named = _named_columns(table, options)
        learner = _Learner(table, options, asked_for=named is not None)
        for name in named if named is not None else [c for c in table.frame.columns if c not in options.keys]:
            learner.add(name)
        if named is None:
            learner.add_texts()
            learner.leave_out_unrelated()
        if not learner.columns:
            left_out = [f"{name} ({reason})" for name, reason in learner.left_out.items()]
            raise TableError(f"no column is left to cluster by: {'; '.join(left_out) or 'the table has none'}.")
        incomplete = [cells for cells in learner.cells.values() if cells.missing.any()]
        if incomplete and not options.impute:
            refuse_missing(incomplete)
        tasks = strings_of(table.tasks)
        encoder.columns, goes_with = informative(learner.columns, learner.cells, tasks, options.scaling)
        levels = {column.name: column.levels for column in encoder.columns if isinstance(column, CategoryColumn)}
        filled = missing_notes(learner.cells, encoder.columns, goes_with, tasks)
        encoder.notes = [*learner.notes(), *level_notes(levels), *filled]
        encoder.doubts = learner.doubts()
        encoder.identifiers = learner.identifiers
        return encoder

    def known(self, table: Table) -> NDArray[np.bool_] | None:
        """Which values of the matrix were in the table, of the others that were filled in; None where all were."""
        blocks, all_known = [], True
        for column in self.columns:
            gone = read_cells(table.frame, column.name, table.row_numbers, self.missing).missing
            own_level = isinstance(column, MissingColumn | TextColumn | TopicColumn)
            if own_level or (isinstance(column, CategoryColumn) and MISSING_LEVEL in column.levels):
                gone = np.zeros_like(gone)
            all_known &= not gone.any()
            blocks.append(np.repeat(~gone[:, None], len(column.features), axis=1))
        return None if all_known else np.column_stack(blocks)

    def transform(self, table: Table, *, impute: bool | None = None) -> tuple[Any, list[str]]:
        """The matrix of a table's rows, and notes on values that had to be filled in or are not known."""
        absent = [column.name for column in self.columns if column.name not in table.frame.columns]
        if absent:
            raise TableError(
                f"the model needs columns that are not there: {', '.join(map(repr, absent))}. The columns are "
                f"{', '.join(map(repr, table.frame.columns))}."
            )
        notes: list[str] = []
        blocks: list[Any] = []
        incomplete: dict[str, Cells] = {}
        tasks = strings_of(table.tasks)
        for column in self.columns:
            tokens = ("",) if isinstance(column, TextColumn | TopicColumn) else self.missing
            cells = read_cells(table.frame, column.name, table.row_numbers, tokens)
            if cells.missing.any():
                incomplete[cells.name] = cells
            unknown = column.unknown(cells) if isinstance(column, CategoryColumn) else []
            if unknown:
                notes.append(
                    f"Column {column.name} has values that were not in the fitted table ({_some(unknown)}); "
                    "they are treated as none of the known ones."
                )
            blocks.append(column.transform(cells, tasks))
        if incomplete and not (self.impute if impute is None else impute):
            refuse_missing(list(incomplete.values()))
        if incomplete:
            notes.append(
                "Missing values were filled in: "
                + ", ".join(f"{cells.name} ({_rows(int(cells.missing.sum()))})" for cells in incomplete.values())
                + "."
            )
        if any(sp.issparse(block) for block in blocks):
            return sp.csr_matrix(sp.hstack(blocks)), notes
        return np.column_stack(blocks), notes

    @property
    def features(self) -> list[Feature]:
        """What the columns of the matrix mean."""
        return [feature for column in self.columns for feature in column.features]

    def describe(self) -> str:
        """The columns by kind, in words."""
        parts = []
        for kind, one, many in (
            ("number", "number", "numbers"), ("category", "category", "categories"),
            ("date", "date", "dates"), ("text", "text column", "text columns"),
            ("topics", "text", "texts"),
        ):  # fmt: skip
            count = sum(column.kind == kind for column in self.columns)
            if count:
                parts.append(f"{count} {one if count == 1 else many}")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Everything that :meth:`transform` needs, in plain lists, numbers and strings."""
        return {
            "format": FORMAT,
            "impute": self.impute,
            "missing": self.missing,
            "task_column": self.task_column,
            "columns": [column_to_dict(column) for column in self.columns],
            "notes": self.notes,
        }

    @classmethod
    def from_dict(cls, saved: Any) -> TableEncoder:
        """The encoder that :meth:`to_dict` described."""
        if not isinstance(saved, dict) or "format" not in saved:
            raise TableError("the model does not say how its table was encoded; it was not made from a table.")
        if saved["format"] != FORMAT:
            raise TableError(
                f"the model's table was encoded in format {saved['format']!r}; this version of mtclust reads {FORMAT}. "
                "Use the version that fitted it, or fit again."
            )
        try:
            columns = [column_from_dict(column) for column in saved["columns"]]
            known = list(saved["missing"]), saved["task_column"], list(saved["notes"])
            return cls(columns, bool(saved["impute"]), *known)
        except (KeyError, TypeError) as error:
            raise TableError(f"the model's encoding is damaged ({error}); copy the file anew or fit again.") from error


class _Learner:
    """Looks at one column after the other and keeps what was decided."""

    def __init__(self, table: Table, options: EncodingOptions, *, asked_for: bool) -> None:
        self._table, self._options, self._asked_for = table, options, asked_for
        self._tasks = strings_of(table.tasks)
        self.columns: list[Column] = []
        self.cells: dict[str, Cells] = {}
        self.left_out: dict[str, str] = {}
        self.texts: list[str] = []
        self.identifiers: list[str] = []
        self._read: list[str] = []
        self._topics: list[str] = []
        self._mixed_dates: list[str] = []
        self._odd: list[str] = []
        self._numbers: dict[str, Any] = {}

    def add(self, name: str) -> None:
        """Learn a column, or keep why it is left out."""
        if name == self._options.text_column:
            self.add_text(name)
            return
        cells = read_cells(self._table.frame, name, self._table.row_numbers, self._options.missing)
        learned = self._learn(cells)
        if isinstance(learned, str):
            self.left_out[name] = learned
            return
        self.columns.append(learned)
        self.cells[name] = cells

    def add_text(self, name: str) -> None:
        """Use a column as text, and nothing else."""
        self.cells[name] = read_cells(self._table.frame, name, self._table.row_numbers, ("",))
        self.columns.append(TextColumn.learn(self.cells[name]))
        self.left_out.pop(name, None)

    def add_texts(self) -> None:
        """Use free text: alone by its words, beside other columns by a few topics."""
        if not self.columns and len(self.texts) == 1:
            self.add_text(self.texts[0])
            return
        for name in self.texts:
            self.cells[name] = read_cells(self._table.frame, name, self._table.row_numbers, ("",))
            self.columns.append(TopicColumn.learn(self.cells[name], self._tasks))
            self.left_out.pop(name)
            self._topics.append(name)

    def leave_out_unrelated(self) -> None:
        """Leave out what cuts every table neatly and is associated with no other column."""
        gone = unrelated(self.columns, self.cells, self._tasks)
        self.columns = [column for column in self.columns if column.name not in gone]
        for name in gone:
            del self.cells[name]
            self.left_out[name] = UNASSOCIATED

    def notes(self) -> list[str]:
        """Columns left out, and numbers that were written in an unusual way."""
        found = []
        reasons: dict[str, list[str]] = {}
        for name, reason in self.left_out.items():
            reasons.setdefault(reason, []).append(name)
        if reasons:
            shown = [f"{_some(names, _NAMED)} ({reason})" for reason, names in reasons.items()]
            found.append(f"Columns ignored: {'; '.join(shown)}.")
        if self._read:
            found.append(f"Read as numbers: {'; '.join(self._read)}.")
        if self._odd:
            found.append(
                f"Read as categories, since not all cells are numbers: {_some(self._odd)}. If these cells mean 'not "
                f"known', say so ({option('missing')})."
            )
        if self._mixed_dates:
            found.append(f"Dates in more than one format were read: {_some(self._mixed_dates)}.")
        for name in self._topics:
            alone = option("text_column", name)
            found.append(f"The text {name} is used by its main topics, weighted as one number; {alone} uses it alone.")
        return found

    def doubts(self) -> list[str]:
        """Values that may mean "not known", or be errors."""
        used = {column.name: self._numbers[column.name] for column in self.columns if column.name in self._numbers}
        return far_values_doubts(used)

    def _learn(self, cells: Cells) -> Column | str:
        """How a column becomes features, or in words why it is left out."""
        options = self._options
        if cells.missing.all():
            return "empty in every row"
        if cells.distinct == 1:
            return f"the same in every row{' where it is known' if cells.missing.any() else ''}"
        if not self._asked_for and _of_tasks(cells, self._tasks):
            return "the same in all rows of a task"
        if cells.missing.mean() > 1 - _LEAST_KNOWN and not self._asked_for:
            return f"missing in {int(cells.missing.sum())} of {len(cells.missing)} rows"
        if cells.name not in options.categories:
            numbers = read_numbers(cells, options.decimal)
            if numbers is not None:
                return self._learn_numbers(cells, *numbers)
            dates = read_dates(cells, options.date_format)
            if dates is not None:
                self._mixed_dates += [cells.name] * (dates[1] == MIXED)
                return DateColumn.learn(cells, *dates, options.scaling, self._tasks)
            odd = odd_among_numbers(cells)
            if odd:
                self._odd.append(f"{cells.name} ({odd})")
        if self._is_category(cells):
            return CategoryColumn.learn(cells, options.scaling, self._tasks)
        words = float(np.mean([len(value.split()) for value in cells.strings[~cells.missing]]))
        hint = f"a name? {option('keys')}; a category? {option('categories')}"
        if words < _TEXT_WORDS and cells.distinct > _NEARLY * (~cells.missing).sum() and not self._asked_for:
            self._keep_identifier(cells)
            return "a name or code, another one in nearly every row"
        if words >= _TEXT_WORDS:
            hint = f"free text? {option('text_column', cells.name)}"
            if _repeats_words(cells):
                self.texts.append(cells.name)
        reason = f"{cells.distinct} distinct values; {hint}"
        if self._asked_for:
            raise TableError(
                f"{option('columns')} names {cells.name!r}, which is neither numbers nor dates and has {reason}."
            )
        return reason

    def _learn_numbers(self, cells: Cells, values: Any, form: Any) -> Column | str:
        reason = None if self._asked_for else identifier(cells.name, values, self._tasks)
        if reason is not None:
            self._keep_identifier(cells)
            return reason
        if form.written_out:
            bounds = np.array([cell[:1] in BOUNDS and cell != "" for cell in cells.strings])
            spelled = form.decimal == "." and any(c.isalpha() for c in cells.strings[0])
            if bounds.any() or form.unit or spelled:
                first = int(np.argmax(bounds if bounds.any() else ~cells.missing))
                self._read.append(f"{cells.name} ({cells.strings[first]!r} is {values[first]:,.10g})")
        self._numbers[cells.name] = values
        return NumberColumn.learn(cells, values, form, self._options.scaling, self._tasks)

    def _keep_identifier(self, cells: Cells) -> None:
        """Keep a column that names every row, to find the rows again."""
        if cells.distinct == len(cells.missing):
            self.identifiers.append(cells.name)

    def _is_category(self, cells: Cells) -> bool:
        if cells.name in self._options.categories:
            return True
        known = int((~cells.missing).sum())
        own = known >= _FEW_ROWS and cells.distinct > _MOST_DISTINCT * known
        return cells.distinct <= MOST_LEVELS and not own


def _rows(count: int) -> str:
    return f"{count} row{'s' if count != 1 else ''}"


def _of_tasks(cells: Cells, tasks: NDArray[np.str_]) -> bool:
    """Whether a column says nothing of rows but which task, or group of tasks, they belong to."""
    if cells.distinct > len(np.unique(tasks)):
        return False
    known = ~cells.missing
    pairs = set(zip(tasks[known].tolist(), cells.strings[known].tolist()))
    owners = {task for task, _ in pairs}
    return 1 < len(owners) == len(pairs) and int(known.sum()) >= _ROWS_TO_DIFFER * len(owners)


def _repeats_words(cells: Cells) -> bool:
    """Whether texts share words, as sentences do; names and addresses hardly do."""
    texts = [set(value.lower().split()) for value in cells.strings[~cells.missing]]
    counts = Counter(word for words in texts for word in words)
    common = {word for word, times in counts.items() if times >= max(3, _COMMON_WORD * len(texts))}
    return bool(np.mean([len(words & common) / max(len(words), 1) for words in texts]) >= _COMMON_SHARE)


def _named_columns(table: Table, options: EncodingOptions) -> list[str] | None:
    """The columns the user asked for, checked; None where they are left to us."""
    table.require_columns(list(options.keys), option("keys"))
    table.require_columns(list(options.categories), option("categories"))
    if options.text_column is not None:
        table.require_columns([options.text_column], option("text_column"))
        return [options.text_column]
    if options.columns is None:
        return None
    table.require_columns(list(options.columns), option("columns"))
    return list(dict.fromkeys(options.columns))


def _some(values: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(values[:most])
    return f"{shown} and {len(values) - most} more" if len(values) > most else shown
