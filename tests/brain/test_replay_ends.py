"""A replay ends where the recording does: that is no difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits, Memory, Message, Net, ReplayError, react, tool
from agent_brain.hooks import CallCache, HidePersonalData, RamStore, Rate, RateLimits
from agent_brain.memories import DurableMemory, MemoryUseError, MessagesMemory, RamJournal
from agent_brain.nets import ParallelState
from agent_brain.states import ActionState, FunctionState, Hook, ModelRequest, ModelResponse
from agent_brain.testing import ScriptedLLM, export_test
from agent_brain.tools import Action
from tests.brain.test_replay import Step, brain_of, call, check, look, pay, ran

pytestmark = pytest.mark.anyio

MEMORIES: dict[str, Callable[[], Any]] = {
    "in RAM": MessagesMemory,
    "in a journal": lambda: MessagesMemory(journal=RamJournal()),
}


@tool
async def hang(number: int) -> str:
    """Never end."""
    await anyio.sleep_forever()
    return str(number)


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def branching(*scripts: Any, until: Any = "all") -> Net:
    branches = {f"branch {n}": react(ScriptedLLM(turns)) for n, turns in enumerate(scripts)}
    return Net({Step.ONE: ParallelState(branches, until=until)})


@pytest.mark.parametrize("name", MEMORIES)
async def test_a_branch_that_was_cut_in_a_tool_is_cut_again(name: str) -> None:
    net = branching([[call("hang", 1)], "Never."], ["First."], until="first")
    brain = Brain(net, MEMORIES[name](), [hang], trace=True)
    await brain.run("Go.")
    await check(brain)
    assert (await brain.replay()).complete


@pytest.mark.parametrize("calls", [["hang"], ["look", "hang"]])
async def test_a_run_that_was_interrupted_in_a_tool_is_equal_as_far_as_it_came(
    calls: list[str],
) -> None:
    memory = MessagesMemory(journal=RamJournal())
    llm = ScriptedLLM([[call(name, 1) for name in calls]])
    brain = Brain(react(llm), memory, [look, hang], trace=True)
    done, seen = {("action_finished", name) for name in calls if name == "look"}, set()
    async with brain.stream("Go.") as run:
        async for event in run:
            if event.kind in ("action_started", "action_finished"):
                seen.add((event.kind, event.action.name))
            if seen >= {("action_started", "hang"), *done}:
                break
    await check(brain)
    assert not (await brain.replay()).complete


@pytest.mark.parametrize("decided", [0, 1])
async def test_a_wait_after_a_part_of_the_decisions(decided: int) -> None:
    brain = brain_of([[call("pay", 1), call("pay", 2)], "Paid."])
    await brain.run("Pay.")
    asked = brain.memory.control.human_requests
    assert asked is not None
    result = await brain.resume(approve=[asked.approvals[decided]])
    assert result.stop_reason == "approval"
    await check(brain)
    assert not (await brain.replay()).complete


async def test_another_call_in_place_of_one_that_waits_differs() -> None:
    def net(name: str) -> Net:
        async def ask(memory: Memory) -> None:
            memory.next_actions = [call(name, 1)]

        asking, acting = FunctionState(ask, on_done=Step.TWO), ActionState(on_done=Step.ONE)
        return Net({Step.ONE: asking, Step.TWO: acting}, allow=("no_end",))

    memory = MessagesMemory(journal=RamJournal())
    result = await Brain(net("pay"), memory, [look, pay], trace=True).run("Pay.")
    assert result.stop_reason == "approval"
    report = await Brain(net("look"), memory, [look, pay]).replay()
    assert report.difference is not None, report
    assert report.difference.kind == "call"


async def test_a_wait_of_one_branch_after_the_decision_on_another() -> None:
    net = branching(*([[call("pay", n)], "Paid."] for n in (1, 2)))
    brain = Brain(net, MessagesMemory(journal=RamJournal()), [pay], trace=True)
    await brain.run("Pay.")
    asked = brain.memory.control.human_requests
    assert asked is not None
    result = await brain.resume(approve=asked.approvals[:1])
    assert result.stop_reason == "approval"
    await check(brain)


async def test_a_wait_in_a_brain_that_is_a_tool() -> None:
    expert = Brain(react(ScriptedLLM([[call("pay", 1)], "Paid."])), tools=[pay])
    asking = ScriptedLLM([[Action(name="expert", args={"task": "Pay."})], "Done."])
    memory = MessagesMemory(journal=RamJournal())
    brain = Brain(react(asking), memory, [expert.as_tool("expert", "Pays.")], trace=True)
    result = await brain.run("Pay.")
    assert result.stop_reason == "approval"
    await check(brain)
    assert not (await brain.replay()).complete


async def test_a_paused_run_is_equal_as_far_as_it_came() -> None:
    brain = brain_of([[call("look", 1)], "Seen."])
    async with brain.stream("Look.") as run:
        async for event in run:
            if event.kind == "action_finished":
                run.pause()
    assert run.result is not None
    assert run.result.stop_reason == "paused"
    await check(brain)
    assert not (await brain.replay()).complete
    await brain.resume()
    await check(brain)
    assert (await brain.replay()).complete


@pytest.mark.parametrize("again", [False, True])
async def test_branches_of_a_run_that_failed_begin_anew(again: bool) -> None:
    store = RamJournal()
    brain = Brain(
        branching([[call("look", 1)], OSError("down"), "Seen."]),
        MessagesMemory(journal=store),
        [look],
        trace=True,
    )
    with pytest.raises(OSError, match="down"):
        await brain.run("Look.")
    if again:
        await brain.memory.aclose()
        brain = Brain(branching([]), MessagesMemory(journal=store), [look])
    await check(brain)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio shuffles who takes the last step
async def test_branches_of_a_run_that_came_to_a_limit_begin_anew() -> None:
    net = branching([[call("look", 1)], "Seen."], ["Here."])
    memory = MessagesMemory(journal=RamJournal())
    await Brain(net, memory, [look], trace=True, limits=Limits(max_steps=3)).run("Look.")
    await check(Brain(net, memory, [look], limits=Limits(max_steps=3)))


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize(
    "limits", [Limits(max_steps=1), Limits(max_tool_calls=1), "cancel"], ids=str
)
async def test_a_call_that_was_cut_off_before_the_run_was_resumed(name: str, limits: Any) -> None:
    cancel = limits == "cancel"
    calls = [call("hang", 2)] if cancel else [call("look", 1), call("look", 2)]
    memory, llm = MEMORIES[name](), ScriptedLLM([calls, "Done."])
    first = {} if cancel else {"limits": limits}
    async with Brain(react(llm), memory, [look, hang], trace=True, **first).stream("Go.") as run:
        async for event in run:
            if cancel and event.kind == "action_started":
                run.cancel()
    brain = Brain(react(llm), memory, [look, hang], trace=True)
    assert (await brain.resume()).answer == "Done."
    assert any(m.is_error for m in await memory.turn())
    await check(brain)
    assert (await brain.replay()).complete


async def test_what_is_done_after_the_run_is_no_difference() -> None:
    brain = brain_of([[call("look", 1)], "Seen."])
    await brain.run("Look.")
    memory: Any = brain.memory
    await memory.update([Message.user("A note.")])
    await check(brain)
    await memory.delete((await memory.messages())[1].id)
    await check(brain)


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("branched", [False, True])
async def test_an_id_that_a_model_uses_again_is_another_call(name: str, branched: bool) -> None:
    turns = [[Action(name="look", args={"number": n}, id="same")] for n in (1, 2, 1, 101)]
    memory = MEMORIES[name]()
    net = branching([*turns, "Seen."]) if branched else react(ScriptedLLM([*turns, "Seen."]))
    brain = Brain(net, memory, [look], trace=True)
    await brain.run("Look.")
    assert len(ran) == 4
    await check(brain)


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("branched", [False, True])
async def test_calls_of_a_round_with_one_id(name: str, branched: bool) -> None:
    turns = [[Action(name="look", args={"number": n}, id="same") for n in (1, 2)], "Seen."]
    net = branching(turns) if branched else react(ScriptedLLM(turns))
    brain = Brain(net, MEMORIES[name](), [look], trace=True)
    await brain.run("Look.")
    await check(brain)


@pytest.mark.parametrize("traced", [False, True])
async def test_a_run_that_was_traced_in_part_is_refused(traced: bool) -> None:
    brain = brain_of([[call("pay", 1)], "Paid."], trace=traced)
    await brain.run("Pay.")
    asked = brain.memory.control.human_requests
    assert asked is not None
    other = brain_of(["Paid."], brain.memory, trace=not traced)
    await other.resume(approve=asked.approvals)
    with pytest.raises(ReplayError, match="traced in part"):
        await other.replay()


async def test_a_copy_made_in_the_middle_of_a_run_is_refused() -> None:
    store = RamJournal()
    memory = MessagesMemory(journal=store, history="all")
    await brain_of([[call("look", 1)], "Seen."], memory).run("Look.")
    acting = next(step for step in await memory.steps() if step.state == "ACTION")
    copied = await (await memory.as_of(acting)).fork(journal=store, session="copy")
    other = brain_of(["Seen."], copied)
    await other.resume()
    with pytest.raises(ReplayError, match="the session that was copied"):
        await other.replay()


@pytest.mark.parametrize("choice", [{"step": "x"}, {"step": -1}, {"step": True}, {"run_id": 5}])
async def test_a_wrong_choice_of_model_calls_is_refused(choice: dict[str, Any]) -> None:
    with pytest.raises(MemoryUseError, match=f"{next(iter(choice))}= takes"):
        await MessagesMemory().model_calls(**choice)


async def test_a_test_of_a_run_has_its_calls_in_the_order_of_the_model(tmp_path: Path) -> None:
    brain = brain_of([[call("pay", 1), call("pay", 2)], "Paid."])
    await brain.run("Pay.")
    asked = brain.memory.control.human_requests
    assert asked is not None
    one, two = asked.approvals
    await brain.resume(approve=[one], deny={two: "too much"})
    text = export_test((await brain.replay()).events, tmp_path / "test_pay.py").read_text()
    first, second = text.index("'paid 1'"), text.index("too much")
    assert first < second


async def test_a_model_call_that_a_hook_answers_is_no_gap() -> None:
    class Answering(Hook):
        def before_model_call(self, request: ModelRequest) -> ModelResponse | None:
            asked = any(message.role == "tool" for message in request.messages)
            return ModelResponse(text="From a cache.") if asked else None

    brain = brain_of([[call("look", 1)]], hooks=[Answering()])
    await brain.run("Look.")
    await check(brain)


@pytest.mark.parametrize("trace", [True, False])
@pytest.mark.parametrize("hidden", ["before", "after"])
@pytest.mark.parametrize("knows", ["nothing", "all calls"])
async def test_what_a_cache_answered_is_replayed(trace: bool, hidden: str, knows: str) -> None:
    store = RamStore()

    def hooks(store: RamStore) -> list[Hook]:
        found: list[Hook] = [HidePersonalData(), CallCache(store)]
        return found if hidden == "before" else found[::-1]

    for turn in ([call("look", 1)], "Seen [email 1]."), ():
        brain = brain_of([*turn], hooks=hooks(store), trace=trace)
        result = await brain.run("Look for ann@example.org.")
        assert result.answer == "Seen ann@example.org."
        known = store if knows == "all calls" else RamStore()
        again = brain_of([], brain.memory, hooks=hooks(known), trace=trace)
        await check(again)
    assert result.usage.requests == 0


async def test_a_replay_waits_for_no_rate_and_keeps_nothing() -> None:
    store = RamStore()
    rate, cache = RateLimits({"*": Rate(requests="1/h")}), CallCache(store)
    brain = brain_of(["Hello."], hooks=[rate])
    await brain.run("Hi.")
    with anyio.fail_after(60):
        await check(brain)
    await check(brain_of([], brain.memory, hooks=[cache]))
    result = await brain_of(["New."], hooks=[cache]).run("Hi.")
    assert result.answer == "New."


async def test_a_made_memory_that_returns_no_snapshot_is_refused() -> None:
    class Wrong(FourMethods):
        async def snapshot(self) -> Any:
            return {"said": 1}

        async def restore(self, snapshot: Any) -> None:
            return

    memory = DurableMemory(Wrong, journal=RamJournal(), session="ann")
    with pytest.raises(MemoryUseError, match=r"Wrong.snapshot\(\) returned dict"):
        await brain_of(["Hi."], memory).run("Hello")


class FourMethods(Memory):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[Message] = []

    async def set_goal(self, goal: str | Message) -> None:
        self.said = [goal if isinstance(goal, Message) else Message.user(goal)]

    async def update(self, messages: list[Message]) -> None:
        self.said += messages

    async def goal(self) -> list[Message]:
        return self.said[:1]

    async def dump(self) -> list[Message]:
        return self.said[1:]
