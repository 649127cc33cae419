"""A conversation as a client sends it: what was said before, and the task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agent_brain.memories.message import Message, Role
from agent_brain.serving.web.openai.content import Content, read_content
from agent_brain.serving.web.openai.errors import invalid
from agent_brain.tools.action import Action

_INSTRUCTIONS = ("system", "developer")


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation.

    Attributes:
        history: What was said before.
        task: The last message, of the user.
    """

    history: list[Message]
    task: Message


def conversation(messages: Sequence[Message], param: str) -> Conversation:
    """Return ``messages`` as a conversation.

    Instructions that follow the last message of the user are put before it.

    Args:
        messages: The messages, in order.
        param: The name of the field, for errors.

    Raises:
        ApiError: The last message is not the user's, or a tool call has no result.
    """
    said = [message for message in messages if message.role is not Role.SYSTEM]
    if not said or said[-1].role is not Role.USER:
        raise invalid("The last message must be the user's: it is the task", param)
    task = said[-1]
    if not task.content.strip() and not task.attachments:
        raise invalid("The last message is empty: it is the task", param)
    history = [message for message in messages if message is not task]
    _check_calls([*history, task], param)
    return Conversation(history, task)


def _check_calls(messages: Iterable[Message], param: str) -> None:
    """Refuse calls without a result and results without a call, as OpenAI does."""
    waiting: set[str] = set()
    for message in messages:
        if message.role is Role.TOOL:
            if message.tool_call_id not in waiting:
                raise invalid(
                    f"The tool message for {message.tool_call_id!r} does not follow a message "
                    "with that call, or answers it twice",
                    param,
                )
            waiting.discard(message.tool_call_id)
        elif waiting:
            raise invalid(
                f"Tool messages must follow for all tool calls: {', '.join(sorted(waiting))}",
                param,
            )
        else:
            waiting = {action.id for action in message.tool_calls}


def read_message(
    role: str,
    content: Content,
    param: str,
    *,
    name: str | None = None,
    calls: Sequence[Action] = (),
    call_id: str | None = None,
) -> Message:
    """Return a message of a client as ours.

    Args:
        role: The role, as the client names it.
        content: The content.
        param: The name of the field, for errors.
        name: Who speaks.
        calls: The tool calls of an assistant message.
        call_id: The call that a tool message answers.

    Raises:
        ApiError: It cannot be read.
    """
    text, attachments = read_content(content, f"{param}.content")
    if role in _INSTRUCTIONS:
        return Message.system(text)
    if role == "user":
        return Message.user(text, name=name, attachments=attachments)
    if role == "assistant":
        return Message.assistant(text, calls, name=name)
    if role == "tool" and call_id:
        return Message(role=Role.TOOL, content=text, name=name, tool_call_id=call_id)
    if role == "tool":
        raise invalid("A tool message needs the 'tool_call_id' of its call", param)
    raise invalid(
        f"Unknown role {role!r}: use system, developer, user, assistant or tool", f"{param}.role"
    )


def read_call(name: str, arguments: str, call_id: str) -> Action:
    """Return a tool call whose arguments are JSON text."""
    try:
        args: Any = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        args = None
    if isinstance(args, dict):
        return Action(name=name, args=args, id=call_id)
    return Action(name=name, id=call_id, unparsed=arguments)
