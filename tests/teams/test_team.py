"""Teams: several brains work on one task and send each other messages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

import anyio
import pytest

from agent_brain import Brain, Limits, SharedMemory, StopReason, Team, tool
from agent_brain.errors import BrainDefinitionError, BrainUseError, LeaseHeldError, ResumeError
from agent_brain.memories import Message, SQLiteJournal, UserMemory
from agent_brain.testing import ModelCall, ScriptedLLM
from agent_brain.tools import Action, InputNeeded, SleepNeeded
from tests.nets.models import FunctionLLM

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


def agent(shared: SharedMemory, name: str, turns: Any, **options: Any) -> Brain[Any]:
    more = {key: options.pop(key) for key in ("tools", "limits") if key in options}
    llm = ScriptedLLM(turns) if isinstance(turns, list) else FunctionLLM(turns)
    return Brain("react", shared.member(name, **options), llm=llm, **more)


def send(to: list[str], content: str, **more: Any) -> Action:
    args: dict[str, Any] = {"to": to, "content": content}
    return Action(name="send_message", args=args, **more)


def finish(answer: str) -> Action:
    return Action(name="finish_task", args={"answer": answer})


def record(messages: list[Message]) -> list[tuple[str | None, str]]:
    return [(message.sent_from, message.content) for message in messages]


def pair(**options: Any) -> tuple[Team, SharedMemory]:
    """A writer and a critic who says once that it is bad, then ends the task."""
    shared = SharedMemory(options.pop("journal", None))
    writer = agent(shared, "writer", ["Roses.", "Violets."], watch={"task", "critic"})
    critic = agent(shared, "critic", ["Again.", finish("Violets!"), "Done."], watch={"writer"})
    return Team([writer, critic], **options), shared


async def test_agents_answer_each_other_until_one_ends_the_task() -> None:
    team, _ = pair()
    result = await team.run("Write")
    assert (result.answer, result.stop_reason, result.rounds) == ("Violets!", "done", 4)
    assert record(result.messages) == [
        (None, "Write"),
        ("writer", "Roses."),
        ("critic", "Again."),
        ("writer", "Violets."),
        ("critic", "Violets!"),
    ]
    assert result.usage.requests == 5
    assert result.steps == 10


async def test_it_ends_when_no_inbox_has_messages() -> None:
    shared = SharedMemory()
    team = Team([agent(shared, "writer", ["Roses."], watch={"task"})])
    result = await team.run("Write")
    assert (result.answer, result.stop_reason, result.rounds) == ("Roses.", "done", 1)


async def test_an_agent_addresses_others_with_a_tool() -> None:
    shared = SharedMemory()
    llm = [send(["bob"], "only you"), "sent"]
    ann = agent(shared, "ann", llm, watch={"task"})
    bob = agent(shared, "bob", ["thanks"], watch=())
    eve = agent(shared, "eve", ["why?"], watch=(), description="listens")
    team = Team([ann, bob, eve])
    result = await team.run("go")
    assert record(result.messages)[1:] == [("ann", "only you"), ("bob", "thanks")]
    tool = ann.memory.available_tools["send_message"]
    assert "bob; eve (listens)" in tool.description
    assert tool.input_schema["properties"]["to"]["items"]["enum"] == ["bob", "eve"]


async def test_answers_go_to_the_receivers_of_the_member() -> None:
    shared = SharedMemory()
    ann = agent(shared, "ann", ["to bob"], watch={"task"}, send_to="bob")
    bob = agent(shared, "bob", ["thanks"], watch=(), send_to="user")
    eve = agent(shared, "eve", [])
    result = await Team([ann, bob, eve]).run("go", send_to="ann")
    assert [message.send_to for message in result.messages[1:]] == [("bob",), ("user",)]


async def test_agents_with_messages_work_at_once() -> None:
    together = 0
    most = [0]

    @tool
    async def meet() -> str:
        """Meet."""
        nonlocal together
        together += 1
        most[0] = max(most[0], together)
        await anyio.wait_all_tasks_blocked()
        together -= 1
        return "met"

    def team(**options: Any) -> Team:
        shared = SharedMemory()
        turns = [Action(name="meet"), "done"]
        brains = [agent(shared, n, turns, watch={"task"}, tools=[meet]) for n in ("a", "b", "c")]
        return Team(brains, **options)

    assert (await team().run("go")).rounds == 1
    assert most == [3]
    most[0] = 0
    await team(max_concurrency=2).run("go")
    assert most == [2]


async def test_events_have_the_name_of_the_agent() -> None:
    team, _ = pair()
    async with team.stream("Write") as run:
        events = [event async for event in run]
    assert (events[0].kind, events[0].path) == ("run_started", ())
    assert (events[-1].kind, events[-1].path) == ("run_finished", ())
    texts = [(e.path, e.text) for e in events if e.kind == "text_delta"]
    assert texts == [
        (("writer",), "Roses."),
        (("critic",), "Again."),
        (("writer",), "Violets."),
        (("critic",), "Done."),
    ]
    assert {event.path[0] for event in events[1:-1]} == {"writer", "critic"}


async def test_a_second_task_continues_the_conversation() -> None:
    shared = SharedMemory()
    writer = agent(shared, "writer", ["Roses.", "Violets."], watch={"task"})
    team = Team([writer])
    await team.run("Write")
    result = await team.run("Again")
    assert (result.answer, result.rounds) == ("Violets.", 1)
    assert record(result.messages) == [(None, "Again"), ("writer", "Violets.")]
    assert len(await writer.memory.dump()) + 1 == 4


def endless(shared: SharedMemory, **options: Any) -> Team:
    def reply(call: ModelCall) -> str:
        return "ping"

    return Team([agent(shared, name, reply) for name in ("ann", "bob")], **options)


async def test_limits_are_those_of_all_turns_together() -> None:
    result = await endless(SharedMemory(), max_rounds=3).run("go")
    assert (result.stop_reason, result.rounds) == ("max_rounds", 3)
    result = await endless(SharedMemory(), limits=Limits(max_tokens=10)).run("go")
    assert result.stop_reason == StopReason.MAX_TOKENS
    assert 10 <= result.usage.total_tokens <= 14
    result = await endless(SharedMemory(), limits=Limits(max_steps=7)).run("go")
    assert result.stop_reason == StopReason.MAX_STEPS
    assert 7 <= result.steps <= 8


async def test_a_task_goes_on_with_higher_limits_and_counts_what_was_used() -> None:
    shared = SharedMemory()
    team = endless(shared, max_rounds=2)
    first = await team.run("go")
    assert (await team.resume()).rounds == 2
    brains = [*team.brains.values()]
    second = await Team(brains, max_rounds=5).resume()
    assert (second.stop_reason, second.rounds) == ("max_rounds", 5)
    assert second.usage.requests == first.usage.requests // 2 * 5
    assert second.task_id == first.task_id


@pytest.mark.parametrize(("team", "own"), [(0.05, None), (3600, 0.05)])
async def test_the_shorter_time_limit_ends_turns_at_once(team: float, own: float | None) -> None:
    @tool
    async def sleep() -> str:
        """Sleep."""
        await anyio.sleep_forever()
        return ""

    shared = SharedMemory()
    calls, limits = [Action(name="sleep"), "awake"], Limits(timeout=own)
    slow = agent(shared, "slow", calls, tools=[sleep], limits=limits)
    with anyio.fail_after(60):
        result = await Team([slow], limits=Limits(timeout=team)).run("go")
    assert result.stop_reason == StopReason.TIMEOUT


async def test_a_limit_of_one_agent_stops_the_team_with_its_reason() -> None:
    shared = SharedMemory()
    one = agent(shared, "one", [Action(name="nothing"), "done"], limits=Limits(max_steps=1))
    team = Team([one])
    assert (await team.run("go")).stop_reason == StopReason.MAX_STEPS
    one.limits = Limits(max_steps=9)
    result = await team.resume()
    assert (result.answer, result.stop_reason, result.rounds) == ("done", "done", 1)


@tool
def again() -> str:
    """Do it again."""
    return "the same"


def repeats(call: ModelCall) -> Action:
    return Action(name="again")


async def test_a_turn_that_repeats_itself_stops_the_team_until_it_is_resumed() -> None:
    shared = SharedMemory()
    stuck = agent(shared, "one", repeats, tools=[again], watch={"task"})
    team = Team([stuck, agent(shared, "two", ["I see."], watch={"one"})])
    result = await team.run("go")
    assert (result.stop_reason, result.answer) == (StopReason.STUCK, "the same")
    result = await team.resume()
    assert (result.stop_reason, result.answer, result.rounds) == ("done", "I see.", 2)


async def test_a_stuck_turn_that_has_sent_messages_is_reported_once() -> None:
    def reply(call: ModelCall) -> Action:
        return repeats(call) if len(call.messages) > 3 else send(["two"], "Hello.")

    shared = SharedMemory()
    stuck = agent(shared, "one", reply, tools=[again], watch={"task"})
    team = Team([stuck, agent(shared, "two", ["Hi."], watch=())])
    assert (await team.run("go")).stop_reason == StopReason.STUCK
    assert (await team.resume()).stop_reason == "done"


async def test_a_task_that_was_ended_is_done_though_a_turn_is_stuck() -> None:
    shared = SharedMemory()
    stuck = agent(shared, "one", repeats, tools=[again], watch={"task"})
    ends = agent(shared, "two", [finish("Over."), "Done."], watch={"task"})
    result = await Team([stuck, ends]).run("go")
    assert (result.stop_reason, result.answer) == ("done", "Over.")


async def test_the_first_of_several_ends_counts_and_the_others_get_an_error() -> None:
    shared = SharedMemory()
    turns = {"one": [finish("One."), "Done."], "two": [[finish("Two."), finish("2.")], "Done."]}
    brains = [agent(shared, name, given, watch={"task"}) for name, given in turns.items()]
    result = await Team(brains).run("go")
    results = [
        (message.is_error, message.content)
        for brain in brains
        for message in await brain.memory.turn()
        if message.tool_call_id
    ]
    assert result.answer in ("One.", "Two.", "2.")
    assert sorted(error for error, _ in results) == [False, True, True]
    assert all("has ended already" in text for error, text in results if error)


async def test_an_empty_end_goes_back_to_the_model() -> None:
    shared = SharedMemory()
    one = agent(shared, "one", [finish(" "), finish("Over."), "Done."], watch={"task"})
    assert (await Team([one]).run("go")).answer == "Over."


async def test_stop_ends_the_turns_after_their_steps_and_resume_continues() -> None:
    team, _ = pair()
    async with team.stream("Write") as run:
        async for event in run:
            if event.kind == "text_delta":
                run.stop()
    assert run.result.stop_reason == StopReason.STOPPED
    assert (await team.resume()).answer == "Violets!"


async def test_leaving_the_stream_ends_all_turns() -> None:
    left = []

    @tool
    async def wait() -> str:
        """Wait."""
        try:
            await anyio.sleep_forever()
        finally:
            left.append("left")
        return ""

    shared = SharedMemory()
    brains = [agent(shared, n, [Action(name="wait"), "done"], tools=[wait]) for n in ("a", "b")]
    async with Team(brains).stream("go") as run:
        started = 0
        async for event in run:
            started += event.kind == "action_started"
            if started == 2:
                break
    assert left == ["left", "left"]
    assert not any(brain.memory.busy for brain in brains)
    assert (run.result.stop_reason, run.result.rounds) == ("cancelled", 1)
    assert run.result.task_id
    assert record(run.result.messages) == [(None, "go")]


async def test_a_task_that_was_left_at_its_beginning_has_a_result() -> None:
    team, _ = pair()
    async with team.stream("Write") as run:
        async for _ in run:
            break
    result = run.result
    assert (result.stop_reason, result.rounds, result.steps) == ("cancelled", 0, 0)
    assert (await team.run("Write")).stop_reason == "done"


async def test_a_task_that_has_not_begun_or_has_failed_has_no_result() -> None:
    team, shared = pair()
    async with team.stream("Write") as run:
        pass
    with pytest.raises(BrainUseError, match="no result"):
        _ = run.result
    failing = Team([agent(shared, "one", [OSError("down")], watch={"task"})])
    run = failing.stream("go")
    with pytest.raises(OSError, match="down"):
        await run.to_end()
    with pytest.raises(BrainUseError, match="no result"):
        _ = run.result


async def test_leaving_behind_the_end_keeps_the_result() -> None:
    team, _ = pair()
    async with team.stream("Write") as run:
        async for event in run:
            if event.kind == "run_finished" and not event.path:
                break
    assert (run.result.stop_reason, run.result.answer) == ("done", "Violets!")


async def test_cancelling_ends_all_turns_and_resume_continues(tmp_path: Any) -> None:
    began = anyio.Event()

    @tool(idempotent=True)
    async def wait() -> str:
        """Wait, the first time."""
        if began.is_set():
            return "waited"
        began.set()
        await anyio.sleep_forever()
        return ""

    async with SharedMemory(tmp_path / "team.db") as shared:
        one = agent(shared, "one", [Action(name="wait"), "done"], tools=[wait])
        team = Team([one])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(team.run, "go")
            await began.wait()
            tasks.cancel_scope.cancel()
        assert not one.memory.busy
        assert (await team.resume()).stop_reason == "done"


async def test_an_error_of_an_agent_ends_the_task_and_resume_continues() -> None:
    shared = SharedMemory()
    team = Team([agent(shared, "one", [OSError("down"), "done"])])
    events = []

    async def read() -> None:
        async with team.stream("go") as run:
            async for event in run:
                events.append((event.kind, event.path))

    with pytest.raises(OSError, match="down"):
        await read()
    assert events[-2:] == [("run_failed", ("one",)), ("run_failed", ())]
    assert (await team.resume()).answer == "done"


@pytest.mark.parametrize("known", [True, False], ids=["same process", "another process"])
async def test_an_interrupted_agent_that_the_team_lacks_is_reported(
    known: bool, tmp_path: Any
) -> None:
    def brains(shared: SharedMemory, names: str) -> list[Brain[Any]]:
        turns = {"a": ["A.", "A."], "b": [OSError("down"), "B."]}  # A may be cut off by the error
        return [
            agent(shared, name, turns[name], watch={"task"}, memory="windowed") for name in names
        ]

    async with SharedMemory(tmp_path / "team.db") as shared:
        team = Team(brains(shared, "ab"))
        with pytest.raises(OSError, match="down"):
            await team.run("go")
        before = await shared.messages()
        if known:
            with pytest.raises(ResumeError, match="no agent 'b'"):
                await Team([team.brains["a"]]).resume()
            assert await shared.messages() == before
            assert (await team.resume()).stop_reason == "done"
            without_b = Team([team.brains["a"]])
            assert (await without_b.resume()).stop_reason == "done", "its turn has ended"
    if not known:
        async with SharedMemory(tmp_path / "team.db") as shared:
            with pytest.raises(ResumeError, match="no agent 'b'"):
                await Team(brains(shared, "a")).resume()
            assert await shared.messages() == before


@tool(requires_approval=True)
def pay(euros: int) -> str:
    """Pay."""
    return f"paid {euros}"


def payers(shared: SharedMemory) -> Team:
    def turns(n: int) -> list[Any]:
        return [Action(name="pay", args={"euros": n}, id=f"pay-{n}"), f"done {n}"]

    return Team(
        [agent(shared, f"p{n}", turns(n), tools=[pay], watch={"task"}) for n in (1, 2)],
    )


async def test_approvals_stop_the_team_until_they_are_given() -> None:
    team = payers(SharedMemory())
    result = await team.run("go")
    assert (result.stop_reason, result.waiting) == (StopReason.APPROVAL, ("p1", "p2"))
    with pytest.raises(ResumeError, match="pay-1"):
        await team.resume()
    with pytest.raises(ResumeError, match="No call 'pay-3'"):
        await team.resume(approve="pay-3")
    result = await team.resume(approve="pay-1")
    assert (result.stop_reason, result.waiting) == (StopReason.APPROVAL, ("p2",))
    assert record(result.messages)[1:] == [("p1", "done 1")]
    result = await team.resume(deny={"pay-2": "too much"})
    assert (result.stop_reason, result.waiting) == ("done", ())
    assert "too much" in [*await team.brains["p2"].memory.turn()][2].content


async def test_all_calls_are_approved_at_once() -> None:
    team = payers(SharedMemory())
    await team.run("go")
    result = await team.resume(approve=True)
    assert sorted(record(result.messages)[1:]) == [("p1", "done 1"), ("p2", "done 2")]
    with pytest.raises(ResumeError, match="No call waits"):
        await team.resume(approve=True)


async def test_questions_are_answered() -> None:
    @tool
    def ask() -> str:
        """Ask."""
        raise InputNeeded("Which colour?")

    shared = SharedMemory()
    turns = [Action(name="ask", id="ask-1"), "Blue it is."]
    team = Team([agent(shared, "one", turns, tools=[ask])])
    assert (await team.run("go")).stop_reason == StopReason.INPUT
    with pytest.raises(ResumeError, match="No question 'x'"):
        await team.resume(input={"x": "blue"})
    assert (await team.resume(input="blue")).answer == "Blue it is."


@pytest.mark.parametrize("answer", ["Blue", {"ask-1": "blue"}])
async def test_typed_questions_are_answered(answer: object) -> None:
    @tool
    def ask() -> str:
        """Ask."""
        raise InputNeeded("Which colour?", Literal["blue", "red"])

    turns = [Action(name="ask", id="ask-1"), "Blue it is."]
    team = Team([agent(SharedMemory(), "one", turns, tools=[ask])])
    await team.run("go")
    with pytest.raises(ResumeError, match="'green' is not one of"):
        await team.resume(input="green")
    assert (await team.resume(input=answer)).answer == "Blue it is."


async def test_a_tool_that_waits_for_a_time_stops_the_team_until_it_is_resumed() -> None:
    ready = False

    @tool
    def fetch() -> str:
        """Fetch."""
        if not ready:
            raise SleepNeeded(timedelta(0))
        return "fetched"

    shared = SharedMemory()
    team = Team([agent(shared, "one", [Action(name="fetch"), "Here it is."], tools=[fetch])])
    result = await team.run("go")
    assert (result.stop_reason, result.waiting) == ("sleeping", ())
    assert (await team.resume()).stop_reason == "sleeping"
    ready = True
    assert (await team.resume()).answer == "Here it is."


async def test_one_task_of_a_record_runs_at_a_time(tmp_path: Any) -> None:
    async with SQLiteJournal(tmp_path / "team.db") as journal:
        first, _ = pair(journal=journal)
        second, _ = pair(journal=journal)
        async with first.stream("Write") as run:
            async for _ in run:
                with pytest.raises(LeaseHeldError):
                    await second.run("Write too")
                break
        assert (await second.resume()).answer == "Violets!"


async def test_what_cannot_be_a_task_is_refused() -> None:
    team, shared = pair()
    with pytest.raises(BrainUseError, match="empty"):
        await team.run("  ")
    with pytest.raises(BrainUseError, match="Did you mean 'writer'"):
        await team.run("go", send_to="writr")
    with pytest.raises(BrainUseError, match="No agent gets the task"):
        await team.run(Message.user("go", cause_by="nothing"))
    with pytest.raises(ResumeError, match="no task to resume"):
        await team.resume()
    assert await shared.messages() == []


def test_what_cannot_be_a_team_is_refused() -> None:
    shared = SharedMemory()
    one = agent(shared, "one", [])
    cases: list[tuple[Any, dict[str, Any], str]] = [
        ([], {}, "at least one"),
        ([Brain("react", llm=ScriptedLLM())], {}, "members of a SharedMemory"),
        ([one, one], {}, "two agents with the name 'one'"),
        ([one, agent(SharedMemory(), "two", [])], {}, "one SharedMemory"),
        ([one], {"limits": 7}, "limits=7"),
        ([one], {"max_rounds": 0}, "max_rounds=0"),
        ([one], {"max_concurrency": 0}, "max_concurrency=0"),
        ([one], {"may_end": "two"}, "may_end='two'"),
    ]
    cases += [(one, {}, r"Team\(\[brain\]\)"), (None, {}, r"Team\(\[brain\]\)")]
    for brains, options, said in cases:
        with pytest.raises(BrainDefinitionError, match=said):
            Team(brains, **options)


async def test_an_agent_looks_up_the_user_and_what_others_say_is_not_the_users_word() -> None:
    user, shared = UserMemory(), SharedMemory()
    await user.remember("Lives in Porto", slot="home", source=Message.user("I live in Porto"))
    llm = ScriptedLLM(
        [
            [Action(name="recall_user", args={"query": "home"})],
            [Action(name="remember", args={"text": "Lives in Rome", "quote": "lives in Rome"})],
            "Done.",
        ]
    )
    llm_of_boss = ScriptedLLM(["The user lives in Rome"])
    boss = Brain("react", shared.member("boss", watch={"task"}), llm=llm_of_boss)
    guide = Brain("react", shared.member("guide", watch={"boss"}), user.tools(), llm=llm)
    await Team([boss, guide], max_rounds=3).run("Go")
    assert "Lives in Porto" in llm.calls[1].messages[-1].content
    assert [fact.origin for fact in await user.facts(status="all")] == ["user", "other"]
    assert [fact.text for fact in await user.facts(status="claim")] == ["Lives in Rome"]
    with pytest.raises(BrainDefinitionError, match=r"user\.tools\(\)"):
        Team([Brain("react", shared.member("ann"), llm="demo", user=user)])


async def test_only_those_who_may_end_the_task_have_the_tool() -> None:
    team, _ = pair(may_end="critic")
    tools = {name: [*brain.memory.available_tools] for name, brain in team.brains.items()}
    assert tools == {"writer": ["send_message"], "critic": ["send_message", "finish_task"]}


async def test_limits_that_cannot_count_are_reported() -> None:
    team = endless(SharedMemory(), limits=Limits(max_cost=1, strict=True), max_rounds=2)
    with pytest.raises(BrainUseError, match="max_cost"):
        await team.run("go")
