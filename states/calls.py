"""The calls of one step: which may run, what came of each, and how that is recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial

import anyio

from agent_brain.memories.base import Memory
from agent_brain.memories.control import Call, Decision
from agent_brain.memories.message import Attachment, Message, Role, trusted
from agent_brain.states.events import ActionFinished, Event, ToolProgress
from agent_brain.states.nesting import NestedRun, NestedTool
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.calling import Outcome, call_tool, fit_result
from agent_brain.tools.context import ToolContext
from agent_brain.tools.errors import InputNeeded, ToolArgumentsError
from agent_brain.tools.progress import Progress, progress_sink
from agent_brain.tools.result import Media

PROGRESS_KEPT = 100  # notes of progress a call, the last ones

_STOPPED = Outcome("The call was stopped before it finished: the run was cut short", is_error=True)


class Calls:
    """The calls that a memory's ``next_actions`` ask for, and what has come of each so far.

    Args:
        memory: The memory of the run.
        cause: What the results are said to be caused by.

    Attributes:
        actions: The calls; those that a person edited as they are run.
        nested: Places of the calls that the Brain is to run as branches.
        questions: What tools want a person to be asked, by the places of their calls.
    """

    def __init__(self, memory: Memory, cause: str) -> None:
        self.memory = memory
        self.control = control = memory.control
        self.cause = cause
        self.actions = list(control.next_actions)
        self.tools = memory.offered_tools()
        self.nested: list[int] = []
        self.questions: dict[int, str] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._messages: dict[int, Message] = {}  # one message a result, however often it is written
        self._progress: dict[int, deque[Progress]] = {}

    def undecided(self) -> list[Action]:
        """The calls that wait for a person's decision."""
        control = self.control
        found: list[Action] = []
        for action in self.actions:
            tool = self.tools.get(action.name)
            if tool is None or tool.requires_approval is False or action.unparsed is not None:
                continue
            if control.dry_run or control.branch or action.id in control.pending:
                continue
            if self._decision(action) is None and tool.needs_approval(action.args):
                found.append(action)
        return found

    def _decision(self, action: Action) -> Decision | None:
        asked = self.control.asked
        return None if asked is None else asked.decisions.get(action.id)

    def _answer(self, action: Action) -> str | None:
        asked = self.control.asked
        return None if asked is None else asked.answers.get(action.id)

    async def begin(self) -> None:
        """Take over what a wait or a crash has left, and note the calls before they run."""
        durable, pending = self.memory.durable, self.control.pending
        for index, action in enumerate(self.actions):
            call = pending.get(action.id)
            if call is None:
                if durable:
                    pending[action.id] = Call(action=action)
            elif call.result is not None:
                self._outcomes[index] = Outcome(call.result.content, call.result.is_error)
                self._messages[index] = call.result
            elif not self._may_repeat(action):
                self._outcomes[index] = Outcome(
                    f"The program stopped while {action.name!r} was running. It may or may not "
                    "have taken effect, and was not run again",
                    is_error=True,
                )
        await self.memory.checkpoint()

    def _may_repeat(self, action: Action) -> bool:
        """Whether a call that was begun and has no result may be run (again)."""
        tool = self.tools.get(action.name)
        decision = self._decision(action)
        refused = decision is not None and not decision.approved
        return tool is None or tool.idempotent or refused or self._answer(action) is not None

    async def run_all(self, max_concurrency: int | None) -> None:
        """Begin the calls in their order, so many at once; one at a time is one after the other."""
        todo = [i for i in range(len(self.actions)) if i not in self._outcomes and self._plain(i)]
        if len(todo) <= 1 or max_concurrency == 1:
            for index in todo:
                await self._run_one(index)
            return
        workers = min(len(todo), max_concurrency or len(todo))
        queue = iter(todo)
        try:
            async with anyio.create_task_group() as group:
                for _ in range(workers):
                    group.start_soon(self._work, queue)
        except ExceptionGroup as several:  # raise what a single call would raise
            raise several.exceptions[0] from (several if len(several.exceptions) > 1 else None)

    async def _work(self, queue: Iterator[int]) -> None:
        for index in queue:
            await self._run_one(index)

    async def _run_one(self, index: int) -> None:
        action = self.actions[index]
        control = self.control
        place = (control.run_id, control.branch, control.step)
        context = ToolContext(action, self.memory, place)
        listener = progress_sink.set(partial(self._note_progress, index))
        try:
            outcome = await call_tool(action, self.tools, context, dry_run=control.dry_run)
        finally:
            progress_sink.reset(listener)
        if isinstance(outcome.exception, InputNeeded) and not control.branch:
            self.questions[index] = outcome.exception.prompt
        else:
            self._outcomes[index] = outcome
            if self.memory.durable:
                await self._note_result(index)

    def _note_progress(self, index: int, progress: Progress) -> None:
        """Keep it for the event; may be called from any thread."""
        self._progress.setdefault(index, deque(maxlen=PROGRESS_KEPT)).append(progress)

    async def _note_result(self, index: int) -> None:
        call = self.control.pending.get(self.actions[index].id)
        if call is not None:  # None: it was forgotten while it ran
            call.result = self._message(index)
            await self.memory.checkpoint()

    def _plain(self, index: int) -> bool:
        """Whether a call is run here: it is not refused, and not left to the Brain."""
        action = self.actions[index]
        tool = self.tools.get(action.name)
        if tool is None:
            if self.memory.get_tool(action.name) is None:
                return True
            self._outcomes[index] = _refusal(f"{action.name!r} may not be used for this goal")
            return False
        if self.control.asked is not None and not self._as_decided(index, tool):
            return False
        if self.control.branch and not self.control.dry_run and tool.needs_approval(action.args):
            self._outcomes[index] = _refusal(
                f"{action.name!r} needs a person's approval, which cannot be asked for here"
            )
            return False
        if tool.nested and self._fits(index, tool):
            self.nested.append(index)
            return False
        return True

    def _as_decided(self, index: int, tool: BaseTool) -> bool:
        """Do as a person has said; False if that leaves nothing to run."""
        action = self.actions[index]
        decision, answer = self._decision(action), self._answer(action)
        if answer is not None:
            self._outcomes[index] = fit_result(answer, tool.max_result_tokens)
            return False
        question = (
            None if self.control.asked is None else self.control.asked.questions.get(action.id)
        )
        if question is not None:  # it waits still; asking is not done twice
            self.questions[index] = question
            return False
        if decision is not None and not decision.approved:
            why = f": {decision.reason}" if decision.reason else ", and gave no reason"
            self._outcomes[index] = _refusal(f"A person refused this call{why}")
            return False
        if decision is not None and decision.args is not None:
            self.actions[index] = Action(name=action.name, args=decision.args, id=action.id)
        return True

    def _fits(self, index: int, tool: BaseTool) -> bool:
        action = self.actions[index]
        if self.control.dry_run or action.unparsed is not None:
            return False
        try:
            tool.validate(action.args)
        except ToolArgumentsError:
            return False
        return True

    async def prepare(self, stack: AsyncExitStack) -> tuple[list[NestedRun], Event]:
        """The branches of the nested calls, and the event that has the Brain run them.

        Their memories are closed with ``stack``.
        """
        runs: list[NestedRun] = []
        tool: BaseTool | None = None
        for index in self.nested:
            action = self.actions[index]
            tool = self.tools[action.name]
            assert isinstance(tool, NestedTool)
            same = sum(self.actions[i].name == action.name for i in self.nested[: len(runs)])
            name = f"{action.name}#{same + 1}" if same else action.name
            runs.append(await tool.prepare(name, action.args))
            await stack.enter_async_context(runs[-1].memory)
        assert isinstance(tool, NestedTool)
        return runs, tool.order(runs)

    async def take(self, runs: Sequence[NestedRun]) -> None:
        """Take over what came of the branches."""
        for index, run in zip(self.nested, runs, strict=True):
            action, error, text = self.actions[index], run.error, run.answer
            if error is not None:
                text = f"{action.name!r} failed with {type(error).__name__}: {error}"
            elif run.stop_reason != "done":
                text = f"{text}\n[{action.name!r} was stopped early: {run.stop_reason}]".lstrip()
            limit = self.tools[action.name].max_result_tokens
            self._outcomes[index] = fit_result(text, limit, error)
            if self.memory.durable:
                await self._note_result(index)

    def _message(self, index: int) -> Message:
        message = self._messages.get(index)
        if message is None:
            action, outcome = self.actions[index], self._outcomes.setdefault(index, _STOPPED)
            message = trusted(
                Role.TOOL,
                outcome.content,
                name=action.name,
                tool_call_id=action.id,
                is_error=outcome.is_error,
                cause_by=self.cause,
            )
            if outcome.media:
                attachments = tuple(map(_attachment, outcome.media))
                message = message.model_copy(update={"attachments": attachments})
            if outcome.full is not None or self.control.asked is not None:
                message = self._with_notes(message, action, outcome.full)
            self._messages[index] = message
        return message

    def _with_notes(self, message: Message, action: Action, full: str | None) -> Message:
        """``message`` with what is kept beside it: its whole text, and what a person decided."""
        if full is not None:
            from agent_brain.memories.results import keep_aside

            self.control.results_cut = True
            message = keep_aside(message, full)
        decision = self._decision(action)
        if decision is None:
            return message
        content = message.content
        if decision.args is not None:
            content = f"[A person changed the arguments of this call first]\n{content}"
        metadata = {**message.metadata, "decision": decision.model_dump(mode="json")}
        return message.model_copy(update={"content": content, "metadata": metadata})

    def wait(self) -> list[tuple[str, str]]:
        """Keep what has finished until the questions are answered: ids of calls, and questions."""
        self.control.pending = {
            self.actions[index].id: Call(action=self.actions[index], result=self._message(index))
            for index in self._outcomes
        }
        return [(self.actions[i].id, prompt) for i, prompt in sorted(self.questions.items())]

    async def record(self) -> None:
        """Write all results in the order of the calls, in one update; twice writes the same."""
        asked = {action.id for action in self.control.next_actions}  # the others were forgotten
        messages = [self._message(index) for index in range(len(self.actions))]
        results = [message for message in messages if message.tool_call_id in asked]
        if results:
            await self.memory.update(results)
        registers = vars(self.control)  # one write instead of three validated ones
        registers.update(next_actions=[], pending={}, asked=None)

    def events(self) -> Iterator[ToolProgress | ActionFinished]:
        """What is streamed of it, in the order of the calls."""
        for index, action in enumerate(self.actions):
            if self._progress:
                for note in list(self._progress.get(index, ())):
                    yield ToolProgress(action, note.done, note.total, note.message)
            yield ActionFinished(action, self._messages[index], self._outcomes[index].exception)


def _attachment(media: Media) -> Attachment:
    return Attachment(media_type=media.media_type, data=media.data, name=media.name)


def _refusal(why: str) -> Outcome:
    return Outcome(f"{why}: it was not run", is_error=True)
