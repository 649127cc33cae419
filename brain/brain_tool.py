"""A brain as a tool of another brain."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

from typing_extensions import Unpack

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.nets.delegation import Branch, Delegate
from agent_brain.options import ToolOptions
from agent_brain.states.events import Event
from agent_brain.states.work import NestedRun, NestedTool, OnEnd
from agent_brain.tools.action import Action
from agent_brain.tools.context import current_call
from agent_brain.tools.errors import ToolError
from agent_brain.tools.schemas import object_schema

if TYPE_CHECKING:
    from agent_brain.brain import Brain

_TASK = {"type": "string", "description": "What to do, with all it needs."}
_SCHEMA = object_schema({"task": _TASK})


class BrainTool(NestedTool):
    """A brain as a tool of other agents; made by :meth:`Brain.as_tool`.

    Each call runs the brain's net on a copy of its memory, which is discarded afterwards, so calls
    are independent and may run at once. If the calling run has a journal, the copy is written to it
    meanwhile, and an interrupted call continues where it was. Inside a run the call is a branch:
    events have the tool's name in their ``path``, text streams as thoughts, usage counts toward the
    limits of the calling run, cancelling that run cancels the branch, and what is asked from inside
    that run waits for. The hooks of the calling run are called first, then the brain's own. The
    limits of the brain hold for each call: at one of them the call ends, and the calling run
    continues.

    Args:
        brain: The brain.
        name: The name of the tool.
        description: What it does and when to use it, for the model.
        **options: As for every tool.
    """

    def __init__(
        self, brain: Brain, name: str, description: str, **options: Unpack[ToolOptions]
    ) -> None:
        super().__init__(name, description, _SCHEMA, **options)
        self.brain = brain

    async def execute(self, **kwargs: Any) -> str:
        """Run the brain on a fork of its memory and return its answer.

        Raises:
            ToolError: It ended without reaching its goal.
        """
        async with await self.brain.memory.fork() as memory:
            call = current_call()
            deps = None if call is None else call.deps
            result = await self.brain.over(memory).run(_goal(kwargs["task"]), deps=deps)
        if result.stop_reason != "done":
            raise ToolError(f"{self.name!r} stopped early, {result.stop_reason}: {result.answer}")
        return result.answer

    async def prepare(self, name: str, action: Action, memory: Memory) -> Branch:
        """Return a branch with the task as its goal; it continues if the run is resumed."""
        source, goal = self.brain.memory, _goal(action.args["task"])
        await source.open()
        inner = await memory.nested(source, goal, f"{name}:{action.id}")
        brain = self.brain
        return Branch(name, brain.net, inner, hooks=brain.hooks, limits=brain.limits)

    @staticmethod
    def order(
        runs: Sequence[NestedRun],
        *,
        beside: AsyncIterator[Event],
        on_end: OnEnd,
        max_concurrency: int | None = None,
    ) -> Delegate:
        """Return the work that runs them, beside the other calls of the round."""
        return Delegate(
            cast("Sequence[Branch]", runs),
            on_error="report",
            as_thoughts=True,
            beside=beside,
            on_end=on_end,
            max_concurrency=max_concurrency,
        )

    def renamed(self, name: str) -> Self:
        """The same brain under another name."""
        return self._copy_as(name)


def _goal(task: object) -> Message:
    """Return the goal of a call: the words of the model that calls, not of a user."""
    return Message.user(str(task), cause_by=BrainTool.__name__)
