"""``Brain(trace=True)`` records what models are sent and what they return."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits, tool
from agent_brain.errors import BrainDefinitionError, LLMServerError
from agent_brain.memories import (
    Attachment,
    LayeredMemory,
    Message,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
    TodoMemory,
    WindowedMemory,
)
from agent_brain.nets import MapState, Net, ParallelState, react
from agent_brain.states import LLM, Finish, Hook, ModelRequest, Thought, Usage
from agent_brain.states.models.litellm.adapter import LiteLLM
from agent_brain.testing import FakeMemory, ScriptedLLM
from agent_brain.tools import Action
from tests.support.clock import fake_clock
from tests.support.openai_server import Failure, OpenAIServer, Reply

pytestmark = pytest.mark.anyio

MEMORIES: dict[str, Callable[[], Any]] = {
    "in RAM": MessagesMemory,
    "in a journal": lambda: MessagesMemory(journal=RamJournal()),
    "windowed": lambda: WindowedMemory(max_messages=4),
    "wrapped": lambda: TodoMemory(MessagesMemory(journal=RamJournal())),
    "layered": lambda: LayeredMemory(
        WindowedMemory(max_messages=4, journal=RamJournal()), MessagesMemory()
    ),
}


@tool
def look(number: int) -> str:
    """Look something up."""
    return f"seen {number}"


def turns(count: int) -> list[Any]:
    calls = [[Action(name="look", args={"number": number})] for number in range(count)]
    return [*calls, "It is seen."]


async def traced(memory: Any, count: int = 1, **options: Any) -> ScriptedLLM:
    llm = ScriptedLLM(turns(count))
    await Brain("react", memory, [look], llm=llm, trace=True, **options).run("Look.")
    return llm


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("count", [0, 1, 2, 3])
async def test_each_request_is_recorded_as_it_was_sent(name: str, count: int) -> None:
    memory = MEMORIES[name]()
    llm = await traced(memory, count)
    calls = await memory.model_calls()
    assert [[(m.role, m.content, m.tool_calls) for m in call.messages] for call in calls] == [
        [(m.role, m.content, m.tool_calls) for m in call.messages] for call in llm.calls
    ]
    assert [[told["name"] for told in call.tools] for call in calls] == [
        [told.name for told in call.tools] for call in llm.calls
    ]
    assert calls[-1].text == "It is seen."
    numbers = [call.number for call in calls]
    assert numbers == sorted({*numbers})
    assert [call.step for call in calls] == [2 * number for number in range(count + 1)]
    assert {(call.state, call.path, call.model) for call in calls} == {
        ("REASONING", (), "scripted")
    }


async def test_nothing_is_recorded_without_it() -> None:
    memory = MessagesMemory(journal=RamJournal())
    await Brain("react", memory, [look], llm=ScriptedLLM(turns(1))).run("Look.")
    assert await memory.model_calls() == []


async def test_a_response_is_recorded_in_order() -> None:
    memory = MessagesMemory()
    action = Action(name="look", args={"number": 1}, id="c1")
    used = Usage(10, 2, cost=0.5, model="scripted")
    turn = [Thought("Hm"), Thought("."), "Let ", "me.", action, Finish("tool_calls"), used]
    llm = ScriptedLLM([turn, "Done."])
    await Brain("react", memory, [look], llm=llm, trace=True).run("Look.")
    call = (await memory.model_calls())[0]
    assert [*map(dict, call.response)][:3] == [
        {"thought": "Hm."},
        {"text": "Let me."},
        {"action": {"name": "look", "args": {"number": 1}, "id": "c1"}},
    ]
    assert (call.text, call.thoughts, call.actions) == ("Let me.", "Hm.", [action])
    assert call.finish_reason == "tool_calls"
    assert call.usage is not None
    assert (call.usage["input_tokens"], call.usage["cost"]) == (10, 0.5)
    assert call.to_dict()["usage"] == call.usage


async def test_equal_requests_have_equal_hashes() -> None:
    hashes = []
    for _ in range(2):
        memory = MessagesMemory()
        await traced(memory, 2)
        hashes.append([call.request_hash for call in await memory.model_calls()])
    assert hashes[0] == hashes[1]
    assert len({*hashes[0]}) == 3


async def test_a_later_process_reads_the_calls(tmp_path: Path) -> None:
    async with MessagesMemory(journal=tmp_path / "j.db") as memory:
        await traced(memory, 2)
        written = await memory.model_calls()
    async with MessagesMemory(journal=tmp_path / "j.db") as memory:
        assert await memory.model_calls() == written
        await traced(memory, 1)
        calls = await memory.model_calls()
        assert calls[:3] == written
        assert len(calls) == 5
        runs = [*dict.fromkeys(call.run_id for call in calls)]
        assert await memory.model_calls(run_id=runs[1]) == calls[3:]
        assert [c.step for c in await memory.model_calls(run_id=runs[1], step=2)] == [2]


async def test_the_calls_of_a_saved_step_are_those_made_in_it(tmp_path: Path) -> None:
    async with MessagesMemory(journal=tmp_path / "j.db") as memory:
        await traced(memory, 1)
        await traced(memory, 1)
        found = [len(await memory.model_calls(step=step)) for step in await memory.steps()]
    # the run begins, REASONING, ACTION, REASONING, ANSWER, the run ends
    assert found == [0, 1, 0, 1, 0, 0] * 2


async def test_calls_are_no_messages_and_are_not_read_when_a_session_is_opened() -> None:
    store = RamJournal()
    memory = MessagesMemory(journal=store)
    await traced(memory, 3)
    plain = MessagesMemory()
    await Brain("react", plain, [look], llm=ScriptedLLM(turns(3))).run("Look.")
    other = MessagesMemory(journal=store)
    assert [m.content for m in await other.messages()] == [
        m.content for m in await plain.messages()
    ]
    key = (await store.sessions())[0]
    assert other.store.session is not None
    assert not {"recorded_call"} & {*(await other.store.session.rows()).kinds}
    assert [e.kind for e in await store.read(key)].count("recorded_call") == 4 + 3  # of tools


async def test_the_size_grows_with_the_run_and_not_with_its_square() -> None:
    sizes = []
    for count in (25, 50, 100):
        store = RamJournal()
        memory = MessagesMemory(journal=store, history="all")
        await traced(memory, count, limits=Limits(max_steps=1000))
        key = (await store.sessions())[0]
        rows = await store.rows(key, history=True)
        sizes.append(sum(len(line) for _, kind, line in rows if kind == "recorded_call"))
    assert sizes[1] < 2.3 * sizes[0]
    assert sizes[2] < 2.3 * sizes[1]


async def test_old_calls_go_with_old_steps(tmp_path: Path) -> None:
    async with MessagesMemory(journal=tmp_path / "j.db", history=5) as memory:
        await traced(memory, 150, limits=Limits(max_steps=1000))
        calls, steps = await memory.model_calls(), await memory.steps()
        assert len(calls) < 150
        assert calls[0].number <= steps[-5].number
        assert [m.content for m in calls[-1].messages][-1] == "seen 149"
        assert [call.step for call in calls] == [*range(calls[0].step, 301, 2)]


async def test_calls_in_ram_go_with_old_steps() -> None:
    memory = WindowedMemory(max_messages=4)
    await traced(memory, 120, limits=Limits(max_steps=10_000), stuck=None)
    calls = await memory.model_calls()
    assert 50 <= len(calls) < 120
    assert calls[-1].step == 240


async def test_forgetting_removes_all_calls(tmp_path: Path) -> None:
    for forget in ("forget", "clear"):
        async with MessagesMemory(journal=tmp_path / f"{forget}.db") as memory:
            await traced(memory, 1)
            await (memory.forget(text="seen 0") if forget == "forget" else memory.clear())
            assert await memory.model_calls() == []
        assert b"seen 0" not in (tmp_path / f"{forget}.db").read_bytes()


async def test_forgetting_in_ram_removes_all_calls() -> None:
    memory = MessagesMemory()
    await traced(memory, 1)
    await memory.forget(text="seen 0")
    assert await memory.model_calls() == []


@pytest.mark.parametrize("name", ["in RAM", "in a journal"])
@pytest.mark.parametrize("target", ["RAM", "journal"])
async def test_a_fork_has_the_calls(name: str, target: str) -> None:
    memory = MEMORIES[name]()
    await traced(memory, 2)
    into = {} if target == "RAM" else {"journal": RamJournal(), "session": "copy"}
    copied = await memory.fork(**into)
    calls = await copied.model_calls()
    assert [c.request_hash for c in calls] == [c.request_hash for c in await memory.model_calls()]
    await traced(copied, 1)
    assert len(await copied.model_calls()) == 5
    assert len(await memory.model_calls()) == 3


async def test_as_of_a_step_only_the_calls_before_it_are_there() -> None:
    memory = MessagesMemory(journal=RamJournal())
    await traced(memory, 2)
    step = (await memory.steps())[2]
    assert len(await (await memory.as_of(step)).model_calls()) == 1


async def test_a_rollback_does_not_undo_a_call() -> None:
    store = RamJournal()
    memory = MessagesMemory(journal=store)
    llm = ScriptedLLM([[Action(name="look", args={"number": 1})], OSError("no power"), "Done."])
    brain = Brain("react", memory, [look], llm=llm, trace=True)
    with pytest.raises(OSError, match="no power"):
        await brain.run("Look.")
    await brain.resume()
    calls = await memory.model_calls()
    assert [(call.step, call.text, call.error and call.error["type"]) for call in calls] == [
        (0, "", None),
        (2, "", "OSError"),
        (2, "Done.", None),
    ]
    assert len({call.part for call in calls}) == 2
    assert len({call.run_id for call in calls}) == 1


class Slow(LLM):
    model = "slow"

    async def stream(self, *args: Any, **options: Any) -> AsyncIterator[str]:
        yield "It is"
        await anyio.sleep_forever()


@pytest.mark.parametrize("name", ["in RAM", "in a journal"])
async def test_a_call_that_was_cut_off_is_marked(name: str) -> None:
    memory = MEMORIES[name]()
    brain = Brain(react(Slow()), memory, trace=True)
    async with brain.stream("Hello") as run:
        async for event in run:
            if event.kind == "text_delta":
                break
    [call] = await memory.model_calls()
    assert (call.cut, call.text, call.error) == (True, "It is", None)


async def test_a_call_that_runs_out_of_time_is_marked() -> None:
    memory = MessagesMemory(journal=RamJournal())
    with fake_clock():
        await Brain(react(Slow()), memory, trace=True, limits=Limits(timeout=1)).run("Hello")
    [call] = await memory.model_calls()
    assert call.cut


@pytest.mark.parametrize("name", ["in RAM", "in a journal"])
async def test_a_call_that_is_left_before_it_is_sent_is_recorded(name: str) -> None:
    memory = MEMORIES[name]()
    brain = Brain(react(ScriptedLLM(["It is."])), memory, trace=True)
    async with brain.stream("Hello") as run:
        async for event in run:
            if event.kind == "response_started":
                break
    [call] = await memory.model_calls()
    assert (call.cut, call.text, call.error) == (True, "", None)
    report = await brain.replay()
    assert report.equal, report
    assert not report.complete
    await brain.resume()
    report = await brain.replay()
    assert report.equal, report
    assert report.complete


@pytest.mark.parametrize("kind", ["run_started", "state_entered", "response_started", "text_delta"])
async def test_a_call_that_ended_as_its_task_was_cancelled_is_recorded(
    kind: str, tmp_path: Path
) -> None:
    async with MessagesMemory(journal=tmp_path / "a.db", session="ann") as memory:
        brain = Brain(react(ScriptedLLM(["It is.", "It is."])), memory, trace=True)
        with anyio.CancelScope() as scope:
            async with brain.stream("Hello") as run:
                async for event in run:
                    if event.kind == kind:
                        scope.cancel()
        assert run.result.stop_reason == "cancelled"
        assert len(await memory.model_calls()) == run.result.usage.requests
        await brain.resume()
        report = await brain.replay()
        assert report.equal, report
        assert report.complete


async def test_branches_are_recorded_with_their_paths() -> None:
    memory = MessagesMemory(journal=RamJournal())
    from enum import Enum

    class Both(Enum):
        BOTH = "both"

    branches = {name: react(ScriptedLLM(turns(1))) for name in ("left", "right")}
    net = Net({Both.BOTH: ParallelState(branches)})
    await Brain(net, memory, [look], trace=True).run("Look.")
    calls = await memory.model_calls()
    assert {call.path for call in calls} == {("BOTH", "left"), ("BOTH", "right")}
    for path in {call.path for call in calls}:
        mine = [call for call in calls if call.path == path]
        assert [call.move for call in mine] == [0, 2]
        assert mine[1].messages[-1].content == "seen 0"
    made = [(c.messages[0].content, c.action) for c in await memory.recorded_calls()]
    assert [(result, action.name) for result, action in made if action is not None] == [
        ("seen 0", "look")
    ] * 2


async def test_a_brain_that_is_a_tool_is_recorded_too() -> None:
    inner = Brain(react(ScriptedLLM("Forty-two.")))
    outer = ScriptedLLM([[Action(name="expert", args={"task": "Think."})], "It is 42."])
    memory = MessagesMemory()
    expert = inner.as_tool("expert", "Knows.")
    await Brain(react(outer), memory, [expert], trace=True).run("Ask.")
    calls = await memory.model_calls()
    assert [(call.path, call.text) for call in calls] == [
        ((), ""),
        (("ACTION", "expert"), "Forty-two."),
        ((), "It is 42."),
    ]
    assert await inner.memory.model_calls() == []  # type: ignore[attr-defined]


async def test_the_calls_of_items_are_recorded() -> None:
    from enum import Enum

    class Each(Enum):
        EACH = "each"

    llm = ScriptedLLM(["A", "B", "C"])
    net = Net({Each.EACH: MapState(lambda _: [1, 2, 3], react(llm), max_concurrency=1)})
    memory = MessagesMemory(journal=RamJournal())
    await Brain(net, memory, trace=True).run("Each.")
    assert [call.path[-1] for call in await memory.model_calls()] == ["0", "1", "2"]


async def test_the_request_is_what_hooks_made_of_it() -> None:
    class Polite(Hook):
        def before_model_call(self, request: ModelRequest) -> ModelRequest:
            from dataclasses import replace

            return replace(request, messages=[*request.messages, Message.user("Please.")])

    memory = MessagesMemory()
    await traced(memory, 0, hooks=[Polite()])
    [call] = await memory.model_calls()
    assert call.messages[-1].content == "Please."


async def test_secrets_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "correct-horse-battery")

    @tool
    def read() -> str:
        """Read a file."""
        return "the token is correct-horse-battery, api_key=abcd1234efgh"

    class Parametrized(ScriptedLLM):
        params = {"api_key": "sk-abcdef123456", "temperature": 0.5}

    llm = Parametrized(
        [[Action(name="read", args={})], "I read correct-horse-battery, sk-abcdef123456"]
    )
    store = RamJournal()
    memory = MessagesMemory(journal=store)
    await Brain(react(llm), memory, [read], trace=True).run("Read.")
    key = (await store.sessions())[0]
    for entry in await store.read(key, history=True):
        if entry.kind == "recorded_call":
            assert "correct-horse" not in str(entry.data)
            assert "abcd" not in str(entry.data)
    call = (await memory.model_calls())[-1]
    assert call.params == {"api_key": "[hidden]", "temperature": 0.5}
    assert call.text == "I read [hidden], [hidden]"


async def test_attachments_are_stored_once() -> None:
    store = RamJournal()
    memory = MessagesMemory(journal=store)
    data = "aGVsbG8g" * 1000
    picture = Attachment(media_type="image/png", data=data)
    goal = Message.user("What is it?", attachments=(picture,))
    await Brain("react", memory, llm=ScriptedLLM("A cat."), trace=True).run(goal)
    key = (await store.sessions())[0]
    rows = await store.rows(key, history=True)
    assert sum(data in line for _, _, line in rows) == 1
    [call] = await memory.model_calls()
    assert call.messages[1].attachments == (picture,)
    await memory.delete(goal.id)
    [call] = await memory.model_calls()
    assert (call.messages[1].attachments[0].url or "").startswith("urn:sha256:")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_each_attempt_is_recorded_if_there_were_several() -> None:
    memory = MessagesMemory()
    with OpenAIServer([Failure(500), Reply("Hi")]) as server:
        llm = LiteLLM("openai/scripted", api_base=server.url, api_key="k", backoff=0.001, retries=1)
        await Brain(react(llm), memory, trace=True).run("Hello")
        await llm.aclose()
    [call] = await memory.model_calls()
    assert [(a["number"], a["error"] and a["error"]["type"]) for a in call.attempts] == [
        (1, LLMServerError.__name__),
        (2, None),
    ]
    assert (call.text, call.error) == ("Hi", None)


async def test_a_memory_that_cannot_keep_calls_is_refused() -> None:
    with pytest.raises(BrainDefinitionError, match="FakeMemory cannot keep them"):
        Brain(react(ScriptedLLM()), FakeMemory(), trace=True)
    brain = Brain(react(ScriptedLLM()), trace=True)
    with pytest.raises(BrainDefinitionError, match="trace=True"):
        brain.over(FakeMemory())
    with pytest.raises(BrainDefinitionError, match="True or False"):
        Brain(react(ScriptedLLM()), trace="yes")  # type: ignore[call-overload]


async def test_requests_for_data_are_recorded_with_their_schema() -> None:
    memory = MessagesMemory()
    brain = Brain("react", memory, llm=ScriptedLLM(["4", "4"]), output_type=int, trace=True)
    await brain.run("2 + 2?")
    calls: Sequence[Any] = await memory.model_calls()
    assert any(call.output_schema is not None for call in calls)


async def test_every_journal_keeps_the_calls(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "j.db") as journal:
        memory = MessagesMemory(journal=journal)
        await traced(memory, 2)
        exported = await memory.fork(journal=SQLiteJournal(tmp_path / "k.db"))
        assert len(await exported.model_calls()) == 3
        await exported.aclose()
