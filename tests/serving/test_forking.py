"""Copies of sessions as of a step, of every memory that keeps steps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, Memory, MessagesMemory, Net, State, tool
from agent_brain.demo import DemoLLM
from agent_brain.errors import BrainUseError, SessionNotFoundError
from agent_brain.memories import RamJournal, SQLiteJournal
from agent_brain.memories.journal.entry import Entry
from agent_brain.nets import MapState, react
from agent_brain.serving import Origin, Session, Sessions
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.memories.vector.support import WordsEmbedder
from tests.serving.models import EchoLLM

pytestmark = pytest.mark.anyio


@tool(requires_approval=True)
def pay(euros: int, note: dict[str, Any]) -> str:
    """Pay."""
    return f"paid {euros}: {note}"


async def ask(session: Session, task: str) -> str:
    async with session.stream(task) as run:
        async for _ in run:
            pass
    return run.result.answer


async def resume(session: Session) -> str:
    async with session.stream_resume() as run:
        async for _ in run:
            pass
    return run.result.answer


async def first_step(session: Session) -> Any:
    return (await session.memory.steps())[0]  # type: ignore[attr-defined]


async def said(session: Session) -> list[str]:
    memory = session.memory
    return [m.content for m in (await memory.snapshot()).messages]


@asynccontextmanager
async def asked(memory: Any, place: Any, **options: Any) -> AsyncIterator[Sessions]:
    """Yield sessions, in which one of Ann's was asked something."""
    async with Sessions(Brain(llm=EchoLLM()), memory, journal=place, **options) as sessions:
        async with sessions.use("one", user="ann") as session:
            await ask(session, "Hello")
        yield sessions


@pytest.mark.parametrize("memory", ["messages", "windowed", "summary", "todo", "layered"])
async def test_a_session_of_any_memory_is_copied_and_goes_on(tmp_path, memory):
    async with asked(memory, tmp_path / "j.db") as sessions:
        async with sessions.use("one", user="ann") as session:
            step = await first_step(session)
            goal = (await session.memory.goal())[0].id
            before = await said(session)
        copy = await sessions.fork("one", step.number, messages={goal: "Bye"}, user="ann")
        async with sessions.use(copy.id, user="ann") as session:
            assert await resume(session) == "You said: Bye"
        async with sessions.use("one", user="ann") as session:
            assert await said(session) == before
    assert (copy.title, copy.origin) == ("Bye", Origin("one", step.number))


async def test_a_session_of_a_memory_of_ones_own_is_copied(tmp_path):
    async with SQLiteJournal(tmp_path / "own.db") as journal:

        def make(key: Any) -> MessagesMemory:
            return MessagesMemory(journal=journal, session=f"chat {key.session}", tenant="us")

        async with asked(make, None) as sessions:
            async with sessions.use("one", user="ann") as session:
                step = await first_step(session)
            copy = await sessions.fork("one", step.number, user="ann")
            async with sessions.use(copy.id, user="ann") as session:
                assert await resume(session) == "You said: Hello"


async def test_a_session_without_a_journal_has_nothing_to_copy():
    async with asked("messages", None) as sessions:
        with pytest.raises(BrainUseError, match="keeps no steps"):
            await sessions.fork("one", 3, user="ann")


async def test_a_session_of_somebody_else_is_not_copied():
    async with asked("messages", RamJournal()) as sessions:
        with pytest.raises(SessionNotFoundError):
            await sessions.fork("one", 3, user="bob")
        with pytest.raises(SessionNotFoundError):
            await sessions.fork("one", 3)
        assert len(await sessions.list(user="ann")) == 1


async def test_the_copy_of_a_copy_names_the_copy(tmp_path):
    async with asked("messages", tmp_path / "j.db") as sessions:
        async with sessions.use("one", user="ann") as session:
            step = await first_step(session)
        copy = await sessions.fork("one", step.number, user="ann")
        again = await sessions.fork(copy.id, step.number, user="ann")
    assert again.origin == Origin(copy.id, step.number)


async def test_a_copy_that_cannot_be_written_is_not_listed(tmp_path):
    class Full(SQLiteJournal):
        async def load(self, session: str, entries: Sequence[Entry]) -> None:
            raise OSError("the disk is full")

    async with Full(tmp_path / "j.db") as journal, asked("messages", journal) as sessions:
        async with sessions.use("one", user="ann") as session:
            step = await first_step(session)
        with pytest.raises(OSError, match="full"):
            await sessions.fork("one", step.number, user="ann")
        assert [info.id for info in await sessions.list(user="ann")] == ["one"]


async def test_a_copy_goes_on_with_the_branches_that_the_step_had_begun(tmp_path):
    """A branch that had asked its model once does not ask again what was answered."""

    class Step(Enum):
        EACH = "each"

    answers = [["First."], RuntimeError("no model")]
    llm = ScriptedLLM([*answers, "Second.", "Second, once more."])
    each = MapState(lambda _: ["a", "b"], react(llm), max_concurrency=1)
    brain = Brain(Net({Step.EACH: each}))
    async with Sessions(brain, journal=tmp_path / "j.db") as sessions:
        async with sessions.use("one", user="ann") as session:
            with pytest.raises(RuntimeError):
                await ask(session, "Both")
            steps = await session.memory.steps()  # type: ignore[attr-defined]
        copy = await sessions.fork("one", steps[-1].number, user="ann")
        async with sessions.use(copy.id, user="ann") as session:
            answer = await resume(session)
    assert "First." in answer
    assert "Second." in answer
    assert len(llm.calls) == 3


async def test_a_vector_memory_of_a_copy_finds_what_was_said(tmp_path):
    pytest.importorskip("chromadb")
    options = {"path": tmp_path / "v", "embedder": WordsEmbedder()}
    brain = Brain(llm=DemoLLM())
    async with Sessions(brain, "vector", memory_options=options) as sessions:
        async with sessions.use("one", user="ann") as session:
            await ask(session, "My cat is called Murr")
            step = (await session.memory.steps())[-1]  # type: ignore[attr-defined]
        copy = await sessions.fork("one", step.number, user="ann")
        async with sessions.use(copy.id, user="ann") as session:
            found = await session.memory.recall("cat", 3)  # type: ignore[attr-defined]
    assert any("Murr" in each.message.content for each in found)


async def test_sessions_tell_whether_they_keep_steps(tmp_path: Path) -> None:
    async with Sessions(Brain(), journal=tmp_path / "j.db") as sessions:
        assert sessions.keeps_steps
    assert not Sessions(Brain()).keeps_steps


@asynccontextmanager
async def paid_otherwise() -> AsyncIterator[Session]:
    """Yield a copy in which another question was asked, and another sum is to be paid."""
    calls = [
        Action(name="pay", args={"euros": 5, "note": {}}, id="call_1"),
        Action(name="pay", args={"euros": 6, "note": {"id": "call_1", "args": {}}}, id="call_2"),
    ]
    brain = Brain(llm=ScriptedLLM([calls, "Done."]), tools=[pay], trace=True)
    async with Sessions(brain, journal=RamJournal()) as sessions:
        async with sessions.use("one", user="ann") as session:
            await ask(session, "Before")
            last = (await session.memory.steps())[-1].number  # type: ignore[attr-defined]
            goal = (await session.memory.goal())[0].id
        args = {"euros": 50, "note": {}}
        edits: Any = {"messages": {goal: "After"}, "calls": {"call_1": args}}
        copy = await sessions.fork("one", last, user="ann", **edits)
        async with sessions.use(copy.id, user="ann") as session:
            yield session


async def test_arguments_that_look_like_a_call_are_copied_as_they_are():
    async with paid_otherwise() as session:
        async with session.stream_resume(approve=True) as run:
            async for _ in run:
                pass
        results = [text for text in await said(session) if text.startswith("paid")]
    assert results == ["paid 50: {}", "paid 6: {'id': 'call_1', 'args': {}}"]


async def test_what_a_model_saw_before_the_copy_is_not_edited():
    async with paid_otherwise() as session:
        assert "After" in [m.content for m in await session.memory.goal()]
        (call,) = await session.memory.model_calls()  # type: ignore[attr-defined]
    assert [m.content for m in call.messages if m.role == "user"] == ["Before"]
    assert [action.args["euros"] for action in call.actions] == [5, 6]


class Step(Enum):
    NOTE = "note"
    ANSWER = "answer"


class Note(State):
    """Notes something by the ID of the goal, and answers by what it has noted."""

    def __init__(self, on_done: Enum | None) -> None:
        self.on_done = on_done

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        (goal,) = await memory.goal()
        known = memory.control.scratch.setdefault("known", {})
        yield "known" if goal.id in known else "unknown"
        known[goal.id] = goal.content

    async def next_state(self, memory: Memory) -> Enum | None:
        return self.on_done


async def test_what_a_state_has_noted_by_the_id_of_a_message_is_found_after_an_edit():
    brain = Brain(Net({Step.NOTE: Note(Step.ANSWER), Step.ANSWER: Note(None)}))
    async with Sessions(brain, journal=RamJournal()) as sessions:
        async with sessions.use("one", user="ann") as session:
            answer = await ask(session, "Before")
            steps = await session.memory.steps()  # type: ignore[attr-defined]
            goal = (await session.memory.goal())[0].id
        edits = {goal: "After"}
        copy = await sessions.fork("one", steps[1].number, user="ann", messages=edits)
        async with sessions.use(copy.id, user="ann") as session:
            again = await resume(session)

    assert (answer, again) == ("known", "known")
