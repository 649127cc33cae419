"""What can be known to be wrong with a model before it is called."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from agent_brain.common.litellm import load_litellm
from agent_brain.states import LiteLLM, StateDefinitionError
from agent_brain.states.models.litellm.adapter import _PARAMETERS


@pytest.mark.parametrize(
    "name",
    [
        "openai/not-known-yet",
        "gpt-4.1-mini",
        "ollama/llama3.2:3b",
        "openrouter/a/b",
        "custom_openai/a",
        "text-completion-openai/a",
        "ft:gpt-4o:mine",
    ],
)
def test_a_name_that_may_be_right_has_no_fault(name: str) -> None:
    assert LiteLLM(name).model == name


def test_an_alias_and_a_named_provider_are_no_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(load_litellm().model_alias_map, "mine", "openai/gpt-4.1")

    LiteLLM("mine")
    LiteLLM("yours", custom_llm_provider="openai")
    LiteLLM("/models/yours", custom_llm_provider="openai")
    LiteLLM("yours", api_base="https://api.mistral.ai/v1")


def test_what_providers_take_is_no_fault() -> None:
    names = """top_k num_ctx repetition_penalty max_new_tokens min_tokens extra_body think top_n
        keep_alive metadata rpm stop_sequences enable_thinking top_a""".split()

    params: dict[str, Any] = dict.fromkeys([*names, *_PARAMETERS], 1)
    LiteLLM("openai/a", **params)


NO_MODEL = "{!r} names no model: write PROVIDER/MODEL without spaces, as 'openai/gpt-4.1'"
UNUSABLE = ("openai/", "/gpt-4", "openai/gpt 4", "openai/gpt-4\n")


@pytest.mark.parametrize(
    ("name", "options", "fault"),
    [
        *[(name, {}, NO_MODEL.format(name)) for name in UNUSABLE],
        (
            "llama3",
            {"api_base": "http://localhost:8000/v1"},
            "'llama3' has no provider: write 'openai/llama3' or 'hosted_vllm/llama3'",
        ),
        ("opanai/a", {}, "'opanai/a': there is no provider 'opanai'. Did you mean 'openai'?"),
        (
            "gpt5-mini",
            {},
            (
                "'gpt5-mini' has no provider: write PROVIDER/MODEL, as 'openai/gpt-4.1'. "
                "Did you mean 'gpt-5-mini'?"
            ),
        ),
        ("OpenAI", {}, "'OpenAI' is a provider: write 'openai/MODEL', as 'openai/gpt-4.1'"),
        (
            "sora",
            {},
            "'sora' has no provider: write PROVIDER/MODEL, as 'openai/gpt-4.1'.",
        ),
        (
            "openai/a",
            {"maxTokens": 3, "fallbacks": ["opanai/b"]},
            (
                "there is no option 'maxTokens'. Did you mean 'max_tokens'?; "
                "fallbacks: 'opanai/b': there is no provider 'opanai'. Did you mean 'openai'?"
            ),
        ),
        ("openai/a", {"timout": 3}, "there is no option 'timout'. Did you mean 'timeout'?"),
    ],
)
def test_a_fault_is_told_with_what_may_be_meant(
    name: str, options: dict[str, Any], fault: str
) -> None:
    with pytest.raises(StateDefinitionError) as caught:
        LiteLLM(name, **options)
    assert str(caught.value) == fault


def test_litellm_is_not_imported_for_what_looks_right() -> None:
    program = """
import sys
from agent_brain.states import LiteLLM
for name in ("openai/gpt-4.1", "gpt-4.1-mini", "anthropic/new", "ollama_chat/a"):
    LiteLLM(name, temperature=0, top_k=1, api_base="http://a", num_ctx=1)
sys.exit("litellm" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
