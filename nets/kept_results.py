"""Results of the parts of a state, so that a resumed run does not run a finished part again."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from agent_brain.common.json_data import data_of
from agent_brain.common.text import to_text
from agent_brain.memories.base import Memory
from agent_brain.memories.errors import ScratchError
from agent_brain.memories.message import Message
from agent_brain.memories.runs.scratch import Scratch
from agent_brain.nets.delegation import Branch, Delegate
from agent_brain.states.events import Event
from agent_brain.states.work import Work, WorkContext, key_in_step


class Part(BaseModel):
    """The result of a part: what a function returned, or the outcome of a branch."""

    value: Any = None
    output: Any = None
    output_class: str | None = None
    stop_reason: str | None = None
    finish_reason: str | None = None
    messages: list[Message] = Field(default_factory=list)


class KeptResults:
    """The results of the finished parts of one state.

    They are in ``control.ended`` of the memory, which is emptied when a step is complete, whether
    the state succeeded or not.

    Args:
        memory: The memory that the state runs on.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._written: set[str] = set()

    def find(self, name: str, context: WorkContext) -> Part | None:
        """Return the result of a part; None if it has not finished."""
        key = self._key(name, context)
        try:
            return Part.model_validate_json(self._memory.control.ended.get(key, ""))
        except ValidationError:
            return None

    async def keep(self, name: str, part: Part, context: WorkContext) -> bool:
        """Keep the result of a part, if it is a JSON value; return whether it is."""
        try:
            Scratch(value=part.value)
        except ScratchError:
            return False
        key = self._key(name, context)
        self._memory.control.ended[key] = part.model_dump_json()
        if self._memory.durable:
            await self._memory.record([key])
        return True

    def clear(self) -> None:
        """Remove the results: the state has used them."""
        for key in self._written:
            self._memory.control.ended.pop(key, None)

    def _key(self, name: str, context: WorkContext) -> str:
        key = key_in_step(context, name)
        self._written.add(key)
        return key


def name_of(index: int, item: object) -> str:
    """Return a name for an item of a list, by its place and its text."""
    return f"{index}:{hashlib.sha256(to_text(item).encode()).hexdigest()[:16]}"


class RemainingBranches(Work):
    """Run the nets of a :class:`Delegate`, without those that have finished before.

    Args:
        order: The nets; ``as_thoughts`` must be set, as one of several may be left.
        kept: The results.
        names: A name for each branch. Default: the names of the branches.
        messages: Whether to restore the messages of finished branches in their memories too.
    """

    def __init__(
        self,
        order: Delegate,
        kept: KeptResults,
        *,
        names: Sequence[str] = (),
        messages: bool = False,
    ) -> None:
        self._order = order
        self._kept = kept
        self._messages = messages
        named = names or [branch.name for branch in order.branches]
        self._names = dict(zip(order.branches, named, strict=True))
        self._before: dict[Branch, set[str]] = {}

    async def events(self, context: WorkContext | None = None) -> AsyncGenerator[Event, None]:
        """Run them, and keep the result of each that finishes."""
        order = self._order
        if context is not None:
            order.branches = [
                branch for branch in order.branches if not await self._restore(branch, context)
            ]

            async def on_end(branch: Branch) -> Sequence[Event]:
                await self._keep(branch, context)
                return ()

            order.on_end = on_end
            if order.until == "first" and len(order.branches) < len(self._names):
                return
        if order.branches:
            async with aclosing(order.events(context)) as events:
                async for event in events:
                    yield event

    async def _restore(self, branch: Branch, context: WorkContext) -> bool:
        part = self._kept.find(self._names[branch], context)
        if part is None:
            if self._messages:
                self._before[branch] = {message.id for message in await branch.memory.turn()}
            return False
        branch.answer, branch.stop_reason = part.value, part.stop_reason
        branch.finish_reason = part.finish_reason
        branch.output = branch.net.restore_output(part.output, part.output_class)
        branch.has_output = part.output_class is not None
        if part.messages:
            await branch.memory.update(part.messages)
        return True

    async def _keep(self, branch: Branch, context: WorkContext) -> None:
        if not branch.completed or branch.error is not None:
            return
        part = Part(
            value=branch.answer,
            stop_reason=branch.stop_reason,
            finish_reason=branch.finish_reason,
            output=data_of(branch.output, fallback=str),
            output_class=type(branch.output).__name__ if branch.has_output else None,
        )
        if self._messages and not branch.memory.durable:
            before = self._before[branch]
            part.messages = [m for m in await branch.memory.turn() if m.id not in before]
        await self._kept.keep(self._names[branch], part, context)
