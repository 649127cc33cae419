"""Whatever is done to a layered memory, it holds what a plain list would."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from agent_brain.memories import (
    LayeredMemory,
    Message,
    MessagesMemory,
    RamJournal,
    Role,
    StoredMemory,
    VectorMemory,
    WindowedMemory,
)
from agent_brain.memories.views.groups import (
    arranged,
    group,
    is_whole,
    with_partners,
)
from agent_brain.tools import Action
from tests.support.thorough import examples

few = settings(
    max_examples=examples(150), deadline=None, phases=[p for p in Phase if p is not Phase.explain]
)

KINDS = [
    *["say"] * 4,
    *["call"] * 3,
    *["call_while_somebody_writes"] * 2,
    "ask",
    "answer",
    *["goal"] * 2,
    "system",
    "pinned",
    "delete",
    "forget",
    "tag",
    "pin",
    "clear",
    "reopen",
    "reopen",
    "checkpoint",
    "half_a_step",
    "export",
    "crash_before_handing_over",
]
PINNED_BEHIND_A_CALL = [("call_while_somebody_writes", 0), ("pin", 1), ("export", 0)]
FEW = partial(VectorMemory, recent=2)
OPERATIONS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 99)), max_size=25)


@dataclass
class Model:
    """The same, as a list."""

    told: list[Message] = field(default_factory=list)
    goal: Message | None = None

    def messages(self) -> list[Message]:
        return arranged(self.told)

    def remove(self, ids: list[str]) -> None:
        self.told = [message for message in self.told if message.id not in ids]
        if self.goal is not None and self.goal.id in ids:
            self.goal = None

    def change(self, message_id: str, **fields: Any) -> None:
        self.told = [m.model_copy(update=fields) if m.id == message_id else m for m in self.told]
        if self.goal is not None and self.goal.id == message_id:
            self.goal = self.goal.model_copy(update=fields)


class Story:
    """Does the same to both, and compares."""

    def __init__(self, size: int, long: Callable[..., StoredMemory], journal: RamJournal | None):
        self.size, self.long, self.journal = size, long, journal
        self.model = Model()
        self.memory = self.make()

    def make(self) -> LayeredMemory:
        place: dict[str, Any] = {} if self.journal is None else {"journal": self.journal}
        short = WindowedMemory(max_messages=self.size, **place)
        long = self.long(session=json.dumps(["s", "long"]), **place)
        return LayeredMemory(short, long)

    async def tell(self, *messages: Message) -> None:
        self.model.told += messages
        await self.memory.update(list(messages))

    async def do(self, kind: str, number: int) -> None:
        await getattr(self, kind)(number)

    def choose(self, number: int) -> str:
        """The id of some message."""
        told = self.model.told
        return told[number % len(told)].id if told else "unknown"

    async def say(self, number: int) -> None:
        await self.tell(Message.assistant(f"{number}"), Message.user("yes"))

    async def call(self, number: int, *, between: bool = False) -> None:
        calls = [Action(name="look", args={}) for _ in range(1 + number % 2)]
        await self.tell(Message.assistant(f"{number}", calls))
        if between:
            await self.tell(Message.user("by the way"))
        await self.tell(*[Message.tool("done", call) for call in calls])

    async def call_while_somebody_writes(self, number: int) -> None:
        await self.call(number, between=True)

    async def ask(self, number: int) -> None:
        """Call tools; the results come later, or never."""
        calls = [Action(name="look", args={}) for _ in range(1 + number % 2)]
        await self.tell(Message.assistant(f"{number}", calls))

    async def answer(self, number: int) -> None:
        """Give a result of some call that has none."""
        told = self.model.told
        answered = {message.tool_call_id for message in told}
        missing = [c for m in told for c in m.tool_calls if c.id not in answered]
        if missing:
            await self.tell(Message.tool("at last", missing[number % len(missing)]))

    async def goal(self, number: int) -> None:
        goal = self.model.goal = Message.user(f"{number}")
        self.model.told.append(goal)
        await self.memory.set_goal(goal)

    async def system(self, number: int) -> None:
        await self.tell(Message.system(f"{number}"))

    async def pinned(self, number: int) -> None:
        await self.tell(Message.user(f"{number}", pinned=True))

    async def delete(self, number: int) -> None:
        gone = with_partners([self.choose(number)], self.model.told)
        assert await self.memory.delete(self.choose(number)) == len(gone)
        self.model.remove(gone)

    async def forget(self, number: int) -> None:
        text, told = f"{number}", self.model.told
        having = [m.id for m in told if any(text in each for each in (m.content, *m.tags))]
        gone = with_partners(having, told)
        forgotten = await self.memory.forget(text=text)
        assert forgotten >= len(gone), "with what was deleted before"
        self.model.remove(gone)

    async def tag(self, number: int) -> None:
        chosen = self.choose(number)
        assert await self.memory.tag(chosen, f"{number}") == (chosen != "unknown")
        tagged = await self.memory.get(chosen)
        if tagged is not None:
            assert f"{number}" in tagged.tags
            self.model.change(chosen, tags=tagged.tags)

    async def pin(self, number: int) -> None:
        await self.memory.pin(self.choose(number))
        self.model.change(self.choose(number), pinned=True)

    async def clear(self, number: int) -> None:
        assert await self.memory.clear() == len(self.model.told)
        self.model = Model()

    async def checkpoint(self, number: int) -> None:
        self.memory.control.step += 1
        await self.memory.checkpoint()

    async def export(self, number: int) -> None:
        data = json.loads(json.dumps(await self.memory.export()))
        await self.memory.update([Message.user("to be replaced") for _ in range(number % 5)])
        await self.memory.load(data)

    async def reopen(self, number: int) -> None:
        if self.journal is not None:
            self.memory = self.make()

    async def half_a_step(self, number: int) -> None:
        if self.journal is None:
            return
        self.memory.control.step += 1
        await self.memory.checkpoint()
        await self.memory.update([Message.assistant("half") for _ in range(number % 6)])
        self.memory = self.make()
        await self.memory.rollback()

    async def crash_before_handing_over(self, number: int) -> None:
        """The messages are in the short memory's journal, and did not reach the long one."""
        if self.journal is not None and self.journal.persistent:
            late = [Message.assistant("late") for _ in range(number % 6)]
            self.model.told += late
            await WindowedMemory(max_messages=self.size, journal=self.journal).update(late)
            self.memory = self.make()

    async def check(self) -> None:
        memory, wanted = self.memory, self.model.messages()
        found = await memory.messages()
        assert [m.content for m in found] == [m.content for m in wanted]
        assert found == wanted
        assert await memory.count() == len(wanted)
        goal = [] if self.model.goal is None else [self.model.goal]
        assert await memory.goal() == goal
        assert await memory.dump() == [m for m in wanted if m not in goal]
        assert {m.id for m in (await memory.find_news())[0]} == {m.id for m in wanted}
        assert all(m in wanted for m in await memory.turn())
        await self.check_context(wanted, goal)

    async def check_context(self, wanted: list[Message], goal: list[Message]) -> None:
        memory = self.memory
        shown = [m.id for m in await memory.context() if not m.metadata.get("recalled")]
        assert shown == [m.id for m in wanted if m.id in shown]
        groups = group(wanted)
        last = next((m.id for m in reversed(wanted) if m.role is Role.ASSISTANT), None)
        parts = [members for members in groups if not is_whole(members) and members[0].id != last]
        assert not {m.id for members in parts for m in members} & {*shown}
        whole = [members for members in groups if is_whole(members)]
        plain = not hasattr(memory.long, "recall")
        places = [{m.id for m in await part.messages()} for part in (memory.short, memory.long)]
        for members in whole:
            ids = {m.id for m in members}
            split = not any(ids <= place for place in places)  # the model spoke before the result
            if not split and (plain or any(m.pinned or m in goal for m in members)):
                assert ids <= {*shown}


def persistent() -> RamJournal:
    """Like a journal on disk: it keeps what has left a window."""
    journal = RamJournal()
    journal.persistent = True  # type: ignore[misc]
    return journal


@few
@given(
    OPERATIONS,
    st.sampled_from([1, 2, 3, 30]),
    st.sampled_from([MessagesMemory, VectorMemory, FEW]),
    st.sampled_from([lambda: None, RamJournal, persistent]),
)
@example([("say", 1), ("tag", 0), ("forget", 0)], 1, MessagesMemory, lambda: None)
@example([("say", 1), ("tag", 2), ("forget", 2)], 1, MessagesMemory, RamJournal)
@example([("goal", 0), ("say", 0), ("tag", 1)], 1, MessagesMemory, RamJournal)
@example(PINNED_BEHIND_A_CALL, 1, VectorMemory, lambda: None)
@example([("goal", 1), ("say", 1), ("say", 2), ("pin", 1), ("export", 0)], 1, FEW, lambda: None)
@example([("goal", 0), *[("ask", 0)] * 3, ("pin", 1)], 3, VectorMemory, lambda: None)
@example([("ask", 0), ("say", 0), ("answer", 0), ("half_a_step", 1)], 1, MessagesMemory, RamJournal)
def test_layers_hold_what_a_list_would(operations, size, long, journal) -> None:
    async def run() -> None:
        story = Story(size, long, journal())
        for kind, number in operations:
            await story.do(kind, number)
            await story.check()

    anyio.run(run)
