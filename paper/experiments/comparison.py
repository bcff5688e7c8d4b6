"""``python -m paper reproduce`` pendigits, newsgroups and sentiment: the comparisons of the paper's section 9.

Every data set is a :class:`Block`: which methods run on it, and on how many draws what is costly. Cells, fits and pages
are the same for all three.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA as PrincipalComponents

from mtclust.datasets import TaskData
from paper.datasets import fetch_newsgroups_tasks, fetch_pendigits_tasks, fetch_sentiment_tasks
from paper.datasets.newsgroups import NEWSGROUP_TASKS
from paper.datasets.pendigits import JOBS
from paper.experiments import figures, sections
from paper.experiments.driver import Experiment
from paper.experiments.methods import (
    OURS,
    fit_ours,
    fit_reference,
    load,
    rows_of_ours,
    true_sizes,
)
from paper.experiments.page import Picture, Section
from paper.experiments.printed import (
    LAMBDAS,
    LEVEL_DATASETS,
    LEVEL_GRID,
    STARTS,
    STOPS,
    PrintedKernel,
    fit_printed,
    printed_kernel,
    printed_sections,
)
from paper.experiments.protocols import (
    REFERENCES,
    by_draw,
    display_name,
    number_text,
    slope,
    with_names,
    without_labels,
)
from paper.experiments.runner import Cell, Outcome, load_array
from paper.reference import REFERENCE_METHODS
from paper.reference.kernel_methods import WIDTHS

#: starts of a reference method, as in the paper
RESTARTS = 50
#: principal components of text, and leading features of kernel PCA for DMTFC, as in the paper
COMPONENTS = 100
#: methods that need a matrix of all rows with all rows
POOLED_KERNEL = ("ALL KKM", "ALL NC")
ALL_DRAWS = 10**6

PROTOCOLS = (
    "Nothing is chosen with labels: our models choose width, λ and coupling by their own rules, reference methods run "
    "at their default setting. Our models are given the true sizes of the classes, as in the paper, in the order of "
    "the classes, which also tells DMTRC which clusters belong together where sizes differ; the reference methods "
    'cannot use that. DMTRC is always coupled, "DMTRC auto" is our default, which may refuse to couple. LSKMTC and MBC '
    "are reconstructions from abstracts."
)


@dataclass(frozen=True)
class Block:
    """The fits on one data set: methods, and the most draws of what is costly."""

    dataset: str
    kernels: tuple[str, ...]  # of our models
    models: tuple[str, ...]
    references: tuple[str, ...] = ()
    draws: int = ALL_DRAWS
    pooled_draws: int = ALL_DRAWS  # of POOLED_KERNEL


@dataclass(frozen=True)
class Comparison:
    """One of the three."""

    name: str
    load: Callable[[str, int], TaskData]  # of (dataset, draw)
    blocks: Callable[[bool], list[Block]]  # of quick: what is run by default
    names: tuple[str, ...]  # our methods in the order of tables
    tasks: Callable[[str], Sequence[str]]  # of dataset: names for diagrams
    figures: Mapping[str, str]  # what is drawn → the paper's caption
    more: Callable[[Any, Any, Path], list[Section]]  # of (named, main, directory): what only this comparison has

    def cells(self, repeats: int, quick: bool) -> list[Cell]:
        """All fits without labels."""
        found = []
        for block in self.blocks(quick):
            for draw in range(min(repeats, block.draws)):
                common = self._common(block, draw)
                found += reference_cells(common, _references(block, draw), quick, grid=False)
                found += [
                    Cell(methods=rows_of_ours(name), kernel=kernel, solver="exchange", **common)
                    for name, kernel in product(block.models, block.kernels)
                ]
        return found

    def printed_cells(self, repeats: int, quick: bool) -> list[Cell]:
        """The paper's grid with its solver, from k-means and random labels; reference methods at their grids."""
        found = []
        for block in self.blocks(quick):
            for draw in range(repeats):
                common = self._common(block, draw)
                for grid in (False, True):
                    found += reference_cells(common, _references(block, draw), quick, grid=grid)
                cuts = {"max_cuts": (2 if quick else max(STOPS),), "init": STARTS}
                lambdas = {"lambda1": LAMBDAS, "lambda2": LAMBDAS}
                points = [
                    (name, kernel, setting)
                    for name, kernel in product(block.models, block.kernels)
                    for setting in _points(cuts | lambdas, WIDTHS, kernel, quick)
                    # for DSTC only the sum counts
                    if name != "DSTC" or setting["lambda1"] <= setting["lambda2"]
                ]
                if block.dataset in LEVEL_DATASETS:
                    points += [("DMTRC", "rbf", setting) for setting in _points(cuts | LEVEL_GRID, (), "", quick)]
                found += [
                    Cell(methods=(name,), kernel=kernel, solver="cutting-plane", protocol="as printed",
                         setting=setting, **common)
                    for name, kernel, setting in points
                ]  # fmt: skip
        return found

    def _common(self, block: Block, draw: int) -> dict[str, Any]:
        return {"experiment": self.name, "dataset": block.dataset, "draw": draw, "seed": draw}

    def report(self, frame: Any, directory: Path) -> list[Section]:
        """Figures and tables of the finished rows."""
        named = with_names(frame)
        main = by_kind(named, PCA, RAW)
        free = without_labels(main)
        datasets = sorted(set(main["dataset"]), key=lambda text: (len(text), text))
        names = (*(display_name(method) for method in REFERENCES), *self.names)
        tasks = {dataset: self.tasks(dataset) for dataset in datasets}
        drawn = without_labels(named)[["method", "kernel", "dataset"]].drop_duplicates()
        order = sorted(drawn[drawn["method"] == "DMTFC"].values.tolist(), key=lambda row: (row[1], len(row[2]), row[2]))
        wanted = {array_name("D", d, kernel): f"{d}, {display_name(name, kernel)}" for name, kernel, d in order}
        heat = sections.heat_figure(frame, directory, wanted, self.figures["features"], self.figures["D"])
        diagrams = [
            sections.hinton_figure(
                free, directory, [(d, name) for name in self.names for d in datasets if _is_coupled(name, raw)], tasks,
                f"task_relationship{'_raw' if raw else ''}", self.figures[RAW if raw else PCA],
            )
            for raw in (False, True)
        ]  # fmt: skip
        first, *tables = sections.nmi_tables(main, datasets, names)
        tables += printed_sections(main, directory, datasets)
        return [
            replace(first, pictures=[sections.nmi_figure(main, directory, datasets, names, self.figures["nmi"])]),
            *tables,
            sections.per_task(main, directory, datasets, self.names, tasks, self.figures["per task"]),
            Section.with_pictures("What is learned", _learned_text(free, datasets), heat, *diagrams),
            *self.more(named, main, directory),
            *sections.failures(frame),
        ]


def _is_coupled(name: str, raw: bool) -> bool:
    return name.lstrip("*").startswith("DMTRC") and not name.endswith("auto") and name.startswith("*") == raw


def _references(block: Block, draw: int) -> list[str]:
    return [name for name in block.references if name not in POOLED_KERNEL or draw < block.pooled_draws]


def reference_cells(common: Mapping[str, Any], names: Sequence[str], quick: bool, grid: bool) -> list[Cell]:
    """Reference methods at their default setting, or at all points of their grids (in a quick run of NC only)."""
    starts = {"n_init": 2 if quick else RESTARTS}
    if not grid:
        return [Cell(methods=(name,), setting=starts, **common) for name in names]
    tried = [name for name in names if REFERENCE_METHODS[name].grid and (name == "NC" or not quick)]
    return [
        Cell(methods=(name,), protocol="grid", setting={**starts, **point}, **common)
        for name in tried
        for point in REFERENCE_METHODS[name].settings()
    ]


def _points(grid: Mapping[str, Any], widths: Sequence[float], kernel: str, quick: bool) -> list[dict[str, Any]]:
    """All points of a grid, with the widths for the RBF kernel; of a quick run the first of every λ and one width."""
    axes = {key: values[:1] if quick and key.startswith("lambda") else values for key, values in grid.items()}
    if kernel == "rbf":
        axes["width"] = widths[1:2] if quick else widths
    return [dict(zip(axes, values)) for values in product(*axes.values())]


def array_name(what: str, dataset: str, kernel: str) -> str:
    """Under what name a matrix of draw 0 is kept.

    Examples
    --------
    >>> array_name("D", "5 %, PCA", "linear")
    'D_5_PCA_linear'
    """
    return re.sub(r"\W+", "_", f"{what} {dataset} {kernel}".strip())


@lru_cache(maxsize=3)
def _data(name: str, dataset: str, draw: int) -> TaskData:
    return COMPARISONS[name].load(dataset, draw)


@lru_cache(maxsize=len(WIDTHS) + 1)
def _printed_kernel(name: str, dataset: str, draw: int, width: float | None) -> PrintedKernel:
    return printed_kernel(_data(name, dataset, draw), width)


def execute(cell: Cell) -> Sequence[Outcome]:
    """Run one cell of any comparison."""
    data, name, setting = _data(cell.experiment, cell.dataset, cell.draw), cell.methods[0], dict(cell.setting)
    if name in REFERENCE_METHODS:
        return fit_reference(name, data, cell.seed, setting.pop("n_init"), setting)
    if cell.protocol == "as printed":
        kernel = _printed_kernel(cell.experiment, cell.dataset, cell.draw, setting.get("width"))
        return fit_printed(name, data, cell.seed, kernel, setting)
    keep = array_name("D", cell.dataset, cell.kernel) if cell.draw == 0 else None
    options = {"sizes": true_sizes(data), **our_options(name, cell.kernel, setting)}
    outcomes = fit_ours(name, data, cell.seed, keep_as=keep, **options)
    if cell.draw == 0 and name == "DSTC" and cell.experiment == "pendigits":
        view = np.column_stack(
            [data.tasks, data.target, PrincipalComponents(2, svd_solver="full").fit_transform(data.data)]
        )
        return [replace(outcomes[0], arrays={array_name("view", cell.dataset, ""): view})]
    return outcomes


def our_options(name: str, kernel: str, setting: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of an estimator for a setting with ``lambda`` and ``width``; what is not there is left to choose."""
    options: dict[str, Any] = {"kernel": kernel}
    options |= {"n_components": COMPONENTS} if (name, kernel) == ("DMTFC", "rbf") else {}
    if "lambda" in setting:
        options |= {"lambda1": setting["lambda"], "lambda2": setting["lambda"]}
        options |= {"coupling": "full"} if name == "DMTRC" else {}
    return options | ({"width": setting["width"]} if "width" in setting else {})


def _learned_text(free: Any, datasets: Sequence[str]) -> str:
    found = [sections.off_diagonal_text(free, datasets, name) for name in ("DMTFC_l", "DMTFC_r")]
    for name in ("DMTRC_l", "DMTRC_r"):
        pairs = [within_and_across(omega) for omega in sections.correlations_of(free, "Job 3", name)]
        if pairs:
            within, across = np.mean(pairs, axis=0)
            found.append(
                f"{name}, Job 3: correlation between two tasks of one group {within:.2f}, of different groups "
                f"{across:.2f} (means over draws)."
            )
    for (dataset, name), part in free[free["method"] == "DMTRC auto"].groupby(["dataset", "name"], sort=False):
        accepted = sum(details["accepted"] for details in part["details"])
        found.append(f"{dataset}, {name}: coupling kept in {accepted} of {len(part)} draws.")
    return "- " + "\n- ".join(filter(None, found))


# --- pendigits

DATASETS = tuple(f"Job {job}" for job in JOBS)


def _pendigits(dataset: str, draw: int) -> TaskData:
    return load(fetch_pendigits_tasks, int(dataset[-1]), draw)


def _jobs(quick: bool) -> list[Block]:
    block = Block("", ("linear", "rbf"), tuple(OURS), REFERENCES)
    return [replace(block, dataset=dataset) for dataset in (DATASETS[:1] if quick else DATASETS)]


def within_and_across(correlation: NDArray[np.float64]) -> tuple[float, float]:
    """Mean correlation between two tasks of one group of Job 3, and of different groups."""
    first = np.arange(6) < 3
    same = np.equal.outer(first, first) & ~np.eye(6, dtype=bool)
    return float(correlation[same].mean()), float(correlation[np.not_equal.outer(first, first)].mean())


def _pendigits_sections(named: Any, main: Any, directory: Path) -> list[Section]:
    return [Section.with_pictures("The tasks", "", _view_figure(named, directory))]


def _view_figure(named: Any, directory: Path) -> Picture | None:
    arrays = [load_array(directory, array_name("view", d, ""), named["version"].iloc[0]) for d in DATASETS]
    view = next((array for array in reversed(arrays) if array is not None), None)
    if view is None:
        return None
    tasks = np.unique(view[:, 0])
    figure, axes = figures.panels(3, -(-len(tasks) // 3), width=2.5, height=2.3)
    for ax, task in zip(axes.flat, tasks):
        rows = view[view[:, 0] == task]
        figures.scatter(ax, rows[:, 2], rows[:, 3], rows[:, 1].astype(int), f"Task {task:.0f}")
    caption = "Draw 0, two principal components of all rows; colour and symbol: the digit."
    paper = "Fig. 1: Visualization of the tasks on the pendigits data."
    return Picture(figures.save(figure, directory, "tasks"), caption, paper)


# --- newsgroups and sentiment

#: the only fraction of a quick run, and that from which on POOLED_KERNEL gets one draw
QUICK_FRACTION, LARGEST = 0.02, 0.4
#: how the features are made; what stands last are the paper's, with every column scaled to [0, 1]
PCA, RAW = "PCA", "raw"
UNIT_PCA, UNIT_COUNTS = "PCA, then [0, 1]", "counts in [0, 1], then PCA"
FEATURES: Mapping[str, dict[str, Any]] = {
    PCA: {"n_components": COMPONENTS},
    RAW: {},
    UNIT_PCA: {"n_components": COMPONENTS, "unit_range": "after PCA"},
    UNIT_COUNTS: {"weighting": "counts", "unit_range": "before PCA", "n_components": COMPONENTS},
}
#: draws of the table of normalisations, at the smallest fraction
NORMALISED_DRAWS = 3


def by_kind(named: Any, *kinds: str) -> Any:
    """Rows whose features are made in one of these ways, the fraction as their data set; others have one way only."""
    parts = [text.split(", ", 1) if text[0].isdigit() else (text, None) for text in named["dataset"]]
    keep = [kind is None or kind in kinds for _, kind in parts]
    return named[keep].assign(dataset=[dataset for (dataset, _), kept in zip(parts, keep) if kept])


def _documents(loader: Callable[..., TaskData], dataset: str, draw: int) -> TaskData:
    share, kind = dataset.split(" %, ", 1)
    fraction, features = float(share) / 100, dict(FEATURES[kind])
    if "n_components" in features and fraction == QUICK_FRACTION:
        features["n_components"] = min(COMPONENTS, load(loader, fraction, draw).data.shape[0])
    return load(loader, fraction, draw, **features)


def _shares(fractions: Sequence[float], quick: bool) -> list[Block]:
    """A block per fraction and kind of features; at the smallest fraction also the paper's normalisations."""
    linear, raw_models, found = ("linear",), ("DSTC", "DMTRC"), []
    for fraction in (QUICK_FRACTION,) if quick else fractions:
        share, pooled = f"{fraction * 100:g} %", 1 if fraction >= LARGEST else ALL_DRAWS
        found.append(Block(f"{share}, {PCA}", linear, tuple(OURS), REFERENCES, pooled_draws=pooled))
        found.append(Block(f"{share}, {RAW}", linear, raw_models))
        if fraction in (QUICK_FRACTION, fractions[0]):
            found += [
                Block(f"{share}, {kind}", linear, raw_models, ("KM",), draws=NORMALISED_DRAWS)
                for kind in (UNIT_PCA, UNIT_COUNTS)
            ]
    return found


def _text_sections(
    caption: str, classes: Sequence[Sequence[str]], named: Any, main: Any, directory: Path
) -> list[Section]:
    free = without_labels(named)
    share = min(set(main["dataset"]), key=lambda text: (len(text), text))
    draws = free[free["dataset"] == f"{share}, {UNIT_PCA}"]["draw"].unique()
    kinds = [f"{share}, {kind}" for kind in (PCA, UNIT_PCA, UNIT_COUNTS)]
    text = f"The first {len(draws)} draws, no labels. Unless it says counts, terms are weighted by tf × idf."
    few = free[free["draw"].isin(draws)]
    found = sections.table("Normalisation", text, kinds, ("KM", "DSTC_l", "DMTRC_l"), (few, "nmi"))
    if classes:
        rows = [(f"Task {number}", " vs. ".join(names)) for number, names in enumerate(classes, start=1)]
        text = "Counterpart of the paper's Table 1: Task definition on the 20-newsgroups dataset."
        found.append(Section("The tasks", text, ("task", "classes"), rows))
    return [*found, _time_section(caption, without_labels(main), directory)]


def _time_section(caption: str, free: Any, directory: Path) -> Section:
    names = [name for name in free["name"].unique() if not name.endswith("auto")]
    shares = sorted(free["dataset"].unique(), key=lambda text: (len(text), text))
    sizes = [float(share.split()[0]) for share in shares]
    figure, axes = figures.panels(1, width=7.0 if len(shares) > 1 else 3.5, height=3.6)
    ax = axes[0, 0]
    series = {name: [by_draw(free, share, name, "seconds").to_numpy() for share in shares] for name in names}
    slowest = max((np.mean(columns[0]) for columns in series.values() if len(columns[0])), default=1.0)
    figures.times(ax, sizes, series, [name for name in names if name.startswith("*")], slowest, {2: "O(n²)"}, shares)
    ax.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))
    picture = Picture(
        figures.save(figure, directory, "time"),
        "CPU seconds of one fit, choosing and all starts included, against the share of the data.",
        caption,
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


def _text_comparison(
    name: str, loader: Callable[..., TaskData], fractions: Sequence[float], tasks: Sequence[str], set_name: str,
    first: int, classes: Sequence[Sequence[str]] = (),
) -> Comparison:  # fmt: skip
    """One of the two corpora; ``first`` is the number of its first figure in the paper."""
    on = f"on the {set_name} dataset."
    per_task = "results on each individual task (supplement)."
    time = f"Fig. {first + 4}: CPU time comparison on the 20-newsgroups."
    if name == "sentiment":
        per_task = (
            f"Fig. {first + 4}: NMI comparison between the proposed methods on the individual tasks with respect to "
            f"different percentages of data {on}"
        )
        time = f"Fig. {first + 5}: CPU time comparison {on}"
    captions = {
        "nmi": f"Fig. {first}: NMI comparison {on}",
        "D": f"Fig. {first + 1}: Visualizations of D of DMTFC_l {on}",
        PCA: f"Fig. {first + 2}: Hinton diagrams of Ω of DMTRC_l {on}",
        RAW: f"Fig. {first + 3}: Hinton diagrams of Ω of *DMTRC_l {on}",
        "features": f"{COMPONENTS} principal components",
        "per task": per_task,
    }
    ours = [display_name(method, "linear") for method in (*OURS, "DMTRC auto")]
    raw = [display_name(method, "linear", raw=True) for method in ("DSTC", "DMTRC", "DMTRC auto")]
    return Comparison(
        name, partial(_documents, loader), partial(_shares, fractions), (*ours, *raw), lambda _: tasks,
        captions, partial(_text_sections, time, classes),
    )  # fmt: skip


COMPARISONS = {
    "pendigits": Comparison(
        "pendigits",
        _pendigits,
        _jobs,
        tuple(
            display_name(m, kernel) for kernel in ("linear", "rbf") for m in ("DSTC", "DMTFC", "DMTRC", "DMTRC auto")
        ),
        lambda dataset: [str(task) for task in JOBS[int(dataset[-1])]],
        {
            "nmi": "Fig. 2: NMI comparison on the pendigits dataset.",
            "D": "Fig. 3: Visualization of the shared feature filter learned by DMTFC on the pendigits dataset.",
            PCA: "Fig. 4: Hinton diagram of the task relationship learned by DMTRC on the pendigits dataset.",
            RAW: "",
            "features": "16 pen coordinates (linear) and 100 kernel principal components (RBF)",
            "per task": "",
        },
        _pendigits_sections,
    ),
    "newsgroups": _text_comparison(
        "newsgroups",
        fetch_newsgroups_tasks,
        (0.05, 0.1, 0.2, 0.4),
        tuple("123456"),
        "20-newsgroups",
        7,
        NEWSGROUP_TASKS,
    ),
    "sentiment": _text_comparison(
        "sentiment", fetch_sentiment_tasks, (0.1, 0.3, 0.5), ("books", "dvd", "electr.", "kitchen"), "sentiment", 12
    ),
}
_TERMS = (
    f"{COMPONENTS} principal components, and * without PCA. Terms are weighted by sublinear tf × idf with rows of "
    f"length 1, not scaled to [0, 1] as in the paper; the table of normalisations says why. {PROTOCOLS} "
    f"From {LARGEST * 100:g} % on ALL KKM and ALL NC get one draw."
)
_INTROS = {
    "pendigits": (
        "Pendigits",
        30,
        "The paper's section 9.1: five digits a task, 100 rows a task; Jobs 1 and 2 have three related tasks each, Job "
        f"3 all six. {PROTOCOLS} DMTFC_r uses the {COMPONENTS} leading features of kernel PCA, as in the paper.",
    ),
    "newsgroups": (
        "20 Newsgroups",
        10,
        "The paper's section 9.3: six tasks of three newsgroups (its Table 1, "
        f"`paper.datasets.fetch_newsgroups_tasks`), 5, 10, 20 and 40 % of the messages, {_TERMS}",
    ),
    "sentiment": (
        "Multi-domain sentiment",
        10,
        "The paper's section 9.4: reviews of books, DVDs, electronics and kitchen appliances, positive or negative; "
        f"10, 30 and 50 % of them, {_TERMS} For the supervised counterparts see `python -m paper reproduce transfer`.",
    ),
}
EXPERIMENTS = {
    name: Experiment(
        name, title, intro, repeats, one.cells, execute, one.report, one.printed_cells if name == "pendigits" else None
    )
    for name, one in COMPARISONS.items()
    for title, repeats, intro in (_INTROS[name],)
}
