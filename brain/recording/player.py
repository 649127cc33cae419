"""Answers the calls of a replayed run, of models and tools, with what was recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from agent_brain.common.text import to_compact_json
from agent_brain.errors import BrainUseError
from agent_brain.memories.control import Control
from agent_brain.memories.errors import EmbeddingError
from agent_brain.memories.message import Message, Role
from agent_brain.memories.runs.human_requests import Decision, HumanRequests
from agent_brain.memories.runs.work import EMBEDDING
from agent_brain.memories.trace.recorded_call import RecordedCall, unpack_vector
from agent_brain.recording.run import RecordedRun, without_repeated
from agent_brain.states.events import Position
from agent_brain.states.hooks import EmbeddingRequest, ModelRequest
from agent_brain.states.model_trace import CallTrace, Embed, Send, read_request
from agent_brain.states.models.call_data import (
    RequestReader,
    describe_request,
    differing_fields,
    explain_request,
    play,
)
from agent_brain.states.models.llm import Piece
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action, Media, ToolResult
from agent_brain.tools.base import BaseTool
from agent_brain.tools.context import current_call
from agent_brain.tools.errors import InputNeeded, ToolError

PATIENCE = 1.0  # seconds for which a call waits that was cut off when the run was recorded

NO_CALL = (True, True)  # how a call differs from another one: in its ID, and in its content

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replayed run first differs from the recorded one.

    Attributes:
        kind: What differs: ``"state"``, ``"request"`` (what a model is sent), ``"call"`` (of a
            tool), ``"end"`` or ``"message"``.
        expected: What was recorded.
        found: What came.
        step: The number of the step in the replayed run, from 0.
        state: The name of the state.
        path: The subnets and branches around the state.
        diff: The lines of a request that differ (``-`` recorded, ``+`` now).
    """

    kind: str
    expected: str
    found: str
    step: int = 0
    state: str | None = None
    path: Path = ()
    diff: str = ""

    def __str__(self) -> str:
        place = "/".join((*self.path, *([self.state] if self.state else [])))
        where = f"at step {self.step}, in state {place}" if place else f"at step {self.step}"
        lines = [
            f"The replay differs {where}: another {self.kind}",
            f"  expected: {self.expected}",
            f"  came:     {self.found}",
        ]
        return "\n".join([*lines, *([self.diff] if self.diff else [])])


class ReplayStoppedError(BrainUseError):
    """Ends a replayed run: it differs, or what was recorded has come to its end."""


class Player(CallTrace):
    """Answers the calls of a run with the recorded ones.

    Attributes:
        difference: Where the run first differs from the recorded one.
        at_end: Whether the run has come to the end of what was recorded.
        made: How many requests were equal.
        visited: The paths of the states that were entered.
    """

    replays = True

    def __init__(self, run: RecordedRun) -> None:
        self._run = run
        self._reader = RequestReader()
        self._requests: dict[Path, list[RecordedCall]] = defaultdict(list)
        self._results: dict[str, list[RecordedCall]] = defaultdict(list)  # by branch
        for call in without_repeated(run.calls, run.waits):
            if call.action is None:
                self._requests[call.path].append(call)
            else:
                self._results[call.branch].append(call)
        embedded = (call for call in run.calls if call.purpose == EMBEDDING)
        self._vectors = {text: vector for call in embedded for text, vector in _vectors_of(call)}
        models = [call for call in run.calls if call.action is None]
        self._last = models[-1].part if models else ""
        self.difference: Difference | None = None
        self.at_end = False
        self.made = 0
        self.visited: set[Path] = set()
        self._tools: dict[BaseTool, RecordedTool] = {}

    @property
    def stopped(self) -> bool:
        """Whether the replay is over."""
        return self.at_end or self.difference is not None

    def differs(self, difference: Difference) -> ReplayStoppedError:
        """Note a difference; return the error that ends the run."""
        if not self.stopped:
            self.difference = difference
        return ReplayStoppedError(str(self.difference or difference))

    def _end(self) -> ReplayStoppedError:
        """Note that the recorded run ended here; return the error that ends the replay."""
        self.at_end = True
        return ReplayStoppedError("The recorded run ended here")

    # models

    async def model_call(self, request: ModelRequest, send: Send) -> AsyncGenerator[Piece, None]:
        """Yield the recorded response to a request.

        Raises:
            ReplayStoppedError: The request was not made when the run was recorded.
        """
        at, made = request.at, await read_request(self._reader, request)
        call = self._take(at.path, made)
        if call is None and request.purpose is None and self._run.cached:
            call = self._run.cached.pop(0)
        if call is None:
            raise await self._refuse(at, made)
        self.made += 1
        async for piece in play(call):
            yield piece
        if not call.cut:
            return
        if call.part == self._last and self._run.was_cut:
            raise self._end()
        await anyio.sleep(PATIENCE)  # to be cut off, as the call was
        waits = "the run waits for the rest of the response"
        raise self.differs(Difference("end", "the call is cut off", waits, *_place(at)))

    def _take(self, path: Path, made: RecordedCall) -> RecordedCall | None:
        """Return the recorded call for a request: one of the next step, whose calls may be at once.

        Raises:
            ReplayStoppedError: The replay is over.
        """
        if self.stopped:
            raise ReplayStoppedError("The replay has come to its end")
        self.visited.add(path)
        left = self._requests[path]
        for index, call in enumerate(left):
            if call.move != left[0].move:
                return None
            if call.request_hash in ("", made.request_hash):
                return left.pop(index)
        return None

    async def _refuse(self, at: Position, made: RecordedCall) -> ReplayStoppedError:
        asked = describe_request(made)
        if left := self._requests[at.path]:
            found = f"{asked} (not the same {differing_fields(left[0], made)})"
            expected, diff = describe_request(left[0]), explain_request(left[0], made)
            return self.differs(Difference("request", expected, found, *_place(at), diff=diff))
        if self._run.was_cut:
            return self._end()
        if at.path:  # another branch may end first, as it did when the run was recorded
            await anyio.sleep(PATIENCE)
        found = f"a model call: {asked}"
        return self.differs(Difference("request", "no model call", found, *_place(at)))

    def left(self) -> RecordedCall | None:
        """Return the first recorded model call that was not made, if any was due."""
        due = [
            call
            for path, left in self._requests.items()
            if not path or path in self.visited
            for call in left
            if call.part == self._last and not call.cut
        ]
        return min(due, key=lambda call: call.number, default=None)

    async def embed(self, request: EmbeddingRequest, send: Embed) -> tuple[Any, Usage]:
        """Return the recorded vectors of texts.

        Texts may be embedded at once that were recorded one by one, and the copy of the memory
        that the replay runs on may know their vectors, so the calls are not compared.

        Raises:
            EmbeddingError: A text was not embedded when the run was recorded.
        """
        if request.embedder.local or not self._run.traced:
            return await send(request)
        scrubber = self._reader.scrubber_of(None)
        found = [self._vectors.get(scrubber.text(text)) for text in request.texts]
        if any(vector is None for vector in found):
            raise EmbeddingError(request.model, "a text was not embedded when the run was recorded")
        return found, Usage(cost=0.0)

    # tools

    def tool(self, tool: BaseTool) -> BaseTool:
        """Return a tool that returns the recorded results; the same one each time."""
        return self._tools.setdefault(tool, RecordedTool(tool, self))

    def tools(self, tools: Iterable[BaseTool]) -> Iterable[BaseTool]:
        """Return the tools of a net; those that work in the memory alone are always offered."""
        return [tool if tool.always_offered else self.tool(tool) for tool in tools]

    async def result_of(self, action: Action, control: Control) -> Message:
        """Return the recorded result of a call.

        A model without tools asks for calls in text, which get new IDs in each run: then a result
        is found by the name and the arguments.

        Raises:
            ReplayStoppedError: There is none: the call was not made, or cut off.
            InputNeeded: There is none, as the recorded run waits.
        """
        left = self._results[control.branch]
        ranks = [(_differs(c.action, action), number) for number, c in enumerate(left)]
        differing, number = min(ranks, default=(NO_CALL, 0))
        if differing == NO_CALL:
            return await self._without_result(action, control)
        call = left.pop(number)
        return await self._cut_off(action, control) if call.cut else call.messages[0]

    async def _without_result(self, action: Action, control: Control) -> Message:
        if any(_differs(call, action) != NO_CALL for call in self._run.open_calls):
            raise InputNeeded("The recorded run waits here")
        asked = any(action.id == one.id for call in self._run.calls for one in call.actions)
        if asked or (control.branch and not self._results[control.branch]):
            return await self._cut_off(action, control)
        left = [call for calls in self._results.values() for call in calls]
        expected = ", ".join(written(call.action) for call in left[:3] if call.action)
        place = control.step, control.state
        raise self.differs(Difference("call", expected or "no call", written(action), *place))

    async def _cut_off(self, action: Action, control: Control) -> Message:
        """Return what the model was told of a call that was cut off, if the run was resumed.

        Raises:
            ReplayStoppedError: The run has ended in the call; other branches continue meanwhile.
        """
        if control.branch or not self._run.ended:
            await anyio.sleep(PATIENCE)
        if not self._run.ended and self.difference is None:
            raise self._end()
        told = (m for m in self._run.turn if m.role is Role.TOOL and m.tool_call_id == action.id)
        if (message := next(told, None)) is not None and not control.branch:
            return message
        expected = f"{written(action)} is cut off"
        waits, place = "the run waits for its result", (control.step, control.state)
        raise self.differs(Difference("end", expected, waits, *place))


class RecordedTool(BaseTool):
    """A tool that returns what it returned when the run was recorded.

    What a person had decided about a call, or answered to it, is in its result: nobody is asked.

    Args:
        tool: The tool as it is now, which says what a call looks like.
        player: Has the results.
    """

    def __init__(self, tool: BaseTool, player: Player) -> None:
        self._tool = tool
        self._player = player
        super().__init__(
            tool.name,
            tool.description,
            tool.input_schema,
            idempotent=True,
            max_result_tokens=tool.max_result_tokens,
            repeatable=tool.repeatable,
        )
        self.always_offered = tool.always_offered

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Validate as the tool does."""
        return self._tool.validate(args)

    async def invoke(self, args: Mapping[str, Any]) -> Any:
        """Return the recorded result; arguments are not validated again."""
        return await self.execute(**{str(name): value for name, value in args.items()})

    async def execute(self, **kwargs: Any) -> Any:
        """Return the recorded result of the current call.

        Raises:
            ToolError: The call failed when it was recorded.
        """
        context = current_call()
        if context is None or context.memory is None:  # a state calls it by itself
            action, control = Action(name=self.name, args=kwargs), Control()
        else:
            action, control = context.action, context.memory.control
        result = await self._player.result_of(action, control)
        decision = result.metadata.get("decision")
        if decision is not None:  # the result is marked as it was
            control.human_requests = control.human_requests or HumanRequests()
            control.human_requests.decisions[action.id] = Decision.model_validate(decision)
        elif not result.is_error and await self._tool.needs_approval(kwargs):
            expected, found = f"{written(action)} runs", "it waits for a person's approval"
            place = control.step, control.state
            raise self._player.differs(Difference("end", expected, found, *place))
        if result.is_error:
            raise ToolError(result.content)
        media = tuple(
            Media(a.media_type, a.data, a.name) for a in result.attachments if a.data is not None
        )
        return ToolResult(result.content, media) if media else result.content


def written(action: Action) -> str:
    """Return a call as text."""
    return f"{action.name}({to_compact_json(action.args)})"


def _differs(one: Action | None, other: Action) -> tuple[bool, bool]:
    """Return whether a recorded call differs from another one in its ID, and in its content."""
    if one is None:
        return NO_CALL
    return one.id != other.id, (one.name, one.args) != (other.name, other.args)


def _vectors_of(call: RecordedCall) -> Iterator[tuple[str, Any]]:
    """Yield the texts of an embedding with their vectors."""
    packed = [text for piece in call.response for text in piece.get("vectors", ())]
    for message, vector in zip(call.messages, packed, strict=False):
        yield message.content, unpack_vector(vector)


def _place(at: Position) -> tuple[int, str | None, Path]:
    return at.step, at.state, at.path
