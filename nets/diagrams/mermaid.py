"""Nets as Mermaid state diagrams."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent_brain.nets.diagrams.model import Diagram, quoted

_PLAIN = re.compile(r"\w[\w -]*")
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_KEYWORDS = {"state", "note", "end", "class", "classdef", "style", "scale", "direction", "default"}
_STYLE = "classDef visited fill:#dcebff,stroke:#1f5fbf,stroke-width:2px"


def to_mermaid(diagram: Diagram) -> str:
    """Return a ``stateDiagram-v2``: ``[*]`` is the start and the end; a note marks the fallback.

    States that the run visited are filled; edges that it took have their count.
    """
    title = diagram.name
    if not _PLAIN.fullmatch(title):
        title = quoted(title.replace("\n", " "))
    lines = ["---", f"title: {title}", "---", "stateDiagram-v2", *_net(diagram, "", "    ")]
    if any(box.visits for part in diagram.with_inner() for box in part.boxes):
        lines.append(f"    {_STYLE}")
    return "\n".join(lines) + "\n"


def _net(diagram: Diagram, prefix: str, indent: str) -> Iterator[str]:
    ids = {
        box.label: prefix + _identifier(box.label, index, plain=not prefix)
        for index, box in enumerate(diagram.boxes)
    }
    for box in diagram.boxes:
        if ids[box.label] != box.label:
            yield f"{indent}state {quoted(box.label)} as {ids[box.label]}"
    for box in diagram.boxes:
        yield from _inside(box.inside, ids[box.label], indent)
    yield f"{indent}[*] --> {ids[diagram.initial]}"
    for arrow in diagram.arrows:
        target = "[*]" if arrow.target is None else ids.get(arrow.target, arrow.target)
        often = f" : {arrow.text}" if arrow.text else ""
        yield f"{indent}{ids[arrow.source]} --> {target}{often}"
    for box in diagram.boxes:
        if box.fallback:
            yield f"{indent}note right of {ids[box.label]}: fallback when a limit is reached"
        if box.visits:
            yield f"{indent}class {ids[box.label]} visited"


def _inside(diagrams: tuple[Diagram, ...], owner: str, indent: str) -> Iterator[str]:
    if not diagrams:
        return
    yield f"{indent}state {owner} {{"
    if len(diagrams) == 1:
        yield from _net(diagrams[0], f"{owner}_", indent + "    ")
    else:
        for index, diagram in enumerate(diagrams):
            branch = f"{owner}_b{index}"
            yield f"{indent}    state {quoted(diagram.name)} as {branch}"
            yield f"{indent}    state {branch} {{"
            yield from _net(diagram, f"{branch}_", indent + "        ")
            yield f"{indent}    }}"
    yield f"{indent}}}"


def _identifier(name: str, index: int, *, plain: bool) -> str:
    """Return ``name``, or another ID if Mermaid would not read it as one."""
    safe = _WORD.fullmatch(name) and (not plain or name.lower() not in _KEYWORDS)
    return name if safe else f"s{index}"
