"""Responses that are kept in a journal: fetched again, and continued from an earlier one."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import httpx
import openai
import pytest

from agent_brain import Brain, Limits
from agent_brain.memories import RamJournal
from agent_brain.states import Finish, Usage
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.serving.web.openai.server import double, serving, shop
from tests.serving.web.openai.test_response_clients import MODEL, PAYS, approval, client_of, last

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # as uvicorn


def told(response: Any) -> Any:
    """Return a response without the IDs of its items and the time of its end."""
    said = response.model_dump(exclude={"completed_at", "created_at"})
    said["output"] = [{**item, "id": ""} for item in said["output"]]
    return said


def hearing() -> tuple[Brain, list[list[str]]]:
    """Return a brain that numbers its answers, and what its model was shown each time."""
    seen: list[list[str]] = []

    def answer(messages: list[Any]) -> str:
        seen.append([message.content for message in messages if message.role != "system"])
        return f"Answer {len(seen)}."

    return Brain(llm=ScriptedLLM([answer] * 9)), seen


async def test_an_earlier_response_is_continued_as_if_there_were_no_later_one():
    brain, seen = hearing()
    async with client_of(brain, journal=RamJournal()) as client:

        async def ask(text: str, previous: Any = None) -> Any:
            previous = previous and previous.id
            return await client.responses.create(
                model=MODEL, input=text, previous_response_id=previous
            )

        one = await ask("One?")
        two = await ask("Two?", one)
        other = await ask("Other?", one)
        await ask("Three?", two)
        await ask("Further?", other)

    assert seen[2] == ["One?", "Answer 1.", "Other?"]
    assert seen[3] == ["One?", "Answer 1.", "Two?", "Answer 2.", "Three?"]
    assert seen[4] == ["One?", "Answer 1.", "Other?", "Answer 3.", "Further?"]
    sessions = [each.agent_brain["session"] for each in (one, two, other)]
    assert sessions[0] == sessions[1] != sessions[2]


async def test_responses_are_the_same_and_continued_after_a_restart(tmp_path):
    usage, journal = Usage(10, 2, cached_tokens=4), tmp_path / "chats.db"
    brain, _ = shop(["Let me see.", Action(name="double", args={"n": 2})], ["It is 4.", usage])
    async with client_of(brain, journal=journal, show_tools=True) as client:
        given = await client.responses.create(
            model=MODEL, input="Double 2.", metadata={"a": "b"}, instructions="Be brief."
        )

    brain, seen = hearing()
    async with client_of(brain, journal=journal, show_tools=True) as client:
        found = await client.responses.retrieve(given.id)
        await client.responses.create(model=MODEL, input="One", previous_response_id=given.id)
        again = await client.responses.retrieve(given.id)
        await client.responses.create(model=MODEL, input="Two", previous_response_id=given.id)

    assert told(found) == told(again) == told(given)
    assert [item.type for item in found.output] == ["message", "mcp_call", "message"]
    assert found.usage.total_tokens == 12
    assert abs(found.created_at - given.created_at) <= 1
    assert [texts[-3:] for texts in seen] == [["4", "It is 4.", "One"], ["4", "It is 4.", "Two"]]


async def test_a_response_has_the_same_citations_when_it_is_fetched_again():
    pages: list[Any] = [
        {"url": "https://e.org/a", "title": "A", "start_index": 3, "end_index": 7},
        {"url": "https://e.org/b"},
    ]
    brain, _ = shop(["In Oslo.", Finish("stop", metadata={"citations": pages})])
    async with client_of(brain, journal=RamJournal()) as client:
        made = await client.responses.create(model=MODEL, input="Where?")
        again = await client.responses.retrieve(made.id)

    assert [each.url for each in again.output[-1].content[0].annotations] == [
        "https://e.org/a",
        "https://e.org/b",
    ]
    assert told(again) == told(made)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("usage", [[], [Usage(3, 2)]], ids=["estimated", "reported"])
async def test_a_response_that_was_cut_is_the_same_when_it_is_fetched_again(most, stream, usage):
    step = ["Ein Bär. ", Action(name="double", args={"n": 2}), *usage]
    brain, _ = shop(step, ["Größe ", "und drei ", "mehr."], "Next.")
    async with client_of(brain, journal=RamJournal()) as client:
        made = await client.responses.create(
            model=MODEL, input="Count.", max_output_tokens=most, stream=stream
        )
        if stream:
            made = [event async for event in made][-1].response
        again = await client.responses.retrieve(made.id)
        other = await client.responses.create(
            model=MODEL, input="Next?", previous_response_id=made.id
        )
        later = await client.responses.retrieve(other.id)

    assert made.incomplete_details.reason == "max_output_tokens"
    assert told(again) == told(made)
    assert told(later) == told(other)


async def test_a_message_before_a_hidden_call_is_complete_in_a_run_that_is_cut():
    step = ["Let me see.", Action(name="double", args={"n": 2})]
    asked: list[dict[str, Any]] = [{}, {"agent_brain": {"show_tools": True}}]
    for extra in asked:
        brain = Brain(llm=ScriptedLLM([step]), tools=[double], limits=Limits(max_steps=2))
        async with client_of(brain, journal=RamJournal()) as client:
            made = await client.responses.create(model=MODEL, input="?", extra_body=extra)
            again = await client.responses.retrieve(made.id)
        for response in (made, again):
            assert response.status == "incomplete"
            assert (response.output[0].type, response.output[0].status) == ("message", "completed")


async def test_an_earlier_response_is_continued_while_its_session_waits():
    brain, paid = shop("One.", [PAYS], "Two.")
    async with client_of(brain, journal=RamJournal()) as client:
        one = await client.responses.create(model=MODEL, input="One?")
        await client.responses.create(model=MODEL, input="Pay.", previous_response_id=one.id)
        two = await client.responses.create(model=MODEL, input="Two?", previous_response_id=one.id)

    assert two.output_text == "Two."
    assert paid == []


async def test_what_waited_for_approval_is_decided_again_in_another_way():
    brain, paid = shop(["Paying.", PAYS], last, last)
    async with client_of(brain, journal=RamJournal(), show_tools=True) as client:
        asked = await client.responses.create(model=MODEL, input="Pay five.")
        done = await client.responses.create(
            model=MODEL, previous_response_id=asked.id, input=[approval(True)]
        )
        denied = await client.responses.create(
            model=MODEL, previous_response_id=asked.id, input=[approval(False, reason="too much")]
        )
        found = [await client.responses.retrieve(each.id) for each in (asked, done, denied)]

    assert (paid, done.output_text) == ([5], "paid 5")
    assert "too much" in denied.output_text
    assert [item.type for item in found[0].output] == ["message", "mcp_approval_request"]
    assert told(found[0]) == told(asked)
    assert told(found[1])["output"] == told(done)["output"]
    assert found[2].output_text == denied.output_text


async def test_a_call_that_was_approved_is_not_approved_again():
    brain, paid = shop(["Paying.", PAYS], last, last)
    async with client_of(brain, journal=RamJournal()) as client:
        asked = await client.responses.create(model=MODEL, input="Pay five.")
        for _ in range(2):
            again: Any = {"previous_response_id": asked.id, "input": [approval(True)]}
            if paid:
                with pytest.raises(openai.BadRequestError, match="has been approved before"):
                    await client.responses.create(model=MODEL, **again)
            else:
                await client.responses.create(model=MODEL, **again)

    assert paid == [5]


@pytest.mark.parametrize(
    ("no", "yes"),
    [
        ([approval(False)], [approval(True)]),
        ("no", "yes"),
        ([approval(False)], 'edit {"amount": 5}'),
    ],
    ids=["items", "words", "edit"],
)
async def test_a_call_that_was_denied_first_is_approved_in_one_copy_only(no, yes, tmp_path):
    brain, paid = shop(["Paying.", PAYS], last, last, last)
    async with client_of(brain, journal=tmp_path / "chats.db") as client:
        asked = await client.responses.create(model=MODEL, input="Pay five.")

        async def decide(words: Any) -> Any:
            return await client.responses.create(
                model=MODEL, previous_response_id=asked.id, input=words
            )

        await decide(no)
        assert (await decide(yes)).output_text.endswith("paid 5")
        made = await client.get("../sessions", cast_to=dict[str, Any])
        for again in (yes, [approval(True)]):
            with pytest.raises(openai.BadRequestError, match="has been approved before"):
                await decide(again)
        assert await client.get("../sessions", cast_to=dict[str, Any]) == made
        await decide(no)

    assert paid == [5]
    assert len(made["sessions"]) == 2


async def test_calls_that_wait_together_run_once_wherever_each_is_approved():
    pays = [Action(name="pay", args={"amount": each}, id=f"call_{each}") for each in (5, 7)]
    brain, paid = shop(["Paying.", *pays], *[last] * 6)
    async with client_of(brain, journal=RamJournal()) as client:

        async def decide(previous: Any, **decisions: bool) -> Any:
            answers: Any = [
                approval(yes, approval_request_id=f"mcpr_{call}") for call, yes in decisions.items()
            ]
            return await client.responses.create(
                model=MODEL, previous_response_id=previous.id, input=answers
            )

        asked = await client.responses.create(model=MODEL, input="Pay five and seven.")
        waits = await decide(asked, call_5=True)
        assert paid == []
        for given in ({"call_7": True}, {"call_7": False}):
            with pytest.raises(openai.BadRequestError, match="decide about all of them"):
                await decide(asked, **given)
        with pytest.raises(openai.BadRequestError, match="'call_5' has been approved before"):
            await decide(asked, call_5=True, call_7=True)
        await decide(asked, call_5=False, call_7=True)
        assert paid == [7]
        for words in ([approval(True, approval_request_id="mcpr_call_7")], "yes"):
            with pytest.raises(openai.BadRequestError, match="'call_7' has been approved before"):
                await client.responses.create(
                    model=MODEL, previous_response_id=waits.id, input=words
                )
        await decide(waits, call_7=False)
    assert sorted(paid) == [5, 7]


async def test_a_refused_decision_uses_up_no_approval():
    brain, paid = shop(["Paying.", PAYS], last, last)
    journal = RamJournal()
    async with client_of(brain, journal=journal) as client:
        asked = await client.responses.create(model=MODEL, input="Pay five.")
        answers: list[Any] = [
            [approval(False)],
            [approval(True), approval(True, approval_request_id="mcpr_other")],
        ]
        answers.append([approval(True)])
        for each in answers:
            with suppress(openai.BadRequestError):
                await client.responses.create(
                    model=MODEL, previous_response_id=asked.id, input=each
                )
        assert [key for key in await journal.sessions() if "approved" in key]
        made = await client.get("../sessions", cast_to=dict[str, Any])
        for session in made["sessions"]:
            await client.delete(f"../sessions/{session['id']}", cast_to=httpx.Response)
        assert not await journal.sessions()

    assert paid == [5]


async def test_only_what_is_kept_is_found_and_only_by_its_user():
    brain, _ = hearing()
    async with serving(brain, journal=RamJournal()) as url:
        ann = openai.AsyncOpenAI(base_url=url, api_key="ann-token", max_retries=0)
        bob = openai.AsyncOpenAI(base_url=url, api_key="bob-token", max_retries=0)
        async with ann, bob:
            kept = await ann.responses.create(model=MODEL, input="Hi.")
            unkept = await ann.responses.create(model=MODEL, input="Hi.", store=False)
            _, token, after, _, session = kept.id.split("_", 4)
            wrong = f"resp_{token}_{after}_0_{session}"
            for client, response in ((bob, kept.id), (ann, unkept.id), (ann, wrong), (ann, "x")):
                with pytest.raises(openai.NotFoundError):
                    await client.responses.retrieve(response)
            with pytest.raises(openai.BadRequestError, match="not as a stream"):
                await ann.responses.retrieve(kept.id, stream=True)


async def test_without_a_journal_no_response_is_kept():
    brain, _ = hearing()
    async with client_of(brain) as client:
        given = await client.responses.create(model=MODEL, input="Hi.")
        with pytest.raises(openai.NotFoundError, match="has no journal"):
            await client.responses.retrieve(given.id)
