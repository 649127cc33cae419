"""Limits of concurrency and rate, shared by all runs that use the same hook."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from agent_brain.common.values import check_count
from agent_brain.errors import BrainDefinitionError
from agent_brain.hooks.pace import Pace
from agent_brain.memories.views.tokens import request_tokens
from agent_brain.states.errors import LLMRateLimitError
from agent_brain.states.events import Position
from agent_brain.states.hooks import (
    Hook,
    ModelRequest,
    StateRequest,
    ToolRequest,
    ToolResponse,
)
from agent_brain.states.models.litellm.errors import requested_wait
from agent_brain.states.usage import Usage
from agent_brain.states.work import closing
from agent_brain.tools.limiter import Limiter, Turn, read_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What calls of one model or tool may do together; more wait, first come, first served.

    Attributes:
        at_once: Calls that may be on their way.
        requests: Calls that may begin in a span of time: ``"500/min"``, ``"3/10s"``, or
            ``(calls, seconds)``.
        tokens: Tokens that a model may read and write in a span of time, such as ``"30000/min"``.
            They are estimated before a call, and corrected after it.

    Raises:
        BrainDefinitionError: A number below 1, or something that is not a rate.
    """

    at_once: int | None = None
    requests: str | tuple[int, float] | None = None
    tokens: str | tuple[int, float] | None = None

    def __post_init__(self) -> None:
        check_count(BrainDefinitionError, "at_once", self.at_once, optional=True)
        self.limiters()

    def limiters(self) -> tuple[Limiter, Limiter]:
        """Return what limits calls, and what limits tokens."""
        try:
            rates = [None if r is None else read_rate(r) for r in (self.requests, self.tokens)]
        except (TypeError, ValueError) as error:
            raise BrainDefinitionError(f"{self!r}: {error}") from error
        return Limiter(self.at_once, rates[0]), Limiter(None, rates[1])


class Gate:
    """What the calls of one model or tool wait for."""

    def __init__(self, rate: Rate) -> None:
        self.pace = Pace()
        self.limited = rate != Rate()
        self.calls, self.tokens = rate.limiters()


@dataclass(slots=True)
class Call:
    """A call on its way.

    Attributes:
        gates: The gates that it has passed, with what it has of the tokens.
        attempted: The last of them that a request was sent through.
    """

    gates: dict[Gate, Turn | None] = field(default_factory=dict)
    attempted: Gate | None = None


class RateLimits(Hook):
    """Limits calls of models and tools, together for all runs of all brains that share it.

    ::

        limits = RateLimits(
            {"openai/*": Rate(at_once=8, requests="500/min", tokens="200000/min")},
            tools={"search": Rate(at_once=2)},
        )

    Each model and each tool is limited by itself, by the first pattern that its name matches. When
    a provider asks one call to wait, all calls of that model wait; then they begin one by one.
    Waits can be cancelled. Calls that other hooks answer do not wait, and calls that they make
    before or after another call do not wait for that one.

    Args:
        models: Rates by patterns of the names of models.
        tools: Rates by patterns of the names of tools.

    Raises:
        BrainDefinitionError: Something that is not a rate.
    """

    in_replay = False

    def __init__(
        self, models: Mapping[str, Rate] | None = None, *, tools: Mapping[str, Rate] | None = None
    ) -> None:
        self._rates: dict[str, dict[str, Rate]] = {}
        for option, rates in (("models", models), ("tools", tools)):
            if rates is not None and not isinstance(rates, Mapping):
                raise BrainDefinitionError(f"{option}={rates!r}: give a Rate for each name, a dict")
            self._rates[option] = rates = dict(rates or {})
            for name, rate in rates.items():
                if not isinstance(rate, Rate):
                    raise BrainDefinitionError(f"{option}={{{name!r}: {rate!r}}}: give a Rate")
        self._gates: dict[tuple[str, str], Gate] = {}
        self._models: dict[str, Call] = {}  # calls of models, by the IDs of their responses
        self._calls: dict[Position, dict[str, Call]] = {}  # of tools, by the step they are of

    def _gate(self, option: Literal["models", "tools"], name: str) -> Gate:
        if (option, name) not in self._gates:
            rates = self._rates[option].items()
            rate = next((rate for pattern, rate in rates if fnmatchcase(name, pattern)), Rate())
            self._gates.setdefault((option, name), Gate(rate))
        return self._gates[option, name]

    # Calls of models

    async def stream_model_call(
        self, request: ModelRequest, pieces: AsyncIterator[Any]
    ) -> AsyncGenerator[Any, None]:
        """Wait until calls of the model may go, and let others continue at the end of this one."""
        usage: Usage | None = None
        call_id = request.response_id
        call = self._models[call_id] = Call()
        try:
            async with closing(pieces):
                if (waiting := self._enter_model(request)) is not None:
                    await waiting
                async for piece in pieces:
                    if isinstance(piece, Usage):
                        usage = piece if usage is None else usage.followed_by(piece)
                    yield piece
            for gate, turn in call.gates.items():
                gate.pace.answer(call_id)
                if turn is not None and usage is not None:
                    gate.tokens.correct(turn, usage.total_tokens)
        except Exception as error:
            if call.attempted is None:
                self.on_attempt_error(request, error)
            raise
        finally:
            self._models.pop(call_id, None)
            self._leave(call_id, call)

    def _enter_model(self, request: ModelRequest) -> Awaitable[None] | None:
        gate = self._gate("models", request.model)
        tokens = request_tokens(request.messages, request.tools) if gate.limited else 0
        return self._enter(gate, self._models, request.response_id, tokens)

    def before_attempt(self, request: ModelRequest) -> Awaitable[None] | None:
        """Wait again before another request, or for another model."""
        gate = self._gate("models", request.model)
        if (call := self._models.get(request.response_id)) is None:
            return None
        first = call.attempted is None and gate in call.gates
        call.attempted = gate
        return None if first else self._enter_model(request)

    def on_attempt_error(self, request: ModelRequest, error: Exception) -> None:
        """Let all calls of the model wait, if the provider says so."""
        pace = self._gate("models", request.model).pace
        if isinstance(error, LLMRateLimitError):
            pace.refuse(request.response_id, requested_wait(error.__cause__ or error))
        else:
            pace.leave(request.response_id)

    # Calls of tools. Hooks are not told of those that are cancelled: these end with their step.

    def before_state(self, request: StateRequest) -> None:
        """Begin to note the calls of a step."""
        self._calls[request.at] = {}

    def after_state(self, request: StateRequest, next_state: str | None) -> None:
        """End what is left."""
        self._end(request.at)

    def on_state_error(self, request: StateRequest, error: BaseException) -> None:
        """End what is left."""
        self._end(request.at)

    def _end(self, step: Position) -> None:
        for call_id, call in self._calls.pop(step, {}).items():
            self._leave(call_id, call)

    def before_tool_call(self, request: ToolRequest) -> Awaitable[None] | None:
        """Wait until the tool may be called."""
        gate = self._gate("tools", request.action.name)
        calls, call_id = self._calls.get(request.at), request.action.id
        return self._enter(gate, calls, call_id) if gate.limited else None

    def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> None:
        """Let other calls of the tool continue."""
        calls, call_id = self._calls.get(request.at, {}), request.action.id
        self._leave(call_id, calls.pop(call_id, Call()))

    def _enter(
        self, gate: Gate, calls: dict[str, Call] | None, call_id: str, tokens: int = 1
    ) -> Awaitable[None] | None:
        if gate.limited or not gate.pace.is_open:
            return self._wait(gate, calls, call_id, tokens)
        if calls is not None:
            calls.setdefault(call_id, Call()).gates[gate] = None
            gate.pace.begin(call_id)
        return None

    async def _wait(
        self, gate: Gate, calls: dict[str, Call] | None, call_id: str, tokens: int
    ) -> None:
        if calls is None:  # nothing would end it
            await gate.calls.take_turn()
            await gate.tokens.take_turn(tokens)
            return
        call = calls.setdefault(call_id, Call())
        try:
            if gate in call.gates:
                await gate.calls.take_turn()
            else:
                await gate.calls.__aenter__()
                call.gates[gate] = None
                call.gates[gate] = await gate.tokens.take_turn(tokens)
            await gate.pace.wait(call_id)
        except BaseException:
            self._leave(call_id, calls.pop(call_id, call))
            raise

    def _leave(self, call_id: str, call: Call) -> None:
        for gate in call.gates:
            gate.pace.leave(call_id)
            gate.calls.leave()
        call.gates.clear()
