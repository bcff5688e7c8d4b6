"""Candidates for what is left open, and the choice among them.

No single way to cluster is right on every table. The paper's J with a narrow kernel and near-equal sizes is right on
digits and vowels, a size-neutral criterion or a linear kernel on ordinary tables, and where tasks lack clusters only a
frame that they have in common can tell which. So there are several candidates, all of them answer to one judge
(:mod:`mtclust.choose.judge`), and what each scored is kept:

1. every task alone, under each kernel, by E with free sizes and by J with balanced sizes that are then released; and by
   E from the clusters of a Gaussian mixture, which sees shapes that no search from random labels may come upon
2. the most promising of them coupled; with restarts only what is chosen in the end
3. all rows around the means of their tasks as one task, by E; where that describes them better, its clusters are
   coupled at once: tasks of a few rows have no clusters of their own to begin with
4. all rows as one task in a frame common to all tasks, by E; clusters may be absent from a task there. Where rows are
   described most shortly in one frame, or in one to which every task is moved by an offset of its own
   (:mod:`mtclust.choose.frames`), all ways of the first step are tried in it, and judged there

The search of a candidate takes the same random numbers whatever ``random_state`` is: the same data give the same
choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from mtclust.choose.frames import frame_of_rows, moves_of_tasks, one_model_fits
from mtclust.choose.views import Frame
from mtclust.choose.ways import Candidate, Question, Way
from mtclust.problem.kernels import SINGLE_TASK_STARTS
from mtclust.problem.protocol import SearchOptions
from mtclust.util.progress import phase

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: candidates that are coupled
COUPLED = 3
#: from this agreement over all rows (adjusted Rand index) on, the frames are said to find the same labels
SAME_LABELS = 0.95
#: where the clusters of one frame lie
_PLACES_IN_WORDS = {
    "all": "clusters lie in the same places in all tasks",
    "aligned": "clusters lie in the same places once tasks are moved by an offset each",
}
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
    question : Question or None
        That of all rows as one task, where the best is of one frame.
    moves : ndarray of shape (m, d) or None
        How far the tasks are moved, where they are aligned.
    """

    best: Candidate
    tried: list[Candidate]
    reason: str
    alone: Candidate | None = None
    question: Question | None = None
    moves: Array | None = None


def choose(question: Question, options: SearchOptions) -> Choice:
    """Search all candidates of a question and take the one that the judge prefers."""
    starts = max(1, (options.single_task_n_init or SINGLE_TASK_STARTS) // _FEWER_STARTS)
    options = replace(options, single_task_n_init=starts, n_seeds=min(options.n_seeds, _SEEDS), polish=False)
    frames = question.frames
    if frames == ("all",):
        return _best_in(question.in_one_frame, _alone(_ways(question.in_one_frame, options), options), options)
    question = replace(question, frames=("task",))
    alone, own = _own_frame(question, options)
    tried = sorted((candidate for candidate, _ in own), key=_score, reverse=True)
    best = _preferred(tried, question)
    choice = _together(question, Choice(best, tried, _reason(best, tried), alone), options)
    if frames != ("task",):
        choice = _in_one_frame(question, choice, options, frames)
    leading = next(way for candidate, way in own if candidate is best)
    return _restarted(question, choice, leading, options) if choice.best is best else choice


def _restarted(question: Question, choice: Choice, leading: Way, options: SearchOptions) -> Choice:
    """Restarts of the way that was chosen for coupled tasks in their own frames; the others are spared them."""
    if question.method == "independent" or options.n_init == 1 or leading.begun is not None:
        return choice
    with phase(f"choosing: {leading.name}, coupled, restarts"):
        further = leading.candidates(options, coupled=True)
    tried = sorted([*choice.tried, *further], key=_score, reverse=True)
    own = [candidate for candidate in tried if candidate.frame == "task"]
    best = _preferred(own, question)
    return replace(choice, best=best, tried=tried, reason=_reason(best, own))


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


def _in_one_frame(question: Question, choice: Choice, options: SearchOptions, frames: tuple[Frame, ...]) -> Choice:
    """All tasks in one frame, as they are or aligned, where rows speak for that and it shows other clusters clearer."""
    own, one, C, offsets = choice.best, question.in_one_frame, question.n_clusters, question.view.offsets
    pairs = _alone(_ways(one, options, ("E",)), options)
    frame, labels = frame_of_rows(
        question.directions, offsets, pairs[0][0].labels, own.labels, own.outcome.similarity, C, frames
    )
    if frame == "task":
        tried = [*choice.tried, *(candidate for candidate, _ in pairs)]
        return replace(choice, tried=sorted(tried, key=_score, reverse=True))
    ways, moves = [way for way in _ways(one, options) if way.criterion != "E" or way.begun is not None], None
    if frame == "aligned":
        moves = moves_of_tasks(question.view.in_one_frame.centred_rows[0], offsets, labels, C)
        one, pairs = question.aligned(moves), []
        ways = _ways(one, options)
    if "E" in one.criteria:
        ways += [Way(one, spec, "E", options, labels, "description") for spec in one.kernels]
    found = _best_in(one, pairs + _alone(ways, options), options)
    tried = sorted([*choice.tried, *found.tried], key=_score, reverse=True)
    ahead = _score(found.best) - one.judge(own.labels, C).score - own.agreement
    differ = adjusted_rand_score(found.best.labels, own.labels) < SAME_LABELS
    if "task" in frames and not (ahead > 0 and differ):
        return replace(choice, tried=tried)
    words = f"{found.best.name}: {_PLACES_IN_WORDS[frame]}, and are clearer there (by {ahead:.2f})"
    reason = words if "task" in frames else found.reason
    return replace(found, tried=tried, reason=reason, alone=choice.alone, moves=moves)


def _best_in(question: Question, pairs: list[tuple[Candidate, Way]], options: SearchOptions) -> Choice:
    """The best of the candidates of all rows as one task."""
    tried = sorted((candidate for candidate, _ in pairs), key=_score, reverse=True)
    best = _preferred(tried, question)
    return Choice(_with_features(best, pairs, options), tried, _reason(best, tried), question=question)


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


def _ways(question: Question, options: SearchOptions, criteria: tuple[str, ...] | None = None) -> list[Way]:
    """Every kernel with every criterion, or some; without these also with E from the clusters of a mixture."""
    ways = [
        Way(question, spec, criterion, options)
        for spec in question.kernels
        for criterion in criteria or question.criteria
    ]
    mixture = question.mixture() if criteria is None else None
    if mixture is not None:
        ways += [Way(question, spec, "E", options, mixture, "mixture") for spec in question.kernels]
    return ways


def _alone(ways: list[Way], options: SearchOptions) -> list[tuple[Candidate, Way]]:
    """What ways find with every task alone, highest score first."""
    found: list[tuple[Candidate, Way]] = []
    for way in ways:
        with phase(f"choosing: {way.name}"):
            found += [(candidate, way) for candidate in way.candidates(options, coupled=False)]
    return sorted(found, key=lambda pair: _score(pair[0]), reverse=True)


def _own_frame(question: Question, options: SearchOptions) -> tuple[Candidate, list[tuple[Candidate, Way]]]:
    """The best candidate with the tasks alone, and the candidates to choose from: the most promising, coupled."""
    alone = _alone(_ways(question, options), options)
    if question.method == "independent":
        return alone[0][0], alone
    found: list[tuple[Candidate, Way]] = []
    for way in list(dict.fromkeys(way for _, way in alone))[:COUPLED]:
        with phase(f"choosing: {way.name}, coupled"):
            found += [(candidate, way) for candidate in way.candidates(replace(options, n_init=1), coupled=True)]
    return alone[0][0], found
