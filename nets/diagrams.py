"""A net as a picture, in languages that need no program to write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum

from agent_brain.nets.edges import Target

_PLAIN = re.compile(r"\w[\w -]*")
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_KEYWORDS = {"state", "note", "end", "class", "classdef", "style", "scale", "direction", "default"}


def to_mermaid(
    name: str, edges: Mapping[Enum, tuple[Target, ...]], initial: Enum, fallback: Enum | None
) -> str:
    """A ``stateDiagram-v2``: ``[*]`` is where runs begin and end; a note marks the fallback."""
    ids = {key: _mermaid_id(key.name, index) for index, key in enumerate(edges)}
    title = name if _PLAIN.fullmatch(name) else _quoted(name.replace("\n", " "))
    lines = ["---", f"title: {title}", "---", "stateDiagram-v2"]
    lines += [f"    state {_quoted(k.name)} as {i}" for k, i in ids.items() if i != k.name]
    lines.append(f"    [*] --> {ids[initial]}")
    for source, target in _pairs(edges):
        lines.append(f"    {ids[source]} --> {'[*]' if target is None else ids[target]}")
    if fallback is not None:
        lines.append(f"    note right of {ids[fallback]}: fallback when a limit is reached")
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


def _mermaid_id(name: str, index: int) -> str:
    """``name`` itself, or another id for it where mermaid would read something else into it."""
    return name if _WORD.fullmatch(name) and name.lower() not in _KEYWORDS else f"s{index}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
