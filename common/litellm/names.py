"""The names of models, and what can be known to be wrong with one before it is used."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agent_brain.common.litellm.setup import load_litellm
from agent_brain.common.suggest import did_you_mean

_PROVIDERS = "types/utils.py"
_PRICES = "model_prices_and_context_window_backup.json"


def faults_in_name(
    name: str,
    params: Mapping[str, Any],
    *,
    modes: Collection[str] = ("chat", "responses"),
    example: str = "openai/gpt-4.1",
) -> Iterator[str]:
    """Yield what is wrong with the name of a model; nothing if only its provider can judge it.

    litellm is imported only for a name that looks wrong, and has the last word on it.

    Args:
        name: The name.
        params: What is passed with each request.
        modes: The kinds of models in litellm's table that may be meant.
        example: A right name.
    """
    provider, slash, rest = name.partition("/")
    no_part = slash and not (provider and rest) and "custom_llm_provider" not in params
    if no_part or re.search(r"\s", name):
        yield f"{name!r} names no model: write PROVIDER/MODEL without spaces, as {example!r}"
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
            yield f"{name!r} is a provider: write '{name.casefold()}/MODEL', as {example!r}"
        elif address:
            yield f"{name!r} has no provider: write 'openai/{name}' or 'hosted_vllm/{name}'"
        else:
            models = litellm.model_cost.items()
            hint = did_you_mean(name, [each for each, told in models if told.get("mode") in modes])
            yield f"{name!r} has no provider: write PROVIDER/MODEL, as {example!r}.{hint}"


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
