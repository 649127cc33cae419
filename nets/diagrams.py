"""A net as a picture, in languages that need no program to write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

from agent_brain.nets.edges import Target


def to_mermaid(
    name: str, edges: Mapping[Enum, tuple[Target, ...]], initial: Enum, fallback: Enum | None
) -> str:
    """A ``stateDiagram-v2``: ``[*]`` is where runs begin and end; a dotted note marks the fallback."""
    lines = ["---", f"title: {name}", "---", "stateDiagram-v2", f"    [*] --> {initial.name}"]
    for source, target in _pairs(edges):
        lines.append(f"    {source.name} --> {'[*]' if target is None else target.name}")
    if fallback is not None:
        lines.append(f"    note right of {fallback.name}: fallback when a limit is reached")
    return "\n".join(lines) + "\n"


def to_dot(
    name: str, edges: Mapping[Enum, tuple[Target, ...]], initial: Enum, fallback: Enum | None
) -> str:
    """A digraph for Graphviz: a point where runs begin, a double circle where they end."""
    lines = [
        f"digraph {_quoted(name)} {{",
        "    rankdir=LR;",
        "    node [shape=box, style=rounded];",
        "    __start__ [shape=point];",
        '    __end__ [shape=doublecircle, label="", width=0.15];',
    ]
    for key in edges:
        style = ' [style="rounded,dashed"]' if key is fallback else ""
        lines.append(f"    {_quoted(key.name)}{style};")
    lines.append(f"    __start__ -> {_quoted(initial.name)};")
    for source, target in _pairs(edges):
        end = "__end__" if target is None else _quoted(target.name)
        lines.append(f"    {_quoted(source.name)} -> {end};")
    return "\n".join([*lines, "}"]) + "\n"


def _pairs(edges: Mapping[Enum, tuple[Target, ...]]) -> Iterator[tuple[Enum, Target]]:
    return ((source, target) for source, targets in edges.items() for target in targets)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
