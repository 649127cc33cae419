"""What can be known to be wrong with a model before it is called.

Nothing here needs a network. litellm is imported only for a name or a parameter that looks wrong,
and has the last word on it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent_brain.common.litellm.names import faults_in_name
from agent_brain.common.litellm.setup import load_litellm
from agent_brain.common.suggest import closest
from agent_brain.states.models.litellm.provider_tools import names_of

if TYPE_CHECKING:
    from agent_brain.states.models.litellm.adapter import LiteLLM

_PARAMETERS = frozenset(
    """api_base api_key api_version base_url custom_llm_provider deployment_id drop_params
    extra_headers frequency_penalty input_cost_per_token logit_bias logprobs max_completion_tokens
    max_tokens n organization output_cost_per_token parallel_tool_calls presence_penalty
    prompt_cache_key reasoning_effort response_format safety_identifier seed service_tier stop
    temperature thinking tool_choice top_logprobs top_p user verbosity web_search_options""".split()
)
"""Parameters of a call that need no further look. Providers have others, so a parameter is wrong
only if it is nearly one of these."""
_NEARLY = 0.85  # how similar a misspelt parameter is at least


def faults_of(llm: LiteLLM) -> list[str]:
    """Return what is wrong with the name and the parameters of a model, and its fallbacks' names.

    A name that only its provider can judge has no fault.
    """
    return list(_faults(llm))


def _faults(llm: LiteLLM) -> Iterator[str]:
    yield from faults_in_name(llm.model, llm.params)
    for option in llm.params:
        yield from _of_option(option, type(llm))
    for fallback in llm.fallbacks:
        if isinstance(fallback, str):
            yield from (f"fallbacks: {fault}" for fault in faults_in_name(fallback, {}))
    names = names_of(llm.provider_tools, llm.params.get("tools"))
    if len({*names}) < len(names):
        yield f"give each tool of the provider once, not {', '.join(names)}"


def _of_option(name: str, kind: type[LiteLLM]) -> Iterator[str]:
    if name in _PARAMETERS:
        return
    meant = closest(name, {*inspect.signature(kind).parameters, *_PARAMETERS}, _NEARLY)
    if meant is not None and name not in _of_litellm():
        yield f"there is no option {name!r}. Did you mean {meant!r}?"


def _of_litellm() -> set[str]:
    """Return the names of all parameters that litellm knows."""
    litellm = load_litellm()
    more = getattr(litellm.types.utils, "all_litellm_params", ())
    return {*inspect.signature(litellm.acompletion).parameters, *more}
