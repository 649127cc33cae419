"""Sessions of a server whose runs are done by workers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from httpx import ASGITransport, AsyncClient

from agent_brain import Brain
from agent_brain.errors import BrainDefinitionError, QueuedRunError, QueueError, ResumeError
from agent_brain.memories import UserMemory
from agent_brain.serving.event_log import SessionEvent
from agent_brain.serving.web import make_app
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from agent_brain.workers import RunQueue
from tests.memories.forgetting.stores import on_disk
from tests.memories.user.support import by_rules
from tests.workers.support import until
from tests.workers.test_queue import make_queue, working

pytestmark = [pytest.mark.thorough, pytest.mark.anyio]
TOKEN = "a-long-secret-of-ann"


async def test_sessions_have_runs_that_workers_do(tmp_path: Path) -> None:
    queue = make_queue(tmp_path)
    async with working(queue), queue.sessions("clerk") as sessions:
        async with sessions.use("42", user="ann") as session:
            async with session.stream("Work pause 0") as run:
                kinds = [item.event.kind async for item in run]
            assert (kinds[0], kinds[-1]) == ("run_started", "run_finished")
            assert run.result.answer.endswith("Done after 3 calls.")
            assert run.result.run_id == run.run_id == session.memory.control.run_id

            async with session.stream("Please charge pause 0") as run:
                assert [item.event.kind async for item in run][-1] == "run_finished"
            assert session.status == "waiting"
            async with session.stream_resume(approve=True) as run:
                kinds = [item.event.kind async for item in run]
            assert (kinds[0], kinds[-1]) == ("run_started", "run_finished")
            assert run.result.stop_reason == "done"
            with pytest.raises(ResumeError):
                async with session.stream_resume(approve=True) as run:
                    await anext(run)

            detached = await session.start("Work pause 1")
            detached.stop()
            await detached.over()
            assert detached.result.stop_reason == "stopped"

            async with session.stream("Work pause 5") as run:
                await anext(run)  # and leave it
            assert run.ended
            with pytest.raises(QueuedRunError, match="the clerk is ill"):
                async with session.stream("Please fail pause 0") as run:
                    kinds = [item.event.kind async for item in run]
        assert [info.id for info in await sessions.list(user="ann")] == ["42"]


async def test_a_run_continues_without_the_server_that_has_started_it(tmp_path: Path) -> None:
    queue = make_queue(tmp_path)
    async with working(queue) as client:
        async with queue.sessions("clerk") as sessions, sessions.use("42", user="ann") as session:
            run = await session.start("Work pause 0.1")
            assert not run.ended

        [info] = await client.list(tenant="ann")
        result = await (await client.get(info.id, tenant="ann")).result()
        assert result.stop_reason == "done"


async def test_a_run_that_was_handed_back_is_running(tmp_path: Path) -> None:
    queue = make_queue(tmp_path)
    async with queue.sessions("clerk") as sessions:
        async with working(queue), sessions.use("42", user="ann") as session:
            run = await session.start("Work pause 1")
            async for item in aiter(session.events(run.after)):
                if isinstance(item, SessionEvent) and item.event.kind == "text_delta":
                    break
        async with queue.sessions("clerk") as later, later.use("42", user="ann") as session:
            assert session.status == "running"


async def test_workers_show_what_is_known_about_a_user_and_the_server_learns(
    tmp_path: Path,
) -> None:
    llm = ScriptedLLM(
        [
            [Action(name="remember", args={"text": "Likes tea", "quote": "I like tea"})],
            "Noted.",
            "In Porto.",
        ]
    )
    brains = {"clerk": Brain("react", "windowed", llm=llm)}
    queue = RunQueue(tmp_path / "app.db", brains, poll=0.05, user={"extract": by_rules})
    async with working(queue) as client:
        async with (
            queue.sessions("clerk") as sessions,
            sessions.use("42", user="ann") as session,
            session.stream("I live in Porto, and I like tea") as run,
        ):
            assert [item.event.kind async for item in run][-1] == "run_finished"
        async with queue.sessions("clerk") as sessions, sessions.known(user="ann") as ann:
            assert {fact.text for fact in await ann.facts()} == {"Lives in Porto", "Likes tea"}
            later = await client.submit("clerk", "Where do I live?", session="43", tenant="ann")
            assert (await later.result()).answer == "In Porto."
            assert "home: Lives in Porto" in llm.calls[2].messages[-2].content
            assert b"Porto" in on_disk(tmp_path)
            await sessions.forget_known(slot="home", user="ann")
            await sessions.forget_known(text="Porto", user="ann")
        assert b"Porto" not in on_disk(tmp_path)
    with pytest.raises(BrainDefinitionError, match="that of the queue"):
        queue.sessions("clerk", user={})
    with pytest.raises(QueueError, match="give user= to the queue"):
        RunQueue(tmp_path / "app.db", {"clerk": Brain("react", llm=llm, user=UserMemory())})
    with pytest.raises(BrainDefinitionError, match="the sessions choose these"):
        RunQueue(tmp_path / "app.db", brains, user={"tenant": "ann"})
    with pytest.raises(BrainDefinitionError, match="unexpected keyword argument 'extrakt'"):
        RunQueue(tmp_path / "app.db", brains, user={"extrakt": by_rules})


async def test_a_deleted_session_takes_its_runs_along(tmp_path: Path) -> None:
    queue = make_queue(tmp_path)
    async with working(queue) as client, queue.sessions("clerk") as sessions:
        for name, task in (("ends", "Work pause 0"), ("waits", "Please charge pause 0")):
            async with (
                sessions.use(name, user="ann") as session,
                session.stream(task) as run,
            ):
                assert [item.event.kind async for item in run][-1] == "run_finished"
        assert {info.status for info in await client.list(tenant="ann")} == {"ended", "waiting"}
        await sessions.delete("ends", user="ann")
        assert [info.session for info in await client.list(tenant="ann")] == ["waits"]
        await sessions.delete("waits", user="ann")
        assert await client.list(tenant="ann") == []


async def test_an_unknown_brain_has_no_sessions(tmp_path: Path) -> None:
    with pytest.raises(QueueError, match="Did you mean 'clerk'"):
        make_queue(tmp_path).sessions("clark")


async def test_the_run_of_a_copied_session_is_continued_in_the_copy(tmp_path: Path) -> None:
    queue = make_queue(tmp_path)
    async with working(queue) as client, queue.sessions("clerk") as sessions:
        async with sessions.use("42", user="ann") as session:
            async with session.stream("Please charge pause 0") as run:
                assert [item.event.kind async for item in run][-1] == "run_finished"
            original = run.run_id
            [call] = session.memory.control.next_actions
            step = (await session.memory.steps())[-1].number  # type: ignore[attr-defined]
        copy = await sessions.fork("42", step, calls={call.id: {"euros": 7}}, user="ann")
        async with sessions.use(copy.id, user="ann") as session:
            with pytest.raises(ResumeError, match="waits for a person"):
                async with session.stream_resume() as run:
                    await anext(run)
            async with session.stream_resume(approve=True) as run:
                kinds = [item.event.kind async for item in run]
            assert (kinds[0], kinds[-1]) == ("run_started", "run_finished")
            assert run.result.answer.endswith("Done after 1 calls.")
            [asking] = [m for m in await session.memory.dump() if m.tool_calls]
            assert asking.tool_calls[0].args == {"euros": 7}
        async with sessions.use("42", user="ann") as session:
            assert session.status == "waiting"
            async with session.stream_resume(approve=True) as run:
                assert [item.event.kind async for item in run][-1] == "run_finished"
            assert run.run_id == original
        infos = await client.list(tenant="ann", status="ended")
        assert {info.session for info in infos} == {"42", copy.id}


async def test_a_copied_session_is_resumed_over_http(tmp_path: Path) -> None:
    queue = make_queue(tmp_path)
    sessions = queue.sessions("clerk")
    app = make_app(sessions, token={TOKEN: "ann"})
    headers = {"authorization": f"Bearer {TOKEN}", "accept": "application/json"}
    async with (
        working(queue),
        sessions,
        AsyncClient(
            transport=ASGITransport(app), base_url="http://127.0.0.1", headers=headers, timeout=20
        ) as http,
    ):
        await http.post("/sessions/42/runs", json={"task": "Work pause 0"})
        [goal, *_] = before = (await http.get("/sessions/42")).json()["messages"]
        step = (await http.get("/sessions/42/steps")).json()["steps"][0]["number"]
        edits = {"step": step, "messages": {goal["id"]: "Please charge pause 0"}}
        copy = (await http.post("/sessions/42/fork", json=edits)).json()["id"]

        first = (await http.post(f"/sessions/{copy}/resume", json={})).json()
        second = (await http.post(f"/sessions/{copy}/resume", json={"approve": True})).json()

        assert first["stop_reason"] == "approval"
        assert second["answer"].endswith("Done after 1 calls.")
        assert (await http.get("/sessions/42")).json()["messages"] == before


async def test_another_server_streams_the_run_to_the_ai_sdk(tmp_path: Path) -> None:
    queue = make_queue(tmp_path)
    one, other = queue.sessions("clerk"), queue.sessions("clerk")
    transport = ASGITransport(make_app(other, user="ann", show_tools=True))
    async with (
        working(queue),
        one,
        other,
        AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=20) as http,
        one.use("42", user="ann") as session,
    ):
        run = await session.start("Please charge pause 2")

        async def running() -> bool:
            return bool((await http.get("/sessions/42")).json()["status"] == "running")

        await until(running)
        told = (await http.get("/ai-sdk/chat/42/stream")).text
    lines = [line.removeprefix("data: ") for line in told.splitlines() if line[:7] == "data: {"]
    parts = [json.loads(line) for line in lines]
    assert [part["type"] for part in parts] == [
        *("start", "start-step", "text-start", "text-delta", "text-end", "tool-input-start"),
        *("tool-input-available", "tool-approval-request", "finish-step", "finish"),
    ]
    assert parts[0]["messageMetadata"]["runId"] == run.run_id
    assert parts[-1]["messageMetadata"]["stopReason"] == "approval"


async def test_responses_of_openai_are_continued_and_fetched(tmp_path: Path) -> None:
    queue = make_queue(tmp_path)
    async with working(queue), queue.sessions("clerk") as sessions:
        app = make_app(sessions, user="ann_b")
        async with AsyncClient(transport=ASGITransport(app), base_url="http://agent") as http:
            body = {"model": "agent-brain", "input": "Work pause 0"}
            first = (await http.post("/v1/responses", json=body)).json()
            again = {**body, "previous_response_id": first["id"]}
            second = await http.post("/v1/responses", json=again)
            fetched = await http.get(f"/v1/responses/{first['id']}")

    assert (second.status_code, second.json().get("status")) == (200, "completed")
    assert second.json()["agent_brain"]["session"] == first["agent_brain"]["session"]
    assert fetched.json().get("status") == "completed"
