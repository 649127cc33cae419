"""What a docstring says of a function and of its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The text of a docstring, and what it says of each parameter."""
    text = inspect.getdoc(function) or ""
    if not text:
        return "", {}
    import docstring_parser

    parsed = docstring_parser.parse(text)  # of several styles: one of them takes any text
    parts = (parsed.short_description, parsed.long_description)
    description = "\n\n".join(part for part in parts if part)
    texts = {
        name.strip(): param.description or ""
        for param in parsed.params
        for name in param.arg_name.split(",")  # NumPy style: "x, y : int"
    }
    return description or text, texts
