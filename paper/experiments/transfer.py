"""``python -m paper reproduce transfer``: when coupling helps: data per task, relatedness, supervision, stability.

The supervised counterparts MTRL and MTFL are the core of DMTRC and DMTFC with the labels given.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.coupling import BaseCoupling, Conditioned, Independent, Relationship, SharedFeatures
from mtclust.core.kernels import Kernel, centre_kernel, eigen_features
from mtclust.core.labels import label_codes
from mtclust.core.model import KernelOrigin, build_model
from mtclust.core.tasks import index_tasks, numbers_of_known_tasks
from mtclust.datasets import TaskData, make_related_tasks
from mtclust.search.problem import predictions_left_out
from paper.datasets import fetch_pendigits_tasks, fetch_sentiment_tasks
from paper.experiments import page
from paper.experiments.comparison import our_options
from paper.experiments.driver import Experiment
from paper.experiments.methods import OURS, ROWS_OF, fit_ours, fit_reference, scores, warm_up
from paper.experiments.page import Section, bar_figure, table
from paper.experiments.protocols import by_draw, display_name, estimate
from paper.experiments.runner import Cell, Outcome

NAME = "transfer"
#: rows per task of the synthetic tasks
SAMPLES = (12, 24, 48, 96, 192)
#: rows per digit of pendigits
PER_CLASS = (5, 10, 20, 40, 80)
#: correlation between the synthetic tasks
CORRELATIONS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
#: what grows → the names of its data sets, the values it takes, and the kernel
SWEEPS: Mapping[str, tuple[str, tuple[float, ...], str]] = {
    "synthetic, rows per task": ("samples {:g}", SAMPLES, "linear"),
    "pendigits Job 1, rows per digit": ("Job 1, {:g} per class", PER_CLASS, "rbf"),
    "pendigits Job 2, rows per digit": ("Job 2, {:g} per class", PER_CLASS, "rbf"),
    "synthetic, correlation between tasks": ("correlation {:g}", CORRELATIONS, "linear"),
}
#: the data sets of a quick run, which needs no data
QUICK = ("samples 24", "correlation 0", "correlation 0.9", "synthetic, held out")
#: synthetic draws for one draw of real data: they cost little
SYNTHETIC_DRAWS = 2
N_TASKS, SEPARATION, RELATED_ROWS = 4, 3.0, 48
#: percentages of the reviews that are drawn (and, for the supervised models, labelled)
SENTIMENT = (10, 30)
#: features of MTFL and DMTFC on raw reviews
COMPONENTS = 200
#: stability: seeds of every draw
SEEDS = 10
STABILITY_REFERENCES, STABILITY_STARTS = ("KM", "NC", "MBC"), 10
FIXED = {"width": 0.5, "lambda": 2.0**-10}
#: MTRL learns Ω, MTFL D, STL every task alone
KINDS = ("STL", "MTFL", "MTRL")
LAMBDAS = tuple(2.0**-k for k in (2, 4, 6, 8, 10))
_MAX_STEPS, _TOLERANCE = 30, 1e-4


def _ours(dataset: str, draws: int, kernel: str) -> list[Cell]:
    ways = product(range(draws), OURS)
    return [Cell(NAME, dataset, draw, ROWS_OF[name], kernel, "exchange", seed=draw) for draw, name in ways]


def _supervised(dataset: str, draws: int) -> list[Cell]:
    models = [(kind, "", "labels given") for kind in KINDS] + [(name, "exchange", "no labels") for name in OURS]
    return [
        Cell(NAME, dataset, draw, (name,), "linear", solver, protocol, seed=draw)
        for draw, (name, solver, protocol) in product(range(draws), models)
    ]


def _stability(draws: int) -> list[Cell]:
    models = [(name, "rbf", "exchange") for name in OURS] + [(name, "", "") for name in STABILITY_REFERENCES]
    return [
        Cell(NAME, f"Job {job}, other seeds", draw, (name,), kernel, solver, "given", {"random_state": seed}, seed)
        for draw, job, seed, (name, kernel, solver) in product(range(draws), (1, 2), range(SEEDS), models)
    ]


@lru_cache(maxsize=2)
def _data(dataset: str, draw: int) -> TaskData:
    words = dataset.replace(",", "").split()
    if words[0] == "Job":
        rows = int(words[2]) if words[2].isdigit() else 20
        return fetch_pendigits_tasks(int(words[1]), draw, rows_per_class=rows)
    if words[0] == "samples":
        return _related(0.9, int(words[1]), draw)
    return _related(float(words[1]), RELATED_ROWS, draw)


def _related(rho: float, samples: int, draw: int) -> TaskData:
    return make_related_tasks(N_TASKS, task_covariance=rho, n_samples=samples, separation=SEPARATION, random_state=draw)


@lru_cache(maxsize=1)
def _split_data(dataset: str, draw: int) -> tuple[TaskData, np.ndarray]:
    """All rows, and which of them are drawn; the others are held out."""
    if dataset.startswith("synthetic"):
        data = _related(0.9, 4 * RELATED_ROWS, draw)
        rng = np.random.default_rng(draw)
        drawn = np.zeros(len(data.target), dtype=bool)
        for task in np.unique(data.tasks):
            drawn[rng.permutation(np.flatnonzero(data.tasks == task))[:RELATED_ROWS]] = True
        return data, drawn
    data, smaller = (fetch_sentiment_tasks(share, draw) for share in (1.0, float(dataset.split()[1]) / 100))
    assert data.rows is not None
    assert smaller.rows is not None
    return data, np.isin(data.rows, smaller.rows)


class SupervisedLinear:
    """Linear classifiers of several tasks that share Ω (MTRL), D (MTFL) or nothing (STL).

    With Y known the objective is convex in (W, Ω) or (W, D) together; W and the closed form of the coupling are
    alternated. MTFL takes ``n_components`` leading eigen-features, all by default. ``lambda_`` is the λ₁ = λ₂ with the
    best leave-one-out predictions of the given labels, ``coupling_matrix_`` Ω, D or I/m.
    """

    def __init__(self, kind: str, n_components: int | None = None) -> None:
        self.kind, self.n_components = kind, n_components

    def fit(self, X: Any, y: NDArray[np.int64], tasks: Any) -> SupervisedLinear:
        """Learn from labelled rows; ``y`` counts the classes from 0."""
        index = index_tasks(tasks, X.shape[0])
        self.tasks_, rows, kernel = index.names, X[index.order], Kernel("linear")
        centred = centre_kernel(kernel(rows, rows), index.offsets, True)
        codes = label_codes(np.asarray(y)[index.order], int(np.max(y)) + 1)
        couplings: Iterable[BaseCoupling]
        if self.kind == "MTRL":
            couplings = (Relationship(centred.matrix, index.offsets, l, l) for l in LAMBDAS)
        elif self.kind == "MTFL":
            features = eigen_features(centred.matrix, self.n_components)
            couplings = (SharedFeatures(features, index.offsets, l, l) for l in LAMBDAS)
        else:
            couplings = (Independent(centred.matrix, index.offsets, l * (1 + index.n_tasks)) for l in LAMBDAS)
        states = [_alternate(coupling, codes) for coupling in couplings]
        errors = [np.sum((codes - predictions_left_out(state, codes, True)) ** 2) for state in states]
        best = int(np.argmin(errors))
        self.lambda_, state = LAMBDAS[best], states[best]
        self.coupling_matrix_ = state.Z
        present = np.ones((index.n_tasks, codes.shape[1]), dtype=bool)
        self.model_ = build_model(
            KernelOrigin(kernel, rows, centred, index.order), state.coupling.predictors(state, codes), present
        )
        return self

    def predict(self, X: Any, tasks: Any) -> NDArray[np.int64]:
        """The class of each row."""
        codes = numbers_of_known_tasks(tasks, X.shape[0], self.tasks_)
        return np.asarray(self.model_.scores(X, codes).argmax(axis=1))


def _alternate(coupling: BaseCoupling, codes: NDArray[np.float64]) -> Conditioned:
    """W given Z in closed form, Z given W in closed form, until the objective stands."""
    state: Conditioned = coupling.condition(coupling.uncoupled())
    value = state.objective(codes)
    for _ in range(_MAX_STEPS):
        state = coupling.condition(state.coupling.closed_form_of_rows(state, codes))
        before, value = value, state.objective(codes)
        if before - value <= _TOLERANCE * before:
            break
    return state


def _held_out(cell: Cell) -> Outcome:
    """Fit on the drawn rows, with their labels or without; NMI on the rows that were held out."""
    name = cell.methods[0]
    data, drawn = _split_data(cell.dataset, cell.draw)
    X, y, tasks = data.X_y_tasks
    options: dict[str, Any] = {"n_components": COMPONENTS} if name in ("DMTFC", "MTFL") else {}
    warm_up()
    begin = time.process_time()
    if name in KINDS:
        model: Any = SupervisedLinear(name, **options).fit(X[drawn], y[drawn], tasks[drawn])
        chosen = {"lambda": model.lambda_}
        found = model.predict(X[~drawn], tasks[~drawn])
        details = {"accuracy": float((found == y[~drawn]).mean())}
    else:
        options |= {"coupling": "full"} if name == "DMTRC" else {}
        model = OURS[name](len(np.unique(y)), kernel="linear", sizes="balanced", random_state=cell.seed, **options)
        model.fit(X[drawn], tasks=tasks[drawn])
        chosen = {"lambda": model.selection_["lambda1"]}
        found = model.predict(X[~drawn], tasks=tasks[~drawn])
        details = {"nmi_drawn": scores(data, model.labels_, drawn)["nmi"]}
    seconds = time.process_time() - begin
    return Outcome(name, seconds=seconds, chosen=chosen, details=details, **scores(data, found, ~drawn))


def sweep_values(named: Any, label: str) -> dict[float, str]:
    """Value → data set of a sweep, where there are rows of it."""
    form, values, _ = SWEEPS[label]
    present = set(named["dataset"])
    return {value: form.format(value) for value in values if form.format(value) in present}


def gains(named: Any, dataset: str, name: str) -> Any:
    """NMI of a coupled method minus that of DSTC with the same kernel, draw by draw."""
    alone = f"DSTC_{name.split('_')[1][0]}"
    return (by_draw(named, dataset, name) - by_draw(named, dataset, alone)).dropna()


def _gain_section(named: Any, directory: Path) -> list[Section]:
    shown = {label: values for label in SWEEPS if (values := sweep_values(named, label))}
    if not shown:
        return []
    figure, axes = page.panels(len(shown), width=3.4, height=2.9)
    rows = []
    for ax, (label, values) in zip(axes[0], shown.items()):
        alone, *names = (display_name(name, SWEEPS[label][2]) for name in (*OURS, "DMTRC auto"))
        series = {name: [gains(named, d, name) for d in values.values()] for name in names}
        page.lines(ax, list(values), {name.replace(alone[-2:], ""): columns for name, columns in series.items()})
        ax.axhline(0, color="#444444", linewidth=0.8)
        if "rows" in label:
            ax.set_xscale("log")
            ax.set_xticks(list(values), [f"{value:g}" for value in values])
            ax.minorticks_off()
        ax.set(xlabel=label, ylabel=f"NMI minus that of {alone}")
        for (value, d), *columns in zip(values.items(), *series.values()):
            estimates = (str(estimate(column)) for column in columns)
            rows.append([label, f"{value:g}", f"{by_draw(named, d, alone).mean():.3f}", *estimates])
    page.legend_below(figure, axes[0, 0], 3)
    caption = "Gain over clustering every task alone: mean and standard error over draws."
    picture = page.save(figure, directory, "gain", caption)
    text = (
        "Coupling can only help where a task's own rows do not settle its clusters. The synthetic tasks' cluster "
        "centres have a chosen correlation: at 0 they have nothing in common. In brackets the 95% interval of the mean."
    )
    header = ("data", "value", "NMI of DSTC", "DMTFC − DSTC", "DMTRC − DSTC", "DMTRC auto − DSTC")
    return [Section("Gain against rows and relatedness", text, header, rows, [picture])]


def _supervised_section(named: Any, directory: Path) -> list[Section]:
    datasets = sorted(d for d in named["dataset"].unique() if d.endswith("held out"))
    names = [display_name(name, "linear") for name in (*KINDS, *OURS)]
    caption = (
        "NMI on rows that were held out: with the labels of the drawn rows (STL, MTFL, MTRL) and without any (DSTC, "
        "DMTFC, DMTRC)."
    )
    text = (
        "STL, MTFL and MTRL are our core with the labels of the drawn rows given; DSTC, DMTFC and DMTRC (always "
        "coupled) get the same rows without labels. All are scored on the rows that were not drawn: NMI → accuracy of "
        "the former. Terms are weighted over all reviews; MTFL and DMTFC see the 200 leading features."
    )
    scored = named.assign(accuracy=[details.get("accuracy", float("nan")) for details in named["details"]])
    found = table("Supervised counterparts", text, datasets, names, (scored, "nmi"), (scored, "accuracy"))
    return [
        replace(section, pictures=[bar_figure(directory, "supervised", datasets, names, named, None, caption)])
        for section in found
    ]


def _stability_section(named: Any) -> list[Section]:
    rows = []
    seeds = named[named["dataset"].str.endswith("other seeds")]
    for (d, name), mine in seeds.groupby(["dataset", "name"]):
        by = mine.groupby("draw")["nmi"]
        rows.append(
            [d.split(",")[0], name, f"{mine['nmi'].mean():.3f}", f"{by.std(ddof=1).mean():.3f}",
             f"{by.mean().std(ddof=1):.3f}", str(mine["seed"].nunique()), str(mine["draw"].nunique())]
        )  # fmt: skip
    text = (
        "The same rows with other seeds of the search, settings fixed (RBF, width ½, λ = 2⁻¹⁰; KM, NC and MBC with 10 "
        "starts): standard deviation over seeds, mean of the draws, beside that of the means over draws."
    )
    header = ("data", "method", "NMI", "SD over seeds", "SD over draws", "seeds", "draws")
    return [Section("Stability", text, header, rows)] if rows else []


class Transfer(Experiment):
    """What the paper says about transfer, each by itself."""

    name = NAME
    title = "When coupling helps"
    intro = (
        "What the paper says about transfer, each by itself: the gain of DMTRC and DMTFC over DSTC against the number "
        "of rows a task has and against how related the tasks are; the supervised counterparts MTRL and MTFL beside "
        "the clusterings; stability over draws and over random starts (the paper has that in its supplement). Nothing "
        "is chosen with labels, except by the supervised models, which choose λ by leave-one-out on the labels they "
        f"are given. Synthetic: {N_TASKS} tasks of 3 clusters, {SEPARATION:g} standard deviations apart in 10 "
        f"features, linear kernel, {SYNTHETIC_DRAWS} draws for each one of pendigits (RBF)."
    )
    repeats = 5

    def cells(self, repeats: int, quick: bool, protocol: str) -> list[Cell]:
        """All fits; of a quick run the first draw of few data sets."""
        found = _stability(repeats)
        for form, values, kernel in SWEEPS.values():
            for value in values:
                found += _ours(form.format(value), repeats * (SYNTHETIC_DRAWS if kernel == "linear" else 1), kernel)
        for dataset in ("synthetic", *(f"sentiment {share} %" for share in SENTIMENT)):
            found += _supervised(f"{dataset}, held out", repeats)
        if quick:
            return [cell for cell in found if cell.dataset in QUICK and cell.draw == 0]
        # what takes longest last, so that an interrupted run has as many rows as can be
        return sorted(found, key=lambda cell: cell.dataset.endswith("80 per class") or "30 %" in cell.dataset)

    def execute(self, cell: Cell) -> Sequence[Outcome]:
        name = cell.methods[0]
        if "held out" in cell.dataset:
            return [_held_out(cell)]
        data = _data(cell.dataset, cell.draw)
        if name in STABILITY_REFERENCES:
            return fit_reference(name, data, cell.seed, STABILITY_STARTS)
        options = our_options(name, cell.kernel, FIXED if cell.protocol == "given" else {})
        return fit_ours(name, data, cell.seed, sizes="balanced", **options)

    def report(self, named: Any, directory: Path) -> list[Section]:
        return [*_gain_section(named, directory), *_supervised_section(named, directory), *_stability_section(named)]


EXPERIMENTS = {NAME: Transfer()}
