"""``python -m paper reproduce balance``: NMI against the class balance parameter l (the paper's Fig. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paper.datasets import fetch_pendigits_tasks
from paper.experiments import figures
from paper.experiments.comparison import DATASETS, our_options
from paper.experiments.driver import Experiment
from paper.experiments.methods import OURS, fit_ours, load
from paper.experiments.page import Picture, Section
from paper.experiments.protocols import with_names
from paper.experiments.runner import Cell, Outcome
from paper.experiments.sections import failures

KERNELS = ("linear", "rbf")
#: the paper's values of l; of the other settings those of the reference solutions, so that rows differ in l only
BALANCE = (0.0, 0.03, 0.1, 0.2, 0.3)
AUTO = "auto"
WIDTH, LAMBDA = 0.5, 2.0**-10


def cells(repeats: int, quick: bool) -> list[Cell]:
    """Every job, l, method and kernel."""
    values: Sequence[float | str] = (0.0, 0.3, AUTO) if quick else (*BALANCE, AUTO)
    found = []
    for draw in range(repeats):
        for dataset in DATASETS[:1] if quick else DATASETS:
            for l in values:
                for method in OURS:
                    for kernel in KERNELS[1:] if quick else KERNELS:
                        protocol = "given" if l != AUTO else "no labels"
                        found.append(
                            Cell("balance", dataset, draw, (method,), kernel, "exchange", protocol, {"l": l}, draw)
                        )
    return found


def execute(cell: Cell) -> Sequence[Outcome]:
    """Run one cell: width and λ are fixed in advance."""
    fixed = {"lambda": LAMBDA} | ({"width": WIDTH} if cell.kernel == "rbf" else {})
    options = {"sizes": cell.setting["l"], **our_options(cell.methods[0], cell.kernel, fixed)}
    data = load(fetch_pendigits_tasks, int(cell.dataset[-1]), cell.draw)
    return fit_ours(cell.methods[0], data, cell.seed, **options)


def at_balance(named: Any, dataset: str, name: str, sizes: float | str) -> Any:
    """NMI at one l, indexed by draw."""
    mine = np.array([setting["l"] == sizes for setting in named["setting"]])
    rows = named[(named["dataset"] == dataset) & (named["name"] == name) & mine]
    return rows.set_index("draw")["nmi"]


def report(frame: Any, directory: Path) -> list[Section]:
    """The figure and the table behind it."""
    named = with_names(frame)
    datasets = [dataset for dataset in DATASETS if dataset in set(named["dataset"])]
    kernels = [kernel for kernel in KERNELS if kernel in set(named["kernel"])]
    steps = [value for value in BALANCE if value in {setting["l"] for setting in named["setting"]}]
    figure, axes = figures.panels(len(datasets), len(kernels), width=3.0, height=2.5)
    rows = []
    for line, kernel in enumerate(kernels):
        for column, d in enumerate(datasets):
            ax = axes[line, column]
            series = {}
            for name in (f"{method}_{kernel[0]}" for method in OURS):
                series[name] = [at_balance(named, d, name, step) for step in steps]
                free = at_balance(named, d, name, AUTO)
                if len(free):
                    ax.plot(0.36, free.mean(), "*", color=figures.colour(name), markersize=8)
                cells_ = [f"{part.mean():.3f}" if len(part) else "–" for part in (*series[name], free)]
                rows.append([d, name, *cells_])
            figures.lines(ax, steps, series)
            ax.set_xticks([*steps, 0.36], [*(f"{step:g}" for step in steps), "auto"], fontsize=7)
            ax.set_title(f"{d}, {kernel}")
            ax.set_xlabel("l")
            ax.set_ylabel("NMI" if column == 0 else "")
        axes[line, 0].legend(fontsize=7, frameon=False)
    picture = Picture(
        figures.save(figure, directory, "balance"),
        'Mean NMI and standard error over draws against l; star: sizes="auto". All classes have the same size, so '
        "l = 0 is the truth.",
        "Fig. 5: Clustering performance with respect to the class balance parameter l on the pendigits dataset.",
    )
    header = ("data set", "method", *(f"l = {step:g}" for step in steps), 'sizes="auto"')
    return [Section("NMI against l", "", header, rows, [picture]), *failures(frame)]


EXPERIMENT = Experiment(
    "balance",
    "Class balance",
    "The paper's last experiment on pendigits: every cluster's share may be off balance by as much as l. λ = 2⁻¹⁰ and, "
    "for the RBF kernel, width ½ are fixed in advance so that rows differ in l only; DMTRC is fully coupled, DSTC is "
    "every task alone at the same λ₁ and λ₂.",
    5,
    cells,
    execute,
    report,
)
EXPERIMENTS = {"balance": EXPERIMENT}
