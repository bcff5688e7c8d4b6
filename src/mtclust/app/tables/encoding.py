"""From a table to the matrix that is clustered, and the same again for other rows.

Which columns are used, what each of them holds and how it is scaled is learned by ``fit``, kept as plain JSON and
repeated exactly by ``transform``. The order of rows, of columns and of tasks changes no digit of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.app.tables import screening
from mtclust.app.tables.columns import (
    CategoryColumn,
    Column,
    DateColumn,
    Feature,
    NumberColumn,
    TextColumn,
    TopicColumn,
    column_from_dict,
)
from mtclust.app.tables.table import Table
from mtclust.app.tables.values import MISSING, MOSTLY, Cells
from mtclust.core.tasks import strings_of
from mtclust.exceptions import TableError
from mtclust.util.messages import how_many, listing, option
from mtclust.util.system import pandas

#: version of the saved form
FORMAT = 3
#: a column of strings with more distinct values, or a value of its own in most rows, is no category but a name or text
MOST_LEVELS = 50
#: words per cell from which on a column is called free text
_TEXT_WORDS = 3


@dataclass
class TableEncoder:
    """The learned encoding of a table: how each column becomes features."""

    columns: list[Column]
    missing: list[str] = field(default_factory=lambda: list(MISSING))
    task_column: str | None = None
    #: what the user should know: columns left out, values filled in
    notes: list[str] = field(default_factory=list)
    #: what may be wrong with the table, and columns that were recognised as naming the rows; neither is saved
    doubts: list[str] = field(default_factory=list)
    identifiers: list[str] = field(default_factory=list)

    @classmethod
    def fit(cls, table: Table, **options: Any) -> TableEncoder:
        """Decide what each column holds and learn how it becomes features; options as :func:`mtclust.cluster` has them.

        Only ``missing`` are all cells that mean "not known".
        """
        learner = _Learner(table, **options)
        columns = learner.learned()
        encoder = cls(columns, list(learner.missing), table.task_column, identifiers=learner.identifiers)
        if learner.choosing:
            unrelated = screening.unrelated(columns, encoder.cells(table), learner.tasks)
            encoder.columns = [column for column in columns if column.name not in unrelated]
            learner.left_out |= dict.fromkeys(unrelated, "not associated with any other column")
        if not encoder.columns:
            left_out = [f"{name} ({reason})" for name, reason in learner.left_out.items()]
            raise TableError(f"no column is left to cluster by: {'; '.join(left_out) or 'the table has none'}.")
        used = {column.name for column in encoder.columns}
        encoder.doubts = screening.far_values_doubts({k: v for k, v in learner.numbers.items() if k in used})
        encoder.notes = learner.notes(encoder.columns) + encoder._filled_in(table)
        return encoder

    def cells(self, table: Table) -> list[Cells]:
        """The cells of the columns that are used."""
        return [table.cells(c.name, ("",) if isinstance(c, TextColumn) else tuple(self.missing)) for c in self.columns]

    def _filled_in(self, table: Table) -> list[str]:
        """What is said about missing values."""
        incomplete = [cells for cells in self.cells(table) if cells.missing.any()]
        named = listing([f"{cells.name} ({how_many(cells.missing.sum(), 'row')})" for cells in incomplete], 12)
        return [f"Missing values were filled in: {named}."] * bool(incomplete)

    def known(self, table: Table) -> NDArray[np.bool_] | None:
        """Which values of the matrix were in the table, of the others that were filled in; None where all were."""
        pairs = zip(self.columns, self.cells(table))
        known = [~cells.missing | isinstance(column, TextColumn) for column, cells in pairs]
        if all(own.all() for own in known):
            return None
        return np.repeat(np.stack(known, axis=1), [len(column.features) for column in self.columns], axis=1)

    def transform(self, table: Table) -> tuple[Any, list[str]]:
        """The matrix of a table's rows, and notes on values that had to be filled in or are not known."""
        absent = [column.name for column in self.columns if column.name not in table.frame.columns]
        if absent:
            raise TableError(
                f"the model needs columns that are not there: {', '.join(map(repr, absent))}. The columns are "
                f"{', '.join(map(repr, table.frame.columns))}."
            )
        notes, blocks, tasks = self._filled_in(table), [], strings_of(table.tasks)
        for column, cells in zip(self.columns, self.cells(table)):
            unknown = column.unknown(cells) if isinstance(column, CategoryColumn) else []
            if unknown:
                notes.append(
                    f"Column {column.name} has values that were not in the fitted table ({listing(unknown, 5)}); "
                    "they are treated as none of the known ones."
                )
            blocks.append(column.transform(cells, tasks))
        if any(sp.issparse(block) for block in blocks):
            return sp.csr_matrix(sp.hstack(blocks)), notes
        return np.column_stack(blocks), notes

    @property
    def features(self) -> list[Feature]:
        """What the columns of the matrix mean."""
        return [feature for column in self.columns for feature in column.features]

    def describe(self) -> str:
        """The columns by kind, in words."""
        kinds = {"number": "number", "category": "category", "date": "date", "text": "text column", "topics": "text"}
        counts = Counter(column.kind for column in self.columns)
        many = {"category": "categories"}
        found = [how_many(counts[kind], one, many.get(kind, "")) for kind, one in kinds.items() if counts[kind]]
        return listing(found, len(kinds))

    def to_dict(self) -> dict[str, Any]:
        """Everything that :meth:`transform` needs, in plain lists, numbers and strings."""
        return {
            "format": FORMAT,
            "missing": self.missing,
            "task_column": self.task_column,
            "columns": [{"kind": column.kind} | asdict(column) for column in self.columns],
            "notes": self.notes,
        }

    @classmethod
    def from_dict(cls, saved: Any) -> TableEncoder:
        """The encoder that :meth:`to_dict` described."""
        if not isinstance(saved, dict) or saved.get("format") != FORMAT:
            raise TableError("the model holds no encoding of a table that this version of mtclust reads; fit again.")
        try:
            columns = [column_from_dict(column) for column in saved["columns"]]
            return cls(columns, list(saved["missing"]), saved["task_column"], list(saved["notes"]))
        except (KeyError, TypeError) as error:
            raise TableError(f"the model's encoding is damaged ({error}); copy the file anew or fit again.") from error


@dataclass
class _Learner:
    """Looks at one column after the other, as the user wants it, and keeps what was decided."""

    table: Table
    columns: Sequence[str] | None = None
    text_column: str | None = None
    keys: Sequence[str] = ()
    categories: Sequence[str] = ()
    scale: str = "standard"
    missing: Sequence[str] = MISSING
    decimal: str | None = None
    date_format: str | None = None

    def __post_init__(self) -> None:
        for argument in ("keys", "categories", "columns", "text_column"):
            given = getattr(self, argument) or []
            self.table.require_columns([given] if isinstance(given, str) else list(given), option(argument))
        self.choosing = self.columns is None and self.text_column is None
        self.tasks = pandas.Categorical(strings_of(self.table.tasks))
        self.left_out: dict[str, str] = {}
        self.identifiers: list[str] = []
        self.numbers: dict[str, NDArray[np.float64]] = {}
        self._texts: list[str] = []
        self._read: list[str] = []
        self._odd: list[str] = []

    def learned(self) -> list[Column]:
        """Every column that can be used, and texts last; why the others are left out is kept."""
        if self.text_column is not None:
            return [TextColumn.learn(self.table.cells(self.text_column, ("",)))]
        every = [name for name in self.table.frame.columns if name not in self.keys]
        found: list[Column] = []
        for name in every if self.columns is None else dict.fromkeys(self.columns):
            learned = self._learn(self.table.cells(name, tuple(self.missing)))
            if isinstance(learned, str):
                self.left_out[name] = learned
            else:
                found.append(learned)
        alone = not found and len(self._texts) == 1
        for name in self._texts:  # free text: alone by its words, beside other columns by a few topics
            cells = self.table.cells(name, ("",))
            found.append(TextColumn.learn(cells) if alone else TopicColumn.learn_topics(cells, self.tasks))
            del self.left_out[name]
        return found

    def notes(self, columns: Sequence[Column]) -> list[str]:
        """Columns left out, cells that were read in an unusual way, and texts."""
        reasons: dict[str, list[str]] = {}
        for name, reason in self.left_out.items():
            reasons.setdefault(reason, []).append(name)
        ignored = "; ".join(f"{listing(names, 12)} ({reason})" for reason, names in reasons.items())
        odd = (
            f"Read as categories, since not all cells are numbers: {listing(self._odd, 5)}. If these cells mean 'not "
            f"known', say so ({option('missing')})."
        )
        texts = [
            f"The text {column.name} is used by its main topics, weighted as one number; "
            f"{option('text_column', column.name)} uses it alone."
            for column in columns
            if isinstance(column, TopicColumn)
        ]
        read = [f"Columns ignored: {ignored}."] * bool(ignored)
        read += [f"Read as numbers: {'; '.join(self._read)}."] * bool(self._read)
        return read + [odd] * bool(self._odd) + texts

    def _learn(self, cells: Cells) -> Column | str:
        """How a column becomes features, or in words why it is left out."""
        n_known = int((~cells.missing).sum())
        if n_known == 0:
            return "empty in every row"
        if cells.distinct == 1:
            return f"the same in every row{' where it is known' if cells.missing.any() else ''}"
        if self.choosing and self._of_tasks(cells):
            return "the same in all rows of a task"
        if self.choosing and n_known < MOSTLY * len(cells.missing):
            return f"missing in {int(cells.missing.sum())} of {len(cells.missing)} rows"
        category = cells.name in self.categories
        numbers = None if category else cells.numbers(self.decimal)
        if self.choosing and not category:
            reason = screening.identifier(cells, None if numbers is None else numbers[0], np.asarray(self.tasks.codes))
            if reason is not None:
                return self._identified(cells, reason)
        if numbers is not None:
            self.numbers[cells.name], form = numbers
            first = int(np.argmax(~cells.missing))
            if form.unit or (form.written_out and form.decimal == "." and any(map(str.isalpha, cells.strings[first]))):
                self._read.append(f"{cells.name} ({cells.strings[first]!r} is {numbers[0][first]:,.10g})")
            return NumberColumn.learn(cells, *numbers, self.scale, self.tasks)
        dates = None if category else cells.dates(self.date_format)
        if dates is not None:
            return DateColumn.learn(cells, *dates, self.scale, self.tasks)
        odd = "" if category else cells.odd_among_numbers()
        if odd:
            self._odd.append(f"{cells.name} ({odd})")
        own = n_known >= screening.LEAST_COUNT and cells.distinct > MOSTLY * n_known
        if category or (cells.distinct <= MOST_LEVELS and not own):
            return CategoryColumn.learn(cells, self.scale, self.tasks)
        return self._names_or_text(cells, n_known)

    def _names_or_text(self, cells: Cells, n_known: int) -> str:
        """Why a column of strings that is no category is left out; free text is used later."""
        texts = [value.split() for value in cells.strings[~cells.missing]]
        words = sum(map(len, texts)) / n_known
        hint = f"give {option('keys')} if it is a name, {option('categories')} if it is a category"
        if words < _TEXT_WORDS and cells.distinct > screening.NEARLY * n_known and self.choosing:
            return self._identified(cells, "different in nearly every row")
        if words >= _TEXT_WORDS:
            hint = f"give {option('text_column', cells.name)} if it is free text"
            if _repeats_words(texts):
                self._texts.append(cells.name)
        reason = f"{cells.distinct} distinct values; {hint}"
        if not self.choosing:
            raise TableError(
                f"{option('columns')} names {cells.name!r}, which is neither numbers nor dates and has {reason}."
            )
        return reason

    def _identified(self, cells: Cells, reason: str) -> str:
        """Keep a column that names every row, to find the rows again."""
        if cells.distinct == len(cells.missing):
            self.identifiers.append(cells.name)
        return reason

    def _of_tasks(self, cells: Cells) -> bool:
        """Whether a column says nothing of rows but which task, or group of tasks, they belong to."""
        if cells.distinct > len(self.tasks.categories):
            return False
        tasks = np.asarray(self.tasks.codes)[~cells.missing]
        owners, pairs = set(tasks.tolist()), set(zip(tasks.tolist(), cells.known.tolist()))
        return 1 < len(owners) == len(pairs) and len(tasks) >= screening.LEAST_OF_TASK * len(owners)


def _repeats_words(texts: Sequence[list[str]]) -> bool:
    """Whether texts share words, as sentences do; names and addresses hardly do."""
    different = [{word.lower() for word in words} for words in texts]
    counts = Counter(word for words in different for word in words)
    common = {word for word, times in counts.items() if times >= max(3, len(texts) / 100)}
    return bool(np.mean([len(words & common) / max(len(words), 1) for words in different]) >= MOSTLY)
