"""Warnings of the library."""

from __future__ import annotations


class SmallTaskWarning(UserWarning):
    """A task has too few rows for the number of clusters or for a centre of its own."""


class UncoupledWarning(UserWarning):
    """Coupling the tasks was refused: the coupled labels contradict what the tasks' own data say."""


class DegenerateSolutionWarning(UserWarning):
    """The convex relaxation has collapsed: its relaxed labels carry (almost) no information about clusters."""
