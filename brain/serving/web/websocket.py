"""A session over a WebSocket: requests in, events out."""

from __future__ import annotations

import json
from typing import Literal, TypeAlias

import anyio
from pydantic import TypeAdapter, ValidationError
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from agent_brain.errors import AgentBrainError
from agent_brain.serving.session import Session
from agent_brain.serving.web.errors import as_http_error
from agent_brain.serving.web.frames import ndjson_line
from agent_brain.serving.web.requests import (
    HttpError,
    deps_of,
    owner_args,
    sessions_of,
    settings_of,
)
from agent_brain.serving.web.routes import ResumeRun, SendMessage, StartRun
from agent_brain.tools.values import error_lines

TOO_SLOW = 1013  # "try again later"
INVALID = 1008


class Start(StartRun):
    """Start a run."""

    type: Literal["run"]


class Resume(ResumeRun):
    """Continue a run."""

    type: Literal["resume"]


class Send(SendMessage):
    """Send the run a message."""

    type: Literal["message"]


class Stop(SendMessage):
    """Stop or cancel the run."""

    type: Literal["stop", "cancel"]


Command: TypeAlias = Start | Resume | Send | Stop
_commands: TypeAdapter[Command] = TypeAdapter(Command)


async def session_socket(socket: WebSocket) -> None:
    """Serve a session: commands in, events out.

    A client sends ``{"type": "run", "task": …}``, ``resume``, ``message``, ``stop`` or ``cancel``,
    and receives ``{"id": …, "event": …}`` for each event of the session, and ``{"error": …}``.
    Runs are driven by the server; the query parameter ``after`` asks for events that were missed.
    """
    try:
        async with sessions_of(socket).use(
            socket.path_params["session"], **owner_args(socket)
        ) as session:
            chosen = next(
                (p for p in socket.scope["subprotocols"] if p.startswith("bearer.")), None
            )
            await socket.accept(subprotocol=chosen)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_send_events, socket, session, tasks.cancel_scope)
                await _receive(socket, session)
                tasks.cancel_scope.cancel()
            if socket.client_state is not WebSocketState.DISCONNECTED:
                await socket.close(TOO_SLOW)
    except (HttpError, AgentBrainError) as error:
        await socket.close(INVALID, as_http_error(error).message[:100])


async def _send_events(socket: WebSocket, session: Session, scope: anyio.CancelScope) -> None:
    stall = settings_of(socket).limits.stall
    with session.events(socket.query_params.get("after")) as reader:
        while batch := await reader.batch():
            with anyio.move_on_after(stall) as waiting:
                for item in batch:
                    await socket.send_text(ndjson_line(item).decode())
            if waiting.cancelled_caught:
                break
    scope.cancel()


async def _receive(socket: WebSocket, session: Session) -> None:
    while True:
        try:
            text = await socket.receive_text()
        except (WebSocketDisconnect, KeyError):  # it left, or sent bytes
            return
        try:
            await _carry_out(_commands.validate_json(text), session, deps_of(socket))
        except ValidationError as error:
            await _refuse(socket, HttpError(422, "invalid_request", "; ".join(error_lines(error))))
        except Exception as error:
            await _refuse(socket, as_http_error(error))


async def _carry_out(command: Command, session: Session, deps: object) -> None:
    if isinstance(command, Start):
        task = command.task if isinstance(command.task, str) else command.task.to_message()
        await session.start(task, deps=deps, when_busy=command.when_busy or "refuse")
    elif isinstance(command, Resume):
        chosen = command.model_dump(include={"approve", "deny", "edit", "input"})
        await session.start_resume(**chosen, deps=deps, when_busy="refuse")
    elif session.run is None:
        raise HttpError(409, "no_run", "No run is active in this session")
    elif isinstance(command, Send):
        session.run.send(command.to_message())
    elif command.type == "stop":
        session.run.stop()
    else:
        session.run.cancel()


async def _refuse(socket: WebSocket, error: HttpError) -> None:
    body = {"error": {"type": error.type, "message": error.message}}
    await socket.send_text(json.dumps(body, ensure_ascii=False))


def routes() -> list[BaseRoute]:
    """Return the route."""
    return [WebSocketRoute("/sessions/{session}/ws", session_socket)]
