"""Runs of sessions that are left, cancelled or deleted at their beginning or their end."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agent_brain import Brain, LayeredMemory, MessagesMemory, TodoMemory, VectorMemory
from agent_brain.errors import LLMError, SessionNotFoundError
from agent_brain.memories import Memory, Message, WindowedMemory
from agent_brain.serving import SessionKey, Sessions
from agent_brain.testing import ScriptedLLM
from tests.serving.models import Gate, PartsLLM

pytestmark = pytest.mark.anyio


def react(*script: Any) -> Brain[str]:
    return Brain("react", llm=ScriptedLLM(script))


async def test_a_message_to_a_run_that_is_left_unread_is_for_the_next_run():
    async with Sessions(react("Hello.")) as sessions, sessions.use("chat", user="ann") as session:
        async with session.stream("Hi") as run:
            run.send("It is me.")
        assert [message.content for message in session.unread] == ["It is me."]

        following = await session.start("Again")
        result = await following.wait()
        said = [message.content for message in result.messages]
        assert said == ["Again", "It is me.", "Hello."]


async def test_a_message_to_a_run_that_is_left_at_its_failure_is_for_the_next_run():
    brain = react(LLMError("gone"), "Hello.")
    async with Sessions(brain) as sessions, sessions.use("chat", user="ann") as session:
        async with session.stream("Hi") as run:
            async for item in run:
                if item.event.kind == "response_started":
                    run.send("It is me.")
                if item.event.kind == "run_failed":
                    break
        assert isinstance(run.error, LLMError)
        assert [message.content for message in session.unread] == ["It is me."]
        assert session.run is None


class SlowToRead(MessagesMemory):
    """Waits at a gate whenever its goal is read, once there is one."""

    gate: Gate | None = None

    async def goal(self) -> list[Message]:
        if self.gate is not None:
            await self.gate.wait()
        return await super().goal()


async def test_a_resume_that_is_cancelled_at_its_start_leaves_nothing_behind():
    memories: list[SlowToRead] = []

    def make(key: SessionKey) -> Memory:
        memories.append(SlowToRead(session=key.session, tenant=key.owner))
        return memories[-1]

    async with (
        Sessions(react("Hello."), make) as sessions,
        sessions.use("chat", user="ann") as session,
    ):
        async with session.stream("Hi") as run:
            await anext(run)
        gate = memories[0].gate = Gate()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.start_resume)
            await gate.until_reached()
            assert sessions.active_runs == 0
            tasks.cancel_scope.cancel()
        memories[0].gate = None
        assert sessions.active_runs == 0
        assert session.status == "idle"
    assert not sessions.active


async def test_the_sessions_can_be_closed_while_a_resume_begins():
    gate = Gate()

    def make(key: SessionKey) -> Memory:
        memory = SlowToRead(session=key.session, tenant=key.owner)
        memory.gate = gate
        return memory

    async with anyio.create_task_group() as tasks:
        async with (
            Sessions(Brain(llm=PartsLLM("Hello.")), make) as sessions,
            sessions.use("chat", user="ann") as session,
        ):
            tasks.start_soon(_resume_in_vain, session)
            await gate.until_reached()
        tasks.cancel_scope.cancel()


async def _resume_in_vain(session: Any) -> None:
    async with session.stream_resume():
        pass


def layered(key: SessionKey, **options: Any) -> Memory:
    short = WindowedMemory(session=key.session, tenant=key.owner, **options)
    long = VectorMemory(session=f"{key.session}/long", tenant=key.owner, **options)
    return LayeredMemory(short, long)


@pytest.mark.parametrize("shape", ["by name", "own", "with a list"])
async def test_a_deleted_session_with_a_long_term_memory_leaves_nothing(tmp_path, shape):
    def make(key: SessionKey) -> Memory:
        memory = layered(key, journal=tmp_path / "own.db")
        return TodoMemory(memory) if shape == "with a list" else memory

    memory = "layered" if shape == "by name" else make
    brain = react("I see.", "Hello.")
    async with (
        Sessions(brain, memory, journal=tmp_path / "chats.db") as sessions,
        sessions.use("chat", user="ann") as session,
    ):
        run = await session.start("I live in Oslo.")
        await run.wait()
    async with Sessions(brain, memory, journal=tmp_path / "chats.db") as sessions:
        await sessions.delete("chat", user="ann")
        async with sessions.use("chat", user="ann") as session:
            assert await session.memory.dump() == []
            assert await session.memory.goal() == []
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"Oslo" not in stored


@pytest.mark.parametrize("memory", ["messages", "layered", "todo"])
async def test_what_another_process_has_written_is_seen_and_deleted(tmp_path, memory):
    def server() -> Sessions:  # as one process has it
        return Sessions(Brain(llm=PartsLLM("Hello.")), memory, journal=tmp_path / "chats.db")

    async def say(sessions: Sessions, task: str) -> None:
        async with sessions.use("chat", user="ann") as session:
            run = await session.start(task)
            await run.wait()

    async with server() as one, server() as other:
        await say(one, "one")
        await say(other, "two")
        async with one.use("chat", user="ann") as session:
            assert [message.content for message in await session.memory.goal()] == ["two"]
            await say(other, "three")  # while it is used here
            await one.delete("chat", user="ann")
        async with other.use("chat", user="ann") as session:
            assert await session.memory.goal() == []


async def test_a_session_that_is_read_again_is_not_busy(tmp_path):
    def server() -> Sessions:
        return Sessions(
            Brain(llm=PartsLLM("Hello.")), journal=tmp_path / "chats.db", when_busy="refuse"
        )

    async with server() as sessions, sessions.use("chat", user="ann") as session:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(session.refresh)
            await anyio.lowlevel.checkpoint()
            run = await session.start("Hi")
        assert (await run.wait()).answer == "Hello."


@pytest.mark.parametrize("memory", ["messages", "layered"])
@pytest.mark.parametrize("callers", [1, 2, 3])
async def test_only_one_of_several_callers_deletes_a_session(tmp_path, memory, callers):
    brain = Brain(llm=PartsLLM("Hello."))
    deleted: list[bool] = []

    async def delete(sessions: Sessions) -> None:
        try:
            await sessions.delete("chat", user="ann")
            deleted.append(True)
        except SessionNotFoundError:
            deleted.append(False)

    async with Sessions(brain, memory, journal=tmp_path / "chats.db") as sessions:
        async with sessions.use("chat", user="ann") as session:
            run = await session.start("Hi")
            await run.wait()
            async with anyio.create_task_group() as tasks:
                for _ in range(callers):
                    tasks.start_soon(delete, sessions)
        assert await sessions.list(user="ann") == []
    assert sorted(deleted) == [*[False] * (callers - 1), True]
