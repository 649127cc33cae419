"""What can be wrong with a net, found before it runs: all of it at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import Enum

from agent_brain.nets.edges import Target
from agent_brain.nets.errors import Problem

Edges = Mapping[Enum, Collection[Target]]


def name_of(key: object) -> str:
    """What a state is called: its member's name."""
    return key.name if isinstance(key, Enum) else repr(key)


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
                "Add an edge to it, or leave it out",
                (name_of(key),),
            )
    ending = can_end(edges)
    for key in edges:
        if key in reached and key not in ending:
            yield Problem(
                "no_end",
                f"From state {name_of(key)!r} no way leads to an end",
                "Let a state on its way return None (and say so in its return annotation or in "
                "transitions=)",
                (name_of(key),),
            )


def _unknown_targets(edges: Edges) -> Iterator[Problem]:
    for key, targets in edges.items():
        for target in targets:
            if target is not None and target not in edges:
                yield Problem(
                    "unknown_target",
                    f"State {name_of(key)!r} may go to {target!r}, which is no state of the net",
                    "Add that state to the net, or correct the target",
                    (name_of(key),),
                )


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
