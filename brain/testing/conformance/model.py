"""The conformance suite for models: what every :class:`~agent_brain.LLM` promises."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, get_args

import anyio
from pydantic import BaseModel

from agent_brain.memories.message import Message
from agent_brain.states.aclosing import closing
from agent_brain.states.errors import LLMError
from agent_brain.states.models.llm import LLM, Finish, FinishReason, Piece
from agent_brain.states.usage import Usage
from agent_brain.testing.conformance.check import Check, expect, expect_error
from agent_brain.tools.action import Action
from agent_brain.tools.function import FunctionTool

Make = Callable[..., Awaitable[Any]]
HELLO = (Message.system("Answer in a few words."), Message.user("Say hello."))


def llm_conformance(
    factory: Callable[[], LLM | Awaitable[LLM]],
    *,
    failing: Callable[[], LLM | Awaitable[LLM]] | None = None,
) -> list[Check]:
    """The behaviours that a model adapter must have, as async checks.

    Each check asks a model of its own something simple, once or twice, and wants any answer.
    Point the adapter at a server of your own, or let a cassette with ``match="request"`` answer.

    Args:
        factory: Makes a model; sync or async. Each check closes what it makes.
        failing: Makes a model whose calls fail, such as with a wrong key; None skips that check.

    Returns:
        One check a behaviour; to be used as those of :func:`memory_conformance`.
    """
    checks = [Check(behaviour, factory) for behaviour in MODEL]
    return checks if failing is None else [*checks, Check(a_failure_is_an_llm_error, failing)]


async def it_is_a_model_with_a_name(make: Make) -> None:
    llm = await make()
    expect(isinstance(llm, LLM), True, f"{llm!r} is derived from agent_brain.LLM")
    expect(isinstance(llm.model, str) and bool(llm.model.strip()), True, "model is its name")
    expect(type(llm.supports_tools), bool, "supports_tools")


async def stream_is_an_async_generator(make: Make) -> None:
    llm = await make()
    stream = llm.stream(HELLO)
    if inspect.iscoroutine(stream):
        stream.close()
        raise AssertionError("stream() is a coroutine: write it with yield, and call it unawaited")
    expect(hasattr(stream, "__anext__"), True, "stream() gives an async iterator")
    expect(hasattr(stream, "aclose"), True, "stream() gives what can be closed")
    await stream.aclose()
    await llm.aclose()


async def text_is_answered_by_text(make: Make) -> None:
    pieces = await _ask(make)
    strange = [piece for piece in pieces if not isinstance(piece, str | Action | Usage | Finish)]
    expect(strange, [], "pieces that are neither text nor Action nor Finish nor Usage")
    expect(bool(_text(pieces).strip()), True, f"text is among {pieces!r}")


async def finish_comes_once_after_what_it_ends(make: Make) -> None:
    pieces = await _ask(make)
    ends = [index for index, piece in enumerate(pieces) if isinstance(piece, Finish)]
    if ends:
        expect(len(ends), 1, "Finish pieces of one call")
        late = [piece for piece in pieces[ends[0] + 1 :] if not isinstance(piece, Usage)]
        expect(late, [], "pieces other than Usage after the Finish")
        finish = pieces[ends[0]]
        assert isinstance(finish, Finish)
        expect(finish.reason in get_args(FinishReason), True, f"{finish.reason!r} is a reason")
        expect(_is_json(finish), True, "provider_data holds JSON values")


async def usage_comes_last_and_once_a_request(make: Make) -> None:
    pieces = await _ask(make)
    usages = [piece for piece in pieces if isinstance(piece, Usage)]
    if usages:
        expect(isinstance(pieces[-1], Usage), True, "usage comes at the end")
        said = next((i for i, piece in enumerate(pieces) if not isinstance(piece, Usage)), 0)
        late = [piece for piece in pieces[said:] if isinstance(piece, Usage)]
        expect(len(late), 1, "usages after the first text; retries report theirs before it")
    for usage in usages:
        expect(usage.requests >= 1, True, "a usage counts its request")
        expect(usage.cost is None or usage.cost >= 0, True, f"cost of {usage!r} is 0 or more")
        expect(0 <= usage.cached_tokens <= usage.input_tokens, True, "cached tokens are input")
        expect(0 <= usage.reasoning_tokens <= usage.output_tokens, True, "reasoning is output")


async def nothing_is_called_that_was_not_offered(make: Make) -> None:
    expect(_calls(await _ask(make)), [], "calls without tools")
    called = _calls(await _ask(make, [Message.user("Look up 'state'.")], offer=True))
    expect({action.name for action in called} - {"look_up"}, set(), "calls of other tools")


async def calls_have_ids_of_their_own(make: Make) -> None:
    asked = [Message.user("Look up 'state' and 'net', both at once.")]
    ids = [action.id for action in _calls(await _ask(make, asked, offer=True))]
    expect(sorted(set(ids)), sorted(ids), "ids of calls, each once")


async def a_conversation_with_results_is_taken(make: Make) -> None:
    first, second = (Action(name="look_up", args={"word": word}) for word in ("a", "b"))
    messages = [
        *HELLO,
        Message.assistant("", tool_calls=[first, second]),
        Message.tool("the first letter", first),
        Message.tool("No such word", second, is_error=True),
        Message.user("And now answer."),
    ]
    expect(bool(await _ask(make, messages, offer=True)), True, "it answers")


async def a_shape_may_be_asked_for(make: Make) -> None:
    asked = [Message.user('Answer with JSON: {"answer": "…"}')]
    expect(bool(_text(await _ask(make, asked, output_type=_Shape))), True, "it answers")


async def what_it_is_given_stays_as_it_is(make: Make) -> None:
    messages, tool = list(HELLO), _tool()
    before = (list(HELLO), str(tool.to_dict()))
    await _ask(make, messages, tools=[tool])
    expect((messages, str(tool.to_dict())), before, "messages and tools afterwards")


async def two_calls_at_once_do_not_mix(make: Make) -> None:
    llm = await make()
    answers: list[str] = []

    async def ask() -> None:
        answers.append(_text(await _pieces(llm, HELLO)))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        group.start_soon(ask)
    await llm.aclose()
    expect([bool(text.strip()) for text in answers], [True, True], "both answer")


async def an_answer_may_be_left_early(make: Make) -> None:
    llm = await make()
    async with closing(llm.stream(HELLO)) as pieces:
        await anext(pieces)
    expect(bool(await _pieces(llm, HELLO)), True, "it answers afterwards")
    await llm.aclose()


async def cancellation_passes_through(make: Make) -> None:
    llm = await make()
    with anyio.CancelScope() as scope:
        async with closing(llm.stream(HELLO)) as pieces:
            await anext(pieces)
            scope.cancel()
            async for _ in pieces:  # the model notices, or has already said it all
                pass
            await anyio.lowlevel.checkpoint()
    expect(scope.cancelled_caught, True, "the call was cancelled")
    expect(bool(await _pieces(llm, HELLO)), True, "it answers afterwards")
    await llm.aclose()


async def it_may_be_used_after_closing(make: Make) -> None:
    llm = await make()
    await llm.aclose()
    await llm.aclose()
    expect(bool(await _pieces(llm, HELLO)), True, "it answers afterwards")
    await llm.aclose()


async def a_failure_is_an_llm_error(make: Make) -> None:
    await expect_error(_ask(make), LLMError, "a call that fails")


MODEL = (
    it_is_a_model_with_a_name,
    stream_is_an_async_generator,
    text_is_answered_by_text,
    finish_comes_once_after_what_it_ends,
    usage_comes_last_and_once_a_request,
    nothing_is_called_that_was_not_offered,
    calls_have_ids_of_their_own,
    a_conversation_with_results_is_taken,
    a_shape_may_be_asked_for,
    what_it_is_given_stays_as_it_is,
    two_calls_at_once_do_not_mix,
    an_answer_may_be_left_early,
    cancellation_passes_through,
    it_may_be_used_after_closing,
)


class _Shape(BaseModel):
    answer: str


def _tool() -> FunctionTool:
    def look_up(word: str) -> str:
        """Look up a word."""
        return word

    return FunctionTool(look_up)


async def _ask(
    make: Make, messages: Sequence[Message] = HELLO, *, offer: bool = False, **options: Any
) -> list[Piece]:
    llm = await make()
    if offer and llm.supports_tools:
        options["tools"] = [_tool()]
    try:
        return await _pieces(llm, messages, **options)
    finally:
        with anyio.CancelScope(shield=True):
            await llm.aclose()


async def _pieces(llm: LLM, messages: Sequence[Message], **options: Any) -> list[Piece]:
    async with closing(llm.stream(messages, **options)) as pieces:
        return [piece async for piece in pieces]


def _is_json(finish: Finish) -> bool:
    return bool(json.loads(json.dumps(dict(finish.provider_data))) == dict(finish.provider_data))


def _text(pieces: Sequence[Piece]) -> str:
    return "".join(piece for piece in pieces if isinstance(piece, str))


def _calls(pieces: Sequence[Piece]) -> list[Action]:
    return [piece for piece in pieces if isinstance(piece, Action)]
