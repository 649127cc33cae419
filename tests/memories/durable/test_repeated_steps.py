"""What a step that is repeated after a kill finds in the registers of its run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Any

import pytest

from agent_brain import Brain, Memory, Message, MessagesMemory, Net, State, ToolContext, tool
from agent_brain.memories import RamJournal
from agent_brain.states import StreamItem
from agent_brain.states.tool_round import ToolRound
from agent_brain.tools import Action
from tests.support.journals import Killed, MortalJournal

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


class Only(Enum):
    ONE = "one"


class Found:
    """What each repetition of the step has found."""

    def __init__(self) -> None:
        self.notes: list[tuple[Any, ...]] = []
        self.open_calls: list[int] = []


class Count(State):
    """Counts, then makes some rounds of calls, all in one step."""

    def __init__(self, found: Found, rounds: list[list[str]]) -> None:
        self.found = found
        self.rounds = rounds

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        control = memory.control
        notes = control.scratch
        self.found.notes.append((notes.get("n"), control.session.get("n"), notes.get("seen")))
        self.found.open_calls.append(len(control.next_actions))
        notes["n"] = notes.get("n", 0) + 1
        control.session["n"] = control.session.get("n", 0) + 1
        for names in self.rounds:
            calls = [Action(name=name, args={}) for name in names]
            await memory.update([Message.assistant("", tool_calls=calls)])
            control.request_calls(calls)
            yield ToolRound(memory, "Count", max_concurrency=1)
            notes.setdefault("rounds", []).append(len(names))

    async def next_state(self, memory: Memory) -> None:
        return None


class Life:
    """A run whose journal dies at one of its writes, and which is then resumed."""

    def __init__(self, rounds: list[list[str]]) -> None:
        self.found, self.store = Found(), RamJournal()
        self.looked = 0

        @tool
        async def look(context: ToolContext) -> str:
            """Look, and note that in the scratch data."""
            self.looked += 1
            assert context.memory is not None
            scratch = context.memory.control.scratch
            scratch["seen"] = scratch.get("seen", 0) + 1
            return "seen"

        @tool
        async def rest() -> str:
            """Do nothing."""
            return "rested"

        self.net = Net({Only.ONE: Count(self.found, rounds)})
        self.tools = [look, rest]

    async def live(self, dies_at: int, *, after: bool) -> MessagesMemory | None:
        """Return the memory of the resumed run; None if the first one was not killed in it."""
        journal = MortalJournal(self.store, dies_at, after=after)
        try:
            await Brain(self.net, MessagesMemory(self.tools, journal=journal)).run("go")
        except Killed:
            memory = MessagesMemory(self.tools, journal=self.store)
            await memory.open()
            if memory.control.run_id is None:
                return None
            result = await Brain(self.net, memory).resume()
            assert result.stop_reason == "done"
            return memory
        return None


@pytest.mark.parametrize("rounds", [[["rest"]], [["look", "rest"]], [["rest"], ["look", "rest"]]])
@pytest.mark.parametrize("after", [False, True])
async def test_a_repeated_step_finds_what_it_found(rounds: list[list[str]], after: bool) -> None:
    repeated = 0
    for dies_at in range(1, 20):
        life = Life(rounds)
        memory = await life.live(dies_at, after=after)
        if memory is None or len(life.found.notes) < 2:
            continue
        repeated += 1
        assert [found[:2] for found in life.found.notes] == [(None, None)] * 2
        assert life.found.open_calls == [0, 0]
        scratch = memory.control.scratch
        assert (scratch["n"], memory.control.session["n"]) == (1, 1)
        assert scratch["rounds"] == [len(names) for names in rounds]
    assert repeated > 1


async def test_what_a_finished_call_has_noted_is_found_by_the_repeated_step() -> None:
    found = []
    for dies_at in range(1, 20):
        life = Life([["look", "rest"]])
        memory = await life.live(dies_at, after=True)
        if memory is not None and len(life.found.notes) == 2:
            results = [m.content for m in await memory.messages() if m.role == "tool"]
            seen = life.found.notes[1][2] or 0
            assert seen == (results.count("seen") - 1), dies_at
            assert memory.control.scratch["seen"] == seen + 1
            found.append(seen)
    assert {*found} == {0, 1}
