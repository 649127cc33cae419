"""Translate messages and output types into litellm's form, for any provider."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from agent_brain.memories.message import Attachment, Message, Role
from agent_brain.tools.schemas import resolved

ORIGIN = "origin"
MESSAGE = "message"
CALLS = "calls"
SERVED = "served_calls"
"""Keys in the provider data of a message: the family of models that it is for, fields of the
message, fields of its calls by their ids, and calls that the provider has run itself."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_NO_NAME = "unnamed_tool"


def origin(model: str, provider: str | None) -> str:
    """Return the family of ``model``, whose members understand each other's provider data.

    It consists of the provider and the model's name without a version: ``"anthropic claude"``.
    """
    name = model.removeprefix(f"{provider}/")
    return f"{provider} {re.split(r'[-:@_0-9]', name, maxsplit=1)[0]}"


def to_wire(
    messages: Sequence[Message], *, family: str, sees: bool = True, max_images: int | None = None
) -> list[dict[str, Any]]:
    """Return the messages of a request.

    Empty texts are left out: some providers reject them, and litellm would replace them by a
    sentence of its own. Tool names that a model made up are cleaned, since providers reject a whole
    request for one. Pictures that are not sent, and answers of pictures alone, leave a note.

    Args:
        messages: The conversation.
        family: The :func:`origin` of the model. Provider data of other families is not sent.
        sees: Whether the model accepts pictures.
        max_images: Number of pictures to send, the newest; None for all.
    """
    left = max_images
    wire: list[dict[str, Any]] = []
    for message in reversed(messages):
        if message.attachments and message.role is not Role.ASSISTANT:
            message, left = _with_pictures(message, left if sees else 0, sees=sees)
        own = message.attachments if message.role is Role.ASSISTANT else ()
        entry = (message.model_copy(update={"attachments": ()}) if own else message).to_dict()
        if message.role is Role.ASSISTANT:
            if own and sees and "gemini" in family:  # the models that draw, and are asked for more
                entry["images"] = [each.to_dict() for each in own if _is_picture(each)]
            for call in entry.get("tool_calls", ()):
                name = _NOT_IN_NAMES.sub("_", call["function"]["name"])[:64]
                call["function"]["name"] = name or _NO_NAME
            _add_provider_data(entry, message.metadata.get("provider_data"), family)
            if not message.content.strip():
                if not entry.get("tool_calls") and not own:
                    continue
                made = " ".join("[picture]" if _is_picture(each) else "[file]" for each in own)
                entry["content"] = None if entry.get("tool_calls") else made
        wire.append(entry)
    return wire[::-1]


def _with_pictures(message: Message, left: int | None, *, sees: bool) -> tuple[Message, int | None]:
    """Return the message with at most ``left`` of its pictures, and the number left after it."""
    kept: list[Attachment] = []
    notes: list[str] = []
    for attachment in reversed(message.attachments):
        if not _is_picture(attachment):
            kept.append(attachment)
        elif left is None or left > 0:
            kept.append(attachment)
            left = None if left is None else left - 1
        else:
            notes.append(_note(attachment, sees=sees))
    if not notes:
        return message, left
    text = "\n".join([*([message.content] if message.content else []), *reversed(notes)])
    return message.model_copy(update={"content": text, "attachments": (*reversed(kept),)}), left


def _is_picture(attachment: Attachment) -> bool:
    return attachment.media_type.startswith("image/")


def _note(picture: Attachment, *, sees: bool) -> str:
    url = picture.url if picture.url and not picture.url.startswith("data:") else None
    what = " ".join(filter(None, ("picture", picture.name, url)))
    why = "only the newest pictures are sent" if sees else "this model cannot see pictures"
    return f"[{what}: {why}]"


def _add_provider_data(entry: dict[str, Any], data: object, family: str) -> None:
    if not isinstance(data, Mapping) or data.get(ORIGIN) != family:
        return
    fields, calls = data.get(MESSAGE), data.get(CALLS)
    if isinstance(fields, Mapping):
        entry.update(fields)
    for call in entry.get("tool_calls", ()):
        if isinstance(calls, Mapping) and isinstance(calls.get(call["id"]), Mapping):
            call["provider_specific_fields"] = dict(calls[call["id"]])
    if isinstance(served := data.get(SERVED), list):
        entry["tool_calls"] = [*served, *entry.get("tool_calls", ())]


_KEPT = frozenset(
    """type enum description pattern format multipleOf minimum maximum exclusiveMinimum
    exclusiveMaximum minItems maxItems""".split()
)
_TOLD = ("default", "minLength", "maxLength", "uniqueItems", "format", "pattern")
"""Told in the description if it is left out."""
_FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split())
_NOT_STRICT = frozenset(
    """prefixItems patternProperties propertyNames minProperties maxProperties contains not if
    dependentRequired dependentSchemas unevaluatedProperties""".split()
)
_MOST_PROPERTIES, _MOST_VALUES, _MOST_LEVELS = 5000, 1000, 10

Schema = dict[str, Any]


class _NotStrictError(Exception):
    """The strict mode cannot express the schema."""


def response_format(output_type: type[BaseModel]) -> dict[str, Any]:
    """Return the ``response_format`` of a request for data of a type."""
    schema = output_type.model_json_schema()
    try:
        sent, strict = _Strict(schema.get("$defs", {})).root(schema), True
    except _NotStrictError:
        sent, strict = schema, False
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", output_type.__name__)[:64]
    described = {"name": name, "schema": sent, "strict": strict}
    return {"type": "json_schema", "json_schema": described}


class _Strict:
    """Adapts one schema.

    Args:
        definitions: Its ``$defs``.
    """

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._properties = self._values = 0

    def root(self, schema: Schema) -> Schema:
        """Return the adapted schema.

        Raises:
            _NotStrictError: It cannot be adapted.
        """
        schema = self._resolved(schema)
        made = self._node({k: v for k, v in schema.items() if k != "$defs"}, 0)
        if made.get("type") != "object":
            raise _NotStrictError
        definitions = {name: self._node(each, 1) for name, each in self._definitions.items()}
        return {**made, "$defs": definitions} if definitions else made

    def _resolved(self, node: Schema) -> Schema:
        try:
            return resolved(node, self._definitions)
        except KeyError:
            raise _NotStrictError from None

    def _node(self, node: Schema, level: int) -> Schema:
        if level > _MOST_LEVELS or _NOT_STRICT & node.keys():
            raise _NotStrictError
        if "$ref" in node:
            if node.keys() == {"$ref"}:
                return node
            return self._node(self._resolved(node), level)  # nothing may stand beside a reference
        if len(node.get("allOf", ())) == 1:
            [only] = node["allOf"]
            return self._node({**only, **{k: v for k, v in node.items() if k != "allOf"}}, level)
        if "const" in node:
            node = {**node, "enum": [node["const"]]}
        made = {key: value for key, value in node.items() if key in _KEPT and _is_known(key, value)}
        told = [f"{k}: {json.dumps(node[k])}" for k in _TOLD if k in node and k not in made]
        if told := [each for each in told if each != "default: null"]:
            made["description"] = f"{node.get('description', '')} ({', '.join(told)})".strip()
        self._add_parts(node, made, level)
        return made

    def _add_parts(self, node: Schema, made: Schema, level: int) -> None:
        """Add the schemas inside ``node`` to the one made of it."""
        choices = node.get("anyOf") or node.get("oneOf")
        if choices:
            made["anyOf"] = [self._node(choice, level) for choice in choices]
        elif node.get("type") == "object":
            self._add_properties(node, made, level)
        elif node.get("type") == "array":
            if not node.get("items"):
                raise _NotStrictError
            made["items"] = self._node(node["items"], level + 1)
        elif "type" not in node and "enum" not in node:
            raise _NotStrictError  # any value, or what this module does not know
        self._values += len(node.get("enum", ()))
        if self._values > _MOST_VALUES:
            raise _NotStrictError

    def _add_properties(self, node: Schema, made: Schema, level: int) -> None:
        properties = node.get("properties")
        if properties is None or node.get("additionalProperties"):
            raise _NotStrictError
        self._properties += len(properties)
        if self._properties > _MOST_PROPERTIES:
            raise _NotStrictError
        made["properties"] = {k: self._node(each, level + 1) for k, each in properties.items()}
        made["required"] = list(properties)
        made["additionalProperties"] = False


def _is_known(key: str, value: Any) -> bool:
    """Return whether the strict mode knows a keyword with this value."""
    if key == "format":
        return value in _FORMATS
    return key != "pattern" or "(?" not in value
