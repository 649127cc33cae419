"""Answers of people: the types that a question may have, and how an answer is read as one.

A type is written as a JSON Schema, so that a form can show it and any process can check an answer.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time
from enum import Enum
from functools import cache, lru_cache
from types import UnionType
from typing import Any, NamedTuple, TypeAlias, Union, cast, get_args, get_origin
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema, to_json

from agent_brain.common.json_data import data_of
from agent_brain.common.secrets import scrub
from agent_brain.common.text import clean_json, to_compact_json
from agent_brain.common.values import check_members, error_lines, misnamed_fields
from agent_brain.tools.schemas import read_schema, resolved

AnswerKind: TypeAlias = Any
"""``str`` for free text, any other type that pydantic validates, or a JSON Schema as a dict. Python
has no type for them yet."""

_YES = ("yes", "y", "true", "on", "ok")
_NO = ("no", "n", "false", "off")
_KINDS = {
    "array": "a JSON list",
    "boolean": "yes / no",
    "integer": "a whole number",
    "number": "a number",
    "object": "a JSON object",
    "string": "text",
}
_PLAIN = ("boolean", "integer", "number", "string")
_WORDS = ("title", "description", "enumNames")  # in a schema; what they say checks nothing
_FORMATS = {
    "date": "a date such as 2026-12-31",
    "date-time": "a time such as 2026-12-31T18:00",
    "time": "a time such as 18:00",
}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class AnswerType:
    """The type of the answer to a question.

    Attributes:
        schema: Its JSON Schema; None for free text.
        adapter: Makes its values of JSON data; None if these are the values.
        members: The members of an Enum by the JSON of their values, which may be tuples.
    """

    schema: dict[str, Any] | None = None
    adapter: TypeAdapter[Any] | None = None
    members: Mapping[str, Enum] = field(default_factory=dict)

    def value(self, answer: JsonValue) -> Any:
        """Return the value that an answer, as :func:`read_answer` returns it, stands for.

        It is data, and no text that a person types.

        Raises:
            ValueError: What is wrong with it, beyond what the schema says.
        """
        _fitting(self.schema, answer, [answer])  # one that was kept may be of another question
        if self.adapter is None:
            return answer
        if self.members and (name := to_compact_json(answer)) in self.members:
            return self.members[name]
        try:
            value = self.adapter.validate_json(json.dumps(answer), by_alias=True, by_name=True)
        except ValidationError as error:
            raise ValueError("; ".join(error_lines(error))) from None
        if problems := [*misnamed_fields(value, answer)]:
            raise ValueError("; ".join(problems))
        return value


class _NamedChoices(GenerateJsonSchema):
    """Names the members of an Enum whose values are no texts, such as numbers."""

    def enum_schema(self, schema: core_schema.EnumSchema) -> dict[str, Any]:
        found = super().enum_schema(schema)
        if found.get("type") not in ("string", "boolean"):
            members = zip(schema["members"], found["enum"], strict=True)
            names = [value if isinstance(value, str) else each.name for each, value in members]
            found["enumNames"] = names  # as in the forms of MCP
        return found


class Field(NamedTuple):
    """A field of a form.

    Attributes:
        name: Its name.
        schema: The schema of its values, which is no reference itself.
        required: Whether it must be filled in.
    """

    name: str
    schema: dict[str, Any]
    required: bool

    @property
    def label(self) -> str:
        """What a person reads beside it: its title, and what the field is."""
        title = str(self.schema.get("title") or self.name)
        description = str(self.schema.get("description") or "")
        if description and title.casefold() in description.casefold():
            return description
        return f"{title}: {description}" if description else title


def answer_type(kind: AnswerKind) -> AnswerType:
    """Return the type of an answer.

    Raises:
        ValueError: ``kind`` is no type that pydantic validates, or no JSON Schema.
    """
    if kind is str:
        return AnswerType()
    if isinstance(kind, Mapping):
        if problems := read_schema(kind).problems:
            raise ValueError("; ".join(problems))
        return AnswerType(dict(kind))
    try:
        return _known_type(kind)
    except TypeError:  # a type that cannot be hashed
        return _type_of(kind)


def _type_of(kind: AnswerKind) -> AnswerType:
    try:
        if isinstance(kind, str) or kind is None:
            raise TypeError("it is a value, not a type")
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        schema = adapter.json_schema(schema_generator=_NamedChoices)
        if not (members := _members_of(kind)):
            check_members(adapter)
    except Exception as error:  # pydantic raises various errors for what is not a type
        why = (str(error) or type(error).__name__).splitlines()[0].rstrip(". ")
        raise ValueError(f"{kind!r} is not a type that pydantic validates: {why}") from error
    if alike := _alike(schema, schema.get("$defs", {})):
        raise ValueError(
            f"{' and '.join(alike)} have the same data, so an answer does not say which of them it "
            "is: give each a field of its own, such as kind: Literal['a'] = 'a'"
        )
    return AnswerType(schema, adapter, members)


def _members_of(kind: AnswerKind) -> dict[str, Enum]:
    """Return the members of an Enum, or of one that may be left open, by their JSON."""
    origin: Any = get_origin(kind)
    choices = get_args(kind) if origin in (Union, UnionType) else (kind,)
    kinds = [each for each in choices if each is not type(None)]
    if not (len(kinds) == 1 and isinstance(kinds[0], type) and issubclass(kinds[0], Enum)):
        return {}
    return {to_compact_json(_as_json(member)): member for member in kinds[0]}


def _alike(schema: Any, classes: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the names of two classes that are choices of a schema and have the same data."""
    if isinstance(schema, list):
        return next(filter(None, (_alike(each, classes) for each in schema)), None)
    if not isinstance(schema, Mapping):
        return None
    seen: dict[str, str] = {}
    for choice in schema.get("anyOf", ()):
        name = str(choice.get("$ref", "")).rpartition("/")[2]
        if (found := classes.get(name)) is not None:
            told = {key: each for key, each in found.items() if key not in _WORDS}
            if (other := seen.setdefault(json.dumps(told, sort_keys=True), name)) != name:
                return other, name
    return _alike([*schema.values()], classes)


_known_type = lru_cache(maxsize=256)(_type_of)


def read_answer(schema: Mapping[str, Any] | None, given: Any) -> JsonValue:
    """Return an answer as JSON data.

    A text may be what a person types: a word of a choice in any case, ``yes``, a number, JSON, or
    the values of a list, one a line or with commas between them.

    Args:
        schema: What it must fit; None for free text.
        given: A text, JSON data, or an object that pydantic writes as such.

    Raises:
        ValueError: What is wrong with it.
    """
    if schema is None:
        return _fitting(None, given, ())
    is_typed = isinstance(given, str) and not isinstance(given, Enum)
    meanings = _meanings(given, schema) if is_typed else [_as_json(given)]
    return _fitting(schema, given, (_with_values(schema, each) for each in meanings))


def _fitting(
    schema: Mapping[str, Any] | None, given: Any, candidates: Iterable[JsonValue]
) -> JsonValue:
    """Return the first of what an answer may mean that fits a schema.

    Raises:
        ValueError: What is wrong with it.
    """
    if schema is None:
        if not isinstance(given, str):
            raise ValueError(f"it is not a text: {given!r}")
        return given
    plain, nullable = plain_schema(schema)  # whose errors say more
    validator = read_schema(plain).validator.evolve(format_checker=_formats())
    refused: list[tuple[bool, str]] = []
    for candidate in candidates:
        errors = [_most_telling(error) for error in validator.iter_errors(candidate)]
        if not errors or (nullable and candidate is None):
            return candidate
        other_kind = any(error.validator == "type" and not error.path for error in errors)
        chosen = [error.path for error in errors if error.validator == "enum"]
        told = [each for each in errors if each.validator != "type" or each.path not in chosen]
        refused.append((other_kind, "; ".join(map(_line, told))))
    if isinstance(given, str) and not given.strip():
        raise ValueError("it is empty")
    raise ValueError(min(refused, key=lambda found: found[0])[1])


def asked_again(prompt: str, error: ValueError) -> str:
    """Return a question with what was wrong with its answer, without secrets."""
    return f"{prompt}\n\nThat could not be used: {scrub(str(error))}"


def _as_json(given: Any) -> JsonValue:
    try:
        written = to_json(data_of(given, by_alias=True), inf_nan_mode="constants")
        return cast("JsonValue", clean_json(json.loads(written, parse_constant=_refuse)))
    except (ValueError, RecursionError) as error:  # also of what pydantic cannot write
        raise ValueError(f"{given!r} is not data that JSON has: {error}") from None


def _meanings(text: str, schema: Mapping[str, Any]) -> Iterator[JsonValue]:
    """Yield what a text may mean, the most literal first."""
    text = clean_json(text)
    word = text.strip()
    choices = choices_of(schema)
    if not word and all(value != "" for value, _ in choices):
        yield None
    yield text
    yield word
    for value, name in choices:
        if word.casefold() in (str(value).casefold(), name.casefold()):
            yield value
    if word.casefold() in (*_YES, *_NO):
        yield word.casefold() in _YES
    with suppress(ValueError, RecursionError):
        yield json.loads(word, parse_constant=_refuse)
    if (item := item_of(schema)) is not None and not word.startswith("["):
        parts = word.splitlines() if "\n" in word else word.split(",")
        yield [read_answer(item, part.strip()) for part in parts if part.strip()]


def _with_values(schema: Mapping[str, Any], answer: JsonValue) -> JsonValue:
    """Return an answer with the values of the choices that it calls by their names."""
    if isinstance(answer, str):
        choices = choices_of(schema)
        if any(value == answer for value, _ in choices):
            return answer
        alike = {name: value for value, name in choices if name.casefold() == answer.casefold()}
        return alike.get(answer, next(iter(alike.values()), answer))
    if isinstance(answer, list) and (item := item_of(schema)) is not None:
        return [_with_values(item, each) for each in answer]
    if isinstance(answer, dict):
        fields = {field.name: field.schema for field in fields_of(schema) or ()}
        return {name: _with_values(fields.get(name, {}), each) for name, each in answer.items()}
    return answer


def _refuse(constant: str) -> None:
    raise ValueError(f"JSON has no {constant}")


def _most_telling(error: Any) -> Any:
    """Return the error of the alternative that was most likely meant."""
    from jsonschema.exceptions import best_match

    inner = [each for each in error.context or () if each.validator_value != "null"]
    if len({each.schema_path[0] for each in inner}) != 1:
        return best_match([error])
    return next((each for each in inner if each.validator == "enum"), best_match(inner))


def _line(error: Any) -> str:
    place = ".".join(map(str, error.absolute_path))
    names = error.schema.get("enumNames") if error.validator == "enum" else None
    problem = f"{error.instance!r} is not one of {names}" if names else str(error.message)
    return f"{place}: {problem}" if place else problem


@cache
def _formats() -> Any:
    """Return the checks of formats that forms have fields for."""
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())
    checks: dict[str, Callable[[str], object]] = {
        "date": lambda text: bool(_DATE.fullmatch(text)) and date.fromisoformat(text),
        "date-time": datetime.fromisoformat,
        "time": time.fromisoformat,
        "uuid": UUID,
        "email": lambda text: all(text.partition("@")),
        "uri": lambda text: bool(urlsplit(text).scheme),
    }
    for name, check in checks.items():
        checker.checks(name, raises=ValueError)(
            lambda value, check=check: not isinstance(value, str) or bool(check(value))
        )
    return checker


def plain_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return a schema that is no reference itself and without null, and whether null fits it."""
    found = _resolved(schema, schema)
    members = found.get("anyOf", found.get("oneOf", ()))
    others = [member for member in members if member.get("type") != "null"]
    if not len(members) > len(others) == 1:
        return found, False
    rest = {key: part for key, part in found.items() if key not in ("anyOf", "oneOf")}
    return {**_resolved(others[0], schema), **rest}, True


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    return resolved(schema, defaultdict(dict, root.get("$defs", {})))


def _part(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a part of an answer, with the definitions of the whole."""
    definitions = {"$defs": root["$defs"]} if "$defs" in root else {}
    return _resolved(schema, root) | definitions


def fields_of(schema: Mapping[str, Any]) -> list[Field] | None:
    """Return the fields of a form; None if answers are not objects with named fields."""
    form, _ = plain_schema(schema)
    if form.get("type") != "object" or not form.get("properties"):
        return None
    required = form.get("required", ())
    found = []
    for name, part in form["properties"].items():
        # a title of its own, as pydantic gives it, not that of a class that it refers to
        own = {"title": name.replace("_", " ").title(), "description": ""} if "$ref" in part else {}
        found.append(Field(name, _part({**own, **part}, schema), name in required))
    return found


def item_of(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema of the values of a list; None if answers are no lists of plain values."""
    plain, _ = plain_schema(schema)
    items = plain.get("items")
    if plain.get("type") != "array" or not isinstance(items, Mapping) or "prefixItems" in plain:
        return None
    item = _part(items, schema)
    plain, _ = plain_schema(item)
    kinds = [each.get("type") for each in plain.get("anyOf", [plain])]  # a Decimal has two
    return item if choices_of(item) or all(kind in _PLAIN for kind in kinds) else None


def words_for(schema: Mapping[str, Any]) -> str:
    """Return what kind of answer fits, for a person who types it."""
    plain, nullable = plain_schema(schema)
    if choices := choices_of(schema):
        words = " / ".join(name for _, name in choices)
    elif (item := item_of(schema)) is not None:
        words = f"{words_for(item)}; several with commas"
    elif fields := fields_of(schema):
        names = (
            f"{each.name} ({words_for(each.schema)}{'' if each.required else ', optional'})"
            for each in fields
        )
        words = f"a JSON object with {', '.join(names)}"
    else:
        kind = str(plain.get("type"))
        words = _FORMATS.get(plain.get("format", ""), _KINDS.get(kind, "JSON"))
        least, most = plain.get("minimum"), plain.get("maximum")
        words += "" if least is None else f" from {least}"
        words += "" if most is None else f" to {most}"
    return f"{words}, or nothing" if nullable else words


def choices_of(schema: Mapping[str, Any]) -> list[tuple[JsonValue, str]]:
    """Return the values that an answer is chosen from, with their names; empty if it is not."""
    plain, _ = plain_schema(schema)
    if plain.get("type") == "boolean":
        return []
    if "const" in plain:
        return [(plain["const"], _name_of(plain["const"]))]
    titled = plain.get("oneOf", plain.get("anyOf", ()))
    if titled and all("const" in each for each in titled):
        return [(each["const"], str(each.get("title", _name_of(each["const"])))) for each in titled]
    values = plain.get("enum", ())
    names = plain.get("enumNames", ())
    return [
        (value, str(names[index] if index < len(names) else _name_of(value)))
        for index, value in enumerate(values)
    ]


def _name_of(value: JsonValue) -> str:
    """Return what a value is called if it has no name of its own."""
    return "(empty)" if value == "" else str(value)
