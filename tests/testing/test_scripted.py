"""A model that plays a script."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from agent_brain.memories import Message
from agent_brain.states import Finish, Usage
from agent_brain.testing import ScriptedLLM, ScriptError
from agent_brain.tools import Action
from tests.states.helpers import add

pytestmark = pytest.mark.anyio

CALL = Action(name="add", args={"a": 1})
USAGE = Usage(1, 2)
FINISH = Finish("length", {"signature": "abc"})
ASKED = [Message.user("What?")]


async def play(llm: ScriptedLLM, messages: Any = ASKED, **options: Any) -> list[Any]:
    return [piece async for piece in llm.stream(messages, **options)]


@pytest.mark.parametrize(
    ("turn", "pieces"),
    [
        ("text", ["text"]),
        ("", [""]),
        (CALL, [CALL]),
        (USAGE, [USAGE]),
        ([], []),
        (["a", CALL, "b", USAGE], ["a", CALL, "b", USAGE]),
        (("a", "b"), ["a", "b"]),
        (FINISH, [FINISH]),
        (["a", FINISH, USAGE], ["a", FINISH, USAGE]),
        (lambda messages: messages[0].content * 2, ["What?What?"]),
        (lambda messages: ["a", CALL], ["a", CALL]),
    ],
)
async def test_a_turn_streams_what_it_holds(turn, pieces):
    assert await play(ScriptedLLM([turn])) == pieces


async def test_each_call_plays_one_turn():
    llm = ScriptedLLM(["a", "b"])

    assert [await play(llm), await play(llm)] == [["a"], ["b"]]


@pytest.mark.parametrize("turn", [OSError("gone"), lambda messages: OSError("gone")])
async def test_an_exception_is_raised(turn):
    with pytest.raises(OSError, match="gone"):
        await play(ScriptedLLM([turn]))


async def test_an_exception_in_a_list_breaks_off_half_way():
    stream = ScriptedLLM([["a", OSError("gone"), "b"]]).stream(ASKED)

    assert await anext(stream) == "a"
    with pytest.raises(OSError, match="gone"):
        await anext(stream)


async def test_every_call_is_kept():
    class Shape(BaseModel):
        x: int

    llm = ScriptedLLM(["a"])
    messages = list(ASKED)
    await play(llm, messages, tools=[add], output_type=Shape)
    messages.clear()

    [call] = llm.calls
    assert (call.messages, call.tools, call.output_type) == (ASKED, (add,), Shape)


async def test_a_function_cannot_change_what_was_asked():
    def turn(messages: list[Message]) -> str:
        messages.clear()
        return "a"

    llm = ScriptedLLM([turn])
    await play(llm)

    assert llm.calls[0].messages == ASKED


@pytest.mark.parametrize(
    ("messages", "last"), [(ASKED, r"sent: 'What\?'"), ([], "sent: none")], ids=["some", "none"]
)
async def test_an_extra_call_is_an_error_that_shows_the_last_message(messages, last):
    llm = ScriptedLLM(["a"])
    await play(llm)

    with pytest.raises(ScriptError, match=rf"called 2 times, but the script has 1 turns\..*{last}"):
        await play(llm, messages)


async def test_an_unfinished_script_is_an_error_that_shows_the_next_turn():
    llm = ScriptedLLM(["a", "b", "c"])
    await play(llm)

    with pytest.raises(ScriptError, match="called only 1 times; the next turn would have been 'b'"):
        llm.assert_complete()


async def test_a_script_that_was_played_is_complete():
    llm = ScriptedLLM(["a"])
    await play(llm)

    llm.assert_complete()


async def test_without_native_calls_an_action_is_json_text():
    llm = ScriptedLLM([["Hm. ", CALL]], native=False)

    assert not llm.supports_tools
    assert await play(llm) == ["Hm. ", '{"name": "add", "args": {"a": 1}}']


@pytest.mark.parametrize("turn", [5, None, {"name": "add"}, ["a", 5], [None]])
async def test_an_invalid_turn_is_an_error(turn):
    with pytest.raises(ScriptError, match="turn"):
        await play(ScriptedLLM([turn]))


async def test_script_errors_are_failures_of_the_test():
    assert issubclass(ScriptError, AssertionError)


def test_a_script_whose_last_turn_was_not_played_is_not_complete() -> None:
    with pytest.raises(ScriptError, match="has 1 turns, but the model was called only 0 times"):
        ScriptedLLM(["One."]).assert_complete()
