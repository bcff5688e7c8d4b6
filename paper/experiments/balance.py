"""``python -m paper reproduce balance``: NMI against the class balance parameter l (the paper's Fig. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from mtclust.datasets import TaskData
from paper.datasets import fetch_pendigits_tasks
from paper.experiments import figures
from paper.experiments.base import Experiment
from paper.experiments.methods import fit_ours, load
from paper.experiments.page import Picture, Section
from paper.experiments.protocols import with_names
from paper.experiments.runner import Cell, Outcome
from paper.experiments.sections import failures

NAME = "balance"
JOBS = (1, 2, 3)
KERNELS = ("linear", "rbf")
METHODS = ("DSTC", "DMTFC", "DMTRC")
#: the paper's values of l, and sizes chosen without labels
BALANCE = (0.0, 0.03, 0.1, 0.2, 0.3)
AUTO = "auto"
#: fixed in advance, so that the rows differ in l only; the values of the reference solutions
WIDTH = 0.5
LAMBDA = 2.0**-10
COMPONENTS = 100


def dataset(job: int) -> str:
    return f"Job {job}"


def cells(repeats: int, quick: bool) -> list[Cell]:
    """Every job, l, method and kernel."""
    jobs, kernels = (JOBS[:1], KERNELS[1:]) if quick else (JOBS, KERNELS)
    values: Sequence[float | str] = (0.0, 0.3, AUTO) if quick else (*BALANCE, AUTO)
    return [
        Cell(
            NAME, dataset(job), draw, (method,), kernel, "exchange", "given" if sizes != AUTO else "no labels",
            {"l": sizes}, seed=draw,
        )
        for draw in range(repeats)
        for job in jobs
        for sizes in values
        for method in METHODS
        for kernel in kernels
    ]  # fmt: skip


@lru_cache(maxsize=3)
def _data(job: int, draw: int) -> TaskData:
    return load(fetch_pendigits_tasks, job, draw)


def execute(cell: Cell) -> Sequence[Outcome]:
    """Run one cell."""
    method = cell.methods[0]
    options: dict[str, Any] = {"kernel": cell.kernel, "lambda1": LAMBDA, "lambda2": LAMBDA, "sizes": cell.setting["l"]}
    if cell.kernel == "rbf":
        options["width"] = WIDTH
        if method == "DMTFC":
            options["n_components"] = COMPONENTS
    if method == "DMTRC":
        options["coupling"] = "full"
    return fit_ours(method, _data(int(cell.dataset[-1]), cell.draw), cell.seed, **options)


def report(frame: Any, directory: Path) -> list[Section]:
    """The figure and the table behind it."""
    named = with_names(frame)
    named["l"] = [setting["l"] for setting in named["setting"]]
    datasets = [dataset(job) for job in JOBS if dataset(job) in set(named["dataset"])]
    kernels = [kernel for kernel in KERNELS if kernel in set(named["kernel"])]
    steps = [value for value in BALANCE if value in set(named["l"])]
    figure, axes = figures.panels(len(datasets), len(kernels), width=3.0, height=2.5)
    rows = []
    for line, kernel in enumerate(kernels):
        for column, d in enumerate(datasets):
            ax = axes[line, column]
            names = [f"{method}_{kernel[0]}" for method in METHODS]
            series = {name: [values(named, d, name, step) for step in steps] for name in names}
            figures.lines(ax, steps, series)
            for name in names:
                free = values(named, d, name, AUTO)
                if len(free):
                    ax.plot(0.36, free.mean(), "*", color=figures.colour(name), markersize=8)
                columns = [values(named, d, name, step) for step in steps] + [free]
                rows.append([d, name, *(f"{part.mean():.3f}" if len(part) else "–" for part in columns)])
            ax.set_xticks([*steps, 0.36], [*(f"{step:g}" for step in steps), "auto"], fontsize=7)
            ax.set_title(f"{d}, {kernel}")
            ax.set_xlabel("l")
            if column == 0:
                ax.set_ylabel("NMI")
        axes[line, 0].legend(fontsize=7, frameon=False)
    picture = Picture(
        figures.save(figure, directory, "balance"),
        'Mean NMI and standard error over draws against l; star: sizes="auto". All classes have the same size, so '
        "l = 0 is the truth.",
        "Fig. 5: Clustering performance with respect to the class balance parameter l on the pendigits dataset.",
    )
    header = ("data set", "method", *(f"l = {step:g}" for step in steps), 'sizes="auto"')
    return [Section("NMI against l", "", header, rows, [picture]), *failures(frame)]


def values(named: Any, dataset_: str, name: str, sizes: float | str) -> Any:
    """NMI at one l, indexed by draw."""
    rows = named[(named["dataset"] == dataset_) & (named["name"] == name) & (named["l"] == sizes)]
    return rows.set_index("draw")["nmi"]


EXPERIMENT = Experiment(
    NAME,
    "Class balance",
    "The paper's last experiment on pendigits: every cluster's share may be off balance by as much as l. λ = 2⁻¹⁰ and, "
    "for the RBF kernel, width ½ are fixed in advance so that rows differ in l only; DMTRC is fully coupled, DSTC is "
    "every task alone at the same λ₁ and λ₂.",
    5,
    cells,
    execute,
    report,
)
