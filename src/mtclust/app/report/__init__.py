"""The report and its templates."""
