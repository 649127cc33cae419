"""How much of a tool's own words goes into every request to a model."""

from __future__ import annotations

from typing import Any

from agent_brain.tools.errors import ToolDefinitionError
from agent_brain.tools.text import clean, count_tokens, shorten, to_text

SCHEMA_SHARE = 10  # a schema may be as long as this many descriptions
_DATA = ("default", "const", "enum", "examples")


def fitting_description(text: str, limit: int | None) -> str:
    """``text`` in at most ``limit`` tokens."""
    return clean(text) if limit is None else shorten(clean(text), limit)


def fitting_schema(name: str, schema: dict[str, Any], limit: int | None) -> dict[str, Any]:
    """``schema`` with the descriptions in it shortened.

    Raises:
        ToolDefinitionError: It is too long even so.
    """
    if limit is None:
        return schema
    fitted: dict[str, Any] = _shortened(schema, limit) if _is_long(schema, limit) else schema
    tokens = count_tokens(to_text(fitted))
    if tokens > SCHEMA_SHARE * limit:
        raise ToolDefinitionError(
            f"Tool {name!r} cannot be used: its input_schema has {tokens:,} tokens, and "
            f"{SCHEMA_SHARE * limit:,} are allowed: raise maxDescriptionTokens, a tenth "
            "of that, or set it to null"
        )
    return fitted


def _is_long(schema: dict[str, Any], limit: int) -> bool:
    return count_tokens(to_text(schema)) > limit


def _shortened(node: Any, limit: int) -> Any:
    if isinstance(node, dict):
        return {
            key: shorten(value, limit)
            if key == "description" and isinstance(value, str)
            else value
            if key in _DATA
            else _shortened(value, limit)
            for key, value in node.items()
        }
    return [_shortened(item, limit) for item in node] if isinstance(node, list) else node
