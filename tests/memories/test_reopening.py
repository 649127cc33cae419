"""Whatever has happened, a memory that is opened again shows what the one before showed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from agent_brain.memories import (
    Journal,
    LayeredMemory,
    Memory,
    Message,
    MessagesMemory,
    RamJournal,
    Recent,
    Role,
    StoredMemory,
    SummaryMemory,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
)
from agent_brain.tools import Action
from tests.support.thorough import examples

pytestmark = pytest.mark.anyio
few = settings(
    max_examples=examples(25),
    deadline=None,
    phases=[phase for phase in Phase if phase is not Phase.explain],
    suppress_health_check=[HealthCheck.too_slow],
)


class Durable(RamJournal):
    """Like a journal on disk: it keeps what has left a window."""

    persistent = True


def layered(long: Callable[..., StoredMemory], journal: Journal) -> LayeredMemory:
    return LayeredMemory(
        WindowedMemory(max_messages=3, journal=journal),
        long(journal=journal, session="long"),
    )


MEMORIES: dict[str, Callable[[Journal], Any]] = {
    "messages": lambda journal: MessagesMemory(journal=journal),
    "windowed": lambda journal: WindowedMemory(max_messages=3, journal=journal),
    "windowed by tokens": lambda journal: WindowedMemory(max_tokens=120, journal=journal),
    "vector": lambda journal: VectorMemory(recent=3, k=2, journal=journal),
    "vector by tokens": lambda journal: VectorMemory(recent=9, max_tokens=90, journal=journal),
    "recent": lambda journal: StoredMemory(views=[Recent(3)], journal=journal),
    "summary": lambda journal: SummaryMemory(max_messages=4, journal=journal),
    "summary by tokens": lambda journal: SummaryMemory(max_tokens=120, journal=journal),
    "layered": lambda journal: layered(MessagesMemory, journal),
    "layered, recalling": lambda journal: layered(VectorMemory, journal),
    "todo": lambda journal: TodoMemory(WindowedMemory(max_tokens=120, journal=journal)),
}

KINDS = [
    *["say"] * 3,
    *["long"] * 2,
    *["call"] * 3,
    "late",
    "abandoned",
    *["goal"] * 2,
    "turn",
    "system",
    "pinned",
    *["forget"] * 4,
    "forget by text",
    "delete",
    "pin",
    "unpin",
    "tag",
    "keep",
    "erase",
    "prune",
    "clear",
    "checkpoint",
    "reopen",
]
OPERATIONS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 99)), max_size=25)

GONE_WITH_A_CALL = [  # a window keeps what came after a call without results until the call goes
    *[("say", 0)] * 5,
    *[(kind, 0) for kind in ("goal", "system", "abandoned", "long", "long")],
]


class Story:
    """Does one thing after the other to a memory."""

    def __init__(self, make: Callable[[Journal], Any], journal: Journal) -> None:
        self.make, self.journal = make, journal
        self.memory = make(journal)
        self.said = 0

    def message(self, role: str, text: str, **fields: Any) -> Message:
        self.said += 1
        return Message(id=f"m{self.said}", role=Role(role), content=text, **fields)

    async def do(self, kind: str, number: int) -> None:
        if kind == "reopen":
            self.memory = self.make(self.journal)
        elif kind in ("say", "long", "system", "pinned", "call", "late", "abandoned"):
            await self.tell(kind, number)
        else:
            await self.change(kind, number)

    async def tell(self, kind: str, number: int) -> None:
        memory = self.memory
        match kind:
            case "say":
                await memory.update([self.message("assistant", f"say {number}")])
            case "long":
                await memory.update([self.message("user", f"{number} words " * (1 + number))])
            case "system" | "pinned":
                role = "system" if kind == "system" else "user"
                text = f"{kind} {number}"
                await memory.update([self.message(role, text, pinned=kind == "pinned")])
            case "call" | "late" | "abandoned":
                calls = [Action(name="look", args={"at": n}) for n in range(1 + number % 2)]
                results = [self.message("tool", "word " * number, tool_call_id=c.id) for c in calls]
                pinned = number % 5 == 0
                asking = self.message("assistant", "hm", tool_calls=tuple(calls), pinned=pinned)
                await memory.update([asking])
                if kind == "late":
                    await memory.update([self.message("user", "by the way")])
                await memory.update(results if kind != "abandoned" else [])

    async def change(self, kind: str, number: int) -> None:
        memory = self.memory
        held = await memory.messages()
        chosen = held[number % len(held)].id if held else "unknown"
        match kind:
            case "goal":
                await memory.set_goal(self.message("user", f"goal {number}"))
            case "turn":
                await memory.begin(self.message("user", f"turn {number}"), f"run {number}", "START")
            case "forget":
                await memory.forget(chosen)
            case "forget by text":
                await memory.forget(text=f"{number % 10}")
            case "delete" | "pin" | "unpin":
                await getattr(memory, kind)(chosen)
            case "tag":
                await memory.tag(chosen, f"{number}")
            case "keep" | "erase":
                shown: Any = {"shown": "list " * number} if number % 3 else None
                await memory.keep("list", shown, erase=kind == "erase")
            case "prune":
                for _ in range(130):
                    memory.control.step += 1
                    await memory.checkpoint()
            case "clear":
                await memory.clear(keep="pinned" if number % 2 else None)
            case "checkpoint":
                memory.control.step += 1
                await memory.checkpoint()

    async def check(self) -> None:
        shown = await self.memory.context()
        later: Memory = self.make(self.journal)
        again = await later.context()
        assert [m.content for m in again] == [m.content for m in shown]
        assert [*map(untimed, again)] == [*map(untimed, shown)]
        assert await later.goal() == await self.memory.goal()
        assert await later.turn() == await self.memory.turn()


def untimed(message: Message) -> dict[str, Any]:
    """What a message says; what is written for the context has another ID and time."""
    made = message.cause_by is not None or "recalled" in message.metadata
    return message.model_dump(exclude={"id", "created_at"} if made else set())


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("journal", [Durable, RamJournal])
@few
@given(operations=OPERATIONS)
@example(operations=[*[("say", n) for n in range(6)], ("forget", 4)])
@example(operations=[*GONE_WITH_A_CALL, ("forget", 7)])
@example(operations=[*GONE_WITH_A_CALL, ("delete", 7)])
def test_a_memory_shows_the_same_when_it_is_opened_again(name, journal, operations) -> None:
    async def run() -> None:
        story = Story(MEMORIES[name], journal())
        for kind, number in operations:
            await story.do(kind, number)
            await story.check()

    anyio.run(run)


@pytest.mark.parametrize("journal", [Durable, RamJournal])
async def test_a_question_that_has_expired_stands_before_its_answers(journal) -> None:
    now = datetime(2024, 5, 1, tzinfo=UTC)
    kept = journal()

    def make() -> LayeredMemory:
        options: dict[str, Any] = {"journal": kept, "ttl": 60, "clock": lambda: now}
        return LayeredMemory(
            WindowedMemory(max_messages=2, **options), MessagesMemory(session="long", **options)
        )

    memory = make()
    await memory.set_goal(Message.user("question", created_at=now))
    later = now + timedelta(seconds=50)
    for number in range(200):
        await memory.update([Message.assistant(f"{number}", created_at=later)])
    await memory.checkpoint()
    now += timedelta(seconds=70)
    wanted = ["question", *map(str, range(200))]
    for opened in (memory, make()):
        assert [m.content for m in await opened.context()] == wanted
        assert [m.content for m in await opened.messages()] == wanted
