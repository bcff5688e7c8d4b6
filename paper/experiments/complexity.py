"""``python -m paper reproduce complexity``: time against n, d and m (section 9.2, Fig. 6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtclust.datasets import TaskData
from paper.experiments import figures
from paper.experiments.comparison import our_options
from paper.experiments.driver import Experiment
from paper.experiments.methods import fit_ours
from paper.experiments.page import Picture, Section
from paper.experiments.protocols import estimate, number_text, slope, with_names
from paper.experiments.runner import Cell, Outcome
from paper.experiments.sections import failures

NAME = "complexity"
METHODS = ("DMTFC", "DMTRC")
SOLVERS = ("exchange", "cutting-plane")
#: the paper's setting
LAMBDA = 2.0**-10
#: cuts of the paper's solver; it does not print how many it made
CUTS = 5
#: draws of the paper's solver
CUTTING_DRAWS = 3
#: rows of all tasks together in the sweep over m, as in the paper
ROWS_IN_ALL = 3000
_QUICK_ROWS_IN_ALL = 60


#: panel → the values that its first letter takes, those of a quick run, and those at which the paper's solver runs, too
SWEEPS: dict[str, tuple[tuple[int, ...], ...]] = {
    "n": ((25, 50, 100, 200, 400), (25, 50), (25, 50, 100, 200)),
    "d": ((3, 10, 30, 100, 300, 1000), (3, 10), (3, 10, 30, 100, 300)),
    "m": ((2, 3, 5, 10, 20, 30), (3, 5), (2, 3, 5, 10, 20, 30)),
}


def cells(repeats: int, quick: bool) -> list[Cell]:
    """Every sweep, value, method and solver; quick ones first."""
    found = []
    in_all = _QUICK_ROWS_IN_ALL if quick else ROWS_IN_ALL
    for name, (values, quick_values, cutting) in SWEEPS.items():
        for value in quick_values if quick else values:
            # as in the paper
            n, d, m = {"n": (value, 3, 3), "d": (100, value, 3), "m": (in_all // value, 10, value)}[name[0]]
            draws = {"exchange": repeats, "cutting-plane": min(repeats, CUTTING_DRAWS)}
            for solver in SOLVERS if value in cutting[: 1 if quick else None] else SOLVERS[:1]:
                reduced = {"reduced": "quadratic" if name == "m" else "level"} if solver == "cutting-plane" else {}
                shape = f"{name}: n={n} d={d} m={m}"
                found += [
                    Cell(NAME, shape, draw, (method,), "linear", solver, "given", reduced, seed=draw)
                    for draw in range(draws[solver])
                    for method in METHODS
                ]

    def cost(cell: Cell) -> float:
        """Roughly how long a cell takes: an interrupted run then has as many rows as can be."""
        shape = shape_of(cell.dataset)
        return (shape["n"] * shape["m"]) ** 2 * (30.0 if cell.solver == "cutting-plane" else 1.0)

    return sorted(found, key=cost)


def shape_of(dataset: str) -> dict[str, int]:
    """n, d and m from the name of a data set.

    Examples
    --------
    >>> shape_of("n: n=600 d=3 m=3")
    {'n': 600, 'd': 3, 'm': 3}
    """
    pairs = (part.split("=") for part in dataset.split(": ")[1].split())
    return {letter: int(number) for letter, number in pairs}


def gaussian_tasks(n: int, d: int, m: int, seed: int) -> TaskData:
    """Tasks of two Gaussian classes: of every feature means from [0, 1], variances from [.5, 5]."""
    rng = np.random.RandomState(seed)
    target = np.tile(np.sort(np.arange(n) % 2), m)
    tasks = np.repeat(np.arange(m), n)
    means = rng.uniform(0.0, 1.0, size=(m, 2, d))
    spreads = np.sqrt(rng.uniform(0.5, 5.0, size=(m, 2, d)))
    noise = rng.standard_normal((m * n, d))
    data = means[tasks, target] + spreads[tasks, target] * noise
    return TaskData(data, target, tasks, ("0", "1"), None)


def execute(cell: Cell) -> Sequence[Outcome]:
    """Run one cell."""
    data = gaussian_tasks(seed=cell.draw, **shape_of(cell.dataset))
    options = {"sizes": 0.0, "solver": cell.solver, **our_options(cell.methods[0], "linear", {"lambda": LAMBDA})}
    if cell.solver == "cutting-plane":
        options["solver_options"] = {"max_cuts": CUTS, "init": "k-means", "zero_tol": 0, **cell.setting}
    return fit_ours(cell.methods[0], data, cell.seed, **options)


def report(frame: Any, directory: Path) -> list[Section]:
    """The figure with fitted exponents and the table behind it."""
    named = with_sweeps(with_names(frame))
    shown = [name for name in SWEEPS if name in set(named["sweep"])]
    figure, axes = figures.panels(len(shown), width=3.1, height=3.2)
    fits = []
    for ax, sweep in zip(axes[0], shown):
        rows = named[named["sweep"] == sweep]
        values = sorted(rows["value"].unique())
        names = list(dict.fromkeys(rows.sort_values(["solver", "method"], ascending=False)["name"]))
        series = {
            n: [rows[(rows["name"] == n) & (rows["value"] == v)]["seconds"].to_numpy() for v in values] for n in names
        }
        lowest = min(np.median(columns[0]) for columns in series.values() if len(columns[0]))
        dashed = [n for n in names if "cutting" in n]
        figures.times(ax, values, series, dashed, lowest, {2: "O(x²)", 3: "O(x³)"}, list(map(str, values)))
        ax.set_ylim(float(rows["seconds"].min()) / 2, float(rows["seconds"].max()) * 3)
        ax.set_xlabel(sweep[0])
        fixed = shape_of(rows["dataset"].iloc[0])
        in_all = f"n = {fixed['n'] * fixed['m']}/m" if sweep == "m" else f"n = {fixed['n']}"
        others = {"n": in_all, "d": f"d = {fixed['d']}", "m": f"m = {fixed['m']}"}
        ax.set_title(f"{sweep} ({', '.join(text for letter, text in others.items() if letter != sweep[0])})")
        for name in names:
            medians = [rows[(rows["name"] == name) & (rows["value"] == v)]["seconds"].median() for v in values]
            powers = [estimate(exponents(named, sweep, name, half)).mean for half in (False, True)]
            fits.append(
                [sweep, name, *map(number_text, powers),
                 " / ".join(number_text(t, ".2g") for t in medians),
                 f"{rows[rows['name'] == name]['nmi'].mean():.2f}"]
            )  # fmt: skip
    figures.legend_below(figure, axes[0, 0], 6)
    picture = Picture(
        figures.save(figure, directory, "time"),
        "CPU seconds on one core, mean over draws, with lines of slope 2 and 3.",
        "Fig. 6: Time complexities with respect to the data set size of each task (n), feature dimension (d), and "
        "number of tasks (m).",
    )
    header = ("x", "method", "exponent of x", "upper half of x", "median seconds at each x", "NMI")
    text = (
        "Exponents p of time ∝ xᵖ, by least squares on logarithms, mean over draws, over all x and over the larger "
        "half of them. The exchange solver goes from matrices of all rows with all rows to explicit features as they "
        "grow: its exponents say nothing about the paper's solver. "
        "This experiment is about time: unless d is large, the classes overlap so much that no method finds them (last "
        "column: mean NMI)."
    )
    return [Section("CPU time", text, header, fits, [picture]), *failures(frame)]


def with_sweeps(named: Any) -> Any:
    """The rows with the columns ``sweep`` and ``value``."""
    sweeps = [text.split(":")[0] for text in named["dataset"]]
    values = [shape_of(text)[sweep[0]] for text, sweep in zip(named["dataset"], sweeps)]
    return named.assign(sweep=sweeps, value=values)


def exponents(named: Any, sweep: str, name: str, half: bool = False) -> list[float]:
    """P of time ∝ xᵖ for one method, draw by draw, over all x or the larger half of those that draw 0 has."""
    rows = named[(named["sweep"] == sweep) & (named["name"] == name)]
    values = sorted(rows["value"].unique())
    rows = rows[rows["value"].isin(values[len(values) // 2 if half else 0 :])]
    return [slope(part["value"].to_numpy(), part["seconds"].to_numpy()) for _, part in rows.groupby("draw")]


EXPERIMENT = Experiment(
    NAME,
    "Complexity",
    "The paper's section 9.2: two Gaussian classes in every task, linear kernel, λ₁ = λ₂ = 2⁻¹⁰, l = 0. Both "
    f"solvers: the default one (exchange) and the paper's cutting planes ({CUTS} cuts, first {CUTTING_DRAWS} draws, "
    f"small sizes). The sweep over m has {ROWS_IN_ALL} rows in all, as in the paper: there the weights of the pools "
    "are found by a quadratic program, because the level method, which is timed in the other sweeps, takes over a "
    "minute for one fit of DMTFC. DMTRC is fully coupled; the search of every task alone is part of the exchange "
    "solver's time.",
    5,
    cells,
    execute,
    report,
)
EXPERIMENTS = {NAME: EXPERIMENT}
