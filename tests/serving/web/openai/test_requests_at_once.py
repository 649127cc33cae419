"""Requests at once on one conversation: each runs with its own instructions and history."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import openai
import pytest

from agent_brain import Brain
from agent_brain.memories import Journal, Message, RamJournal
from agent_brain.serving import Sessions
from agent_brain.serving.web import make_app
from agent_brain.states.models.llm import LLM
from tests.serving.web.openai.server import shop
from tests.serving.web.openai.test_response_clients import MODEL, PAYS, approval

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # as uvicorn


class Slow(LLM):
    """Answers after a while, and notes what it was shown: instructions, then what was said."""

    model = "test/slow"
    supports_tools = True

    def __init__(self) -> None:
        self.seen: dict[str, tuple[str, list[str]]] = {}

    async def stream(
        self, messages: Sequence[Message], *, tools: Any = (), output_type: Any = None
    ) -> AsyncIterator[str]:
        said = [message.content for message in messages if message.role != "system"]
        self.seen[said[-1]] = messages[0].content.rpartition("\n")[-1], said
        await anyio.sleep(0.05)
        yield f"To {said[-1]}"


@asynccontextmanager
async def direct_client(brain: Brain, journal: Journal | None = None) -> AsyncIterator[Any]:
    """Yield a client that calls the application without sockets, so that requests meet."""
    sessions = Sessions(brain, journal=journal)
    http: Any = httpx.AsyncClient(transport=httpx.ASGITransport(make_app(sessions, user="ann")))
    client = openai.AsyncOpenAI(
        base_url="http://agent/v1", api_key="none", http_client=http, max_retries=0
    )
    async with sessions, client:
        yield client


async def at_once(ask: Any, requests: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the responses, or their errors, in the order of the requests."""
    responses: dict[int, Any] = {}

    async def one(number: int, fields: dict[str, Any]) -> None:
        try:
            responses[number] = await ask(model=MODEL, **fields)
        except openai.APIStatusError as error:
            responses[number] = error

    async with anyio.create_task_group() as tasks:
        for number, fields in enumerate(requests):
            tasks.start_soon(one, number, fields)
    return [responses[number] for number in range(len(requests))]


@pytest.mark.parametrize("journal", [RamJournal, lambda: None])
async def test_each_request_of_a_conversation_has_its_own_instructions_and_history(journal):
    llm = Slow()
    async with direct_client(Brain(llm=llm), journal=journal()) as client:

        def request(number: int) -> dict[str, Any]:
            said = [("user", f"h{number}"), ("assistant", f"a{number}"), ("user", f"b{number}")]
            return {
                "input": [{"role": role, "content": text} for role, text in said],
                "instructions": f"I{number}",
                "conversation": "talk",
            }

        await at_once(client.responses.create, [request(number) for number in range(3)])

    assert {task: instructions for task, (instructions, _) in llm.seen.items()} == {
        "b0": "I0",
        "b1": "I1",
        "b2": "I2",
    }
    for number in range(3):
        said = llm.seen[f"b{number}"][1]
        before = said[: said.index(f"h{number}")]
        assert said[len(before) :] == [f"h{number}", f"a{number}", f"b{number}"]
        for other in {0, 1, 2} - {number}:  # nothing of it, or all of it
            parts = [f"h{other}", f"a{other}", f"b{other}", f"To b{other}"]
            assert [text for text in before if text in parts] in ([], parts)


@pytest.mark.parametrize("stream", [False, True])
async def test_all_but_one_request_from_a_response_go_on_in_copies(stream):
    llm = Slow()
    async with direct_client(Brain(llm=llm), journal=RamJournal()) as client:
        first = await client.responses.create(model=MODEL, input="first")

        async def ask(**fields: Any) -> Any:
            done = await client.responses.create(stream=stream, **fields)
            return [event async for event in done][-1].response if stream else done

        tasks = [f"b{number}" for number in range(4)]
        done = await at_once(
            ask,
            [
                {"input": task, "previous_response_id": first.id, "instructions": f"For {task}"}
                for task in tasks
            ],
        )

    assert [each.output_text for each in done] == [f"To {task}" for task in tasks]
    for task in tasks:
        assert llm.seen[task] == (f"For {task}", ["first", "To first", task])
    sessions = Counter(each.agent_brain["session"] for each in done)
    assert len(sessions) == 4
    assert first.agent_brain["session"] in sessions


async def test_without_a_journal_one_request_goes_on_from_a_response():
    llm = Slow()
    async with direct_client(Brain(llm=llm)) as client:
        first = await client.responses.create(model=MODEL, input="first")
        request = {"input": "next", "previous_response_id": first.id}
        done = await at_once(client.responses.create, [request, request])

    [refused] = [each for each in done if isinstance(each, openai.BadRequestError)]
    assert "not the last response" in str(refused)
    assert llm.seen["next"][1] == ["first", "To first", "next"]


@pytest.mark.parametrize("reply", ["yes", [approval(True)]])
async def test_a_call_that_is_approved_twice_at_once_runs_once(reply):
    brain, paid = shop([PAYS], "Paid.", "Paid.")
    async with direct_client(brain, journal=RamJournal()) as client:
        asked = await client.responses.create(model=MODEL, input="Pay.")
        request = {"input": reply, "previous_response_id": asked.id}
        done = await at_once(client.responses.create, [request, request])

    assert paid == [5]
    [refused] = [each for each in done if isinstance(each, openai.BadRequestError)]
    assert "has been approved before" in str(refused)
