"""``python -m paper reproduce newsgroups`` and ``sentiment``: the paper's sections 9.3 and 9.4."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from mtclust.datasets import TaskData
from paper.datasets import fetch_newsgroups_tasks, fetch_sentiment_tasks
from paper.datasets.newsgroups import NEWSGROUP_TASKS
from paper.experiments import figures
from paper.experiments.driver import Experiment
from paper.experiments.methods import (
    OURS,
    fit_ours,
    fit_printed,
    fit_reference,
    load,
    printed_cells,
    reference_cells,
    rows_of_ours,
    true_sizes,
)
from paper.experiments.page import Picture, Section
from paper.experiments.protocols import (
    REFERENCES,
    by_draw,
    display_name,
    mean_text,
    number_text,
    slope,
    with_names,
    without_labels,
)
from paper.experiments.runner import Cell, Outcome
from paper.experiments.sections import (
    PROTOCOLS,
    failures,
    heat_figure,
    hinton_figure,
    nmi_figure,
    nmi_table,
    off_diagonal_text,
    oracle_table,
    per_task_section,
    printed_section,
    starts_table,
)
from paper.reference import REFERENCE_METHODS

#: principal components, as in the paper
COMPONENTS = 100
#: starts of a reference method, as in the paper
RESTARTS = 50
#: grid of the oracle for our models, on the smallest fraction and the first draws only
LAMBDAS = tuple(2.0**-k for k in (2, 6, 10))
ORACLE_DRAWS = 3
#: methods that need a matrix of all rows with all rows; the fraction from which on they get the first draw only
POOLED_KERNEL = ("ALL KKM", "ALL NC")
MANY = 0.4
#: the only fraction of a quick run
QUICK_FRACTION = 0.02
#: how the features are made; what stands last are the paper's, with every column scaled to [0, 1]
PCA, RAW = "PCA", "raw"
UNIT_PCA, UNIT_COUNTS, UNIT_RAW = "PCA, then [0, 1]", "counts in [0, 1], then PCA", "[0, 1], raw"
FEATURES: Mapping[str, dict[str, Any]] = {
    PCA: {"n_components": COMPONENTS},
    RAW: {},
    UNIT_PCA: {"n_components": COMPONENTS, "unit_range": "after PCA"},
    UNIT_COUNTS: {"weighting": "counts", "unit_range": "before PCA", "n_components": COMPONENTS},
    UNIT_RAW: {"unit_range": "before PCA"},
}
#: methods and draws of the table of normalisations, at the smallest fraction
NORMALISED, NORMALISED_DRAWS = ("KM", "DSTC", "DMTRC"), 3
OUR_NAMES = tuple(
    display_name(method, "linear", raw)
    for raw in (False, True)
    for method in ("DSTC", "DMTFC", "DMTRC", "DMTRC auto")
    if not (raw and method == "DMTFC")
)
NAMES = (*(display_name(method) for method in REFERENCES), *OUR_NAMES)


@dataclass(frozen=True)
class Corpus:
    """One of the two corpora: its fractions, the names of its tasks, and what is drawn → the paper's caption."""

    name: str
    loader: Callable[..., TaskData]
    fractions: Sequence[float]
    tasks: Sequence[str]
    figures: Mapping[str, str]


CORPORA = {
    "newsgroups": Corpus(
        "newsgroups",
        fetch_newsgroups_tasks,
        (0.05, 0.1, 0.2, 0.4),
        tuple("123456"),
        {
            "nmi": "Fig. 7: NMI comparison on the 20-newsgroups dataset.",
            "D": "Fig. 8: Visualizations of D of DMTFC_l on the 20-newsgroups dataset.",
            PCA: "Fig. 9: Hinton diagrams of Ω of DMTRC_l on the 20-newsgroups dataset.",
            RAW: "Fig. 10: Hinton diagrams of Ω of *DMTRC_l on the 20-newsgroups dataset.",
            "time": "Fig. 11: CPU time comparison on the 20-newsgroups.",
            "per task": "supplement (results on each individual task).",
        },
    ),
    "sentiment": Corpus(
        "sentiment",
        fetch_sentiment_tasks,
        (0.1, 0.3, 0.5),
        ("books", "dvd", "electr.", "kitchen"),
        {
            "nmi": "Fig. 12: NMI comparison on the sentiment dataset.",
            "D": "Fig. 13: Visualizations of D of DMTFC_l on the sentiment dataset.",
            PCA: "Fig. 14: Hinton diagrams of Ω of DMTRC_l on the sentiment dataset.",
            RAW: "Fig. 15: Hinton diagrams of Ω of *DMTRC_l on the sentiment dataset.",
            "per task": "Fig. 16: NMI comparison between the proposed methods on the individual tasks with respect to "
            "different percentages of data on the sentiment dataset.",
            "time": "Fig. 17: CPU time comparison on the sentiment dataset.",
        },
    ),
}


def share_of(fraction: float) -> str:
    return f"{fraction * 100:g} %"


def _references(fraction: float, draw: int) -> list[str]:
    return [name for name in REFERENCES if fraction < MANY or draw == 0 or name not in POOLED_KERNEL]


def _models(kind: str) -> list[str]:
    return [name for name in OURS if name != "DMTFC" or kind not in (RAW, UNIT_RAW)]


def cells(corpus: Corpus, repeats: int, quick: bool) -> list[Cell]:
    """All fits, small fractions first."""
    fractions = (QUICK_FRACTION,) if quick else corpus.fractions
    n_init = 2 if quick else RESTARTS
    found = []
    for fraction in fractions:
        for draw in range(repeats):
            for kind in FEATURES:
                common: dict[str, Any] = {
                    "experiment": corpus.name, "dataset": f"{share_of(fraction)}, {kind}", "draw": draw, "seed": draw,
                }  # fmt: skip
                ours: dict[str, Any] = {"kernel": "linear", "solver": "exchange", **common}
                smallest = fraction == fractions[0]
                if kind in (PCA, RAW):
                    references = _references(fraction, draw) if kind == PCA else []
                    found += reference_cells(common, references, n_init, grid=False)
                    found += [Cell(methods=rows_of_ours(name), **ours) for name in _models(kind)]
                    if smallest and draw < ORACLE_DRAWS and not quick:
                        found += reference_cells(common, references, n_init, grid=True)
                        found += [
                            Cell(methods=(name,), protocol="grid", setting={"lambda": value}, **ours)
                            for name in _models(kind)
                            for value in LAMBDAS
                        ]
                elif kind != UNIT_RAW and smallest and draw < NORMALISED_DRAWS:
                    found += reference_cells(common, NORMALISED[:1], n_init, grid=False)
                    found += [Cell(methods=rows_of_ours(name), **ours) for name in NORMALISED[1:]]
    return found


def printed(corpus: Corpus, repeats: int, quick: bool) -> list[Cell]:
    """The letter of the paper: every column in [0, 1], after PCA and without."""
    n_init = 2 if quick else RESTARTS
    found = []
    for fraction in (QUICK_FRACTION,) if quick else corpus.fractions:
        for draw in range(repeats):
            for kind in (UNIT_PCA, UNIT_RAW):
                dataset = f"{share_of(fraction)}, {kind}"
                common = {"experiment": corpus.name, "dataset": dataset, "draw": draw, "seed": draw}
                if kind == UNIT_PCA:
                    names = _references(fraction, draw)
                    found += reference_cells(common, names[:1] if quick else names, n_init, grid=False)
                    found += reference_cells(common, names[2:3] if quick else names, n_init, grid=True)
                found += printed_cells(common, ("linear",), _models(kind), quick)
    return found


@lru_cache(maxsize=2)
def _data(name: str, fraction: float, draw: int, kind: str) -> TaskData:
    loader, features = CORPORA[name].loader, dict(FEATURES[kind])
    if "n_components" in features and fraction == QUICK_FRACTION:
        features["n_components"] = min(COMPONENTS, load(loader, fraction, draw).data.shape[0])
    return load(loader, fraction, draw, **features)


def execute(cell: Cell) -> Sequence[Outcome]:
    """Run one cell of either corpus."""
    share, kind = cell.dataset.split(" %, ", 1)
    data = _data(cell.experiment, float(share) / 100, cell.draw, kind)
    name, setting = cell.methods[0], dict(cell.setting)
    if name in REFERENCE_METHODS:
        return fit_reference(name, data, cell.seed, setting.pop("n_init"), setting)
    if cell.protocol == "as printed":
        return fit_printed(name, data, cell.seed, cell.kernel, setting)
    options: dict[str, Any] = {"kernel": "linear", "sizes": true_sizes(data)}
    if "lambda" in setting:
        options |= {"lambda1": setting["lambda"], "lambda2": setting["lambda"]}
        options |= {"coupling": "full"} if name == "DMTRC" else {}
    keep = f"D_{share}" if cell.draw == 0 and cell.protocol == "no labels" and kind == PCA else None
    found = fit_ours(name, data, cell.seed, keep_as=keep, **options)
    return [replace(outcome, details={**outcome.details, "rows": len(data.target)}) for outcome in found]


def by_kind(named: Any, *kinds: str) -> Any:
    """The rows whose features are made in one of these ways, with the fraction as the name of the data set."""
    parts = [text.split(", ", 1) for text in named["dataset"]]
    rows = named[[kind in kinds for _, kind in parts]]
    return rows.assign(dataset=[share for share, kind in parts if kind in kinds])


def report(corpus: Corpus, frame: Any, directory: Path) -> list[Section]:
    """Figures and tables of the finished rows."""
    named = with_names(frame)
    main = by_kind(named, PCA, RAW)
    shares = sorted(main["dataset"].unique(), key=lambda text: float(text.split()[0]))
    free = without_labels(main)
    captions = corpus.figures
    bars = nmi_figure(main, directory, shares, NAMES, captions["nmi"], "; *: without PCA")
    wanted = {f"D_{share.split()[0]}": f"{share}, DMTFC_l" for share in shares}
    components = f"{COMPONENTS} principal components"
    heat = heat_figure(frame, directory, wanted, components, captions["D"], columns=4)
    tasks = dict.fromkeys(shares, corpus.tasks)
    diagrams = [
        hinton_figure(
            free, directory, [(share, display_name("DMTRC", "linear", kind == RAW)) for share in shares], tasks,
            "task_relationship_raw" if kind == RAW else "task_relationship", captions[kind],
        )
        for kind in (PCA, RAW)
    ]  # fmt: skip
    return [
        *(_definition() if corpus.name == "newsgroups" else []),
        replace(nmi_table(main, shares, NAMES), pictures=[bars]),
        *oracle_table(main, shares, NAMES),
        starts_table(main, shares, NAMES),
        *printed_section(by_kind(named, UNIT_PCA, UNIT_RAW), shares),
        *_normalisation(named, shares[0]),
        per_task_section(main, directory, shares, OUR_NAMES, tasks, captions["per task"]),
        Section.with_pictures("What is learned", _learned_text(free, shares), heat, *diagrams),
        _time_section(corpus, free, directory, shares),
        *failures(frame),
    ]


def _definition() -> list[Section]:
    rows = [(f"Task {number}", " vs. ".join(names)) for number, names in enumerate(NEWSGROUP_TASKS, start=1)]
    text = "Counterpart of the paper's Table 1: Task definition on the 20-newsgroups dataset."
    return [Section("The tasks", text, ("task", "classes"), rows)]


def _normalisation(named: Any, share: str) -> list[Section]:
    """What the paper's scaling of every column to [0, 1] does."""
    free = without_labels(named)
    kinds = [kind for kind in (PCA, UNIT_PCA, UNIT_COUNTS) if f"{share}, {kind}" in set(free["dataset"])]
    if len(kinds) < 2:
        return []
    draws = set(free[free["dataset"] == f"{share}, {UNIT_PCA}"]["draw"])
    names = [display_name(method, "" if method in REFERENCES else "linear") for method in NORMALISED]
    rows = []
    for kind in kinds:
        columns = [by_draw(free, f"{share}, {kind}", name) for name in names]
        rows.append([kind, *(mean_text(column[column.index.isin(draws)]) for column in columns)])
    text = f"{share} of the data, {len(draws)} draws, no labels. Unless it says counts, terms are weighted by tf × idf."
    return [Section("Normalisation", text, ("features", *names), rows)]


def _learned_text(free: Any, shares: Sequence[str]) -> str:
    found = [off_diagonal_text(free, shares, "DMTFC_l")]
    for (share, name), part in free[free["method"] == "DMTRC auto"].groupby(["dataset", "name"], sort=False):
        accepted = sum(details["accepted"] for details in part["details"])
        found.append(f"{share}, {name}: coupling kept in {accepted} of {len(part)} draws.")
    return "- " + "\n- ".join(filter(None, found))


def _time_section(corpus: Corpus, free: Any, directory: Path, shares: Sequence[str]) -> Section:
    names = [name for name in NAMES if name in set(free["name"]) and not name.endswith("auto")]
    sizes = [float(share.split()[0]) for share in shares]
    figure, axes = figures.panels(1, width=7.0, height=3.6)
    ax = axes[0, 0]
    series = {name: [by_draw(free, share, name, "seconds").to_numpy() for share in shares] for name in names}
    figures.lines(ax, sizes, series, spread=False, dashed=[name for name in names if name.startswith("*")])
    slowest = max((np.mean(columns[0]) for columns in series.values() if len(columns[0])), default=1.0)
    figures.guide(ax, sizes, slowest, 2, "O(n²)")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(sizes, shares)
    ax.minorticks_off()
    ax.set_ylabel("CPU seconds")
    ax.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))
    picture = Picture(
        figures.save(figure, directory, "time"),
        "CPU seconds of one fit, choosing and all starts included, against the share of the data.",
        corpus.figures["time"],
    )
    rows = []
    for name in names:
        medians = [by_draw(free, share, name, "seconds").median() for share in shares]
        rows.append([name, *map(number_text, medians), number_text(slope(sizes, medians))])
    header = ("method", *(f"{share}, s" for share in shares), "exponent of n")
    text = (
        "Median over draws. Our models switch from matrices of all rows with all rows to explicit features as rows "
        "grow, so their exponents say nothing about the paper's solver."
    )
    return Section("CPU time", text, header, rows, [picture])


_COSTS = (
    f"ALL KKM and ALL NC get one draw from {share_of(MANY)} on. Oracle grids (ours: λ ∈ {{2⁻², 2⁻⁶, 2⁻¹⁰}}) at the "
    f"smallest fraction and on the first {ORACLE_DRAWS} draws only."
)
EXPERIMENTS = {
    name: Experiment(
        name,
        title,
        f"{intro} Terms are weighted by sublinear tf × idf with rows of length 1, not scaled to [0, 1] as in the "
        f"paper. {PROTOCOLS}\n\n{_COSTS}{more}",
        10,
        partial(cells, CORPORA[name]),
        execute,
        partial(report, CORPORA[name]),
        partial(printed, CORPORA[name]),
    )
    for name, title, intro, more in (
        (
            "newsgroups",
            "20 Newsgroups",
            "The paper's section 9.3: six tasks of three newsgroups (its Table 1, "
            "`paper.datasets.fetch_newsgroups_tasks`), 5, 10, 20 and 40 % of the messages, 100 principal components, "
            "and * without PCA.",
            "",
        ),
        (
            "sentiment",
            "Multi-domain sentiment",
            "The paper's section 9.4: reviews of books, DVDs, electronics and kitchen appliances, positive or "
            "negative; 10, 30 and 50 % of them, 100 principal components, and * without PCA.",
            " For the supervised counterparts see `python -m paper reproduce transfer`.",
        ),
    )
}
