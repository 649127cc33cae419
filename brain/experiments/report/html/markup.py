"""Making HTML: what is not markup already is escaped. Private."""

from __future__ import annotations

import json
from html import escape
from typing import Any


class Markup(str):
    """A text that is HTML."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return an element.

    Args:
        name: The name of the element.
        children: Markup is taken as it is, other texts are escaped, None is left out.
        attributes: The attributes: ``class_="big"``, ``aria_label=…``. None and False leave one
            out, True sets it without a value.
    """
    inside = join(*children)
    return Markup(f"<{name}{_written(attributes)}>{inside}</{name}>")


def single(name: str, /, **attributes: object) -> Markup:
    """Return an element that has no content and no end, such as ``meta``."""
    return Markup(f"<{name}{_written(attributes)}>")


def join(*children: object, between: str = "") -> Markup:
    """Return children one after another."""
    texts = (
        child if isinstance(child, Markup) else Markup(escape(str(child)))
        for child in children
        if child is not None
    )
    return Markup(between.join(texts))


def data_block(name: str, value: Any) -> Markup:
    """Return JSON that a script reads by the ID ``name``, and that no browser runs."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    opening = f"<script{_written({'type': 'application/json', 'id': name})}>"
    return Markup(f"{opening}{text}</script>")


def _written(attributes: dict[str, object]) -> str:
    found = []
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        key = name.rstrip("_").replace("_", "-")
        found.append(f" {key}" if value is True else f' {key}="{escape(str(value))}"')
    return "".join(found)
