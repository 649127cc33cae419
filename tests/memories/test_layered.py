"""Two memories as one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from agent_brain.memories import (
    LayeredMemory,
    MemoryDefinitionError,
    MemoryUseError,
    Message,
    MessagesMemory,
    RamJournal,
    ReadOnlyMemoryError,
    SQLiteJournal,
    VectorMemory,
    WindowedMemory,
    create_memory,
)
from agent_brain.memories.layered import make_layered
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio


@dataclass
class Found:
    message: Message


class Recalling(MessagesMemory):
    """Recalls what contains the question."""

    asked: list[tuple[str, int]] = []

    async def recall(self, query: str, k: int) -> list[Found]:
        self.asked.append((query, k))
        return [Found(message) for message in reversed(await self.messages(text=query))][:k]


class SlowJournal(RamJournal):
    """Lets others work before it writes."""

    async def append(self, *args: Any, **options: Any) -> int:
        await anyio.sleep(0)
        return await super().append(*args, **options)


async def test_what_leaves_the_window_is_recalled_for_the_goal() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=3), Recalling(), k=2)
    await memory.update([Message.system("rules", pinned=True)])
    await memory.update([Message.user(text) for text in ("cat 1", "dog", "cat 2", "x", "y")])
    await memory.set_goal("cat")
    await memory.update([Message.assistant("z")])
    rules, recalled, *recent = [message.content for message in await memory.context()]
    assert (rules, recent) == ("rules", ["cat", "z"])
    assert [line[-5:] for line in recalled.splitlines()[1:]] == ["cat 1", "cat 2"]
    assert Recalling.asked[-1] == ("cat", 2)


@pytest.mark.parametrize("least", [{}, {"min_score": 0.9}])
@pytest.mark.parametrize("own", [{}, {"min_score": 0.9}])
async def test_messages_below_the_least_score_are_not_recalled(own, least) -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=1), VectorMemory(**own), **least)
    await memory.update([Message.user(text) for text in ("My cat is called Tom", "rain", "sun")])
    await memory.set_goal("Has anyone called about the rent?")
    shown = str(await memory.context())
    assert ("Tom" in shown) == (not own and not least)
    assert await memory.recall("Has anyone called about the rent?")
    assert await memory.recall("Has anyone called about the rent?", min_score=0.9) == []
    fork = await memory.fork()
    assert fork.min_score == memory.min_score


async def test_a_score_that_is_none_is_refused() -> None:
    with pytest.raises(MemoryUseError, match="from 0 to 1"):
        plain(min_score=2)


async def test_what_is_in_the_window_is_not_recalled_besides() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=3), Recalling())
    await memory.set_goal("cat")
    message = Message.user("cat 1")
    await memory.update([message])
    await memory.long.update([message])
    assert [m.content for m in await memory.context()] == ["cat", "cat 1"]


async def test_layers_over_the_memory_that_recalls() -> None:
    memory = create_memory("layered", max_messages=3)
    await memory.update([Message.user(t) for t in ("my cat is Tom", "rain", "sun", "wind", "ice")])
    await memory.set_goal("what is the name of my cat?")
    assert "Tom" in (await memory.context())[0].content
    assert await memory.forget(text="Tom") == 1  # type: ignore[attr-defined]
    assert "Tom" not in str(await memory.context())
    await memory.aclose()


async def test_forgetting_reaches_both() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=2), MessagesMemory())
    await memory.update([Message.user(f"secret {n}") for n in range(5)])
    assert await memory.forget(text="secret") == 5
    assert await memory.messages() == []
    assert await memory.long.count() == 0


async def test_a_message_of_the_long_term_memory_is_not_taken_again() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=2), MessagesMemory())
    messages = [Message.user(f"{n}") for n in range(5)]
    await memory.update(messages)
    await memory.update(messages)
    assert await memory.count() == 5


async def test_a_snapshot_has_both() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=2), MessagesMemory())
    await memory.update([Message.user(f"{n}") for n in range(5)])
    other = LayeredMemory(WindowedMemory(max_messages=2), MessagesMemory())
    await other.restore(await memory.snapshot())
    assert await other.messages() == await memory.messages()
    assert await other.short.count() == 2
    fork = await memory.fork()
    await fork.update([Message.user("only here")])
    assert await memory.count() == 5
    assert await memory.long.count() == 3


async def test_what_a_crash_kept_from_arriving_arrives_at_the_next_opening(tmp_path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        lost = WindowedMemory(max_messages=2, journal=journal)  # nothing receives what leaves it
        await lost.update([Message.user(f"{n}") for n in range(6)])
        memory = LayeredMemory(
            WindowedMemory(max_messages=2, journal=journal),
            MessagesMemory(journal=journal, session="long"),
        )
        assert [m.content for m in await memory.messages()] == list("012345")
        await memory.open()
        assert await memory.long.count() == 4


async def test_a_reader_leaves_what_did_not_arrive_where_it_is(tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with WindowedMemory(max_messages=2, journal=path) as lost:
        await lost.update([Message.user(f"{n}") for n in range(6)])
    before = path.read_bytes()
    reader = LayeredMemory(
        WindowedMemory(max_messages=2, journal=path, readonly=True),
        MessagesMemory(journal=path, session="long", readonly=True),
    )
    async with reader:
        assert [m.content for m in await reader.messages()] == ["4", "5"]
    assert path.read_bytes() == before


async def test_a_cursor_of_another_memory_shows_everything() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=2), MessagesMemory())
    await memory.update([Message.user(f"{n}") for n in range(5)])
    assert [m.content for m in (await memory.find_news(99))[0]] == list("01234")


async def test_a_name_and_options_are_enough() -> None:
    journal = RamJournal()
    memory = create_memory("layered", long="messages", max_messages=2, journal=journal, session="s")
    await memory.update([Message.user(f"{n}") for n in range(5)])
    later = create_memory("layered", long="messages", max_messages=2, journal=journal, session="s")
    assert [m.content for m in await later.context()] == list("01234")
    assert len(await journal.sessions()) == 2


async def test_memories_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(MemoryDefinitionError):
        LayeredMemory(MessagesMemory(), MessagesMemory())  # type: ignore[arg-type]
    with pytest.raises(MemoryDefinitionError):
        LayeredMemory(WindowedMemory(on_evict=print), MessagesMemory())


def plain(size: int = 2, min_score: float | None = None, **place) -> LayeredMemory:
    elsewhere = {**place, "session": "long"} if place else {}
    short = WindowedMemory(max_messages=size, **place)
    return LayeredMemory(short, MessagesMemory(**elsewhere), min_score=min_score)


async def test_the_model_sees_the_question_before_the_calls() -> None:
    memory = plain()
    await memory.set_goal("question")
    for number in range(4):
        call = Action(name="look", args={})
        await memory.update([Message.assistant(f"{number}", [call]), Message.tool("r", call)])
    wanted = ["question", "0", "r", "1", "r", "2", "r", "3", "r"]
    for shown in (await memory.context(), await memory.messages(), await memory.turn()):
        assert [m.content for m in shown] == wanted
    assert [m.content for m in await memory.dump()] == wanted[1:]


async def test_pinned_messages_keep_their_place() -> None:
    memory = plain()
    await memory.update([Message.user("a"), Message.user("b", pinned=True), Message.user("c")])
    await memory.update([Message.user(text) for text in "def"])
    assert [m.content for m in await memory.context()] == list("abcdef")


@pytest.mark.parametrize("long", [VectorMemory, Recalling])
async def test_what_is_pinned_after_it_has_left_the_window_is_shown(long) -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=2), long())
    call = Action(name="look", args={}, id="call")
    looked = [Message.assistant("", tool_calls=[call]), Message.tool("peanuts", call)]
    await memory.update([Message.user("Look.", id="asked"), *looked])
    for number in range(9):
        await memory.update([Message.assistant(f"{number}")])
    await memory.pin(["asked", looked[1].id])
    await memory.set_goal("Peanuts?")
    pinned = ["asked", *(message.id for message in looked)]
    shown = await memory.context()
    assert [message.id for message in shown if message.id in pinned] == pinned
    assert shown[-1].content == "Peanuts?"
    await memory.unpin(pinned)
    assert {message.id for message in await memory.context()}.isdisjoint(pinned)


async def test_what_is_pinned_stands_behind_an_older_goal_that_stays_in_the_window() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=2), VectorMemory(recent=2))
    await memory.set_goal("goal")
    await memory.update([Message.assistant(f"{n}", id=f"{n}") for n in range(9)])
    await memory.pin("2")
    wanted = ["goal", "2", "8"]
    assert [message.content for message in await memory.context() if message.pinned] == ["2"]
    for _ in range(2):
        shown = await memory.context()
        assert [m.content for m in shown if not m.metadata.get("recalled")] == wanted
        await memory.load(await memory.export())


async def test_a_pinned_call_without_its_result_is_not_shown() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=2), VectorMemory())
    call = Action(name="look", args={}, id="call")
    await memory.update([Message.assistant("", tool_calls=[call], id="asked")])
    await memory.update([Message.assistant("never mind"), Message.user("fine")])
    await memory.pin("asked")
    assert [message.content for message in await memory.context()] == ["never mind", "fine"]


@pytest.mark.parametrize("stored", [False, True], ids=["ram", "journal"])
async def test_tags_that_came_after_a_message_had_left_the_window_count(stored: bool) -> None:
    journal = RamJournal() if stored else None
    memory = make_layered(long="messages", journal=journal, max_messages=1)
    await memory.set_goal("goal")
    await memory.update([Message.assistant(text, id=text) for text in "ab"])
    await memory.tag("a", "secret")
    tagged = {message.id: message.tags for message in await memory.turn()}
    assert tagged["a"] == {"secret"}
    assert await memory.forget(tags="secret") == 1
    assert [message.content for message in await memory.messages()] == ["goal", "b"]


async def test_what_is_pinned_is_not_quoted_besides() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=2), VectorMemory())
    await memory.update([Message.user("I love peanuts.", id="peanuts")])
    await memory.update([Message.assistant(f"{number}") for number in range(9)])
    await memory.pin("peanuts")
    await memory.set_goal("peanuts?")
    shown = [message.content for message in await memory.context()]
    assert [text for text in shown if "I love peanuts." in text] == ["I love peanuts."]


async def test_an_export_has_all_of_it_and_loads_anywhere() -> None:
    memory = plain()
    await memory.set_goal("goal")
    await memory.update([Message.user(f"{n}") for n in range(9)])
    exported = await memory.export()
    other, messages = plain(), MessagesMemory()
    await other.update([Message.user("Ann")])
    assert await other.load(exported) == await messages.load(exported) == 10
    assert await other.messages() == await messages.messages() == await memory.messages()
    assert await other.goal() == await memory.goal()
    assert await other.short.count() == await memory.short.count()


@pytest.mark.parametrize("stored", [False, True], ids=["ram", "journal"])
async def test_an_export_that_is_loaded_over_a_shared_memory_is_the_same_conversation(
    stored: bool,
) -> None:
    journal = RamJournal()
    place: dict[str, Any] = {"journal": journal, "session": "monday"} if stored else {}

    def conversation() -> LayeredMemory:
        user = VectorMemory(journal=journal, session="user", shared=True)
        return LayeredMemory(WindowedMemory(max_messages=3, **place), user)

    memory = conversation()
    await memory.set_goal("goal")
    await memory.update([Message.assistant(f"{n}", pinned=n == 2) for n in range(9)])
    exported, shown = await memory.export(), await memory.context()
    for target in (memory, conversation()):
        assert await target.load(exported) == 10
        assert await target.export() == exported
        assert await target.context() == shown


async def test_what_leaves_the_window_while_it_is_copied_is_handed_over() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=3, journal=SlowJournal()), MessagesMemory())

    async def copy() -> None:
        for _ in range(10):
            await memory.fork()
            await anyio.sleep(0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(copy)
        for number in range(9):
            await memory.update([Message.user(f"{number}")])
    assert [message.content for message in await memory.messages()] == [*"012345678"]


async def test_a_load_that_is_cancelled_changes_both_or_none() -> None:
    memory = plain()
    await memory.update([Message.user(f"{n}") for n in range(9)])
    with anyio.CancelScope() as scope:
        scope.cancel()
        await memory.load([Message.user("new", id=f"{n}") for n in range(600)])
    assert await memory.count() in (9, 600)


async def test_a_load_that_the_window_refuses_leaves_the_long_term_memory() -> None:
    journal = RamJournal()
    await WindowedMemory(journal=journal).update([Message.user("one")])
    long = MessagesMemory()
    await long.update([Message.user("before")])
    memory = LayeredMemory(WindowedMemory(journal=journal, readonly=True), long)
    with pytest.raises(ReadOnlyMemoryError):
        await memory.load([Message.user("new")])
    assert [message.content for message in await memory.messages()] == ["before", "one"]


async def test_the_query_face_reaches_both() -> None:
    memory = plain()
    said = [Message.user(f"{n}") for n in range(6)]
    await memory.update(said[:4])
    news, cursor = await memory.find_news()
    assert news == said[:4]
    await memory.update(said[4:])
    assert (await memory.find_news(cursor))[0] == said[4:]
    assert await memory.tag([said[0].id, said[5].id], "x") == 2
    assert [m.content for m in await memory.messages(tags="x")] == ["0", "5"]
    assert await memory.untag([said[0].id, said[5].id], "x") == 2
    assert await memory.messages(tags="x") == []
    assert await memory.pin([said[0].id, said[5].id, "unknown"]) == 2
    assert await memory.clear(keep="pinned") == 4
    assert [m.content for m in await memory.messages()] == ["0", "5"]
    assert await memory.unpin(said[0].id) == 1
    with pytest.raises(MemoryUseError, match="cannot recall"):
        await memory.recall("anything")


@pytest.mark.parametrize("which", ["delete", "forget"])
async def test_what_is_gone_stays_gone_when_it_is_opened_again(which, tmp_path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        memory = plain(journal=journal)
        said = [Message.user(f"{n}") for n in range(6)]
        await memory.update(said)
        assert await getattr(memory, which)(said[0].id) == 1
        for _ in range(2):
            memory = plain(journal=journal)
            assert [m.content for m in await memory.messages()] == list("12345")


async def test_a_rollback_reaches_both(tmp_path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        memory = plain(journal=journal)
        await memory.begin(Message.user("goal"), "run", "START")
        await memory.update([Message.assistant(f"{n}") for n in range(4)])
        memory.control.step = 1
        await memory.checkpoint()
        await memory.update([Message.assistant(f"half {n}") for n in range(5)])
        later = plain(journal=journal)
        await later.rollback()
        assert [m.content for m in await later.messages()] == ["goal", *"0123"]
        await later.update([Message.assistant("again")])
        assert [m.content for m in await later.turn()] == ["goal", *"0123", "again"]


async def test_a_crash_between_the_halves_neither_loses_nor_doubles(tmp_path) -> None:
    class Fails(MessagesMemory):
        async def update(self, messages: list[Message]) -> None:
            await super().update(messages)
            raise OSError("the program ended here")

    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        short = WindowedMemory(max_messages=2, journal=journal)
        memory = LayeredMemory(short, Fails(journal=journal, session="long"))
        with pytest.raises(OSError, match="ended here"):
            await memory.update([Message.user(f"{n}") for n in range(5)])
        assert [m.content for m in await memory.messages()] == list("01234")
        later = plain(journal=journal)
        assert [m.content for m in await later.context()] == list("01234")
        assert await later.count() == 5


async def test_the_long_term_memory_is_closed_if_the_other_cannot_be() -> None:
    class Fails(WindowedMemory):
        async def aclose(self) -> None:
            raise OSError("down")

    class Closes(MessagesMemory):
        closed = False

        async def aclose(self) -> None:
            self.closed = True

    long = Closes()
    with pytest.raises(OSError, match="down"):
        await LayeredMemory(Fails(), long).aclose()
    assert long.closed


async def test_what_is_being_handed_over_is_seen_meanwhile() -> None:
    seen: list[list[str]] = []

    class Slow(MessagesMemory):
        async def update(self, messages: list[Message]) -> None:
            seen.append([m.content for m in await memory.messages()])
            seen.append([m.content for m in await memory.context()])
            assert await memory.get(messages[0].id) is not None
            await super().update(messages)

    memory = LayeredMemory(WindowedMemory(max_messages=2), Slow())
    await memory.update([Message.user(text) for text in "abc"])
    assert seen[0] == list("abc")
    assert await memory.count() == 3


async def test_what_is_being_handed_over_stands_behind_an_older_goal() -> None:
    seen: list[list[str]] = []

    class Looking(MessagesMemory):
        async def update(self, messages: list[Message]) -> None:
            seen.append([message.content for message in await memory.messages()])
            await super().update(messages)

    memory = LayeredMemory(WindowedMemory(max_messages=2), Looking())
    await memory.set_goal("goal")
    await memory.update([Message.assistant(text) for text in "abc"])
    assert seen == [["goal", *"abc"]]


async def test_a_time_to_live_is_for_both() -> None:
    now = datetime(2024, 5, 1, tzinfo=UTC)
    memory = create_memory("layered", long="messages", max_messages=2, ttl=60, clock=lambda: now)
    await memory.update([Message.user(f"{n}", created_at=now) for n in range(5)])
    now += timedelta(seconds=61)
    assert await memory.context() == []


async def test_both_memories_are_changed() -> None:
    memory = plain()
    assert memory.wrapped == (memory.short, memory.long)


Kind = type[MessagesMemory] | type[VectorMemory]


def conversation(name: str, journal: RamJournal, kind: Kind = VectorMemory) -> LayeredMemory:
    user = kind(journal=journal, session="user:ann", tenant="ann", shared=True)
    place: dict[str, Any] = {"journal": journal, "session": name, "tenant": "ann"}
    return LayeredMemory(WindowedMemory(max_messages=4, **place), user)


async def talk(journal: RamJournal, kind: Kind = VectorMemory) -> None:
    """Say and look up something in another conversation."""
    async with conversation("monday", journal, kind) as memory:
        await memory.set_goal("Which hotel in Porto has a pool?")
        call = Action(name="web", args={}, id="c1")
        asked = Message.assistant("", tool_calls=[call])
        page = Message.tool("This hotel with a pool is in Porto", call)
        await memory.update([Message.system("rules"), asked, page, Message.assistant("A hotel")])


async def test_recall_finds_no_results_of_tools_in_other_conversations() -> None:
    journal = RamJournal()
    await talk(journal)
    async with conversation("tuesday", journal) as memory:
        await memory.update([Message.user(f"hotel {number}") for number in range(6)])
        found = await memory.recall("Which hotel in Porto has a pool?", k=20)
        assert {(item.message.role.value, item.session) for item in found} == {
            ("user", "monday"),
            ("assistant", "monday"),
            ("user", "tuesday"),
        }
        with_tools = await memory.recall("hotel in Porto", tool_results=True)
        assert "tool" in {item.message.role for item in with_tools}
        chosen = await memory.recall("hotel", where=lambda message: message.role == "assistant")
        assert [item.message.content for item in chosen] == ["A hotel"]


@pytest.mark.parametrize("kind", [VectorMemory, MessagesMemory])
async def test_a_copy_quotes_other_conversations_as_such(kind: Kind) -> None:
    journal = RamJournal()
    await talk(journal, kind)
    async with conversation("tuesday", journal, kind) as memory:
        await memory.update([Message.user(f"my hotel {number}") for number in range(6)])
        await memory.set_goal("Which hotel in Porto has a pool?")
        copied = await memory.fork()
        for each in (memory, copied, await copied.fork()):
            block, *rest = [message.content for message in await each.context()]
            assert "conversation 'monday'] assistant: A hotel" in block
            assert "This hotel" not in block
            assert "rules" not in block
            assert "assistant: \n" not in block
            assert not any("A hotel" in text or "This hotel" in text for text in rest)
        shown = "\n".join(message.content for message in await memory.context())
        assert shown.count("my hotel 0") == 1


async def test_a_copy_of_a_conversation_without_a_name_knows_its_own_messages() -> None:
    user = VectorMemory(journal=RamJournal(), session="user:ann", shared=True)
    memory = LayeredMemory(WindowedMemory(max_messages=2), user)
    await memory.update([Message.user("My cat is Tom"), *map(Message.user, "abc")])
    await memory.set_goal("What is my cat called?")
    copied = await (await memory.fork()).fork()
    for each in (memory, copied):
        block = (await each.context())[0].content
        assert "My cat is Tom" in block
        assert "another one" not in block


async def test_a_pinned_message_of_long_ago_leaves_the_recent_ones_in_order() -> None:
    journal = RamJournal()

    def opened() -> LayeredMemory:
        long = VectorMemory(recent=1, journal=journal, session="user", shared=True)
        short = WindowedMemory(max_messages=4, journal=journal, session="chat")
        return LayeredMemory(short, long, keeps="user")

    memory = opened()
    await memory.update([Message.user("old", id="old")])
    for text in ("a", "b", "c", "d", "e"):
        role = Message.assistant if text in "abc" else Message.user
        await memory.update([role(text, id=text)])
    await memory.pin("old")
    await memory.aclose()
    memory = opened()
    assert [message.id for message in await memory.context()] == ["old", "b", "c", "d", "e"]
