"""``python -m paper reproduce pendigits``: the paper's section 9.1, Jobs 1 to 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from mtclust.datasets import TaskData
from paper.datasets import fetch_pendigits_tasks
from paper.datasets.pendigits import JOBS as TASKS_OF_JOB
from paper.experiments import figures
from paper.experiments.base import Experiment
from paper.experiments.methods import OURS, fit_ours, fit_reference, load, rows_of_ours
from paper.experiments.page import Picture, Section
from paper.experiments.protocols import REFERENCES, by_draw, display_name, with_names, without_labels
from paper.experiments.runner import Cell, Outcome, load_array, save_array
from paper.experiments.sections import (
    PROTOCOLS,
    failures,
    heat_figure,
    hinton_figure,
    mean_correlation,
    nmi_figure,
    nmi_table,
    off_diagonal_share_of,
    oracle_table,
    pictures,
    starts_table,
)
from paper.reference import REFERENCE_METHODS

NAME = "pendigits"
JOBS = (1, 2, 3)
KERNELS = ("linear", "rbf")
#: starts of a reference method, as in the paper
RESTARTS = 50
#: draws on which grids are run, for the oracle
ORACLE_DRAWS = 3
#: the paper's grids have 5 widths and 5 λ; the smaller widths and every second λ here
WIDTHS = (0.25, 0.5, 1.0)
LAMBDAS = tuple(2.0**-k for k in (2, 6, 10))
#: draws with the paper's own solver, and its cuts
CUTTING_DRAWS = 3
CUTS = 10
#: leading features of kernel PCA for DMTFC with the RBF kernel, as in the paper
COMPONENTS = 100

#: the methods in the order of tables and figures
NAMES = (
    *(display_name(method) for method in REFERENCES),
    *(display_name(method, kernel) for kernel in KERNELS for method in ("DSTC", "DMTFC", "DMTRC", "DMTRC auto")),
)

_QUICK_RESTARTS = 3


def dataset(job: int) -> str:
    return f"Job {job}"


def cells(repeats: int, quick: bool) -> list[Cell]:
    """All fits: everything without labels first, then grids for the oracle and the paper's own solver."""
    jobs = JOBS[:1] if quick else JOBS
    without, grids, cutting = [], [], []
    for draw in range(repeats):
        for job in jobs:
            common: dict[str, Any] = {"experiment": NAME, "dataset": dataset(job), "draw": draw, "seed": draw}
            starts = {"n_init": _QUICK_RESTARTS if quick else RESTARTS}
            without += [Cell(methods=(name,), setting=starts, **common) for name in REFERENCE_METHODS]
            without += [
                Cell(methods=rows_of_ours(name), kernel=kernel, solver="exchange", **common)
                for name in OURS
                for kernel in KERNELS
            ]
            if draw < (1 if quick else ORACLE_DRAWS):
                grids += _grid(common, starts, quick)
            if draw < (1 if quick else CUTTING_DRAWS):
                setting = {"max_cuts": 2 if quick else CUTS, "init": "k-means", "width": 0.5, "lambda": LAMBDAS[-1]}
                cutting.append(
                    Cell(
                        methods=("DMTRC",),
                        kernel="rbf",
                        solver="cutting-plane",
                        protocol="given",
                        setting=setting,
                        **common,
                    )
                )
    return without + grids + cutting


def _grid(common: dict[str, Any], starts: dict[str, int], quick: bool) -> list[Cell]:
    found = []
    for name, method in REFERENCE_METHODS.items():
        settings = method.settings() if method.grid else []
        for point in settings[: 2 if quick else None]:
            found.append(Cell(methods=(name,), protocol="grid", setting={**starts, **point}, **common))
    for name in OURS:
        for kernel in KERNELS[: 1 if quick else None]:
            for width in WIDTHS if kernel == "rbf" else (None,):
                for lambda_ in LAMBDAS[: 2 if quick else None]:
                    setting = {"lambda": lambda_} | ({"width": width} if width else {})
                    found.append(
                        Cell(
                            methods=(name,),
                            kernel=kernel,
                            solver="exchange",
                            protocol="grid",
                            setting=setting,
                            **common,
                        )
                    )
    return found


@lru_cache(maxsize=3)
def _data(job: int, draw: int) -> TaskData:
    return load(fetch_pendigits_tasks, job, draw)


def execute(cell: Cell) -> Sequence[Outcome]:
    """Run one cell."""
    data = _data(int(cell.dataset.split()[-1]), cell.draw)
    name = cell.methods[0]
    setting = dict(cell.setting)
    if name in REFERENCE_METHODS:
        return fit_reference(name, data, cell.seed, setting.pop("n_init"), setting)
    options: dict[str, Any] = {"kernel": cell.kernel, "sizes": "balanced", "solver": cell.solver}
    if name == "DMTFC" and cell.kernel == "rbf":
        options["n_components"] = COMPONENTS
    if "lambda" in setting:
        options |= {"lambda1": setting["lambda"], "lambda2": setting["lambda"]}
        if name == "DMTRC":
            options["coupling"] = "full"
    if "width" in setting:
        options["width"] = setting["width"]
    if cell.solver == "cutting-plane":
        options["solver_options"] = {key: setting[key] for key in ("max_cuts", "init")} | {"zero_tol": 0}
    keep = f"D_job{data_job(cell)}_{cell.kernel}" if cell.draw == 0 and cell.protocol == "no labels" else None
    return fit_ours(name, data, cell.seed, keep_as=keep, **options)


def data_job(cell: Cell) -> int:
    return int(cell.dataset.split()[-1])


def prepare(directory: Path, quick: bool) -> None:
    """Keep the two leading principal components of the six tasks of draw 0."""
    if load_array(directory, "pca_view") is None:
        data = _data(JOBS[0] if quick else JOBS[-1], 0)
        components = PCA(2, svd_solver="full").fit_transform(data.data)
        save_array(directory, "pca_view", np.column_stack([data.tasks, data.target, components]))


def report(frame: Any, directory: Path) -> list[Section]:
    """Figures and tables of the finished rows."""
    named = with_names(frame)
    datasets = [dataset(job) for job in JOBS if dataset(job) in set(named["dataset"])]
    numbers = {dataset(job): [str(task) for task in TASKS_OF_JOB[job]] for job in JOBS}
    free = without_labels(named)
    nmi_picture = nmi_figure(
        named,
        directory,
        datasets,
        NAMES,
        "nmi",
        {
            "caption": "Mean NMI without labels; line: standard deviation over draws; diamond: oracle.",
            "paper": "Fig. 2: NMI comparison on the pendigits dataset.",
        },
    )
    heat = heat_figure(
        directory,
        {f"D_job{job}_{kernel}": f"Job {job}, DMTFC_{kernel[0]}" for kernel in KERNELS for job in JOBS},
        "feature_covariance",
        {
            "caption": "D of draw 0: 16 pen coordinates (linear), 100 kernel principal components (RBF). "
            "The darker, the weaker.",
            "paper": "Fig. 3: Visualization of the shared feature filter learned by DMTFC on the pendigits dataset.",
        },
    )
    diagram = hinton_figure(
        free,
        directory,
        [(d, f"DMTRC_{k[0]}") for k in KERNELS for d in datasets],
        numbers,
        "task_relationship",
        {
            "caption": "Ω of draw 0; green: related, red: reverse, area: size.",
            "paper": "Fig. 4: Hinton diagram of the task relationship learned by DMTRC on the pendigits dataset.",
        },
    )
    return [
        Section("The tasks", pictures=pictures(_pca_figure(directory))),
        replace(nmi_table(named, datasets, NAMES), pictures=[nmi_picture]),
        *oracle_table(named, datasets, NAMES),
        starts_table(named, datasets, NAMES),
        Section("What is learned", _learned_text(free, datasets), pictures=pictures(heat, diagram)),
        _cutting_section(named, datasets),
        *failures(frame),
    ]


def _pca_figure(directory: Path) -> Picture | None:
    view = load_array(directory, "pca_view")
    if view is None:
        return None
    tasks = np.unique(view[:, 0])
    columns = min(3, len(tasks))
    figure, axes = figures.panels(columns, -(-len(tasks) // columns), width=2.5, height=2.3)
    for ax, task in zip(axes.flat, tasks):
        rows = view[view[:, 0] == task]
        figures.scatter(ax, rows[:, 2], rows[:, 3], rows[:, 1].astype(int), f"Task {task:.0f}")
    return Picture(
        figures.save(figure, directory, "tasks"),
        "Draw 0, two principal components of all rows; colour and symbol: the digit.",
        "Fig. 1: Visualization of the tasks on the pendigits data.",
    )


def _learned_text(free: Any, datasets: Sequence[str]) -> str:
    found = []
    for name in ("DMTRC_l", "DMTRC_r"):
        correlation = mean_correlation(free, dataset(3), name) if dataset(3) in datasets else None
        if correlation is not None:
            within, across = within_and_across(correlation)
            found.append(
                f"{name}, Job 3: correlation between two tasks of one group {within:.2f}, of different groups "
                f"{across:.2f} (means over draws)."
            )
    for name in ("DMTFC_l", "DMTFC_r"):
        shares = [f"{d} {off_diagonal_share_of(free, d, name):.2f}" for d in datasets]
        found.append(f"{name}: share of D² off the diagonal {', '.join(shares)}.")
    return "- " + "\n- ".join(found)


def within_and_across(correlation: NDArray[np.float64]) -> tuple[float, float]:
    """Mean correlation between two tasks of one group of Job 3, and of different groups."""
    first = np.arange(6) < 3
    same = np.equal.outer(first, first) & ~np.eye(6, dtype=bool)
    return float(correlation[same].mean()), float(correlation[np.not_equal.outer(first, first)].mean())


def _cutting_section(named: Any, datasets: Sequence[str]) -> Section:
    rows = []
    cutting = named[named["solver"] == "cutting-plane"]
    for d in datasets:
        of = cutting[cutting["dataset"] == d]
        exchange = by_draw(without_labels(named), d, "DMTRC_r")
        if of.empty:
            continue
        start, shrinkage, cuts = (
            np.mean([details[key] for details in of["details"]]) for key in ("nmi_start", "shrinkage", "cuts")
        )
        rows.append(
            [
                d,
                str(len(of)),
                f"{start:.3f}",
                f"{of['nmi'].mean():.3f}",
                f"{cuts:.0f}",
                f"{shrinkage:.3f}",
                f"{exchange[exchange.index.isin(of['draw'])].mean():.3f}",
                f"{of['seconds'].median():.1f}",
            ]
        )
    text = (
        "The paper's solver on its convex relaxation, DMTRC_r from k-means labels, λ = 2⁻¹⁰, width ½. What it returns "
        'is its start, then less and less of it: the relaxed labels Ỹ shrink to zero (page "What the convex relaxation '
        'does"; more cuts, starts and methods: `python benchmarks/cutting_plane.py`).'
    )
    header = ("data set", "draws", "its start", "NMI", "cuts", "|Ỹ|/|Y|", "exchange solver, no labels", "seconds")
    return Section("The paper's own solver", text, header, rows)


EXPERIMENT = Experiment(
    NAME,
    "Pendigits",
    "The paper's section 9.1: five digits a task, 100 rows a task; Jobs 1 and 2 have three related tasks each, Job 3 "
    f"all six. {PROTOCOLS}\n\nReference methods run from {RESTARTS} starts. Grids of the oracle: the reference "
    f"methods' own; ours λ ∈ {{2⁻², 2⁻⁶, 2⁻¹⁰}} and width ∈ {{¼, ½, 1}}, a part of the paper's, on the "
    f"first {ORACLE_DRAWS} draws only (cost). DMTFC_r uses the {COMPONENTS} leading features of kernel PCA, as in the "
    "paper.",
    30,
    cells,
    execute,
    report,
    prepare,
)
