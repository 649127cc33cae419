"""Acting: run every call that was asked for, at once, and record the results in order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum

import anyio

from agent_brain.memories.base import Memory
from agent_brain.memories.control import Call
from agent_brain.memories.message import Message, Role, trusted
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import ActionFinished, Event
from agent_brain.tools.action import Action
from agent_brain.tools.calling import Outcome, call_tool

CLEANUP_SECONDS = 5.0  # how long a step that is cut short may take to record what had finished

_STOPPED = Outcome("The call was stopped before it finished: the run was cut short", is_error=True)


class ActionState(State):
    """Run all pending actions with the memory's tools.

    Several run at once. Results are recorded in the order in which the calls were asked for, each
    tied to its call, in one update. What goes wrong in a call is its result (``is_error``), and the
    run goes on. A tool that ``requires_approval`` is not run. When the step is cut short, the calls
    that had finished are recorded, and the others are answered with the reason, so that no call
    stays without a result.

    In a durable memory every call is noted before it begins and again when its result is in: a run
    resumed after a crash neither repeats a finished call nor, unless the tool is ``idempotent``,
    one that may have happened.

    Args:
        on_done: Where to go afterwards.
        max_concurrency: How many calls may run at once; None for all of them.
    """

    def __init__(self, on_done: Enum, *, max_concurrency: int | None = None) -> None:
        if max_concurrency is not None and max_concurrency < 1:
            raise StateDefinitionError(f"max_concurrency must be at least 1, not {max_concurrency}")
        self.on_done = on_done
        self.max_concurrency = max_concurrency

    async def run(self, memory: Memory) -> AsyncIterator[str | Event]:
        """Run the calls; the events of their ends come when all of them have ended."""
        step = _Step(memory)
        try:
            await step.begin()
            await step.run_all(self.max_concurrency)
            await step.record()
        except BaseException:
            with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                await step.record()
            raise
        for event in step.events():
            yield event

    async def next_state(self, memory: Memory) -> Enum:
        """``on_done``, always."""
        return self.on_done


class _Step:
    """The calls of one step, and what has come of each so far."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.actions = list(memory.control.next_actions)
        self.outcomes: dict[int, Outcome] = {}
        self.messages: dict[int, Message] = {}  # one message a result, however often it is written

    async def begin(self) -> None:
        """Note the calls before they run, and take over what a crash left of them."""
        if not self.memory.durable:
            return
        pending = self.memory.control.pending
        for index, action in enumerate(self.actions):
            call = pending.get(action.id)
            if call is None:
                pending[action.id] = Call(action=action)
            elif call.result is not None:
                self.outcomes[index] = Outcome(call.result.content, call.result.is_error)
            elif not self._may_repeat(action):
                self.outcomes[index] = Outcome(
                    f"The program stopped while {action.name!r} was running. It may or may not "
                    "have taken effect, and was not run again",
                    is_error=True,
                )
        await self.memory.checkpoint()

    def _may_repeat(self, action: Action) -> bool:
        tool = self.memory.get_tool(action.name)
        return tool is None or tool.idempotent

    async def run_all(self, max_concurrency: int | None) -> None:
        todo = [i for i in range(len(self.actions)) if i not in self.outcomes]
        if len(todo) <= 1:
            for index in todo:
                await self._run_one(index)
        else:
            limit = anyio.Semaphore(max_concurrency or len(todo))
            try:
                async with anyio.create_task_group() as group:
                    for index in todo:
                        group.start_soon(self._run_limited, index, limit)
            except ExceptionGroup as several:  # one error is raised as it is for a single call
                if len(several.exceptions) > 1:
                    raise
                raise several.exceptions[0] from None

    async def _run_limited(self, index: int, limit: anyio.Semaphore) -> None:
        async with limit:
            await self._run_one(index)

    async def _run_one(self, index: int) -> None:
        action = self.actions[index]
        self.outcomes[index] = await self._outcome(action)
        if self.memory.durable:
            self.memory.control.pending[action.id].result = self._message(index)
            await self.memory.checkpoint()

    async def _outcome(self, action: Action) -> Outcome:
        tool = self.memory.get_tool(action.name)
        if tool is not None and tool.requires_approval:
            return Outcome(
                f"{action.name!r} needs a person's approval, which cannot be asked for here: it "
                "was not run",
                is_error=True,
            )
        return await call_tool(action, self.memory.available_tools)

    def _message(self, index: int) -> Message:
        message = self.messages.get(index)
        if message is None:
            action, outcome = self.actions[index], self.outcomes.setdefault(index, _STOPPED)
            message = self.messages[index] = trusted(
                Role.TOOL,
                outcome.content,
                name=action.name,
                tool_call_id=action.id,
                is_error=outcome.is_error,
                cause_by=ActionState.__name__,
            )
        return message

    async def record(self) -> None:
        """Write all results in the order of the calls, in one update; twice writes the same."""
        results = [self._message(index) for index in range(len(self.actions))]
        if results:
            await self.memory.update(results)
        self.memory.control.next_actions = []
        self.memory.control.pending = {}

    def events(self) -> list[ActionFinished]:
        return [
            ActionFinished(action, self.messages[index], self.outcomes[index].exception)
            for index, action in enumerate(self.actions)
        ]
