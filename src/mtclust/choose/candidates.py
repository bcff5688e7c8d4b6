"""Candidates for what is left open, and the choice among them.

No single way to cluster is right on every table. The paper's J with a narrow kernel and near-equal sizes is right on
digits and vowels, a size-neutral criterion or a linear kernel on ordinary tables, and where tasks lack clusters only a
frame that they have in common can tell which. So there are several candidates, all of them answer to one judge
(:mod:`mtclust.choose.judge`), and what each scored is kept:

1. every task alone, under each kernel, by E with free sizes and by J with balanced sizes that are then released; and by
   E from the clusters of a Gaussian mixture, which sees shapes that no search from random labels may come upon
2. the most promising of them coupled
3. all rows as one task in a frame common to all tasks, by E; clusters may be absent from a task there

The search of a candidate takes the same random numbers whatever ``random_state`` is: the same data give the same
choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from mtclust._progress import phase
from mtclust.choose.judge import Judge, Verdict
from mtclust.choose.mixture import mixture_labels
from mtclust.choose.views import Frame, KernelSpec, Seen, View
from mtclust.features import eigen_features
from mtclust.known import agreement
from mtclust.labels import neutral_bounds, parse_sizes
from mtclust.problem.kernels import SINGLE_TASK_STARTS, KernelOrigin, KernelProblem
from mtclust.problem.predictability import criterion_named
from mtclust.problem.protocol import Method, SearchOptions
from mtclust.search.outcome import Outcome
from mtclust.search.recipe import solve
from mtclust.search.variants import released

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: the ridge λ₁ + mλ₂ of a task alone, where it is not given: for E and for linear kernels, and 2λ for J with the others
RIDGE = 0.125
NARROW_LAMBDA = 2.0**-9
#: candidates that are coupled
COUPLED = 3
#: lead in separation and shape that the common frame must have, and what absent clusters add to that (times their share
#: of all): tasks that hold fewer clusters are easier to predict
COMMON_LEAD = 0.03
ABSENT_LEAD = 0.3
#: separation within tasks that the common frame must have in any case: clusters that are only batches have none
COMMON_LEAST = 0.1
#: from this agreement within tasks (adjusted Rand index, mean) both frames find the same clusters; the common frame
#: then knows better which of them are the same in all tasks
SAME_CLUSTERS = 0.98
#: the share of known rows that a candidate has right weighs n/(n + this) beside its score, for n known rows
KNOWN_ROWS = 60.0
#: candidates are searched with this many times fewer starts of every task alone, and at most so many seeds
_FEWER_STARTS = 5
_SEEDS = 2
#: leading directions that D weighs in a candidate: its steps cost their cube
DIRECTIONS_OF_D = 100


@dataclass(frozen=True)
class Candidate:
    """One way to cluster, what it found and what the judge says of that.

    Attributes
    ----------
    criterion : {"E", "J"}
    sizes : {"free", "balanced", "released", "given"}
    kernel : str
        Name of the kernel it was searched with.
    frame : {"task", "all"}
    outcome : Outcome
    verdict : Verdict
    coupled : bool
    start : {"random", "mixture"}
    agreement : float
        What the rows whose cluster is known add to its score.
    """

    criterion: str
    sizes: str
    kernel: str
    frame: Frame
    outcome: Outcome
    verdict: Verdict
    coupled: bool
    start: str = "random"
    agreement: float = 0.0

    @property
    def labels(self) -> Labels:
        return np.asarray(self.outcome.point.labels)

    @property
    def name(self) -> str:
        """In words, the same for the same settings."""
        frame = "" if self.frame == "task" else ", common frame"
        start = "" if self.start == "random" else ", from a Gaussian mixture"
        return f"{self.criterion}, {self.kernel}, {self.sizes} sizes{start}{frame}"


@dataclass(frozen=True)
class Question:
    """What is to be chosen, and on which rows.

    Attributes
    ----------
    view : View
        Rows sorted by task.
    kernels : tuple of KernelSpec
        That a search may take.
    judge : Judge
    clusters : ndarray of shape (m,)
        Number of clusters of every task.
    method : {"relationship", "features", "independent"}
    sizes : object
        The argument of the estimator.
    lambdas : tuple of (ndarray of shape (m,), float), optional
        λ₁ by task and λ₂, where they are given.
    frames : tuple of {"task", "all"}
    n_components : int, optional
        Rank of the features that D weighs.
    criteria : tuple of {"E", "J"}
    sizes_open : bool
        Then J is searched with balanced sizes, which are released.
    names : ndarray of shape (m,), optional
        Of the tasks, for tables of sizes.
    linear_lead : float
        What the linear kernel may fall behind and still be taken: with very many rows it is far cheaper.
    known : ndarray of shape (N,), optional
        Clusters of rows that are known, −1 elsewhere.
    """

    view: View
    kernels: tuple[KernelSpec, ...]
    judge: Judge
    clusters: NDArray[np.int64]
    method: Method
    sizes: Any = "auto"
    lambdas: tuple[Array, float] | None = None
    frames: tuple[Frame, ...] = ("task", "all")
    n_components: int | None = None
    criteria: tuple[str, ...] = ("E", "J")
    sizes_open: bool = True
    names: NDArray[Any] | None = None
    linear_lead: float = 0.0
    known: Labels | None = None

    @property
    def n_tasks(self) -> int:
        return len(self.view.offsets) - 1

    @property
    def n_clusters(self) -> int:
        return int(self.clusters.max())

    def mixture(self) -> Labels | None:
        """Clusters of a Gaussian mixture; None where E is not searched, or rows are only known through a kernel."""
        by_rows = all(spec.kind in ("linear", "rbf") for spec in self.kernels)
        return mixture_labels(self.view, self.clusters) if by_rows and "E" in self.criteria else None


@dataclass(frozen=True)
class Choice:
    """The candidate that was chosen, and all that were tried.

    Attributes
    ----------
    best : Candidate
    tried : list of Candidate
        Highest score first.
    reason : str
    alone : Candidate or None
        The best with every task alone, where the tasks were put in frames of their own.
    """

    best: Candidate
    tried: list[Candidate]
    reason: str
    alone: Candidate | None = None


def choose(question: Question, options: SearchOptions) -> Choice:
    """Search all candidates of a question and take the one that the judge prefers."""
    starts = max(1, (options.single_task_n_init or SINGLE_TASK_STARTS) // _FEWER_STARTS)
    options = replace(options, single_task_n_init=starts, n_seeds=min(options.n_seeds, _SEEDS), polish=False)
    alone, own = _own_frame(question, options) if "task" in question.frames else (None, [])
    common = [_common(question, spec, options) for spec in question.kernels] if "all" in question.frames else []
    tried = sorted([*own, *common], key=_score, reverse=True)
    if not (own and common):
        best = _preferred(tried, question)
        return Choice(best, tried, _reason(best, tried), alone)
    best = _preferred(own, question)
    # sizes are within tasks in one frame and over all rows in the other: sizes do not count
    leads = [
        candidate.verdict.overall - best.verdict.overall - ABSENT_LEAD * _absent(candidate.labels, question)
        + question.linear_lead * (candidate.kernel == "linear")
        + candidate.agreement - best.agreement
        if candidate.verdict.separation >= COMMON_LEAST else -np.inf
        for candidate in common
    ]  # fmt: skip
    lead = max(leads)
    if lead > COMMON_LEAD:
        reason = f"all tasks in one frame separate clusters better than each around its own centre (by {lead:.2f})"
        return Choice(common[leads.index(lead)], tried, reason, alone)
    other = common[leads.index(lead)]
    within = _agreement(best.labels, other.labels, question)
    if lead > -COMMON_LEAD and within >= SAME_CLUSTERS and adjusted_rand_score(best.labels, other.labels) < within / 2:
        reason = "tasks around their own centres have the same clusters as in one frame, which tells the ids apart"
        return Choice(other, tried, reason, alone)
    return Choice(best, tried, _reason(best, sorted(own, key=_score, reverse=True)), alone)


def _score(candidate: Candidate) -> float:
    """What candidates are compared by; below its last digit rounding would decide."""
    return round(candidate.verdict.score + candidate.agreement, 6)


def _preferred(candidates: list[Candidate], question: Question) -> Candidate:
    return max(candidates, key=lambda own: _score(own) + question.linear_lead * (own.kernel == "linear"))


def _reason(best: Candidate, ordered: list[Candidate]) -> str:
    figures = f"separation {best.verdict.separation:.2f}, score {best.verdict.score:.2f}"
    reason = f"{best.name}: membership of rows that are left out is predicted best ({figures}"
    if best is not ordered[0]:
        return f"{best.name}: as good as others for so many rows, and cheaper ({figures})"
    if len(ordered) == 1:
        return reason + ")"
    return f"{reason}; next {ordered[1].name}, {ordered[1].verdict.score:.2f})"


def _agreement(first: Labels, second: Labels, question: Question) -> float:
    """Adjusted Rand index within tasks, mean over tasks."""
    offsets = question.view.offsets
    return float(np.mean([adjusted_rand_score(first[a:b], second[a:b]) for a, b in zip(offsets[:-1], offsets[1:])]))


def _absent(labels: Labels, question: Question) -> float:
    """Share of the pairs of a task and a cluster in which the task lacks the cluster."""
    offsets, C = question.view.offsets, question.n_clusters
    counts = np.stack([np.bincount(labels[a:b], minlength=C) for a, b in zip(offsets[:-1], offsets[1:])])
    return float(np.mean(counts == 0))


def _own_frame(question: Question, options: SearchOptions) -> tuple[Candidate, list[Candidate]]:
    """The best candidate with the tasks alone, and the candidates to choose from: the most promising, coupled."""
    alone = []
    for spec in question.kernels:
        for criterion in question.criteria:
            with phase(f"choosing: {criterion}, {spec.name}"):
                alone += _search(question, spec, criterion, options, coupled=False)
    mixture = question.mixture()
    alone += [] if mixture is None else [
        _refined(question, spec, mixture, options, coupled=False) for spec in question.kernels
    ]  # fmt: skip
    best = max(alone, key=_score)
    if question.method == "independent":
        return best, alone
    promising: list[Candidate] = []
    for candidate in sorted(alone, key=_score, reverse=True):
        if all(_way(candidate) != _way(known) for known in promising):
            promising.append(candidate)
    found = []
    for candidate in promising[:COUPLED]:
        spec = next(spec for spec in question.kernels if spec.name == candidate.kernel)
        with phase(f"choosing: {candidate.criterion}, {candidate.kernel}, coupled"):
            if candidate.start == "mixture":
                found.append(_refined(question, spec, candidate.labels, options, coupled=True))
            else:
                found += _search(question, spec, candidate.criterion, options, coupled=True)
    return best, found


def _way(candidate: Candidate) -> tuple[str, str, str]:
    """What makes the search of a candidate differ from that of another, sizes apart."""
    return candidate.kernel, candidate.criterion, candidate.start


def _refined(question: Question, spec: KernelSpec, labels: Labels, options: SearchOptions, coupled: bool) -> Candidate:
    """Labels of all rows made better by E, every task alone or coupled."""
    problem = own_frame_problem(question, spec, "E")
    alone = problem.alone()
    rng = np.random.default_rng(0)
    point = alone.descend(alone.point(labels, alone.uncoupled()), rng, options.effort("from a Gaussian mixture"))
    starts = [[start] for start in alone.starts_of(point)]
    outcome = solve(problem if coupled else alone, replace(options, n_init=1), rng, starts)
    return replace(_judged(question, outcome, "E", "free", spec, coupled), start="mixture")


def _search(
    question: Question, spec: KernelSpec, criterion: str, options: SearchOptions, coupled: bool
) -> list[Candidate]:
    """Search one kernel and criterion; J has two candidates where sizes are open."""
    problem = own_frame_problem(question, spec, criterion)
    if not coupled:
        problem = problem.alone()
    rng = np.random.default_rng(0)
    outcome = solve(problem, options, rng)
    if criterion == "E":
        return [_judged(question, outcome, criterion, "free", spec, coupled)]
    if not question.sizes_open:
        return [_judged(question, outcome, criterion, "given", spec, coupled)]
    return [
        _judged(question, outcome, criterion, "balanced", spec, coupled),
        _judged(question, released(outcome, options, rng), criterion, "released", spec, coupled),
    ]


def _judged(
    question: Question, outcome: Outcome, criterion: str, sizes: str, spec: KernelSpec, coupled: bool,
    frame: Frame = "task",
) -> Candidate:  # fmt: skip
    labels = np.asarray(outcome.point.labels, dtype=np.int64)
    verdict = question.judge(labels, question.n_clusters, common=frame == "all")
    return Candidate(
        criterion, sizes, spec.name, frame, outcome, verdict, coupled, agreement=_with_known(question, labels)
    )


def _with_known(question: Question, labels: Labels) -> float:
    """What known rows say for labels: the share they have right, weighed by how many there are."""
    if question.known is None:
        return 0.0
    n = np.count_nonzero(question.known >= 0)
    return n / (n + KNOWN_ROWS) * agreement(labels, question.known, question.n_clusters)


def own_frame_problem(question: Question, spec: KernelSpec, criterion: str) -> KernelProblem:
    """The problem of one kernel and criterion, every task in its own frame."""
    seen, offsets = question.view.through(spec, "task"), question.view.offsets
    if criterion == "E":
        bounds = neutral_bounds(np.diff(offsets), question.clusters)
    else:
        rule = "balanced" if question.sizes_open else question.sizes
        bounds = parse_sizes(rule, np.diff(offsets), question.clusters, question.names)
    lambda1, lambda2 = question.lambdas or constant_lambdas(question.n_tasks, spec, criterion)
    features = None
    if question.method == "features":
        features = eigen_features(seen.centred.matrix, question.n_components or DIRECTIONS_OF_D)
    return KernelProblem(
        seen.centred.matrix, offsets, bounds, lambda1, lambda2, question.method, features, criterion_named(criterion),
        origin=_origin(question, seen),
    )  # fmt: skip


def _origin(question: Question, seen: Seen) -> KernelOrigin:
    order = question.view.order
    order = np.arange(len(seen.centred.matrix)) if order is None else order
    return KernelOrigin(seen.kernel, seen.rows, seen.centred, order, seen.centres)


def _common(question: Question, spec: KernelSpec, options: SearchOptions) -> Candidate:
    """All rows as one task in the common frame."""
    seen, n = question.view.through(spec, "all"), int(question.view.offsets[-1])
    offsets = question.view.frame_offsets("all")
    bounds = neutral_bounds(np.array([n]), np.array([question.n_clusters]))
    lambda1, lambda2 = constant_lambdas(1, spec, "E")
    problem = KernelProblem(
        seen.centred.matrix, offsets, bounds, lambda1, lambda2, "independent", criterion=criterion_named("E"),
        origin=_origin(question, seen),
    )  # fmt: skip
    with phase(f"choosing: E, {spec.name}, common frame"):
        outcome = solve(problem, options, np.random.default_rng(0))
    return _judged(question, outcome, "E", "free", spec, False, "all")


def constant_lambdas(n_tasks: int, spec: KernelSpec, criterion: str, share: float = 1.0) -> tuple[Array, float]:
    """λ₁ by task and λ₂ where they are not given: constants, never a draw.

    The ridge of a task alone is λ₁ + m·share·λ₂.
    """
    value = RIDGE / (1.0 + n_tasks * share) if criterion == "E" or spec.kind == "linear" else NARROW_LAMBDA
    return np.full(n_tasks, value), value
