"""A round of tool calls: which may run, their results, and how these are recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, TypeAlias

import anyio

from agent_brain.memories.base import Memory
from agent_brain.memories.control import uncertain
from agent_brain.memories.message import Attachment, Message, Role, trusted
from agent_brain.states.background import live
from agent_brain.states.events import (
    ActionFinished,
    ActionStarted,
    ApprovalRequested,
    Event,
    InputRequested,
    ToolProgress,
)
from agent_brain.states.hook_chain import HookChain
from agent_brain.states.hooks import Hook, ToolRequest, ToolResponse
from agent_brain.states.nested_tools import NestedRun, NestedTool
from agent_brain.states.work import Work, WorkContext, position_of
from agent_brain.tools.action import Action
from agent_brain.tools.aio import CLEANUP_SECONDS
from agent_brain.tools.base import BaseTool
from agent_brain.tools.calling import Outcome, call_tool, fit_result
from agent_brain.tools.context import ToolContext
from agent_brain.tools.errors import InputNeeded, ToolArgumentsError
from agent_brain.tools.progress import Progress, progress_sink
from agent_brain.tools.result import Media
from agent_brain.tools.secrets import scrub

Report: TypeAlias = Callable[[Event], None]


class ToolRound(Work):
    """The calls that a memory's ``next_actions`` request; yield it, and they are run and recorded.

    The memory's control then has ``next_actions`` no more, unless the round waits for a person.

    Args:
        memory: The memory of the run.
        cause: ``cause_by`` of the results.
        max_concurrency: How many calls run at once, begun in their order; None for all of them.

    Attributes:
        actions: The calls; those that a person edited as they are run.
        nested: Indices of the calls that the Brain runs as branches.
        questions: What tools want a person to be asked, by the indices of their calls.
    """

    def __init__(self, memory: Memory, cause: str, max_concurrency: int | None = None) -> None:
        self.memory = memory
        self.control = control = memory.control
        self.cause = cause
        self.max_concurrency = max_concurrency
        self.actions = list(control.next_actions)
        self.tools = memory.offered_tools()
        self.nested: list[int] = []
        self.questions: dict[int, str] = {}
        self._durable = memory.durable
        self._begun: set[int] = set()
        self._reported: set[int] = set()  # ends that were streamed before a wait or a crash
        self._todo: deque[int] = deque()
        self._runs: list[NestedRun] = []  # of the nested calls
        self._outcomes: dict[int, Outcome] = {}
        self._messages: dict[int, Message] = {}  # one message a result, however often it is written
        self._report: Report = _ignore
        self._context: WorkContext | None = None
        self._hooks: HookChain | None = None
        self._entered: dict[int, tuple[Sequence[Hook], ToolRequest]] = {}  # of nested calls

    async def events(self, context: WorkContext | None = None) -> AsyncGenerator[Event, None]:
        """Run the calls; yield what happens to each."""
        self._context = context
        if context is not None and context.hooks is not None and context.hooks.tool:
            self._hooks = context.hooks
        undecided = self.undecided()
        if undecided:
            yield ApprovalRequested(tuple(undecided))
            return
        try:
            self.sort_out()
            if self.nested and self._hooks is not None:
                await self._enter_nested(self._hooks)
            if self.nested or self.memory.watched:
                async with AsyncExitStack() as stack, aclosing(await self._live(stack)) as events:
                    async for event in events:
                        yield event
            else:  # nobody would see an event sooner
                reported: list[Event] = []
                await self.run_all(reported.append)
                for event in reported:
                    yield event
            if not self.questions:
                await self.record()
        except BaseException:
            with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                await self.record()
            raise
        for call_id, question in self.wait() if self.questions else ():
            yield InputRequested(question, call_id)

    async def _enter_nested(self, hooks: HookChain) -> None:
        """Call the hooks before the nested calls; those that they answer do not run."""
        for index in [*self.nested]:
            entered, request, outcome = await self._before_hooks(hooks, index)
            if outcome is None:
                self._entered[index] = entered, request
                continue
            self.nested.remove(index)
            self._outcomes[index] = await self._after_hooks(hooks, entered, request, outcome)

    async def _live(self, stack: AsyncExitStack) -> AsyncGenerator[Any, None]:
        """Return the events of the calls as they happen; memories of branches close with ``stack``.

        Nothing has begun before the first event is awaited, but for the branches' memories.
        """
        if not self.nested:
            return live(self.run_all, may_drop=is_progress)
        await self._prepare(stack)
        tool = self.tools[self.actions[self.nested[0]].name]
        assert isinstance(tool, NestedTool)
        beside = live(self.run_all, may_drop=is_progress)
        return tool.order(self._runs, beside=beside, on_end=self._take).events(self._context)

    def undecided(self) -> list[Action]:
        """Return the calls that wait for a person's decision."""
        control = self.control
        found: list[Action] = []
        for action in self.actions:
            tool = self.tools.get(action.name)
            if tool is None or tool.requires_approval is False or action.unparsed is not None:
                continue
            if control.dry_run or control.branch or action.id in control.pending:
                continue
            if control.decision_on(action) is None and tool.needs_approval(action.args):
                found.append(action)
        return found

    def sort_out(self) -> None:
        """Sort the calls into those with a result, those that the Brain runs, and the others."""
        if self.control.pending:
            self._take_over()
        for index in range(len(self.actions)):
            if index not in self._outcomes and self._plain(index):
                self._todo.append(index)

    def _take_over(self) -> None:
        """Take over the results, and the calls in doubt, that a wait or a crash has left."""
        for index, action in enumerate(self.actions):
            call = self.control.pending.get(action.id)
            if call is None:
                continue
            if call.result is not None:
                self._outcomes[index] = Outcome(call.result.content, call.result.is_error)
                self._messages[index] = call.result
                if call.reported:
                    self._reported.add(index)
            elif not self._may_repeat(action):
                self._outcomes[index] = Outcome(uncertain(action), is_error=True)

    def _may_repeat(self, action: Action) -> bool:
        """Whether a call that was begun and has no result may be run (again)."""
        tool = self.tools.get(action.name)
        decision = self.control.decision_on(action)
        refused = decision is not None and not decision.approved
        return (
            tool is None
            or tool.idempotent
            or refused
            or self.control.answer_to(action.id) is not None
        )

    async def run_all(self, report: Report) -> None:
        """Run the calls that are not nested, and report what happens to each as it happens."""
        self._report = report
        for index in self.nested:
            report(ActionStarted(self.actions[index]))
        for index in sorted(self._outcomes.keys() - self._reported):
            report(self._finished(index))
        todo = self._todo
        workers = min(len(todo), self.max_concurrency or len(todo))
        begun = deque(islice(todo, workers))
        todo = deque(islice(todo, workers, None))
        if begun:
            await self._note_result(None, begun)
        if workers <= 1:
            await self._work(begun, todo)
            return
        try:
            async with anyio.create_task_group() as group:
                for _ in range(workers):
                    group.start_soon(self._work, begun, todo)
        except ExceptionGroup as several:  # raise what a single call would raise
            raise several.exceptions[0] from (several if len(several.exceptions) > 1 else None)

    async def _work(self, begun: deque[int], todo: deque[int]) -> None:
        """Run one call after the other; one write notes a result and what begins next."""
        while begun:
            index = begun.popleft()
            finished = await self._run_one(index)
            if self._durable or todo:
                following = [todo.popleft()] if todo else []
                await self._note_result(index if finished else None, following)
                begun.extend(following)
            if finished:
                self._report(self._finished(index))

    async def _note_result(self, finished: int | None, begun: Collection[int] = ()) -> None:
        """Write down the result of a call and, in the same write, which calls begin next."""
        if not self._durable:
            return
        control = self.control
        if finished is not None and self.actions[finished].id in control.pending:
            # else it was forgotten while it ran
            control.finish_call(self.actions[finished], self._message(finished), reported=True)
        control.begin_calls(self.actions[index] for index in begun)
        if begun or finished is not None:
            await self.memory.checkpoint()

    async def _run_one(self, index: int) -> bool:
        """Run a call; False if it waits for a person's answer instead of having finished."""
        action = self.actions[index]
        control = self.control
        place = (control.run_id, control.branch, control.step)
        context = ToolContext(action, self.memory, place)
        self._report(ActionStarted(action))
        listener = progress_sink.set(partial(self._note_progress, action))
        try:
            if self._hooks is None:
                self._begun.add(index)
                outcome = await call_tool(action, self.tools, context, dry_run=control.dry_run)
            else:
                outcome = await self._call_hooked(self._hooks, index, context)
        finally:
            progress_sink.reset(listener)
        if isinstance(outcome.exception, InputNeeded) and not control.branch:
            self.questions[index] = outcome.exception.prompt
            control.withdraw_call(action)
            return False
        self._outcomes[index] = outcome
        return True

    async def _call_hooked(self, hooks: HookChain, index: int, context: ToolContext) -> Outcome:
        """Call a tool with hooks around it, which see its whole text."""
        entered, request, outcome = await self._before_hooks(hooks, index)
        context.action = action = request.action
        if outcome is None:
            self._begun.add(index)
            outcome = await call_tool(action, self.tools, context, dry_run=self.control.dry_run)
            if isinstance(outcome.exception, InputNeeded):
                return outcome
        return await self._after_hooks(hooks, entered, request, outcome)

    async def _before_hooks(
        self, hooks: HookChain, index: int
    ) -> tuple[Sequence[Hook], ToolRequest, Outcome | None]:
        """Call the hooks before a call; return its result too if it is not to run."""
        asked = self._request(index)
        entered, request, response = await hooks.before_tool(asked)
        action = self.actions[index] = request.action
        if action is not asked.action:
            request = replace(request, tool=self.tools.get(action.name))
        if response is not None:
            return (
                entered,
                request,
                Outcome(response.content, response.is_error, response.exception),
            )
        return entered, request, self._refused_change(asked, request)

    def _refused_change(self, asked: ToolRequest, request: ToolRequest) -> Outcome | None:
        """The result of a call that a hook has changed to one that may not run."""
        was, action, tool = asked.action, request.action, request.tool
        if (action.name, action.args) == (was.name, was.args) or tool is None:
            return None
        if not self.control.dry_run and tool.needs_approval(action.args):
            return _refusal(
                f"A hook changed this call, and {action.name!r} with the changed arguments needs "
                "a person's approval"
            )
        if asked.tool is None or tool.nested != asked.tool.nested:
            return _refusal(f"A hook may not change a call of {was.name!r} to {action.name!r}")
        try:
            if tool.nested:
                tool.validate(action.args)
        except ToolArgumentsError as error:
            return _refusal(f"A hook changed this call: {error}")
        return None

    async def _after_hooks(
        self, hooks: HookChain, entered: Sequence[Hook], request: ToolRequest, outcome: Outcome
    ) -> Outcome:
        text = outcome.content if outcome.full is None else outcome.full
        response = ToolResponse(text, outcome.is_error, outcome.exception)
        changed = await hooks.after_tool(entered, request, response)
        if changed is response:
            return outcome
        limit = None if request.tool is None else request.tool.max_result_tokens
        fitted = fit_result(changed.content, limit, changed.exception)
        return fitted._replace(is_error=changed.is_error, media=outcome.media)

    def _request(self, index: int) -> ToolRequest:
        action = self.actions[index]
        return ToolRequest(
            action=action,
            tool=self.tools.get(action.name),
            at=position_of(self._context),
            memory=self.memory,
        )

    def _note_progress(self, action: Action, progress: Progress) -> None:
        """Report it; may be called from any thread."""
        self._report(ToolProgress(action, progress.done, progress.total, progress.message))

    def _finished(self, index: int) -> ActionFinished:
        message = self._message(index)
        return ActionFinished(self.actions[index], message, self._outcomes[index].exception)

    def _plain(self, index: int) -> bool:
        """Whether a call is run here: it is not refused, and not left to the Brain."""
        action = self.actions[index]
        tool = self.tools.get(action.name)
        if tool is None:
            if self.memory.get_tool(action.name) is None:
                return True
            self._outcomes[index] = _refusal(f"{action.name!r} may not be used for this goal")
            return False
        if self.control.human_requests is not None and not self._as_decided(index, tool):
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
        """Apply a person's decision; return False if the call then does not run."""
        action = self.actions[index]
        decision, answer = self.control.decision_on(action), self.control.answer_to(action.id)
        if answer is not None:
            self._outcomes[index] = fit_result(answer, tool.max_result_tokens)
            return False
        question = self.control.question_of(action)
        if question is not None:  # it still waits; a person is asked once
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

    async def _prepare(self, stack: AsyncExitStack) -> None:
        """Make the branches of the nested calls, and note these as begun.

        Their memories are closed with ``stack``.
        """
        await self._note_result(None, self.nested)
        self._begun.update(self.nested)
        for index in self.nested:
            action = self.actions[index]
            tool = self.tools[action.name]
            assert isinstance(tool, NestedTool)
            same = sum(self.actions[i].name == action.name for i in self.nested[: len(self._runs)])
            name = f"{action.name}#{same + 1}" if same else action.name
            self._runs.append(await tool.prepare(name, action.args))
            await stack.enter_async_context(self._runs[-1].memory)

    async def _take(self, run: NestedRun) -> list[ActionFinished]:
        """Record the answer of a branch that has ended."""
        index = self.nested[self._runs.index(run)]
        action, error, text = self.actions[index], run.error, run.answer
        if error is not None:
            text = scrub(f"{action.name!r} failed with {type(error).__name__}: {error}")
        elif run.stop_reason != "done":
            text = f"{text}\n[{action.name!r} was stopped early: {run.stop_reason}]".lstrip()
        limit = self.tools[action.name].max_result_tokens
        outcome = fit_result(text, limit, error)
        if self._hooks is not None:
            outcome = await self._after_hooks(self._hooks, *self._entered[index], outcome)
        self._outcomes[index] = outcome
        await self._note_result(index)
        return [self._finished(index)]

    def _message(self, index: int) -> Message:
        message = self._messages.get(index)
        if message is None:
            action, outcome = self.actions[index], self._outcomes.get(index)
            if outcome is None:
                outcome = self._outcomes[index] = self._cut_short(index)
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
            if outcome.full is not None or self.control.human_requests is not None:
                message = self._with_notes(message, action, outcome.full)
            self._messages[index] = message
        return message

    def _cut_short(self, index: int) -> Outcome:
        """The outcome of a call that the end of the run kept from finishing."""
        if index in self._begun:
            return Outcome(uncertain(self.actions[index]), is_error=True)
        return Outcome("The call was not run: the run was cut short", is_error=True)

    def _with_notes(self, message: Message, action: Action, full: str | None) -> Message:
        """``message`` with what is kept beside it: its whole text, and what a person decided."""
        if full is not None:
            from agent_brain.memories.views.truncated_results import keep_aside

            self.control.results_cut = True
            message = keep_aside(message, full)
        decision = self.control.decision_on(action)
        if decision is None:
            return message
        content = message.content
        if decision.args is not None:
            content = f"[A person changed the arguments of this call first]\n{content}"
        metadata = {**message.metadata, "decision": decision.model_dump(mode="json")}
        return message.model_copy(update={"content": content, "metadata": metadata})

    def wait(self) -> list[tuple[str, str]]:
        """Keep finished results until the questions are answered; return these with their IDs."""
        for index, action in enumerate(self.actions):
            if index in self._outcomes:
                self.control.finish_call(action, self._message(index), reported=True)
            else:
                self.control.withdraw_call(action)
        return [(self.actions[i].id, prompt) for i, prompt in sorted(self.questions.items())]

    async def record(self) -> None:
        """Record all results in the order of the calls, in one update; idempotent."""
        open_calls = set(map(attrgetter("id"), self.control.next_actions))  # others were forgotten
        results: list[Message] = []
        for index in range(len(self.actions)):
            message = self._message(index)
            if message.tool_call_id in open_calls:
                results.append(message)
        if results:
            await self.memory.update(results)
        self.control.close_calls()


def _attachment(media: Media) -> Attachment:
    return Attachment(media_type=media.media_type, data=media.data, name=media.name)


def _refusal(why: str) -> Outcome:
    return Outcome(f"{why}: it was not run", is_error=True)


def is_progress(event: Event) -> bool:
    """Whether an event reports progress, which a slow reader may miss a part of."""
    return isinstance(event, ToolProgress)


def _ignore(event: Event) -> None:
    """Report to nobody."""
