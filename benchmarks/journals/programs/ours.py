"""Agent Brain: runs over a `MessagesMemory` with a journal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

from agent_brain import LLM, Brain, Message, MessagesMemory, Net, SQLiteJournal, State, react, tool
from agent_brain.memories import Journal, PostgresJournal, RamJournal, RedisJournal
from agent_brain.tools import Action, BaseTool
from benchmarks.journals.places import Place
from benchmarks.journals.texts import text
from benchmarks.workloads import UNLIMITED, Counting, Hop, Two, add


class Say(State):
    """Adds a message at each step, and fails at one of them."""

    def __init__(self, other: Two, steps: int, characters: int, fails_at: int | None) -> None:
        self.other = other
        self.steps = steps
        self.characters = characters
        self.fails_at = fails_at

    async def run(self, memory: Any) -> AsyncIterator[str]:
        if memory.control.step == self.fails_at:
            raise RuntimeError("interrupted")
        said = text(memory.control.step, self.characters)
        yield said
        await memory.update([Message.assistant(said)])

    async def next_state(self, memory: Any) -> Two | None:
        return self.other if memory.control.step < self.steps - 1 else None


class Requesting(LLM):
    """Requests a number of results at once, and then answers."""

    def __init__(self, calls: int, characters: int) -> None:
        self.calls = calls
        self.characters = characters

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: Any = None,
    ) -> AsyncIterator[Any]:
        if messages[-1].content != "go":
            yield "done"
            return
        for number in range(self.calls):
            yield Action(name="fetch", args={"number": number, "characters": self.characters})


@tool
async def fetch(number: int, characters: int) -> str:
    """Fetch a text."""
    return text(number, characters)


def saying(steps: int, characters: int, fails_at: int | None = None) -> Net:
    first = Say(Two.B, steps, characters, fails_at)
    return Net({Two.A: first, Two.B: Say(Two.A, steps, characters, fails_at)})


class Runs:
    """Runs over one journal, each over a new session."""

    def __init__(self, journal: Journal | None) -> None:
        self.journal = journal

    def memory(self, session: str, tools: Sequence[BaseTool] = ()) -> MessagesMemory:
        if self.journal is None:
            return MessagesMemory(tools)
        return MessagesMemory(tools, journal=self.journal, session=session)

    async def run(self, net: Net, tools: Sequence[BaseTool] = ()) -> Any:
        async with self.memory(uuid4().hex, tools) as memory:
            return await Brain(net, memory, limits=UNLIMITED).run("go")

    async def hops(self, steps: int) -> None:
        net = Net({Two.A: Hop(Two.B, steps - 1), Two.B: Hop(Two.A, steps - 1)})
        assert (await self.run(net)).steps == steps

    async def react(self, rounds: int) -> None:
        assert (await self.run(react(Counting(rounds)), [add])).answer == "word " * 10

    async def say(self, steps: int, characters: int) -> None:
        assert (await self.run(saying(steps, characters))).steps == steps

    async def fan_out(self, calls: int, characters: int) -> None:
        result = await self.run(react(Requesting(calls, characters)), [fetch])
        assert sum(len(message.content) for message in result.messages) > calls * characters

    async def fill(self, messages: int, characters: int) -> str:
        """Return a session with messages."""
        session = uuid4().hex
        async with self.memory(session) as memory:
            await memory.set_goal("go")
            for start in range(0, messages, 250):
                numbers = range(start, min(start + 250, messages))
                await memory.update([Message.assistant(text(n, characters)) for n in numbers])
        return session

    async def open(self, session: str) -> Callable[[], Awaitable[int]]:
        """Open a session, and return what reads and counts its messages."""
        memory = self.memory(session)
        await memory.open()

        async def read() -> int:
            count = len(await memory.context())
            await memory.aclose()
            return count

        return read

    async def interrupt(self, step: int, characters: int) -> str:
        """Return a session whose run was interrupted at a step."""
        session = uuid4().hex
        async with self.memory(session) as memory:
            brain = Brain(saying(step + 1, characters, step), memory, limits=UNLIMITED)
            try:
                await brain.run("go")
            except Exception:
                return session
        raise AssertionError("the run was not interrupted")

    async def resume(self, session: str, step: int, characters: int) -> AsyncIterator[Any]:
        """Yield the events of a resumed run."""
        async with self.memory(session) as memory:
            brain = Brain(saying(step + 1, characters), memory, limits=UNLIMITED)
            async with brain.stream_resume() as run:
                async for event in run:
                    yield event


@asynccontextmanager
async def connected(storage: str, durability: Any, place: Place) -> AsyncIterator[Runs]:
    """Yield what runs over a place; sessions in RAM end with it."""
    made: dict[str, Callable[[], Journal]] = {
        "ram": RamJournal,
        "sqlite": lambda: SQLiteJournal(place.address, durability=durability),
        "postgres": lambda: PostgresJournal(place.address, durability=durability),
        "redis": lambda: RedisJournal(place.address, prefix=place.prefix, durability=durability),
    }
    async with AsyncExitStack() as stack:
        make = made.get(storage)
        yield Runs(await stack.enter_async_context(make()) if make else None)
