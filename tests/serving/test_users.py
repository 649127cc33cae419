"""What a server knows about its users: whose it is, when it learns, what it forgets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_brain import Brain, UsageLedger
from agent_brain.errors import BrainDefinitionError, BrainUseError
from agent_brain.memories import (
    Batch,
    Draft,
    JournalError,
    RamJournal,
    UserMemory,
    delete_session,
)
from agent_brain.serving import Sessions
from agent_brain.states import Hook, model_extractor
from agent_brain.states.events import FactsLearned
from agent_brain.testing import ScriptedLLM
from tests.memories.user.support import by_rules
from tests.serving.models import EchoLLM, Gate
from tests.support.clock import clock_backend, fake_clock

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: Any) -> Any:
    return clock_backend(request.param)


async def ask(sessions: Sessions, session: str, task: str, **whose: Any) -> None:
    async with sessions.use(session, **({"user": "ann"} | whose)) as opened:
        await (await opened.start(task)).wait()


async def texts(sessions: Sessions, user: str = "ann") -> list[str]:
    async with sessions.known(user=user) as known:
        return [fact.text for fact in await known.facts()]


async def until(found: Callable[[], Any]) -> None:
    with fake_clock():
        while not await found():
            await anyio.sleep(0.5)


async def test_what_a_user_says_is_known_in_all_of_their_sessions_and_in_no_other():
    llm = EchoLLM()
    async with Sessions(
        Brain(llm=llm), journal=RamJournal(), user={"extract": by_rules}, idle=60
    ) as sessions:
        await ask(sessions, "one", "I live in Porto")
        assert await texts(sessions) == []  # nothing is learned in the hot path
        await until(lambda: texts(sessions))  # when it was unused for a minute
        await ask(sessions, "two", "Where do I live?")
        assert "home: Lives in Porto" in "".join(llm.asked[-1])
        for whose in ({"user": "bob"}, {"user": "ann", "tenant": "acme"}):
            await ask(sessions, "two", "Where do I live?", **whose)
            assert "Porto" not in "".join(llm.asked[-1])
        async with sessions.use(None) as nobody:
            await (await nobody.start("I live in Rome")).wait()
            assert "remember" not in nobody.memory.available_tools


async def test_a_session_is_learned_from_after_ten_turns_while_it_is_open():
    batches: list[Batch] = []

    def extract(batch: Batch) -> list[Draft]:
        batches.append(batch)
        return by_rules(batch)

    async with Sessions(
        Brain(llm=EchoLLM()), journal=RamJournal(), user={"extract": extract}
    ) as sessions:
        async with sessions.use("one", user="ann"):
            for number in range(10):
                await ask(sessions, "one", f"I like food{number}")
            await until(lambda: texts(sessions))
        assert len(await texts(sessions)) == 10
        async with sessions.use("two", user="ann") as other, other.stream("Hello") as run:
            told = [item.event async for item in run if isinstance(item.event, FactsLearned)]
    assert [(each.session, each.read, len(each.added)) for each in told] == [("one", 20, 10)]
    assert [len(batch.messages) for batch in batches] == [20]


async def test_a_turn_that_comes_when_its_session_was_just_read_is_learned_at_the_end():
    class Late(Hook):
        async def after_run(self, request: Any, result: object) -> None:
            if request.net == "learn":
                read.set()
                await go.wait()

    async def was_read() -> bool:
        return read.is_set()

    journal, read, go = RamJournal(), anyio.Event(), anyio.Event()
    brain = Brain(llm=EchoLLM(), hooks=[Late()])
    async with Sessions(brain, journal=journal, user={"extract": by_rules}, idle=60) as sessions:
        await ask(sessions, "one", "I like tea")
        await until(was_read)
        await ask(sessions, "one", "I live in Porto")
        go.set()
        await anyio.wait_all_tasks_blocked()
    known = UserMemory(journal=journal, tenant="ann")
    assert [fact.text for fact in await known.facts()] == ["Likes tea", "Lives in Porto"]


async def test_the_end_of_the_server_learns_and_a_kill_loses_nothing(tmp_path: Path):
    place = tmp_path / "chats.db"
    options: dict[str, Any] = {"journal": place, "user": {"extract": by_rules}}
    async with Sessions(Brain(llm=EchoLLM()), **options) as sessions:
        await ask(sessions, "one", "I live in Porto")
    async with Sessions(Brain(llm=EchoLLM()), **options) as sessions:
        assert await texts(sessions) == ["Lives in Porto"]
        await ask(sessions, "two", "I like tea")
        await sessions.stop(0)  # as a second Ctrl-C does: there is no time to learn
    async with Sessions(Brain(llm=EchoLLM()), **options) as sessions:
        await ask(sessions, "three", "Hello")  # the user comes back, in another session
        await until(lambda: _knows(sessions, "Likes tea"))


async def _knows(sessions: Sessions, text: str) -> bool:
    return text in await texts(sessions)


async def test_learning_at_the_end_is_cut_short_if_the_server_is_to_end_at_once():
    learning = anyio.Event()

    async def extract(batch: Batch) -> list[Draft]:
        learning.set()
        await anyio.sleep_forever()
        return []

    sessions = Sessions(Brain(llm=EchoLLM()), journal=RamJournal(), user={"extract": extract})

    async def serve() -> None:
        async with sessions:
            await ask(sessions, "one", "I live in Porto")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            await learning.wait()
            await sessions.stop(0)


async def test_what_is_forgotten_while_it_is_read_is_not_learned():
    gate = Gate()

    async def extract(batch: Batch) -> list[Draft]:
        await gate.wait()
        return by_rules(batch)

    journal = RamJournal()
    async with Sessions(
        Brain(llm=EchoLLM()), journal=journal, user={"extract": extract}, idle=1
    ) as sessions:
        await ask(sessions, "one", "I live in Porto")
        await gate.until_reached()
        await sessions.forget_known(user="ann", text="porto")
        assert gate.left == 1
        gate.open()
        await ask(sessions, "one", "I like tea")
        await until(lambda: texts(sessions))
        assert await texts(sessions) == ["Likes tea"]
        async with sessions.use("one", user="ann") as session:
            said = [message.content for message in await session.memory.dump()]
            assert not [text for text in said if "Porto" in text]
        assert [info.title for info in await sessions.list(user="ann")] == ["I live in [forgotten]"]


@pytest.mark.parametrize("when", ["before it is read", "while it is read"])
async def test_a_session_that_is_deleted_teaches_nothing_and_is_no_warning(
    when: str, caplog: pytest.LogCaptureFixture
):
    gate = Gate()

    async def extract(batch: Batch) -> list[Draft]:
        await gate.wait()
        return by_rules(batch)

    journal = RamJournal()
    async with Sessions(
        Brain(llm=EchoLLM()), journal=journal, user={"extract": extract}, idle=1
    ) as sessions:
        await ask(sessions, "one", "I live in Porto")
        if when == "while it is read":
            await gate.until_reached()
        await sessions.delete("one", user="ann")
        gate.open()
        await ask(sessions, "two", "I like tea")
        await until(lambda: texts(sessions))
        assert await texts(sessions) == ["Likes tea"]
    assert [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"] == []


async def test_a_journal_that_fails_while_it_says_what_is_unread_stops_no_run():
    class Failing(RamJournal):
        asked = 0

        async def lasts(self, prefix: str = "") -> dict[str, int]:
            self.asked += 1
            if self.asked == 1:
                raise JournalError("The journal is away")
            return await super().lasts(prefix)

    journal = Failing()
    async with Sessions(
        Brain(llm=EchoLLM()), journal=journal, user={"extract": by_rules}
    ) as sessions:
        async with sessions.known(user="ann"):
            await until(lambda: _asked(journal))
        await ask(sessions, "one", "I live in Porto")
    async with Sessions(Brain(llm=EchoLLM()), journal=journal, user={}) as sessions:
        assert await texts(sessions) == ["Lives in Porto"]


async def _asked(journal: Any) -> bool:
    return bool(journal.asked)


async def test_everything_is_forgotten_with_all_sessions_of_the_user():
    async with Sessions(
        Brain(llm=EchoLLM()), journal=RamJournal(), user={"extract": by_rules}
    ) as sessions:
        for user in ("ann", "bob"):
            await ask(sessions, "one", "I live in Porto", user=user)
            async with sessions.known(user=user) as known:
                await known.learn()
        assert await sessions.forget_known(user="ann", everything=True) == 1
        assert (await texts(sessions), await sessions.list(user="ann")) == ([], [])
        assert await texts(sessions, "bob") == ["Lives in Porto"]


@pytest.mark.parametrize("way", ["deleted", "conversation", "everything"])
async def test_what_was_learned_from_a_session_that_is_gone_is_told_to_nobody(way: str):
    async with Sessions(
        Brain(llm=EchoLLM()), journal=RamJournal(), user={"extract": by_rules}
    ) as sessions:
        await ask(sessions, "secret", "I live in Porto")
        async with sessions.known(user="ann") as known, sessions.use("other", user="ann") as other:
            await known.learn("secret")
            if way == "deleted":
                await sessions.delete("secret", user="ann")
            elif way == "conversation":
                await sessions.forget_known(user="ann", conversation="secret")
            else:
                await sessions.forget_known(user="ann", everything=True)
            assert list(known.untold) == []
            if way != "everything":
                async with other.stream("Hello") as run:
                    assert not [e async for e in run if isinstance(e.event, FactsLearned)]


async def test_learning_counts_as_use_of_the_user():
    ledger = UsageLedger()
    reply = '{"facts": [{"text": "Lives in Porto", "message": "m1", "quote": "I live in Porto"}]}'
    extract = model_extractor(ScriptedLLM([reply]))
    brain = Brain(llm=EchoLLM(), hooks=[ledger])
    async with Sessions(brain, journal=RamJournal(), user={"extract": extract}) as sessions:
        await ask(sessions, "one", "I live in Porto")
        before = ledger.usage(user="ann").requests
    assert ledger.usage(user="ann").requests == before + 1


def test_wrong_options_are_refused():
    brain = Brain(llm=EchoLLM())
    with pytest.raises(BrainDefinitionError, match="journal="):
        Sessions(brain, user={})
    with pytest.raises(BrainDefinitionError, match="tenant"):
        Sessions(brain, journal=RamJournal(), user={"tenant": "ann"})
    with pytest.raises(BrainDefinitionError, match="give user= to Sessions"):
        Sessions(Brain(llm=EchoLLM(), user=UserMemory()), journal=RamJournal())


async def test_a_memory_of_somebody_else_is_refused():
    journal = RamJournal()

    def of(tenant: str) -> UserMemory:
        return UserMemory(journal=journal, tenant="bob")

    async with Sessions(Brain(llm=EchoLLM()), journal=journal, user=of) as sessions:
        with pytest.raises(BrainDefinitionError, match="tenant='ann'"):
            await ask(sessions, "one", "Hello")
        with pytest.raises(BrainUseError, match="give user="):
            await sessions.forget_known(everything=True)


@pytest.mark.parametrize("way", ["everything", "conversation", "session"])
async def test_a_program_forgets_the_titles_in_the_list_of_a_server_too(way: str) -> None:
    journal = RamJournal()
    brain = Brain("react", llm=ScriptedLLM(["Noted."]))
    async with Sessions(brain, journal=journal, user={}) as sessions:
        async with sessions.use("monday", user="ann") as session:
            await (await session.start("I live in Zebraville")).wait()
        async with sessions.known(user="ann") as known:
            tenant = known.tenant
    if way == "session":
        await delete_session(journal, "monday", tenant=tenant)
    else:
        async with UserMemory(journal=journal, tenant=tenant) as ann:
            await ann.forget(
                conversation="monday" if way == "conversation" else None,
                everything=way == "everything",
            )
    keys = await journal.sessions()
    assert not [key for key in keys if "Zebraville" in str(await journal.read(key))]
    async with Sessions(brain, journal=journal) as sessions:
        assert await sessions.list(user="ann") == []


async def test_a_program_that_forgets_everything_leaves_no_title_and_no_branch() -> None:
    journal = RamJournal()
    async with Sessions(Brain(llm=EchoLLM()), journal=journal, user={}) as sessions:
        await ask(sessions, "monday", "I live in Zebraville")
        async with sessions.use("monday", user="ann") as session:
            goal = (await session.memory.goal())[0]
        await sessions.branch("monday", goal.id, user="ann")
        async with sessions.use("new", user="ann"):
            await sessions.rename("new", "Zebraville", user="ann")  # it has no message
        await ask(sessions, "monday", "Hello", user="bob")
    async with UserMemory(journal=journal, tenant="ann") as ann:
        await ann.forget(everything=True)
    left = [key for key in await journal.sessions() if "bob" not in key]
    assert [entry.data for key in left for entry in await journal.read(key)] == [None]
    async with Sessions(Brain(), journal=journal) as sessions:
        assert [info.title for info in await sessions.list(user="bob")] == ["Hello"]


@pytest.mark.parametrize("everything", [True, False])
async def test_an_open_session_that_a_program_deletes_gets_a_title_of_its_own(
    everything: bool,
) -> None:
    journal = RamJournal()
    async with Sessions(Brain(llm=EchoLLM()), journal=journal) as sessions:
        await ask(sessions, "monday", "I live in Zebraville")
        if everything:
            async with UserMemory(journal=journal, tenant="ann") as ann:
                await ann.forget(everything=True)
        else:
            await delete_session(journal, "monday", tenant="ann")
        await ask(sessions, "monday", "Hello")
        await ask(sessions, "monday", "Bye")
        assert [info.title for info in await sessions.list(user="ann")] == ["Hello"]
