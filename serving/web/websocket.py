"""A session over a WebSocket: requests in, events out."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Literal, TypeAlias

import anyio
from pydantic import Field, TypeAdapter, ValidationError
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from agent_brain.errors import AgentBrainError
from agent_brain.serving.session import Session
from agent_brain.serving.web.requests import (
    HttpError,
    as_http_error,
    deps_of,
    invalid_json,
    settings_of,
    use_session,
)
from agent_brain.serving.web.routes import Body, ResumeRun, SendMessage, UserMessage, current_run
from agent_brain.serving.web.streams import ndjson_line

GONE = 1001  # codes for closing: the session has ended, or the server ends
NO_TEXT = 1003
INVALID = 1008
TOO_SLOW = 1013  # "try again later"


class Start(Body):
    """Start a run."""

    type: Literal["run"]
    task: str | UserMessage
    when_busy: Literal["refuse", "queue"] | None = None  # nothing else is read while one waits


class Resume(ResumeRun):
    """Continue a run."""

    type: Literal["resume"]


class SendToRun(SendMessage):
    """Send the run a message."""

    type: Literal["message"]


class Stop(Body):
    """Stop or cancel the run."""

    type: Literal["stop", "cancel"]


Command: TypeAlias = Annotated[Start | Resume | SendToRun | Stop, Field(discriminator="type")]
_commands: TypeAdapter[Command] = TypeAdapter(Command)


async def session_socket(socket: WebSocket) -> None:
    """Serve a session: commands in, events out.

    A client sends ``{"type": "run", "task": …}``, ``resume``, ``message``, ``stop`` or ``cancel``,
    and receives ``{"id": …, "event": …}`` for each event of the session, and ``{"error": …}``.
    Runs are driven by the server; the query parameter ``after`` asks for events that were missed.
    """
    try:
        async with use_session(socket) as session:
            chosen = next(
                (p for p in socket.scope["subprotocols"] if p.startswith("bearer.")), None
            )
            await socket.accept(subprotocol=chosen)
            code = await _converse(socket, session)
        with anyio.move_on_after(settings_of(socket).limits.stall):
            await socket.close(code)
    except (HttpError, AgentBrainError):  # before it was accepted: the client sees a status of 403
        await socket.close(INVALID)
    except (WebSocketDisconnect, RuntimeError):  # it has left, or Starlette knows that it has
        if WebSocketState.DISCONNECTED not in (socket.client_state, socket.application_state):
            raise


async def _converse(socket: WebSocket, session: Session) -> int:
    """Send events and carry out commands until one of them ends; return the code for closing."""
    codes: list[int] = []
    async with anyio.create_task_group() as tasks:

        async def until_end(work: Callable[[WebSocket, Session], Awaitable[int]]) -> None:
            try:
                codes.append(await work(socket, session))
            except WebSocketDisconnect:
                codes.append(GONE)
            tasks.cancel_scope.cancel()

        tasks.start_soon(until_end, _send_events)
        tasks.start_soon(until_end, _receive)
    return codes[0]


async def _send_events(socket: WebSocket, session: Session) -> int:
    with session.events(socket.query_params.get("after")) as reader:
        while batch := await reader.batch():
            if not await _send(socket, *(ndjson_line(item).decode() for item in batch)):
                return TOO_SLOW
    return GONE


async def _receive(socket: WebSocket, session: Session) -> int:
    while True:
        try:
            text = await socket.receive_text()
        except KeyError:  # it sent bytes
            return NO_TEXT
        try:
            await _carry_out(_commands.validate_json(text), session, deps_of(socket))
        except Exception as error:
            wrong = invalid_json(error) if isinstance(error, ValidationError) else error
            told = json.dumps(as_http_error(wrong).body(), ensure_ascii=False)
            if not await _send(socket, told):
                return TOO_SLOW


async def _send(socket: WebSocket, *texts: str) -> bool:
    """Send texts; return whether the client took them in time."""
    with anyio.move_on_after(settings_of(socket).limits.stall):
        for text in texts:
            await socket.send_text(text)
        return True
    return False


async def _carry_out(command: Command, session: Session, deps: object) -> None:
    if isinstance(command, Start):
        task = command.task if isinstance(command.task, str) else command.task.to_message()
        await session.start(task, deps=deps, when_busy=command.when_busy or "refuse")
    elif isinstance(command, Resume):
        await session.start_resume(**command.decisions(), deps=deps, when_busy="refuse")
    elif isinstance(command, SendToRun):
        current_run(session).send(command.to_message())
    elif command.type == "stop":
        current_run(session).stop()
    else:
        current_run(session).cancel()


def routes() -> list[BaseRoute]:
    """Return the route."""
    return [WebSocketRoute("/sessions/{session}/ws", session_socket)]
