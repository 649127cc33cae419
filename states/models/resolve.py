"""Models by name, wherever a model is expected."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import TypeVar, cast
from weakref import WeakSet

from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.models.llm import LLM
from agent_brain.tools.suggest import did_you_mean

T = TypeVar("T")

_BUILT_IN = {"demo": ("agent_brain.demo", "DemoLLM")}  # from a package that builds on this one

made_of_names: WeakSet[LLM] = WeakSet()
"""Models that nobody else can close: a Brain closes those of its net."""


def as_llm(llm: LLM | str) -> LLM:
    """``llm`` itself, or the model of that name: ``"demo"``, or one that LiteLLM knows.

    Raises:
        StateDefinitionError: It is neither a model nor a name.
    """
    if isinstance(llm, LLM):
        return llm
    if not isinstance(llm, str) or not llm.strip():
        given: object = llm
        raise StateDefinitionError(
            f"{given!r} is not a model: pass a LiteLLM model name such as 'openai/gpt-4.1', or an "
            "LLM object" + (", not its class" if isinstance(given, type) else "")
        )
    if llm in _BUILT_IN:
        module, name = _BUILT_IN[llm]
        made = cast("LLM", getattr(import_module(module), name)())
    else:
        from agent_brain.states.models.litellm.adapter import LiteLLM

        made = LiteLLM(llm)
    made_of_names.add(made)
    return made


def llm_or(value: T | str) -> T | LLM:
    """The model that ``value`` names, if it is a text; else ``value``, a model or a function.

    Raises:
        StateDefinitionError: It is neither.
    """
    return as_llm(value) if isinstance(value, str) else _usable(value)


def choice_or_llm(option: str, value: T | str, choices: Collection[str]) -> T | LLM | str:
    """For an option that takes one of ``choices``, a function or a model, which may be a name.

    Raises:
        StateDefinitionError: A text that is neither a choice nor names a model with its provider,
            or something else that is neither a model nor a function.
    """
    if not isinstance(value, str):
        return _usable(value)
    if value in choices:
        return value
    if "/" in value or value in _BUILT_IN:
        return as_llm(value)
    raise StateDefinitionError(
        f"{option}={value!r}: use {' or '.join(map(repr, choices))}, a function, or a model such "
        f"as 'openai/gpt-4.1'.{did_you_mean(value, choices)}"
    )


def _usable(value: T) -> T:
    if isinstance(value, LLM) or (callable(value) and not isinstance(value, type)):
        return value
    raise StateDefinitionError(f"{value!r} is neither a model nor a function")
