"""A report on a fitted model: one HTML file that opens anywhere, offline."""

from kstonet.report.build import build_report, write_report

__all__ = ["build_report", "write_report"]
