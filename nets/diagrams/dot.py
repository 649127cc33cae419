"""A net as a Graphviz digraph."""

from __future__ import annotations

from collections.abc import Iterator

from agent_brain.nets.diagrams.model import Arrow, Box, Picture

_VISITED = 'fillcolor="#dcebff", color="#1f5fbf", penwidth=2'


def to_dot(picture: Picture) -> str:
    """A digraph: a point where runs begin, a double circle where they end, nets inside as clusters.

    States that the drawn run visited are filled; the edges it took are strong and say how often.
    """
    lines = [
        f"digraph {_quoted(picture.name)} {{",
        "    rankdir=LR; compound=true;",
        '    node [shape=box, style="rounded,filled", fillcolor=white];',
        *_net(picture, "", "    "),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _net(picture: Picture, prefix: str, indent: str) -> Iterator[str]:
    start, end = _quoted(f"{prefix}__start__"), _quoted(f"{prefix}__end__")
    yield f"{indent}{start} [shape=point];"
    yield f'{indent}{end} [shape=doublecircle, label="", width=0.15];'
    for box in picture.boxes:
        node = prefix + box.label
        yield f"{indent}{_quoted(node)} [{_attributes(box)}];"
        for index, inner in enumerate(box.inside):
            yield from _cluster(inner, node, f"{node}/{index}/", indent)
    yield f"{indent}{start} -> {_quoted(prefix + picture.initial)};"
    for arrow in picture.arrows:
        target = end if arrow.target is None else _quoted(prefix + arrow.target)
        yield f"{indent}{_quoted(prefix + arrow.source)} -> {target}{_strength(arrow)};"


def _cluster(inner: Picture, node: str, prefix: str, indent: str) -> Iterator[str]:
    cluster = f"cluster_{prefix}"
    yield f"{indent}subgraph {_quoted(cluster)} {{"
    yield f"{indent}    label={_quoted(inner.name)}; style=rounded;"
    yield from _net(inner, prefix, indent + "    ")
    yield f"{indent}}}"
    first = _quoted(prefix + inner.initial)
    yield f"{indent}{_quoted(node)} -> {first} [lhead={_quoted(cluster)}, style=dotted];"


def _attributes(box: Box) -> str:
    parts = [f"label={_quoted(box.label)}"]
    if box.fallback:
        parts.append('style="rounded,filled,dashed"')
    if box.visits:
        parts.append(_VISITED)
    return ", ".join(parts)


def _strength(arrow: Arrow) -> str:
    strong = ', penwidth=2, color="#1f5fbf"' if arrow.taken else ""
    dashed = ", style=dashed" if arrow.on_error else ""
    return f' [label="{arrow.text}"{strong}{dashed}]' if arrow.text else ""


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
