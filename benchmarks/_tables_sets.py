"""The sets of the benchmark: what each is, how it is drawn, and which ones decisions may look at.

A set is loaded by the seed of a draw and comes back with standardised columns, except where columns share a unit (grey
levels, pen positions, principal components): scaling them apart would only raise noise to the height of the signal, so
that one number scales them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_iris, load_wine

import _one_thread  # noqa: F401
import _tables_read as read
from _tables_read import Table, one_scale, some_rows, standardised
from mtclust.datasets import load_digits_tasks
from paper.datasets import fetch_pendigits_tasks

Load = Callable[[int], Table]

#: rows of a task by number of tasks, so that no set has many more than six hundred
_MOST_ROWS = 600
_MOST_ROWS_PER_TASK = 200
_LEAST_ROWS_PER_TASK = 15
#: of the larger single tables
_SINGLE_ROWS = 700
_MILD, _SKEWED = (28, 24, 20, 16, 12), (35, 25, 20, 12, 8)


@dataclass(frozen=True)
class TableSet:
    """``load(seed)`` gives a draw; ``files`` says that it needs MTCLUST_DATA."""

    kind: str
    load: Load
    files: bool = False


def _single(name: str, most: int, seed: int) -> Table:
    return standardised(some_rows(read.keel_numbers(name), most, seed))


def _bunch(load: Callable[[], Any], seed: int) -> Table:
    data = load()
    return standardised(read.one_task(data.data, data.target))


def _letters(seed: int) -> Table:
    X, y = read.keel("letter")
    chosen = np.isin(y, list("ABCDEFGH"))
    return standardised(some_rows(read.one_task(X[chosen], y[chosen]), _SINGLE_ROWS, seed))


def _limited(table: Table, seed: int, scale: Callable[[Table], Table] = standardised) -> Table:
    n_tasks = len(np.unique(table.tasks))
    return scale(some_rows(table, min(_MOST_ROWS_PER_TASK, max(_MOST_ROWS // n_tasks, _LEAST_ROWS_PER_TASK)), seed))


def _file(name: str, task: str, target: str, seed: int, columns: list[str] | None = None) -> Table:
    return _limited(read.from_file(name, task, target, columns), seed)


def _cell_lines(seed: int) -> Table:
    return _limited(read.from_file("cell_lines.csv.gz", "batch", "cell_line"), seed, one_scale)


def _mice(seed: int) -> Table:
    proteins = [name for name in read.frame_of("mice.csv.gz").columns if name.endswith("_N")]
    behaviour = read.from_file("mice.csv.gz", "task", "Behavior", proteins)
    return _limited(behaviour, seed)


def _penguins(column: str, seed: int) -> Table:
    return _limited(read.penguin_numbers(column), seed)


def _vowel(seed: int) -> Table:
    """Eight of the fifteen speakers, all of their rows; the first columns tell who speaks."""
    X, y = read.keel("vowel")
    speakers = X[:, 1].astype(int)
    chosen = np.random.default_rng(seed).choice(np.unique(speakers), 8, replace=False)
    rows = np.isin(speakers, chosen)
    return standardised(Table(X[rows, 3:], y[rows], speakers[rows], 11))


def _task_data(data: Any, k: int) -> Table:
    X, y, tasks = data.X_y_tasks
    return one_scale(Table(np.asarray(X, float), np.asarray(y), np.asarray(tasks), k))


def _pendigits(job: int, sizes: int | tuple[int, ...], seed: int) -> Table:
    return _task_data(fetch_pendigits_tasks(job, seed, rows_per_class=sizes, data_home=read.data_home()), 5)


def _digits(seed: int) -> Table:
    return _task_data(load_digits_tasks(seed=seed), 5)


def _digits_two_groups(seed: int) -> Table:
    return _task_data(load_digits_tasks(seed=seed, unrelated=(1, 2, 4, 5, 7)), 5)


def _newsgroups(seed: int, per_group: int = 40, n_components: int = 30) -> Table:
    """Four tasks of four topics, as weights of the leading directions of tf-idf."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    rng = np.random.default_rng(seed)
    texts, y, tasks = [], [], []
    for top, groups in enumerate(read.NEWSGROUPS):
        for task, group in enumerate(groups):
            found = read.messages()[group]
            texts += [found[row] for row in np.sort(rng.choice(len(found), per_group, replace=False))]
            y += [top] * per_group
            tasks += [task] * per_group
    weights = TfidfVectorizer(stop_words="english", sublinear_tf=True, min_df=3).fit_transform(texts)
    X = TruncatedSVD(n_components, random_state=0).fit_transform(weights)
    return one_scale(Table(X, np.array(y), np.array(tasks), len(read.NEWSGROUPS)))


def _blobs(shares: tuple[tuple[float, ...], ...], seed: int, distance: float = 8.0, shift: float = 0.0) -> Table:
    """Gaussian clusters of variance 1 whose centres are ``distance`` apart, 150 rows a task, five columns."""
    rng = np.random.default_rng(seed)
    k, d, rows = len(shares[0]), 5, 150
    centres = np.linalg.qr(rng.normal(size=(d, d)))[0][:k] * distance / np.sqrt(2)
    counts = [
        np.bincount(np.searchsorted(np.cumsum(share), (np.arange(rows) + 0.5) / rows), minlength=k) for share in shares
    ]
    y = np.concatenate([np.repeat(np.arange(k), count) for count in counts])
    tasks = np.repeat(np.arange(len(shares)), rows)
    offsets = shift * rng.normal(size=(len(shares), d))
    return standardised(Table(centres[y] + rng.normal(size=(len(y), d)) + offsets[tasks], y, tasks, k))


def _blobs_drawn_shares(seed: int) -> Table:
    shares = np.random.default_rng([seed, 1]).dirichlet(np.ones(4), size=4)
    return _blobs(tuple(map(tuple, shares)), seed, distance=6.0, shift=1.0)


def _random_tasks(table: Table, n_tasks: int, shift: float, seed: int) -> Table:
    """A single table cut at random into tasks, every task and column shifted by ``shift`` standard deviations."""
    rng = np.random.default_rng([seed, 2])
    tasks = rng.permutation(np.arange(len(table.X)) % n_tasks)
    offsets = shift * rng.normal(size=(n_tasks, table.X.shape[1]))
    X = standardised(table).X
    return _limited(table._replace(X=X + offsets[tasks], tasks=tasks), seed)


def _shifted(name: str, n_tasks: int, shift: float, seed: int) -> Table:
    table = read.keel_numbers(name)
    constant = table.X.std(axis=0) == 0
    return _random_tasks(table._replace(X=table.X[:, ~constant]), n_tasks, shift, seed)


def _wine_shifted(seed: int) -> Table:
    data = load_wine()
    return _random_tasks(read.one_task(data.data, data.target), 2, 1.0, seed)


def _grouped(name: str, column: int, n_tasks: int, seed: int) -> Table:
    """Tasks by the value of one column, or by its quantiles where it has many; the column itself is left out."""
    X, y = read.keel(name)
    values = X[:, column]
    few = len(np.unique(values)) <= n_tasks
    edges = np.quantile(values, np.arange(1, n_tasks) / n_tasks)
    tasks = values.astype(int) if few else np.searchsorted(edges, values)
    return _limited(Table(np.delete(X, column, axis=1), y, tasks, len(np.unique(y))), seed)


def _skewed_tasks(name: str, classes: int, n_tasks: int, seed: int) -> Table:
    """Some classes of a table, in shares that differ from task to task."""
    X, y = read.keel(name)
    rng = np.random.default_rng([seed, 3])
    chosen = np.unique(y)[:classes]
    rows, tasks = [], []
    pools = {label: rng.permutation(np.flatnonzero(y == label)) for label in chosen}
    for task in range(n_tasks):
        counts = np.maximum(np.round(150 * rng.dirichlet(2 * np.ones(classes))).astype(int), 5)
        for label, count in zip(chosen, counts):
            rows.append(pools[label][:count])
            pools[label] = pools[label][count:]
            tasks.append(np.full(len(rows[-1]), task))
    kept = np.concatenate(rows)
    return standardised(Table(X[kept], y[kept], np.concatenate(tasks), classes))


_CUSTOMER_NUMBERS = ["age", "income_eur", "visits_per_year", "return_rate"]
_WHOLE = 100_000  # more rows than any table here has

SETS: dict[str, TableSet] = {
    "iris": TableSet("single", partial(_bunch, load_iris)),
    "wine": TableSet("single", partial(_bunch, load_wine)),
    "penguins": TableSet("single", lambda seed: standardised(read.penguin_numbers(None))),
    **{
        name: TableSet("single", partial(_single, name, _WHOLE))
        for name in ("wdbc", "wisconsin", "movement_libras", "ionosphere", "vehicle", "led7digit", "heart", "sonar")
    },
    "twonorm": TableSet("single", partial(_single, "twonorm", 500)),
    **{
        name: TableSet("single", partial(_single, name, _SINGLE_ROWS))
        for name in (
            "segment",
            "satimage",
            "texture",
            "optdigits",
            "penbased",
            "spambase",
            "pima",
            "mammographic",
            "phoneme",
            "australian",
        )
    },
    "letters": TableSet("single", _letters),
    "penguins_year": TableSet("multi", partial(_penguins, "year")),
    "penguins_island": TableSet("multi", partial(_penguins, "island")),
    "mice": TableSet("multi", _mice, files=True),
    "gas": TableSet("multi", partial(_file, "gas.csv.gz", "batch", "gas"), files=True),
    "vowel": TableSet("multi", _vowel),
    "cell_lines": TableSet("multi", _cell_lines, files=True),
    "customers": TableSet(
        "multi", partial(_file, "customers.csv", "shop", "segment", columns=_CUSTOMER_NUMBERS), files=True
    ),
    "wide": TableSet("multi", partial(_file, "wide.csv", "lab", "truth"), files=True),
    "sixty": TableSet("multi", partial(_file, "sixty.csv", "hospital", "truth"), files=True),
    "digits": TableSet("multi", _digits),
    "digits_two_groups": TableSet("multi", _digits_two_groups),
    **{f"pendigits_job{job}": TableSet("multi", partial(_pendigits, job, 20), files=True) for job in (1, 2, 3)},
    **{
        f"pendigits_group{group}_{name}": TableSet("multi", partial(_pendigits, group, sizes), files=True)
        for group in (1, 2)
        for name, sizes in (("mild", _MILD), ("skewed", _SKEWED))
    },
    "blobs_80_15_5": TableSet("multi", partial(_blobs, ((0.8, 0.15, 0.05),) * 3)),
    "blobs_changing_shares": TableSet("multi", partial(_blobs, ((0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)))),
    "blobs_absent_cluster": TableSet("multi", partial(_blobs, ((0.4, 0.3, 0.3), (0.4, 0.3, 0.3), (0.5, 0.5, 0.0)))),
    "blobs_one_cluster_task": TableSet("multi", partial(_blobs, ((0.4, 0.3, 0.3), (0.4, 0.3, 0.3), (0.0, 1.0, 0.0)))),
    "blobs_drawn_shares": TableSet("multi", _blobs_drawn_shares),
    "newsgroups_4x4": TableSet("multi", _newsgroups, files=True),
    "wine_shifted": TableSet("multi", _wine_shifted),
    "wdbc_by_radius": TableSet("multi", partial(_grouped, "wdbc", 0, 3)),
    "heart_by_sex": TableSet("multi", partial(_grouped, "heart", 1, 2)),
    "pima_by_age": TableSet("multi", partial(_grouped, "pima", 7, 3)),
    "satimage_shifted": TableSet("multi", partial(_shifted, "satimage", 4, 0.5)),
    "texture_skewed": TableSet("multi", partial(_skewed_tasks, "texture", 6, 4)),
    "optdigits_skewed": TableSet("multi", partial(_skewed_tasks, "optdigits", 5, 4)),
}

#: settings and constants of the library may be decided with these in view
DECIDED_ON = (
    "iris", "wine", "penguins", "wdbc", "segment", "penbased", "ionosphere", "vehicle",
    "penguins_year", "penguins_island", "mice", "gas", "vowel", "cell_lines", "digits", "pendigits_job2",
    "pendigits_group1_skewed", "pendigits_group2_mild",
    "blobs_80_15_5", "blobs_changing_shares", "blobs_absent_cluster", "blobs_one_cluster_task",
)  # fmt: skip
#: run once, when everything is decided
HELD_OUT = tuple(name for name in SETS if name not in DECIDED_ON)
#: of the single tables, the sixteen whose mean the documentation quotes
SIXTEEN = (
    "iris", "wine", "penguins", "wdbc", "wisconsin", "twonorm", "segment", "satimage", "texture", "optdigits",
    "penbased", "movement_libras", "ionosphere", "vehicle", "led7digit", "spambase",
)  # fmt: skip
GROUPS = {"decided": DECIDED_ON, "held-out": HELD_OUT, "all": tuple(SETS)}
