"""Personal data does not reach models, embedders and traces."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agent_brain import (
    LLM,
    Brain,
    Memory,
    Message,
    MessagesMemory,
    State,
    SummaryMemory,
    VectorMemory,
    tool,
)
from agent_brain.errors import BrainDefinitionError
from agent_brain.hooks import HidePersonalData
from agent_brain.memories import Attachment
from agent_brain.memories.embedders import Embedder
from agent_brain.states import (
    ActionDelta,
    ActionRequested,
    ArgumentsDelta,
    Hook,
    ModelRequest,
    ModelResponse,
    PartialOutput,
    TextDelta,
    Thought,
    Together,
    model_summarizer,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import single
from tests.states.test_litellm_wire import model_of
from tests.support.openai_server import OpenAIServer, Reply

pytestmark = pytest.mark.anyio


class Instead(Hook):
    def after_attempt(self, request: ModelRequest, response: ModelResponse) -> ModelResponse:
        return replace(response, text="Told [email 1].")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # LiteLLM knows no other
@pytest.mark.parametrize("first", [True, False])
async def test_what_a_hook_makes_of_an_attempt_streams_with_the_real_values(first: bool) -> None:
    hooks: list[Hook] = [HidePersonalData(), Instead()][:: 1 if first else -1]
    with OpenAIServer([Reply("")]) as server:
        llm = model_of(server)
        async with Brain("react", llm=llm, hooks=hooks).stream("Tell ann@example.org") as run:
            said = [event.text async for event in run if isinstance(event, TextDelta)]
        await llm.aclose()
    assert "".join(said) == run.result.answer == "Told ann@example.org."


FOUND = {
    "Write to ann.b+c@mail.example.org.": "Write to [email].",
    "mail ann@example.org, bob@example.org": "mail [email], [email]",
    "Pay with 4111 1111 1111 1111 now": "Pay with [card] now",
    "card 5500-0000-0000-0004.": "card [card].",
    "to DE89 3704 0044 0532 0130 00 please": "to [iban] please",
    "to GB82WEST12345698765432": "to [iban]",
    "from 192.168.17.4, 2001:db8::8a2e:370:7334": "from [ip], [ip]",
    "call +49 (0)170 1234567 or 089/1234567": "call [phone] or [phone]",
    "call (212) 555-0123 or 212-555-0123": "call [phone] or [phone]",
    "call 0049 170 1234567 or 00491701234567": "call [phone] or [phone]",
    "to de89 3704 0044 0532 0130 00 please, gb82west12345698765432": "to [iban] please, [iban]",
    "to DE89-3704-0044-0532-0130-00, 3 times": "to [iban], 3 times",
    "card 4111 1111 1111 1111 12/27 123": "card [card] 12/27 123",
    "No. 12 4111 1111 1111 1111 exp 12": "No. 12 [card] exp 12",
    "4111  1111 - 1111-1111 or 3782 822463 10005": "[card] or [card]",
    "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1": "[card]",
    "on ::1, 10.0.0.1:8080 and 2001:db8::8a2e:370:7334.": "on [ip], [ip]:8080 and [ip].",
}
KEPT = [
    "Order 4111 1111 1111 1112 has 16 digits",  # no card: a wrong check digit
    "DE88 3704 0044 0532 0130 00 is misspelt",
    "It is 2026-11-23 22:15:07, or 01.02.2026 at 12:30",
    "Version 1.2.3, 999.1.2.3 and 12:30:45",
    "Add 1234567 and 20000000000, then 3.14159265358979",
    "@ann wrote a::b in C++",
    "from 12::30 to 13::45, x[::2], std::vector, Note::1",
    "in 2019 2020 2021 2022 2023 2024",
    "from 2026-11-20 2026-11-25 2026-12-01, 05/2026 12345",
    "version 1.2.3.4, 1.2.3.4.5 and v2.0.0.1",
    "the job 4111111111111112, 1700000000000 ms, 9783161484100, 4f2a89370400440532013000",
    "000123456789 and 550e8400-e29b-41d4-a716-446655440000",
]


@pytest.mark.parametrize("text", FOUND)
def test_what_is_personal_is_found(text: str) -> None:
    assert HidePersonalData().hide(text) == FOUND[text]


@pytest.mark.parametrize("text", KEPT)
def test_other_numbers_are_left_alone(text: str) -> None:
    assert HidePersonalData().hide(text) == text


def test_kinds_are_chosen_and_added() -> None:
    only = HidePersonalData("email", also={"order": r"ORD-\d+", "name": lambda text: ["Ann Lee"]})

    hidden = only.hide("Ann Lee <ann@example.org> ordered ORD-17 from 10.0.0.1")
    assert hidden == "[name] <[email]> ordered [order] from 10.0.0.1"


nothing: Any = lambda text: None  # noqa: E731 - of a type that is refused
WRONG: dict[str, Any] = {
    "unknown": lambda: HidePersonalData("mail"),
    "no pattern": lambda: HidePersonalData(also={"x": "("}),
    "no function": lambda: HidePersonalData(also={"x": 3}),  # type: ignore[dict-item]
    "no word": lambda: HidePersonalData(also={"a b]": "x"}),
    "no dict": lambda: HidePersonalData(also=["x"]),  # type: ignore[arg-type]
    "a text": lambda: HidePersonalData(also={"x": lambda text: "Ann"}).hide("Ann"),
    "nothing": lambda: HidePersonalData(also={"x": nothing}).hide("Ann"),
    "numbers": lambda: HidePersonalData(also={"x": lambda text: [1]}).hide("1"),  # type: ignore[list-item]
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_what_finds_nothing_is_refused(make: Any) -> None:
    with pytest.raises(BrainDefinitionError, match=r"the kinds are|also="):
        make()


@tool
def send(to: str, lines: list[str]) -> str:
    """Send a mail."""
    sent.append((to, lines))
    return f"Sent to {to}; bob@example.org reads it too"


sent: list[Any] = []
ASKED = "Write to ann@example.org"


async def test_the_model_sees_names_and_the_tool_real_values() -> None:
    sent.clear()
    wants = Action(name="send", args={"to": "[email 1]", "lines": ["To [Email 1]", "[email 9]"]})
    llm = ScriptedLLM([wants, ["Sent to [ema", "il 1] and [", "email 2]", " [ok"], "Again."])
    brain = Brain("react", tools=[send], llm=llm, hooks=[HidePersonalData()])
    async with brain.stream(ASKED) as run:
        events = [event async for event in run]
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    (asked,) = [event.action for event in events if isinstance(event, ActionRequested)]

    assert asked.args["to"] == "ann@example.org", "as a person who approves it sees it"
    assert sent == [("ann@example.org", ["To ann@example.org", "[email 9]"])]
    seen = json.dumps([m.to_dict() for m in llm.calls[1].messages])
    assert "@" not in seen
    assert "Sent to [email 1]; [email 2] reads it too" in seen
    assert run.result.answer == "Sent to ann@example.org and bob@example.org [ok"
    assert "".join(pieces) == run.result.answer
    assert len(pieces) > 2, "it streams"

    await brain.run("And now?")
    assert "@" not in json.dumps([m.to_dict() for m in llm.calls[2].messages])


async def test_the_answer_may_keep_the_names() -> None:
    sent.clear()
    wants = Action(name="send", args={"to": "[email 1]", "lines": []})
    for native in (True, False):
        said = [Thought("[email 1]?"), "Sent to [email 1]"]
        llm = ScriptedLLM([wants, said, *([] if native else [said])], native=native)
        hook = HidePersonalData(restore=False)
        result = await Brain("react", tools=[send], llm=llm, hooks=[hook]).run(ASKED)
        assert result.answer == "Sent to [email 1]", native
    assert sent == [("ann@example.org", [])] * 2


async def test_names_of_speakers_and_of_files_and_keys_of_arguments_are_hidden() -> None:
    wants = Action(name="note", args={"by": {"bob@example.org": "ann@example.org"}})

    @tool
    def note(by: dict[str, str]) -> str:
        """Note."""
        return "noted"

    llm = ScriptedLLM([wants, "Done."])
    brain = Brain("react", tools=[note], llm=llm, hooks=[HidePersonalData()])
    picture = Attachment(
        media_type="image/png", url="https://x/y.png", name="ann@example.org", at=16
    )
    goal = Message.user("ann@example.org: look", name="ann@example.org", attachments=[picture])
    await brain.run(goal)
    asked = llm.calls[1].messages[-3]
    assert [part for part in asked.parts() if isinstance(part, str)] == ["[email 1]:", " look"]
    assert (asked.name, asked.attachments[0].name) == ("[email 1]", "[email 1]")
    (call,) = llm.calls[1].messages[-2].tool_calls
    assert call.args == {"by": {"[email 2]": "[email 1]"}}
    assert (await brain.memory.goal())[0].name == "ann@example.org"


@pytest.mark.parametrize("output", [False, True], ids=["call", "output"])
async def test_growing_arguments_have_real_values_too(output: bool) -> None:
    name = "final_result" if output else "send"
    args: dict[str, Any] = {"to": "[email 1]", "lines": ["x"]}
    text = json.dumps(args)
    grows = [ArgumentsDelta("c1", name, text[at : at + 3]) for at in range(0, len(text), 3)]
    llm = ScriptedLLM([[*grows, Action(name=name, args=args, id="c1")], "Sent."])
    options: dict[str, Any] = {"output_type": Mail} if output else {}
    brain = Brain("react", tools=[send], llm=llm, hooks=[HidePersonalData()], **options)
    async with brain.stream(ASKED) as run:
        events = [event async for event in run]

    said = "".join(event.text for event in events if isinstance(event, ActionDelta))
    shown = [event.output for event in events if isinstance(event, PartialOutput)]
    if output:
        assert shown[-1] == {"to": "ann@example.org", "lines": ["x"]}
        assert len(shown) > 2, "it streams"
        assert not [part for part in shown if "[email 1" in part.get("to", "")]
    else:
        assert json.loads(said) == {"to": "ann@example.org", "lines": ["x"]}
        assert sum(isinstance(event, ActionDelta) for event in events) > 5, "it streams"


class Mail(BaseModel):
    to: str
    lines: list[str]


@pytest.mark.parametrize("erase", ["clear", "forget"])
async def test_values_go_with_the_messages_they_came_from(erase: str) -> None:
    sent.clear()
    wants = Action(name="send", args={"to": "[email 1]", "lines": []})
    llm = ScriptedLLM(["Hello [email 1]", wants, "Sent to [email 1]", "Hello [email 2]"])
    memory = MessagesMemory([send])
    brain = Brain("react", memory, llm=llm, hooks=[HidePersonalData()])
    assert (await brain.run(ASKED)).answer == "Hello ann@example.org"
    await (memory.clear() if erase == "clear" else memory.forget(text="ann@"))
    assert "ann@" not in (await memory.snapshot()).model_dump_json()

    assert (await brain.run("Once more")).answer == "Sent to [email 1]"
    assert sent == [("[email 1]", [])]
    answer = (await brain.run("I am cid@example.org")).answer
    assert answer == "Hello bob@example.org", "a number is not used again"


async def test_a_person_approves_the_real_values() -> None:
    sent.clear()
    careful = tool(requires_approval=True)(send.function)
    wants = Action(name="send", args={"to": "[email 1]", "lines": []})
    hooks = [HidePersonalData(restore=False)]
    brain = Brain(
        "react", tools=[careful], llm=ScriptedLLM([wants, "Done."] * 2, native=False), hooks=hooks
    )
    (asked,) = (await brain.run(ASKED)).approvals
    assert asked.args["to"] == "ann@example.org"
    await brain.resume(approve=True)
    assert sent == [("ann@example.org", [])]


class Person(BaseModel):
    name: str


async def test_a_value_is_put_back_as_json_where_json_is_asked_for() -> None:
    hook = HidePersonalData(also={"name": lambda text: re.findall('Ann "A" Lee', text)})
    llm = ScriptedLLM(["Her.", '{"name": "[name 1]"}'])
    brain = Brain("react", llm=llm, hooks=[hook], output_type=Person)
    assert (await brain.run('Who is Ann "A" Lee?')).output == Person(name='Ann "A" Lee')


class Words(Embedder):
    """Embeds by the number of words, and keeps the texts."""

    name = "words"

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def embed(self, texts: Any) -> Any:
        self.texts += texts
        return [[float(len(text.split())), 1.0] for text in texts]


async def test_calls_of_a_memory_see_nothing_personal_either() -> None:
    words, hook = Words(), HidePersonalData()
    memory = VectorMemory(embedder=words, recent=1)
    brain = Brain("react", memory, llm=ScriptedLLM(["Yes."] * 3), hooks=[hook])
    for _ in range(3):
        await brain.run(ASKED)
    assert words.texts
    assert not [text for text in words.texts if "@" in text]

    llm = ScriptedLLM([lambda messages: "About [email 1]"] * 20)
    summary = SummaryMemory(summarize=model_summarizer(llm), max_messages=4)
    brain = Brain("react", summary, llm=llm, hooks=[hook])
    for number in range(6):
        await brain.run(f"{ASKED} for the {number}th time, with many words and more")
    assert any("summar" in call.messages[0].content.lower() for call in llm.calls)
    assert not [m for call in llm.calls for m in call.messages if "@" in m.content]


async def test_recorded_calls_have_names(tmp_path: Any) -> None:
    memory = MessagesMemory(journal=tmp_path / "brain.db", session="ann")
    llm = ScriptedLLM(["Hello [email 1]"])
    brain = Brain("react", memory, llm=llm, hooks=[HidePersonalData()], trace=True)
    async with brain:
        await brain.run(ASKED)
        (call,) = await memory.recorded_calls()
    assert "@" not in json.dumps(call.to_dict())


@pytest.mark.also_on_trio
async def test_values_of_a_call_that_a_failing_run_cuts_off_are_forgotten() -> None:
    asked = anyio.Event()

    class Waiting(LLM):
        model = "waiting"

        async def stream(self, messages: Any, **_: Any) -> AsyncIterator[Any]:
            assert "@" not in messages[-1].content
            asked.set()
            await anyio.sleep_forever()
            yield "Never."

    class Failing(LLM):
        model = "failing"

        async def stream(self, messages: Any, **_: Any) -> AsyncIterator[Any]:
            await asked.wait()
            yield "It "
            raise ValueError("broken")

    class Both(State):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            said = [Message.user(ASKED)]
            yield Together([Waiting().call(said), Failing().call(said)])

        async def next_state(self, memory: Memory) -> None:
            return None

    hook, memory = HidePersonalData(), MessagesMemory()
    with pytest.raises(ValueError, match="broken"):
        await Brain(single(Both()), memory, hooks=[hook]).run(ASKED)
    assert hook._names[memory].calls == {}
