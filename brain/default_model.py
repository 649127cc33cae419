"""The model of a Brain that is given a name, or none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

from agent_brain.errors import BrainDefinitionError
from agent_brain.nets.net import Net, subnets_of
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.hooks import Hook
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.tools.base import BaseTool

MODEL_VARIABLE = "AGENT_BRAIN_MODEL"


def resolve_llm(llm: LLM | str | None) -> LLM:
    """Return ``llm`` itself, the LiteLLM model of that name, or the default model.

    The default is the model that the environment variable ``AGENT_BRAIN_MODEL`` names; if it is
    unset, the built-in offline demo model, which says that it is one.

    Raises:
        BrainDefinitionError: ``llm`` is none of these, or a name that LiteLLM does not know.
    """
    if isinstance(llm, LLM):
        return llm
    source = "llm"
    if llm is None:
        source, llm = MODEL_VARIABLE, os.environ.get(MODEL_VARIABLE, "").strip() or "demo"
    if not isinstance(llm, str) or not llm:
        raise BrainDefinitionError(
            f"llm={llm!r} is not a model: pass a LiteLLM model name such as 'openai/gpt-4.1', an "
            "LLM object, or nothing"
        )
    try:
        return as_llm(llm)
    except StateDefinitionError as error:
        raise BrainDefinitionError(f"{source}: {error}") from None


_models: WeakKeyDictionary[Net, tuple[LLM, ...]] = WeakKeyDictionary()


def models_of(net: Net) -> tuple[LLM, ...]:
    """Return the models of the states of ``net``, and of the nets inside, each once."""
    found = _models.get(net)
    if found is None:
        found = _models[net] = tuple(dict.fromkeys(_find_models(net)))
    return found


def _find_models(net: Net) -> Iterator[LLM]:
    for state in net.states.values():
        state = getattr(state, "wrapped", state)
        yield from (value for value in vars(state).values() if isinstance(value, LLM))
        for subnet in subnets_of(state).values():
            yield from _find_models(subnet)


def models_of_run(
    net: Net, tools: Iterable[BaseTool], hooks: Iterable[Hook], known: set[Net] | None = None
) -> Iterator[LLM]:
    """Yield the models that a run may call: of its net, its hooks, and of brains as tools."""
    known = {net} if known is None else known | {net}
    yield from models_of(net)
    for hook in hooks:
        yield from (value for value in vars(hook).values() if isinstance(value, LLM))
    for tool in tools:
        brain = getattr(tool, "brain", None)
        if brain is not None and brain.net not in known:
            inner = brain.memory.available_tools.values()
            yield from models_of_run(brain.net, inner, brain.hooks, known)
