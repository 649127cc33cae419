"""What a fake memory asserts, and how it explains a difference."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain import Message
from agent_brain.testing import FakeMemory
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio

ADD = Action(name="add", args={"a": 1, "b": 2})


def preloaded() -> FakeMemory:
    messages = [Message.user("Hi", name="Ann"), Message.assistant("Let me see.", [ADD])]
    return FakeMemory("What is 1 + 2?", messages, next_actions=[ADD])


async def test_equal_messages_pass_whatever_their_ids() -> None:
    memory = preloaded()
    again = Action(name="add", args={"b": 2, "a": 1})
    memory.assert_goal("What is 1 + 2?")
    memory.assert_goal(Message.user("What is 1 + 2?"))
    memory.assert_next_actions([again])
    memory.assert_messages(
        [Message.user("Hi", name="Ann"), Message.assistant("Let me see.", [again])]
    )
    memory.assert_not_updated()
    await memory.update([Message.tool("3", ADD)])
    await memory.update([Message.assistant("It is 3.")])
    memory.assert_updated()
    memory.assert_updated(Message.tool("3", again), Message.assistant("It is 3."))
    FakeMemory().assert_goal(None)


DIFFERENCES: dict[str, tuple[Any, str]] = {
    "a text": (
        lambda m: m.assert_messages(
            [Message.user("Ho", name="Ann"), Message.assistant("Let me see.", [ADD])]
        ),
        "The memory holds different messages (- expected, + found):\n  - user Ann: Ho\n  + user Ann: Hi\n    assistant: Let me see.\n        -> add(a=1, b=2)",
    ),
    "arguments": (
        lambda m: m.assert_messages(
            [
                Message.user("Hi", name="Ann"),
                Message.assistant("Let me see.", [Action(name="add", args={"a": 1})]),
            ]
        ),
        "  -     -> add(a=1)\n  +     -> add(a=1, b=2)",
    ),
    "a missing message": (lambda m: m.assert_messages([]), "  + user Ann: Hi\n"),
    "another order": (
        lambda m: m.assert_messages(
            [Message.assistant("Let me see.", [ADD]), Message.user("Hi", name="Ann")]
        ),
        "- expected, + found",
    ),
    "an error": (
        lambda m: FakeMemory("x", [Message.tool("3", ADD)]).assert_messages(
            [Message.tool("3", ADD, is_error=True)]
        ),
        "  - tool add (error): 3\n  + tool add: 3",
    ),
    "nothing added": (
        lambda m: m.assert_updated(Message.assistant("", [ADD])),
        "Different messages were added (- expected, + found):\n  - assistant: -> add(a=1, b=2)",
    ),
    "nothing added at all": (lambda m: m.assert_updated(), "Different messages were added"),
    "the goal": (lambda m: m.assert_goal("x"), "  - user: x\n  + user: What is 1 + 2?"),
    "no goal": (lambda m: m.assert_goal(None), "The goal is different"),
    "calls": (
        lambda m: m.assert_next_actions([Action(name="sub", args={"x": "y"}), ADD]),
        'Different calls wait to run (- expected, + found):\n  - sub(x="y")\n    add(a=1, b=2)',
    ),
}


@pytest.mark.parametrize("name", DIFFERENCES)
async def test_a_difference_is_explained(name: str) -> None:
    check, said = DIFFERENCES[name]
    with pytest.raises(AssertionError) as caught:
        check(preloaded())
    assert said in str(caught.value)


async def test_unexpected_messages_are_shown() -> None:
    memory = preloaded()
    await memory.update([Message.tool("oh no", ADD, is_error=True)])
    with pytest.raises(
        AssertionError, match=r"Messages were added .*\n  \+ tool add \(error\): oh no"
    ):
        memory.assert_not_updated()


async def test_an_empty_message_and_a_message_of_lines_are_shown_too() -> None:
    memory = FakeMemory("x", [Message.assistant(""), Message.user("a\nb")])
    with pytest.raises(
        AssertionError, match=r"\+ assistant: \(nothing\)\n  \+ user: a\n  \+     b"
    ):
        memory.assert_messages([])


async def test_lines_that_look_the_same_are_distinguished() -> None:
    memory = FakeMemory("x", [Message.user("a\n")])
    with pytest.raises(AssertionError, match=r"- .*'a'.*\n  \+ .*'a\\n'"):
        memory.assert_messages([Message.user("a")])
