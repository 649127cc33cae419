"""What a subclass of a built-in memory replaces is what a run uses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, Memory, MessagesMemory, react
from agent_brain.memories import (
    DurableMemory,
    LayeredMemory,
    MemoryUseError,
    Message,
    SQLiteJournal,
    SummaryMemory,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
    WrappingMemory,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio


class Redacts:
    """Hides a secret in what a memory is given."""

    async def set_goal(self, goal: str | Message) -> None:
        assert isinstance(goal, Message)
        await super().set_goal(hidden(goal))  # type: ignore[misc]

    async def update(self, messages: list[Message]) -> None:
        await super().update([hidden(message) for message in messages])  # type: ignore[misc]


def hidden(message: Message) -> Message:
    return message.model_copy(update={"content": message.content.replace("4711", "****")})


def of(kind: type[Memory]) -> Any:
    return type(f"Redacting{kind.__name__}", (Redacts, kind), {})


def own_wrapper(**options: Any) -> Memory:
    return of(WrappingMemory)(MessagesMemory(**options))


MEMORIES: dict[str, Callable[..., Memory]] = {
    **{
        kind.__name__: of(kind)
        for kind in (MessagesMemory, WindowedMemory, SummaryMemory, VectorMemory)
    },
    "a wrapper": own_wrapper,
    "inside a wrapper": lambda **options: WrappingMemory(of(MessagesMemory)(**options)),
    "TodoMemory": lambda **options: of(TodoMemory)(MessagesMemory(**options)),
    "inside TodoMemory": lambda **options: TodoMemory(of(MessagesMemory)(**options)),
    "LayeredMemory": lambda **options: of(LayeredMemory)(
        WindowedMemory(**options), MessagesMemory()
    ),
    "inside LayeredMemory": lambda **options: LayeredMemory(
        of(WindowedMemory)(**options), MessagesMemory()
    ),
    "DurableMemory": lambda **options: of(DurableMemory)(MessagesMemory, **options),
}


async def run(memory: Memory) -> list[str]:
    call = Action(name="f")
    await memory.update([Message.assistant(tool_calls=call)])
    memory.control.request_calls([call])  # left open by an earlier run
    llm = ScriptedLLM(["The PIN 4711 is wrong."])
    result = await Brain(react(llm), memory).run("Is my PIN 4711?")
    return [message.content for message in result.messages + list(llm.calls[0].messages)]


@pytest.mark.parametrize("stored", [False, True], ids=["ram", "sqlite"])
@pytest.mark.parametrize("name", MEMORIES)
async def test_a_run_sets_its_goal_as_the_subclass_does(
    name: str, stored: bool, tmp_path: Path
) -> None:
    options = {"journal": tmp_path / "a.db"} if stored else {}
    async with MEMORIES[name](**options) as memory:
        texts = await run(memory)
        assert "Is my PIN ****?" in texts
        assert not any("4711" in text for text in texts)
        assert (await memory.turns())[-1].run_id == memory.control.run_id
    if stored:
        assert b"Is my PIN 4711?" not in (tmp_path / "a.db").read_bytes()


async def test_a_method_that_is_replaced_after_a_run_is_used_by_the_next() -> None:
    class Own(MessagesMemory):
        """Replaces nothing yet."""

    async def set_goal(self: Own, goal: str | Message) -> None:
        assert isinstance(goal, Message)
        await MessagesMemory.set_goal(self, hidden(goal))

    memory = Own()
    await run(memory)
    Own.set_goal = set_goal  # type: ignore[method-assign, assignment]
    assert (await run(memory))[0] == "Is my PIN ****?"


async def test_a_member_of_a_team_sets_its_goal_as_its_memory_does() -> None:
    from agent_brain.memories import SharedMemory

    shared = SharedMemory()
    own = of(MessagesMemory)()
    member = shared.member("ann", memory=own)
    await Brain(react(ScriptedLLM(["No."])), member).run("Is my PIN 4711?")
    assert [message.content for message in await own.messages()] == ["Is my PIN ****?", "No."]


@pytest.mark.parametrize("name", ["MessagesMemory", "a wrapper", "inside a wrapper"])
async def test_the_goal_and_the_beginning_of_the_run_are_one_write(
    name: str, tmp_path: Path
) -> None:
    async with SQLiteJournal(tmp_path / "a.db") as store:
        journal = MortalJournal(store, 1, after=True)
        memory = MEMORIES[name](journal=journal)
        with pytest.raises(Killed):
            await Brain(react(ScriptedLLM(["No."])), memory).run("Is my PIN 4711?")
        async with MEMORIES[name](journal=store) as again:
            assert (await Brain(react(ScriptedLLM(["No."])), again).resume()).answer == "No."


class GoalsAsMessages(MessagesMemory):
    """Keeps its goals otherwise than a built-in memory."""

    async def set_goal(self, goal: str | Message) -> None:
        await self.update([goal if isinstance(goal, Message) else Message.user(goal)])

    async def goal(self) -> list[Message]:
        return [m for m in await self.messages() if m.role == "user"][-1:]


@pytest.mark.parametrize("over", [GoalsAsMessages, lambda: WrappingMemory(GoalsAsMessages())])
async def test_a_goal_that_is_kept_otherwise_follows_the_results_of_open_calls(
    over: Callable[[], Memory],
) -> None:
    memory = over()
    await run(memory)
    roles = [message.role.value for message in await memory.dump()]
    assert roles == ["assistant", "tool", "user", "assistant"]


async def test_a_goal_that_is_kept_otherwise_begins_a_run_too() -> None:
    memory = GoalsAsMessages()
    result = await Brain(react(ScriptedLLM(["No."])), memory).run("Is it?")
    assert (result.answer, memory.control.run_id) == ("No.", result.run_id)


class Counted(MessagesMemory):
    """Counts the words that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.words: dict[str, int] = {}

    async def update(self, messages: list[Message]) -> Any:
        for word in " ".join(message.content for message in messages).split():
            self.words[word] = self.words.get(word, 0) + 1
        return await super().update(messages)


@pytest.mark.parametrize("copy", ["fork", "branch"])
async def test_a_copy_has_its_own_containers(copy: str) -> None:
    memory = Counted()
    await memory.update([Message.user("one")])
    copied = await (memory.fork() if copy == "fork" else memory.branch("b"))
    assert isinstance(copied, Counted)
    await copied.update([Message.user("one two")])
    assert (memory.words, copied.words) == ({"one": 1}, {"one": 2, "two": 1})


class Picklable(MessagesMemory):
    """Says what is pickled of it, as a class that holds a lock does."""

    def __getstate__(self) -> object:
        return dict(vars(self))


async def test_a_copy_is_free_in_a_run_of_a_memory_that_says_what_is_pickled_of_it() -> None:
    memory, answers = Picklable(), []

    async def look() -> str:
        """Look."""
        copied = await memory.fork()
        assert not copied.busy
        result = await Brain(react(ScriptedLLM(["Inside."])), copied).run("And there?")
        answers.append(result.answer)
        return "seen"

    llm = ScriptedLLM([Action(name="look", args={}), "Done."])
    await Brain(react(llm), memory, [look]).run("Look.")
    assert answers == ["Inside."]


@pytest.mark.parametrize("name", MEMORIES)
async def test_what_is_no_message_is_refused_before_a_subclass_gets_it(name: str) -> None:
    memory = MEMORIES[name]()
    with pytest.raises(MemoryUseError, match="is not one"):
        await memory.begin(Message.user("goal"), "run", "START", before=["x"])  # type: ignore[list-item]
    assert await memory.goal() == []
