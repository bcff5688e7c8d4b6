"""Saving and loading fitted models: a zip of one JSON manifest and plain arrays; loading executes nothing."""

from mtclust.persistence import scalars as scalars
from mtclust.persistence.codec import register
from mtclust.persistence.models import load, save

__all__ = ["load", "register", "save"]
