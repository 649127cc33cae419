"""What can be known to be wrong with a model before it is called."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from agent_brain.states import LiteLLM
from agent_brain.states.models.litellm.faults import _PARAMETERS, faults_of
from agent_brain.testing import ScriptedLLM
from agent_brain.tools.litellm.setup import load_litellm


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
    assert faults_of(LiteLLM(name)) == []


def test_an_alias_and_a_named_provider_are_no_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(load_litellm().model_alias_map, "mine", "openai/gpt-4.1")

    assert faults_of(LiteLLM("mine")) == []
    assert faults_of(LiteLLM("yours", custom_llm_provider="openai")) == []
    assert faults_of(LiteLLM("yours", api_base="https://api.mistral.ai/v1")) == []


def test_what_providers_take_is_no_fault() -> None:
    names = """top_k num_ctx repetition_penalty max_new_tokens min_tokens extra_body think top_n
        keep_alive metadata rpm stop_sequences enable_thinking top_a""".split()

    params: dict[str, Any] = dict.fromkeys([*names, *_PARAMETERS], 1)
    assert faults_of(LiteLLM("openai/a", **params)) == []


@pytest.mark.parametrize(
    ("llm", "fault"),
    [
        (LiteLLM("opanai/a"), "'opanai/a': there is no provider 'opanai'. Did you mean 'openai'?"),
        (
            LiteLLM("gpt5-mini"),
            (
                "'gpt5-mini' has no provider: write PROVIDER/MODEL, as 'openai/gpt-4.1'. Did you mean "
                "'gpt-5-mini'?"
            ),
        ),
        (
            LiteLLM("openai/a", maxTokens=3),
            "there is no option 'maxTokens'. Did you mean 'max_tokens'?",
        ),
        (LiteLLM("openai/a", timout=3), "there is no option 'timout'. Did you mean 'timeout'?"),
        (
            LiteLLM("openai/a", fallbacks=[LiteLLM("opanai/b")]),
            "fallbacks: 'opanai/b': there is no provider 'opanai'. Did you mean 'openai'?",
        ),
    ],
)
def test_a_fault_is_told_with_what_may_be_meant(llm: LiteLLM, fault: str) -> None:
    assert faults_of(llm) == [fault]


def test_all_faults_are_told() -> None:
    assert len(faults_of(LiteLLM("gpt5", fallbacks=["opanai/a", "gpt6"], timout=1, sed=1))) == 5


def test_other_models_have_none() -> None:
    assert faults_of(ScriptedLLM([])) == []


def test_litellm_is_not_imported_for_what_looks_right() -> None:
    program = """
import sys
from agent_brain.states import LiteLLM
from agent_brain.states.models.litellm.faults import faults_of
for name in ("openai/gpt-4.1", "gpt-4.1-mini", "anthropic/new"):
    assert faults_of(LiteLLM(name, temperature=0, top_k=1, api_base="http://a", num_ctx=1)) == []
sys.exit("litellm" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
