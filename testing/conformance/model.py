"""The conformance suite for models."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, get_args

import anyio
from pydantic import BaseModel

from agent_brain.memories.message import Message
from agent_brain.states.errors import LLMError
from agent_brain.states.models.llm import LLM, Finish, FinishReason, Piece
from agent_brain.states.usage import Usage
from agent_brain.states.work import closing
from agent_brain.testing.conformance.check import (
    Check,
    behaviours,
    both,
    expect,
    expect_error,
    expect_true,
    look_up,
)
from agent_brain.tools.action import Action
from agent_brain.tools.function import FunctionTool

HELLO = (Message.system("Answer in a few words."), Message.user("Say hello."))


def llm_conformance(
    factory: Callable[[], LLM | Awaitable[LLM]],
    *,
    failing: Callable[[], LLM | Awaitable[LLM]] | None = None,
) -> list[Check]:
    """Return the behaviours that a model adapter must have, as async checks.

    Use them like those of :func:`memory_conformance`. Each check asks a new model something simple,
    once or twice, and accepts any answer. Point the adapter at a server of your own, or use a
    cassette with ``match="request"``.

    Args:
        factory: Makes a model; sync or async.
        failing: Makes a model whose calls fail, such as with a wrong key; None skips that check.
    """

    async def a_failure_is_an_llm_error(llm: LLM) -> None:
        """Raise a subclass of LLMError that names the model, from the error of the provider."""
        await expect_error(_ask(llm), LLMError, "a call that fails")

    checks = [Check(behaviour, factory) for behaviour in MODEL]
    return checks if failing is None else [*checks, Check(a_failure_is_an_llm_error, failing)]


async def it_is_an_llm_with_a_name(llm: LLM) -> None:
    """Derive from agent_brain.LLM, and set ``model`` to a name that is not empty."""
    expect_true(isinstance(llm, LLM), f"{llm!r} is not derived from agent_brain.LLM")
    expect_true(isinstance(llm.model, str) and llm.model.strip(), "The model has no name")
    expect(type(llm.supports_tools), bool, "supports_tools")


async def stream_is_an_async_generator(llm: Any) -> None:
    """Write stream() as an async generator: 'async def' with 'yield'."""
    stream = llm.stream(HELLO)
    if inspect.iscoroutine(stream):
        stream.close()  # or Python warns that it was never awaited
        raise AssertionError("stream() returned a coroutine")
    expect_true(hasattr(stream, "__anext__"), "stream() must return an async iterator")
    expect_true(hasattr(stream, "aclose"), "The iterator of stream() must have aclose()")
    await stream.aclose()


async def it_answers_with_text(llm: LLM) -> None:
    """stream() yields str, Thought, Action, Finish and Usage, and some text when asked for it."""
    pieces = await _ask(llm)
    strange = [piece for piece in pieces if not isinstance(piece, str | Action | Usage | Finish)]
    expect(strange, [], "pieces other than text, Action, Finish and Usage")
    expect_true(_text(pieces).strip(), f"No text in {pieces!r}")


async def finish_comes_once_at_the_end(llm: LLM) -> None:
    """Yield at most one Finish, after all text and calls, with a known reason and JSON data."""
    pieces = await _ask(llm)
    ends = [index for index, piece in enumerate(pieces) if isinstance(piece, Finish)]
    if ends:
        expect(len(ends), 1, "Finish pieces of one call")
        late = [piece for piece in pieces[ends[0] + 1 :] if not isinstance(piece, Usage)]
        expect(late, [], "pieces other than Usage after the Finish")
        finish = pieces[ends[0]]
        assert isinstance(finish, Finish)
        expect_true(finish.reason in get_args(FinishReason), f"{finish.reason!r} is unknown")
        expect_true(_is_json(finish), "provider_data must hold JSON values")


async def usage_comes_last_and_once_per_request(llm: LLM) -> None:
    """Yield the Usage of a response as the last piece; it counts requests, and is not negative."""
    pieces = await _ask(llm)
    usages = [piece for piece in pieces if isinstance(piece, Usage)]
    if usages:
        expect_true(isinstance(pieces[-1], Usage), "Usage must come last")
        said = next((i for i, piece in enumerate(pieces) if not isinstance(piece, Usage)), 0)
        late = [piece for piece in pieces[said:] if isinstance(piece, Usage)]
        expect(len(late), 1, "usages after the first text (retries report theirs before it)")
    for usage in usages:
        expect_true(usage.requests >= 1, "Usage must count its request")
        expect_true(usage.cost is None or usage.cost >= 0, f"The cost of {usage!r} is negative")
        expect_true(0 <= usage.cached_tokens <= usage.input_tokens, "Too many cached tokens")
        expect_true(0 <= usage.reasoning_tokens <= usage.output_tokens, "Too many reasoning tokens")


async def only_offered_tools_are_called(llm: LLM) -> None:
    """Yield no Action for a tool that was not offered in ``tools``."""
    expect(_calls(await _ask(llm)), [], "calls without tools")
    called = _calls(await _ask(llm, [Message.user("Look up 'state'.")], offer=True))
    expect({action.name for action in called} - {"look_up"}, set(), "calls of other tools")


async def calls_have_unique_ids(llm: LLM) -> None:
    """Give each Action of a response an ID of its own."""
    asked = [Message.user("Look up 'state' and 'net', both at once.")]
    ids = [action.id for action in _calls(await _ask(llm, asked, offer=True))]
    expect(sorted(set(ids)), sorted(ids), "IDs of calls")


async def tool_results_are_accepted(llm: LLM) -> None:
    """Convert messages with calls, and with results by their call IDs, to those of the provider."""
    first, second = (Action(name="look_up", args={"word": word}) for word in ("a", "b"))
    messages = [
        *HELLO,
        Message.assistant("", tool_calls=[first, second]),
        Message.tool("the first letter", first),
        Message.tool("No such word", second, is_error=True),
        Message.user("And now answer."),
    ]
    expect_true(await _ask(llm, messages, offer=True), "It does not answer")


async def structured_output_can_be_requested(llm: LLM) -> None:
    """Ask for the JSON of ``output_type``, or ignore it; do not fail."""
    asked = [Message.user('Answer with JSON: {"answer": "…"}')]
    expect_true(_text(await _ask(llm, asked, output_type=_Shape)), "It does not answer")


async def messages_and_tools_are_not_modified(llm: LLM) -> None:
    """Copy what you get before you change it: it belongs to the memory."""
    messages, tool = list(HELLO), FunctionTool(look_up)
    before = (list(HELLO), str(tool.to_dict()))
    await _ask(llm, messages, tools=[tool])
    expect((messages, str(tool.to_dict())), before, "messages and tools after the call")


async def concurrent_calls_both_answer(llm: LLM) -> None:
    """Keep the data of a call in local variables: one object serves many calls at once."""
    answers = await both(partial(_ask, llm))
    said = [bool(_text(pieces).strip()) for pieces in answers]
    expect(said, [True, True], "whether both answered")


async def a_stream_can_be_closed_early(llm: LLM) -> None:
    """A stream that is closed early leaves a model that can be asked again."""
    async with closing(llm.stream(HELLO)) as pieces:
        await anext(pieces)
    expect_true(await _ask(llm), "It does not answer afterwards")


async def nothing_stays_open_across_a_yield(llm: Any) -> None:
    """Close timeouts and task groups before each yield: pieces are read by different tasks."""
    whole, left = llm.stream(HELLO), llm.stream(HELLO)
    ended = False

    async def read(stream: AsyncIterator[Piece]) -> None:
        nonlocal ended
        ended = await anext(stream, None) is None

    try:
        while not ended:
            await _in_a_task(read, whole)
        await _in_a_task(read, left)
        await _in_a_task(left.aclose)
    finally:
        for stream in (whole, left):
            with suppress(Exception):
                await stream.aclose()


async def cancellation_passes_through(llm: LLM) -> None:
    """Let a cancellation pass: catch Exception, not BaseException, or raise it again."""
    said: list[Piece] = []
    swallowed = False
    with anyio.CancelScope() as scope:
        async with closing(llm.stream(HELLO)) as pieces:
            said.append(await anext(pieces))
            scope.cancel()
            said.extend([piece async for piece in pieces])  # raises, unless that is all
            swallowed = True
            await anyio.lowlevel.checkpoint()
    expect_true(scope.cancelled_caught, "The call was not cancelled")
    whole = await _ask(llm)
    expect_true(whole, "It does not answer afterwards")
    missing = _endings(whole) - _endings(said)
    expect_true(
        not (swallowed and missing),
        f"A cancelled call ended like a complete one, without {' and '.join(sorted(missing))}",
    )


async def it_can_be_used_after_closing(llm: LLM) -> None:
    """aclose() may be called twice, and the next call connects again."""
    await llm.aclose()
    await llm.aclose()
    expect_true(await _ask(llm), "It does not answer afterwards")


class _Shape(BaseModel):
    answer: str


async def _ask(
    llm: LLM, messages: Sequence[Message] = HELLO, *, offer: bool = False, **options: Any
) -> list[Piece]:
    if offer and llm.supports_tools:
        options["tools"] = [FunctionTool(look_up)]
    async with closing(llm.stream(messages, **options)) as pieces:
        return [piece async for piece in pieces]


async def _in_a_task(function: Callable[..., Coroutine[Any, Any, object]], *arguments: Any) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(function, *arguments)


def _endings(pieces: Sequence[Piece]) -> set[str]:
    return {type(piece).__name__ for piece in pieces if isinstance(piece, Finish | Usage)}


def _is_json(finish: Finish) -> bool:
    return bool(json.loads(json.dumps(dict(finish.provider_data))) == dict(finish.provider_data))


def _text(pieces: Sequence[Piece]) -> str:
    return "".join(piece for piece in pieces if isinstance(piece, str))


def _calls(pieces: Sequence[Piece]) -> list[Action]:
    return [piece for piece in pieces if isinstance(piece, Action)]


MODEL = behaviours(globals())
