"""The tools that the agents of a team have: to send messages, and to end the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_brain.memories.message import Message
from agent_brain.memories.sharing.member import MemberMemory
from agent_brain.memories.sharing.shared import USER
from agent_brain.teams.notes import TurnNotes
from agent_brain.tools.base import BaseTool
from agent_brain.tools.context import ToolContext, current_call
from agent_brain.tools.errors import ToolError
from agent_brain.tools.schemas import object_schema

SEND_MESSAGE = "send_message"
FINISH_TASK = "finish_task"


class SendMessageTool(BaseTool):
    """Adds a message of an agent to the record.

    Args:
        member: The agent.
        others: The other agents: what they do, by their names.
    """

    def __init__(self, member: MemberMemory, others: Mapping[str, str]) -> None:
        listed = "; ".join(f"{name} ({what})" if what else name for name, what in others.items())
        super().__init__(
            SEND_MESSAGE,
            "Send a message to other agents of your team. They read it after your turn. What you "
            f"say at the end of your turn is then sent to nobody. The agents: {listed}.",
            object_schema(
                {
                    "to": {
                        "type": "array",
                        "items": {"type": "string", "enum": [*others]},
                        "description": "The receivers; an empty list sends it to all.",
                    },
                    "content": {"type": "string", "description": "The message."},
                }
            ),
            idempotent=True,
        )
        self.member = member

    async def execute(self, **kwargs: Any) -> str:
        """Add the message, once for each call.

        Raises:
            ToolError: The message is empty.
        """
        content: str = kwargs["content"]
        to: Sequence[str] = kwargs["to"]
        if not content.strip():
            raise ToolError("The message is empty")
        sent = Message.assistant(content, id=f"{_key_of_call()}/sent")
        await self.member.send(sent, send_to=to)
        return f"Sent to {', '.join(to) or 'all'}."


class FinishTaskTool(BaseTool):
    """Ends the task of the team.

    Args:
        member: The agent that may end it.
    """

    def __init__(self, member: MemberMemory) -> None:
        super().__init__(
            FINISH_TASK,
            "End the work of your team and give its answer to the user. Call it when the task is "
            "done, and only then: no agent works on it afterwards.",
            object_schema({"answer": {"type": "string", "description": "The whole answer."}}),
            idempotent=True,
        )
        self.member = member

    async def execute(self, **kwargs: Any) -> str:
        """Add the answer to the record, unless another call has ended the task.

        Raises:
            ToolError: The task has ended already, or the answer is empty.
        """
        answer: str = kwargs["answer"]
        if not answer.strip():
            raise ToolError("The answer is empty")
        call, end = _key_of_call(), ending_id(TurnNotes.read(self.member).task)
        ending = Message.assistant(answer, id=end, send_to=USER, metadata={"call": call})
        await self.member.send(ending, cause_by=FINISH_TASK)
        first = await self.member.shared_memory.get(end)
        if first is not None and first.metadata.get("call") != call:
            raise ToolError(
                f"The task has ended already: {first.sent_from!r} has given its answer, and yours "
                "was not taken"
            )
        return "The task has ended. Say nothing more than that."


def addresses(messages: Sequence[Message]) -> bool:
    """Return whether an agent has sent messages or ended the task in a turn."""
    names = (SEND_MESSAGE, FINISH_TASK)
    return any(m.name in names and m.tool_call_id and not m.is_error for m in messages)


def ending_id(task: str) -> str:
    """Return the ID of the message that ends a task: of several, the first one counts."""
    return f"{task}/end"


def _key_of_call() -> str:
    """Return what identifies a call, also when it is repeated."""
    call: ToolContext[Any] = current_call() or ToolContext()
    return call.key
