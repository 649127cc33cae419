"""Fields of a request that cannot be honoured, and would change the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from agent_brain.serving.web.openai.errors import unsupported

Refusals: TypeAlias = Mapping[str, tuple[Callable[[Any], bool], str]]


def is_set(value: Any) -> bool:
    """Return whether a field asks for anything."""
    return value is not None and value is not False and value not in ([], {}, "", 0)


def _forces_a_tool(value: Any) -> bool:
    return value not in (None, "auto", "none")


OWN_TOOLS = "the agent has tools of its own, and cannot call yours"
NO_LOGPROBS = "an agent has no log probabilities"
NO_MEDIA = "the agent answers in text"

COMMON: Refusals = {
    "tools": (is_set, OWN_TOOLS),
    "tool_choice": (_forces_a_tool, OWN_TOOLS),
    "top_logprobs": (is_set, NO_LOGPROBS),
}
CHAT: Refusals = {
    **COMMON,
    "functions": (is_set, OWN_TOOLS),
    "function_call": (_forces_a_tool, OWN_TOOLS),
    "n": (lambda value: value not in (None, 1), "there is one answer"),
    "stop": (is_set, "the text is not searched for stop sequences"),
    "logprobs": (is_set, NO_LOGPROBS),
    "logit_bias": (is_set, "the agent's models have settings of their own"),
    "modalities": (lambda value: value not in (None, [], ["text"]), NO_MEDIA),
    "audio": (is_set, NO_MEDIA),
    "web_search_options": (lambda value: value is not None, OWN_TOOLS),
}
RESPONSES: Refusals = {
    **COMMON,
    "background": (is_set, "a run ends with its connection; POST /sessions starts detached ones"),
    "max_tool_calls": (lambda value: value is not None, "the agent has limits of its own"),
    "prompt": (is_set, "the server has no prompt templates"),
}


def check_fields(fields: Mapping[str, Any], refusals: Refusals) -> None:
    """Refuse fields that would silently not be honoured.

    Args:
        fields: The fields of a request.
        refusals: By field: whether a value is refused, and why.

    Raises:
        ApiError: A field is refused.
    """
    for name, (refused, why) in refusals.items():
        if name not in fields:
            continue
        with suppress(TypeError, ValueError):  # not of the field's type: refused too
            if not refused(fields[name]):
                continue
        raise unsupported(name, why)
