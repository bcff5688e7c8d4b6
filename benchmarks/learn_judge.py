"""Learn the weights of the judge from public labelled tables.

    python benchmarks/learn_judge.py                 describe every problem, learn, print the weights to be pasted
    python benchmarks/learn_judge.py --first 100     a part of the problems, to try it out

Needs `pip install "mtclust[benchmarks]"`. A problem (``_judge_problems.py``) has candidate clusterings k, each with
terms t_k (``mtclust.choose.judge.Judge.terms``, no classes) and a quality q_k: the mean of NMI within tasks and of ARI
over all rows. With terms centred within the problem and divided by their spread, and the hand-made score h, corrections
v of its weights maximise

    mean over problems of Σ_k p_k q_k − λ‖v‖²,    p = softmax((h + t v)/τ)

the expected quality of a pick. Whole tables are left out to see what learning gains over the hand-made score. Described
problems are kept in build/judge and an interrupted run goes on; remove them when candidates or terms have changed.
"""

from __future__ import annotations

import argparse
import pickle
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import _one_thread
from _judge_problems import Problem, problems
from _tables import made_by, markdown_table
from mtclust.choose import choice
from mtclust.choose.judge import WEIGHTS
from mtclust.choose.views import View, candidate_kernels, in_many_directions
from mtclust.metrics import macro_nmi
from mtclust.search.problem import SearchOptions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: the score before anything is learned: the one in use; terms that are not here begin at 0
HAND_MADE = WEIGHTS
#: τ and λ: of a grid, those with the largest gain on tables that were left out
TEMPERATURE = 0.07
SHRINKAGE = 0.03
_FOLDS = 10
_REPEATS = 3
#: problems whose best candidate is worse than this teach nothing: their classes are no clusters
_LEAST_QUALITY = 0.1


class Described(NamedTuple):
    """A problem as it is learned from: terms (K × T) and quality (K) of its candidates."""

    name: str
    origin: str
    candidates: list[str]
    terms: dict[str, Floats]
    quality: Floats


def describe_problem(X: Floats, tasks: Ints, C: int) -> tuple[list[str], Ints, dict[str, Floats]]:
    """Names, labels (K × n) and terms of the candidates of a fit; rows are sorted by task."""
    offsets = np.searchsorted(tasks, np.arange(tasks.max() + 2))
    way = "relationship" if tasks.max() > 0 else "independent"
    question = choice.Question(
        View(X, offsets), candidate_kernels("auto", "auto"), np.full(tasks.max() + 1, C), way,
        many_directions=in_many_directions(X, offsets),
    )  # fmt: skip
    found, judge = choice.labellings(question, SearchOptions())
    labels = np.stack([own.labels for own in found])
    return [f"{own.frame}: {own.method}" for own in found], labels, judge.of(labels)[1]


def described(problem: Problem) -> Described:
    """Terms and quality of every candidate of a problem."""
    order = np.argsort(problem.tasks, kind="stable")
    X, tasks, y = problem.X[order], problem.tasks[order], problem.y[order]
    names, labels, terms = describe_problem(X, tasks, problem.C)
    quality = [(macro_nmi(y, own, tasks) + adjusted_rand_score(y, own)) / 2 for own in labels]
    return Described(problem.name, problem.origin, names, terms, np.array(quality))


def gathered(cache: Path, first: int | None) -> list[Described]:
    """Every problem described; what the cache holds is not computed again."""
    found: dict[str, Described] = {}
    if cache.exists():
        found = pickle.loads(cache.read_bytes())  # noqa: S301 - written by ourselves
    cache.parent.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    every = list(problems())  # in an order drawn once: a part of them is a fair sample
    wanted = [every[number] for number in np.random.default_rng(0).permutation(len(every))[:first]]
    for number, problem in enumerate(wanted):
        if problem.name not in found:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[problem.name] = described(problem)
        if number % 25 == 24 or number == len(wanted) - 1:
            cache.write_bytes(pickle.dumps(found))
            print(f"{number + 1} of {len(wanted)} problems, {time.perf_counter() - begin:.0f} s", flush=True)
    return [found[problem.name] for problem in wanted]


class Lessons:
    """All problems in arrays: terms (P × K × T), quality and whether there is such a candidate (P × K)."""

    def __init__(self, rows: list[Described]) -> None:
        self.rows = [row for row in rows if len(row.quality) > 1 and row.quality.max() >= _LEAST_QUALITY]
        self.names = list(self.rows[0].terms)
        P, K = len(self.rows), max(len(row.quality) for row in self.rows)
        self.terms = np.zeros((P, K, len(self.names)))
        self.quality, self.exists = np.zeros((P, K)), np.zeros((P, K), dtype=bool)
        for p, row in enumerate(self.rows):
            values = np.column_stack([row.terms[name] for name in self.names])
            k = len(row.quality)
            self.terms[p, :k] = values - values.mean(axis=0)
            self.quality[p, :k], self.exists[p, :k] = row.quality, True
        self.begin = np.array([HAND_MADE.get(name, 0.0) for name in self.names])
        self.spread = np.sqrt((self.terms**2).sum(axis=(0, 1)) / self.exists.sum())
        _, self.origin, counts = np.unique([row.origin for row in self.rows], return_inverse=True, return_counts=True)
        #: between "every problem counts alike" and "every table counts alike"
        self.weight = 1 / np.sqrt(counts[self.origin])

    def score(self, columns: list[int]) -> Floats:
        """The hand-made score with some of its terms."""
        return np.asarray(self.terms[:, :, columns] @ self.begin[columns])

    def learned(self, columns: list[int], rows: NDArray[np.bool_]) -> Floats:
        """Corrections of the weights of some terms, learned from some problems."""
        scaled = (self.terms[:, :, columns] / self.spread[columns])[rows]
        hand, quality, exists = self.score(columns)[rows], self.quality[rows], self.exists[rows]
        weight = self.weight[rows] / self.weight[rows].sum()
        flat = scaled.reshape(-1, len(columns))

        def loss(v: Floats) -> tuple[float, Floats]:
            scores = np.where(exists, (hand + scaled @ v) / TEMPERATURE, -np.inf)
            chance = np.exp(scores - scores.max(axis=1, keepdims=True))
            chance /= chance.sum(axis=1, keepdims=True)
            expected = (chance * quality).sum(axis=1)
            slope = chance * (quality - expected[:, None]) * weight[:, None] / TEMPERATURE
            return float(SHRINKAGE * v @ v - weight @ expected), 2 * SHRINKAGE * v - flat.T @ slope.ravel()

        v = minimize(loss, np.zeros(len(columns)), jac=True, method="L-BFGS-B").x
        return np.asarray(v / self.spread[columns])

    def left_out(self, columns: list[int], seed: int) -> Floats:
        """Scores of every problem with weights learned from the tables of the other folds."""
        fold = np.random.default_rng(seed).permutation(self.origin.max() + 1) % _FOLDS
        scores = self.score(columns)
        for number in range(_FOLDS):
            out = fold[self.origin] == number
            scores[out] += self.terms[out][:, :, columns] @ self.learned(columns, ~out)
        return scores

    def picked(self, scores: Floats) -> Floats:
        """Quality of the candidate with the largest score."""
        best = np.where(self.exists, scores, -np.inf).argmax(axis=1)
        return np.asarray(np.take_along_axis(self.quality, best[:, None], axis=1)[:, 0])

    def gain(self, columns: list[int]) -> tuple[float, float]:
        """Over the hand-made score on tables left out, the mean over tables and its standard error."""
        learned = np.mean([self.picked(self.left_out(columns, seed)) for seed in range(_REPEATS)], axis=0)
        difference = learned - self.picked(self.terms @ self.begin)
        by_table = np.bincount(self.origin, difference) / np.bincount(self.origin)
        return float(by_table.mean()), float(by_table.std(ddof=1) / np.sqrt(len(by_table)))


def report(lessons: Lessons, path: Path) -> None:
    """What learning gains, term by term, and the weights."""
    names = lessons.names
    every = list(range(len(names)))
    begin = [names.index(name) for name in HAND_MADE if name in names]
    subsets = {"hand-made terms, weighted anew": begin}
    subsets |= {f"and {names[added]}": [*begin, added] for added in every if added not in begin}
    subsets["**all terms**"] = every
    subsets |= {f"all but {names[left]}": [k for k in every if k != left] for left in every}
    lines = [[name, *map("{:+.4f}".format, lessons.gain(columns))] for name, columns in subsets.items()]
    weights = lessons.begin + lessons.learned(every, np.ones(len(lessons.rows), dtype=bool))
    hand = lessons.picked(lessons.score(every)).mean()
    best = np.where(lessons.exists, lessons.quality, -np.inf).max(axis=1).mean()
    page = [
        made_by(),
        "",
        f"{len(lessons.rows)} problems of {lessons.origin.max() + 1} public tables. Quality is the mean of NMI within "
        f"tasks and ARI over all rows: {hand:.4f} for the candidate with the largest hand-made score, {best:.4f} for "
        "the best candidate. What is gained over the hand-made score by weights that are learned from other tables:",
        "",
        *markdown_table(["learned", "gain", "s.e."], lines),
        "",
        *markdown_table(["term", "weight"], [[name, f"{weight:.3f}"] for name, weight in zip(names, weights)]),
        "",
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(page), encoding="utf-8")
    print(path.read_text(encoding="utf-8"))
    print("WEIGHTS: dict[str, float] = {")
    print(*(f'    "{name}": {weight:.3f},' for name, weight in zip(names, weights)), "}", sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, help="only so many problems")
    parser.add_argument("--cache", type=Path, default=Path("build/judge/described.pickle"))
    parser.add_argument("--out", type=Path, default=Path("results/judge"))
    options = parser.parse_args()
    print(f"one thread: {' '.join(_one_thread.SETTINGS)}")
    with threadpool_limits(1):
        report(Lessons(gathered(options.cache, options.first)), options.out / "table.md")


if __name__ == "__main__":
    main()
