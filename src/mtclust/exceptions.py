"""Warnings and errors of the library."""

from __future__ import annotations

#: said by every form of the problem when the rows have nothing to cluster by
NO_VARIATION = (
    "X has no variation within any task (its rows are equal, or differ by less than products of rows can show; then "
    "rescale X, or take the offsets between tasks off): the labels are arbitrary."
)


class SmallTaskWarning(UserWarning):
    """A task has too few rows for the number of clusters or for a centre of its own."""


class UncoupledWarning(UserWarning):
    """Coupling the tasks was refused: they look unrelated, or their own data contradict the coupled labels."""


class SearchWarning(UserWarning):
    """A search was probably too short."""


class DegenerateSolutionWarning(UserWarning):
    """The convex relaxation has collapsed: its relaxed labels carry (almost) no information about clusters."""


class ClusterNumberWarning(UserWarning):
    """No number of clusters separates the data better than noise."""


class ModelFileError(ValueError):
    """A file is no saved model, is damaged, or was written in a format that this version does not know."""


class CommandError(Exception):
    """Something the user of the command line can mend; printed without a traceback."""
