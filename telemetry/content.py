"""What was said, as attributes of spans, for those who ask for it.

The JSON has the form of the messages in the GenAI conventions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agent_brain.common.text import to_compact_json
from agent_brain.memories.message import Message
from agent_brain.states.hooks import ModelRequest, ModelResponse
from agent_brain.tools.action import Action

_FINISH = {
    "tool_calls": "tool_call",
    "refusal": "content_filter",
    "pause": "length",
    "unknown": "stop",
}


def of_request(request: ModelRequest) -> dict[str, Any]:
    """Return the messages of a model call, its instructions apart, and its tools."""
    system = [m for m in request.messages if m.role.value == "system"]
    others = [m for m in request.messages if m.role.value != "system"]
    found = {"gen_ai.input.messages": to_compact_json([_message(m) for m in others])}
    if system:
        found["gen_ai.system_instructions"] = to_compact_json([_text(m.content) for m in system])
    if request.tools:
        found["gen_ai.tool.definitions"] = to_compact_json(
            [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema,
                }
                for tool in request.tools
            ]
        )
    return found


def of_response(response: ModelResponse) -> dict[str, Any]:
    """Return what a model has said."""
    parts = [{"type": "reasoning", "content": response.thoughts}] if response.thoughts else []
    parts += [_text(response.text)] if response.text else []
    parts += _calls(response.actions)
    reason = response.finish_reason or "stop"
    message = {
        "role": "assistant",
        "parts": parts,
        "finish_reason": _FINISH.get(reason, reason),
    }
    return {"gen_ai.output.messages": to_compact_json([message])}


def of_goal(goal: Message | None) -> dict[str, Any]:
    """Return the goal of a run."""
    return {} if goal is None else {"gen_ai.input.messages": to_compact_json([_message(goal)])}


def of_answer(answer: str) -> dict[str, Any]:
    """Return the answer of a run."""
    message = {"role": "assistant", "parts": [_text(answer)], "finish_reason": "stop"}
    return {"gen_ai.output.messages": to_compact_json([message])}


def of_arguments(action: Action) -> dict[str, Any]:
    """Return the arguments of a tool call."""
    return {"gen_ai.tool.call.arguments": to_compact_json(action.args)}


def of_result(content: str) -> dict[str, Any]:
    """Return the result of a tool call."""
    return {"gen_ai.tool.call.result": content}


def _message(message: Message) -> dict[str, Any]:
    if message.role.value == "tool":
        result = {
            "type": "tool_call_response",
            "id": message.tool_call_id,
            "response": message.content,
        }
        return {"role": "tool", "parts": [result]}
    parts = [_text(message.content)] if message.content else []
    return {"role": message.role.value, "parts": [*parts, *_calls(message.tool_calls)]}


def _calls(actions: Iterable[Action]) -> Sequence[dict[str, Any]]:
    return [
        {"type": "tool_call", "id": action.id, "name": action.name, "arguments": action.args}
        for action in actions
    ]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}
