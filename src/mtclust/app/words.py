"""What was found, in words: values, what sets clusters apart, how tasks differ, what to be careful about, the summary.

There is one number for how far clusters are separated (``loo_score_``: 0 is what the best clusters of structureless
rows reach, 1 that no row could be taken for one of another cluster), one for how far other rows would give the same
clusters (``stability_``, once it was asked for), and one test of whether there are clusters at all
(:func:`mtclust.selection.select_n_clusters`: in ``fit`` where the number of clusters is open, for tables always). They
decide which words are used (:attr:`Facts.standing`); the rules are in ``docs/how_sure.md``, and how often each word is
wrong is measured by ``benchmarks/sentences.py``. How far refits agree is given as a number; no word stands for it.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mtclust.app.findings import FEW_ROWS, Difference, Findings, Trait, differences
from mtclust.app.tables.columns import Feature
from mtclust.app.tables.values import date_of_days
from mtclust.core import Array, Integers
from mtclust.estimators.stability import DOUBTFUL, Stability
from mtclust.exceptions import ClusterNumberWarning, SmallTaskWarning, TableWarning, UncoupledWarning
from mtclust.util.messages import advice, distinct_names, how_many, listing, shown_name, spelled_out

if TYPE_CHECKING:
    from mtclust.app.clustering import Clustering
    from mtclust.estimators.base import MultitaskClusterer


#: what a larger and a smaller value of a kind of feature is called
_DIRECTIONS = {
    "number": ("higher ", "lower "),
    "year": ("later ", "earlier "),
    "date": ("later ", "earlier "),
    "category": ("", "less often "),
}
#: what opens the description of a cluster that nothing sets apart in all tasks
_SCOPES = {"most": "where most of it lies: ", "rows": "in all rows: ", "between": "lies between other clusters in "}
#: how many tasks, clusters or features a sentence names
NAMED = 3
#: characters of the name of a task in a sentence
NAME = 40
#: separation from which rows are said to fall into clusters
APART = 0.55
#: what it means where the origin lies
_FRAMES = {
    "task": "every task around its own centre: tasks may be shifted against each other, and have all clusters",
    "all": "all tasks in one frame: the levels of the tasks count, and a task may lack clusters",
    "aligned": "all tasks in one frame, each moved by an offset of its own: a task may lack clusters",
}
#: warnings that cautions say in their own words, or in other ones
SAID = (UncoupledWarning, SmallTaskWarning, ConvergenceWarning, ClusterNumberWarning, TableWarning)
#: what a summary says about choices; the report says all
_CHOSEN = ("number of clusters", "coupling of the tasks")
#: tasks that are shown one by one: in the summary the first, in pictures the largest
TASKS_SHOWN = 40


def natural_order(names: Iterable[Any]) -> list[int]:
    """Positions that sort names as people do, numbers with as many digits each: task 02 before task 10."""
    texts = [str(name) for name in names]
    longest = max(map(len, texts), default=0)
    keys = [(re.sub(r"\d+", lambda digits: digits[0].zfill(longest), text.casefold()), text) for text in texts]
    return sorted(range(len(texts)), key=keys.__getitem__)


def figure(value: float) -> str:
    """A measured value with three digits that matter."""
    size = abs(value)
    if size >= 1000:
        text = f"{value:,.0f}" if size < 1e9 else f"{value:.2e}"
    else:
        text = f"{value:.2g}" if 0 < size < 1e-4 else f"{value:z.3g}"
    return text.replace("-", "−")


def two(value: Any, sign: str = "") -> str:
    """A number with two decimals and a proper minus; ``sign`` is a format of Python."""
    return f"{float(value):{sign}z.2f}".replace("-", "−")


def percent(share: float) -> str:
    """A share in per cent; only none is 0 %, and only all is 100 %."""
    value = 100 * share
    if min(value, 100 - value) < 1e-9:
        return f"{value:.0f} %"
    text = f"{value:.1f}" if min(value, 100 - value) < 0.95 else f"{value:.0f}"
    return {"0.0": "<0.1", "100.0": ">99.9"}.get(text, text) + " %"


def value_in_words(feature: Feature, mean: float) -> str:
    """A mean of X in the units of the table; nothing of a topic, which is a direction."""
    if feature.kind == "topic":
        return ""
    value = feature.offset + feature.factor * mean
    if abs(value) < 1e-12 * max(abs(feature.offset), abs(feature.factor)):
        value = 0.0  # what is left of a mean after centring and back
    if not np.isfinite(value):
        return "–"
    if feature.kind in ("category", "word"):
        return percent(float(np.clip(value, 0.0, 1.0)))
    if feature.kind == "date":
        return date_of_days(value)
    if feature.kind == "year":
        return f"{value:.0f}"
    return f"{figure(value)} {feature.unit}".rstrip()


def trait_in_words(trait: Trait) -> str:
    """A few words for what sets a cluster apart, with the means of its rows and of the others."""
    feature = trait.feature
    if feature.kind == "topic":  # a direction between two ends
        high, _, low = feature.name.removeprefix(f"{feature.column}: ").partition(" ↔ ")
        return f"{feature.column} rather about {high if trait.effect > 0 else low}"
    if feature.opposite and trait.effect < 0:
        shares = [percent(float(np.clip(1 - feature.factor * mean, 0, 1))) for mean in (trait.inside, trait.outside)]
        return f"{feature.opposite} ({shares[0]}; others {shares[1]})"
    inside, outside = value_in_words(feature, trait.inside), value_in_words(feature, trait.outside)
    if trait.scope == "between":
        return f"{feature.name} ({inside})"
    direction = _DIRECTIONS.get(feature.kind, ("", ""))[trait.effect <= 0]
    return f"{direction}{feature.name} ({inside}; others {outside})"


def cluster_in_words(found: Clustering, cluster: int) -> str:
    """What sets a cluster apart, in one line; task by task where it differs between them."""
    findings = found.findings
    if found.n_clusters == 1:
        return "all rows"
    if findings.differing(cluster):
        parts = [
            f"in {found.task_words[task]} {traits_in_words(own, NAMED - 1)}"
            for task, own in findings.by_task(cluster, NAMED).items()
            if own
        ]
        return "differs between tasks: " + "; ".join(parts)
    shared = findings.traits[cluster]
    if not shared:
        return "nothing sets it apart from the other rows"
    return _SCOPES.get(shared[0].scope, "") + traits_in_words(shared)


def traits_in_words(traits: Sequence[Trait], most: int = NAMED) -> str:
    """The most telling of some traits, in one line."""
    if traits[0].feature.kind == "word":
        return "words: " + ", ".join(trait.feature.name for trait in traits[: 2 * NAMED])
    return ", ".join(trait_in_words(trait) for trait in _telling(traits)[:most])


def _telling(traits: Sequence[Trait]) -> list[Trait]:
    """Of a category the level that a cluster has rather than those that it lacks, of a text its strongest topic."""
    said = {trait.feature.column for trait in traits if trait.feature.kind == "category" and trait.effect > 0}
    kept: list[Trait] = []
    for trait in traits:
        feature = trait.feature
        lacks = feature.kind == "category" and trait.effect < 0 and not feature.opposite
        once = lacks or feature.kind == "topic"
        if not (once and feature.column in said):
            kept.append(trait)
            said |= {feature.column} if once else set()
    return kept


def ids_in_words(found: Clustering) -> str:
    """Which clusters may not mean the same in all tasks, in a sentence or two; empty where all do."""
    places = [
        f"{found.name(c)} in {found.task_words[task]} (agreement {agreement})"
        for c, task, agreement in found.differing or ()
    ]
    if not places:
        return ""
    return (
        f"Cluster ids may not mean the same in all tasks: {listing(places, NAMED)}. The rows there are closer to a "
        "different cluster of the other tasks. (The agreement of a cluster's averages there and elsewhere is 1 if they "
        "are the same and 0 if they are unrelated.) Such clusters are described task by task, and their shares are not "
        "compared."
    )


def kernel_in_words(kernel: str) -> str:
    """The kernel that was taken: of "RBF 0.5" the RBF kernel of width 0.5."""
    kind, _, width = kernel.partition(" ")
    return f"{kind} kernel of width {width}" if width else f"{kind} kernel"


def columns_in_words(found: Clustering) -> str:
    """The columns without which the rows would be divided in another way; empty where there are none, or all are."""
    deciding = [(value, shown_name(name)) for name, value in found.without.items() if round(value, 2) < 0.8]
    if found.facts.doubted or not deciding or len(deciding) == len(found.without):
        return ""
    (value, name), *others = sorted(deciding)
    first = f"{name} (agreement {two(value)}; 1: the same clusters, 0: chance)"
    every = listing([first, *(f"{name} ({two(value)})" for value, name in others)], NAMED)
    return f"Leaving out one column changes the clusters: {every}."


def agreement_in_words(findings: Findings, task: int, cluster: int) -> str:
    """How far a cluster of a task agrees with the same id elsewhere, and what chance reaches."""
    chance = findings.chance[task, cluster]
    return two(findings.agreement[task, cluster]) + (f", by chance up to {two(chance)}" if np.isfinite(chance) else "")


def compared_in_words(found: Clustering) -> list[str]:
    """The most certain differences between the tasks, a task and a cluster at most twice, as up to six sentences."""
    said: list[str] = []
    times: Counter[tuple[str, int]] = Counter()
    for difference in comparable_differences(found):
        places = ("task", difference.task), ("cluster", difference.cluster)
        if len(said) < 6 and all(times[place] < 2 for place in places):
            task = found.task_words[difference.task]
            sentence = difference_in_words(difference, task, found.name(difference.cluster))
            said.append(f"{sentence[0].upper()}{sentence[1:]}.")
            times.update(places)
    return said


def comparable_differences(found: Clustering) -> list[Difference]:
    """Differences of shares, where there are clusters, their sizes were not given and their ids mean the same."""
    sizes = found.model.sizes
    given = not isinstance(sizes, str) or sizes != "auto"
    if found.differing is None or given or not found.facts.comparable:
        return []
    same = sorted({*range(found.n_clusters)} - {c for c, _, _ in found.differing})
    return differences(found.model.cluster_sizes_, same)


def difference_in_words(difference: Difference, task: str, cluster: str) -> str:
    """A sentence without its full stop."""
    here, elsewhere = difference.share, difference.elsewhere
    if here == 0:
        return f"{cluster} is absent in {task} ({percent(elsewhere)} of the rows elsewhere)"
    if elsewhere == 0:
        return f"{cluster} is found only in {task} ({percent(here)} of the rows there)"
    ratio, low, high = (figure(float(f"{value:.2g}")) for value in (here / elsewhere, difference.low, difference.high))
    return (
        f"{cluster} is {'more' if here > elsewhere else 'less'} common in {task}: {percent(here)} of the rows, "
        f"{percent(elsewhere)} elsewhere; ratio {ratio} ({low} to {high})"
    )


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of a fitted model."""

    n_clusters: int
    n_tasks: int
    n_rows: int
    #: ``loo_score_``
    separation: float
    #: whether there are "clusters" or "none"; None where that was not tested
    structure: str | None = None
    stability: Stability | None = None
    #: whether the number of clusters was given, or the data decide it
    decided: bool = True
    #: that alone makes the clusters, where there is only one
    column: str = ""

    @classmethod
    def of(cls, model: MultitaskClusterer) -> Facts:
        """The facts about a fitted model."""
        number = model.selection_.get("n_clusters") or {}
        return cls(
            int(model.n_clusters_), len(model.tasks_), len(model.labels_), float(model.loo_score_),
            number.get("structure"), getattr(model, "stability_", None), len(number.get("shown") or ()) < 2,
        )  # fmt: skip

    @property
    def standing(self) -> str:
        """one, none, doubtful, divided, overlapping or apart."""
        if self.n_clusters == 1:
            return "one"
        if self.doubted:
            return "none" if self.structure == "none" and not self._reproduced else "doubtful"
        untested = self.structure is None or self.stability is None
        if untested or not self.decided or not self.comparable or self.column:
            return "divided"
        return "overlapping" if self.separation < APART else "apart"

    @property
    def doubted(self) -> bool:
        """Whether the clusters may be none: the test finds nothing, or they are separated as in noise."""
        return self.n_clusters > 1 and (self.structure == "none" or round(self.separation, 2) <= 0)

    @property
    def _reproduced(self) -> bool:
        return self.stability is None or self.stability.overall >= DOUBTFUL

    @property
    def comparable(self) -> bool:
        """Whether there are clusters that refits do not contradict, so that their shares can be compared."""
        return self.n_clusters > 1 and not self.doubted and self._reproduced

    def headline(self, rows: str, ids_differ: bool = False) -> str:
        """One sentence; with its doubt where there is one, also whether clusters look the same in all tasks."""
        differing = ", not all of which look the same in every task" if ids_differ else ""
        alone = f" by the column {shown_name(self.column)} alone" if self.column else ""
        divided = f"{rows} were divided into {self.n_clusters} clusters{alone}"
        return {
            "one": f"{rows} are one cluster.",
            "none": f"{divided}, which a test does not confirm.",
            "doubtful": f"{divided}, which may not be distinct groups.",
            "divided": f"{divided}{differing}.",
            "overlapping": f"{divided} that overlap{differing}.",
        }.get(self.standing, f"{rows} fall into {self.n_clusters} clusters{differing}.")

    @property
    def figures(self) -> dict[str, str]:
        """How far clusters are separated and how far other rows would give the same ones, as far as it is known."""
        said = f"The clusters have a separation of {two(self.separation)} (0: as in noise, 1: they do not touch)."
        every = {"separation": said} | ({} if self.stability is None else {"stability": str(self.stability)})
        return {} if self.standing == "one" else every


def likeness_of_tasks(model: MultitaskClusterer, facts: Facts | None = None) -> tuple[str, Array | None]:
    """What says how alike tasks are, and that (m × m): None where nothing is known, or nothing can be compared.

    "correlation" where Ω was learned; "shares" where all tasks have one model, so that they can only differ in their
    shares of clusters: 1 − ½ Σ_c |π_ic − π_kc|; "similarity" of the clusters of every task alone elsewhere.
    """
    facts = facts or Facts.of(model)
    if facts.n_tasks == 1 or facts.n_clusters == 1 or facts.doubted:
        return "shares", None
    if model.selection_.get("center") in ("all", "aligned"):
        sizes = np.asarray(model.cluster_sizes_, dtype=float)
        shares = sizes / sizes.sum(axis=1, keepdims=True)
        return "shares", 1.0 - 0.5 * np.abs(shares[:, None, :] - shares[None, :, :]).sum(axis=2)
    if hasattr(model, "task_correlation_") and _coupled(model):
        return "correlation", np.asarray(model.task_correlation_, dtype=float)
    similarity = model.selection_.get("task_similarity")
    return "similarity", None if similarity is None else np.asarray(similarity, dtype=float)


def closest_others(alike: Array) -> tuple[Integers, Array]:
    """Of every task the one that is most like it, and how much."""
    others = np.where(np.eye(len(alike), dtype=bool), -np.inf, alike)
    return others.argmax(axis=1), others.max(axis=1)


def _coupled(model: MultitaskClusterer) -> bool:
    """Whether the tasks were clustered together in the end."""
    return model.selection_.get("coupling", {}).get("decision") not in ("none", 0)


def choices(model: MultitaskClusterer) -> list[tuple[str, str, str]]:
    """What was chosen or given: what it is called, its value, and why."""
    chosen = model.selection_
    number, coupling, sizes = (chosen.get(name) for name in ("n_clusters", "coupling", "sizes"))
    found = []
    if number is not None:
        none = "no number of clusters explains clearly more than chance does"
        reason = none if number["structure"] == "none" else number["reason"]
        found.append(("number of clusters", str(number["chosen"]), reason))
    if coupling is not None:
        found.append(("coupling of the tasks", str(coupling["decision"]), coupling["reason"]))
    if isinstance(sizes, str) and sizes == "free":
        found.append(("cluster sizes", sizes, "they follow from the labels that were chosen"))
    elif model.n_clusters_ > 1:
        value = repr(model.sizes) if isinstance(model.sizes, str | float | int | tuple) else "a table"
        value, why = (value, "set by the user") if value != "'auto'" else ("balanced", "equal up to a tenth")
        found.append(("cluster sizes", value, why))
    if chosen.criterion == "E" and hasattr(model, "center") and len(model.tasks_) > 1:
        found.append(("origin", chosen.center, _FRAMES[chosen.center]))
    kernel = f"{chosen['kernel']}, criterion {chosen['criterion']}"
    found.append(("kernel", kernel, chosen.get("reason", "set by the user")))
    given = not (isinstance(model.lambda1, str) and getattr(model, "lambda2", "auto") == "auto")
    why = "set by the user" if given else "a constant for this criterion and kernel"
    first, second = chosen["lambda1"], f"{chosen['lambda2']:.3g}"
    if isinstance(first, dict):
        value = f"λ1 by task ({min(first.values()):.3g} to {max(first.values()):.3g}), λ2 = {second}"
    else:
        value = f"λ1 = λ2 = {second}" if f"{first:.3g}" == second else f"λ1 = {first:.3g}, λ2 = {second}"
    return [*found, ("regularisation", value, why)]


class Caution(NamedTuple):
    """One thing to be careful about: a few words for it, and a sentence or two."""

    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.title}: {self.text}"


def cautions(
    model: MultitaskClusterer,
    warned: Sequence[Any] = (),
    names: Mapping[int, str] | None = None,
    facts: Facts | None = None,
) -> list[Caution]:
    """What a reader of the clusters should know before trusting them; nothing if nothing stands out.

    ``warned`` is what ``fit`` warned of, ``names`` are those of clusters that have one, and ``facts`` what is known,
    where more is known than the model holds.
    """
    facts, warned = facts or Facts.of(model), [getattr(entry, "message", entry) for entry in warned]
    called = [(names or {}).get(c, f"cluster {c}") for c in range(facts.n_clusters)]
    found = [*_of_search(model), *_of_clusters(model, facts, warned, called), *_of_tasks(model, called)]
    found += [Caution("Odd values", str(warning)) for warning in warned if isinstance(warning, TableWarning)]
    others = dict.fromkeys(str(warning) for warning in warned if not isinstance(warning, SAID))
    return found + [Caution("Warning", text) for text in others]


def _of_search(model: MultitaskClusterer) -> Iterator[Caution]:
    if hasattr(model, "relaxed_labels_"):
        text = "The labels are those of a convex relaxation; they depend on where it started and when it stopped. "
        yield Caution("Relaxed labels", text + 'Compare with solver="exchange".')
    elif not model.converged_:
        text = f"The search was stopped after {model.n_iter_} rounds while the objective was still falling"
        if model.selection_.sizes == "free":  # nothing that decides on labels is random
            yield Caution("Not converged", text + advice(". Raise max_iter or tol.", "."))
        else:
            text += "; another seed may give noticeably different clusters. "
            yield Caution("Not converged", text + advice("Raise max_iter or tol.", "Try another --seed."))


def _of_clusters(
    model: MultitaskClusterer, facts: Facts, warned: Sequence[Any], called: list[str]
) -> Iterator[Caution]:
    """Clusters that may be none, that refits do not find again, or whose number the data do not decide."""
    texts = dict.fromkeys(str(warning) for warning in warned if isinstance(warning, ClusterNumberWarning))
    if facts.doubted:
        text = "The clusters are separated no better than those of noise."
        if facts.structure == "none":
            text = "A test finds no structure beyond single columns and their correlations"
            text += (
                ": no sign of distinct groups." if facts.standing == "none" else "; with few rows it can miss groups."
            )
        yield Caution("No clear clusters", text)
        texts = {}
    elif not facts.decided:
        number = model.selection_.n_clusters
        others = [str(other) for other in number.shown if other != number.chosen]
        command = advice("n_clusters=", "--clusters ") + listing(others, len(others)).replace(" and ", " or ")
        see = f"To see {'the other' if len(others) == 1 else 'the others'}, cluster again with {command}."
        texts = {f"{number.reason}. {see}": None}
    yield from (Caution("Number of clusters", text) for text in texts)
    found = facts.stability
    if found is None or facts.n_clusters == 1:
        return
    weak = np.flatnonzero(np.nan_to_num(found.clusters, nan=1.0) < DOUBTFUL)
    if found.overall < DOUBTFUL:
        text = (
            f"Other samples of the rows give other clusters (agreement {found.overall:.2f}): do not rely on single "
            "rows or on small differences between tasks. "
        )
        fewer = advice("Try fewer clusters.", "Try fewer clusters (--clusters).") if facts.n_clusters > 2 else ""
        yield Caution("Low stability", (text + fewer).rstrip())
    elif len(weak):
        which = listing([f"{called[c]} ({found.clusters[c]:.2f})" for c in weak], NAMED)
        text = f"In other samples of the rows other rows are in {which}; below {DOUBTFUL} a cluster is not reliable."
        yield Caution("Some clusters are not reproduced", text)


def _of_tasks(model: MultitaskClusterer, called: list[str]) -> Iterator[Caution]:
    """Tasks that were clustered apart, clusters that lie in one task, too few rows, and rows that are alone.

    Where all tasks are measured from one origin, a shift of a task looks like a cluster.
    """
    sizes, names = np.asarray(model.cluster_sizes_), model.tasks_.tolist()
    shown = distinct_names(names)
    if len(names) > 1 and not _coupled(model) and getattr(model, "coupling", "auto") not in ("none", 0):
        full = advice('coupling="full"', "--coupling full")
        text = (
            f"Every task was clustered on its own: {model.selection_.coupling.reason}. Cluster ids were matched "
            f"afterwards. {full} couples them all the same."
        )
        yield Caution("Tasks clustered apart", text)
    total = sizes.sum(axis=0)
    confined = np.flatnonzero((sizes.max(axis=0) >= 0.95 * total) & (total > 0))
    one_origin = len(sizes) > 1 and model.selection_.center != "task" and isinstance(model.sizes, str)
    if one_origin and len(confined):
        which = [f"{called[c]} in task {shown[sizes[:, c].argmax()]}" for c in confined]
        every = "Every cluster lies" if len(confined) == np.count_nonzero(total) else "Some clusters lie"
        within = advice('center="task"', "--center task")
        text = (
            f"{every} (almost) entirely in one task: {listing(which, NAMED)}. Such a cluster may be a group that only "
            f"this task has, or a mere difference between tasks. {within} compares rows within tasks only."
        )
        yield Caution("Clusters of one task", text)
    tiny = np.flatnonzero(total < max(FEW_ROWS, 0.1 * total.sum() / len(total)))  # a tenth of equal sizes
    asked_for = not isinstance(model.sizes, str | Real | tuple)  # by a table of sizes
    if len(tiny) and total.sum() >= FEW_ROWS * len(total) and not asked_for:
        text = f"{listing([f'{total[c]} of {total.sum()} rows in {called[c]}' for c in tiny], NAMED)}: too few to say "
        fewer = advice('clusters or sizes="balanced"', "clusters (--clusters) or --sizes balanced")
        yield Caution("Tiny clusters", f"{text}much about. Try fewer {fewer}.")
    number = model.n_clusters if isinstance(model.n_clusters, Mapping) else {}
    least = [FEW_ROWS * number.get(name, model.n_clusters_) for name in names]
    small = [shown[task] for task in np.flatnonzero(sizes.sum(axis=1) < least)]
    if small:
        tasks = "Task" if len(small) == 1 else "Tasks"
        text = f"{tasks} {listing(small, NAMED)} {'has' if len(small) == 1 else 'have'} fewer than {FEW_ROWS} rows"
        yield Caution("Few rows", f"{text} per cluster; clusters there rest on very few rows.")
    alone = 0 if model.outlier_scores_ is None else np.count_nonzero(np.asarray(model.outlier_scores_) > 0.75)
    if alone:  # one row in a hundred of any data exceeds the cut
        rows = how_many(alone, "row lies", "rows lie")
        text = f"{rows} far from all others of the same task and may belong to no cluster (outlier score above 0.75)."
        yield Caution("Rows far from all others", text)


class Summary(str):
    """A fitted model in words; ``print`` it, or show it in a notebook."""

    __slots__ = ()
    __repr__ = str.__str__

    def _repr_html_(self) -> str:
        return f'<pre class="mtclust-summary" style="overflow-x: auto; white-space: pre">{escape(self)}</pre>'


def _laid_out(header: list[str], table: list[list[str]]) -> str:
    """The table of tasks: names to the left, numbers to the right."""
    rows, more = [header, *table[:TASKS_SHOWN]], len(table) - TASKS_SHOWN
    columns = []
    for column in zip(*rows):
        aligned, width = str.ljust if "task" in column[0] else str.rjust, max(map(len, column))
        columns.append([aligned(cell, width) for cell in column])
    lines = ["Rows per task and cluster" if header[2] == "0" else "Rows per task, and sizes of its clusters"]
    lines += [f"  {'  '.join(row)}".rstrip() for row in zip(*columns)]
    return "\n".join(lines + [f"  and {how_many(more, 'more task')}"] * (more > 0))


def sizes_table(model: MultitaskClusterer, facts: Facts) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table of tasks, in the order of their names."""
    sizes = model.cluster_sizes_
    header = ["task", "rows", *(str(c) for c in range(sizes.shape[1]))]
    shown = [[str(size) for size in row] for row in sizes]
    if sizes.shape[1] > 12:  # columns, and the terminal is full
        header = ["task", "rows", "smallest", "median", "largest"]
        shown = [[f"{row.min()}", f"{np.median(row):g}", f"{row.max()}"] for row in sizes]
    names = distinct_names(model.tasks_.tolist())
    table = [[name, str(int(row.sum())), *texts] for name, row, texts in zip(names, sizes, shown)]
    kind, matrix = likeness_of_tasks(model, facts)
    if matrix is not None and kind != "shares":
        nearest, alike = closest_others(matrix)
        if alike.max() >= 0.005:
            header.append(f"closest task ({kind})")
            for row, k, x in zip(table, nearest, alike):
                row.append(f"{names[k]} ({x:.2f})" if x >= 0.005 else "–")
    return header, [table[task] for task in natural_order(model.tasks_)]


def _wrapped(text: str, first: str = "") -> str:
    """A text in lines for the terminal, all as far from its edge as the end of ``first``, which opens it."""
    later = " " * len(first)
    return textwrap.fill(text, 100, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def _section(title: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Texts below a title, what each is about on its left; empty where there are none."""
    width = max((len(name) for name, _ in pairs), default=0) + 2
    return "\n".join([title, *(_wrapped(text, f"  {name:<{width}}") for name, text in pairs)]) if pairs else ""


def summarised(found: Clustering) -> Summary:
    """What was clustered, what was found and what to be careful about."""
    model, facts = found.model, found.facts
    title = (
        f"{found.headline} They were clustered by {found.encoder.describe()} with {type(model).__name__} "
        f"({kernel_in_words(model.selection_.kernel)})."
    )
    rows, names = found.clusters_table, [shown_name(found.name(c), NAME) for c in range(found.n_clusters)]
    clusters = [f"{percent(share)}, {text}" for share, text in zip(rows["share"], rows["characterised_by"])]
    careful = cautions(model, found.warned, found.names, facts)
    said = {caution.title.lower() for caution in careful}
    told = [
        ("columns", columns_in_words(found)),
        *facts.figures.items(),
        *(("tasks", text) for text in compared_in_words(found)),
    ]
    reasons = [(what, f"{why[0].upper()}{why[1:]}.") for what, _, why in choices(model)]
    blocks = [
        _wrapped(spelled_out(title)),
        _wrapped(found.ids),
        _laid_out(*sizes_table(model, facts)),
        _section("Clusters", list(zip(names, clusters))),
        _section("Found", [(name, text) for name, text in told if text]),
        _section("Chosen", [(what, why) for what, why in reasons if what in _CHOSEN and what not in said]),
        _section("The table", [("note", note) for note in found.notes]),
        "\n".join(["Be careful", *(_wrapped(str(caution), "  ! ") for caution in careful)]) if careful else "",
    ]
    return Summary("\n\n".join(filter(None, blocks)))
