"""Wrong options of nets, guarded states, delegation and concurrent work; secrets in errors."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from enum import Enum
from typing import Any, Literal

import pytest

from agent_brain import Brain, Limits, Memory, MessagesMemory, Net, State, react, tool
from agent_brain.errors import AgentBrainError, NetDefinitionError, StateDefinitionError
from agent_brain.nets import (
    Branch,
    Delegate,
    HandoffAgent,
    MapState,
    ParallelState,
    SubnetState,
    handoff,
)
from agent_brain.states import (
    AskPersonState,
    AskState,
    EvaluationState,
    GuardedState,
    RunFailed,
    TellState,
    Together,
)
from agent_brain.testing import ScriptedLLM, run_net

pytestmark = pytest.mark.anyio

KEY = "sk-abcdefghijklmnopqrstuvwxyz123456"


class N(Enum):
    A = "a"
    B = "b"


class Fails(State):
    async def run(self, memory: Memory) -> AsyncIterator[str]:
        raise ValueError(f"bad key {KEY}")
        yield ""

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


class Sorry(State):
    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield f"Sorry. {memory.control.error}"

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"on_error": "log"}, "on_error='log' is not a function"),
        ({"on_error": N.B}, "is not a function"),
        ({"on_error": [N.B]}, "is not a function"),
        ({"on_error": ValueError}, "is not a function"),
        ({"on_error": {N.A: None}}, "has None as what follows an error of state 'A'"),
        ({"on_error": {N.A: [N.B]}}, "what follows an error of state 'A'"),
        ({"before": "x"}, "before='x' is not a function"),
        ({"after": 3}, "after=3 is not a function"),
    ],
)
def test_a_net_checks_its_functions_and_its_edges_for_errors(
    options: dict[str, Any], why: str
) -> None:
    with pytest.raises(NetDefinitionError) as caught:
        Net({N.A: Fails(), N.B: Sorry()}, allow=["unreachable"], **options)
    assert why in str(caught.value)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("option", ["before", "after", "on_error"])
def test_a_guarded_state_checks_its_functions(option: str) -> None:
    for wrong in ("x", 3, ValueError):
        options: dict[str, Any] = {option: wrong}
        with pytest.raises(StateDefinitionError, match=f"{option}=.*give a function"):
            GuardedState(Sorry(), **options)


def branch(**options: Any) -> Branch:
    values: dict[str, Any] = {"net": react(ScriptedLLM(["x"])), "memory": MessagesMemory()}
    return Branch("p", **{**values, **options})


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Delegate([branch()], max_concurrency=-1), "max_concurrency=-1"),
        (lambda: Delegate([branch()], until="frist"), "until='frist'.*'all' or 'first'"),  # type: ignore[arg-type]
        (lambda: Delegate([branch()], on_error="reprot"), "on_error='reprot'.*'cancel' or 'rep"),  # type: ignore[arg-type]
        (lambda: Delegate(branch() for _ in "ab"), "pass a list of Branch"),  # type: ignore[arg-type]
        (lambda: branch(net={N.A: Sorry()}), r"Branch\('p', net=.*pass a net"),
        (lambda: Together([], max_concurrency=-1), "max_concurrency=-1"),
        (lambda: Together([], max_concurrency=0), "max_concurrency=0"),
        (lambda: Together([], max_concurrency=1.5), "max_concurrency=1.5"),  # type: ignore[arg-type]
        (lambda: Together([], max_concurrency="2"), "max_concurrency='2'"),  # type: ignore[arg-type]
        (lambda: Together(iter([AtOnce()])), "pass a list of work"),  # type: ignore[arg-type]
        (lambda: Together([5]), r"Together\(\[5\]\): pass work"),  # type: ignore[arg-type]
    ],
)
def test_work_checks_its_options(make: Callable[[], Any], why: str) -> None:
    with pytest.raises(StateDefinitionError, match=why):
        make()


def nothing() -> Any: ...
def three(a: Any, b: Any, c: Any) -> Any: ...


MODEL = ScriptedLLM([])
WRONG_PARAMETERS: dict[str, Callable[[Any], object]] = {
    "into(memory, data)": lambda f: AskState(MODEL, "?", output_type=int, into=f),
    "check(memory, data)": lambda f: AskState(MODEL, "?", output_type=int, check=f),
    "choose(memory)": lambda f: AskState(MODEL, "?", output_type=int, choose=f),
    "goal(memory)": lambda f: SubnetState(react(MODEL), fork=True, goal=f),
    "join(memory, output)": lambda f: SubnetState(react(MODEL), fork=True, join=f),
    "join(memory, branches)": lambda f: ParallelState([react(MODEL)], join=f),
    "join(memory, results)": lambda f: MapState(lambda memory: [], react(MODEL), join=f),
    "items(memory)": lambda f: MapState(f, react(MODEL)),
    "goal(item)": lambda f: MapState(lambda memory: [], react(MODEL), goal=f),
    "body(item)": lambda f: MapState(lambda memory: [], f),
    "prompt(memory)": lambda f: AskPersonState(f),
    "prompt(memory), or None": lambda f: react(MODEL, prompt=f),
    "prompt=": lambda f: AskState(MODEL, f, output_type=int),
    "find(memory)": lambda f: TellState(f),
    "evaluate(memory, answer)": lambda f: EvaluationState(f, on_fail=N.A),
    "see(messages)": lambda f: handoff(MODEL, {"a": HandoffAgent(see=f)}),
    "on_handoff(memory, sender, reason)": lambda f: handoff(
        MODEL, {"a": HandoffAgent(), "b": HandoffAgent(on_handoff=f)}
    ),
    "the memory": lambda f: Net({N.A: Sorry()}, before=f),
    "the memory and the error": lambda f: GuardedState(Sorry(), on_error=f),
    "a function of the arguments": lambda f: tool(requires_approval=f)(lambda: "x"),
}


@pytest.mark.parametrize("called", WRONG_PARAMETERS)
def test_a_function_that_takes_other_arguments_is_refused_when_it_is_given(called: str) -> None:
    for wrong in (nothing, three):
        if wrong is not three or "reason" not in called:
            with pytest.raises(AgentBrainError, match=re.escape(called)):
                WRONG_PARAMETERS[called](wrong)


def test_functions_may_have_defaults_and_be_those_of_python() -> None:
    def ones(memory: Memory, most: int = 3) -> list[int]:
        return [1] * most

    def keep(*given: Any) -> None: ...

    without_signature: Any = max
    MapState(ones, str, join=lambda memory, results: "")
    AskState(MODEL, "?", output_type=int, into=keep, choose=without_signature)


def test_what_chooses_the_next_state_is_no_state() -> None:
    wrong: Any = lambda memory: N.A  # noqa: E731
    with pytest.raises(StateDefinitionError, match=r"on_done=.*is given as choose="):
        AskState(MODEL, "?", output_type=int, on_done=wrong)


def test_data_is_not_kept_without_a_name() -> None:
    with pytest.raises(StateDefinitionError, match="into=''"):
        AskState(MODEL, "?", output_type=int, into="")


class AtOnce(State):
    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        yield Together([lambda report: 1])  # type: ignore[list-item, return-value]

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


async def test_the_functions_of_concurrent_work_are_async() -> None:
    with pytest.raises(StateDefinitionError, match="the function is not async"):
        await Brain(Net({N.A: AtOnce()})).run("?")


async def test_secrets_are_hidden_where_errors_become_text() -> None:
    brain = Brain(Net({N.A: Fails()}))
    events = []
    with pytest.raises(ValueError, match=KEY):  # noqa: PT012 - the error itself is unchanged
        async with brain.stream("?") as run:
            async for event in run:
                events.append(event)
    assert isinstance(events[-1], RunFailed)
    assert KEY not in events[-1].to_json()
    edge = Net({N.A: Fails(), N.B: Sorry()}, on_error={N.A: N.B})
    assert KEY not in (await run_net(edge, "?")).answer
    each = Net({N.A: MapState(lambda memory: [1], Fails(), on_item_error="collect")})
    answer = (await run_net(each, "?")).answer
    assert answer
    assert KEY not in answer


async def test_the_same_error_in_a_loop_is_a_repetition() -> None:
    net = Net({N.A: Fails()}, on_error={N.A: N.A})
    result = await Brain(net, limits=Limits(max_steps=60)).run("?")
    assert result.stop_reason == "stuck"
    assert result.steps < 20
