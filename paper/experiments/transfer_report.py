"""Figures and tables of ``python -m paper reproduce transfer``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paper.experiments import figures
from paper.experiments.page import Picture, Section
from paper.experiments.protocols import by_draw, difference, paired, with_names
from paper.experiments.sections import failures

COUPLED = ("DMTFC", "DMTRC", "DMTRC auto")


def report_of(frame: Any, directory: Path) -> list[Section]:
    """All sections for which there are rows."""
    named = with_names(frame)
    return [
        *_gain_against_rows(named, directory),
        *_gain_against_relatedness(named, directory),
        *_supervised(named, directory),
        *_stability(named),
        *failures(frame),
    ]


def sweep_values(named: Any, prefix: str, suffix: str = "") -> dict[float, str]:
    """Value → data set of the data sets named prefix + value + suffix."""
    found = {}
    for dataset in named["dataset"].unique():
        if dataset.startswith(prefix) and dataset.endswith(suffix):
            number = dataset[len(prefix) : len(dataset) - len(suffix)]
            if number.replace(".", "", 1).isdigit():
                found[float(number)] = dataset
    return dict(sorted(found.items()))


def coupled_names(kernel: str) -> list[str]:
    return [f"{name.split()[0]}_{kernel}" + (" auto" if name.endswith("auto") else "") for name in COUPLED]


def gains(named: Any, dataset: str, name: str, alone: str) -> Any:
    """NMI of a coupled method minus DSTC, draw by draw."""
    return (by_draw(named, dataset, name) - by_draw(named, dataset, alone)).dropna()


def _gain_against_rows(named: Any, directory: Path) -> list[Section]:
    sweeps: list[tuple[str, dict[float, str], str]] = [
        ("synthetic, rows per task", sweep_values(named, "samples "), "l"),
        ("pendigits Job 1, rows per digit", sweep_values(named, "Job 1, ", " per class"), "r"),
        ("pendigits Job 2, rows per digit", sweep_values(named, "Job 2, ", " per class"), "r"),
    ]
    return _gain_section(
        named, directory, sweeps, "gain_rows", "Gain against the number of rows",
        "Coupling can only help where a task's own rows do not settle its clusters.", log=True,
    )  # fmt: skip


def _gain_against_relatedness(named: Any, directory: Path) -> list[Section]:
    sweeps = [("synthetic, correlation between tasks", sweep_values(named, "correlation "), "l")]
    return _gain_section(
        named, directory, sweeps, "gain_relatedness", "Gain against relatedness",
        "The tasks' cluster centres are made with a chosen correlation: at 0 they have nothing in common.", log=False,
    )  # fmt: skip


def _gain_section(
    named: Any,
    directory: Path,
    sweeps: Sequence[tuple[str, dict[float, str], str]],
    stem: str,
    title: str,
    text: str,
    log: bool,
) -> list[Section]:
    shown = [(label, values, kernel) for label, values, kernel in sweeps if values]
    if not shown:
        return []
    figure, axes = figures.panels(len(shown), width=3.4, height=2.9)
    rows = []
    for ax, (label, values, kernel) in zip(axes[0], shown):
        alone = f"DSTC_{kernel}"
        names = coupled_names(kernel)
        series = {name: [gains(named, d, name, alone).to_numpy() for d in values.values()] for name in names}
        figures.lines(ax, list(values), series)
        ax.axhline(0, color="#444444", linewidth=0.8)
        if log:
            ax.set_xscale("log")
            ax.set_xticks(list(values), [f"{value:g}" for value in values])
            ax.minorticks_off()
        ax.set_xlabel(label)
        ax.set_ylabel(f"NMI minus that of {alone}")
        ax.legend(fontsize=7, frameon=False)
        for value, d in values.items():
            base = by_draw(named, d, alone)
            rows.append(
                [
                    label,
                    f"{value:g}",
                    str(len(base)),
                    f"{base.mean():.3f}",
                    *(str(paired(named, d, n, alone)) for n in names),
                ]
            )
    picture = Picture(
        figures.save(figure, directory, stem),
        "Gain over clustering every task alone: mean and standard error over draws.",
    )
    header = ("data", "value", "draws", "NMI of DSTC", "DMTFC − DSTC", "DMTRC − DSTC", "DMTRC auto − DSTC")
    return [Section(title, text, header, rows, [picture])]


def _supervised(named: Any, directory: Path) -> list[Section]:
    datasets = [d for d in named["dataset"].unique() if d.endswith("held out")]
    if not datasets:
        return []
    datasets = sorted(datasets)
    names = ("STL_l", "MTFL_l", "MTRL_l", "DSTC_l", "DMTFC_l", "DMTRC_l")
    figure, axes = figures.panels(len(datasets), width=3.0, height=2.3)
    rows = []
    for column, (ax, d) in enumerate(zip(axes[0], datasets)):
        figures.nmi_bars(ax, {name: by_draw(named, d, name).to_numpy() for name in names}, {}, d)
        if column:
            ax.set_yticklabels([])
        for name in names:
            mine = named[(named["dataset"] == d) & (named["name"] == name)]
            found = difference(mine["nmi"])
            accuracy = [details["accuracy"] for details in mine["details"] if "accuracy" in details]
            rows.append(
                [d, name, str(found.n), f"{found.mean:.3f}", f"{np.mean(accuracy):.3f}" if accuracy else "–",
                 f"{mine['seconds'].median():.2g}"]
            )  # fmt: skip
    picture = Picture(
        figures.save(figure, directory, "supervised"),
        "NMI on rows that were held out: with the labels of the drawn rows (STL, MTFL, MTRL) and without any (DSTC, "
        "DMTFC, DMTRC).",
    )
    text = (
        "STL, MTFL and MTRL are our core with the labels of the drawn rows given; DSTC, DMTFC and DMTRC (always "
        "coupled) get the same rows without labels. All are scored on the rows that were not drawn. Terms are "
        "weighted over all reviews; MTFL and DMTFC see the 200 leading features."
    )
    header = ("data", "method", "draws", "NMI", "accuracy", "seconds")
    return [Section("Supervised counterparts", text, header, rows, [picture])]


def _stability(named: Any) -> list[Section]:
    datasets = sorted(d for d in named["dataset"].unique() if d.endswith("other seeds"))
    rows = []
    for d in datasets:
        of = named[named["dataset"] == d]
        for name in of["name"].unique():
            mine = of[of["name"] == name]
            seeds = mine.groupby("draw")["nmi"].std(ddof=1)
            across = mine.groupby("draw")["nmi"].mean().std(ddof=1)
            rows.append(
                [d.split(",")[0], name, f"{mine['nmi'].mean():.3f}", f"{seeds.mean():.3f}", f"{across:.3f}",
                 str(mine["seed"].nunique()), str(mine["draw"].nunique())]
            )  # fmt: skip
    if not rows:
        return []
    text = (
        "The same rows with other seeds of the search, settings fixed (RBF, width ½, λ = 2⁻¹⁰; KM, NC and MBC with 10 "
        "starts): standard deviation over seeds, mean of the draws, beside that of the means over draws."
    )
    header = ("data", "method", "NMI", "SD over seeds", "SD over draws", "seeds", "draws")
    return [Section("Stability", text, header, rows)]
