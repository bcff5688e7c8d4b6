"""Candidates for what is left open, and the choice among them.

No single way to cluster is right on every table. The paper's J with a narrow kernel and near-equal sizes is right on
digits and vowels, a size-neutral criterion or a linear kernel on ordinary tables, and where tasks lack clusters only a
frame that they have in common can tell which. So there are several candidates, all of them answer to one judge
(:mod:`mtclust.choose.judge`), and what each scored is kept:

1. every task alone, under each kernel, by E with free sizes and by J with balanced sizes that are then released; and by
   E from the clusters of a Gaussian mixture, which sees shapes that no search from random labels may come upon
2. the most promising of them coupled
3. all rows around the means of their tasks as one task, by E; where that describes them better, its clusters are
   coupled at once: tasks of a few rows have no clusters of their own to begin with
4. all rows as one task in a frame common to all tasks, by E; clusters may be absent from a task there. Where rows speak
   for one frame (:mod:`mtclust.choose.frames`), all ways of the first step are tried in it, and judged there

The search of a candidate takes the same random numbers whatever ``random_state`` is: the same data give the same
choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from mtclust._progress import phase
from mtclust.choose.frames import in_place, one_frame_fits, one_model_fits
from mtclust.choose.ways import Candidate, Question, Way
from mtclust.labels import counts_by_task
from mtclust.problem.kernels import SINGLE_TASK_STARTS
from mtclust.problem.protocol import SearchOptions

Labels = NDArray[np.int64]

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
#: from this agreement over all rows (adjusted Rand index) on, the frames are said to find the same labels
SAME_LABELS = 0.95
#: a task whose own clusters are separated like this is not put in one frame that agrees with them by less than that
CLEAR = 0.5
UNKNOWN = 0.3
#: tasks with fewer rows of a cluster than this, on average, are also searched together
FEW_ROWS = 10
#: candidates are searched with this many times fewer starts of every task alone, and at most so many seeds
_FEWER_STARTS = 5
_SEEDS = 2


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
    if "task" not in question.frames:
        pairs = _alone(_ways(question.in_one_frame, options), options)
        tried = [candidate for candidate, _ in pairs]
        best = _preferred(tried, question)
        return Choice(_with_features(best, pairs, options), tried, _reason(best, tried))
    alone, own = _own_frame(question, options)
    own.sort(key=_score, reverse=True)
    best = _preferred(own, question)
    choice = _together(question, Choice(best, own, _reason(best, own), alone), options)
    return _in_one_frame(question, choice, options) if "all" in question.frames else choice


def _together(question: Question, choice: Choice, options: SearchOptions) -> Choice:
    """Clusters of all rows around the means of their tasks, where tasks have too few rows to find them alone."""
    own, C, offsets = choice.best, question.n_clusters, question.view.offsets
    possible = question.by_rows and question.sizes_open and "E" in question.criteria and np.ptp(question.clusters) == 0
    few = offsets[-1] < FEW_ROWS * question.n_tasks * C
    if question.n_tasks == 1 or question.method == "independent" or not (possible and few):
        return choice
    one = question.around_means
    found = _alone(_ways(one, options, ("E",)), options)[0][0]
    ahead = _score(found) - one.judge(own.labels, C).score - own.agreement
    if ahead <= 0 or not one_model_fits(question.directions, one.directions, offsets, found.labels, own.labels, C):
        return choice
    spec = next(spec for spec in question.kernels if spec.name == found.kernel)
    with phase(f"choosing: E, {spec.name}, from all rows together"):
        best = Way(question, spec, "E", options).from_together(found.labels, own.outcome, options)
    words = (
        f"{best.name}: the rows of all tasks together, around the means of tasks, show them clearest (by {ahead:.2f})"
    )
    return replace(choice, best=best, tried=[*choice.tried, best], reason=words)


def _in_one_frame(question: Question, choice: Choice, options: SearchOptions) -> Choice:
    """All tasks in one frame, where that is better than what was chosen with every task in its own."""
    own, one = choice.best, question.in_one_frame
    offsets, C = question.view.offsets, question.n_clusters
    X = question.directions
    pairs = _alone(_ways(one, options, ("E",)), options)
    free = [candidate for candidate, _ in pairs]

    found: tuple[Candidate, str] | None = None
    if one_frame_fits(X, offsets, free[0].labels, own.labels, C):
        pairs += _alone(
            [way for way in _ways(one, options) if way.criterion != "E" or way.mixture is not None], options
        )
        top = _preferred([candidate for candidate, _ in pairs], question)
        ahead = _score(top) - one.judge(own.labels, C).score - own.agreement
        differ = adjusted_rand_score(top.labels, own.labels) < SAME_LABELS
        agreed = in_place(X, offsets, top.labels) and not _contradicted(question, own.labels, top.labels)
        if ahead > 0 and differ and agreed:
            words = f"{top.name}: clusters lie in the same places in all tasks, and are clearer there (by {ahead:.2f})"
            found = top, words
    if found is None and own.start != "together":  # or else rows have spoken for the means of tasks
        found = _clearer_within_tasks(question, own, free)
    tried = sorted([*choice.tried, *(candidate for candidate, _ in pairs)], key=_score, reverse=True)
    if found is None:
        return replace(choice, tried=tried)
    return replace(choice, best=_with_features(found[0], pairs, options), tried=tried, reason=found[1])


def _clearer_within_tasks(question: Question, own: Candidate, free: list[Candidate]) -> tuple[Candidate, str] | None:
    """One of the candidates in one frame that separates clusters better, or names them better, and why."""
    C = question.n_clusters
    # sizes are within tasks in one frame and over all rows in the other: sizes do not count
    within = [question.judge(candidate.labels, C) for candidate in free]
    leads = [
        verdict.overall - own.verdict.overall - ABSENT_LEAD * _absent(candidate.labels, question)
        + question.linear_lead * (candidate.kernel == "linear")
        + candidate.agreement - own.agreement
        if verdict.separation >= COMMON_LEAST else -np.inf
        for candidate, verdict in zip(free, within)
    ]  # fmt: skip
    lead = max(leads)
    other = free[leads.index(lead)]
    if lead > COMMON_LEAD:
        words = f"all tasks in one frame separate clusters better than each around its own centre (by {lead:.2f})"
        return other, words
    agree = _agreement(own.labels, other.labels, question)
    if lead > -COMMON_LEAD and agree >= SAME_CLUSTERS and adjusted_rand_score(own.labels, other.labels) < agree / 2:
        words = "tasks around their own centres have the same clusters as in one frame, which tells the ids apart"
        return other, words
    return None


def _with_features(best: Candidate, pairs: list[tuple[Candidate, Way]], options: SearchOptions) -> Candidate:
    """A candidate of one frame, searched under a D of its own where features are learned."""
    way = next(way for candidate, way in pairs if candidate is best)
    if way.question.method == "independent":
        return best
    learned = way.candidates(replace(options, n_init=1), coupled=True)
    return next(candidate for candidate in learned if candidate.sizes == best.sizes)


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


def _contradicted(question: Question, own: Labels, common: Labels) -> bool:
    """Whether a task has clear clusters of its own that those of one frame do not know."""
    offsets, clear = question.view.offsets, question.judge.by_task(own, question.n_clusters)
    parts = [slice(offsets[task], offsets[task + 1]) for task, separation in clear.items() if separation >= CLEAR]
    return any(adjusted_rand_score(own[part], common[part]) < UNKNOWN for part in parts)


def _absent(labels: Labels, question: Question) -> float:
    """Share of the pairs of a task and a cluster in which the task lacks the cluster."""
    return float(np.mean(counts_by_task(labels, question.view.offsets, question.n_clusters) == 0))


def _ways(question: Question, options: SearchOptions, criteria: tuple[str, ...] | None = None) -> list[Way]:
    """Every kernel with every criterion, or some; without these also with E from the clusters of a mixture."""
    ways = [
        Way(question, spec, criterion, options)
        for spec in question.kernels
        for criterion in criteria or question.criteria
    ]
    mixture = question.mixture() if criteria is None else None
    if mixture is not None:
        ways += [Way(question, spec, "E", options, mixture) for spec in question.kernels]
    return ways


def _alone(ways: list[Way], options: SearchOptions) -> list[tuple[Candidate, Way]]:
    """What ways find with every task alone, highest score first."""
    found: list[tuple[Candidate, Way]] = []
    for way in ways:
        with phase(f"choosing: {way.name}"):
            found += [(candidate, way) for candidate in way.candidates(options, coupled=False)]
    return sorted(found, key=lambda pair: _score(pair[0]), reverse=True)


def _own_frame(question: Question, options: SearchOptions) -> tuple[Candidate, list[Candidate]]:
    """The best candidate with the tasks alone, and the candidates to choose from: the most promising, coupled.

    Only the best of those is searched with restarts.
    """
    alone = _alone(_ways(question, options), options)
    best = alone[0][0]
    if question.method == "independent":
        return best, [candidate for candidate, _ in alone]
    promising = list(dict.fromkeys(way for _, way in alone))[:COUPLED]
    found: list[tuple[Candidate, Way]] = []
    for way in promising:
        with phase(f"choosing: {way.name}, coupled"):
            found += [(candidate, way) for candidate in way.candidates(replace(options, n_init=1), coupled=True)]
    candidates = [candidate for candidate, _ in found]
    leading = max(found, key=lambda pair: _score(pair[0]))[1]
    if options.n_init > 1 and leading.mixture is None:
        with phase(f"choosing: {leading.name}, coupled, restarts"):
            candidates += leading.candidates(options, coupled=True)
    return best, candidates
