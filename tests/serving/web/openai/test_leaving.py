"""Clients of OpenAI's API that leave, and hostile ones."""

from __future__ import annotations

from typing import Any

import anyio
import httpx
import openai
import pytest

from agent_brain import Brain, tool
from agent_brain.serving.web import ServerLimits
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.serving.web.openai.server import serving, shop

pytestmark = pytest.mark.anyio

MODEL = "agent-brain"
ENDPOINTS: dict[str, Any] = {
    "chat/completions": {"messages": [{"role": "user", "content": "Wait."}]},
    "responses": {"input": "Wait."},
}
AUTH = {"authorization": "Bearer ann-token"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # as uvicorn


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", list(ENDPOINTS))
async def test_a_client_that_leaves_ends_its_run(path, stream):
    began, ended = anyio.Event(), anyio.Event()

    @tool
    async def wait() -> str:
        """Wait for ever."""
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return ""

    brain = Brain(llm=ScriptedLLM([[Action(name="wait")]]), tools=[wait])
    body = {"model": MODEL, **ENDPOINTS[path], "stream": stream}
    async with serving(brain) as url, httpx.AsyncClient(headers=AUTH) as http:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: http.post(f"{url}/{path}", json=body))
                await began.wait()
                tasks.cancel_scope.cancel()
            await ended.wait()


@pytest.mark.parametrize("path", list(ENDPOINTS))
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'{"model": "agent-brain"}', 400),
        (b'{"model": 3, "input": 3, "messages": 3}', 400),
        (b'{"model": "agent-brain", "input": [3], "messages": [3]}', 400),
        (b'{"model": "agent-brain", "input": [[[]]], "messages": [{"content": {}}]}', 400),
        (b"[" * 100_000, 400),
        (b'{"model": "' + b"x" * 200_000 + b'"}', 413),
    ],
)
async def test_hostile_bodies_are_answered_in_openais_form(path, body, status):
    brain, _ = shop()
    headers = AUTH | {"content-type": "application/json"}
    async with (
        serving(brain, limits=ServerLimits(max_body=150_000)) as url,
        httpx.AsyncClient(headers=headers) as http,
    ):
        answer = await http.post(f"{url}/{path}", content=body)

    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code", "request_id"}
    assert error["request_id"] == answer.headers["x-request-id"]
    assert len(error["message"]) < 1000


@pytest.mark.parametrize("session", ["x" * 1000, "a\tb", ""])
async def test_names_that_are_no_session_are_refused(session):
    brain, _ = shop("Hello.")
    async with (
        serving(brain) as url,
        openai.AsyncOpenAI(base_url=url, api_key="ann-token", max_retries=0) as client,
    ):
        with pytest.raises(openai.BadRequestError):
            await client.responses.create(model=MODEL, input="Hi.", conversation=session)


async def test_without_a_user_only_ids_of_the_server_are_sessions():
    brain, _ = shop("Hello.", "Again.")
    body = {"model": MODEL, **ENDPOINTS["chat/completions"]}
    async with serving(brain, token=None) as url, httpx.AsyncClient() as http:

        async def ask(session: str) -> Any:
            headers = {"x-session-id": session}
            return await http.post(f"{url}/chat/completions", json=body, headers=headers)

        guessed = await ask("talk")
        made = (await ask("new")).json()["agent_brain"]["session"]
        again = await ask(made)

    assert (guessed.status_code, guessed.json()["error"]["code"]) == (404, "session_not_found")
    assert again.json()["choices"][0]["message"]["content"] == "Again."


@pytest.mark.parametrize("path", list(ENDPOINTS))
async def test_a_busy_session_refuses_if_the_server_says_so(path):
    began, done = anyio.Event(), anyio.Event()
    statuses: list[int] = []

    @tool
    async def wait() -> str:
        """Wait."""
        began.set()
        await done.wait()
        return "Done."

    brain = Brain(llm=ScriptedLLM([[Action(name="wait")], "Done."]), tools=[wait])
    body = {"model": MODEL, **ENDPOINTS[path]} | (
        {"conversation": "talk"} if "input" in ENDPOINTS[path] else {}
    )
    headers = AUTH | {"x-session-id": "talk"}
    async with (
        serving(brain, when_busy="refuse") as url,
        httpx.AsyncClient(headers=headers) as http,
    ):

        async def ask() -> None:
            statuses.append((await http.post(f"{url}/{path}", json=body)).status_code)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await began.wait()
                await ask()
                done.set()

    assert statuses == [409, 200]
