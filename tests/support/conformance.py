"""Runs conformance checks in one test: there are thousands, and most take less than a test."""

from __future__ import annotations

from collections.abc import Iterable

from agent_brain.testing import Check


async def pass_all(checks: Iterable[Check]) -> None:
    """Run ``checks`` in turn; an error says of which it is."""
    for check in checks:
        try:
            await check()
        except Exception as error:
            error.add_note(f"in: {check}")
            raise
