"""Sessions that are stored: continuing after a restart, and two servers over one file."""

# ruff: noqa: SIM117 - a server around its clients reads well when nested

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agent_brain import Action, Brain, SQLiteJournal
from agent_brain.errors import BrainUseError, LeaseHeldError, SessionNotFoundError
from agent_brain.memories import PostgresJournal, RamJournal, RedisJournal
from agent_brain.serving import Gap, Session, Sessions
from agent_brain.testing import ScriptedLLM
from agent_brain.tools.builtin import ask_user
from tests.serving.models import EchoLLM, Gate, PartsLLM
from tests.support import postgres_server, redis_server
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio


async def ask(session: Session, task: str = "Hello") -> str:
    async with session.stream(task) as run:
        async for _ in run:
            pass
    return run.result.answer


async def test_a_session_continues_after_a_restart(tmp_path):
    for task in ("My name is Ann", "Who am I?"):
        async with Sessions(Brain(llm=EchoLLM()), journal=tmp_path / "j.db") as sessions:
            async with sessions.use("one", user="ann") as session:
                await ask(session, task)
                said = [message.content for message in await session.memory.dump()]
    assert [text for text in said if text.startswith("You")] == [
        "You said: My name is Ann",
        "You said: Who am I?",
    ]
    async with Sessions(Brain(llm=EchoLLM()), journal=tmp_path / "j.db") as sessions:
        (info,) = await sessions.list(user="ann")
        assert (info.id, info.title, info.status) == ("one", "My name is Ann", "closed")
        assert await sessions.list(user="bob") == []


async def test_an_id_of_an_unknown_caller_is_valid_after_a_restart(tmp_path):
    async with Sessions(Brain(llm=EchoLLM()), journal=tmp_path / "j.db") as sessions:
        async with sessions.use(None) as session:
            name = session.id
            await ask(session)
    async with Sessions(Brain(llm=EchoLLM()), journal=tmp_path / "j.db") as sessions:
        async with sessions.use(name) as session:
            assert await ask(session, "Again") == "You said: Again"
        assert await sessions.list() == []


@pytest.fixture(params=["ram", "sqlite", "redis", "postgres"])
def store(request, tmp_path):
    if request.param == "ram":
        yield RamJournal()
    elif request.param == "sqlite":
        yield SQLiteJournal(tmp_path / "j.db")
    elif request.param == "redis":
        url = redis_server.redis_url()
        with redis_server.journal_prefix() as prefix:
            yield RedisJournal(url, prefix=prefix)
    else:
        with postgres_server.new_schema() as schema:
            yield PostgresJournal(postgres_server.URL, schema=schema)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the client of Redis knows no other
async def test_a_run_that_ended_with_its_process_can_be_resumed(store):
    journal = MortalJournal(store)

    class Calls(PartsLLM):
        async def stream(self, messages, **_):
            if messages[-1].role == "tool":
                await gate.wait()
                yield f"It was {messages[-1].content}"
            else:
                yield Action(name="look")

    def look() -> str:
        """Look."""
        return "green"

    gate = Gate()
    agent = Brain(llm=Calls(), tools=[look])
    sessions = Sessions(agent, journal=journal)
    with pytest.raises((Killed, BaseExceptionGroup)):  # noqa: PT012
        async with sessions, sessions.use("one", user="ann") as session:
            await session.start("Which colour?")
            await gate.until_reached()
            journal.die()
            raise Killed("power cut")

    gate.open()
    async with Sessions(agent, journal=store) as again:
        assert await listed_as(again) == ("interrupted", True)
        async with again.use("one", user="ann") as session:
            assert session.status == "interrupted"
            assert await listed_as(again) == ("interrupted", True)
            run = await session.start_resume()
            assert (await run.wait()).answer == "It was green"
            assert session.run is None
    async with Sessions(agent, journal=store) as again:
        assert await listed_as(again) == ("closed", False)
    await store.aclose()


async def listed_as(sessions: Sessions) -> tuple[str, bool]:
    """The status of ann's only session in the list, and whether it can be resumed."""
    (info,) = await sessions.list(user="ann")
    return info.status, info.resumable


async def test_a_run_that_was_killed_before_it_was_recorded_is_none_to_resume(tmp_path):
    store = SQLiteJournal(tmp_path / "j.db")
    journal = MortalJournal(store, 2)  # the first write is that of the list
    with pytest.raises((Killed, BaseExceptionGroup)):  # noqa: PT012
        async with Sessions(Brain(llm=EchoLLM()), journal=journal) as sessions:
            async with sessions.use("one", user="ann") as session:
                await ask(session)
    async with Sessions(Brain(llm=EchoLLM()), journal=store) as again:
        assert await listed_as(again) == ("closed", False)
    await store.aclose()


async def test_a_stopped_run_continues_in_the_next_server(tmp_path):
    gate = Gate()

    async def look() -> str:
        """Look."""
        await gate.wait()
        return "green"

    class Calls(PartsLLM):
        async def stream(self, messages, **_):
            yield messages[-1].content if messages[-1].role == "tool" else Action(name="look")

    agent = Brain(llm=Calls(), tools=[look])
    async with Sessions(agent, journal=tmp_path / "j.db") as sessions:
        async with sessions.use("one", user="ann") as session, anyio.create_task_group() as tasks:
            run = await session.start("Which colour?")
            await gate.until_reached()
            tasks.start_soon(sessions.stop)
            await anyio.wait_all_tasks_blocked()
            gate.open()
            assert (await run.wait()).stop_reason == "stopped"
    async with Sessions(agent, journal=tmp_path / "j.db") as sessions:
        async with sessions.use("one", user="ann") as session:
            run = await session.start_resume()
            assert (await run.wait()).answer == "green"


async def test_a_chat_that_waits_is_listed_so_after_a_restart(tmp_path):
    asks = [Action(name="ask_user", args={"question": "Who?"})]
    agent = Brain(llm=ScriptedLLM([asks, "Hello."]), tools=[ask_user])
    async with Sessions(agent, journal=tmp_path / "j.db") as sessions:
        async with sessions.use("one", user="ann") as session:
            await ask(session)
    async with Sessions(agent, journal=tmp_path / "j.db") as sessions:
        assert await listed_as(sessions) == ("waiting", True)
        async with sessions.use("one", user="ann") as session:
            assert (await (await session.start_resume(input="Ann")).wait()).answer == "Hello."
    async with Sessions(agent, journal=tmp_path / "j.db") as sessions:
        assert await listed_as(sessions) == ("closed", False)


async def test_two_servers_over_one_file_do_not_mix_a_session(tmp_path):
    path = tmp_path / "j.db"
    async with (
        Sessions(Brain(llm=EchoLLM()), journal=path) as one,
        Sessions(Brain(llm=EchoLLM()), journal=path) as other,
        one.use("s", user="ann") as here,
        other.use("s", user="ann") as there,
    ):
        await ask(here, "Here")
        await ask(there, "There")  # it was opened before, and reads what is new
        await ask(here, "Here again")
        assert {info.id for info in await other.list(user="ann")} == {"s"}
        said = [m.content for m in await here.memory.dump() if m.content.startswith("You")]
    assert said == ["You said: Here", "You said: There", "You said: Here again"]


async def test_a_server_follows_a_run_that_another_one_has(tmp_path):
    gate = Gate()

    async def look() -> str:
        """Look."""
        await gate.wait()
        return "green"

    class Calls(PartsLLM):
        async def stream(self, messages, **_):
            yield messages[-1].content if messages[-1].role == "tool" else Action(name="look")

    agent, path = Brain(llm=Calls(), tools=[look]), tmp_path / "j.db"
    async with (
        Sessions(agent, journal=path) as one,
        Sessions(agent, journal=path) as other,
        Sessions(agent, journal=path) as third,
        other.use("s", user="ann") as there,
    ):
        with there.events() as reader:
            async with one.use("s", user="ann") as here:
                run = await here.start("Which colour?")
                await gate.until_reached()
                assert isinstance(await anext(reader), Gap)
                assert (there.status, there.elsewhere, there.run) == ("running", True, None)
                assert not there.resumable
                assert await listed_as(third) == ("running", False)
                await other.rename("s", "Colours", user="ann")  # what it knows is older
                assert await listed_as(third) == ("running", False)
                async with other.use("s", user="ann") as again:
                    assert again.status == "running"
                with pytest.raises(LeaseHeldError):
                    await there.start("Another question", when_busy="refuse")
                with pytest.raises(LeaseHeldError):
                    await other.delete("s", user="ann")
                assert (there.deleted, there.log.closed) == (False, False)
                gate.open()
                assert (await run.wait()).answer == "green"
            while there.elsewhere:
                assert isinstance(await anext(reader), Gap)
        assert there.status == "idle"
        assert (await there.memory.dump())[-1].content == "green"
        assert await ask(there, "And now?") == "green"


async def test_a_reader_is_told_what_another_server_did_whoever_noticed_it(tmp_path):
    path = tmp_path / "j.db"
    async with (
        Sessions(Brain(llm=EchoLLM()), journal=path) as one,
        Sessions(Brain(llm=EchoLLM()), journal=path) as other,
        one.use("s", user="ann") as here,
        other.use("s", user="ann") as there,
    ):
        with there.events() as reader, anyio.fail_after(60):
            for notice in (there.refresh, lambda: ask(there)):
                await ask(here)
                await notice()
                assert isinstance(await anext(reader), Gap)


async def test_deleting_removes_everything_from_the_file(tmp_path):
    path = tmp_path / "j.db"
    async with Sessions(Brain(llm=EchoLLM()), journal=path) as sessions:
        for name in ("one", "two"):
            async with sessions.use(name, user="ann") as session:
                await ask(session, f"The password of {name} is swordfish-{name}")
        await sessions.delete("one", user="ann")
        assert [info.id for info in await sessions.list(user="ann")] == ["two"]
    data = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"swordfish-one" not in data
    assert b"swordfish-two" in data


async def test_a_session_that_is_closed_can_be_deleted(tmp_path):
    path = tmp_path / "j.db"
    async with Sessions(Brain(llm=EchoLLM()), journal=path) as sessions:
        async with sessions.use("one", user="ann") as session:
            await ask(session)
    async with Sessions(Brain(llm=EchoLLM()), journal=path) as sessions:
        await sessions.delete("one", user="ann")
        assert await sessions.list(user="ann") == []
        assert sessions.open_sessions == 0


class Failing(MortalJournal):
    """Fails to delete a whole session, once."""

    async def delete(self, session: str, seqs: Any = None, *, scrub: bool = True) -> int:
        if seqs is None and self.error is Killed:
            self.error = OSError
            raise OSError("no disk")
        return await super().delete(session, seqs, scrub=scrub)


async def test_a_deletion_that_fails_can_be_repeated(tmp_path):
    async with SQLiteJournal(tmp_path / "j.db") as store:
        async with Sessions(Brain(llm=EchoLLM()), journal=Failing(store)) as sessions:
            async with sessions.use("one", user="ann") as session:
                await ask(session)
            with pytest.raises(OSError, match="no disk"):
                await sessions.delete("one", user="ann")
            await sessions.delete("one", user="ann")
            assert await sessions.list(user="ann") == []
            assert await store.sessions() == []


@pytest.fixture(params=["a journal", "no journal"])
async def listed(request, tmp_path):
    """Sessions of ann, asked about Oslo, Bergen and so on in this order."""
    journal = tmp_path / "j.db" if request.param == "a journal" else None
    async with Sessions(Brain(llm=EchoLLM()), journal=journal) as sessions:
        for name in ("Oslo", "Bergen", "Tromsø", "Stavanger", "New Bergen"):
            async with sessions.use(name.lower(), user="ann") as session:
                await ask(session, f"Where is {name}?")
        yield sessions


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 9])
async def test_sessions_are_listed_page_by_page(listed, limit):
    everything = await listed.list(user="ann")
    assert [info.id for info in everything] == [
        "new bergen", "stavanger", "tromsø", "bergen", "oslo",
    ]  # fmt: skip
    found, after = [], None
    while page := await listed.list(user="ann", limit=limit, after=after):
        assert len(page) <= limit
        found += page
        after = page[-1].cursor
    assert found == everything


async def test_a_page_continues_although_sessions_change_meanwhile(listed):
    first = await listed.list(user="ann", limit=2)
    async with listed.use("bergen", user="ann") as session:
        await ask(session, "Again")
    await listed.delete("stavanger", user="ann")
    rest = await listed.list(user="ann", limit=9, after=first[-1].cursor)
    assert [info.id for info in rest] == ["tromsø", "oslo"]


@pytest.mark.parametrize("stored", [True, False])
async def test_the_last_changed_session_is_the_first(tmp_path, stored):
    gate = Gate()

    class Slow(EchoLLM):
        async def stream(self, messages, **_):
            if messages[-1].content == "Slowly":
                await gate.wait()
            yield "Done."

    async with Sessions(Brain(llm=Slow()), journal=tmp_path / "j.db" if stored else None) as chats:
        async with chats.use("slow", user="ann") as slow, chats.use("quick", user="ann") as quick:
            run = await slow.start("Slowly")
            await gate.until_reached()
            await ask(quick)
            assert [info.id for info in await chats.list(user="ann")] == ["quick", "slow"]
            gate.open()
            await run.wait()
            assert [info.id for info in await chats.list(user="ann")] == ["slow", "quick"]
            await chats.rename("quick", "Fast", user="ann")
            found = await chats.list(user="ann")
            assert [info.title for info in found] == ["Fast", "Slowly"]
            assert found[0].updated_at > found[1].updated_at


async def test_a_session_is_named_before_its_first_run(listed):
    async with listed.use("new", user="ann") as session:
        await listed.rename("new", "Plans", user="ann")
        assert (await listed.list(user="ann"))[0].title == "Plans"
        await ask(session)
        assert (await listed.list(user="ann"))[0].title == "Plans"


@pytest.mark.parametrize(
    "search,found",
    [("", 5), ("BERGEN", 2), ("tromsØ", 1), ("where is", 5), ("is  ", 0), ("nowhere", 0)],
)
async def test_sessions_are_found_by_their_titles(listed, search, found):
    assert len(await listed.list(user="ann", search=search)) == found
    assert len(await listed.list(user="ann", search=search, limit=1)) == min(1, found)
    assert await listed.list(user="bob", search=search) == []


async def test_a_session_is_renamed_and_keeps_its_title(listed):
    info = await listed.rename("oslo", "  The\n capital ", user="ann")
    assert info.title == "The capital"
    async with listed.use("oslo", user="ann") as session:
        await ask(session, "And then?")
        assert session.info.title == "The capital"
    assert [info.title for info in await listed.list(user="ann", search="capital")] == [
        "The capital"
    ]
    with pytest.raises(BrainUseError, match="not empty"):
        await listed.rename("oslo", " \n", user="ann")
    for session, user in [("oslo", "bob"), ("nothing", "ann"), ("oslo", None)]:
        with pytest.raises(SessionNotFoundError):
            await listed.rename(session, "Mine", user=user)


@pytest.mark.parametrize("renamer", ["the same server", "another one"])
async def test_a_new_title_stays_although_a_run_begins_or_ends_at_the_time(renamer):
    class Meanwhile(MortalJournal):
        """Has the session renamed when a run has just read what the list says of it."""

        async def read(self, session: str, *args: Any, **options: Any) -> Any:
            entries = await super().read(session, *args, **options)
            if titles and entries and entries[0].kind == "session":
                tasks.start_soon(rename, titles.pop())
                await anyio.wait_all_tasks_blocked()
            return entries

    async def rename(title: str) -> None:
        sessions = one if renamer == "the same server" else other
        await sessions.rename("s", title, user="ann")

    titles: list[str] = []
    store = RamJournal()
    async with (
        Sessions(Brain(llm=EchoLLM()), journal=Meanwhile(store)) as one,
        Sessions(Brain(llm=EchoLLM()), journal=store) as other,
        one.use("s", user="ann") as session,
    ):
        await ask(session)
        for at_end in (False, True):
            title = f"At the end: {at_end}"
            async with anyio.create_task_group() as tasks:
                run = session.stream("Again")
                titles[:] = [] if at_end else [title]
                async with run:
                    titles[:] = [title] if at_end else []
                    async for _ in run:
                        pass
            assert session.info is not None
            assert session.info.title == title
            for sessions in (one, other):
                assert [info.title for info in await sessions.list(user="ann")] == [title]


@pytest.mark.parametrize("after", ["x", "1", "1.", ".a", "²2.a", "9" * 30 + ".a"])
async def test_a_cursor_that_is_none_is_refused(tmp_path, after):
    async with Sessions(Brain(llm=EchoLLM()), journal=tmp_path / "j.db") as sessions:
        with pytest.raises(BrainUseError, match="cursor"):
            await sessions.list(user="ann", after=after)


@pytest.mark.parametrize("stored", [True, False])
async def test_a_user_is_forgotten_in_all_sessions_open_or_not(tmp_path, stored):
    place = {"journal": tmp_path / "j.db"} if stored else {}
    async with Sessions(Brain(llm=EchoLLM()), **place) as sessions:
        for name in ("one", "two"):
            async with sessions.use(name, user="ann") as session:
                await ask(session, "I am zebra-4711")
                await ask(session, "And now?")
        async with sessions.use("one", user="bob") as session:
            await ask(session, "I am zebra-4711")
        if stored:
            await sessions._pool.evict(next(iter(sessions._pool._places)))
        assert await sessions.forget("Zebra-4711", user="ann") == 4
        for name in ("one", "two"):
            async with sessions.use(name, user="ann") as session:
                said = [*await session.memory.goal(), *await session.memory.dump()]
                assert [message.content for message in said] == ["And now?", "You said: And now?"]
                seen = [item.event for item in session.log.since(0)]
                assert "zebra" not in repr(seen)
        assert "zebra" not in repr(await sessions.list(user="ann"))
        async with sessions.use("one", user="bob") as session:
            said = [*await session.memory.goal(), *await session.memory.dump()]
            assert "zebra" in repr(said)
        assert await sessions.forget("zebra", user="bob") == 2
        with pytest.raises(BrainUseError, match="user="):
            await sessions.forget("zebra")
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"zebra" not in left


@pytest.mark.parametrize("written", ["Sa\u0303o Tome\u0301", "são  TOMÉ", "São\u00a0Tomé"])
async def test_a_title_loses_a_text_however_it_is_written(tmp_path, written):
    async with Sessions(Brain(llm=EchoLLM()), journal=tmp_path / "j.db") as sessions:
        async with sessions.use("one", user="ann") as session:
            await ask(session, "Hello")
        await sessions.rename("one", f"To {written}", user="ann")
        await sessions.forget("São Tomé", user="ann")
        (info,) = await sessions.list(user="ann")
        assert "[forgotten]" in info.title
        assert "tom" not in info.title.casefold()
