"""What ``selection_`` of a fitted model says: records with named fields, which can be read like dictionaries as well.

Every field is there in every form of the data; it is None where it does not apply. As a mapping a record has only the
keys that apply, so that ``"width" in model.selection_`` asks whether there is a width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

Kind = TypeVar("Kind", bound="Record")


class Record(Mapping[str, Any]):
    """A dataclass that reads like a dictionary of its fields that are not None."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __getitem__(self, name: str) -> Any:
        names = self.__dataclass_fields__
        if name not in names:
            raise KeyError(f"{name!r} is no field of {type(self).__name__}; there are {', '.join(names)}")
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.__dataclass_fields__ if getattr(self, name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return any(name == own for own in self)

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name) if name in self else default

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.items())})"

    @classmethod
    def of(cls: type[Kind], entries: Mapping[str, Any]) -> Kind:
        """The record of a dictionary of its fields; what other versions say beside them is left out."""
        if not isinstance(entries, Mapping):
            raise ValueError(f"{cls.__name__} is made of a dictionary, not of a {type(entries).__name__}")
        return cls(**{name: entries[name] for name in cls.__dataclass_fields__ if name in entries})

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, also within."""
        return asdict(self, dict_factory=lambda entries: {name: own for name, own in entries if own is not None})


@dataclass(frozen=True, eq=False, repr=False)
class CouplingDecision(Record):
    """Whether the tasks were coupled, and why.

    Attributes
    ----------
    decision : {"full", "none"} or float
    reason : str
    statistic : float or None
        By how much coupled labels fall behind those of every task alone: in score where sizes are open, in separation
        within tasks where they are given; None where the user decided.
    similarity : float or None
        Mean similarity V of the tasks to the one most similar to each.
    coupled_labels : ndarray of shape (n,), or None
    task_covariance : ndarray of shape (m, m), or None
        What coupling found, whatever was decided.

    Examples
    --------
    >>> decision = CouplingDecision("none", "there is only one task")
    >>> decision["reason"], "statistic" in decision, decision.statistic
    ('there is only one task', False, None)
    """

    decision: str | float
    reason: str
    statistic: float | None = None
    similarity: float | None = None
    coupled_labels: Any = None
    task_covariance: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ClusterNumberChoice(Record):
    """A number of clusters that was chosen without labels (:func:`mtclust.selection.select_n_clusters`).

    Attributes
    ----------
    chosen : int
    reason : str
    gaps : dict
        For every number that was tried, by how much, in logarithms, the variance left within clusters is below that of
        rows without clusters; nan where there are too few rows.
    votes : dict
        How often all rows and six half-samples choose each number.
    structure : {"clusters", "none"}
        Whether the largest gap is clear, or no larger than chance makes it.
    shown : list of int or None
        The numbers that the data do not decide between; the number itself where they do.

    Examples
    --------
    >>> ClusterNumberChoice(3, "3 separate best", {2: 0.1, 3: 0.4}).gaps[3]
    0.4
    """

    chosen: int
    reason: str
    gaps: dict[int, float]
    votes: dict[Any, Any] | None = None
    structure: str | None = None
    shown: list[int] | None = None

    @property
    def n_clusters(self) -> int:
        """The number that was chosen."""
        return self.chosen

    @property
    def decided(self) -> bool:
        """Whether the samples and the silhouette agree on the number."""
        return self.shown in (None, [self.chosen])


@dataclass(frozen=True, eq=False, repr=False)
class Tried(Record):
    """One candidate of a choice: what found it, its score, and how well it separates the rows.

    Attributes
    ----------
    name : str
    score, separation : float
    frame : {"all", "task", "aligned", "alone"} or None
        How tasks were put beside each other: as they are, each around its mean, each moved by an offset, or not at all,
        every task being clustered alone. None for one task, and where only kernels were compared.

    Examples
    --------
    >>> Tried("k-means of aligned tasks", 0.6, 0.5, "aligned").frame
    'aligned'
    """

    name: str
    score: float
    separation: float
    frame: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Record):
    """What was chosen or given, from what, and why.

    Attributes
    ----------
    kernel : str
    criterion : {"J", "E"}
    center : {"task", "all", "aligned"}
    lambda1 : float or dict
        By task where it was given so.
    lambda2 : float
    sizes : "free", or what the user gave
    form : {"dual", "primal"}
        How the rows were held: kernel matrices or explicit features.
    width : float or None
        Of an RBF kernel, in mean distances between two rows of one task.
    reason : str or None
        Why the labels were taken; None where nothing was open.
    candidates : list of Tried, or None
        All that was tried: the one taken, then the others by falling score.
    coupling : CouplingDecision or None
        None for methods that do not decide.
    n_clusters : ClusterNumberChoice or None
        None where the number was given.
    n_components : int or None
        Features that DMTFC shares among the tasks.
    features : str or None
        What the explicit features are.
    chosen_on : str or None
        The sample that choices were made on; None for all rows.
    task_similarity : ndarray of shape (m, m), or None
        V, the similarity of class means of the tasks clustered alone.

    Examples
    --------
    >>> from mtclust import DSTC
    >>> model = DSTC(2, kernel="linear", random_state=0).fit([[0.0], [0.1], [1.0], [1.1]])
    >>> model.selection_.kernel, model.selection_["kernel"], model.selection_.width, "width" in model.selection_
    ('linear', 'linear', None, False)
    """

    kernel: str
    criterion: str
    center: str
    lambda1: float | dict[Any, float]
    lambda2: float
    sizes: Any
    form: str
    width: float | None = None
    reason: str | None = None
    candidates: list[Tried] | None = None
    coupling: CouplingDecision | None = None
    n_clusters: ClusterNumberChoice | None = None
    n_components: int | None = None
    features: str | None = None
    chosen_on: str | None = None
    task_similarity: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, entries: Mapping[str, Any]) -> Selection:
        """The record of a dictionary, whose parts may be dictionaries themselves."""
        parts = dict(entries)
        for name, kind in (("coupling", CouplingDecision), ("n_clusters", ClusterNumberChoice)):
            if parts.get(name) is not None:
                parts[name] = kind.of(parts[name])
        if isinstance(parts.get("candidates"), list):
            parts["candidates"] = [Tried.of(tried) for tried in parts["candidates"]]
        return super().of(parts)
