"""An error of a state leads to another state: Net(on_error={STATE: target})."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Any, Literal

import pytest

from agent_brain import Brain, Limits, Memory, MessagesMemory, Net, State
from agent_brain.errors import LLMConnectionError, NetDefinitionError, TransitionError
from agent_brain.nets import SubnetState
from agent_brain.states import AnswerState, StateEntered, StateExited
from agent_brain.testing import ScriptedLLM, run_net

pytestmark = pytest.mark.anyio


class N(Enum):
    TRY = 1
    SORRY = 2


class Sorry(State):
    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield f"Sorry. {memory.control.error}"

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


class Fails(State):
    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield "I try. "
        raise self.error

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


def net(state: State, **options: Any) -> Net:
    return Net({N.TRY: state, N.SORRY: Sorry()}, on_error={N.TRY: N.SORRY}, **options)


async def test_the_error_of_a_state_leads_to_the_target_which_can_read_it() -> None:
    done = await run_net(net(Fails(KeyError("lost"))), "?")
    assert done.answer == "Sorry. KeyError: 'lost'"
    assert [e.state for e in done.of(StateEntered)] == ["TRY", "SORRY"]
    first, second = done.of(StateExited)
    assert (first.next, type(first.error)) == ("SORRY", KeyError)
    assert second.error is None
    assert done.memory.control.error is None


async def test_the_error_of_a_model_call_leads_there_too() -> None:
    answer = AnswerState(ScriptedLLM([LLMConnectionError("cut")]), ask=True)
    done = await run_net(net(answer), "?")
    assert done.answer.startswith("Sorry. LLMConnectionError: cut")
    assert done.result is not None
    assert done.result.usage.requests == 1


async def test_a_state_without_such_an_edge_ends_the_run_with_its_error() -> None:
    class Both(Enum):
        A = 1
        B = 2

    states = {Both.A: Fails(KeyError("a")), Both.B: Sorry()}
    with pytest.raises(KeyError):
        await run_net(Net(states, on_error={Both.B: Both.A}, allow=["unreachable"]), "?")


async def test_what_is_not_the_states_fault_still_ends_the_run() -> None:
    class Wrong(State):
        async def run(self, memory: Memory) -> AsyncIterator[str]:
            return
            yield ""

        async def next_state(self, memory: Memory) -> Literal[None]:
            return N.SORRY  # type: ignore[return-value]

    wrong = Net({N.TRY: Wrong(), N.SORRY: Sorry()}, on_error={N.TRY: N.SORRY})
    with pytest.raises(TransitionError):
        await run_net(wrong, "?")


async def test_a_limit_stops_before_the_target() -> None:
    done = await run_net(net(Fails(KeyError("x"))), "?", max_steps=1)
    assert done.result is not None
    assert done.result.stop_reason == "max_steps"
    assert done.memory.control.error == "KeyError: 'x'"


async def test_the_error_is_there_after_a_resume() -> None:
    memory = MessagesMemory()
    brain = Brain(net(Fails(KeyError("x"))), memory, limits=Limits(max_steps=1))
    await brain.run("?")
    again = MessagesMemory()
    await again.restore(
        type(await memory.snapshot()).model_validate_json(
            (await memory.snapshot()).model_dump_json()
        )
    )
    result = await Brain(net(Fails(KeyError("x"))), again).resume()
    assert result.answer == "Sorry. KeyError: 'x'"


async def test_an_error_inside_a_subnet_leads_to_the_subnets_own_target() -> None:
    class Outer(Enum):
        ONLY = 1

    done = await run_net(Net({Outer.ONLY: SubnetState(net(Fails(ValueError("in"))))}), "?")
    assert done.answer == "Sorry. ValueError: in"


async def test_an_error_while_proposing_leads_there_too() -> None:
    class Lost(State):
        async def run(self, memory: Memory) -> AsyncIterator[str]:
            yield "hm"

        async def next_state(self, memory: Memory) -> Literal[None]:
            raise OSError("where?")

    assert (await run_net(net(Lost()), "?")).answer == "Sorry. OSError: where?"


def test_the_edges_are_checked() -> None:
    class Other(Enum):
        X = 1

    with pytest.raises(NetDefinitionError, match="not a state of the net"):
        Net({N.TRY: Fails(KeyError())}, on_error={N.TRY: Other.X})
    with pytest.raises(NetDefinitionError, match="on_error= has edges from"):
        Net({N.TRY: Fails(KeyError())}, on_error={Other.X: N.TRY})
    with pytest.raises(NetDefinitionError, match="SORRY"):
        Net({N.TRY: Fails(KeyError()), N.SORRY: Sorry()})


def test_the_edge_is_drawn_and_kept_by_replace() -> None:
    made = net(Fails(KeyError()))
    for one in (made, made.replace(name="other")):
        assert "TRY --> SORRY : error" in one.to_mermaid()
        assert '"TRY" -> "SORRY" [label="error", style=dashed]' in one.to_dot()
        assert "error" in one.to_svg()


async def test_a_function_still_swallows_the_error() -> None:
    plain = Net({N.TRY: Fails(KeyError())}, on_error=lambda memory, error: True)
    assert (await run_net(plain, "?")).answer == "I try. "
