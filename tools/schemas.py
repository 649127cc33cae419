"""Check JSON Schemas of tools, and validate values without ever hanging.

A schema may come from a stranger. Everything that could go wrong while arguments are validated is
found when the tool is defined: references that lead nowhere, to another document or in a circle.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from agent_brain.common.patterns import found, is_checked
from agent_brain.common.suggest import closest

MOST_STEPS = 10_000
"""Limit on subschemas that apply to one value, counted along every path of references."""

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_MEANT = {
    alias: name
    for name, aliases in {
        "array": "list tuple set sequence",
        "boolean": "bool",
        "integer": "int long int32 int64",
        "null": "none nil undefined",
        "number": "float double decimal numeric real",
        "object": "dict map mapping json struct",
        "string": "str text char date uuid",
    }.items()
    for alias in aliases.split()
}
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLES = ("not", "if", "then", "else")
_MAPPINGS = ("dependentSchemas", "dependencies")
_DATA = ("default", "const", "enum", "examples")
_NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def object_schema(
    properties: Mapping[str, Any], required: Iterable[str] | None = None
) -> dict[str, Any]:
    """Return the schema of an object with these properties and no others.

    Args:
        properties: Their schemas.
        required: Those that must be there. Default: all.
    """
    return {
        "type": "object",
        "properties": {**properties},
        "required": [*(properties if required is None else required)],
        "additionalProperties": False,
    }


def resolved(
    schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a JSON Schema that is not a reference itself, as the root of a recursive model's is.

    Args:
        schema: The schema.
        definitions: What references lead to; by default its own ``$defs``.

    Raises:
        KeyError: A reference leads to none of them.
    """
    found = dict(schema)
    known: Mapping[str, Any] = schema.get("$defs", {}) if definitions is None else definitions
    for _ in range(8):  # a reference may lead to another one
        if not isinstance(reference := found.pop("$ref", None), str):
            break
        found = {**known[reference.rpartition("/")[2]], **found}
    return found


def reworded(node: Any, change: Callable[[str, str], str | None], *, names: bool = False) -> Any:
    """Return a JSON Schema with other texts in its keywords; data and names stay as they are.

    Args:
        node: The schema, or a part of it.
        change: Takes a keyword and its text; returns the new text, or None to leave it out.
        names: Whether the keys of ``node`` are names, not keywords.
    """
    if isinstance(node, list):
        return [reworded(item, change) for item in node]
    if not isinstance(node, dict):
        return node
    found = {}
    for key, value in node.items():
        if names or not (key in _DATA or isinstance(value, str)):
            found[key] = reworded(value, change, names=not names and key in _NAMED)
        elif key in _DATA:
            found[key] = value
        elif (text := change(key, value)) is not None:
            found[key] = text
    return found


@dataclass(slots=True)
class Schema:
    """A checked schema."""

    problems: list[str] = field(default_factory=list)  # why it cannot be used
    unchecked: list[str] = field(default_factory=list)  # patterns that nothing is checked against
    validator: Any = None  # if there are no problems

    def errors(self, value: Any, whole: str = "arguments: ") -> list[str]:
        """Return the problems of ``value``, one line for each.

        Args:
            value: What is to be checked.
            whole: What precedes a problem that is not in a part of it.
        """
        errors = sorted(self.validator.iter_errors(value), key=lambda e: [str(p) for p in e.path])
        return [
            f"{'.'.join(map(str, e.path))}: {e.message}" if e.path else whole + e.message
            for e in errors
        ]


def read_schema(schema: Mapping[str, Any]) -> Schema:
    """Check ``schema`` in full and return it with its validator."""
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
    """Yield what the meta-schema refuses."""
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
    near = _MEANT.get(name.lower()) or closest(name, _TYPES)
    return f" (did you mean {near!r}?)" if near else f" (there are: {', '.join(_TYPES)})"


class _Walk:
    """Visits all subschemas and follows their references.

    Removes what would bypass the safe validator: the dialect of a subschema, and
    ``unevaluatedProperties`` beside patterns, which it would match by itself.
    """

    def __init__(self, schema: dict[str, Any], kind: Any) -> None:
        from referencing import Registry
        from referencing.jsonschema import DRAFT202012, specification_with

        uri = kind.META_SCHEMA.get("$schema", "")
        self._specification = specification_with(uri, default=DRAFT202012)
        self.problems: list[str] = []
        self.patterns: dict[str, None] = {}
        self._steps: dict[int, int] = {}
        self._active: set[int] = set()
        root = self._specification.create_resource(schema)
        self._waiting: list[tuple[Any, Any]] = [(schema, Registry().resolver_with_root(root))]
        self._root = schema
        visited: list[dict[str, Any]] = []
        while self._waiting:
            self._visit(*self._waiting.pop(), visited)
        if any("patternProperties" in contents for contents in visited):
            for contents in visited:
                contents.pop("unevaluatedProperties", None)

    def _visit(self, contents: Any, resolver: Any, visited: list[dict[str, Any]]) -> int:
        """Check a subschema; return how many subschemas apply to its value."""
        if not isinstance(contents, dict):
            return 1
        key = id(contents)
        if key in self._active:
            self._report("a $ref leads back to itself and never to a value")
            return 1
        if key not in self._steps:
            self._active.add(key)
            visited.append(contents)
            if contents is not self._root and isinstance(contents.get("$schema"), str):
                del contents["$schema"]
            patterns = (contents.get("pattern"), *contents.get("patternProperties", ()))
            self.patterns |= dict.fromkeys(p for p in patterns if isinstance(p, str))
            applied = [*self._referred(contents, resolver), *self._in_place(contents, resolver)]
            self._steps[key] = 1 + sum(self._visit(*each, visited) for each in applied)
            self._active.discard(key)
            for resource in self._specification.create_resource(contents).subresources():
                if id(resource.contents) not in self._steps:
                    self._waiting.append(self._enter(resource.contents, resolver))
            if self._steps[key] > MOST_STEPS:
                self._report(f"more than {MOST_STEPS:,} subschemas apply to one value")
                self._steps[key] = 1
        return self._steps[key]

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
                where = "to another document" if reference.partition("#")[0] else "nowhere"
                self._report(f"{keyword} {reference!r} leads {where}")
                continue
            if isinstance(resolved.contents, dict | bool):
                yield resolved.contents, resolved.resolver
            else:
                self._report(f"{keyword} {reference!r} does not lead to a schema")

    def _in_place(self, contents: dict[str, Any], resolver: Any) -> Iterator[tuple[Any, Any]]:
        """Yield subschemas that apply to the value itself, not to a part of it."""
        subschemas = [sub for keyword in _LISTS for sub in contents.get(keyword, ())]
        subschemas += [contents[keyword] for keyword in _SINGLES if keyword in contents]
        subschemas += [sub for name in _MAPPINGS for sub in contents.get(name, {}).values()]
        for sub in subschemas:
            if isinstance(sub, dict):
                yield self._enter(sub, resolver)

    def _enter(self, contents: Any, resolver: Any) -> tuple[Any, Any]:
        return contents, resolver.in_subresource(self._specification.create_resource(contents))

    def _report(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


@cache
def _safe(kind: Any) -> Any:
    """Return the validator class with keywords that match patterns without hanging."""
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
