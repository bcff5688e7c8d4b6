"""``python -m paper reproduce balance``: NMI against the class balance parameter l (the paper's Fig. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from paper.datasets import fetch_pendigits_tasks
from paper.experiments import page
from paper.experiments.comparison import DATASETS, our_options
from paper.experiments.driver import Experiment
from paper.experiments.methods import OURS, fit_ours
from paper.experiments.page import Section
from paper.experiments.protocols import by_draw
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


EXPERIMENTS = {"balance": Balance()}
