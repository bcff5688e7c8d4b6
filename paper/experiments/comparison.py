"""``python -m paper reproduce`` pendigits, newsgroups and sentiment: the comparisons of the paper's section 9.

Every data set is a :class:`Block`: which methods run on it, and on how many draws what is costly. Cells, fits and pages
are the same for all three.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA as PrincipalComponents
from sklearn.model_selection import ParameterGrid

from mtclust.datasets import TaskData
from paper.datasets import fetch_newsgroups_tasks, fetch_pendigits_tasks, fetch_sentiment_tasks
from paper.datasets.tasks import JOBS, NEWSGROUP_TASKS
from paper.experiments import page, printed
from paper.experiments.driver import AS_PRINTED, Experiment
from paper.experiments.methods import OURS, ROWS_OF, fit_ours, fit_reference, true_sizes
from paper.experiments.page import Section
from paper.experiments.protocols import (
    REFERENCES,
    by_draw,
    display_name,
    natural_order,
    number_text,
    slope,
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


class Comparison(Experiment):
    """One of the three."""

    names: tuple[str, ...]  # our methods in the order of tables
    tasks: Callable[[str], Sequence[str]]  # of a data set: their names for diagrams
    captions: Mapping[str, str]  # what is drawn → the paper's caption
    load: Callable[[str, int], TaskData]  # the rows of a data set and a draw
    blocks: Callable[[bool], list[Block]]  # what is run, of a quick run or not
    #: the sections that only this comparison has, from all rows and from those without normalisations
    more: Callable[[Any, Any, Path], list[Section]]

    def cells(self, repeats: int, quick: bool, protocol: str) -> list[Cell]:
        """Every block on every draw of it."""
        return [
            cell
            for block in self.blocks(quick)
            for draw in range(min(repeats, block.draws))
            for cell in self._fits(block, draw, quick, protocol)
        ]

    def _fits(self, block: Block, draw: int, quick: bool, protocol: str) -> Iterator[Cell]:
        """All fits without labels; as printed reference methods at their grids (in a quick run only NC) and ours on
        the paper's grid with its solver, from k-means and random labels.
        """
        common: dict[str, Any] = {"experiment": self.name, "dataset": block.dataset, "draw": draw, "seed": draw}
        starts = {"n_init": 2 if quick else RESTARTS}
        references = [name for name in block.references if name not in POOLED_KERNEL or draw < block.pooled_draws]
        for name in references:
            yield Cell(methods=(name,), setting=starts, **common)
        if protocol != AS_PRINTED:
            for name, kernel in product(block.models, block.kernels):
                yield Cell(methods=ROWS_OF[name], kernel=kernel, solver="exchange", **common)
            return
        for name in references:
            if REFERENCE_METHODS[name].grid and (name == "NC" or not quick):
                for point in ParameterGrid(REFERENCE_METHODS[name].grid):
                    yield Cell(methods=(name,), protocol="grid", setting=starts | point, **common)
        cuts: dict[str, Any] = {"max_cuts": (2 if quick else max(printed.STOPS),), "init": printed.STARTS}
        common |= {"solver": "cutting-plane", "protocol": AS_PRINTED}
        for name, kernel in product(block.models, block.kernels):
            for setting in _points(cuts | {"lambda1": printed.LAMBDAS, "lambda2": printed.LAMBDAS}, kernel, quick):
                # for DSTC only the sum counts
                if name != "DSTC" or setting["lambda1"] <= setting["lambda2"]:
                    yield Cell(methods=(name,), kernel=kernel, setting=setting, **common)
        for setting in _points(cuts | printed.LEVEL_GRID, "", quick) if block.dataset in printed.LEVEL_DATASETS else ():
            yield Cell(methods=("DMTRC",), kernel="rbf", setting=setting, **common)

    def execute(self, cell: Cell) -> Sequence[Outcome]:
        data, name, setting = _data(self.name, cell.dataset, cell.draw), cell.methods[0], dict(cell.setting)
        if name in REFERENCE_METHODS:
            return fit_reference(name, data, cell.seed, **setting)
        if cell.protocol == AS_PRINTED:
            kernel = printed.printed_kernel(data, setting.get("width"))
            return printed.fit_printed(name, data, cell.seed, kernel, setting)
        keep = array_name("D", cell.dataset, cell.kernel) if cell.draw == 0 else None
        return fit_ours(
            name, data, cell.seed, keep_as=keep, sizes=true_sizes(data), **our_options(name, cell.kernel, setting)
        )

    def report(self, named: Any, directory: Path) -> list[Section]:
        main = by_kind(named, PCA, RAW)
        free = without_labels(main)
        datasets = sorted(set(main["dataset"]), key=natural_order)
        names = (*(display_name(method) for method in REFERENCES), *self.names)
        tasks = {dataset: self.tasks(dataset) for dataset in datasets}
        learners = without_labels(named).query("method == 'DMTFC'")
        order = sorted(set(zip(learners["kernel"], learners["dataset"])), key=lambda at: (at[0], natural_order(at[1])))
        wanted = {array_name("D", d, kernel): f"{d}, {display_name('DMTFC', kernel)}" for kernel, d in order}
        learned = page.heat_figure(named, directory, wanted, self.captions["features"], self.captions["D"])
        for kind, stem in ((PCA, "task_relationship"), (RAW, "task_relationship_raw")):
            coupled = [n for n in self.names if n.startswith("DMTRC" if kind == PCA else "*DMTRC") and "auto" not in n]
            models = [(d, name) for name in coupled for d in datasets]
            learned += page.hinton_figure(free, directory, models, tasks, stem, self.captions[kind])
        return [
            *page.nmi_sections(main, directory, datasets, names, self.captions["nmi"]),
            *printed.printed_sections(main, directory, datasets),
            page.per_task(main, directory, datasets, self.names, tasks, self.captions["per task"]),
            Section("What is learned", _learned_text(free, datasets), pictures=learned),
            *self.more(named, main, directory),
        ]


def _points(grid: Mapping[str, Any], kernel: str, quick: bool) -> list[dict[str, Any]]:
    """All points of a grid, with the widths for the RBF kernel; of a quick run the first of every λ and one width."""
    axes = {key: values[:1] if quick and key.startswith("lambda") else values for key, values in grid.items()}
    if kernel == "rbf":
        axes["width"] = WIDTHS[1:2] if quick else WIDTHS
    return list(ParameterGrid(axes))


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
    return EXPERIMENTS[name].load(dataset, draw)


def our_options(name: str, kernel: str, setting: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of an estimator for a setting with ``lambda`` and ``width``; what is not there is left to choose."""
    options: dict[str, Any] = {"kernel": kernel}
    options |= {"n_components": COMPONENTS} if (name, kernel) == ("DMTFC", "rbf") else {}
    if "lambda" in setting:
        options |= {"lambda1": setting["lambda"], "lambda2": setting["lambda"]}
        options |= {"coupling": "full"} if name == "DMTRC" else {}
    return options | ({"width": setting["width"]} if "width" in setting else {})


def _learned_text(free: Any, datasets: Sequence[str]) -> str:
    found = []
    for name in ("DMTFC_l", "DMTFC_r"):
        shares = {d: page.off_diagonal(free, d, name) for d in datasets}
        parts = [f"{d} {s.mean():.2f} (random axes {null.mean():.2f})" for d, (s, null) in shares.items() if len(s)]
        found.append(f"{name}: share of D² off the diagonal {', '.join(parts)}." if parts else "")
    for name in ("DMTRC_l", "DMTRC_r"):
        pairs = [within_and_across(omega) for omega in page.correlations_of(free, "Job 3", name)]
        if pairs:
            within, across = np.mean(pairs, axis=0)
            found.append(
                f"{name}, Job 3: correlation between two tasks of one group {within:.2f}, of different groups "
                f"{across:.2f} (means over draws)."
            )
    for dataset, name in product(datasets, free[free["method"] == "DMTRC auto"]["name"].unique()):
        accepted = page.details_of(free, dataset, name, "accepted")
        found.append(f"{dataset}, {name}: coupling kept in {sum(accepted)} of {len(accepted)} draws.")
    return "- " + "\n- ".join(filter(None, found))


# --- pendigits

DATASETS = tuple(f"Job {job}" for job in JOBS)


def within_and_across(correlation: NDArray[np.float64]) -> tuple[float, float]:
    """Mean correlation between two tasks of one group of Job 3, and of different groups."""
    first = np.arange(6) < 3
    same = np.equal.outer(first, first) & ~np.eye(6, dtype=bool)
    return float(correlation[same].mean()), float(correlation[np.not_equal.outer(first, first)].mean())


class Pendigits(Comparison):
    """The paper's three jobs."""

    name = "pendigits"
    title = "Pendigits"
    intro = (
        "The paper's section 9.1: five digits a task, 100 rows a task; Jobs 1 and 2 have three related tasks each, Job "
        f"3 all six. {PROTOCOLS} DMTFC_r uses the {COMPONENTS} leading features of kernel PCA, as in the paper."
    )
    repeats = 30
    names = tuple(display_name(m, kernel) for kernel in ("linear", "rbf") for m in (*OURS, "DMTRC auto"))
    tasks = staticmethod(lambda dataset: [str(task) for task in JOBS[int(dataset[-1])]])
    captions: Mapping[str, str] = {
        "nmi": "Fig. 2: NMI comparison on the pendigits dataset.",
        "D": "Fig. 3: Visualization of the shared feature filter learned by DMTFC on the pendigits dataset.",
        "PCA": "Fig. 4: Hinton diagram of the task relationship learned by DMTRC on the pendigits dataset.",
        "raw": "",
        "features": f"16 pen coordinates (linear) and {COMPONENTS} kernel principal components (RBF)",
        "per task": "",
    }

    def load(self, dataset: str, draw: int) -> TaskData:
        return fetch_pendigits_tasks(int(dataset[-1]), draw)

    def blocks(self, quick: bool) -> list[Block]:
        return [Block(d, ("linear", "rbf"), tuple(OURS), REFERENCES) for d in (DATASETS[:1] if quick else DATASETS)]

    def execute(self, cell: Cell) -> Sequence[Outcome]:
        """As everywhere; DSTC of draw 0 leaves the rows for the figure of the tasks."""
        outcomes = super().execute(cell)
        if (cell.draw, cell.methods, cell.solver) != (0, ("DSTC",), "exchange"):
            return outcomes
        data = _data(self.name, cell.dataset, cell.draw)
        plane = PrincipalComponents(2, svd_solver="full").fit_transform(data.data)
        view = np.column_stack([data.tasks, data.target, plane])
        return [replace(outcomes[0], arrays={array_name("view", cell.dataset, ""): view})]

    def more(self, named: Any, main: Any, directory: Path) -> list[Section]:
        arrays = [load_array(directory, array_name("view", d, ""), named["version"].iloc[0]) for d in DATASETS]
        view = next((array for array in reversed(arrays) if array is not None), None)
        if view is None:
            return []
        tasks = np.unique(view[:, 0])
        figure, axes = page.panels(3, -(-len(tasks) // 3), width=2.5, height=2.3)
        for ax, task in zip(axes.flat, tasks):
            digits = view[view[:, 0] == task, 1].astype(int)
            for digit, colour, marker in zip(np.unique(digits), page.GROUPS, page.MARKERS):
                x, y = view[view[:, 0] == task, 2:][digits == digit].T
                ax.scatter(x, y, s=14, linewidths=0, label=str(digit), color=colour, marker=marker)
            ax.set(xticks=[], yticks=[], title=f"Task {task:.0f}")
            ax.legend(
                fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1, 1), handletextpad=0.1, borderpad=0
            )
        caption = "Draw 0, two principal components of all rows; colour and symbol: the digit."
        paper = "Fig. 1: Visualization of the tasks on the pendigits data."
        return [Section("The tasks", pictures=[page.save(figure, directory, "tasks", caption, paper)])]


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


class Texts(Comparison):
    """One of the two corpora, at several fractions and with features made in several ways."""

    repeats = 10
    names = (
        *(display_name(method, "linear") for method in (*OURS, "DMTRC auto")),
        *(display_name(method, "linear", raw=True) for method in ("DSTC", "DMTRC", "DMTRC auto")),
    )
    fetch: Callable[..., TaskData]
    fractions: tuple[float, ...]

    def load(self, dataset: str, draw: int) -> TaskData:
        share, kind = dataset.split(" %, ", 1)
        return self.fetch(float(share) / 100, draw, **FEATURES[kind])

    def blocks(self, quick: bool) -> list[Block]:
        """A block per fraction and kind of features; at the smallest fraction also the paper's normalisations."""
        linear, raw_models, found = ("linear",), ("DSTC", "DMTRC"), []
        fractions = (QUICK_FRACTION,) if quick else self.fractions
        for fraction in fractions:
            share, pooled = f"{fraction * 100:g} %", 1 if fraction >= LARGEST else ALL_DRAWS
            found.append(Block(f"{share}, {PCA}", linear, tuple(OURS), REFERENCES, pooled_draws=pooled))
            found.append(Block(f"{share}, {RAW}", linear, raw_models))
            for kind in (UNIT_PCA, UNIT_COUNTS) if fraction == fractions[0] else ():
                found.append(Block(f"{share}, {kind}", linear, raw_models, ("KM",), draws=NORMALISED_DRAWS))
        return found

    def more(self, named: Any, main: Any, directory: Path) -> list[Section]:
        free = without_labels(named)
        share = min(set(main["dataset"]), key=natural_order)
        draws = free[free["dataset"] == f"{share}, {UNIT_PCA}"]["draw"].unique()
        kinds = [f"{share}, {kind}" for kind in (PCA, UNIT_PCA, UNIT_COUNTS)]
        text = f"The first {len(draws)} draws, no labels. Unless it says counts, terms are weighted by tf × idf."
        few = free[free["draw"].isin(draws)]
        found = page.table("Normalisation", text, kinds, ("KM", "DSTC_l", "DMTRC_l"), (few, "nmi"))
        names = (*map(display_name, REFERENCES), *(name for name in self.names if not name.endswith("auto")))
        return [*found, _time_section(self.captions["time"], without_labels(main), names, directory)]


def _time_section(caption: str, free: Any, wanted: Sequence[str], directory: Path) -> Section:
    names = [name for name in wanted if name in set(free["name"])]
    shares = sorted(free["dataset"].unique(), key=natural_order)
    sizes = {float(share.split()[0]): share for share in shares}
    figure, axes = page.panels(1, width=7.0, height=3.6)
    ax = axes[0, 0]
    series = {name: [by_draw(free, share, name, "seconds") for share in shares] for name in names}
    slowest = max((columns[0].mean() for columns in series.values() if len(columns[0])), default=1.0)
    page.times(ax, sizes, series, slowest, {2: "O(n²)"})
    ax.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))
    shown = "CPU seconds of one fit, choosing and all starts included, against the share of the data."
    picture = page.save(figure, directory, "time", shown, caption)
    rows = []
    for name, columns in series.items():
        medians = [column.median() for column in columns]
        rows.append([name, *map(number_text, medians), number_text(slope(list(sizes), medians))])
    header = ("method", *(f"{share}, s" for share in shares), "exponent of n")
    text = (
        "Median over draws. Our models switch from matrices of all rows with all rows to explicit features as rows "
        "grow, so their exponents say nothing about the paper's solver."
    )
    return Section("CPU time", text, header, rows, [picture])


_TERMS = (
    f"{COMPONENTS} principal components, and * without PCA. Terms are weighted by sublinear tf × idf with rows of "
    "length 1, where the paper scales every column to [0, 1]; the table of normalisations compares the two. "
    f"{PROTOCOLS} "
    f"From {LARGEST * 100:g} % on ALL KKM and ALL NC get one draw."
)


def _captions(data: str, first: int) -> dict[str, str]:
    """The captions of four figures of the paper, of which this is the first."""
    return {
        "nmi": f"Fig. {first}: NMI comparison on the {data} dataset.",
        "D": f"Fig. {first + 1}: Visualizations of D of DMTFC_l on the {data} dataset.",
        PCA: f"Fig. {first + 2}: Hinton diagrams of Ω of DMTRC_l on the {data} dataset.",
        RAW: f"Fig. {first + 3}: Hinton diagrams of Ω of *DMTRC_l on the {data} dataset.",
        "features": f"{COMPONENTS} principal components",
    }


class Newsgroups(Texts):
    """Six tasks of three newsgroups."""

    name = "newsgroups"
    title = "20 Newsgroups"
    intro = (
        "The paper's section 9.3: six tasks of three newsgroups (its Table 1, "
        f"`paper.datasets.fetch_newsgroups_tasks`), 5, 10, 20 and 40 % of the messages, {_TERMS}"
    )
    fetch = staticmethod(fetch_newsgroups_tasks)
    fractions = (0.05, 0.1, 0.2, 0.4)
    tasks = staticmethod(lambda dataset: "123456")
    captions: Mapping[str, str] = _captions("20-newsgroups", 7) | {
        "per task": "results on each individual task (supplement).",
        "time": "Fig. 11: CPU time comparison on the 20-newsgroups.",
    }

    def more(self, named: Any, main: Any, directory: Path) -> list[Section]:
        *first, last = super().more(named, main, directory)
        rows = [(f"Task {number}", " vs. ".join(names)) for number, names in enumerate(NEWSGROUP_TASKS, start=1)]
        text = "Counterpart of the paper's Table 1: Task definition on the 20-newsgroups dataset."
        return [*first, Section("The tasks", text, ("task", "classes"), rows), last]


class Sentiment(Texts):
    """Four tasks of reviews, positive or negative."""

    name = "sentiment"
    title = "Multi-domain sentiment"
    intro = (
        "The paper's section 9.4: reviews of books, DVDs, electronics and kitchen appliances, positive or negative; "
        f"10, 30 and 50 % of them, {_TERMS} For the supervised counterparts see `python -m paper reproduce transfer`."
    )
    fetch = staticmethod(fetch_sentiment_tasks)
    fractions = (0.1, 0.3, 0.5)
    tasks = staticmethod(lambda dataset: ("books", "dvd", "electr.", "kitchen"))
    captions: Mapping[str, str] = _captions("sentiment", 12) | {
        "per task": (
            "Fig. 16: NMI comparison between the proposed methods on the individual tasks with respect to different "
            "percentages of data on the sentiment dataset."
        ),
        "time": "Fig. 17: CPU time comparison on the sentiment dataset.",
    }


EXPERIMENTS: Mapping[str, Comparison] = {one.name: one for one in (Pendigits(), Newsgroups(), Sentiment())}
