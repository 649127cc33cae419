"""Create models from their names."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from importlib import import_module
from typing import TypeVar, cast
from weakref import WeakSet

from agent_brain.common.suggest import did_you_mean
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.models.llm import LLM

T = TypeVar("T")

RULES = {  # models that are programs; imported by name, as they build on this package
    "demo": ("agent_brain.demo", "DemoLLM"),
    "rule-based": ("agent_brain.experiments.rule_based.llm", "RuleBasedLLM"),
}

made_of_names: WeakSet[LLM] = WeakSet()
"""Models that no one else can close: a Brain closes those of its net."""


def as_llm(llm: LLM | str) -> LLM:
    """Return ``llm``, or the model of that name.

    It is ``"demo"``, ``"rule-based"`` or one that LiteLLM supports.

    Raises:
        StateDefinitionError: It is neither a model nor a name, or a name without a provider that
            LiteLLM knows.
    """
    if isinstance(llm, LLM):
        return llm
    if not isinstance(llm, str) or not llm.strip():
        given: object = llm
        raise StateDefinitionError(
            f"{given!r} is not a model: pass a LiteLLM model name such as 'openai/gpt-4.1', or an "
            "LLM object" + (", not its class" if isinstance(given, type) else "")
        )
    made = maker_of(llm)()
    made_of_names.add(made)
    return made


def maker_of(name: str) -> Callable[..., LLM]:
    """Return what makes the model of a name, given its options."""
    if name in RULES:
        module, attribute = RULES[name]
        return cast("type[LLM]", getattr(import_module(module), attribute))
    from agent_brain.states.models.litellm.adapter import LiteLLM

    return partial(LiteLLM, name)


def llm_or(value: T | str) -> T | LLM:
    """Return the model of the name ``value``, or ``value`` if it is a model or a function.

    Raises:
        StateDefinitionError: It is neither.
    """
    return as_llm(value) if isinstance(value, str) else _usable(value)


def choice_or_llm(option: str, value: T | str, choices: Collection[str]) -> T | LLM | str:
    """Resolve an option that accepts one of ``choices``, a function, a model or its name.

    Raises:
        StateDefinitionError: It is a text that is neither a choice nor the name of a model with its
            provider, or something else that is neither a model nor a function.
    """
    if not isinstance(value, str):
        return _usable(value)
    if value in choices:
        return value
    if "/" in value or value in RULES:
        return as_llm(value)
    raise StateDefinitionError(
        f"{option}={value!r}: use {' or '.join(map(repr, choices))}, a function, or a model such "
        f"as 'openai/gpt-4.1'.{did_you_mean(value, choices)}"
    )


def _usable(value: T) -> T:
    if isinstance(value, LLM) or (callable(value) and not isinstance(value, type)):
        return value
    raise StateDefinitionError(f"{value!r} is neither a model nor a function")
