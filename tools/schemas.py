"""JSON Schemas of tools: what is wrong with one, and a validator that is safe to run.

A schema may come from a stranger. So everything that could go wrong while arguments are checked is
found when the tool is defined: references that lead nowhere, to another machine or in a circle.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from agent_brain.tools.patterns import found, is_checked

MOST_STEPS = 10_000
"""Subschemas that apply to one value, counted along every path of references."""

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_MEANT = {
    **dict.fromkeys(("float", "double", "decimal", "numeric", "real"), "number"),
    **dict.fromkeys(("int", "long", "int32", "int64"), "integer"),
    **dict.fromkeys(("str", "text", "char", "date", "uuid"), "string"),
    **dict.fromkeys(("dict", "map", "mapping", "json", "struct"), "object"),
    **dict.fromkeys(("list", "tuple", "set", "sequence"), "array"),
    **dict.fromkeys(("none", "nil", "undefined"), "null"),
    "bool": "boolean",
}
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLES = ("not", "if", "then", "else")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(slots=True)
class Schema:
    """A schema that has been looked at.

    Attributes:
        problems: Why it cannot be used; empty if it can.
        unchecked: Patterns that no text is held against: see :mod:`agent_brain.tools.patterns`.
        validator: Checks values, if there are no problems.
    """

    problems: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    validator: Any = None

    def errors(self, value: Any) -> list[str]:
        """What is wrong with ``value``, one line for each."""
        errors = sorted(self.validator.iter_errors(value), key=lambda e: [str(p) for p in e.path])
        return [f"{'.'.join(map(str, e.path)) or 'arguments'}: {e.message}" for e in errors]


def read_schema(schema: Mapping[str, Any]) -> Schema:
    """``schema``, checked in full, with its validator."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    dialect = schema.get("$schema", "")
    if not isinstance(dialect, str):
        return Schema([f"$schema must be a string, not {dialect!r}"])
    read = Schema()
    kind = validator_for(schema, default=Draft202012Validator)
    own: dict[str, Any] = {}
    try:
        own = copy.deepcopy(dict(schema))
        read.problems += _form_problems(kind, own)
        if not read.problems:
            walk = _Walk(own, kind)
            read.problems += walk.problems
            read.unchecked += [p for p in walk.patterns if not is_checked(p)]
    except RecursionError:
        read.problems.append("it is nested too deeply")
    if not read.problems:
        read.validator = _safe(kind)(own, registry=Registry())
    return read


def _form_problems(kind: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    """What the meta-schema says, which leaves patterns to ECMAScript."""
    errors = kind(kind.META_SCHEMA).iter_errors(schema)
    for error in sorted(errors, key=lambda error: error.json_path):
        names = error.instance if isinstance(error.instance, list) else [error.instance]
        unknown = [n for n in names if isinstance(n, str) and n not in _TYPES]
        if error.path and error.path[-1] == "type" and unknown:
            hints = ", ".join(f"{name!r}{_meant(name)}" for name in unknown)
            yield f"{error.json_path}: there is no type {hints}"
        else:
            yield f"{error.json_path}: {error.message}"


def _meant(name: str) -> str:
    near = _MEANT.get(name.lower()) or next(
        iter(difflib.get_close_matches(name.lower(), _TYPES, n=1)), None
    )
    return f" (did you mean {near!r}?)" if near else f" (there are: {', '.join(_TYPES)})"


class _Walk:
    """All subschemas, and where their references lead.

    A subschema that names a dialect of its own would bring an unsafe validator back: there is one
    dialect for all. ``unevaluatedProperties`` searches patterns by itself, so where it meets any,
    it is left out.
    """

    def __init__(self, schema: dict[str, Any], kind: Any) -> None:
        from referencing import Registry
        from referencing.jsonschema import DRAFT202012, specification_with

        uri = kind.META_SCHEMA.get("$schema", "")
        self._specification = specification_with(uri, default=DRAFT202012)
        root = self._specification.create_resource(schema)
        resolver = Registry().resolver_with_root(root)
        self.problems: list[str] = []
        self.patterns: dict[str, None] = {}
        self._steps: dict[int, int] = {}
        self._active: set[int] = set()
        self._waiting: list[tuple[Any, Any]] = [(schema, resolver)]
        self._root = schema
        self._with_patterns = False
        self._unevaluated: list[dict[str, Any]] = []
        while self._waiting:
            self._visit(*self._waiting.pop())
        if self._with_patterns:
            for contents in self._unevaluated:
                del contents["unevaluatedProperties"]

    def _visit(self, contents: Any, resolver: Any) -> int:
        """Look at a subschema; returns how many of them apply to the value it is for."""
        if not isinstance(contents, dict):
            return 1
        key = id(contents)
        if key in self._active:
            self._say("a $ref leads back to itself and never to a value")
            return 1
        if key not in self._steps:
            self._active.add(key)
            self._read(contents)
            applied = [*self._referred(contents, resolver), *_in_place(contents, resolver, self)]
            self._steps[key] = 1 + sum(self._visit(*each) for each in applied)
            self._active.discard(key)
            for resource in self._specification.create_resource(contents).subresources():
                if id(resource.contents) not in self._steps:
                    self._waiting.append(self.enter(resource.contents, resolver))
            if self._steps[key] > MOST_STEPS:
                self._say(f"more than {MOST_STEPS:,} subschemas apply to one value")
                self._steps[key] = 1
        return self._steps[key]

    def _read(self, contents: dict[str, Any]) -> None:
        if contents is not self._root and isinstance(contents.get("$schema"), str):
            del contents["$schema"]
        self._with_patterns = self._with_patterns or "patternProperties" in contents
        if "unevaluatedProperties" in contents:
            self._unevaluated.append(contents)
        for pattern in (contents.get("pattern"), *contents.get("patternProperties", ())):
            if isinstance(pattern, str):
                self.patterns[pattern] = None

    def _referred(self, contents: dict[str, Any], resolver: Any) -> Iterator[tuple[Any, Any]]:
        from jsonschema_specifications import REGISTRY
        from referencing.exceptions import Unresolvable

        for keyword in _REFERENCES:
            reference = contents.get(keyword)
            if not isinstance(reference, str) or reference.partition("#")[0] in REGISTRY:
                continue
            try:
                resolved = resolver.lookup(reference)
            except (Unresolvable, ValueError):
                where = "to another document" if _is_elsewhere(reference) else "nowhere"
                self._say(f"{keyword} {reference!r} leads {where}")
                continue
            if isinstance(resolved.contents, dict | bool):
                yield resolved.contents, resolved.resolver
            else:
                self._say(f"{keyword} {reference!r} does not lead to a schema")

    def enter(self, contents: Any, resolver: Any) -> tuple[Any, Any]:
        """A subschema with the resolver that is right for references in it."""
        return contents, resolver.in_subresource(self._specification.create_resource(contents))

    def _say(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


def _in_place(contents: dict[str, Any], resolver: Any, walk: _Walk) -> Iterator[tuple[Any, Any]]:
    """Subschemas that apply to the same value, not to a part of it."""
    found_here: list[Any] = []
    for keyword in _LISTS:
        found_here += contents.get(keyword, ())
    found_here += [contents[keyword] for keyword in _SINGLES if keyword in contents]
    for keyword in ("dependentSchemas", "dependencies"):
        found_here += contents.get(keyword, {}).values()
    for sub in found_here:
        if isinstance(sub, dict):
            yield walk.enter(sub, resolver)


def _is_elsewhere(reference: str) -> bool:
    return bool(reference.partition("#")[0])


@cache
def _safe(kind: Any) -> Any:
    """The validator class, with keywords that search patterns without hanging."""
    from jsonschema.validators import extend

    keywords = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    return extend(kind, {k: f for k, f in keywords.items() if k in kind.VALIDATORS})


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(value, str) and found(pattern, value) is False:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, value: Any, schema: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for pattern, subschema in patterns.items():
            for name, item in value.items():
                if found(pattern, name):
                    yield from validator.descend(item, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not isinstance(value, dict):
        return
    patterns: Iterable[str] = schema.get("patternProperties", ())
    extra = [
        name
        for name in value
        if name not in schema.get("properties", ())
        and all(found(pattern, name) is False for pattern in patterns)
    ]
    if isinstance(wanted, dict):
        for name in extra:
            yield from validator.descend(value[name], wanted, path=name)
    elif not wanted and extra:
        names = ", ".join(map(repr, extra))
        are = "was" if len(extra) == 1 else "were"
        yield ValidationError(f"Additional properties are not allowed ({names} {are} unexpected)")
