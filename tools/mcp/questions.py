"""Questions of a server to a person (elicitation). Needs the extra ``mcp``.

A person may answer tomorrow, in another process. So nothing is held open for the answer: the run
waits for it in its memory, and then the call is made again, with the answers so far. That is how
the newer protocol has it. A server of the older one waits for an answer while the call is open; it
is told that the question was dismissed, which ends the call, and its result is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from mcp.client import ClientRequestContext
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from mcp_types import (
    INVALID_REQUEST,
    URL_ELICITATION_REQUIRED,
    ElicitRequestParams,
    ElicitResult,
)
from mcp_types import ErrorData as Error
from mcp_types.version import is_version_at_least
from pydantic import ValidationError

from agent_brain.common.errors import ToolDefinitionError
from agent_brain.tools.errors import InputNeeded
from agent_brain.tools.mcp.elicitation import as_question, as_result

CALLS_AGAIN = "2026-07-28"  # since this version of the protocol a client repeats the call itself
SEVERAL = "several of its calls ran, and it does not say which one asks: make that call again alone"

Ask = Callable[[str, dict[str, Any]], Any]
"""Returns a person's answer to a question, of a JSON Schema; raises ``InputNeeded`` without one."""


class Asking:
    """What a server asks during a call.

    Attributes:
        needed: The question that has no answer yet.
        declined: What the model reads about questions that could not be passed on.
    """

    def __init__(self, server: str, ask: Ask) -> None:
        self.needed: InputNeeded | None = None
        self.declined: dict[str, None] = {}  # in order, each once
        self._server = server
        self._ask = ask

    def answer(self, params: ElicitRequestParams) -> ElicitResult | None:
        """Return a person's answer; None if there is none yet."""
        if self.needed is not None:
            return None
        prompt, schema = as_question(params)
        try:
            answer = self._ask(f"The MCP server {self._server!r} asks: {prompt}", schema)
        except InputNeeded as needed:
            self.needed = needed
            return None
        except ToolDefinitionError as error:
            return self.decline(params, f"its form cannot be used: {error}")
        return as_result(params, answer)

    def decline(self, params: ElicitRequestParams, why: str) -> ElicitResult:
        """Return what the server is told; the model reads why."""
        self.declined[f"[The server asked {params.message!r} and was declined: {why}]"] = None
        return ElicitResult(action="decline")

    def needed_for(self, error: Exception) -> InputNeeded | None:
        """Return the question that a call has failed for; older servers name addresses so."""
        if isinstance(error, MCPError) and error.code == URL_ELICITATION_REQUIRED:
            with suppress(ValidationError):
                for params in UrlElicitationRequiredError.from_error(error.error).elicitations:
                    self.answer(params)
        return self.needed


_current: ContextVar[Asking | None] = ContextVar("agent_brain_mcp_asking", default=None)


class Questions:
    """The calls that a server is running, and what it asks meanwhile.

    Args:
        server: The name of the server, for the person.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._running: list[Asking] = []

    @contextmanager
    def during_call(self, ask: Ask) -> Iterator[Asking]:
        """Inside, what the server asks belongs to a call."""
        asking = Asking(self._server, ask)
        self._running.append(asking)
        token = _current.set(asking)
        try:
            yield asking
        finally:
            _current.reset(token)
            self._running.remove(asking)

    async def answer(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | Error:
        """Answer the server: the ``elicitation_callback`` of its client.

        The older protocol does not say which call asks. If several run, none can be made again.
        """
        asking = _current.get()
        if asking not in self._running:
            asking = self._running[0] if len(self._running) == 1 else None
        if asking is None:
            for each in self._running:
                each.decline(params, SEVERAL)
            return ElicitResult(action="decline")
        answer = asking.answer(params)
        if answer is not None:
            return answer
        if is_version_at_least(context.session.protocol_version or "", CALLS_AGAIN):
            return Error(code=INVALID_REQUEST, message="The call is made again with the answer")
        return ElicitResult(action="cancel")
