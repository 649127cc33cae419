"""Every built-in net as a step of another, and twice in one run: each time it starts over."""

from __future__ import annotations

import pytest

from agent_brain import Brain, Net
from agent_brain.nets import SubnetState, create_net, net_names
from tests.brain.nets import Steps, add
from tests.nets.models import FunctionLLM
from tests.nets.test_nets_by_memories import clever

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("net_name", net_names())
async def test_it_runs_twice_in_one_run(net_name: str) -> None:
    once, first, second = FunctionLLM(clever), FunctionLLM(clever), FunctionLLM(clever)
    await Brain(create_net(net_name, once), tools=[add]).run("What is 2 + 2?")
    outer = Net(
        {
            Steps.ONE: SubnetState(create_net(net_name, first), on_done=Steps.TWO),
            Steps.TWO: SubnetState(create_net(net_name, second)),
        }
    )
    brain = Brain(outer, tools=[add])
    result = await brain.run("What is 2 + 2?")
    assert result.answer == "It is 4."
    assert len(first.calls) == len(once.calls)
    kinds = [[call.output_type for call in llm.calls if call.output_type] for llm in (once, second)]
    assert sorted(map(str, kinds[1])) == sorted(map(str, kinds[0])) or net_name == "refact"
    assert all(isinstance(noted, dict) for noted in brain.memory.control.scratch.values())


@pytest.mark.parametrize("net_name", ["debate", "graph_of_thoughts", "tree_of_thoughts"])
async def test_notes_of_the_first_run_are_not_reused(net_name: str) -> None:
    llm = FunctionLLM(clever)
    net = create_net(net_name, llm)
    outer = Net({Steps.ONE: SubnetState(net, on_done=Steps.TWO), Steps.TWO: SubnetState(net)})
    await Brain(net).run("go")
    alone = len(llm.calls)
    await Brain(outer).run("go")
    assert len(llm.calls) == 3 * alone
