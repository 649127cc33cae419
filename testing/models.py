"""Models for tests: one that plays a script, one for cassettes, and none that is real."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias, cast

from pydantic import BaseModel
from typing_extensions import TypeIs

from agent_brain.common.errors import AgentBrainError
from agent_brain.common.text import to_compact_json
from agent_brain.memories.message import Message
from agent_brain.states.hooks import ModelRequest
from agent_brain.states.models import interception
from agent_brain.states.models.llm import LLM, ArgumentsDelta, Finish, Piece, ProviderCall
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.usage import Usage
from agent_brain.states.work import closing
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

PlainTurn: TypeAlias = Piece | BaseException | Sequence[object]  # of pieces and exceptions
Turn: TypeAlias = PlainTurn | Callable[[list[Message]], PlainTurn]

_PIECES = (str, Action, ArgumentsDelta, ProviderCall, Usage, Finish, BaseException)


class ScriptError(AssertionError):
    """Raised when a script is malformed, or shorter or longer than the calls of the model."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of the model.

    Attributes:
        messages: The messages it was sent, in order.
        tools: The tools it was offered.
        output_type: The type of output requested, if any.
    """

    messages: list[Message]
    tools: tuple[BaseTool, ...]
    output_type: type[BaseModel] | None = None


class ScriptedLLM(LLM):
    """A model that plays ``turns``, one for each call.

    For example::

        llm = ScriptedLLM([[Action(name="add", args={"a": 1, "b": 2})], "The sum is 3."])
        run = await run_net(react(llm), "What is 1 + 2?", tools=[add])
        llm.assert_complete()

    A turn is text (one chunk), an action, an exception to raise, a list of these (also with a
    :class:`~agent_brain.states.Usage`, a :class:`~agent_brain.states.Finish` or pieces of arguments
    as :class:`~agent_brain.states.ArgumentsDelta`) in the order in which they stream, or a function
    of the messages that returns one of these.

    Args:
        turns: A list of turns; or a text, an action, an exception or a function as the only turn.
        native: Whether it calls tools natively; if not, actions become the JSON text that a model
            without tools would write.
        model: Its name.

    Raises:
        ScriptError: Something is not a turn.

    Attributes:
        calls: Every call so far.
    """

    rule_based = True

    def __init__(
        self, turns: Iterable[Turn] | Turn = (), *, native: bool = True, model: str = "scripted"
    ) -> None:
        alone = isinstance(turns, _PIECES) or callable(turns)
        if not alone and (isinstance(turns, Mapping) or not isinstance(turns, Iterable)):
            raise ScriptError(f"A script must be a list of turns, or one turn, not {turns!r}")
        self.turns: list[Turn] = [cast("Turn", turns)] if alone else list(cast("list[Turn]", turns))
        for turn in self.turns:
            if not _is_function(turn):
                _pieces(turn)
        self.supports_tools = native
        self.model = model
        self.calls: list[ModelCall] = []

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
    ) -> AsyncIterator[Piece]:
        """Play the next turn.

        Raises:
            ScriptError: No turn is left.
        """
        index = len(self.calls)
        self.calls.append(ModelCall(list(messages), tuple(tools), output_type))
        if index >= len(self.turns):
            last = repr(messages[-1].content[:200]) if messages else "none"
            raise ScriptError(
                f"The model was called {index + 1} times, but the script has "
                f"{len(self.turns)} turns. The last message it was sent: {last}"
            )
        turn = self.turns[index]
        if _is_function(turn):
            turn = turn(list(messages))
        for piece in _pieces(turn):
            if isinstance(piece, BaseException):
                raise piece
            if isinstance(piece, Action) and not self.supports_tools:
                yield to_compact_json({"name": piece.name, "args": piece.args})
            elif self.supports_tools or not isinstance(piece, ArgumentsDelta):
                yield piece

    def assert_complete(self) -> None:
        """Check that every turn was played.

        Raises:
            ScriptError: Turns are left.
        """
        left = len(self.turns) - len(self.calls)
        if left > 0:
            raise ScriptError(
                f"The script has {len(self.turns)} turns, but the model was called only "
                f"{len(self.calls)} times; the next turn would have been "
                f"{self.turns[len(self.calls)]!r}"
            )


def _is_function(turn: Turn) -> TypeIs[Callable[[list[Message]], PlainTurn]]:
    return callable(turn) and not isinstance(turn, BaseException | type)


def _pieces(turn: object) -> Sequence[Piece | BaseException]:
    if isinstance(turn, _PIECES):
        return [turn]
    if isinstance(turn, list | tuple):
        wrong = [p for p in turn if not isinstance(p, _PIECES)]
        if not wrong:
            return turn
        raise ScriptError(
            f"A turn may hold text, actions, ProviderCall, usages, a Finish and exceptions, "
            f"not {wrong[0]!r}"
        )
    raise ScriptError(
        f"{turn!r} is not a turn: use text, an action, a list of these, an exception, or a function"
    )


class RealModelError(AgentBrainError, AssertionError):
    """Raised when code under test is about to call a real model."""


@contextmanager
def no_real_models() -> Iterator[None]:
    """Raise :class:`RealModelError` when a real model is called, before anything is sent.

    It applies to all tasks and threads of the process, so a fixture may enter it.
    """

    def refuse(model: str) -> None:
        raise RealModelError(
            f"The real model {model!r} was called inside no_real_models(): give the code under "
            "test a ScriptedLLM"
        )

    with interception.before_real_calls(refuse):
        yield


class CassetteLLM(LLM):
    """A wrapper that lets cassettes and ``no_real_models`` handle a model of your own class.

    :class:`~agent_brain.LiteLLM` needs no wrapper. Outside a cassette it behaves like the model.

    Args:
        llm: The model.
    """

    def __init__(self, llm: LLM | str) -> None:
        self.llm = as_llm(llm)
        self.model = self.llm.model
        self.rule_based = self.llm.rule_based

    @property
    def supports_tools(self) -> bool:  # type: ignore[override]  # a model may find out late
        """Whether the model calls tools natively."""
        return self.llm.supports_tools

    @property
    def sends_schema(self) -> bool:  # type: ignore[override]  # a model may find out late
        """Whether the model sends the output schema by itself."""
        return self.llm.sends_schema

    async def open(self) -> None:
        """Open the model, unless a cassette answers for it."""
        if not interception.intercepted():
            await self.llm.open()

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
    ) -> AsyncIterator[Piece]:
        """Stream the model's answer, or the one on the cassette."""

        async def send(_: ModelRequest) -> AsyncIterator[Piece]:
            interception.about_to_call(self.model)
            stream = self.llm.stream(messages, tools=tools, output_type=output_type)
            async with closing(stream) as pieces:
                async for piece in pieces:
                    yield piece

        request = ModelRequest(
            llm=self.llm, messages=messages, tools=tools, output_type=output_type
        )
        async with closing(interception.real_call(request, send)) as pieces:
            async for piece in pieces:
                yield piece

    async def aclose(self) -> None:
        """Close the model."""
        await self.llm.aclose()
