"""The report: one self-contained HTML page about a clustering."""

from mtclust.app.report.page import render_report

__all__ = ["render_report"]
