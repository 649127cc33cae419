"""A tool that asks the user."""

from __future__ import annotations

from agent_brain.tools.errors import InputNeeded
from agent_brain.tools.function import tool


@tool(idempotent=True)
async def ask_user(question: str) -> str:
    """Ask the user something that only they can know or decide, and wait for the answer.

    Args:
        question: One question, with all the context needed to answer it.
    """
    raise InputNeeded(question)
