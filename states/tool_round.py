"""A round of tool calls: check them, run them, record their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from pydantic import JsonValue

from agent_brain.common.aio import CLEANUP_SECONDS, maybe_await
from agent_brain.common.errors import FinalError
from agent_brain.common.secrets import hide_in_result
from agent_brain.common.values import check_count
from agent_brain.memories.base import Memory
from agent_brain.memories.control import SUSPENDED
from agent_brain.memories.errors import STORE_ERRORS
from agent_brain.memories.message import Attachment, Message, Role, trusted
from agent_brain.memories.runs.calls import uncertain
from agent_brain.memories.runs.human_requests import EDITED, Decision, HumanRequests
from agent_brain.memories.runs.work import Here, here, work_here
from agent_brain.memories.tool_search import SEARCH_TOOLS, found_in
from agent_brain.states.base import Choose, RoutedState
from agent_brain.states.concurrency import live
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import (
    ActionFinished,
    ActionStarted,
    ApprovalRequested,
    Event,
    InputRequested,
    SleepRequested,
    ToolProgress,
)
from agent_brain.states.hooks import Hook, ToolRequest, ToolResponse
from agent_brain.states.pipeline import Pipeline, ToolPassage
from agent_brain.states.work import (
    NestedRun,
    NestedTool,
    StreamItem,
    Work,
    WorkContext,
    position_of,
)
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.calling import Outcome, call_tool, fit_result, is_valid
from agent_brain.tools.context import Progress, ToolContext
from agent_brain.tools.errors import InputNeeded, SleepNeeded, ToolArgumentsError

if TYPE_CHECKING:
    from agent_brain.states.model_trace import CallTrace


Report: TypeAlias = Callable[[Event], object]


TOOL = Role.TOOL  # looking up an enum member is slow
ID = attrgetter("id")


@dataclass(slots=True, eq=False, repr=False)
class _Call:
    """A call of a round.

    Attributes:
        action: The call as it is run, edited by a person or by hooks.
        asked: The call as the model asked for it.
        tool: The tool, if it is offered.
        outcome: The result, once there is one.
        message: The result as a message, made once.
        passage: Its way through the hooks, if there are any.
        question: The question of the tool to a person, if any.
        answers: What a person has answered to a tool that runs again with it.
        wake_at: When it runs again, if the tool waits for a time.
        begun: Whether it may have taken effect.
        reported: Whether its ``ActionFinished`` was streamed before a wait or a crash, or comes
            from the branch that it ran as.
    """

    action: Action
    asked: Action
    tool: BaseTool | None
    outcome: Outcome | None = None
    message: Message | None = None
    question: InputRequested | None = None
    answers: list[JsonValue] | None = None
    wake_at: datetime | None = None
    passage: ToolPassage | None = None
    begun: bool = False
    reported: bool = False


class ToolRound(Work):
    """The calls in a memory's ``next_actions``: run and recorded when a state yields it.

    ``next_actions`` is then empty, unless the round waits for a person.

    Args:
        memory: The memory of the run.
        cause: ``cause_by`` of the results.
        max_concurrency: Maximum number of calls at once, started in order; None for all of them.
        ends_step: The step ends with the round, so that the last result is written with it.
    """

    def __init__(
        self,
        memory: Memory,
        cause: str,
        max_concurrency: int | None = None,
        *,
        ends_step: bool = False,
    ) -> None:
        self.memory = memory
        self.control = control = memory.control
        self.cause = cause
        self.max_concurrency = max_concurrency
        tools = memory.offered_tools()
        self.tools = tools
        self._calls: list[_Call] = []
        for action in control.next_actions:
            self._calls.append(_Call(action, action, tools.get(action.name)))
        self._durable = memory.durable
        self._ends_step = ends_step
        self._waits = False  # for a person's answer, or a time
        self._asks = True  # a person may be asked
        self._failed: Exception | None = None  # the error of a hook after a nested call
        self._todo: list[_Call] = []
        self._nested: list[_Call] = []  # the Brain runs them as branches
        self._runs: dict[_Call, NestedRun] = {}  # of the nested calls
        self._report: Report = _ignore
        self._context: WorkContext | None = None
        self._hooks: Pipeline | None = None
        self._approval: tuple[Hook, ...] = ()  # those that may have a person asked

    async def events(self, context: WorkContext | None = None) -> AsyncGenerator[Event, None]:
        """Run the calls; yield what happens to each."""
        if context is not None:
            self._context, self._asks = context, context.asks
            self._hooks = None if context.hooks is None else context.hooks.around_tools
            self._approval = () if self._hooks is None else self._hooks.approval
        if (undecided := await self.undecided()) is not None:
            if self._durable:  # before anybody is asked
                await self.memory.record()
            yield undecided
            return
        places = context is not None and context.reserve_calls()
        try:
            await self.sort_out()
            if self._nested and self._hooks is not None:
                await self._enter_nested(self._hooks)
            sink = None if context is None or self._nested else context.sink
            if sink is not None:
                await self.run_all(sink)
            else:
                async with AsyncExitStack() as stack, aclosing(await self._live(stack)) as events:
                    async for event in events:
                        yield event
            if self._failed is not None:
                raise self._failed
            if not self._waits:
                await self.add_results()
        except BaseException as error:
            await self._add_results_cut_short(error)
            raise
        finally:
            if places and context is not None:
                context.release_calls()
        for question in self.wait() if self._waits else ():
            yield question

    async def _add_results_cut_short(self, error: BaseException) -> None:
        if self._durable and isinstance(error, STORE_ERRORS):
            return  # nothing is written over a store that has failed
        if self._runs and all(map(self._is_over, self._calls)):  # left while it only waited
            self.wait()
            return
        with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
            await self.add_results()

    def _is_over(self, call: _Call) -> bool:
        """Return whether a call has a result, or waits."""
        run = self._runs.get(call)
        waits = run is not None and run.error is None and run.stop_reason in SUSPENDED
        found = (call.outcome, call.question, call.wake_at)
        return waits or any(one is not None for one in found)

    async def _enter_nested(self, hooks: Pipeline) -> None:
        """Call the hooks before the nested calls; calls that they answer do not run."""
        for call in [*self._nested]:
            passage, outcome = await self._enter_hooks(hooks, call)
            if outcome is not None:
                self._nested.remove(call)
                await self._leave_hooks(passage, call, outcome)

    async def _live(self, stack: AsyncExitStack) -> AsyncGenerator[Any, None]:
        """Return the events of the calls as they happen; ``stack`` closes the branches' memories.

        Nothing but the branches' memories is opened before the first event is awaited.
        """
        plain = live(self.run_all, may_drop=lambda event: isinstance(event, ToolProgress))
        if not self._nested:
            return plain
        await self._prepare(stack)
        tool = self.tools[self._nested[0].action.name]
        assert isinstance(tool, NestedTool)
        order = tool.order(
            [*self._runs.values()],
            beside=plain,
            on_end=self._take_answer,
            max_concurrency=self.max_concurrency,
        )
        return order.events(self._context)

    async def undecided(self) -> ApprovalRequested | None:
        """Return the request for the calls that wait for a person's decision, if any do."""
        control = self.control
        if control.dry_run or not self._asks:
            return None
        uncertain: list[Action] = []
        others: list[Action] = []
        for call in self._calls:
            tool, action = call.tool, call.action
            if action.id in control.pending:
                known = control.pending[action.id].result is not None or self._may_repeat(call)
                pauses = self._context is not None and self._context.pauses
                if pauses and not known and self._decision_to_repeat(action) is None:
                    uncertain.append(await self._shown(call))  # a person says if it runs again
            elif (
                tool is not None
                and (tool.requires_approval is not False or self._approval)
                and action.unparsed is None
                and control.decision_on(action) is None
            ):
                shown = await self._shown(call)
                if await self._needs_approval(shown, tool):
                    others.append(shown)
        if not (uncertain or others):
            return None
        return ApprovalRequested((*uncertain, *others), tuple(action.id for action in uncertain))

    async def _shown(self, call: _Call) -> Action:
        """Return a call as a person is asked about it: as the hooks will change it."""
        if self._hooks is None or not self._approval:
            return call.action
        return (await self._hooks.as_asked(self._request(call.action, call.tool))).action

    async def _needs_approval(self, action: Action, tool: BaseTool) -> bool:
        """Return whether a person must approve a call: the tool says so, or a hook."""
        if await work_here(self.memory.run_work, tool.needs_approval(action.args)):
            return True
        for hook in self._approval:
            if await maybe_await(hook.needs_approval(self._request(action, tool))):
                return True
        return False

    def _decision_to_repeat(self, action: Action) -> Decision | None:
        """Return a person's decision on a call that may have taken effect, if there is one."""
        return self.control.decision_on(action) if self.control.is_uncertain(action) else None

    async def sort_out(self) -> None:
        """Sort the calls into those with a result, those that the Brain runs, and others."""
        control = self.control
        if control.pending:
            self._restore()
        for call in self._calls:
            if call.outcome is not None:
                continue
            call.outcome = await self._outcome_without_running(call)
            if call.outcome is None and call.question is None:
                tool = None if control.dry_run else call.tool
                nested = tool is not None and tool.nested and is_valid(call.action, tool)
                (self._nested if nested else self._todo).append(call)

    def _restore(self) -> None:
        """Restore the results and the calls of unknown outcome of an interrupted run."""
        for call in self._calls:
            known = self.control.pending.get(call.action.id)
            if known is None:
                continue
            if known.result is not None:
                call.outcome = Outcome(known.result.content, known.result.is_error)
                call.message = known.result
                self.note_result(call.action, known.result)
                call.reported = known.reported
            elif not self._may_repeat(call):
                text = uncertain(call.action)
                if (decision := self._decision_to_repeat(call.action)) is not None:
                    why = f": {decision.reason}" if decision.reason else ""
                    text = f"{text}, as a person decided{why}"
                call.outcome = Outcome(text, is_error=True)

    def _may_repeat(self, call: _Call) -> bool:
        """Whether a call that was begun and has no result may be run (again)."""
        control, action = self.control, call.action
        if (decision := self._decision_to_repeat(action)) is not None:
            return decision.approved
        if control.pending[action.id].continues or call.tool is None or call.tool.idempotent:
            return True
        decision = control.decision_on(action)
        return (decision is not None and not decision.approved) or control.has_answer(action.id)

    async def run_all(self, report: Report) -> None:
        """Run the calls that are not nested, and report what happens to each as it happens."""
        self._report = report
        todo = self._todo
        workers = min(len(todo), self.max_concurrency or len(todo))
        begun, todo[:workers] = todo[:workers], []
        known = [call for call in self._calls if call.outcome is not None and not call.reported]
        if self._durable and (begun or known):
            for call in known:
                self._note_finished(call)
            await self._write_calls(begun, changed=True)
        for call in self._nested:
            report(ActionStarted(call.action))
        for call in known:
            report(self._finished(call))
        if workers <= 1:
            await self._work(begun)
            return
        try:
            async with anyio.create_task_group() as group:
                for _ in range(workers):
                    group.start_soon(self._work, begun)
        except ExceptionGroup as several:  # raise what a single call would raise
            final = (error for error in several.exceptions if isinstance(error, FinalError))
            first = next(final, several.exceptions[0])
            raise first from (several if len(several.exceptions) > 1 else None)

    async def _work(self, begun: list[_Call]) -> None:
        """Run one call after the other; one write notes a result and what begins next."""
        todo = self._todo
        while begun:
            call = begun.pop(0)
            await self._run_one(call)
            finished = call.outcome is not None
            following, todo[:1] = todo[:1], []
            if self._durable:
                if finished and call.action.id in self.control.pending:
                    self._note_finished(call)  # else it was deleted while it ran
                if not (finished and self._is_last(call)):  # which is written with the step
                    await self._write_calls(following, changed=finished)
            begun += following
            if finished:
                self._report(self._finished(call))

    def _is_last(self, call: _Call) -> bool:
        """Return whether all results of the round are there with that of ``call``.

        It is then written with the step, and uncertain until that.
        """
        if not self._ends_step or self._waits:
            return False
        return all(other is call or other.outcome is not None for other in self._calls)

    def _note_finished(self, call: _Call) -> None:
        self.control.finish_call(call.action, self._message(call), reported=True)
        self.control.pending[call.action.id].uncounted = True

    async def _write_calls(
        self, begun: Sequence[_Call], *, changed: bool = False, continue_: bool = False
    ) -> None:
        """Record what has changed and, in the same write, which calls begin next."""
        if self._durable:
            self.control.begin_calls([call.action for call in begun], continue_=continue_)
            if begun or changed:
                await self.memory.record()

    async def _run_one(self, call: _Call) -> None:
        """Run a call; it has no outcome if it waits for a person's answer or for a time."""
        action, control = call.action, self.control
        place = (control.run_id, control.branch, control.moves)

        def note(progress: Progress) -> None:  # which may be called from any thread
            self._report(ToolProgress(action, progress.done, progress.total, progress.message))

        given = call.answers or []
        context = ToolContext(action, self.memory, place, self.memory.deps, note, given)
        self._report(ActionStarted(action))
        run = self.memory.run_work
        working = here.set(here.get() if run is None else Here(run))
        try:
            if self._hooks is None:
                call.begun = True
                outcome = await call_tool(action, self.tools, context, dry_run=control.dry_run)
            else:
                outcome = await self._call_hooked(self._hooks, call, context)
        except STORE_ERRORS as error:  # before the branches beside it are cancelled
            self.memory.note_store_failure(error)
            raise
        finally:
            here.reset(working)
        needed = outcome.exception
        if not (self._asks and isinstance(needed, InputNeeded | SleepNeeded)):
            call.outcome = outcome
            return
        self._waits = True
        if isinstance(needed, SleepNeeded):
            call.wake_at = needed.until
        else:
            call.question = InputRequested(hide_in_result(needed.prompt), action.id, needed.schema)
            if needed.again:
                control.run_again(action, context.answers)
        control.withdraw_call(action)

    async def _call_hooked(self, hooks: Pipeline, call: _Call, context: ToolContext) -> Outcome:
        """Call a tool with hooks around it, which see its whole text."""
        passage, outcome = await self._enter_hooks(hooks, call)
        request: ToolRequest = passage.request
        context.action = action = request.action
        if outcome is None:
            call.begun = True
            with hooks.at_work(request):
                outcome = await call_tool(action, self.tools, context, dry_run=self.control.dry_run)
            if isinstance(outcome.exception, InputNeeded | SleepNeeded):
                return outcome
        return await self._leave_hooks(passage, call, outcome)

    async def _enter_hooks(
        self, hooks: Pipeline, call: _Call
    ) -> tuple[ToolPassage, Outcome | None]:
        """Call the hooks before a call; return its result too if it is not to run."""
        asked = self._request(call.action, call.tool)
        passage = call.passage = ToolPassage(hooks.tool, asked)
        response = await passage.enter()
        action = passage.request.action
        if action is not asked.action:
            call.action, call.tool = action, self.tools.get(action.name)
            passage.request = replace(passage.request, tool=call.tool)
        if response is not None:
            return passage, _outcome_of(response, None)
        return passage, await self._refused_change(asked, passage.request)

    async def _refused_change(self, asked: ToolRequest, request: ToolRequest) -> Outcome | None:
        """Return the refusal of a call that a hook has changed to one that may not run."""
        was, action, tool = asked.action, request.action, request.tool
        if (action.name, action.args) == (was.name, was.args) or tool is None:
            return None
        if not self.control.dry_run and await self._needs_approval(action, tool):
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

    async def _leave_hooks(self, passage: ToolPassage, call: _Call, outcome: Outcome) -> Outcome:
        """Set and return the outcome as the hooks leave it, also if one of them fails."""
        text = outcome.content if outcome.full is None else outcome.full
        given = ToolResponse(text, outcome.is_error, outcome.exception, outcome.media)
        try:
            await passage.leave(given)
        finally:
            call.outcome, response = outcome, passage.response or given
            if response is not given:
                tool: BaseTool | None = passage.request.tool
                limit = None if tool is None else tool.max_result_tokens
                call.outcome = _outcome_of(response, limit)._replace(is_error=response.is_error)
        return call.outcome

    def _request(self, action: Action, tool: BaseTool | None) -> ToolRequest:
        at = position_of(self._context)
        return ToolRequest(action=action, tool=tool, at=at, memory=self.memory)

    def _finished(self, call: _Call) -> ActionFinished:
        message = self._message(call)
        assert call.outcome is not None
        return ActionFinished(call.action, message, call.outcome.exception)

    async def _outcome_without_running(self, call: _Call) -> Outcome | None:
        """Return the outcome of a call that is refused or answered; None if it may run or waits."""
        action, tool, control = call.action, call.tool, self.control
        if tool is None:
            if self.memory.get_tool(action.name) is None:
                return None  # running it says so
            why = "may not be used for this goal"
            if SEARCH_TOOLS in self.tools and action.name in self.memory.allowed_tools():
                why = f"must be found with {SEARCH_TOOLS!r} before it can be called"
            return _refusal(f"{action.name!r} {why}")
        if control.human_requests is not None:
            outcome = self._as_decided(call, tool, control.human_requests)
            if outcome is not None or call.question is not None:
                return outcome
        asks = self._asks or control.dry_run or not (tool.requires_approval or self._approval)
        if not asks and await self._needs_approval(await self._shown(call), tool):
            return _refusal(
                f"{action.name!r} needs a person's approval, which cannot be asked for here"
            )
        return None

    def _as_decided(self, call: _Call, tool: BaseTool, asked: HumanRequests) -> Outcome | None:
        """Apply a person's decision or answer; return the outcome if the call then does not run."""
        action = call.action
        decision = self.control.decision_on(action)
        call.answers = asked.answers_for(action.id)
        if action.id in asked.answers:
            return fit_result(asked.answers[action.id], tool.max_result_tokens)
        if action.id in asked.questions:  # it still waits; a person is asked once
            prompt, schema = asked.questions[action.id], asked.schemas.get(action.id)
            call.question, self._waits = InputRequested(prompt, action.id, schema), True
        elif decision is not None and not decision.approved:
            why = f": {decision.reason}" if decision.reason else ", and gave no reason"
            return _refusal(f"A person refused this call{why}")
        elif decision is not None:
            args = asked.changed.get(action.id) if decision.args is None else decision.args
            if args is not None:
                call.action = Action(name=action.name, args=args, id=action.id)
        return None

    async def _prepare(self, stack: AsyncExitStack) -> None:
        """Make the branches of the nested calls, and note these as begun.

        Their memories are closed with ``stack``. Those in the journal are there before their calls
        are noted, so that a call with such a note continues.
        """
        before: Counter[str] = Counter()
        for call in self._calls:
            action, tool = call.action, call.tool
            before[action.name] += 1
            if call not in self._nested:
                continue
            assert isinstance(tool, NestedTool)
            same = before[action.name]
            name = f"{action.name}#{same}" if same > 1 else action.name
            run = await tool.prepare(name, action, self.memory)
            self._runs[call] = run
            run.call_id = action.id
            await stack.enter_async_context(run.memory)
        kept = [call for call, run in self._runs.items() if run.memory.lasting]
        await self._write_calls(kept, continue_=True)
        await self._write_calls([call for call in self._nested if call not in kept])
        for call in self._nested:
            call.begun = True

    async def _take_answer(self, run: NestedRun) -> list[ActionFinished]:
        """Record the answer of a branch that has ended."""
        call = next(call for call, one in self._runs.items() if one is run)
        action, error, text = call.action, run.error, run.answer
        if error is None and run.stop_reason in SUSPENDED:
            self._waits = True
            return []
        if error is not None:
            text = f"{action.name!r} failed with {type(error).__name__}: {error}"
        elif run.stop_reason != "done":
            text = f"{text}\n[{action.name!r} was stopped early: {run.stop_reason}]".lstrip()
        limit = self.tools[action.name].max_result_tokens
        call.outcome, call.reported = fit_result(text, limit, error), True
        if call.passage is not None:
            try:
                await self._leave_hooks(call.passage, call, call.outcome)
            except Exception as failed:  # a branch that ends cannot raise it
                self._failed = self._failed or failed
        if self._durable and action.id in self.control.pending:
            self._note_finished(call)  # else it was deleted while it ran
        await self._write_calls((), changed=True)
        return [self._finished(call)]

    def _message(self, call: _Call) -> Message:
        if call.message is not None:
            return call.message
        action, outcome = call.action, call.outcome
        if outcome is None:  # the run ends before it has finished
            text = "The call was not run: the run was cut short"
            text = uncertain(action) if call.begun else text
            outcome = call.outcome = Outcome(text, is_error=True)
        message = trusted(
            TOOL,
            outcome.content,
            name=action.name,
            tool_call_id=action.id,
            is_error=outcome.is_error,
            cause_by=self.cause,
        )
        if outcome.media:
            attachments = tuple(
                Attachment(media_type=each.media_type, data=each.data, name=each.name)
                for each in outcome.media
            )
            message = message.model_copy(update={"attachments": attachments})
        if outcome.full is not None or self.control.human_requests is not None:
            message = self._with_notes(message, action, outcome.full)
        call.message = message
        self.note_result(action, message)
        return message

    def note_result(self, action: Action, result: Message) -> None:
        """Note in the memory what follows from a result; called before the result is stored."""

    def _with_notes(self, message: Message, action: Action, full: str | None) -> Message:
        """Return ``message`` with its full text and a person's decision in its metadata."""
        if full is not None:
            from agent_brain.memories.views.truncated_results import store_full_text

            self.control.results_cut = True
            message = store_full_text(message, full)
        decision = self.control.decision_on(action)
        if decision is None:
            return message
        content = message.content
        if decision.args is not None:
            content = f"{EDITED}{content}"
        metadata = {**message.metadata, "decision": decision.model_dump(mode="json")}
        return message.model_copy(update={"content": content, "metadata": metadata})

    def wait(self) -> list[InputRequested | SleepRequested]:
        """Keep finished results until the round continues; return what it waits for."""
        for call in self._calls:
            if call.outcome is not None:
                self.control.finish_call(call.action, self._message(call), reported=True)
            elif call in self._runs:
                self.control.begin_calls([call.action], continue_=True)
            else:
                self.control.withdraw_call(call.action)
        requests: list[InputRequested | SleepRequested] = [
            call.question for call in self._calls if call.question is not None
        ]
        times = [call.wake_at for call in self._calls if call.wake_at is not None]
        return [*requests, SleepRequested(min(times))] if times else requests

    async def add_results(self) -> None:
        """Record all results in the order of the calls, in one update; idempotent."""
        open_calls = {*map(ID, self.control.next_actions)}  # others were deleted
        known = [call for call in self._calls if call.action.id in open_calls]
        if known:
            if self._hooks is not None and self._hooks.trace is not None:
                await self._record_calls(self._hooks.trace, known)
            results = [*map(self._message, known)]
            if SEARCH_TOOLS in self.tools:
                self._note_found(results)
            adding = self.memory.update(results)
            try:
                await work_here(self.memory.run_work, adding, in_step=True)
            except STORE_ERRORS:  # the run continues with them, also over a shared memory
                for call, result in zip(known, results, strict=True):
                    self.control.finish_call(call.action, result, reported=True)
                raise
        self.control.close_calls()

    def _note_found(self, results: Sequence[Message]) -> None:
        """Offer the tools that were found; read from results, as those of a crash are kept too."""
        found, tools = self.control.found_tools, self.memory.available_tools
        for result in results:
            if result.name == SEARCH_TOOLS and not result.is_error:
                found += [name for name in found_in(result.content, tools) if name not in found]

    async def _record_calls(self, trace: CallTrace, known: Sequence[_Call]) -> None:
        results = []
        for call in known:
            cut = call.outcome is None
            results.append((call.asked, self._message(call), cut))
        await trace.tool_results(position_of(self._context), self.memory, results)


def _outcome_of(response: ToolResponse, limit: int | None) -> Outcome:
    """Return the response of a hook as the outcome of a call, with at most ``limit`` tokens."""
    fitted = fit_result(response.content, limit, response.exception, is_error=response.is_error)
    return fitted._replace(media=response.media)


def _refusal(why: str) -> Outcome:
    return fit_result(f"{why}: it was not run", None, is_error=True)


def _ignore(event: Event) -> None:
    """Do nothing."""


class ActionState(RoutedState):
    """Run all requested tool calls with the tools that the memory offers.

    Calls run at once. Results are recorded in the order of the requests, in one update. An error in
    a call becomes its result (``is_error``), and the run continues. When the step is interrupted,
    finished calls are recorded and the others get a result that says why they did not run.

    While a call needs a person's approval and has none, no call runs: the state yields
    ``ApprovalRequested``, and the run waits to be resumed. If a tool raises ``InputNeeded``, the
    run waits for an answer, which becomes the result; the results of other calls are kept.

    A durable memory records every call before it begins, and its result: the last of a round with
    the step. A run resumed after a crash repeats neither a call whose result is recorded nor,
    unless the tool is ``idempotent``, one that may have taken effect.

    Args:
        on_done: The next state; None ends the run.
        choose: Returns the next state (:class:`RoutedState`).
        max_concurrency: Maximum number of calls that run at once; None for no maximum. Brains that
            are called as tools are counted apart.
    """

    def __init__(
        self,
        on_done: Enum | None = None,
        *,
        choose: Choose | None = None,
        max_concurrency: int | None = None,
    ) -> None:
        super().__init__(on_done, choose)
        check_count(StateDefinitionError, "max_concurrency", max_concurrency, optional=True)
        self.max_concurrency = max_concurrency

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the calls; what happens to each streams as it happens."""
        yield ToolRound(memory, ActionState.__name__, self.max_concurrency, ends_step=True)

    run.begins_with_record = True  # type: ignore[attr-defined] # of the step before, and the calls
