"""What the two text experiments share: a fraction of the documents, with and without PCA, all methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mtclust.datasets import TaskData
from paper.datasets import fetch_newsgroups_tasks, fetch_sentiment_tasks
from paper.experiments import figures
from paper.experiments.methods import fit_ours, fit_reference, load, rows_of_ours
from paper.experiments.page import Picture, Section
from paper.experiments.protocols import (
    REFERENCES,
    by_draw,
    display_name,
    number_text,
    slope,
    with_names,
    without_labels,
)
from paper.experiments.runner import Cell, Outcome
from paper.experiments.sections import (
    failures,
    heat_figure,
    hinton_figure,
    nmi_figure,
    nmi_table,
    off_diagonal_share_of,
    oracle_table,
    pictures,
    starts_table,
)
from paper.reference import REFERENCE_METHODS

#: principal components, as in the paper
COMPONENTS = 100
#: starts of a reference method; the paper has 50
RESTARTS = 10
#: grid of the oracle for our models, on the smallest fraction only
LAMBDAS = tuple(2.0**-k for k in (2, 6, 10))
ORACLE_DRAWS = 2
#: no limit on the number of draws
ALL = 10**6
#: the only fraction of a quick run
QUICK_FRACTION = 0.02
#: the methods that need a matrix of all rows with all rows and many steps on it
_POOLED_KERNEL = ("ALL KKM", "ALL NC")
_LOADERS: Mapping[str, Callable[..., TaskData]] = {
    "newsgroups": fetch_newsgroups_tasks,
    "sentiment": fetch_sentiment_tasks,
}
OUR_NAMES = tuple(
    display_name(method, "linear", raw)
    for raw in (False, True)
    for method in ("DSTC", "DMTFC", "DMTRC", "DMTRC auto")
    if not (raw and method == "DMTFC")
)
NAMES = (*(display_name(method) for method in REFERENCES), *OUR_NAMES)


@dataclass(frozen=True)
class TextJob:
    """One of the two corpora.

    Attributes
    ----------
    limits : mapping fraction → (int, int)
        The most draws, and the most draws on which coupled models run, which need N × N inverses.
    tasks : sequence of str
        Names for diagrams.
    figures : mapping
        What is drawn → the paper's caption.
    """

    name: str
    limits: Mapping[float, tuple[int, int]]
    tasks: Sequence[str]
    figures: Mapping[str, str]

    def dataset(self, fraction: float, raw: bool) -> str:
        return f"{_percent(fraction)}, {'raw' if raw else 'PCA'}"

    def costs(self) -> str:
        """What is left out for its cost, in words."""
        few = [
            f"{_percent(fraction)}: at most {draws} draws, {coupled or 'none'} of them with coupled models"
            for fraction, (draws, coupled) in self.limits.items()
            if coupled < ALL
        ]
        return (
            f"Costs decide what is run: reference methods from {RESTARTS} starts (the paper: 50); {'; '.join(few)}; "
            "ALL KKM and ALL NC not from 40 % on; oracle grids (ours: λ ∈ {2⁻², 2⁻⁶, 2⁻¹⁰}) at the smallest fraction "
            f"and on the first {ORACLE_DRAWS} draws only."
        )


def _percent(fraction: float) -> str:
    return f"{fraction * 100:g} %"


def cells_of(job: TextJob, repeats: int, quick: bool) -> list[Cell]:
    """All fits, small fractions first."""
    limits = {QUICK_FRACTION: (1, 1)} if quick else dict(job.limits)
    starts = {"n_init": 2 if quick else RESTARTS}
    found = []
    for fraction, (most, most_coupled) in limits.items():
        references = [name for name in REFERENCES if fraction < 0.4 or name not in _POOLED_KERNEL]
        for draw in range(min(repeats, most)):
            for raw in (False, True):
                common: dict[str, Any] = {
                    "experiment": job.name, "dataset": job.dataset(fraction, raw), "draw": draw, "seed": draw,
                }  # fmt: skip
                models = ["DSTC"]
                if draw < most_coupled:
                    models += ["DMTRC"] if raw else ["DMTFC", "DMTRC"]
                found += [Cell(methods=(m,), setting=starts, **common) for m in references if not raw]
                ours: dict[str, Any] = {"kernel": "linear", "solver": "exchange", **common}
                found += [Cell(methods=rows_of_ours(m), **ours) for m in models]
                if fraction == min(limits) and draw < ORACLE_DRAWS and not quick:
                    found += _grid(models, [] if raw else references, starts, common, ours)
    return found


def _grid(
    models: Sequence[str],
    references: Sequence[str],
    starts: Mapping[str, int],
    common: dict[str, Any],
    ours: dict[str, Any],
) -> list[Cell]:
    found = [
        Cell(methods=(m,), protocol="grid", setting={"lambda": value}, **ours) for m in models for value in LAMBDAS
    ]
    for name in references:
        points = REFERENCE_METHODS[name].settings() if REFERENCE_METHODS[name].grid else []
        found += [Cell(methods=(name,), protocol="grid", setting={**starts, **point}, **common) for point in points]
    return found


@lru_cache(maxsize=2)
def _data(name: str, fraction: float, draw: int, raw: bool) -> TaskData:
    data = load(_LOADERS[name], fraction, draw)
    if raw:
        return data
    return load(_LOADERS[name], fraction, draw, n_components=min(COMPONENTS, data.data.shape[0]))


def execute(cell: Cell) -> Sequence[Outcome]:
    """Run one cell of either corpus."""
    share, kind = cell.dataset.split(" %, ")
    data = _data(cell.experiment, float(share) / 100, cell.draw, kind == "raw")
    name, setting = cell.methods[0], dict(cell.setting)
    if name in REFERENCE_METHODS:
        return fit_reference(name, data, cell.seed, setting.pop("n_init"), setting)
    options: dict[str, Any] = {"kernel": "linear", "sizes": "balanced"}
    if "lambda" in setting:
        options |= {"lambda1": setting["lambda"], "lambda2": setting["lambda"]}
        if name == "DMTRC":
            options["coupling"] = "full"
    keep = f"D_{share}" if cell.draw == 0 and cell.protocol == "no labels" else None
    found = fit_ours(name, data, cell.seed, keep_as=keep, **options)
    return [replace(outcome, details={**outcome.details, "rows": len(data.target)}) for outcome in found]


def report_of(job: TextJob, frame: Any, directory: Path) -> list[Section]:
    """Figures and tables of the finished rows."""
    named = with_names(frame)
    fractions = sorted({float(text.split()[0]) / 100 for text in named["dataset"]})
    by_fraction = named.assign(dataset=[text.split(",")[0] for text in named["dataset"]])
    shares = [job.dataset(f, False).split(",")[0] for f in fractions]
    free = without_labels(named)
    bars = nmi_figure(
        by_fraction, directory, shares, NAMES, "nmi",
        {"caption": "Mean NMI without labels; line: standard deviation over draws; diamond: oracle; *: without PCA.",
         "paper": job.figures["nmi"]},
    )  # fmt: skip
    heat = heat_figure(
        directory, {f"D_{f * 100:.0f}": f"{share}, DMTFC_l" for f, share in zip(fractions, shares)},
        "feature_covariance",
        {"caption": "D of draw 0 over 100 principal components. The darker, the weaker.", "paper": job.figures["D"]},
        columns=4,
    )  # fmt: skip
    diagrams = [
        hinton_figure(
            free,
            directory,
            [(job.dataset(f, raw), display_name("DMTRC", "linear", raw)) for f in fractions],
            {job.dataset(f, raw): job.tasks for f in fractions},
            "task_relationship_raw" if raw else "task_relationship",
            {
                "caption": "Ω of draw 0, always coupled; green: related, red: reverse, area: size.",
                "paper": job.figures["omega raw" if raw else "omega"],
            },
        )
        for raw in (False, True)
    ]
    return [
        replace(nmi_table(by_fraction, shares, NAMES), pictures=[bars]),
        *oracle_table(by_fraction, shares, NAMES),
        starts_table(by_fraction, shares, NAMES),
        _per_task_section(job, by_fraction, directory, shares),
        Section("What is learned", _learned_text(free), pictures=pictures(heat, *diagrams)),
        _time_section(job, by_fraction, directory, shares),
        *failures(frame),
    ]


def _per_task_section(job: TextJob, frame: Any, directory: Path, shares: Sequence[str]) -> Section:
    free = without_labels(frame)
    names = [name for name in OUR_NAMES if name in set(free["name"])]
    figure, axes = figures.panels(len(shares), width=3.1, height=2.8)
    rows = []
    for ax, share in zip(axes[0], shares):
        series = {}
        for name in names:
            mine = free[(free["dataset"] == share) & (free["name"] == name)]
            if mine.empty:
                continue
            values = [[entry[task] for entry in mine["nmi_per_task"]] for task in mine["nmi_per_task"].iloc[0]]
            series[name] = values
            rows.append([share, name, *(f"{np.mean(column):.3f}" for column in values)])
        figures.lines(ax, range(len(job.tasks)), series, dashed=[name for name in names if name.startswith("*")])
        ax.set_xticks(range(len(job.tasks)), job.tasks, fontsize=8)
        ax.set_title(share)
        ax.set_ylabel("NMI")
    figures.legend_below(figure, axes[0, 0], 2 * len(shares))
    picture = Picture(
        figures.save(figure, directory, "per_task"),
        "NMI of every task, mean and standard error over draws; dashed: without PCA, or coupling decided by the model.",
        job.figures["per task"],
    )
    header = ("data", "method", *job.tasks)
    return Section("Task by task", "Mean over draws, no labels.", header, rows, [picture])


def _learned_text(free: Any) -> str:
    found = []
    for dataset in free[free["method"] == "DMTFC"]["dataset"].unique():
        share = off_diagonal_share_of(free, dataset, "DMTFC_l")
        found.append(f"{dataset}, DMTFC_l: share of D² off the diagonal {share:.2f}.")
    for (dataset, name), part in free[free["method"] == "DMTRC auto"].groupby(["dataset", "name"], sort=False):
        accepted = sum(details["accepted"] for details in part["details"])
        found.append(f"{dataset}, {name}: coupling kept in {accepted} of {len(part)} draws.")
    return "- " + "\n- ".join(found)


def _time_section(job: TextJob, frame: Any, directory: Path, shares: Sequence[str]) -> Section:
    free = without_labels(frame)
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
        f"CPU seconds of one fit, choosing and all starts included ({RESTARTS} of the references), against the share "
        "of the data.",
        job.figures["time"],
    )
    rows = []
    for name in names:
        medians = [by_draw(free, share, name, "seconds").median() for share in shares]
        rows.append([name, *map(number_text, medians), number_text(slope(sizes, medians))])
    header = ("method", *(f"{share}, s" for share in shares), "exponent of n")
    return Section("CPU time", "Median over draws.", header, rows, [picture])
