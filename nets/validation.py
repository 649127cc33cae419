"""The checks of a net, which report all problems at once."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

from agent_brain.common.suggest import closest
from agent_brain.common.values import takes
from agent_brain.nets.edges import Target
from agent_brain.nets.errors import Problem
from agent_brain.states.base import State

T = TypeVar("T")
Edges = Mapping[Enum, Collection[Target]]

_GRAPH = {
    "unreachable": (
        "State {state!r} cannot be reached from {initial!r}",
        "Add an edge to it (of a function: in its return annotation), or remove it",
    ),
    "dead_end": (
        "State {state!r} has no edges, not even to the end",
        "Declare what it proposes in the return annotation of next_state, or in transitions=",
    ),
    "no_end": (
        "State {state!r} cannot reach an end, because the net has none",
        "Let a state return None, and declare that in its return annotation or in transitions=",
    ),
    "no_exit": (
        "State {state!r} cannot reach an end: a run that enters it stays in a loop",
        "Add an edge that leads out of the loop",
    ),
    "never_proposed": (
        "transitions= has an edge from {state!r} to {target}, which the state never proposes",
        "Correct next_state (of a FunctionState: on_done= or choose=), or remove the edge",
    ),
}
ALLOWABLE = tuple(_GRAPH)
"""Codes of problems that a net may allow with ``allow=``."""


def name_of(key: object) -> str:
    """Return the name of a state: that of its Enum member."""
    return key.name if isinstance(key, Enum) else repr(key)


def check_graph(edges: Edges, initial: Enum | None, fallback: Enum | None) -> Iterator[Problem]:
    """Find unknown targets, unreachable states, and states that cannot reach an end.

    If the initial state is unknown, every state counts as reachable.
    """
    for key, targets in edges.items():
        for target in targets:
            if target is not None and target not in edges:
                yield Problem(
                    "unknown_target",
                    f"State {name_of(key)!r} may go to {target!r}, which is not a state of the net",
                    meant(target, edges) or "Add that state to the net, or correct the target",
                    (name_of(key),),
                )
    starts = [start for start in (initial, fallback) if start is not None and start in edges]
    reached = reachable(edges, starts) if initial in edges else set(edges)
    for key in edges:
        if key not in reached:
            yield _problem("unreachable", key, initial=name_of(initial))
    ending = can_end(edges)
    for key in edges:
        if key in reached and key not in ending:
            code = "dead_end" if not edges[key] else "no_exit" if ending else "no_end"
            yield _problem(code, key)


def check_declared(
    key: Enum, declared: Collection[Target], known: Collection[Target]
) -> Iterator[Problem]:
    """Find edges of ``transitions=`` that the state is known never to propose."""
    for target in declared:
        if target not in known:
            where = "the end" if target is None else repr(name_of(target))
            yield _problem("never_proposed", key, target=where)


def _problem(code: str, key: Enum, **names: str) -> Problem:
    message, hint = _GRAPH[code]
    allow = f"; if it is intended, allow it: Net(…, allow=[{code!r}])"
    return Problem(code, message.format(state=name_of(key), **names), hint + allow, (name_of(key),))


def check_keys(states: Mapping[Any, Any]) -> Iterator[Problem]:
    """Find keys that are not members of one Enum, and values that are not sound states."""
    kinds = {type(key) for key in states if isinstance(key, Enum)}
    for key, state in states.items():
        if not isinstance(key, Enum):
            yield Problem(
                "not_an_enum",
                f"The key {key!r} is not a member of an Enum",
                "Use the members of one Enum as keys",
            )
        if not isinstance(state, State):
            wrong, advice = "is not a State", "Derive it from agent_brain.states.State"
            if isinstance(state, type):
                wrong = "is a class: pass an instance"
            elif inspect.isroutine(state):
                wrong, advice = "is not async", "Write it as 'async def f(memory)'"
            yield Problem(
                "not_a_state",
                f"State {name_of(key)!r} is {state!r}, which {wrong}",
                advice,
                (name_of(key),),
            )
        else:
            yield from check_state(state, name_of(key))
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        yield Problem("several_enums", f"The keys belong to several Enums: {names}", "Use one Enum")


def check_state(state: State, name: str) -> Iterator[Problem]:
    """Find methods of a state that are not async, or do not yield."""
    kind = type(state).__name__
    if inspect.iscoroutinefunction(state.run) or inspect.isgeneratorfunction(state.run):
        yield Problem(
            "not_a_generator",
            f"{kind}.run of state {name!r} is not an async generator",
            "Write it as 'async def run(self, memory)' with at least one 'yield' in it",
            (name,),
        )
        return
    for method in (state.next_state, state.on_enter, state.on_exit):
        if inspect.ismethod(method) and not inspect.iscoroutinefunction(method):
            yield Problem(
                "not_async",
                f"{kind}.{method.__name__} of state {name!r} is not async",
                f"Write it as 'async def {method.__name__}(self, memory)'",
                (name,),
            )


def check_hooks(hooks: Mapping[str, Any], error_edges: Mapping[Any, Any]) -> Iterator[Problem]:
    """Find values of ``before=``, ``after=`` and ``on_error=`` that cannot be used."""
    for option, hook in hooks.items():
        errors = option == "on_error"
        given = ("memory", "error") if errors else ("memory",)
        if hook is not None and (isinstance(hook, type) or not takes(hook, *given)):
            what = f"the {' and the '.join(given)}"
            yield Problem(
                "not_a_function",
                f"{option}={hook!r} is not a function of {what}",
                f"Pass a function of {what}"
                + ", or a dict of states to the states that come next" * errors,
            )
    for key, target in error_edges.items():
        if not is_target(target):
            yield Problem(
                "not_a_target",
                f"on_error= has {target!r} as what follows an error of state {name_of(key)!r}",
                "Use one state of the net; without an entry, the error ends the run",
                (name_of(key),),
            )


def is_target(value: object) -> bool:
    """Return whether a value can name a state."""
    return isinstance(value, Enum | str)


def meant(target: object, keys: Iterable[Enum]) -> str | None:
    """Return a hint with the state that a text, or a member of another Enum, probably means."""
    members: dict[str, Enum] = {}
    for key in keys:
        if isinstance(key, Enum):
            members |= {str(key.value): key, key.name: key}
    name = target.name if isinstance(target, Enum) else target
    close = members.get(str(name)) or members.get(closest(str(name), members) or "")
    return None if close is None else f"Did you mean {close}?"


def reachable(edges: Edges, starts: Iterable[Enum]) -> set[Enum]:
    """Return the states that can be reached from ``starts``."""
    return closure({key: [t for t in edges[key] if t in edges] for key in edges}, starts)


def can_end(edges: Edges) -> set[Enum]:
    """Return the states from which an end can be reached."""
    before: dict[Target, list[Target]] = {}
    for key, targets in edges.items():
        for target in targets:
            before.setdefault(target, []).append(key)
    return closure(before, before.get(None, ()))


def closure(graph: Mapping[T | None, Iterable[T | None]], starts: Iterable[T | None]) -> set[T]:
    """Return what can be reached in a graph; None is nothing."""
    seen: set[T] = set()
    todo = list(starts)
    while todo:
        key = todo.pop()
        if key is not None and key not in seen:
            seen.add(key)
            todo.extend(graph.get(key, ()))
    return seen
