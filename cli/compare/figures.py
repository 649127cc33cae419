"""The figures of a report as JSON."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from agent_brain.experiments import CellReport, Comparison, Plan, Report

_OF_COMPARISON = (
    "gained", "lost", "difference", "low", "high", "p", "p_adjusted", "significant",
    "tasks_needed", "sentence",
)  # fmt: skip


def figures(report: Report) -> dict[str, Any]:
    """Return what a report found, as JSON values; names of cells are whole."""
    return {
        "name": report.info.name,
        "folder": None if report.folder is None else str(report.folder),
        "base": str(report.base),
        "tasks": len(report.info.tasks),
        "repeat": report.info.repeat,
        "missing": report.missing,
        "cells": [_cell(one) for one in report.cells],
        "comparisons": [_comparison(one) for one in report.comparisons],
        "warnings": report.warnings,
    }


def plan_figures(plan: Plan) -> dict[str, Any]:
    """Return what an experiment would do, as JSON values."""
    return {
        "cells": [str(cell) for cell in plan.cells],
        "cases": len(plan.cases),
        "done": plan.done,
        "max_cost": plan.max_cost,
        "unpriced": plan.unpriced,
    }


def _cell(one: CellReport) -> dict[str, Any]:
    passed = one.passed
    others = {field.name: getattr(one, field.name) for field in fields(one)}
    return others | {
        "cell": str(one.cell),
        **one.cell._asdict(),
        "passed": passed.k,
        "cases": passed.n,
        "rate": passed.rate,
        "low": passed.low,
        "high": passed.high,
        "score": asdict(one.score),
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    found = {name: getattr(one, name) for name in _OF_COMPARISON}
    return {"a": str(one.a), "b": str(one.b), **found}
