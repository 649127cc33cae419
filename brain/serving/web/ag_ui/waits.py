"""What a run waits for, as interrupts of AG-UI. Private."""

from __future__ import annotations

from typing import Any

from ag_ui.core import Interrupt

from agent_brain.serving.pending import approval_question
from agent_brain.serving.web.chat.wait_ids import wait_id
from agent_brain.tools.action import Action
from agent_brain.tools.text import clean

DECISION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "editedArgs": {
            "type": "object",
            "description": "Arguments to call the tool with, in place of the model's.",
        },
        "reason": {"type": "string", "description": "Why it is not approved, for the model."},
    },
    "required": ["approved"],
}
ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
}


def approval_interrupt(
    session: str, action: Action, call_id: str, subagent: str | None
) -> Interrupt:
    """Return the interrupt for a call that waits for approval.

    Args:
        session: The ID of the session.
        action: The call.
        call_id: Its ID, as the client knows it.
        subagent: The subagent that requests it, if one does.
    """
    return Interrupt(
        id=wait_id(session, action.id),
        reason="tool_call",
        message=approval_question(action),
        tool_call_id=call_id,
        response_schema=DECISION,
        subagent_run_id=subagent,
    )


def question_interrupt(
    session: str, question: str, prompt: str, call_id: str | None, subagent: str | None
) -> Interrupt:
    """Return the interrupt for a question, with the ID of the call that asks it, if one does."""
    return Interrupt(
        id=wait_id(session, question),
        reason="input_required",
        message=clean(prompt),
        tool_call_id=call_id,
        response_schema=ANSWER,
        subagent_run_id=subagent,
    )
