"""Records the calls of a run, of models and of tools, in the memory of the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING, Any

import anyio

from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.common.ids import new_id
from agent_brain.common.secrets import Scrubber, get_logger
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.memories.runs.work import EMBEDDING
from agent_brain.memories.store.many import in_thread_if_many
from agent_brain.memories.trace.recorded_call import RecordedCall, pack_vectors
from agent_brain.states.events import Position
from agent_brain.states.hooks import EmbeddingRequest, ModelRequest
from agent_brain.states.models.call_data import (
    RequestReader,
    error_to_data,
    hash_of,
    hide_in_action,
    hide_secrets,
    joined,
    pieces_to_data,
    tool_result,
)
from agent_brain.states.models.llm import Piece
from agent_brain.states.usage import Usage
from agent_brain.states.work import close_stream, closing
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

if TYPE_CHECKING:
    from agent_brain.memories.stored import StoredMemory
    from agent_brain.states.hooks import Hook

log = get_logger(__name__)
FEW = 50  # messages that are read on the event loop

Send = Callable[[ModelRequest], AsyncIterator[Piece]]
Embed = Callable[[EmbeddingRequest], Awaitable[tuple[Any, Usage]]]


class CallTrace(ABC):
    """What stands between a run and its models and tools: it is told of every call.

    Attributes:
        replays: Whether it answers the model calls itself: then only the hooks around model calls
            are called.
    """

    replays = False

    @abstractmethod
    def model_call(self, request: ModelRequest, send: Send) -> AsyncIterator[Piece]:
        """Return the pieces of a model call, of which the hooks have let the request pass."""

    async def unsent(self, request: ModelRequest) -> None:
        """Take note of a model call that was left before it was sent."""

    async def answered(
        self, request: ModelRequest, pieces: Sequence[Piece], by: Hook, after: Sequence[Hook]
    ) -> None:
        """Take note of a model call that was not made, as a hook has answered it.

        Args:
            request: The request.
            pieces: The answer.
            by: The hook.
            after: The hooks after it, which did not see the request.
        """

    @abstractmethod
    async def embed(self, request: EmbeddingRequest, send: Embed) -> tuple[Any, Usage]:
        """Return the vectors of texts, and what they used."""

    def attempt(self, request: ModelRequest, pieces: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Return the pieces of an attempt of a model call."""
        return pieces

    def tools(self, tools: Iterable[BaseTool]) -> Iterable[BaseTool]:
        """Return the tools that a net brings, as they are to be called."""
        return tools

    async def tool_results(
        self, at: Position, memory: Memory, results: Sequence[tuple[Action, Message, bool]]
    ) -> None:
        """Take note of the results of a round of calls.

        Args:
            at: The step.
            memory: The memory that they are for.
            results: Each call as the model asked for it, its result, and whether it was cut off.
        """


class CallInProgress:
    """A model call that is recorded while its pieces pass.

    Args:
        request: The request.
        scrubber: Hides the secrets of the model.

    Attributes:
        attempts: The attempts so far.
    """

    def __init__(self, request: RecordedCall, scrubber: Scrubber) -> None:
        self._request = request
        self._scrubber = scrubber
        self._pieces: list[Piece] = []
        self._error: Exception | None = None
        self._cut = True  # until it has ended
        self._began = monotonic()
        self.attempts: list[dict[str, Any]] = []

    async def through(self, pieces: AsyncIterator[Piece]) -> AsyncGenerator[Piece, None]:
        """Yield the pieces, and note how they end."""
        try:
            async with closing(pieces):
                async for piece in pieces:
                    self._pieces.append(piece)
                    yield piece
            self._cut = False
        except Exception as error:
            self._error, self._cut = error, False
            raise

    def recorded(self) -> RecordedCall:
        """Return the call as far as it has come."""
        several = len(self.attempts) > 1 or any(a["error"] for a in self.attempts)
        error, scrubber = self._error, self._scrubber
        return self._request.model_copy(
            update={
                "seconds": round(monotonic() - self._began, 3),
                "response": tuple(pieces_to_data(self._pieces, scrubber)),
                "error": None if error is None else error_to_data(error, scrubber),
                "attempts": tuple(self.attempts) if several else (),
                "cut": self._cut,
            }
        )


class ModelTrace(CallTrace):
    """Records the calls of one part of a run: from its start, or a resume, to a stop.

    Args:
        memory: The memory of the run, which can record calls.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory: StoredMemory = memory  # type: ignore[assignment]  # the Brain has checked it
        self._part = new_id("part")
        self._reader = RequestReader()
        self._calls: dict[str, CallInProgress] = {}  # by the ID of the response

    async def model_call(self, request: ModelRequest, send: Send) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of a call, and record it when it has ended in any way."""
        call = CallInProgress(await self._read(request), self._reader.scrubber_of(request.llm))
        self._calls[request.response_id] = call
        try:
            async with closing(call.through(send(request))) as pieces:
                async for piece in pieces:
                    yield piece
        except BaseException as error:
            with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                await self._record_beside(_shortened(call.recorded()), error)
            raise
        finally:
            self._calls.pop(request.response_id, None)
        with anyio.CancelScope(shield=True):  # it was counted
            await self._memory.record_call(_shortened(call.recorded()))

    async def unsent(self, request: ModelRequest) -> None:
        """Record a call that was left before it was sent."""
        with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
            call = (await self._read(request)).model_copy(update={"cut": True})
            await self._record_beside(call, GeneratorExit())

    async def answered(
        self, request: ModelRequest, pieces: Sequence[Piece], by: Hook, after: Sequence[Hook]
    ) -> None:
        """Record the answer of a hook that is not called in a replay."""
        if by.in_replay:
            return
        said = pieces_to_data(pieces, self._reader.scrubber_of(request.llm))
        changed: dict[str, Any] = {"response": tuple(said)}
        if any(hook.in_replay for hook in after):  # which may change the request in a replay
            changed["request_hash"] = ""
        await self._memory.record_call((await self._read(request)).model_copy(update=changed))

    async def attempt(
        self, request: ModelRequest, pieces: AsyncIterator[Any]
    ) -> AsyncGenerator[Any, None]:
        """Yield the pieces of an attempt, and note how it ended."""
        llm = request.llm
        noted: dict[str, Any] = {"number": request.attempt, "model": llm.model, "error": None}
        if (call := self._calls.get(request.response_id)) is not None:
            call.attempts.append(noted)
        began = monotonic()
        try:
            async for piece in pieces:
                yield piece
        except Exception as error:
            noted["error"] = error_to_data(error, self._reader.scrubber_of(llm))
            raise
        finally:
            noted["seconds"] = round(monotonic() - began, 3)
            await close_stream(pieces)

    async def embed(self, request: EmbeddingRequest, send: Embed) -> tuple[Any, Usage]:
        """Return the vectors of texts, and record them."""
        scrubber, began = self._reader.scrubber_of(None), monotonic()
        texts = [scrubber.text(text) for text in request.texts]
        call = RecordedCall(
            **self._place(request.at, request.memory),
            response_id=request.response_id,
            purpose=EMBEDDING,
            model=request.model,
            messages=tuple(map(Message.user, texts)),
            request_hash=hash_of({"model": request.model, "texts": texts}),
        )

        def ended(**how: Any) -> RecordedCall:
            return call.model_copy(update={"seconds": round(monotonic() - began, 3), **how})

        try:
            vectors, usage = await send(request)
        except Exception as error:
            await self._record_beside(ended(error=error_to_data(error, scrubber)), error)
            raise
        made = [] if request.embedder.local else pack_vectors(vectors)
        await self._memory.record_call(ended(response=(*made, {"usage": asdict(usage)})))
        return vectors, usage

    async def tool_results(
        self, at: Position, memory: Memory, results: Sequence[tuple[Action, Message, bool]]
    ) -> None:
        """Record the results of a round of calls, whole, in one write."""
        place, scrubber = self._place(at, memory), self._reader.scrubber_of(None)
        in_session = memory.control is self._memory.control and self._memory.durable
        calls: list[RecordedCall] = []
        for action, message, cut in results:
            result = tool_result(message)
            kept = {} if in_session else {"attachments": result.attachments}
            hidden = hide_secrets(result, scrubber).model_copy(
                update={**kept, "metadata": result.metadata}
            )
            asked = hide_in_action(action, scrubber)
            calls.append(RecordedCall(**place, action=asked, messages=(hidden,), cut=cut))
        await self._memory.record_call(*calls)

    async def _read(self, request: ModelRequest) -> RecordedCall:
        """Return a request as a call that has no response yet."""
        place = self._place(request.at, request.memory)
        place |= {"response_id": request.response_id, "purpose": request.purpose}
        return (await read_request(self._reader, request)).model_copy(update=place)

    def _place(self, at: Position, memory: Memory | None) -> dict[str, Any]:
        """Return the fields that say where a call was made."""
        control = None if memory is None else memory.control
        return {
            "run_id": at.run_id,
            "step": at.step,
            "state": at.state,
            "path": at.path,
            "part": self._part,
            "branch": "" if control is None else control.branch,
            "move": 0 if control is None else control.moves,
        }

    async def _record_beside(self, call: RecordedCall, error: BaseException) -> None:
        """Record a call that failed; if that fails too, only note it."""
        try:
            await self._memory.record_call(call)
        except Exception as trouble:
            if isinstance(error, Exception):
                error.add_note(f"Besides, the model call could not be recorded: {trouble!r}")
            else:
                log.warning("A model call that was cut off could not be recorded: %s", trouble)


def _shortened(call: RecordedCall) -> RecordedCall:
    """Return ``call`` with the chunks of its texts joined."""
    return call.model_copy(update={"response": tuple(joined(call.response))})


async def read_request(reader: RequestReader, request: ModelRequest) -> RecordedCall:
    """Return a request as data, in a thread if it is long."""
    return await in_thread_if_many(request.messages, lambda _: reader.read(request), FEW)
