"""Every place in a session that can hold a text, and what puts one there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any, TypeAlias

from agent_brain import Brain, Limits, Message, MessagesMemory, react, tool
from agent_brain.errors import InputNeeded
from agent_brain.memories import Journal
from agent_brain.nets import Net, ParallelState
from agent_brain.testing import ModelCall
from agent_brain.tools import Action
from tests.nets.models import FunctionLLM

SECRET = "zebra-4711"
TEXT = SECRET.upper()  # case does not matter
Put: TypeAlias = Callable[[Journal], Awaitable[object]]


class Outer(Enum):
    ALL = "all"


@tool(requires_approval=True)
def pay(to: str) -> str:
    """Pay."""
    return f"paid {to}"


@tool
def look(at: str) -> str:
    """Look."""
    return f"saw {at}"


@tool
def fails(at: str) -> str:
    """Fail."""
    raise RuntimeError(f"no {at}")


@tool
def ask(about: str) -> str:
    """Ask."""
    raise InputNeeded(f"Which {about}?")


@tool(max_result_tokens=20)
def lists(what: str) -> str:
    """List much."""
    return f"{'many ' * 100}{SECRET}{' many' * 100}"


TOOLS = [pay, look, fails, ask, lists]


def said(*replies: Any) -> FunctionLLM:
    """A model that gives these replies to the rounds of a run, and then the last one."""

    def reply(call: ModelCall) -> Any:
        rounds = sum(m.role == "tool" for m in call.messages)
        return replies[min(rounds, len(replies) - 1)]

    return FunctionLLM(reply)


def breaks(call: ModelCall) -> Any:
    """A model that calls a tool and then fails."""
    if any(m.role == "tool" for m in call.messages):
        raise RuntimeError("the provider is down")
    return Action(name="look", args={"at": SECRET})


def brain(journal: Journal, llm: Any, **options: Any) -> Brain:
    memory = MessagesMemory(journal=journal)
    return Brain(react(llm), memory, TOOLS, trace=True, **options)


def update(**fields: Any) -> Put:
    async def put(journal: Journal) -> None:
        await MessagesMemory(journal=journal).update([Message.user("hi", **fields)])

    return put


async def content(journal: Journal) -> None:
    await MessagesMemory(journal=journal).update([Message.user(f"I am {SECRET}.")])


async def tag(journal: Journal) -> None:
    memory = MessagesMemory(journal=journal)
    await memory.update([Message.user("hi", id="1"), Message.user("ho", id="2")])
    await memory.tag(["1"], SECRET, "other")


async def tag_that_was_removed(journal: Journal) -> None:
    memory = MessagesMemory(journal=journal)
    await memory.update([Message.user("hi", id="1"), Message.user("ho", id="2")])
    await memory.tag(["1", "2"], SECRET, "other")
    await memory.untag(["1", "2"], SECRET)


async def deleted_message(journal: Journal) -> None:
    memory = MessagesMemory(journal=journal)
    await memory.update([Message.user(f"I am {SECRET}.", id="1"), Message.user("ho")])
    await memory.delete("1")


async def kept_value(journal: Journal) -> None:
    memory = MessagesMemory(journal=journal)
    await memory.keep("profile", {"of": [SECRET]})


async def session_note(journal: Journal) -> None:
    memory = MessagesMemory(journal=journal)
    await memory.set_goal("hi")
    memory.control.session["who"] = {"is": SECRET}
    await memory.checkpoint()


async def scratch(journal: Journal) -> None:
    memory = MessagesMemory(journal=journal)
    await memory.set_goal("hi")
    memory.control.begin("run", "REASON")
    memory.control.scratch["plan"] = [f"find {SECRET}"]
    await memory.checkpoint()


async def arguments(journal: Journal) -> None:
    await brain(journal, said(Action(name="look", args={"at": SECRET}), "Done.")).run("go")


async def full_text_of_a_cut_result(journal: Journal) -> None:
    await brain(journal, said(Action(name="lists", args={"what": "all"}), "Done.")).run("go")


async def error_of_a_tool(journal: Journal) -> None:
    await brain(journal, said(Action(name="fails", args={"at": SECRET}), "Done.")).run("go")


async def waiting_call(journal: Journal) -> None:
    await brain(journal, said(Action(name="pay", args={"to": SECRET}), "Done.")).run("go")


async def edited_arguments(journal: Journal) -> None:
    ran = brain(journal, said(Action(name="pay", args={"to": "Ann"}, id="pay"), "Done."))
    await ran.run("go")
    await ran.resume(edit={"pay": {"to": SECRET}})


async def edited_arguments_of_a_run_that_waits(journal: Journal) -> None:
    calls = [Action(name="pay", args={"to": to}, id=to) for to in ("ann", "bob")]
    ran = brain(journal, said(calls, "Done."))
    await ran.run("go")
    await ran.resume(edit={"ann": {"to": SECRET}})


async def reason_of_a_refusal(journal: Journal) -> None:
    calls = [Action(name="pay", args={"to": to}, id=to) for to in ("ann", "bob")]
    ran = brain(journal, said(calls, "Done."))
    await ran.run("go")
    await ran.resume(deny={"ann": f"not to {SECRET}"})


async def question(journal: Journal) -> None:
    await brain(journal, said(Action(name="ask", args={"about": SECRET}), "Done.")).run("go")


async def answer(journal: Journal) -> None:
    calls = [Action(name="ask", args={"about": about}, id=about) for about in ("a", "b")]
    ran = brain(journal, said(calls, "Done."))
    await ran.run("go")
    await ran.resume(input={"a": SECRET})


async def recorded_call(journal: Journal) -> None:
    net = react(said("Done."), prompt=f"You work for {SECRET}.")
    await Brain(net, MessagesMemory(journal=journal), TOOLS, trace=True).run("go")


async def failure(journal: Journal) -> None:
    def reply(_: ModelCall) -> Any:
        raise RuntimeError(f"no key for {SECRET}")

    try:
        await brain(journal, FunctionLLM(reply)).run("go")
    except RuntimeError:
        return
    raise AssertionError


async def branch_of_a_failed_run(journal: Journal) -> None:
    net = Net({Outer.ALL: ParallelState({"a": react(FunctionLLM(breaks))})})
    try:
        await Brain(net, MessagesMemory(journal=journal), TOOLS, trace=True).run("go")
    except RuntimeError:
        return
    raise AssertionError


def nested(llm: Any, depth: int = 1) -> Brain:
    inside = Brain(react(llm), MessagesMemory(), TOOLS)
    for _ in range(depth - 1):
        call = Action(name="expert", args={"task": "help"})
        expert = inside.as_tool("expert", "Help.")
        inside = Brain(react(said(call, "Done.")), MessagesMemory(), [expert])
    return inside


def over_nested(journal: Journal, llm: Any, depth: int = 1, **options: Any) -> Brain:
    call = Action(name="expert", args={"task": "help"}, id="expert")
    expert = nested(llm, depth).as_tool("expert", "Help.")
    net, memory = react(said(call, "Done.")), MessagesMemory(journal=journal)
    return Brain(net, memory, [expert], trace=True, **options)


async def nested_brain_that_waits(journal: Journal) -> None:
    calls = [
        Action(name="look", args={"at": SECRET}),
        Action(name="pay", args={"to": "Ann"}),
    ]
    await over_nested(journal, said(*calls, "Done.")).run("go")


async def nested_brain_in_a_nested_brain(journal: Journal) -> None:
    calls = [
        Action(name="look", args={"at": SECRET}),
        Action(name="pay", args={"to": "Ann"}),
    ]
    await over_nested(journal, said(*calls, "Done."), depth=2).run("go")


async def nested_brain_of_a_run_that_ended(journal: Journal) -> None:
    calls = [Action(name="look", args={"at": SECRET}), "Done."]
    await over_nested(journal, said(*calls), limits=Limits(max_tool_calls=1)).run("go")


async def branch_that_waits(journal: Journal) -> None:
    llm = said(Action(name="look", args={"at": SECRET}), Action(name="pay", args={"to": "Ann"}))
    net = Net({Outer.ALL: ParallelState({"a": react(llm)})})
    await Brain(net, MessagesMemory(journal=journal), TOOLS, trace=True).run("go")


PLACES: Mapping[str, Put] = {
    "content": content,
    "name": update(name=SECRET),
    "tag of a message": update(tags={SECRET}),
    "metadata": update(metadata={"of": {SECRET: 1}}),
    "sender": update(sent_from=SECRET),
    "receiver": update(send_to=(SECRET,)),
    **{
        place.__name__.replace("_", " "): place
        for place in (
            tag, tag_that_was_removed, deleted_message, kept_value, session_note, scratch,
            arguments, full_text_of_a_cut_result, error_of_a_tool, waiting_call, edited_arguments,
            edited_arguments_of_a_run_that_waits, reason_of_a_refusal, question, answer,
            recorded_call, failure, branch_of_a_failed_run, nested_brain_that_waits,
            nested_brain_in_a_nested_brain, nested_brain_of_a_run_that_ended, branch_that_waits,
        )
    },
}  # fmt: skip
