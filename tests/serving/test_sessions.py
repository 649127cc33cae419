"""Sessions of a server: whose they are, how many there are, when they end."""

# ruff: noqa: SIM117 - a server around its clients reads well when nested

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Message, MessagesMemory, UsageLedger
from agent_brain.errors import (
    BrainDefinitionError,
    BrainUseError,
    JournalError,
    SessionNotFoundError,
    SessionsClosedError,
    TooManySessionsError,
)
from agent_brain.serving import Session, SessionKey, Sessions
from agent_brain.serving.sessions import owner_of
from agent_brain.states import Usage
from agent_brain.testing import ScriptedLLM
from tests.serving.models import EchoLLM, Gate
from tests.support.clock import clock_backend, fake_clock

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return clock_backend(request.param)


def brain(*parts: Any) -> Brain:
    return Brain(llm=EchoLLM(*parts))


async def ask(session: Session, task: str = "Hello") -> str:
    async with session.stream(task) as run:
        async for _ in run:
            pass
    return run.result.answer


class Memories:
    """Makes memories, and knows which were opened and closed."""

    def __init__(self) -> None:
        self.made: list[MessagesMemory] = []
        self.closed: list[MessagesMemory] = []
        self.keys: list[SessionKey] = []
        self.error: BaseException | None = None
        self.gate: Gate | None = None

    def __call__(self, key: SessionKey) -> MessagesMemory:
        memories = self

        class Watched(MessagesMemory):
            async def open(self) -> None:
                if memories.gate is not None:
                    await memories.gate.wait()
                if memories.error is not None:
                    raise memories.error
                await super().open()

            async def aclose(self) -> None:
                memories.closed.append(self)
                await super().aclose()

        self.keys.append(key)
        self.made.append(Watched())
        return self.made[-1]


# Whose


async def test_a_session_is_that_of_its_user():
    async with Sessions(brain()) as sessions:
        async with sessions.use("first", user="ann") as session:
            await ask(session, "Ann's secret")
        async with sessions.use("first", user="bob") as session:
            assert await session.memory.dump() == []
        assert [info.id for info in await sessions.list(user="ann")] == ["first"]
        assert await sessions.list(user="bob") == []


@pytest.mark.parametrize("journal", [False, True])
async def test_others_cannot_delete_a_session_and_hear_what_they_hear_of_one_that_never_was(
    tmp_path, journal
):
    async with Sessions(brain(), journal=tmp_path / "j.db" if journal else None) as sessions:
        async with sessions.use("first", user="ann") as session:
            await ask(session)
        errors = []
        for user, name in [("bob", "first"), ("bob", "other"), (None, "first")]:
            with pytest.raises(SessionNotFoundError) as caught:
                await sessions.delete(name, user=user)
            errors.append(str(caught.value).replace(name, "…"))
        assert len(set(errors)) == 1
        assert [info.id for info in await sessions.list(user="ann")] == ["first"]


NAMES = [
    "ann",
    "an",
    "ann2",
    "a%",
    "a_n",
    "Ann",
    '["t","ann"]',
    '["t", "ann"]',
    "[",
    'ann", "x',
    "*",
    "ann\\",
]


@pytest.mark.parametrize("journal", [False, True])
async def test_users_with_similar_names_do_not_share_sessions(tmp_path, journal):
    async with Sessions(brain(), journal=tmp_path / "j.db" if journal else None) as sessions:
        for name in NAMES:
            async with sessions.use("s", user=name) as session:
                assert await session.memory.dump() == []
                await ask(session, name)
        async with sessions.use("s", user="ann", tenant="t") as session:
            assert await session.memory.dump() == []
            await ask(session, "of tenant t")
        for name in NAMES:
            assert [info.title for info in await sessions.list(user=name)] == [name]
        assert [i.title for i in await sessions.list(user="ann", tenant="t")] == ["of tenant t"]


def test_no_two_callers_have_the_same_owner():
    people = [None, "", "a", "[", '["t", "a"]', '[null, "a"]', '["t", null]', "null"]
    pairs = [(user, tenant) for user in people for tenant in people]
    owners = {owner_of(user, tenant) for user, tenant in pairs}
    assert len(owners) == len(pairs)


async def test_ids_that_the_server_makes_are_long_and_never_the_same():
    async with Sessions(brain()) as sessions:
        ids = set()
        for _ in range(50):
            async with sessions.use(None) as session:
                ids.add(session.id)
        assert len(ids) == 50
        assert min(map(len, ids)) >= 22


async def test_callers_without_a_name_use_only_ids_that_the_server_made():
    async with Sessions(brain()) as sessions:
        with pytest.raises(SessionNotFoundError):
            async with sessions.use("guess"):
                pass
        async with sessions.use(None) as session:
            name = session.id
            await ask(session)
        async with sessions.use(name) as again:
            assert again is session
        assert await sessions.list() == []
        assert sessions.open_sessions == 1


@pytest.mark.parametrize(
    "name", ["", "x" * 129, "a\nb", "a\x00", "\ud800", "\x7f", "\u200b", "\u2028", "\u202e"]
)
async def test_an_id_that_is_no_printable_text_is_refused(name):
    async with Sessions(brain()) as sessions:
        with pytest.raises(BrainUseError, match="1 to 128 printable characters"):
            async with sessions.use(name, user="ann"):
                pass
        assert sessions.open_sessions == 0


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "../../etc/passwd",
        "/",
        "a/b",
        'a"]',
        "%2e",
        "x" * 128,
        "日本",
        "'; DROP TABLE--",
        "*",
        ".",
    ],
)
async def test_any_printable_id_is_a_session_of_its_own(tmp_path, name):
    async with Sessions(brain(), journal=tmp_path / "j.db") as sessions:
        async with sessions.use(name, user="ann") as session:
            await ask(session)
        assert [info.id for info in await sessions.list(user="ann")] == [name]
        await sessions.delete(name, user="ann")
        assert await sessions.list(user="ann") == []
    assert {path.name for path in tmp_path.iterdir()} <= {"j.db", "j.db-wal", "j.db-shm"}


# How many


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_the_least_recently_used_sessions_are_closed(most):
    memories = Memories()
    async with Sessions(brain(), memories, max_sessions=most) as sessions:
        for name in "abcd":
            async with sessions.use(name, user=name):
                pass
        assert sessions.open_sessions == most
        assert memories.closed == memories.made[: 4 - most]
    assert set(memories.closed) == set(memories.made)


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_there_is_no_session_when_all_are_in_use(most):
    async with Sessions(brain(), max_sessions=most) as sessions, AsyncExitStack() as stack:
        for n in range(most):
            await stack.enter_async_context(sessions.use(str(n), user=f"user {n}"))
        with pytest.raises(TooManySessionsError, match="Too many"):
            async with sessions.use("more", user="ann"):
                pass
        async with sessions.use("0", user="user 0"):  # one that is open can be used
            pass


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_one_user_uses_only_so_many_at_once_and_others_are_not_affected(most):
    async with Sessions(brain(), max_per_user=most) as sessions, AsyncExitStack() as stack:
        for n in range(most):
            await stack.enter_async_context(sessions.use(str(n), user="ann"))
        with pytest.raises(TooManySessionsError, match=f"You use {most} sessions"):
            async with sessions.use("more", user="ann"):
                pass
        async with sessions.use("his", user="bob"):
            pass


async def test_open_sessions_that_are_not_in_use_do_not_raise_the_limit_of_a_user():
    async with Sessions(brain(), max_per_user=2) as sessions, AsyncExitStack() as stack:
        for n in range(3):
            async with sessions.use(str(n), user="ann"):
                pass
        await stack.enter_async_context(sessions.use("0", user="ann"))
        await stack.enter_async_context(sessions.use("1", user="ann"))
        with pytest.raises(TooManySessionsError):
            async with sessions.use("2", user="ann"):
                pass


async def test_a_user_with_thousands_of_sessions_closes_none_of_another_user():
    async with Sessions(brain(), max_sessions=20, max_per_user=5) as sessions:
        async with sessions.use("his", user="bob") as his:
            await ask(his, "Remember me")
        for n in range(2000):
            async with sessions.use(str(n), user="ann"):
                pass
        assert sessions.open_sessions == 6
        async with sessions.use("his", user="bob") as again:
            assert again is his


@pytest.mark.parametrize(
    "options,problem",
    [
        ({"max_sessions": 0}, "max_sessions must be greater than 0"),
        ({"max_per_user": -1}, "max_per_user must be"),
        ({"idle": 0}, "idle must be"),
        ({"grace": float("nan")}, "grace must be"),
        ({"when_busy": "shout"}, "choose one of wait, refuse, queue"),
        ({"memory_options": {"journal": "x"}}, "give journal= to Sessions"),
        ({"memory": Memories(), "memory_options": {"window": 3}}, "a memory by name"),
    ],
)
def test_wrong_options_are_refused_at_once(options, problem):
    with pytest.raises(BrainDefinitionError, match=problem):
        Sessions(brain(), **options)


# When they end


async def test_unused_sessions_are_closed_after_their_time():
    memories = Memories()
    with fake_clock():
        async with Sessions(brain(), memories, idle=100) as sessions:
            async with sessions.use("used", user="ann"):
                async with sessions.use("left", user="ann"):
                    pass
                await anyio.sleep(130)
                assert [memories.keys[memories.made.index(m)].session for m in memories.closed] == [
                    "left"
                ]
            assert sessions.open_sessions == 1
            await anyio.sleep(130)
            assert sessions.open_sessions == 0


async def test_idle_none_keeps_sessions_open():
    with fake_clock():
        async with Sessions(brain(), idle=None, grace=None) as sessions:
            async with sessions.use("kept", user="ann"):
                pass
            await anyio.sleep(10**6)
            assert sessions.open_sessions == 1


async def test_a_memory_that_cannot_be_closed_ends_no_other_session(caplog):
    memories = Memories()

    class Bad(MessagesMemory):
        async def aclose(self) -> None:
            raise OSError("no disk")

    def make(key: SessionKey) -> MessagesMemory:
        return Bad() if key.session == "bad" else memories(key)

    with fake_clock():
        async with Sessions(brain(), make, idle=10) as sessions:
            async with sessions.use("good", user="ann") as good:
                async with sessions.use("bad", user="ann"):
                    pass
                await anyio.sleep(100)
                assert await ask(good) == "You said: Hello"
    assert "could not be closed" in caplog.text


@pytest.mark.parametrize("journal", [False, True])
async def test_a_memory_that_cannot_be_opened_is_closed_and_the_next_attempt_is_new(
    tmp_path, journal
):
    memories = Memories()
    memories.error = OSError("no disk")
    async with Sessions(
        brain(), memories, journal=tmp_path / "j.db" if journal else None
    ) as sessions:
        for _ in range(2):
            with pytest.raises(OSError, match="no disk"):
                async with sessions.use("one", user="ann"):
                    pass
        assert sessions.open_sessions == 0
        assert memories.closed == memories.made
        memories.error = None
        async with sessions.use("one", user="ann") as session:
            assert await ask(session) == "You said: Hello"


async def test_an_opening_that_is_cancelled_closes_the_memory():
    memories = Memories()
    memories.gate = Gate()
    async with Sessions(brain(), memories) as sessions:
        async with anyio.create_task_group() as tasks:

            async def use() -> None:
                async with sessions.use("one", user="ann"):
                    pass

            tasks.start_soon(use)
            await memories.gate.until_reached()
            tasks.cancel_scope.cancel()
        assert memories.closed == memories.made
        assert sessions.open_sessions == 0


async def test_a_list_that_cannot_be_read_leaves_no_memory_open(tmp_path):
    memories = Memories()
    async with Sessions(brain(), memories, journal=tmp_path / "j.db") as sessions:
        assert sessions._journal is not None
        await sessions._journal.aclose()
        with pytest.raises(JournalError):
            async with sessions.use("one", user="ann"):
                pass
        assert memories.closed == memories.made


async def test_memories_of_functions_get_the_tools_of_the_brain():
    def shout(words: str) -> str:
        """Shout."""
        return words.upper()

    agent = Brain(llm=EchoLLM(), tools=[shout])
    async with Sessions(agent, lambda key: MessagesMemory()) as sessions:
        async with sessions.use("one", user="ann") as session:
            assert [*session.memory.available_tools] == ["shout"]


@pytest.mark.parametrize("how", ["before", "after"])
async def test_sessions_work_only_inside_their_block(how):
    sessions = Sessions(brain())
    if how == "after":
        async with sessions:
            pass
    for work in (sessions.use("one", user="ann"), sessions.use(None)):
        with pytest.raises(SessionsClosedError, match="async with Sessions"):
            async with work:
                pass
    if how == "after":
        with pytest.raises(BrainUseError, match="only once"):
            async with sessions:
                pass


@pytest.mark.parametrize("journal", [False, True])
async def test_everything_is_closed_when_the_block_is_cancelled(tmp_path, journal):
    memories = Memories()
    gate = Gate()
    agent = brain(gate)
    with anyio.CancelScope() as scope:
        async with (
            Sessions(agent, memories, journal=tmp_path / "j.db" if journal else None) as sessions,
            sessions.use("one", user="ann") as session,
        ):
            await session.start("Hello")
            await gate.until_reached()
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert gate.left == 1
    assert memories.closed == memories.made
    assert sessions.active_runs == 0


async def test_everything_is_closed_when_the_block_fails():
    memories = Memories()
    gate = Gate()
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        async with Sessions(brain(gate), memories) as sessions:
            async with sessions.use("one", user="ann") as session:
                await session.start("Hello")
                await gate.until_reached()
                raise ZeroDivisionError
    assert gate.left == 1
    assert memories.closed == memories.made


# Temporary sessions


async def test_a_temporary_session_begins_with_messages_and_leaves_nothing(tmp_path):
    async with Sessions(brain(), journal=tmp_path / "j.db") as sessions:
        before = [Message.user("One"), Message.assistant("Two")]
        async with sessions.temporary(before, user="ann") as session:
            assert await ask(session, "Three") == "You said: Three"
            said = [message.content for message in await session.memory.dump()]
            assert said[:2] == ["One", "Two"]
            with pytest.raises(BrainUseError, match="use stream"):
                await session.start("Four")
        assert await sessions.list(user="ann") == []
        assert sessions.open_sessions == 0
        assert sessions._journal is not None
        assert await sessions._journal.sessions() == []


async def test_a_temporary_session_is_refused_outside_the_block():
    with pytest.raises(SessionsClosedError):
        async with Sessions(brain()).temporary():
            pass


@pytest.mark.parametrize("journal", [False, True])
async def test_the_ledger_counts_for_each_user_and_session(tmp_path, journal):
    agent = Brain(llm=ScriptedLLM([["Hi", Usage(input_tokens=3, output_tokens=1)]] * 4))
    async with Sessions(agent, journal=tmp_path / "j.db" if journal else None) as sessions:
        async with sessions.temporary(user="ann") as session:
            await ask(session)
            assert session.usage.input_tokens == 3
        for name in ("one", "two"):
            async with sessions.use(name, user="ann") as session:
                await ask(session)
                assert session.usage.input_tokens == 3
        async with sessions.use("one", user="bob") as session:
            assert session.usage.input_tokens == 0
            await ask(session)
        assert sessions.ledger.usage(user="ann").input_tokens == 9
        assert sessions.ledger.usage(user="bob").input_tokens == 3


async def test_a_ledger_with_its_own_rule_says_itself_who_pays():
    ledger = UsageLedger(who=lambda request: "the firm")
    agent = Brain(llm=ScriptedLLM([["Hi", Usage(input_tokens=3, output_tokens=1)]]), hooks=[ledger])
    async with Sessions(agent) as sessions, sessions.use("one", user="ann") as session:
        await ask(session)
    assert sessions.ledger is ledger
    assert ledger.usage(user="the firm").input_tokens == 3
    assert ledger.usage(user="ann").input_tokens == 0
