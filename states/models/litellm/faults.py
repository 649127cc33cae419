"""What can be known to be wrong with a model before it is called.

Nothing here needs a network. litellm is imported only for a name or a parameter that looks wrong,
and has the last word on it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_brain.common.litellm.setup import load_litellm
from agent_brain.common.suggest import closest, did_you_mean

if TYPE_CHECKING:
    from agent_brain.states.models.litellm.adapter import LiteLLM

_PROVIDERS = "types/utils.py"
_PRICES = "model_prices_and_context_window_backup.json"
_PARAMETERS = frozenset(
    """api_base api_key api_version base_url custom_llm_provider deployment_id drop_params
    extra_headers frequency_penalty input_cost_per_token logit_bias logprobs max_completion_tokens
    max_tokens n organization output_cost_per_token parallel_tool_calls presence_penalty
    prompt_cache_key reasoning_effort response_format safety_identifier seed service_tier stop
    temperature thinking tool_choice top_logprobs top_p user verbosity web_search_options""".split()
)
"""Parameters of a call that need no further look. Providers have others, so a parameter is wrong
only if it is nearly one of these."""
_CHAT = ("chat", "responses")  # modes of models in litellm's table
_NEARLY = 0.85  # how similar a misspelt parameter is at least


def faults_of(llm: LiteLLM) -> list[str]:
    """Return what is wrong with the name and the parameters of a model, and its fallbacks' names.

    A name that only its provider can judge has no fault.
    """
    return list(_faults(llm))


def _faults(llm: LiteLLM) -> Iterator[str]:
    yield from _of_name(llm.model, llm.params)
    for option in llm.params:
        yield from _of_option(option, type(llm))
    for fallback in llm.fallbacks:
        if isinstance(fallback, str):
            yield from (f"fallbacks: {fault}" for fault in _of_name(fallback, {}))


def _of_name(name: str, params: Mapping[str, Any]) -> Iterator[str]:
    provider, slash, rest = name.partition("/")
    no_part = slash and not (provider and rest) and "custom_llm_provider" not in params
    if no_part or re.search(r"\s", name):
        yield f"{name!r} names no model: write PROVIDER/MODEL without spaces, as 'openai/gpt-4.1'"
        return
    if "custom_llm_provider" in params or _is_known(name):
        return
    address = params.get("api_base") or params.get("base_url")
    litellm = load_litellm()
    if name in litellm.model_alias_map or name in litellm.model_cost:
        return
    try:
        litellm.get_llm_provider(name, api_base=address)
    except litellm.BadRequestError:
        providers = {str(getattr(one, "value", one)) for one in litellm.provider_list}
        if slash:
            yield f"{name!r}: there is no provider {provider!r}.{did_you_mean(provider, providers)}"
        elif name.casefold() in providers:
            yield f"{name!r} is a provider: write '{name.casefold()}/MODEL', as 'openai/gpt-4.1'"
        elif address:
            yield f"{name!r} has no provider: write 'openai/{name}' or 'hosted_vllm/{name}'"
        else:
            models = litellm.model_cost.items()
            hint = did_you_mean(name, [each for each, told in models if told.get("mode") in _CHAT])
            yield f"{name!r} has no provider: write PROVIDER/MODEL, as 'openai/gpt-4.1'.{hint}"


@cache
def _is_known(name: str) -> bool:
    """Return whether litellm's files have the provider of a model, or a model without one."""
    found = find_spec("litellm")
    folder = Path((found and found.origin) or "nowhere").parent
    provider, slash, _ = name.partition("/")
    try:
        if slash:
            return f' = "{provider}"\n' in (folder / _PROVIDERS).read_text("utf-8")
        return f'\n    "{name}": {{' in (folder / _PRICES).read_text("utf-8")
    except OSError:
        return False  # another version of litellm


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
