"""Teams that are killed at each write continue as if they were not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, SharedMemory, Team, tool
from agent_brain.errors import ResumeError
from agent_brain.memories import (
    Journal,
    JournalError,
    Message,
    PostgresJournal,
    RamJournal,
    RedisJournal,
    Role,
    SQLiteJournal,
)
from agent_brain.teams.run import TeamResult
from agent_brain.testing import ModelCall
from agent_brain.tools import Action
from tests.nets.models import FunctionLLM
from tests.support import postgres_server, redis_server
from tests.support.journals import Killed, MortalJournal
from tests.support.thorough import first_of

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]

Open = Callable[[], AbstractAsyncContextManager[Journal]]


def said(call: ModelCall, text: str) -> bool:
    return any(text in message.content for message in call.messages)


class Work:
    """A lead that asks two helpers at once by a tool, gets their answers, and ends the task."""

    def __init__(self, opened: Open, *, approval: bool = False) -> None:
        self.opened = opened
        self.effects: Counter[str] = Counter()
        self.writes = 0
        self.result: TeamResult | None = None

        @tool(requires_approval=approval)
        async def pay(name: str) -> str:
            """Pay."""
            self.effects[name] += 1
            return f"{name} paid"

        self.pay = pay

    def lead(self, call: ModelCall) -> Any:
        if said(call, "The task has ended"):
            return "It has ended."
        if said(call, "Sent to"):
            if said(call, "a: a is done") and said(call, "b: b is done"):
                return Action(name="finish_task", args={"answer": "All done."}, id="end-1")
            return "I wait."
        to: dict[str, Any] = {"to": ["a", "b"], "content": "Pay."}
        return Action(name="send_message", args=to, id="send-1")

    def helper(self, name: str) -> Callable[[ModelCall], Any]:
        def reply(call: ModelCall) -> Any:
            if any(message.role is Role.TOOL for message in call.messages):
                return f"{name} is done"
            return Action(name="pay", args={"name": name}, id=f"pay-{name}")

        return reply

    def team(self, shared: SharedMemory) -> Team:
        lead = shared.member("lead", watch={"task", "a", "b"})
        helpers = [
            Brain(
                "react",
                shared.member(name, watch=(), memory="windowed", send_to="lead"),
                [self.pay],
                llm=FunctionLLM(self.helper(name)),
            )
            for name in ("a", "b")
        ]
        return Team([Brain("react", lead, llm=FunctionLLM(self.lead)), *helpers], may_end="lead")

    async def go_on(self, team: Team) -> TeamResult:
        """Run the task, or resume it; approve what waits."""
        try:
            result = await team.resume()
        except ResumeError as error:
            if "no task" in str(error):
                result = await team.run("Pay them.")
            else:
                result = await team.resume(approve=True)
        return await team.resume(approve=True) if result.waiting else result

    async def live(self, dies_at: int | None = None, *, after: bool = True) -> bool:
        async with self.opened() as store:
            journal = MortalJournal(store, dies_at, after=after)
            try:
                async with SharedMemory(journal) as shared:
                    self.result = await self.go_on(self.team(shared))
            except Killed:
                return False
            except BaseExceptionGroup as group:  # several agents wrote at once
                if group.subgroup(Killed) is None:
                    raise
                return False
            finally:
                self.writes += journal.writes
        return True

    async def told(self) -> dict[str, list[Any]]:
        """Return what the record and the memories hold, by sender where agents work at once."""
        async with self.opened() as store, SharedMemory(store) as shared:
            self.team(shared)
            everything = {name: await m.messages() for name, m in shared.members.items()}
            record = await shared.messages()
            left = {name: await m.inbox() for name, m in shared.members.items()}
        assert not any(left.values())
        told = {name: sorted(map(plain, messages)) for name, messages in everything.items()}
        return {"record": sorted(map(plain, record)), **told}


def plain(message: Message) -> tuple[Any, ...]:
    calls = [call.id for call in message.tool_calls]
    return (message.role.value, message.sent_from or "", message.send_to, message.content, calls)


def check(work: Work, told: dict[str, list[Any]], wanted: dict[str, list[Any]]) -> None:
    assert work.result is not None
    assert (work.result.stop_reason, work.result.answer) == ("done", "All done.")
    doubts = "may or may not have taken effect"
    assert all(count == 1 for count in work.effects.values()), "a payment was repeated"
    if doubts not in repr(told):
        assert {*work.effects} == {"a", "b"}
    # After a part of the approvals, the lead may be told of one payment before the other.
    assert [line for line in told["record"] if "I wait." not in line] == wanted["record"]
    for name in ("a", "b"):
        without = [line for line in told[name] if doubts not in repr(line)]
        assert all(line in wanted[name] for line in without)
    assert len(told["lead"]) >= len(wanted["lead"])


def in_ram() -> Open:
    store = RamJournal()
    return lambda: nullcontext(store)


@pytest.mark.parametrize("approval", first_of([False, True], False), ids=["", "approval"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_kill_at_any_write_neither_loses_nor_repeats(after: bool, approval: bool) -> None:
    whole = Work(in_ram(), approval=approval)
    assert await whole.live()
    wanted = await whole.told()
    check(whole, wanted, wanted)
    assert [line[1] for line in wanted["record"]] == ["a", "b", "lead", "lead", ""]
    for write in range(1, whole.writes + 1, 5 if approval else 1):
        work = Work(in_ram(), approval=approval)
        if not await work.live(write, after=after):
            assert await work.live(), write
        check(work, await work.told(), wanted)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_store_that_fails_at_any_write_neither_loses_nor_repeats(after: bool) -> None:
    whole = Work(in_ram())
    assert await whole.live()
    wanted = await whole.told()
    for write in range(1, whole.writes + 1, 2):
        work = Work(in_ram())
        async with work.opened() as store:
            journal = MortalJournal(store, write, after=after, error=JournalError)
            async with SharedMemory(journal) as shared:
                team = work.team(shared)
                with pytest.raises(JournalError):
                    await work.go_on(team)
                work.result = await work.go_on(team)  # with the same memory objects
        told = await work.told()
        check(work, told, wanted)
        assert "was not run:" not in repr(told), write


async def test_kills_again_and_again_do_not_either() -> None:
    whole = Work(in_ram())
    assert await whole.live()
    wanted = await whole.told()
    rng = random.Random(1)
    for _ in range(5):
        work, lives = Work(in_ram()), 0
        while not await work.live(rng.randrange(2, 12)):
            lives += 1
            assert lives < 200, "it does not get on"
        check(work, await work.told(), wanted)


async def test_it_is_so_in_a_file(tmp_path: Path) -> None:
    def opened(name: str) -> Open:
        return lambda: SQLiteJournal(tmp_path / name, durability="os")

    whole = Work(opened("whole.db"))
    assert await whole.live()
    wanted = await whole.told()
    for write in range(1, whole.writes + 1, 6):
        work = Work(opened(f"{write}.db"))
        if not await work.live(write):
            assert await work.live(), write
        check(work, await work.told(), wanted)


@pytest.mark.parametrize("kind", ["redis", "postgres"])
@pytest.mark.parametrize("dies_at", first_of([9, 25], 9))
async def test_it_is_so_on_a_server(kind: str, dies_at: int) -> None:
    whole = Work(in_ram())
    assert await whole.live()
    with ExitStack() as stack:
        if kind == "redis":
            url, prefix = redis_server.redis_url(), redis_server.journal_prefix()
            named = stack.enter_context(prefix)
            work = Work(lambda: RedisJournal(url, prefix=named))
        else:
            schema = stack.enter_context(postgres_server.new_schema())
            work = Work(lambda: PostgresJournal(postgres_server.URL, schema=schema))
        assert not await work.live(dies_at)
        assert await work.live()
        check(work, await work.told(), await whole.told())
