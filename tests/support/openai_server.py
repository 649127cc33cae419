"""A real HTTP server on loopback that speaks the OpenAI protocol from a script.

    with OpenAIServer([Reply("Hel", "lo"), Failure(429, headers={"Retry-After": "0"})]) as server:
        ...  # point a client at server.url; each request takes the next response of the script

A reply is sent part by part, each as one server-sent event: text is content, the other parts are
below. The server runs in a thread of its own, so it serves any number of clients on any event loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeAlias

from aiohttp import web

PATIENCE = 180.0
"""Seconds after which waiting for the server, or for a client to leave, is given up."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Text that the model thinks before it answers (``reasoning_content``)."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """One fragment of one tool call, as it is sent: fields without a value are left out."""

    index: int
    arguments: str | None = None
    id: str | None = None
    name: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fragment on the wire."""
        function = {"name": self.name, "arguments": self.arguments}
        wire: dict[str, Any] = {"index": self.index}
        if self.id is not None:
            wire |= {"id": self.id, "type": "function"}
        return wire | {"function": {k: v for k, v in function.items() if v is not None}}


@dataclass(frozen=True, slots=True)
class Cut:
    """The TCP connection is broken off here, without an end of the response."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing more is sent until the client leaves or :meth:`OpenAIServer.release` is called."""


@dataclass(frozen=True, slots=True)
class Raw:
    """The data of one event, sent unchanged."""

    data: str


Part: TypeAlias = str | Reasoning | CallDelta | Cut | Stall | Raw


class Reply:
    """A streamed answer: its parts in order, then how it ended and what it used.

    Args:
        parts: What is sent, one event each.
        usage: Tokens read and written; sent if the client asks for usage. None sends none.
        finish: The finish reason; None leaves it to the parts: ``tool_calls`` if there is a call.
    """

    def __init__(
        self, *parts: Part, usage: tuple[int, int] | None = (11, 7), finish: str | None = None
    ) -> None:
        self.parts = parts
        self.usage = usage
        called = any(isinstance(part, CallDelta) for part in parts)
        self.finish = finish or ("tool_calls" if called else "stop")


@dataclass(frozen=True)
class Failure:
    """An HTTP error with an OpenAI-style body."""

    status: int
    message: str = "The server was told to fail"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refuse:
    """The connection is closed, or with ``stall`` kept silent, before a response begins."""

    stall: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A response that is sent unchanged: another protocol's, or a gateway's own."""

    body: str
    content_type: str = "text/html"
    status: int = 200


Response: TypeAlias = Reply | Failure | Refuse | Page

CONTEXT_LENGTH = Failure(
    400,
    "This model's maximum context length is 4097 tokens. However, your messages resulted in 5000.",
    "context_length_exceeded",
)


def tool_calls(*calls: tuple[str, str, str], pieces: int = 3) -> tuple[CallDelta, ...]:
    """Parallel calls (id, name, arguments as text), split into fragments that alternate.

    Args:
        calls: The calls, numbered from 0 in this order.
        pieces: Fragments that the arguments of each call are split into.
    """
    heads = [CallDelta(i, "", id=call[0], name=call[1]) for i, call in enumerate(calls)]
    split = [_split(arguments, pieces) for _, _, arguments in calls]
    rounds = zip(*split, strict=True)
    return (*heads, *(CallDelta(i, text) for texts in rounds for i, text in enumerate(texts)))


def _split(text: str, pieces: int) -> list[str]:
    size = -(-len(text) // pieces)
    return [text[n * size : (n + 1) * size] for n in range(pieces)]


@dataclass(frozen=True)
class Request:
    """A request as it came in; the names of the headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class OpenAIServer:
    """Serves the script; use it as a context manager.

    ``/v1/chat/completions`` takes the next response; where the script is over it answers 400 and
    says so. ``/v1/embeddings`` gives each text a vector of its own, ``/v1/models`` a list. What is
    posted anywhere else takes the next response too, which is a :class:`Page` then.

    Args:
        script: The responses in order; may be endless.
        dimension: Length of the vectors.

    Attributes:
        requests: What came in, in order.
        answered: How many replies were sent to their ends.
        left: How many clients went away before their response was complete.
    """

    def __init__(self, script: Iterable[Response] = (), *, dimension: int = 8) -> None:
        self.requests: list[Request] = []
        self.answered = self.left = 0
        self._script: Iterator[Response] = iter(script)
        self._dimension = dimension
        self._news = threading.Condition()
        self._address: Future[str] = Future()
        self._thread = threading.Thread(target=self._serve, name="openai-server")

    def __enter__(self) -> Self:
        self._thread.start()
        self._base = self._address.result(PATIENCE)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)

    @property
    def url(self) -> str:
        """The base URL for clients: ``http://127.0.0.1:…/v1``."""
        return f"{self._base}/v1"

    def release(self) -> None:
        """Let every reply that stalls, now or later, continue."""
        self._loop.call_soon_threadsafe(self._released.set)

    async def wait_until_left(self, count: int = 1) -> None:
        """Wait until ``count`` clients have left in the middle of a response (asyncio).

        Raises:
            TimeoutError: They did not.
        """
        await asyncio.to_thread(self._await, lambda: self.left >= count)

    async def wait_until_answered(self, count: int = 1) -> None:
        """Wait until ``count`` replies were sent to their ends (asyncio).

        Raises:
            TimeoutError: They were not.
        """
        await asyncio.to_thread(self._await, lambda: self.answered >= count)

    async def wait_until_asked(self, count: int = 1) -> None:
        """Wait until ``count`` requests have come in (asyncio).

        Raises:
            TimeoutError: They did not.
        """
        await asyncio.to_thread(self._await, lambda: len(self.requests) >= count)

    def _await(self, happened: Callable[[], bool]) -> None:
        with self._news:
            if not self._news.wait_for(happened, PATIENCE):
                raise TimeoutError(f"{len(self.requests)} requests came, {self.left} clients left")

    def _serve(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            if self._address.done():
                raise
            self._address.set_exception(error)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop, self._released = asyncio.Event(), asyncio.Event()
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/{path:.*}", self._chat)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            self._address.set_result(f"http://{host}:{port}")
            await self._stop.wait()
        finally:
            await runner.cleanup()

    async def _record(self, request: web.Request) -> dict[str, Any]:
        body = await request.json() if request.can_read_body else {}
        headers = {name.lower(): value for name, value in request.headers.items()}
        with self._news:
            self.requests.append(Request(request.path, headers, body))
            self._news.notify_all()
        return dict(body)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await self._record(request)
        response = next(self._script, Failure(400, "The script of the server is over"))
        if isinstance(response, Failure):
            return _failed(response)
        if isinstance(response, Page):
            return web.Response(
                text=response.body, content_type=response.content_type, status=response.status
            )
        try:
            if isinstance(response, Refuse):
                if response.stall:
                    await self._released.wait()
                return _cut(request, web.StreamResponse())
            return await self._stream(request, body, response)
        except (asyncio.CancelledError, ConnectionError):
            if not self._stop.is_set():
                with self._news:
                    self.left += 1
                    self._news.notify_all()
            raise

    async def _stream(
        self, request: web.Request, body: dict[str, Any], reply: Reply
    ) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        for part in reply.parts:
            if isinstance(part, Cut):
                return _cut(request, stream)
            if isinstance(part, Stall):
                await self._released.wait()
            else:
                data = part.data if isinstance(part, Raw) else _delta(body["model"], _wire(part))
                await _send(stream, data)
        await _send(stream, _delta(body["model"], {}, reply.finish))
        if reply.usage is not None and (body.get("stream_options") or {}).get("include_usage"):
            await _send(stream, _usage(body["model"], *reply.usage))
        await _send(stream, "[DONE]")
        await stream.write_eof()
        with self._news:
            self.answered += 1
            self._news.notify_all()
        return stream

    async def _embeddings(self, request: web.Request) -> web.Response:
        body = await self._record(request)
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        data = [
            {"object": "embedding", "index": n, "embedding": embed(text, self._dimension)}
            for n, text in enumerate(texts)
        ]
        tokens = sum(map(len, texts))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return web.json_response(
            {"object": "list", "data": data, "model": body["model"], "usage": usage}
        )

    async def _models(self, request: web.Request) -> web.Response:
        await self._record(request)
        models = [{"id": "scripted", "object": "model", "created": 1, "owned_by": "tests"}]
        return web.json_response({"object": "list", "data": models})


def embed(text: str, dimension: int) -> list[float]:
    """A vector that depends on the text alone: numbers from -1 to 1."""
    digest = hashlib.shake_256(text.encode()).digest(dimension)
    return [byte / 127.5 - 1 for byte in digest]


def _wire(part: str | Reasoning | CallDelta) -> dict[str, Any]:
    if isinstance(part, str):
        return {"content": part}
    if isinstance(part, Reasoning):
        return {"reasoning_content": part.text}
    return {"tool_calls": [part.to_dict()]}


def _event(model: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}


def _delta(model: str, delta: dict[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    return json.dumps({**_event(model), "choices": [choice]})


def _usage(model: str, read: int, written: int) -> str:
    usage = {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }
    return json.dumps({**_event(model), "choices": [], "usage": usage})


async def _send(stream: web.StreamResponse, data: str) -> None:
    await stream.write(f"data: {data}\n\n".encode())


def _failed(failure: Failure) -> web.Response:
    kind = "invalid_request_error" if failure.status < 500 else "server_error"
    error = {"message": failure.message, "type": kind, "param": None, "code": failure.code}
    return web.json_response({"error": error}, status=failure.status, headers=failure.headers)


def _cut(request: web.Request, stream: web.StreamResponse) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.close()
    return stream
