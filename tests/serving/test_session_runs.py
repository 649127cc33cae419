"""Runs of sessions: attached, detached, one at a time, and every way they end."""

# ruff: noqa: SIM117 - a server around its clients reads well when nested

from __future__ import annotations

from contextlib import aclosing
from typing import Any, cast

import anyio
import pytest

from agent_brain import Action, Brain, Message
from agent_brain.errors import (
    BrainUseError,
    LLMServerError,
    ResumeError,
    SessionBusyError,
    SessionNotFoundError,
    SessionsClosedError,
)
from agent_brain.serving import Caller, Gap, Session, SessionEvent, Sessions
from agent_brain.tools import ToolContext
from tests.serving.models import EchoLLM, Gate, PartsLLM
from tests.support.clock import clock_backend, fake_clock

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return clock_backend(request.param)


async def ask(session: Session, task: str = "Hello", **options: Any) -> str:
    async with session.stream(task, **options) as run:
        async for _ in run:
            pass
    return run.result.answer


async def said(session: Session) -> list[str]:
    return [message.content for message in await session.memory.dump()]


# Attached


async def test_the_events_of_a_run_are_numbered_and_kept():
    async with Sessions(Brain(llm=EchoLLM())) as sessions, sessions.use(None) as session:
        async with session.stream("Hello") as run:
            items = [item async for item in run]
        assert run.result.answer == "You said: Hello"
        assert [item.number for item in items] == [*range(1, len(items) + 1)]
        assert session.log.last_id == items[-1].id
        reader = session.events(items[2].id)
        assert [i.id for i in await reader.batch() if not isinstance(i, Gap)] == [
            i.id for i in items[3:]
        ]


async def test_leaving_the_block_cancels_the_run_and_frees_the_session():
    gate = Gate()
    async with (
        Sessions(Brain(llm=EchoLLM("One ", gate))) as sessions,
        sessions.use(None) as session,
    ):
        async with session.stream("First") as run:
            async for item in run:
                if item.event.kind == "text_delta":
                    break
        assert run.result.stop_reason == "cancelled"
        assert session.status == "idle"
        assert sessions.active_runs == 0
        gate.open()
        assert await ask(session, "Second") == "One You said: Second"


async def test_a_cancelled_caller_leaves_the_session_free_wherever_it_was():
    """The caller is cancelled at each of its first awaits, in the start and in the middle."""
    async with Sessions(Brain(llm=EchoLLM())) as sessions, sessions.use(None) as session:
        for ticks in range(25):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, session)
                for _ in range(ticks):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            assert session.run is None
            assert sessions.active_runs == 0
        assert await ask(session, "Still there?") == "You said: Still there?"


async def test_a_run_that_fails_raises_its_error_after_the_event():
    error = LLMServerError("It is down")
    async with Sessions(Brain(llm=PartsLLM(error))) as sessions, sessions.use(None) as session:
        kinds = []
        with pytest.raises(LLMServerError, match="It is down"):  # noqa: PT012
            async with session.stream("Hello") as run:
                async for item in run:
                    kinds.append(item.event.kind)
        assert kinds[-1] == "run_failed"
        assert run.error is error
        assert session.status == "idle"
        with pytest.raises(BrainUseError, match="no result"):
            _ = run.result


async def test_an_empty_task_is_refused_before_anything_begins():
    async with Sessions(Brain(llm=EchoLLM())) as sessions, sessions.use(None) as session:
        with pytest.raises(BrainUseError, match="empty"):
            session.stream(" ")
        with pytest.raises(BrainUseError, match="empty"):
            await session.start("")
        assert session.log.last == 0


async def test_a_run_can_be_entered_only_once():
    async with Sessions(Brain(llm=EchoLLM())) as sessions, sessions.use(None) as session:
        run = session.stream("Hello")
        with pytest.raises(BrainUseError, match="has not begun"):
            run.stop()
        async with run:
            with pytest.raises(BrainUseError, match="only once"):
                await run.__aenter__()


async def test_nothing_to_resume_is_an_error_and_frees_the_session():
    async with Sessions(Brain(llm=EchoLLM())) as sessions, sessions.use(None) as session:
        with pytest.raises(ResumeError):  # noqa: PT012
            async with session.stream_resume() as run:
                async for _ in run:
                    pass
        with pytest.raises(ResumeError):
            await session.start_resume()
        assert await ask(session) == "You said: Hello"


async def test_dependencies_reach_the_tools():
    seen = []

    def whoami(context: ToolContext[Caller]) -> str:
        """Tell who asks."""
        seen.append(context.deps)
        return context.deps.user or "nobody"

    class Calls(PartsLLM):
        async def stream(self, messages, **_):
            if messages[-1].role == "tool":
                yield messages[-1].content
            else:
                yield Action(name="whoami")

    async with Sessions(Brain(llm=Calls(), tools=[whoami])) as sessions:
        async with sessions.use("one", user="ann") as session:
            assert await ask(session, deps=Caller("ann")) == "ann"
            run = await session.start("Again", deps=Caller("bob"))
            assert (await run.wait()).answer == "bob"
    assert [caller.user for caller in seen] == ["ann", "bob"]


# Detached


async def test_a_detached_run_goes_on_without_its_caller_and_can_be_read_later():
    gate = Gate()
    async with Sessions(Brain(llm=EchoLLM("One ", gate))) as sessions:
        async with sessions.use("one", user="ann") as session:
            run = await session.start("Hello")
            assert run.detached
        assert sessions.active_runs == 1
        await gate.until_reached()
        gate.open()
        result = await run.wait()
        assert result.answer == "One You said: Hello"
        async with sessions.use("one", user="ann") as again:
            assert again is session
            items: Any = await again.events(run.after).batch()
            kinds = [item.event.kind for item in items]
    assert kinds[0] == "run_started"
    assert kinds[-1] == "run_finished"


async def test_many_watchers_get_every_event_once():
    gate = Gate()
    async with Sessions(Brain(llm=EchoLLM(gate))) as sessions, sessions.use(None) as session:
        seen: list[list[str]] = [[] for _ in range(50)]

        async def watch(into: list[str]) -> None:
            with session.events("0") as reader:
                async for item in reader:
                    into.append(item.id)

        async with anyio.create_task_group() as tasks:
            for into in seen:
                tasks.start_soon(watch, into)
            run = await session.start("Hello")
            await gate.until_reached()
            gate.open()
            await run.wait()
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        numbers = [f"{session.log.name}-{n}" for n in range(1, session.log.last + 1)]
        assert seen == [numbers] * 50


async def test_a_detached_run_that_fails_at_its_start_raises_in_start():
    async with Sessions(Brain(llm=EchoLLM())) as sessions, sessions.use(None) as session:

        async def fails() -> None:
            raise OSError("no disk")

        session.memory.open = fails  # type: ignore[method-assign]
        with pytest.raises(OSError, match="no disk"):
            await session.start("Hello")
        assert session.run is None
        del session.memory.open
        assert await ask(session) == "You said: Hello"


async def test_a_detached_run_that_fails_later_raises_in_wait_and_is_logged(caplog):
    async with Sessions(Brain(llm=PartsLLM(LLMServerError("Down")))) as sessions:
        async with sessions.use(None) as session:
            run = await session.start("Hello")
            with pytest.raises(LLMServerError, match="Down"):
                await run.wait()
            with pytest.raises(LLMServerError, match="Down"):
                await run.wait()
            assert session.status == "idle"
    assert "failed" in caplog.text


async def test_a_start_that_is_cancelled_while_it_waits_for_its_turn_leaves_nothing():
    gate = Gate()
    async with Sessions(Brain(llm=EchoLLM(gate))) as sessions, sessions.use(None) as session:
        first = await session.start("First")
        await gate.until_reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.start, "Second")
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        gate.open()
        assert (await first.wait()).answer == "You said: First"
        await anyio.wait_all_tasks_blocked()
        assert session.run is None
        assert sessions.active_runs == 0
        assert "Second" not in await said(session)


async def test_a_run_without_a_reader_is_stopped_after_the_grace_and_can_be_resumed():
    """It ends after the step, and what it did is kept."""

    async def slow() -> str:
        """Take longer than the grace, and less than twice as long."""
        await anyio.sleep(50)
        return "done"

    class Calls(PartsLLM):
        async def stream(self, messages, **_):
            if messages[-1].role == "tool":
                yield messages[-1].content
            else:
                yield Action(name="slow")

    with fake_clock():
        async with Sessions(Brain(llm=Calls(), tools=[slow]), grace=30) as sessions:
            async with sessions.use("one", user="ann") as session:
                run = await session.start("Hello")
                await run.over()
                assert run.result.stop_reason == "stopped"
                resumed = await session.start_resume()
                assert (await resumed.wait()).answer == "done"


async def test_a_run_whose_step_does_not_end_is_cancelled_after_twice_the_grace():
    gate = Gate()
    with fake_clock() as clock:
        async with Sessions(Brain(llm=EchoLLM(gate)), grace=10) as sessions:
            async with sessions.use("one", user="ann") as session:
                run = await session.start("Hello")
                await run.over()
        assert run.result.stop_reason == "cancelled"
        assert 20 <= clock.elapsed < 25


async def test_who_waits_for_a_run_counts_as_a_reader():
    gate = Gate()
    with fake_clock():
        async with Sessions(Brain(llm=EchoLLM(gate)), grace=10) as sessions:
            async with (
                sessions.use("one", user="ann") as session,
                anyio.create_task_group() as tasks,
            ):

                async def open_later() -> None:
                    await anyio.sleep(100)
                    gate.open()

                tasks.start_soon(open_later)
                run = await session.start("Hello")
                assert (await run.wait()).stop_reason == "done"


async def test_a_run_with_a_reader_is_not_stopped():
    gate = Gate()
    with fake_clock():
        async with Sessions(Brain(llm=EchoLLM(gate)), grace=10) as sessions:
            async with sessions.use(None) as session:
                run = await session.start("Hello")
                with session.events():
                    await anyio.sleep(1000)
                gate.open()
                assert (await run.wait()).stop_reason == "done"


async def test_an_attached_run_needs_no_reader():
    gate = Gate()
    with fake_clock():
        async with Sessions(Brain(llm=EchoLLM(gate)), grace=1) as sessions:
            async with sessions.use(None) as session, anyio.create_task_group() as tasks:

                async def open_later() -> None:
                    await anyio.sleep(100)
                    gate.open()

                tasks.start_soon(open_later)
                assert await ask(session) == "You said: Hello"


# One at a time


async def test_with_wait_runs_follow_each_other_in_order():
    gate = Gate()
    llm = EchoLLM(gate)
    async with Sessions(Brain(llm=llm), when_busy="wait") as sessions:
        async with sessions.use(None) as session, anyio.create_task_group() as tasks:
            tasks.start_soon(ask, session, "1")
            await gate.until_reached()
            for n in "234":
                tasks.start_soon(ask, session, n)
                await anyio.wait_all_tasks_blocked()
            gate.open()
        assert [asked[-1] for asked in llm.asked] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("by", ["server", "caller"])
async def test_with_refuse_another_task_is_refused_at_once(by):
    gate = Gate()
    refuse: Any = {"when_busy": "refuse"}
    async with Sessions(Brain(llm=EchoLLM(gate)), **(refuse if by == "server" else {})) as sessions:
        async with sessions.use(None) as session:
            options = {} if by == "server" else refuse
            run = await session.start("First")
            await gate.until_reached()
            with pytest.raises(SessionBusyError):
                await session.start("Second", **options)
            with pytest.raises(SessionBusyError):
                await ask(session, "Third", **options)
            with pytest.raises(SessionBusyError):
                await session.start_resume(**options)
            gate.open()
            assert (await run.wait()).answer == "You said: First"


class GatedLLM(EchoLLM):
    """Waits at one gate for each call."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.gates = [Gate() for _ in range(count)]

    async def stream(self, messages, **options):
        await self.gates[len(self.asked)].wait()
        async with aclosing(cast("Any", super().stream(messages, **options))) as pieces:
            async for piece in pieces:
                yield piece


async def test_with_queue_another_task_becomes_a_message_to_the_run():
    llm = GatedLLM(2)
    async with (
        Sessions(Brain(llm=llm), when_busy="queue") as sessions,
        sessions.use(None) as session,
    ):
        run = await session.start("First")
        await llm.gates[0].until_reached()
        assert await session.start("Second") is run
        for gate in llm.gates:
            gate.open()
        assert (await run.wait()).answer == "You said: Second"
        assert session.run is None
        assert session.unread == []


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_messages_that_come_in_the_last_moment_are_answered_by_another_run(count):
    llm = GatedLLM(9)
    async with (
        Sessions(Brain(llm=llm), when_busy="queue") as sessions,
        sessions.use(None) as session,
    ):
        run = await session.start("First")
        await llm.gates[0].until_reached()
        await session.start("Second")
        llm.gates[0].open()
        await llm.gates[1].until_reached()  # the last step
        for n in range(count):
            assert await session.start(f"Late {n}") is run
        with session.events() as reader:
            for gate in llm.gates[1:]:
                gate.open()
            assert (await run.wait()).answer == "You said: Second"
            finished = 0
            async for item in reader:
                assert isinstance(item, SessionEvent)
                finished += item.event.kind == "run_finished"
                if finished == 2:
                    break
        assert session.unread == []
        users = [text for text in await said(session) if text.startswith("Late")]
        goal = [message.content for message in await session.memory.goal()]
        assert goal + users == [f"Late {n}" for n in range(count)]
        assert f"You said: Late {count - 1}" in await said(session)


async def test_a_message_to_a_run_that_is_stopped_waits_for_the_next_run():
    gate = Gate()
    llm = EchoLLM(gate)
    async with Sessions(Brain(llm=llm)) as sessions, sessions.use(None) as session:
        run = await session.start("First")
        await gate.until_reached()
        run.send("Wait, there is more")
        run.cancel()
        assert (await run.wait()).stop_reason == "cancelled"
        assert [message.content for message in session.unread] == ["Wait, there is more"]
        assert session.run is None
        gate.open()
        second = await session.start("Second")
        await second.wait()
        assert session.unread == []


async def test_cancel_ends_a_detached_run_at_once():
    gate = Gate()
    async with Sessions(Brain(llm=EchoLLM(gate))) as sessions, sessions.use(None) as session:
        run = await session.start("Hello")
        await gate.until_reached()
        run.cancel()
        assert (await run.wait()).stop_reason == "cancelled"
        assert gate.left == 1
        run.cancel()
        run.stop()
        with pytest.raises(BrainUseError, match="has ended"):
            run.send("More")


# Deleting


async def test_deleting_a_session_cancels_its_run_and_ends_its_readers():
    gate = Gate()
    async with Sessions(Brain(llm=EchoLLM(gate))) as sessions:
        async with sessions.use("one", user="ann") as session, anyio.create_task_group() as tasks:
            kinds: list[str] = []

            async def watch() -> None:
                with session.events() as reader:
                    async for item in reader:
                        kinds.append(item.event.kind)  # type: ignore[union-attr]

            tasks.start_soon(watch)
            run = await session.start("Hello")
            await gate.until_reached()
            await sessions.delete("one", user="ann")
            assert run.ended
        assert kinds[-1] == "run_finished"
        assert gate.left == 1
        assert await sessions.list(user="ann") == []
        assert sessions.open_sessions == 0


@pytest.mark.parametrize("journal", [False, True])
async def test_tasks_that_wait_in_a_deleted_session_do_not_bring_it_back(tmp_path, journal):
    gate = Gate()
    llm = EchoLLM(gate)
    async with Sessions(Brain(llm=llm), journal=tmp_path / "j.db" if journal else None) as sessions:
        async with sessions.use("one", user="ann") as session, anyio.create_task_group() as tasks:
            await session.start("First")
            await gate.until_reached()
            refused: list[BaseException] = []

            async def wait(how: Any) -> None:
                try:
                    await how("Second")
                except SessionNotFoundError as error:
                    refused.append(error)

            async def attached(task: str) -> None:
                await ask(session, task)

            tasks.start_soon(wait, session.start)
            tasks.start_soon(wait, attached)
            await anyio.wait_all_tasks_blocked()
            await sessions.delete("one", user="ann")
        assert len(refused) == 2
        assert len(llm.asked) == 1
        assert await sessions.list(user="ann") == []
        with pytest.raises(SessionNotFoundError):
            await sessions.delete("one", user="ann")
        gate.open()
        async with sessions.use("one", user="ann") as new:
            assert new is not session
            assert await said(new) == []
            assert await ask(new) == "You said: Hello"


async def test_a_session_can_be_deleted_twice_at_once():
    gate = Gate()
    async with Sessions(Brain(llm=EchoLLM(gate))) as sessions:
        async with sessions.use("one", user="ann") as session:
            await session.start("Hello")
            await gate.until_reached()
        outcomes: list[str] = []

        async def delete() -> None:
            try:
                await sessions.delete("one", user="ann")
                outcomes.append("deleted")
            except SessionNotFoundError:
                outcomes.append("not found")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(delete)
            tasks.start_soon(delete)
        assert "deleted" in outcomes
        assert sessions.open_sessions == 0


# Stopping


async def test_stop_ends_runs_softly_and_readers_and_accepts_no_more():
    gate = Gate()

    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "done"

    class Calls(PartsLLM):
        async def stream(self, messages, **_):
            yield messages[-1].content if messages[-1].role == "tool" else Action(name="wait")

    async with Sessions(Brain(llm=Calls(), tools=[wait])) as sessions:
        async with sessions.use("one", user="ann") as session, anyio.create_task_group() as tasks:
            run = await session.start("Hello")
            await gate.until_reached()
            ended = anyio.Event()

            async def watch() -> None:
                with session.events() as reader:
                    async for _ in reader:
                        pass
                ended.set()

            tasks.start_soon(watch)
            tasks.start_soon(sessions.stop)
            await anyio.wait_all_tasks_blocked()
            assert not ended.is_set()
            with pytest.raises(SessionsClosedError):
                await session.start("More")
            gate.open()
            assert (await run.wait()).stop_reason == "stopped"
            await ended.wait()


async def test_runs_that_do_not_end_in_time_are_cancelled():
    gate = Gate()
    with fake_clock() as clock:
        async with Sessions(Brain(llm=EchoLLM(gate)), grace=None) as sessions:
            async with sessions.use("one", user="ann") as session:
                run = await session.start("Hello")
                await gate.until_reached()
                await sessions.stop(timeout=5)
                assert (await run.wait()).stop_reason == "cancelled"
        assert clock.elapsed == pytest.approx(5, abs=1)


async def test_stop_while_runs_wait_and_begin_ends_them_all():
    """Also one that has its turn and is being noted in the journal."""
    gate = Gate()
    async with (
        Sessions(Brain(llm=EchoLLM())) as sessions,
        sessions.use("one", user="ann") as session,
    ):

        class Slow:
            async def note(self, owner: Any, info: Any, **_: Any) -> Any:
                await gate.wait()
                return info

            async def get(self, *_: object) -> None:
                return None

        sessions._catalog = Slow()  # type: ignore[assignment]
        errors: list[Exception] = []

        async def start() -> None:
            try:
                await session.start("Hello")
            except SessionsClosedError as error:
                errors.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            tasks.start_soon(start)
            await gate.until_reached()
            await sessions.stop(timeout=1)
            gate.open()
        assert len(errors) == 2
        assert sessions.active_runs == 0
        sessions._catalog = None


async def test_a_run_whose_beginning_cannot_be_noted_is_not_counted():
    async with (
        Sessions(Brain(llm=EchoLLM())) as sessions,
        sessions.use("one", user="ann") as session,
    ):

        class Broken:
            async def note(self, owner: Any, info: Any, **_: Any) -> Any:
                raise OSError("no disk")

        sessions._catalog = Broken()  # type: ignore[assignment]
        with pytest.raises(OSError, match="no disk"):
            await ask(session)
        assert sessions.active_runs == 0
        sessions._catalog = None
        assert await ask(session) == "You said: Hello"


async def test_a_message_of_the_user_can_have_attachments():
    async with Sessions(Brain(llm=EchoLLM())) as sessions, sessions.use(None) as session:
        assert await ask(session, Message.user("Look")) == "You said: Look"  # type: ignore[arg-type]
