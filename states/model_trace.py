"""Records what a run sends to its models and what they return, in the memory of the run."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from dataclasses import asdict
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.memories.runs.work import EMBEDDING
from agent_brain.memories.store.many import in_thread_if_many
from agent_brain.memories.trace.model_calls import (
    ModelCallRecord,
    ToolResultRecord,
    Traced,
    pack_vectors,
)
from agent_brain.states.aclosing import close_stream
from agent_brain.states.hook_requests import EmbeddingRequest, ModelRequest, ToolRequest
from agent_brain.states.models.call_data import error_to_data, hash_of, pieces_to_data
from agent_brain.states.models.llm import LLM, Piece, Thought
from agent_brain.states.sent_request import RequestReader, SentRequest
from agent_brain.states.usage import Usage
from agent_brain.tools.aio import CLEANUP_SECONDS
from agent_brain.tools.calling import Outcome
from agent_brain.tools.ids import new_id
from agent_brain.tools.secrets import get_logger

if TYPE_CHECKING:
    from agent_brain.memories.stored import StoredMemory

log = get_logger(__name__)
FEW = 50  # messages that are read on the event loop

Send = Callable[[ModelRequest], AsyncIterator[Piece]]
Embed = Callable[[EmbeddingRequest], Awaitable[tuple[Any, Usage]]]


class CallTrace(Protocol):
    """What stands between a run and its models and tools: it is told of every call.

    Attributes:
        replays: Whether it answers the model calls itself: then only the hooks around model calls
            are called.
    """

    replays: bool

    def model_call(self, request: ModelRequest, send: Send) -> AsyncIterator[Piece]:
        """Return the pieces of a model call, of which the hooks have let the request pass."""
        ...

    def attempt(
        self, response_id: str, llm: LLM, number: int, pieces: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Return the pieces of an attempt of a model call."""
        ...

    async def embed(self, request: EmbeddingRequest, send: Embed) -> tuple[Any, Usage]:
        """Return the vectors of texts, and what they used."""
        ...

    async def tool_call(self, request: ToolRequest, outcome: Outcome) -> None:
        """Take note of the result of a tool."""
        ...


class ModelTrace:
    """Records the calls of one part of a run: from its start, or a resume, to a stop.

    Args:
        memory: The memory of the run, which can record calls.
    """

    replays = False

    def __init__(self, memory: Memory) -> None:
        self._memory: StoredMemory = memory  # type: ignore[assignment]  # the Brain has checked it
        self._part = new_id("part")
        self._reader = RequestReader()
        self._attempts: dict[str, list[Mapping[str, Any]]] = {}  # by the ID of the response

    async def model_call(self, request: ModelRequest, send: Send) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of a call, and record it when it has ended in any way."""
        sent = await read_request(self._reader, request)
        call = _Call(self, request, sent)
        self._attempts[request.response_id] = call.attempts
        pieces = send(request)
        try:
            try:
                async for piece in pieces:
                    call.pieces.append(piece)
                    yield piece
            finally:
                await close_stream(pieces)
        except Exception as error:
            call.error = error
            await self._record_beside(call.record(), error)
            raise
        except BaseException:
            call.cut = True
            with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                await self._record_beside(call.record(), None)
            raise
        finally:
            self._attempts.pop(request.response_id, None)
        await self._memory.record_call(call.record())

    async def attempt(
        self, response_id: str, llm: LLM, number: int, pieces: AsyncIterator[Any]
    ) -> AsyncGenerator[Any, None]:
        """Yield the pieces of an attempt, and note how it ended."""
        noted: dict[str, Any] = {"number": number, "model": llm.model, "error": None}
        self._attempts.get(response_id, []).append(noted)
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
        time, began = datetime.now(UTC), monotonic()
        scrubber = self._reader.scrubber_of(None)

        def record(response: Sequence[Mapping[str, Any]], error: Any = None) -> ModelCallRecord:
            texts = [scrubber.text(text) for text in request.texts]
            return ModelCallRecord(
                **self.place(request),
                response_id=request.response_id,
                purpose=EMBEDDING,
                time=time,
                seconds=round(monotonic() - began, 3),
                model=request.model,
                messages=tuple(map(Message.user, texts)),
                request_hash=hash_of({"model": request.model, "texts": texts}),
                response=tuple(response),
                error=None if error is None else error_to_data(error, scrubber),
            )

        try:
            vectors, usage = await send(request)
        except Exception as error:
            await self._record_beside(record((), error), error)
            raise
        made = [] if request.embedder.local else pack_vectors(vectors)
        await self._memory.record_call(record([*made, {"usage": asdict(usage)}]))
        return vectors, usage

    def place(self, request: EmbeddingRequest | ModelRequest) -> dict[str, Any]:
        """Return the fields that say where a call was made."""
        at, control = request.at, None if request.memory is None else request.memory.control
        return {
            "run_id": at.run_id,
            "step": at.step,
            "state": at.state,
            "path": at.path,
            "part": self._part,
            "branch": "" if control is None else control.branch,
            "move": 0 if control is None else control.moves,
        }

    async def tool_call(self, request: ToolRequest, outcome: Outcome) -> None:
        """Record the result of a tool, unless the messages of the session have it."""
        memory = request.memory
        if memory is None or (memory.control is self._memory.control and self._memory.durable):
            return
        at, scrubber = request.at, self._reader.scrubber_of(None)
        content = outcome.content if outcome.full is None else outcome.full
        result = ToolResultRecord(
            run_id=at.run_id,
            step=at.step,
            state=at.state,
            path=at.path,
            part=self._part,
            branch=memory.control.branch,
            action=request.action.model_copy(
                update={"args": scrubber.data(dict(request.action.args))}
            ),
            content=scrubber.text(content),
            is_error=outcome.is_error,
            media=tuple(
                {"media_type": m.media_type, "data": m.data, "name": m.name} for m in outcome.media
            ),
        )
        await self._memory.record_call(result)

    async def _record_beside(self, call: Traced, error: Exception | None) -> None:
        """Record a call that failed; if that fails too, only note it."""
        try:
            await self._memory.record_call(call)
        except Exception as trouble:
            if error is None:
                log.warning("A model call that was cut off could not be recorded: %s", trouble)
            else:
                error.add_note(f"Besides, the model call could not be recorded: {trouble!r}")

    @property
    def reader(self) -> RequestReader:
        """Reads the requests."""
        return self._reader


class _Call:
    """A call in progress."""

    def __init__(self, trace: ModelTrace, request: ModelRequest, sent: SentRequest) -> None:
        self._trace = trace
        self._request = request
        self._sent = sent
        self._time, self._began = datetime.now(UTC), monotonic()
        self.pieces: list[Piece] = []
        self.attempts: list[Mapping[str, Any]] = []
        self.error: Exception | None = None
        self.cut = False

    def record(self) -> ModelCallRecord:
        """Return what is stored of the call."""
        request, sent = self._request, self._sent
        scrubber = self._trace.reader.scrubber_of(request.llm)
        several = len(self.attempts) > 1 or any(a["error"] for a in self.attempts)
        return ModelCallRecord(
            **self._trace.place(request),
            response_id=request.response_id,
            purpose=request.purpose,
            time=self._time,
            seconds=round(monotonic() - self._began, 3),
            model=request.llm.model,
            params=sent.params,
            messages=sent.messages,
            tools=sent.tools,
            output_schema=sent.output_schema,
            request_hash=sent.hash,
            response=tuple(pieces_to_data(joined(self.pieces), scrubber)),
            error=None if self.error is None else error_to_data(self.error, scrubber),
            attempts=tuple(self.attempts) if several else (),
            cut=self.cut,
        )


async def read_request(reader: RequestReader, request: ModelRequest) -> SentRequest:
    """Return a request as data, in a thread if it is long."""

    def read(messages: Sequence[Message]) -> SentRequest:
        return reader.read(request.llm, messages, request.tools, request.output_type)

    return await in_thread_if_many(request.messages, read, FEW)


def joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces with texts that follow each other joined."""
    found: list[Piece] = []
    texts: list[str] = []
    kind: type = str
    for piece in pieces:
        if isinstance(piece, str):
            its = Thought if isinstance(piece, Thought) else str
            if texts and its is not kind:
                found.append(kind("".join(texts)))
                texts = []
            kind = its
            texts.append(piece)
            continue
        if texts:
            found.append(kind("".join(texts)))
            texts = []
        found.append(piece)
    return [*found, kind("".join(texts))] if texts else found
