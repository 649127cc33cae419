"""The edges of a net, derived from its states before it runs."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any, Literal
from weakref import WeakKeyDictionary

from agent_brain.states.base import State

Target = Enum | None  # None is the end


def declared_targets(state: State, members: Iterable[Enum]) -> list[Target]:
    """Return every target that ``state`` may propose.

    The first of these that says so: ``state.targets()``, unless a subclass overrides ``next_state``
    alone; a ``Literal`` in the return annotation of ``next_state``; the Enum members among the
    state's parameters, with the end if the annotation includes ``None``. Otherwise every member and
    the end.
    """
    members = list(members)
    known = known_targets(state, members)
    if known is not None:
        return known
    state = getattr(state, "wrapped", state)
    annotation = _return_annotation(inspect.unwrap(type(state).next_state), members)
    parameters = _unique(_members_in(vars(state), members))
    chooses = _describes(type(state)) and state.targets() is not None  # by a function
    if parameters and not chooses:
        return [*parameters, None] if _admits_none(annotation) else parameters
    return [*members, None]


def known_targets(state: State, members: Iterable[Enum]) -> list[Target] | None:
    """Return exactly the targets that ``state`` declares; None if it declares none."""
    state = getattr(state, "wrapped", state)
    members = list(members)
    own = state.targets() if _describes(type(state)) else None
    if own is None:
        own = (inspect.unwrap(type(state).next_state),)
    found: list[Any] = []
    for target in as_targets(own):
        if isinstance(target, Enum | str) or not callable(target):
            found.append(target)
            continue
        literal = _literal_targets(_return_annotation(target, members))
        if literal is None:
            return None
        found += literal
    return _known_members(found, members)


def _describes(kind: type[State]) -> bool:
    """Return whether ``targets`` is about ``next_state``: no subclass overrides that alone."""
    return next(
        "targets" in vars(base)
        for base in kind.__mro__
        if "targets" in vars(base) or "next_state" in vars(base)
    )


def as_targets(value: Any) -> Collection[Any]:
    """Return targets as a collection, also for a single member or None."""
    if value is None or isinstance(value, Enum | str) or not isinstance(value, Iterable):
        return (value,)
    return tuple(value)


def _known_members(targets: Iterable[Any], members: Collection[Enum]) -> list[Target]:
    """Replace texts by the equal members of an Enum of texts."""
    texts: dict[Any, Any] = {member: member for member in members if isinstance(member, str)}
    return _unique(texts.get(t, t) if type(t) is str else t for t in targets)


_resolved: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # resolving a text takes long


def _return_annotation(method: Any, members: Iterable[Enum]) -> Any:
    try:
        if method not in _resolved:
            _resolved[method] = typing.get_type_hints(method).get("return", Any)
        return _resolved[method]
    except Exception:  # an annotation is code: it may raise anything
        return _unresolved(method, members)


def _unresolved(method: Any, members: Iterable[Enum]) -> Any:
    """Return an annotation with names local to a function, from its closure or the net's Enums."""
    text = getattr(method, "__annotations__", {}).get("return", Any)
    if not isinstance(text, str):
        return text
    names = {type(member).__name__: type(member) for member in members}
    names |= getattr(method, "__globals__", {})
    with suppress(TypeError, ValueError):  # not a plain function, or a name without a value
        names |= inspect.getclosurevars(method).nonlocals
    try:
        held = types.SimpleNamespace(__annotations__={"return": text})
        return typing.get_type_hints(held, globalns=names)["return"]
    except Exception:
        return Any


def _literal_targets(annotation: Any) -> list[Target] | None:
    """Return the targets in ``Literal[...]``, ``Literal[...] | None`` or ``None``; else None.

    Texts are kept: they are states if the Enum's members are texts, and otherwise unknown targets.
    """
    if annotation is None or annotation is types.NoneType:
        return [None]
    if typing.get_origin(annotation) is Literal:
        return list(typing.get_args(annotation))
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    streams = origin in (AsyncIterator, AsyncGenerator)
    if streams:
        annotation = args[0]
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        args = args if origin in (typing.Union, types.UnionType) else (annotation,)
    if streams or origin in (typing.Union, types.UnionType):
        parts = [_literal_targets(part) for part in args]
        if all(part is not None for part in parts) or (streams and any(parts)):
            return [target for part in parts for target in part or ()]
    return None


def _admits_none(annotation: Any) -> bool:
    return types.NoneType in typing.get_args(annotation) or annotation is Any


def _members_in(value: Any, members: Collection[Enum]) -> Iterator[Enum]:
    """Yield the members in ``value``: itself, or inside containers.

    Compared by identity, because members of two Enums of strings are equal if their texts are.
    """
    if isinstance(value, Enum):
        if any(value is member for member in members):
            yield value
    elif isinstance(value, Mapping):
        for item in (*value.keys(), *value.values()):
            yield from _members_in(item, members)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _members_in(item, members)


def _unique(targets: Iterable[Target]) -> list[Target]:
    return list(dict.fromkeys(targets))
