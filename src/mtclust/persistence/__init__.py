"""Saving and loading fitted models: a zip of one JSON manifest and plain arrays; loading executes nothing."""
