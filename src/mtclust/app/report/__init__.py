"""The report: one self-contained HTML page about a fitted model."""

from mtclust.app.report.content import ReportInput
from mtclust.app.report.page import render_report, write_report

__all__ = ["ReportInput", "render_report", "write_report"]
