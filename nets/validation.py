"""What can be wrong with a net, found before it runs: all of it at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum

from agent_brain.nets.edges import Target
from agent_brain.nets.errors import Problem
from agent_brain.tools.suggest import closest

Edges = Mapping[Enum, Collection[Target]]


def name_of(key: object) -> str:
    """What a state is called: its member's name."""
    return key.name if isinstance(key, Enum) else repr(key)


ALLOWABLE = ("unreachable", "dead_end", "no_end", "no_exit", "never_proposed")
"""Codes of problems that a net may have on purpose, if it says so with ``allow=``."""


def check_graph(edges: Edges, initial: Enum | None, fallback: Enum | None) -> Iterator[Problem]:
    """Problems of the graph itself: unknown targets, unreachable states, no way to an end.

    Where a run begins may be unknown; then every state counts as reached.
    """
    yield from _unknown_targets(edges)
    starts = [start for start in (initial, fallback) if start is not None and start in edges]
    reached = reachable(edges, starts) if initial in edges else set(edges)
    for key in edges:
        if key not in reached:
            yield Problem(
                "unreachable",
                f"No way leads from {name_of(initial)!r} to state {name_of(key)!r}",
                f"Add an edge to it, or leave it out{_or_allow('unreachable')}",
                (name_of(key),),
            )
    ending = can_end(edges)
    for key in edges:
        if key in reached and key not in ending:
            yield _endless(key, dead=not edges[key], hopeless=not ending)


def _endless(key: Enum, *, dead: bool, hopeless: bool) -> Problem:
    name = name_of(key)
    if dead:
        return Problem(
            "dead_end",
            f"State {name!r} goes nowhere, not even to the end",
            "Let it propose a state, or None for the end, and say so in the return annotation of "
            f"next_state or in transitions={_or_allow('dead_end')}",
            (name,),
        )
    if hopeless:
        return Problem(
            "no_end",
            f"From state {name!r} no way leads to an end, as the net has none",
            "Let a state return None (and say so in its return annotation or in transitions=)"
            f"{_or_allow('no_end')}",
            (name,),
        )
    return Problem(
        "no_exit",
        f"From state {name!r} no way leads to an end: a run that comes there stays in a loop",
        f"Add an edge that leads out of the loop{_or_allow('no_exit')}",
        (name,),
    )


def check_declared(
    key: Enum, declared: Collection[Target], known: Collection[Target]
) -> Iterator[Problem]:
    """Edges of ``transitions=`` that the state is known never to propose."""
    for target in declared:
        if target not in known:
            where = "the end" if target is None else repr(name_of(target))
            yield Problem(
                "never_proposed",
                f"transitions= has an edge from {name_of(key)!r} to {where}, which the state never "
                "proposes",
                "Leave the edge out, or correct what next_state says it returns"
                f"{_or_allow('never_proposed')}",
                (name_of(key),),
            )


def _or_allow(code: str) -> str:
    return f"; if it is meant, allow it: Net(…, allow=[{code!r}])"


def _unknown_targets(edges: Edges) -> Iterator[Problem]:
    for key, targets in edges.items():
        for target in targets:
            if target is not None and target not in edges:
                yield Problem(
                    "unknown_target",
                    f"State {name_of(key)!r} may go to {target!r}, which is no state of the net",
                    meant(target, edges) or "Add that state to the net, or correct the target",
                    (name_of(key),),
                )


def meant(target: object, keys: Iterable[Enum]) -> str | None:
    """The member that a text, or a member of another Enum, may stand for, as a hint."""
    members: dict[str, Enum] = {}
    for key in keys:
        if isinstance(key, Enum):
            members |= {str(key.value): key, key.name: key}
    name = target.name if isinstance(target, Enum) else target
    close = members.get(str(name)) or members.get(closest(str(name), members) or "")
    return None if close is None else f"Did you mean {close}?"


def reachable(edges: Edges, starts: Collection[Enum]) -> set[Enum]:
    """Every state that some way from ``starts`` leads to."""
    seen: set[Enum] = set()
    todo = list(starts)
    while todo:
        key = todo.pop()
        if key not in seen:
            seen.add(key)
            todo.extend(t for t in edges.get(key, ()) if t is not None and t in edges)
    return seen


def can_end(edges: Edges) -> set[Enum]:
    """Every state from which some way leads to an end."""
    before: dict[Target, list[Enum]] = {}
    for key, targets in edges.items():
        for target in targets:
            before.setdefault(target, []).append(key)
    ending: set[Enum] = set()
    todo = list(before.get(None, ()))
    while todo:
        key = todo.pop()
        if key not in ending:
            ending.add(key)
            todo.extend(before.get(key, ()))
    return ending
