"""What to be careful about, for readers of the report and of the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from mtclust.app.wording import advice, option
from mtclust.estimators.concerns import concerns
from mtclust.exceptions import ClusterNumberWarning, SmallTaskWarning, TableWarning, UncoupledWarning

#: library warnings that are said in other words here
_SAID_OTHERWISE = (UncoupledWarning, SmallTaskWarning, ConvergenceWarning, ClusterNumberWarning)


@dataclass(frozen=True)
class Caution:
    """One thing to be careful about: a few words for it, and a sentence or two."""

    title: str
    text: str


def cautions(model: Any, warned: Sequence[Any] = (), names: Mapping[int, str] | None = None) -> list[Caution]:
    """What a reader of the clusters should know before trusting them.

    Beyond the concerns of ``summary()`` it says what whoever called ``fit`` knows, and what ``fit`` warned of.

    Parameters
    ----------
    model : fitted DMTRC, DMTFC or DSTC
    warned : sequence of warnings.WarningMessage or of warnings
        What ``fit`` warned of.
    names : mapping from int to str, optional
        Of clusters that have one.
    """
    raised = [getattr(entry, "message", entry) for entry in warned]
    found = _about_call(model)
    found += [
        Caution(entry.title, f"{entry.text} {advice(entry.advice, entry.option)}".rstrip()) for entry in concerns(model)
    ]
    said = any(caution.title == "No clear clusters" for caution in found)
    uncertain = [str(warning) for warning in raised if isinstance(warning, ClusterNumberWarning) and not said]
    found += [
        Caution("Number of clusters uncertain", f"{text} Compare several numbers ({option('n_clusters')}).")
        for text in dict.fromkeys(uncertain)
    ]
    found += [Caution("Odd values", str(warning)) for warning in raised if isinstance(warning, TableWarning)]
    others = [str(warning) for warning in raised if not isinstance(warning, (*_SAID_OTHERWISE, TableWarning))]
    found += [Caution("Warning of the library", text) for text in dict.fromkeys(others)]
    return [Caution(caution.title, _with_names(caution.text, names or {})) for caution in found]


def _with_names(text: str, names: Mapping[int, str]) -> str:
    """A sentence in which clusters are called by their names."""
    return re.sub(r"\bcluster (\d+)\b", lambda found: names.get(int(found[1]), found[0]), text)


def _about_call(model: Any) -> list[Caution]:
    if len(model.tasks_) == 1:
        return [Caution("One task only", "There is a single task, so nothing could be shared between tasks.")]
    given = getattr(model, "coupling", "auto")
    if given in ("auto", "none", 0):
        return []
    text = "Coupling was set by hand, so it was not tested whether the tasks' own data support it."
    return [Caution("Coupling not tested", text)]
