"""Answers the model calls and tool calls of a replayed run with what was recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from agent_brain.errors import BrainUseError
from agent_brain.memories.errors import EmbeddingError
from agent_brain.memories.runs.work import EMBEDDING
from agent_brain.memories.trace.model_calls import ModelCallRecord, unpack_vector
from agent_brain.recorded_run import CallKey, RecordedResult, RecordedRun
from agent_brain.states.events import Position
from agent_brain.states.hook_requests import EmbeddingRequest, ModelRequest, ToolRequest
from agent_brain.states.model_trace import Embed, Send, read_request
from agent_brain.states.models.call_data import error_from_data, piece_from_data
from agent_brain.states.models.llm import LLM, Piece
from agent_brain.states.request_diff import describe_request, explain_request
from agent_brain.states.sent_request import RequestReader, SentRequest, data_of
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.calling import Outcome
from agent_brain.tools.context import current_call
from agent_brain.tools.errors import InputNeeded, ToolError
from agent_brain.tools.result import ToolResult
from agent_brain.tools.text import to_compact_json

PATIENCE = 1.0  # seconds for which a call waits that was cut off when the run was recorded

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


class Player:
    """Answers the model calls of a run with the recorded ones.

    Attributes:
        difference: Where the run first differs from the recorded one.
        at_end: Whether the run has come to the end of what was recorded.
        made: How many requests were equal.
    """

    replays = True

    def __init__(self, run: RecordedRun) -> None:
        self._run = run
        self._reader = RequestReader()
        self._todo: dict[Path, list[ModelCallRecord]] = defaultdict(list)
        self._vectors: dict[str, Any] = {}  # by text
        for call in run.calls:
            if call.purpose == EMBEDDING:
                self._vectors.update(_vectors_of(call))
            else:
                self._todo[call.path].append(call)
        self._last = run.calls[-1].part if run.calls else ""
        self.difference: Difference | None = None
        self.at_end = False
        self.made = 0
        self.visited: set[Path] = set()

    @property
    def stopped(self) -> bool:
        """Whether the replay is over."""
        return self.at_end or self.difference is not None

    def differs(self, difference: Difference) -> ReplayStoppedError:
        """Note a difference; return the error that ends the run."""
        if not self.stopped:
            self.difference = difference
        return ReplayStoppedError(str(self.difference or difference))

    async def model_call(self, request: ModelRequest, send: Send) -> AsyncGenerator[Piece, None]:
        """Yield the recorded response to a request.

        Raises:
            ReplayStoppedError: The request was not made when the run was recorded.
        """
        sent = await read_request(self._reader, request)
        call = await self._take(request.at, sent)
        self.made += 1
        for piece in call.response:
            yield piece_from_data(piece)
        if call.error is not None:
            raise error_from_data(dict(call.error))
        if call.cut:
            await self._wait(call)
            raise self.differs(
                Difference(
                    "end",
                    "the call is cut off",
                    "the run waits for the rest of the response",
                    *_place(request.at),
                )
            )

    async def _take(self, at: Position, sent: SentRequest) -> ModelCallRecord:
        """Return the recorded call for a request."""
        if self.stopped:
            raise ReplayStoppedError("The replay has come to its end")
        self.visited.add(at.path)
        todo = self._todo[at.path]
        while todo and self._was_repeated(todo[0], todo):
            del todo[0]
        for index, call in enumerate(todo):
            if call.move != todo[0].move:
                break
            if call.request_hash in ("", sent.hash):  # calls of a step may run at once
                del todo[index]
                while todo and todo[0].move == call.move and todo[0].number < call.number:
                    if todo[0].part == call.part:
                        break
                    del todo[0]
                return call
        if not todo:
            raise await self._nothing_left(at, sent)
        recorded, made = data_of(todo[0]), dict(sent.data)
        others = ", ".join(name for name in recorded if recorded[name] != made[name])
        raise self.differs(
            Difference(
                "request",
                describe_request(recorded),
                f"{describe_request(made)} (not the same {others.replace('_', ' ')})",
                *_place(at),
                diff=explain_request(recorded, made),
            )
        )

    def _was_repeated(self, call: ModelCallRecord, todo: list[ModelCallRecord]) -> bool:
        """Return whether the step of a call was interrupted, and run again later."""
        if call.part in self._run.waits:
            return False
        return any(later.part != call.part and later.move == call.move for later in todo)

    async def _nothing_left(self, at: Position, sent: SentRequest) -> Exception:
        if self._run.was_cut:
            self.at_end = True
            return ReplayStoppedError("The recorded run ended here")
        if at.path:  # another branch may end first, as it did when the run was recorded
            await anyio.sleep(PATIENCE)
        found = f"a model call: {describe_request(dict(sent.data))}"
        return self.differs(Difference("request", "no model call", found, *_place(at)))

    async def _wait(self, call: ModelCallRecord) -> None:
        """Wait to be cut off, as the call was."""
        if call.part == self._last and self._run.was_cut:
            self.at_end = True
            raise ReplayStoppedError("The recorded run ended here")
        await anyio.sleep(PATIENCE)

    async def call_without_end(
        self, call: str, branch: str, place: tuple[int, str | None]
    ) -> ReplayStoppedError:
        """Wait where a call of a tool has no recorded result; return the error that ends the run.

        The call was cut off, or the run was, or it waits in the call.

        Args:
            call: The call, for people.
            branch: The branch that it is made in: others go on until they end.
            place: The step and the state.
        """
        over = not self._run.ended
        if branch or not over:
            await anyio.sleep(PATIENCE)
        if over and self.difference is None:
            self.at_end = True
            return ReplayStoppedError("The recorded run ended here")
        return self.differs(
            Difference("end", f"{call} is cut off", "the run waits for its result", *place)
        )

    def left(self) -> ModelCallRecord | None:
        """Return the first recorded call that was not made, if any was due."""
        due = [
            call
            for path, todo in self._todo.items()
            if not path or path in self.visited
            for call in todo
            if call.part == self._last and not call.cut
        ]
        return min(due, key=lambda call: call.number, default=None)

    def attempt(
        self, response_id: str, llm: LLM, number: int, pieces: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Return the pieces of an attempt: there is none."""
        return pieces

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

    async def tool_call(self, request: ToolRequest, outcome: Outcome) -> None:
        """Take no note of a result, which was recorded."""


class RecordedTool(BaseTool):
    """A tool that returns what it returned when the run was recorded.

    Args:
        tool: The tool of today, which says what a call looks like and whether it needs approval.
        results: The recorded results, of all tools.
        player: Is told of a call that was not recorded.
    """

    def __init__(self, tool: BaseTool, results: Results, player: Player) -> None:
        self._tool = tool
        self._results = results
        self._player = player
        super().__init__(
            tool.name,
            tool.description,
            tool.input_schema,
            requires_approval=tool.requires_approval,
            idempotent=True,
            max_result_tokens=tool.max_result_tokens,
            repeatable=tool.repeatable,
        )

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
            InputNeeded: It asked a person.
        """
        context = current_call()
        action = Action(name=self.name, args=kwargs) if context is None else context.action
        if (question := self._results.question_of(action)) is not None:
            raise InputNeeded(question)
        control = getattr(getattr(context, "memory", None), "control", None)
        found = self._results.take(action, getattr(control, "branch", ""))
        if found is None or found.content is None:
            branch, place = getattr(control, "branch", ""), _place_of(control)
            written = f"{action.name}({to_compact_json(action.args)})"
            if found is not None or self._results.has_no_more(action, branch):
                raise await self._player.call_without_end(written, branch, place)
            raise self._player.differs(
                Difference("call", self._results.describe(), written, *place)
            )
        if found.is_error:
            raise ToolError(found.content)
        return ToolResult(found.content, found.media) if found.media else found.content


class Results:
    """The recorded results of tools, by the branch and the ID of the call.

    A model without tools asks for calls in text, which get new IDs in each run: then a result is
    found by the name and the arguments.
    """

    def __init__(self, run: RecordedRun) -> None:
        self._run = run
        self._left = dict(run.results)

    def question_of(self, action: Action) -> str | None:
        """Return what the call asked a person."""
        return self._run.questions.get(action.id)

    def take(self, action: Action, branch: str) -> RecordedResult | None:
        """Return the result of a call in a branch; None if there is none."""
        same_id = [key for key in self._run.results if key[:2] == (branch, action.id)]
        if same_id:
            key = min(same_id, key=lambda key: self._rank(key, action))
            self._left.pop(key, None)
            return self._run.results[key]
        alike = [key for key, result in self._left.items() if _is_call(result, action)]
        alike.sort(key=lambda key: self._left[key].content is None)
        return self._left.pop(alike[0]) if alike else None

    def _rank(self, key: CallKey, action: Action) -> tuple[bool, bool, int]:
        """Order the calls with the ID of ``action``: those not made yet come first."""
        done = key not in self._left
        return not _is_call(self._run.results[key], action), done, -key[2] if done else key[2]

    def has_no_more(self, action: Action, branch: str) -> bool:
        """Return whether a call that has no result is one at which the recording of it ends."""
        if any(action.id == asked.id for call in self._run.calls for asked in call.actions):
            return True
        return bool(branch) and not any(of == branch for of, *_ in self._left)

    def describe(self) -> str:
        """Return the recorded calls that are left, for people."""
        calls = [f"{r.name}({to_compact_json(r.args)})" for r in self._left.values() if r.content]
        return ", ".join(calls[:3]) or "no call"


def _vectors_of(call: ModelCallRecord) -> Iterator[tuple[str, Any]]:
    """Yield the texts of an embedding with their vectors."""
    packed = [text for piece in call.response for text in piece.get("vectors", ())]
    for message, vector in zip(call.messages, packed, strict=False):
        yield message.content, unpack_vector(vector)


def _is_call(result: RecordedResult, action: Action) -> bool:
    return (result.name, result.args) == (action.name, action.args)


def _place(at: Position) -> tuple[int, str | None, Path]:
    return at.step, at.state, at.path


def _place_of(control: Any) -> tuple[int, str | None]:
    return getattr(control, "step", 0), getattr(control, "state", None)
