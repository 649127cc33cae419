"""Limits on cost and tokens for models whose price or usage is unknown."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agent_brain import Brain, Limits, StopReason, react
from agent_brain.errors import BrainUseError, LLMRateLimitError
from agent_brain.states import Hook, ModelRequest, Usage
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import add

pytestmark = pytest.mark.anyio

CALL = Action(name="add", args={"a": 1, "b": 1})
UNPRICED = Usage(5, 5, model="my/model")
UNKNOWN = Usage(model="my/model")


def brain(limits: Limits, *usages: Usage) -> Brain:
    turns: list[Any] = [[CALL, usage] for usage in usages[:-1]]
    return Brain(react(ScriptedLLM([*turns, ["2", usages[-1]]])), tools=[add], limits=limits)


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "agent_brain.usage.budget"]


async def test_a_cost_that_cannot_be_watched_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    result = await brain(Limits(max_cost=1.0), UNPRICED, UNPRICED, UNPRICED).run("1 + 1?")
    assert result.stop_reason is StopReason.DONE
    (warning,) = warnings_in(caplog)
    assert warning.startswith("Limits(max_cost=1.0) cannot be checked: the price of 'my/model'")
    assert result.usage.cost is None


async def test_tokens_that_cannot_be_watched_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    result = await brain(Limits(max_tokens=100), UNKNOWN, UNKNOWN).run("1 + 1?")
    assert result.stop_reason is StopReason.DONE
    (warning,) = warnings_in(caplog)
    assert warning.startswith("Limits(max_tokens=100) cannot be checked: 'my/model' does not")


async def test_a_result_says_that_some_of_its_usage_is_an_estimate() -> None:
    exact = brain(Limits(), Usage(5, 5, 0.1), Usage(5, 5, 0.1))
    partly = brain(Limits(), Usage(5, 5, 0.1), Usage(5, 5, 0.1, estimated=True))
    assert not (await exact.run("1 + 1?")).usage.estimated
    assert (await partly.run("1 + 1?")).usage.estimated
    assert partly.memory.control.spent.estimated == 1


@pytest.mark.parametrize(
    ("limits", "usage", "words"),
    [
        (Limits(max_cost=1.0, strict=True), UNPRICED, "the price of 'my/model' is unknown"),
        (Limits(max_tokens=100, strict=True), UNKNOWN, "'my/model' does not report its usage"),
        (Limits(max_tokens=100, strict=True), Usage(), "the model does not report its usage"),
    ],
)
async def test_a_strict_limit_that_cannot_be_watched_ends_the_run(
    limits: Limits, usage: Usage, words: str
) -> None:
    with pytest.raises(BrainUseError, match=words):
        await brain(limits, usage, usage).run("1 + 1?")


@pytest.mark.parametrize(
    ("limits", "usage"),
    [
        (Limits(max_cost=1.0, strict=True), Usage(5, 5, 0.1)),
        (Limits(max_cost=1.0, strict=True), Usage(5, 5, 0.0)),
        (Limits(max_tokens=100, strict=True), UNPRICED),
        (Limits(max_tokens=100, strict=True), Usage(5, 5, estimated=True)),
        (Limits(max_tokens=100, max_cost=1.0, strict=True), Usage(cost=0.0)),  # a failed try
        (Limits(strict=True), UNKNOWN),
    ],
)
async def test_a_strict_limit_that_can_be_watched_is_quiet(
    limits: Limits, usage: Usage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "agent_brain.usage.budget")
    result = await brain(limits, usage, usage).run("1 + 1?")
    assert result.stop_reason is StopReason.DONE
    assert warnings_in(caplog) == []


async def test_an_estimate_counts_towards_the_limit() -> None:
    usage = Usage(60, 60, estimated=True)
    result = await brain(Limits(max_tokens=100), usage, usage).run("1 + 1?")
    assert result.stop_reason is StopReason.MAX_TOKENS


STRICT = [Limits(max_cost=1.0, strict=True), Limits(max_tokens=100, strict=True)]


@pytest.mark.parametrize("limits", STRICT)
async def test_a_strict_limit_does_not_hide_why_a_call_failed(limits: Limits) -> None:
    failing = Brain(react(ScriptedLLM([LLMRateLimitError("slow down")])), limits=limits)
    with pytest.raises(LLMRateLimitError, match="slow down"):
        await failing.run("1 + 1?")
    assert failing.memory.control.spent.requests == 1


@pytest.mark.parametrize("limits", [Limits(), *STRICT])
async def test_a_hook_that_fails_before_a_call_has_called_no_model(limits: Limits) -> None:
    class Broken(Hook):
        def before_model_call(self, request: ModelRequest) -> None:
            raise ValueError("the hook is broken")

    failing = Brain(react(ScriptedLLM(["2"])), limits=limits, hooks=[Broken()])
    with pytest.raises(ValueError, match="the hook is broken"):
        await failing.run("1 + 1?")
    spent = failing.memory.control.spent
    assert (spent.requests, spent.unpriced) == (0, 0)
