"""Saving and loading fitted models: a zip of one JSON manifest and plain arrays; loading executes nothing."""

from mtclust.persistence.models import load, save

__all__ = ["load", "save"]
