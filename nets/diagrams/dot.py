"""Nets as Graphviz digraphs."""

from __future__ import annotations

from collections.abc import Iterator

from agent_brain.nets.diagrams.model import Box, Diagram, quoted

_VISITED = 'fillcolor="#dcebff", color="#1f5fbf", penwidth=2'
_STRONG = ', penwidth=2, color="#1f5fbf"'


def to_dot(diagram: Diagram) -> str:
    """Return a digraph with a start point, an end circle, and clusters for inner nets.

    States that the run visited are filled; edges that it took are bold, with their count.
    """
    lines = [
        f"digraph {quoted(diagram.name)} {{",
        "    rankdir=LR; compound=true;",
        '    node [shape=box, style="rounded,filled", fillcolor=white];',
        *_net(diagram, "", "    "),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _net(diagram: Diagram, prefix: str, indent: str) -> Iterator[str]:
    start, end = quoted(f"{prefix}__start__"), quoted(f"{prefix}__end__")
    yield f"{indent}{start} [shape=point];"
    yield f'{indent}{end} [shape=doublecircle, label="", width=0.15];'
    for box in diagram.boxes:
        node = prefix + box.label
        yield f"{indent}{quoted(node)} [{_attributes(box)}];"
        for index, inner in enumerate(box.inside):
            yield from _cluster(inner, node, f"{node}/{index}/", indent)
    yield f"{indent}{start} -> {quoted(prefix + diagram.initial)};"
    for arrow in diagram.arrows:
        target = end if arrow.target is None else quoted(prefix + arrow.target)
        strong = _STRONG if arrow.taken else ""
        dashed = ", style=dashed" if arrow.on_error else ""
        look = f' [label="{arrow.text}"{strong}{dashed}]' if arrow.text else ""
        yield f"{indent}{quoted(prefix + arrow.source)} -> {target}{look};"


def _cluster(inner: Diagram, node: str, prefix: str, indent: str) -> Iterator[str]:
    cluster = f"cluster_{prefix}"
    yield f"{indent}subgraph {quoted(cluster)} {{"
    yield f"{indent}    label={quoted(inner.name)}; style=rounded;"
    yield from _net(inner, prefix, indent + "    ")
    yield f"{indent}}}"
    first = quoted(prefix + inner.initial)
    yield f"{indent}{quoted(node)} -> {first} [lhead={quoted(cluster)}, style=dotted];"


def _attributes(box: Box) -> str:
    parts = [f"label={quoted(box.label)}"]
    if box.fallback:
        parts.append('style="rounded,filled,dashed"')
    if box.visits:
        parts.append(_VISITED)
    return ", ".join(parts)
