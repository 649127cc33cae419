"""Options of a wrong kind are refused where they are written, with an error that names them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest

from agent_brain import (
    AgentBrainError,
    Brain,
    Limits,
    LiteLLM,
    Message,
    MessagesMemory,
    ParallelState,
    StuckPolicy,
    SubnetState,
    SummaryMemory,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
    react,
    tool,
)
from agent_brain.memories import MessageQueue
from agent_brain.nets import (
    debate,
    plan_execute,
    reflexion,
    router,
    self_consistency,
    tree_of_thoughts,
)
from agent_brain.states import ActionState, FunctionState, GuardedState
from agent_brain.testing import FakeMemory, ScriptedLLM, run_net
from agent_brain.testing.models import ScriptError
from agent_brain.tools import Toolset
from agent_brain.tools.builtin import http_get_tool


class S(Enum):
    A = "a"


async def nothing(memory: Any) -> None:
    """Do nothing."""


def add(number: int) -> int:
    "Add one."
    return number + 1


LLM = ScriptedLLM(["x"])
NET = react(LLM)
STATE = FunctionState(nothing)
WRONG: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], str]] = [
    *((Limits, (), {name: "3"}, name) for name in ("max_steps", "timeout", "max_cost")),
    (Limits, (), {"max_tokens": True}, "max_tokens"),
    (Limits, (), {"strict": "yes"}, "strict"),
    (StuckPolicy, (), {"threshold": "3"}, "threshold"),
    (StuckPolicy, (), {"hints": None}, "hints"),
    (StuckPolicy, (), {"prompt": 3}, "prompt"),
    (Brain, (), {"dry_run": "no"}, "dry_run"),
    (Brain().over, ("windowed",), {}, "windowed"),
    (SubnetState, ("react",), {}, "'react' is neither a Net nor a dict of states"),
    (SubnetState, (3,), {}, "neither a Net"),
    (ParallelState, ({"a": 3},), {}, "neither a Net"),
    (ParallelState, ({3: NET},), {}, "3"),
    (ParallelState, ([NET],), {"join": 3}, "join"),
    (ParallelState, ([NET],), {"on_error": "raport"}, "on_error"),
    (GuardedState, (3,), {}, "GuardedState takes a state"),
    (GuardedState, (STATE,), {"timeout": "3"}, "timeout"),
    (GuardedState, (STATE,), {"retries": "3"}, "retries"),
    (ActionState, (S.A,), {"max_concurrency": "3"}, "max_concurrency"),
    (plan_execute, (LLM,), {"max_plans": 0}, "max_plans"),
    (plan_execute, (LLM,), {"max_steps": "3"}, "max_steps"),
    (plan_execute, (LLM,), {"evaluate": 3}, "neither a model nor a function"),
    (plan_execute, (LLM,), {"step": "react"}, "neither a Net"),
    (reflexion, (LLM,), {"attempts": "3"}, "attempts"),
    (self_consistency, (LLM,), {"paths": 2.5}, "paths"),
    (self_consistency, (LLM,), {"vote": 3}, "neither a model nor a function"),
    (tree_of_thoughts, (LLM,), {"depth": "2"}, "depth"),
    (tree_of_thoughts, (LLM,), {"evaluate": 3}, "neither a model nor a function"),
    (debate, (LLM,), {"personas": ["Ann", "Bob"]}, "personas"),
    (router, (LLM,), {"choose": 3}, "neither a model nor a function"),
    (router, (LLM,), {"routes": {"chat": "react"}}, "neither a Net"),
    (WindowedMemory, (), {"max_messages": "3"}, "max_messages"),
    (WindowedMemory, (), {"max_messages": 2.5}, "max_messages"),
    (WindowedMemory, (), {"counter": 3}, "counter"),
    (WindowedMemory, (), {"on_evict": 3}, "on_evict"),
    (SummaryMemory, (), {"keep": "2"}, "keep"),
    (SummaryMemory, (), {"summarize": LLM}, "model_summarizer"),
    (VectorMemory, (), {"recent": "3"}, "recent="),
    (VectorMemory, (), {"k": "3"}, "k="),
    (MessagesMemory, (), {"ttl": "3 days"}, "ttl"),
    (TodoMemory, ("messages",), {}, "TodoMemory takes a memory"),
    (MessageQueue().push, (Message.user("x"),), {"priority": "high"}, "priority"),
    (LiteLLM, ("openai/x",), {"timeout": "3"}, "timeout"),
    (LiteLLM, ("openai/x",), {"fallbacks": [3]}, "fallbacks"),
    (LiteLLM, ("openai/x",), {"retries": None}, "retries"),
    (tool(timeout="3"), (add,), {}, "timeout"),  # type: ignore[call-overload]
    (tool(max_concurrency="3"), (add,), {}, "max_concurrency"),  # type: ignore[call-overload]
    (tool(max_result_tokens="3"), (add,), {}, "max_result_tokens"),  # type: ignore[call-overload]
    (tool(requires_approval="yes"), (add,), {}, "requires_approval"),  # type: ignore[call-overload]
    (tool(idempotent="no"), (add,), {}, "idempotent"),  # type: ignore[call-overload]
    (Toolset([add]).filter, (), {"allow": 3}, "does not select tools"),
    (http_get_tool, ([3],), {}, "is not a host"),
    (FakeMemory, ("goal", ["Hello"]), {}, "Message.user"),
]


def test_a_value_of_a_wrong_kind_is_refused_where_it_is_written() -> None:
    for make, args, options, hint in WRONG:
        with pytest.raises(AgentBrainError) as caught:
            make(*args, **options)
        assert hint in str(caught.value)


@pytest.mark.parametrize("script", [3, [3], [["Hello", 3]], {"turn": "Hello"}])
def test_a_script_of_something_else_than_turns_is_refused(script: Any) -> None:
    with pytest.raises(ScriptError):
        ScriptedLLM(script)


@pytest.mark.anyio
async def test_run_net_refuses_what_is_not_a_net() -> None:
    with pytest.raises(AgentBrainError, match="neither a Net nor a dict"):
        await run_net(3, "Hello")  # type: ignore[call-overload]


def test_a_brain_over_another_memory_has_no_result_yet() -> None:
    brain = Brain(NET)
    brain.run_sync("Hello")
    assert brain.last_result is not None
    assert brain.over(MessagesMemory()).last_result is None
