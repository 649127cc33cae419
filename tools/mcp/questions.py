"""Questions of a server to a person (elicitation). Needs the extra ``mcp``.

A person may answer tomorrow, in another process. So nothing is held open for the answer: the run
waits for it in its memory, and then the call is made again, with the answers so far. That is how
the newer protocol has it. A server of the older one waits for an answer while the call is open; it
is told that the question was dismissed, which ends the call, and its result is dropped.

A form of MCP is flat: an object whose fields are texts, numbers, booleans and choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from mcp.client import ClientRequestContext
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from mcp_types import (
    INVALID_REQUEST,
    URL_ELICITATION_REQUIRED,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
)
from mcp_types import ErrorData as Error
from mcp_types.version import is_version_at_least
from pydantic import JsonValue, ValidationError

from agent_brain.common.errors import ToolDefinitionError
from agent_brain.tools.answers import choices_of, fields_of, plain_schema, read_answer, words_for
from agent_brain.tools.errors import InputNeeded

CALLS_AGAIN = "2026-07-28"  # since this version of the protocol a client repeats the call itself
SEVERAL = "several of its calls ran, and it does not say which one asks: make that call again alone"

ANSWER = "answer"
"""The field of a form for an answer that is not a form itself."""

_KEPT = (
    *("type", "title", "description", "enum", "default"),
    *("minLength", "maxLength", "minimum", "maximum"),
)
_FORMATS = ("date", "date-time", "email", "uri")

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


def as_question(params: ElicitRequestParams) -> tuple[str, dict[str, Any]]:
    """Return what a server asks, and the JSON Schema of the answer, for ``ToolContext.ask``.

    To a form without fields, and to an address, the answer is yes or no. Null declines a form.
    """
    if not isinstance(params, ElicitRequestFormParams):
        return f"{params.message}\n\nOpen {params.url} first.", {"type": "boolean"}
    form = params.requested_schema
    if not form.get("properties"):
        return params.message, {"type": "boolean"}
    return params.message, {"anyOf": [form, {"type": "null"}]}


def as_result(params: ElicitRequestParams, answer: Any) -> ElicitResult:
    """Return what the server is told of an answer to :func:`as_question`."""
    if answer is None or answer is False:
        return ElicitResult(action="decline")
    if not isinstance(params, ElicitRequestFormParams):
        return ElicitResult(action="accept")
    return ElicitResult(action="accept", content={} if answer is True else answer)


def as_form(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the ``requestedSchema`` that asks for an answer.

    One that no flat form can hold is asked for as JSON, in a text.

    Args:
        schema: The JSON Schema of the answer; None for free text.
    """
    fields = _flat_fields(schema)
    if fields is None:
        fields = {ANSWER: _single_field(schema)}
        required = [ANSWER]
    else:
        required = [field.name for field in fields_of(schema or {}) or () if field.required]
    return {"type": "object", "properties": fields, "required": required}


def read_form(content: Mapping[str, Any], schema: Mapping[str, Any] | None) -> JsonValue:
    """Return the answer in the ``content`` of a form that :func:`as_form` made.

    Raises:
        ValueError: What is wrong with it.
    """
    if schema is None and not str(content.get(ANSWER, "")).strip():
        raise ValueError("it is empty")
    if _flat_fields(schema) is None:
        return read_answer(schema, content.get(ANSWER, ""))
    found = {}
    for field in fields_of(schema or {}) or ():
        value = content.get(field.name)
        if value is not None and (field.required or value != ""):
            found[field.name] = read_answer(field.schema, value)
    return read_answer(schema, found)


def _flat_fields(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the fields of a form; None if the answer is not a form, or not a flat one."""
    fields = fields_of(schema or {})
    found = {field.name: _primitive(field.schema) for field in fields or ()}
    return found if fields is not None and all(found.values()) else None


def _single_field(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    if schema is None:
        return {"type": "string", "title": "Answer", "minLength": 1}
    return _primitive(schema) or {
        "type": "string",
        "title": "Answer",
        "description": words_for(schema),
    }


def _primitive(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema of a field of a form of MCP; None if there is no such field."""
    plain, _ = plain_schema(schema)
    if choices := choices_of(schema):  # a choice is a text; ours are read from their names
        preset = next((name for value, name in choices if value == plain.get("default")), None)
        plain |= {"type": "string", "enum": [name for _, name in choices], "default": preset}
    elif plain.get("type") not in ("string", "number", "integer", "boolean"):
        return None
    field = {key: plain[key] for key in _KEPT if plain.get(key) is not None}
    if plain.get("format") in _FORMATS:
        field["format"] = plain["format"]
    return field
