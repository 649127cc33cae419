"""The report of an experiment as one HTML file, with a page for each run."""

from __future__ import annotations

from agent_brain.experiments.report.html.page import html_page as html_page
