"""``python -m paper reproduce`` balance and complexity: one thing varies, all settings are fixed in advance.

Balance is NMI against the class balance parameter l (the paper's Fig. 5), complexity time against n, d and m (section
9.2, Fig. 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from mtclust.datasets import TaskData
from paper.datasets import fetch_pendigits_tasks
from paper.experiments import page
from paper.experiments.comparison import DATASETS, our_options
from paper.experiments.driver import Experiment
from paper.experiments.methods import OURS, fit_ours
from paper.experiments.page import Section
from paper.experiments.protocols import by_draw, estimate, number_text, slope
from paper.experiments.runner import Cell, Outcome

KERNELS = ("linear", "rbf")
#: the paper's values of l; of the other settings those of the reference solutions, so that rows differ in l only
BALANCE = (0.0, 0.03, 0.1, 0.2, 0.3)
AUTO = "auto"
#: names of the rows with l = auto, and of those with any other l
AUTO_L, ALL_L = "l = auto", "all l"
WIDTH, LAMBDA = 0.5, 2.0**-10


def by_balance(named: Any) -> dict[str, Any]:
    """What was given as l → the rows; nothing of other experiments."""
    given = [setting.get("l") for setting in named["setting"]]
    found = {f"l = {l}" if l == AUTO else f"l = {l:g}": named[[own == l for own in given]] for l in set(given) - {None}}
    return found | {ALL_L: named[named["protocol"] == "given"]}


class Balance(Experiment):
    """Every job, l, method and kernel."""

    name = "balance"
    title = "Class balance"
    intro = (
        "The paper's last experiment on pendigits: every cluster's share may be off balance by as much as l. λ = 2⁻¹⁰ "
        "and, for the RBF kernel, width ½ are fixed in advance so that rows differ in l only; DMTRC is fully coupled, "
        "DSTC is every task alone at the same λ₁ and λ₂."
    )
    repeats = 5

    def cells(self, repeats: int, quick: bool, protocol: str) -> list[Cell]:
        """All fits; a quick run has one job, two values of l and the RBF kernel."""
        values: Sequence[float | str] = (0.0, 0.3, AUTO) if quick else (*BALANCE, AUTO)
        datasets, kernels = (DATASETS[:1], KERNELS[1:]) if quick else (DATASETS, KERNELS)
        return [
            Cell(
                self.name, d, draw, (method,), kernel, "exchange", "no labels" if l == AUTO else "given", {"l": l}, draw
            )
            for draw, d, l, method, kernel in product(range(repeats), datasets, values, OURS, kernels)
        ]

    def execute(self, cell: Cell) -> Sequence[Outcome]:
        fixed = {"lambda": LAMBDA} | ({"width": WIDTH} if cell.kernel == "rbf" else {})
        options = {"sizes": cell.setting["l"], **our_options(cell.methods[0], cell.kernel, fixed)}
        data = fetch_pendigits_tasks(int(cell.dataset[-1]), cell.draw)
        return fit_ours(cell.methods[0], data, cell.seed, **options)

    def report(self, named: Any, directory: Path) -> list[Section]:
        datasets, kernels = (sorted(named[column].unique()) for column in ("dataset", "kernel"))
        by_l = by_balance(named)
        steps = [value for value in BALANCE if f"l = {value:g}" in by_l]
        figure, axes = page.panels(len(datasets), len(kernels), width=3.0, height=2.5)
        rows = []
        for ax, (kernel, d) in zip(axes.flat, product(kernels, datasets)):
            series = {}
            for name in (f"{method}_{kernel[0]}" for method in OURS):
                series[name] = [by_draw(by_l[f"l = {step:g}"], d, name) for step in steps]
                free = by_draw(by_l[AUTO_L], d, name)
                if len(free):
                    ax.plot(0.36, free.mean(), "*", color=page.colour(name), markersize=8)
                rows.append([d, name, *(f"{part.mean():.3f}" if len(part) else "–" for part in (*series[name], free))])
            page.lines(ax, steps, series)
            ax.set_xticks([*steps, 0.36], [*(f"{step:g}" for step in steps), "auto"], fontsize=7)
            ax.set(title=f"{d}, {kernel}", xlabel="l")
        for ax in axes[:, 0]:
            ax.set_ylabel("NMI")
            ax.legend(fontsize=7, frameon=False)
        picture = page.save(
            figure, directory, "balance",
            'Mean NMI and standard error over draws against l; star: sizes="auto". All classes have the same size, so '
            "l = 0 is the truth.",
            "Fig. 5: Clustering performance with respect to the class balance parameter l on the pendigits dataset.",
        )  # fmt: skip
        header = ("data set", "method", *(f"l = {step:g}" for step in steps), 'sizes="auto"')
        text = (
            "Mean over draws. With 100 rows and 5 clusters l = 0.03 allows the sizes of l = 0 and no others, so that "
            "the two columns agree."
        )
        return [Section("NMI against l", text, header, rows, [picture])]


# --- complexity

METHODS = ("DMTFC", "DMTRC")
#: cuts of the paper's solver; it does not print how many it made
CUTS = 5
#: draws of the paper's solver
CUTTING_DRAWS = 3
#: rows of all tasks together in the sweep over m, as in the paper, and in that of a quick run
ROWS_IN_ALL, QUICK_ROWS_IN_ALL = 3000, 60
#: letter → the values that it takes, a quick run the first two, and at how many of them the paper's solver runs, too
SWEEPS = {
    "n": ((25, 50, 100, 200, 400), 4),
    "d": ((3, 10, 30, 100, 300, 1000), 5),
    "m": ((2, 3, 5, 10, 20, 30), 6),
}


def shape_of(dataset: str) -> dict[str, Any]:
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


def with_sweeps(named: Any) -> Any:
    """The rows with the columns ``sweep`` and ``value``."""
    sweeps = [text.split(":")[0] for text in named["dataset"]]
    return named.assign(sweep=sweeps, value=[shape_of(d)[sweep] for d, sweep in zip(named["dataset"], sweeps)])


def exponents(named: Any, sweep: str, name: str, half: bool = False) -> list[float]:
    """P of time ∝ xᵖ for one method, draw by draw, over all x or the larger half of those that draw 0 has."""
    rows = named[(named["sweep"] == sweep) & (named["name"] == name)]
    values = sorted(rows["value"].unique())
    rows = rows[rows["value"].isin(values[len(values) // 2 if half else 0 :])]
    return [slope(part["value"], part["seconds"]) for _, part in rows.groupby("draw")]


class Complexity(Experiment):
    """Every sweep, value, method and solver."""

    name = "complexity"
    title = "Complexity"
    intro = (
        "The paper's section 9.2: two Gaussian classes in every task, linear kernel, λ₁ = λ₂ = 2⁻¹⁰, l = 0. Both "
        f"solvers: the default one (exchange) and the paper's cutting planes ({CUTS} cuts, first {CUTTING_DRAWS} "
        f"draws, small sizes). The sweep over m has {ROWS_IN_ALL} rows in all, as in the paper: there the weights of "
        "the pools are found by a quadratic program, because the level method, which is timed in the other sweeps, "
        "takes over a minute for one fit of DMTFC. DMTRC is fully coupled; the search of every task alone is part of "
        "the exchange solver's time."
    )
    repeats = 5

    def cells(self, repeats: int, quick: bool, protocol: str) -> list[Cell]:
        """All fits; those with few rows first, so that an interrupted run has as many rows as can be."""
        found = []
        in_all = QUICK_ROWS_IN_ALL if quick else ROWS_IN_ALL
        for sweep, (values, n_cutting) in SWEEPS.items():
            for at, value in enumerate(values[: 2 if quick else None]):
                # as in the paper
                n, d, m = {"n": (value, 3, 3), "d": (100, value, 3), "m": (in_all // value, 10, value)}[sweep]
                reduced = {"reduced": "quadratic" if sweep == "m" else "level"}
                for draw, method in product(range(repeats), METHODS):
                    common = (self.name, f"{sweep}: n={n} d={d} m={m}", draw, (method,), "linear")
                    found.append(Cell(*common, "exchange", "given", seed=draw))
                    if at < n_cutting and draw < CUTTING_DRAWS:
                        found.append(Cell(*common, "cutting-plane", "given", reduced, draw))
        return sorted(found, key=lambda cell: shape_of(cell.dataset)["n"] * shape_of(cell.dataset)["m"])

    def execute(self, cell: Cell) -> Sequence[Outcome]:
        data = gaussian_tasks(seed=cell.draw, **shape_of(cell.dataset))
        options = {"sizes": 0.0, "solver": cell.solver, **our_options(cell.methods[0], "linear", {"lambda": LAMBDA})}
        if cell.solver == "cutting-plane":
            options["solver_options"] = {"max_cuts": CUTS, "init": "k-means", "zero_tol": 0, **cell.setting}
        return fit_ours(cell.methods[0], data, cell.seed, **options)

    def report(self, named: Any, directory: Path) -> list[Section]:
        named = with_sweeps(named)
        shown = [name for name in SWEEPS if name in set(named["sweep"])]
        figure, axes = page.panels(len(shown), width=3.1, height=3.2)
        fits = []
        for ax, sweep in zip(axes[0], shown):
            rows = named[named["sweep"] == sweep]
            datasets = dict(sorted(zip(rows["value"], rows["dataset"])))
            names = rows.sort_values(["solver", "method"], ascending=False)["name"].unique()
            series = {name: [by_draw(rows, d, name, "seconds") for d in datasets.values()] for name in names}
            lowest = min(columns[0].median() for columns in series.values() if len(columns[0]))
            page.times(ax, {value: str(value) for value in datasets}, series, lowest, {2: "O(x²)", 3: "O(x³)"})
            fixed = shape_of(rows["dataset"].iloc[0])
            if sweep == "m":
                fixed["n"] = f"{fixed['n'] * fixed['m']}/m"
            others = ", ".join(f"{letter} = {number}" for letter, number in fixed.items() if letter != sweep)
            limits = (rows["seconds"].min() / 2, rows["seconds"].max() * 3)
            ax.set(ylim=limits, xlabel=sweep, title=f"{sweep} ({others})")
            for name, columns in series.items():
                powers = [estimate(exponents(named, sweep, name, half)).mean for half in (False, True)]
                fits.append(
                    [sweep, name, *map(number_text, powers),
                     " / ".join(number_text(column.median(), ".2g") for column in columns),
                     f"{rows[rows['name'] == name]['nmi'].mean():.2f}"]
                )  # fmt: skip
        page.legend_below(figure, axes[0, 0], 6)
        picture = page.save(
            figure, directory, "time",
            "CPU seconds on one core, mean over draws, with lines of slope 2 and 3.",
            "Fig. 6: Time complexities with respect to the data set size of each task (n), feature dimension (d), and "
            "number of tasks (m).",
        )  # fmt: skip
        header = ("x", "method", "exponent of x", "upper half of x", "median seconds at each x", "NMI")
        text = (
            "Exponents p of time ∝ xᵖ, by least squares on logarithms, mean over draws, over all x and over the larger "
            "half of them. Models are solved by exchange unless it says cutting planes. The exchange solver goes from "
            "matrices of all rows with all rows to explicit features as they grow: its exponents say nothing about the "
            "paper's solver. This experiment is about time: unless d is large, the classes overlap so much that no "
            "method finds them (last column: mean NMI)."
        )
        return [Section("CPU time", text, header, fits, [picture])]


EXPERIMENTS = {one.name: one for one in (Balance(), Complexity())}
