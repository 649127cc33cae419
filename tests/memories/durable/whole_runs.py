"""A whole run over a journal that may fail at any moment, and what its tools did, in a file."""

from __future__ import annotations

import os
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import Any

from agent_brain import Brain, Limits, Result, tool
from agent_brain.memories import DurableMemory, Journal, Memory, Message, MessagesMemory
from agent_brain.memories.store.session import is_branch
from agent_brain.memories.views.groups import group, is_whole
from agent_brain.nets import MapState, Net, create_net, react
from agent_brain.testing import ModelCall
from agent_brain.tools import Action, ToolContext
from tests.memories.durable.own import ListMemory
from tests.nets.models import FunctionLLM
from tests.nets.test_nets_by_memories import FILLED

NETS = ("react", "plan_execute", "map")
MEMORIES = ("messages", "own")
ROUNDS = 3
IN_DOUBT = "may or may not have taken effect"
"""What a model reads of a call without a result."""
LEFT = "a new goal was set first"
"""Why a call of an interrupted run may be left."""


class Outer(Enum):
    ALL = "all"


class Notes:
    """Lines in a file of a run, which survive a kill.

    Args:
        folder: Where the file is.
        session: The session of the run.
    """

    def __init__(self, folder: Path, session: str) -> None:
        self.session = session
        self.file = folder / f"{session}.effects"

    def note(self, line: str) -> None:
        """Note a line, in one write that survives a kill."""
        file = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, f"{line}\n".encode())
        finally:
            os.close(file)

    def noted(self, kind: str) -> Counter[str]:
        """How often each line of a kind was noted."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return Counter(line for line in lines if line.split()[0] == kind)


class WholeRun(Notes):
    """A run of several rounds of calls, whose tools note the keys of their calls.

    Args:
        net: One of :data:`NETS`.
        memory: One of :data:`MEMORIES`.
        folder: Where the effects are noted.
        session: Its session.
    """

    def __init__(self, net: str, memory: str, folder: Path, session: str = "s") -> None:
        super().__init__(folder, session)
        self.net, self.memory = net, memory

    def _tools(self) -> list[Any]:
        @tool
        async def pay(n: int, context: ToolContext) -> str:
            """Pay, once."""
            self.note(f"pay {context.key}")
            return f"paid {n}"

        @tool(idempotent=True)
        def look(n: int, context: ToolContext) -> str:
            """Look something up."""
            self.note(f"look {context.key}")
            return f"seen {n}"

        return [pay, look]

    def _reply(self, call: ModelCall) -> Any:
        for message in call.messages:
            if message.role == "tool":
                left = "was not run:" in message.content and LEFT not in message.content
                assert not left, "a call was left behind"
                if IN_DOUBT in message.content:
                    self.note(f"doubt {message.tool_call_id}")
        if call.output_type is not None:
            return FILLED[call.output_type]
        rounds = sum(1 for message in call.messages if message.tool_calls)
        if call.tools and rounds < (ROUNDS if self.net == "react" else 1):
            return [
                "Let me see. ",
                Action(name="pay", args={"n": rounds}),
                Action(name="look", args={"n": rounds}),
            ]
        return "It is 4."

    def _net(self) -> Net:
        llm = FunctionLLM(self._reply)
        if self.net == "map":
            return Net({Outer.ALL: MapState(lambda _: ["a", "b", "c"], react(llm))})
        return create_net(self.net, llm)

    def open(self, journal: Journal, **options: Any) -> Memory:
        """The memory of the run."""
        options |= {"journal": journal, "session": self.session}
        return (
            DurableMemory(ListMemory, **options)
            if self.memory == "own"
            else MessagesMemory(**options)
        )

    def brain(self, memory: Memory) -> Brain:
        """A brain for the run."""
        return Brain(self._net(), memory, self._tools(), limits=Limits(max_steps=100))

    async def live(self, journal: Journal) -> Result:
        """Begin the run, or continue it."""
        async with self.open(journal) as memory:
            began = memory.control.run_id is not None
            brain = self.brain(memory)
            return await (brain.resume() if began else brain.run("What is 2 + 2?"))

    async def outcome(self, journal: Journal) -> int:
        """How many calls of ``pay`` it has made."""
        return len(self.noted("pay"))

    async def check(self, journal: Journal, usual: int, *, failed: bool = False) -> None:
        """Check a run that has ended: it is whole, and nothing was done twice.

        Args:
            journal: Its journal.
            usual: How many calls of ``pay`` the run has.
            failed: Whether it has failed in between; if not, its branches are gone.
        """
        paid, doubts = self.noted("pay"), self.noted("doubt")
        assert all(times == 1 for times in paid.values()), f"paid twice: {paid}"
        assert usual - len(doubts) <= len(paid) <= usual, f"{len(paid)} of {usual} paid"
        async with self.open(journal) as memory:
            assert memory.control.status == "ended"
            assert memory.control.stop_reason == "done"
            said: list[Message] = [*await memory.goal(), *await memory.dump()]
        assert [m.content for m in said if m.role == "user"][:1] == ["What is 2 + 2?"]
        assert all(is_whole(members) for members in group(said)), "half a group was written"
        assert len({m.id for m in said}) == len(said)
        branches = [key for key in await journal.sessions() if is_branch(key)]
        assert failed or not branches, "a branch is left"
