"""The figures of a report as JSON. Private."""

from __future__ import annotations

from typing import Any

from agent_brain.experiments import CellReport, Comparison, Plan, Report


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
    passed, score = one.passed, one.score
    return {
        "cell": str(one.cell),
        **one.cell._asdict(),
        "passed": passed.k,
        "cases": passed.n,
        "rate": passed.rate,
        "low": passed.low,
        "high": passed.high,
        "outcomes": {str(outcome): number for outcome, number in one.outcomes.items()},
        "score": {"mean": score.mean, "low": score.low, "high": score.high},
        "judged": one.judged,
        "gained": one.gained,
        "lost": one.lost,
        "steps": one.steps,
        "model_calls": one.model_calls,
        "tool_calls": one.tool_calls,
        "tokens": one.tokens,
        "cost": one.cost,
        "cost_per_pass": one.cost_per_pass,
        "median_seconds": one.median_seconds,
        "p95_seconds": one.p95_seconds,
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    return {
        "a": str(one.a),
        "b": str(one.b),
        "gained": one.gained,
        "lost": one.lost,
        "difference": one.difference,
        "low": one.low,
        "high": one.high,
        "p": one.p,
        "p_adjusted": one.p_adjusted,
        "significant": one.significant,
        "tasks_needed": one.tasks_needed,
        "sentence": one.sentence,
    }
