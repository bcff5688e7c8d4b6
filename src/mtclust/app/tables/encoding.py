"""From a table to the matrix that is clustered, and the same again for other rows.

Which columns are used, what each of them holds and how it is scaled is learned by ``fit``, kept as plain JSON and
repeated exactly by ``transform``. The order of rows, of columns and of tasks changes no digit of it. Columns and cells
are looked at first, and what was found is said in words:

- *Identifiers* name rows instead of describing them: counters, account numbers, postcodes. They are ignored.
- *Association*: a coin flip cuts every table into two neat halves and says nothing about its rows. So a category, a
  date or a number with few different values is used only if some other column is associated with it: if rows that
  differ in it differ in the mean or the spread of another feature, in all tasks alike or in each task in its own way.
  In tables of many numbers the same is asked of every number with a single peak: the few that tell kinds of rows apart
  would drown.
- *Far values*, such as -999 for "not known" or a slipped decimal point, make the scale of a column so large that
  nothing else in it counts. They are never changed, but reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import chdtrc, erfc
from scipy.stats import kurtosis, skew

from mtclust.app.tables.columns import (
    CategoryColumn,
    Column,
    Feature,
    NumberColumn,
    TextColumn,
    TopicColumn,
    centred,
    column_from_dict,
)
from mtclust.app.tables.table import Table
from mtclust.app.tables.values import MISSING, MOSTLY, Cells
from mtclust.core import Array, Integers
from mtclust.core.tasks import strings_of
from mtclust.exceptions import TableError
from mtclust.persistence.schema import check_records
from mtclust.util.messages import advice, how_many, listing, option
from mtclust.util.system import pandas

#: version of the saved form
FORMAT = 3
#: a column of strings with more distinct values, or a value of its own in most rows, is no category but a name or text
MOST_LEVELS = 50
#: words per cell from which on a column is called free text
_TEXT_WORDS = 3
#: last words of names of columns that hold identifiers, whatever the values are
_NAMES = {
    "id", "ids", "uid", "uuid", "guid", "pid", "postcode", "postcodes", "zip", "zipcode", "plz", "phone", "telephone",
    "mobile", "fax", "iban", "isbn", "ean", "sku", "barcode", "serial", "ssn",
}  # fmt: skip
#: last words that say so only where nearly every row has a value of its own
_WEAK_NAMES = {"no", "nr", "number", "code", "key", "idx", "row", "account", "reference", "ref"}
#: what holds for fewer rows (or different values) in all, or rows of a task on average, can come about by chance
LEAST_COUNT, LEAST_OF_TASK = 10, 5
#: fewer rows can differ from each other by chance, and do not say what is far; nearly every row is this share
_FEW, NEARLY = 20, 0.9
#: with fewer rows association cannot be told
_LEAST_ROWS = 100
#: from so many numbers on the same is asked of numbers
_MANY_NUMBERS = 20
#: what chance does less often than this, over everything that was looked at, is taken for true
CHANCE = 0.05
#: a gap so many times as wide as the values before it parts far values from the others; the second where a far value
#: stands there only once or twice, as the largest of skewed columns do
_GAP, _GAP_OF_FEW = 3.0, 10.0


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
            lonely = unrelated(columns, encoder.cells(table), learner.tasks)
            encoder.columns = [column for column in columns if column.name not in lonely]
            learner.left_out |= dict.fromkeys(lonely, "not associated with any other column")
        if not encoder.columns:
            left_out = [f"{name} ({reason})" for name, reason in learner.left_out.items()]
            raise TableError(f"no column is left to cluster by: {'; '.join(left_out) or 'the table has none'}.")
        numbers = [column.name for column in encoder.columns if column.name in learner.numbers]
        encoder.doubts = far_values_doubts({name: learner.numbers[name] for name in numbers})
        encoder.notes = learner.notes(encoder.columns) + encoder._filled_in(table)
        return encoder

    def cells(self, table: Table) -> list[Cells]:
        """The cells of the columns that are used."""
        return [table.cells(c.name, ("",) if isinstance(c, TextColumn) else tuple(self.missing)) for c in self.columns]

    def _filled_in(self, table: Table) -> list[str]:
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
            levels = column.levels if isinstance(column, CategoryColumn) else cells.strings
            unknown = sorted(set(cells.strings[~cells.missing]).difference(levels))
            if unknown:
                notes.append(
                    f"Column {column.name} has values that were not in the fitted table ({listing(unknown, 5)}); "
                    f"they are treated as {'missing' if len(levels) == 2 else 'none of the known ones'}."
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
        columns = [column_from_dict(column) for column in saved["columns"]]
        check_records("columns", columns, {})
        return cls(columns, list(saved["missing"]), saved["task_column"], list(saved["notes"]))


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
            self.table.require_columns(getattr(self, argument) or [], option(argument))
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
            reason = identifier(cells, None if numbers is None else numbers[0], np.asarray(self.tasks.codes))
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
            return NumberColumn.learn(cells, *dates, self.scale, self.tasks)
        odd = "" if category else cells.odd_among_numbers()
        if odd:
            self._odd.append(f"{cells.name} ({odd})")
        own = n_known >= LEAST_COUNT and cells.distinct > MOSTLY * n_known
        if category or (cells.distinct <= MOST_LEVELS and not own):
            return CategoryColumn.learn(cells, self.scale, self.tasks)
        return self._names_or_text(cells, n_known)

    def _names_or_text(self, cells: Cells, n_known: int) -> str:
        """Why a column of strings that is no category is left out; free text is used later."""
        texts = [value.split() for value in cells.strings[~cells.missing]]
        words = sum(map(len, texts)) / n_known
        hint = f"give {option('keys')} if it is a name, {option('categories')} if it is a category"
        if words < _TEXT_WORDS and cells.distinct > NEARLY * n_known and self.choosing:
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
        return 1 < len(owners) == len(pairs) and len(tasks) >= LEAST_OF_TASK * len(owners)


def _repeats_words(texts: Sequence[list[str]]) -> bool:
    """Whether texts share words, as sentences do; names and addresses hardly do."""
    different = [{word.lower() for word in words} for words in texts]
    counts = Counter(word for words in different for word in words)
    common = {word for word, times in counts.items() if times >= max(3, len(texts) / 100)}
    return bool(np.mean([len(words & common) / max(len(words), 1) for words in different]) >= MOSTLY)


# -- identifiers -------------------------------------------------------------------------------------------------------


def identifier(cells: Cells, values: Array | None, codes: Integers) -> str | None:
    """Why a column of numbers (``values``) or strings only names its rows, in words; None if it does not."""
    last = last_word(cells.name)
    if values is None:
        strings = cells.strings[~cells.missing]
        by_name = last in _NAMES and all(re.search(r"\d", cell) for cell in set(strings))
        return "named as an identifier" if by_name and cells.distinct > 2 else None
    known = ~np.isnan(values)
    numbers, codes = values[known], codes[known]
    n, m = len(numbers), len(np.unique(codes))
    if np.any(numbers != np.rint(numbers)):
        return None
    if n >= LEAST_COUNT and np.ptp(numbers) == n - 1 and cells.distinct == n:
        return "counts the rows"
    order = np.lexsort((numbers, codes))
    steps, same = np.diff(numbers[order]), np.diff(codes[order]) == 0
    if n >= max(_FEW, LEAST_OF_TASK * m) and np.all(steps[same] == 1):
        return "counts the rows of each task"
    if _begins_anew(numbers):
        return "counts rows, starting again several times"
    if last in _NAMES and cells.distinct > 2:
        return "named as an identifier"
    if n < _FEW or cells.distinct < NEARLY * n:
        return None
    if last in _WEAK_NAMES:
        return "a different number in nearly every row"
    ranks = (np.sort(numbers) - numbers.min()) / np.ptp(numbers)
    # numbers handed out at random are further from even ones once in a hundred times
    even = np.abs(ranks - np.linspace(0, 1, n)).max() < 1.63 / np.sqrt(n)
    return "a different whole number in every row, evenly spread" if cells.distinct == n and even else None


def _begins_anew(numbers: Array) -> bool:
    """Whether numbers are a few counts from 0 or 1 on, in any order of the rows.

    Then no number is more frequent than a smaller one: as often as n there are all the numbers below n.
    """
    low, high = int(numbers.min()), int(numbers.max())
    if low not in (0, 1) or high > len(numbers):
        return False
    counts = np.bincount((numbers - low).astype(np.int64))
    longer = np.maximum.accumulate(counts[::-1])[::-1]  # how many of the counts go so far
    # samples of a study: few counts, of which nearly all numbers are there
    return bool(longer[0] <= min(20, len(numbers) / _FEW) and len(numbers) >= 0.95 * longer.sum())


def last_word(name: str) -> str:
    """The last word of the name of a column, in small letters."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return words[-1].lower() if words else ""


# -- association -------------------------------------------------------------------------------------------------------


def unrelated(columns: Sequence[Column], cells: Sequence[Cells], tasks: Any) -> list[str]:
    """Names of the columns that need to be associated with another one and are not; none where all would be."""
    if len(columns) < 2 or len(tasks) < _LEAST_ROWS:
        return []
    blocks = []
    for column, own in zip(columns, cells):
        block, absent = column.transform(own, np.asarray(tasks)), own.missing[:, None]  # which may inform, too
        blocks.append(np.column_stack([block, absent]) if absent.any() else block)
    numbers = sum(column.kind == "number" for column in columns)
    suspects = [_needs_company(column, block, numbers >= _MANY_NUMBERS) for column, block in zip(columns, blocks)]
    if not any(suspects) or len(tasks) * (2 * sum(block.shape[1] for block in blocks)) ** 2 > 10**11:  # too long
        return []
    found = []
    for column, asked, chance in zip(columns, suspects, chances_of_company(blocks, np.asarray(tasks.codes))):
        of_many = isinstance(column, NumberColumn) and not column.few  # of many numbers some pair off by chance
        if asked and (numbers if of_many else 1) * chance >= CHANCE:
            found.append(column.name)
    return found if len(found) < len(columns) else []


def _needs_company(column: Column, block: Array, many: bool) -> bool:
    """Whether a column counts only together with others: of many numbers those with one peak.

    Their bimodality coefficient, (skewness² + 1)/kurtosis, is below that of a flat one, 5/9.
    """
    if not isinstance(column, NumberColumn) or column.few:
        return isinstance(column, CategoryColumn | NumberColumn)
    if not many:
        return False
    return bool(skew(block[:, 0]) ** 2 + 1 < 5 / 9 * kurtosis(block[:, 0], fisher=False))


def chances_of_company(blocks: Sequence[Array], codes: Integers) -> Array:
    """Of every column, given by its features, how likely chance makes it as closely associated with any other as it is.

    Features and their squares are correlated within tasks: over all tasks together, and in every task in its own way.
    """
    plain = centred(np.column_stack(blocks).astype(float), codes)
    features = np.column_stack([plain, centred(plain**2, codes)])
    owner = np.tile(np.repeat(np.arange(len(blocks)), [block.shape[1] for block in blocks]), 2)
    order, starts = np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1]
    together = len(codes) * _correlations(features) ** 2
    apart = np.zeros_like(together)
    for rows in np.split(features[order], starts):
        apart += len(rows) * _correlations(rows) ** 2
    found = np.ones(len(blocks))
    for column in range(len(blocks)):
        pairs = np.ix_(owner == column, owner != column)
        if together[pairs].size:
            best = min(erfc(np.sqrt(together[pairs].max() / 2)), chdtrc(len(starts) + 1, apart[pairs].max()))
            found[column] = min(1.0, 2 * together[pairs].size * best)  # two tests of every pair
    return found


def _correlations(features: Array) -> Array:
    """Between columns that have mean 0; 0 where one is flat."""
    length = np.linalg.norm(features, axis=0)
    flat = length <= 1e-12 * max(1.0, float(length.max(initial=0.0)))
    scaled = np.where(flat, 0.0, features / np.where(flat, 1.0, length))
    return scaled.T @ scaled


# -- far values --------------------------------------------------------------------------------------------------------


def far_values(values: Array) -> Array:
    """A few values, each once, that lie beyond a wide gap around the half of the values that is closest together."""
    known = np.sort(values[~np.isnan(values)])
    half = (len(known) + 1) // 2
    if len(known) < _FEW or np.count_nonzero(np.diff(known)) + 1 < LEAST_COUNT:
        return np.empty(0)
    first = int(np.argmin(known[half - 1 :] - known[: len(known) - half + 1]))
    low, high = known[first], known[first + half - 1]
    if low == high:
        return np.empty(0)
    above = _beyond(known[known > high], high, low)
    below = -_beyond(-known[known < low], -low, -high)
    return np.concatenate([below[::-1], above])


def _beyond(outside: Array, edge: float, begin: float) -> Array:
    """Different values behind the first wide gap, walking upwards from the edge of a range that begins at ``begin``."""
    different, counts = np.unique(outside, return_counts=True)
    edges = np.concatenate([[edge], different])[:-1]
    repeated = np.maximum.accumulate(counts[::-1])[::-1] > 2  # here or further out
    wide = different - edges > np.where(repeated, _GAP, _GAP_OF_FEW) * (edges - begin)
    far = different[np.argmax(wide) :] if wide.any() else np.empty(0)
    return far if len(far) <= 3 else np.empty(0)  # more are no codes or slips, but a kind of rows


def far_values_doubts(columns: Mapping[str, Array]) -> list[str]:
    """A sentence about the columns of numbers that hold far values, and the way out; none where none does."""
    shown, example = [], ""
    for name, values in columns.items():
        counts = {value: int(np.sum(values == value)) for value in far_values(values).tolist()}
        if counts:
            others = values[~np.isnan(values) & ~np.isin(values, list(counts))]
            told = ", ".join(f"{value:.6g} in {how_many(n, 'row')}" for value, n in counts.items())
            shown.append(f"{name} ({told}, the others {others.min():.4g} to {others.max():.4g})")
            example = example or f"{max(counts, key=lambda value: counts[value]):.15g}"
    if not shown:
        return []
    more = f"; and {how_many(len(shown) - 3, 'more column')}" if len(shown) > 3 else ""
    missing = option("missing", advice(f"[{example!r}]", example))
    return [
        f"Some values lie so far from all others that they alone set the scale of their column: "
        f"{'; '.join(shown[:3])}{more}. If they mean 'not known', say so ({missing}); if they are errors, correct "
        "them."
    ]
