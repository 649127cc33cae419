"""Responses whose sessions have the same ID, and runs that fail after they have done something."""

from __future__ import annotations

import openai
import pytest

from agent_brain import Brain, tool
from agent_brain.errors import LLMServerError
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.serving.web.openai.server import serving, shop

pytestmark = pytest.mark.anyio

MODEL = "agent-brain"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # as uvicorn


async def test_a_session_of_another_user_with_the_same_id_changes_nothing():
    brain, _ = shop("One.", "Other.", "Two.")
    async with (
        serving(brain) as url,
        openai.AsyncOpenAI(base_url=url, api_key="ann-token", max_retries=0) as ann,
        openai.AsyncOpenAI(base_url=url, api_key="bob-token", max_retries=0) as bob,
    ):
        first = await ann.responses.create(model=MODEL, input="One?", conversation="chat")
        await bob.responses.create(model=MODEL, input="Other?", conversation="chat")

        second = await ann.responses.create(
            model=MODEL, input="Two?", previous_response_id=first.id
        )

    assert second.output_text == "Two."


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_a_run_that_fails_after_a_tool_is_not_repeated_by_the_client(path):
    done: list[int] = []

    @tool
    def act() -> str:
        """Do something."""
        done.append(1)
        return "done"

    failing = [[Action(name="act")], LLMServerError("down")] * 3
    async with (
        serving(Brain(llm=ScriptedLLM(failing), tools=[act])) as url,
        openai.AsyncOpenAI(base_url=url, api_key="ann-token", max_retries=2) as client,
    ):
        body = {"model": MODEL, "input": "Act.", "messages": [{"role": "user", "content": "Act."}]}
        with pytest.raises(openai.InternalServerError):
            await client.post(f"/{path}", cast_to=object, body=body)

    assert done == [1]
