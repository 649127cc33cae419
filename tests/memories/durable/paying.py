"""A run whose tools pay, over a store that fails or a process that is killed, and what is stored."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any

from agent_brain import Brain, Memory, MessagesMemory, react, tool
from agent_brain.memories import Journal, JournalError
from agent_brain.memories.store.session import is_branch
from agent_brain.nets import MapState, Net, ParallelState
from agent_brain.testing import ModelCall
from agent_brain.tools import Action, ToolContext
from tests.nets.models import FunctionLLM, last_user, text_of
from tests.support.journals import MortalJournal

SECRET = "postgres://ann:hunter2@db.example"
OF_STORES = (SECRET, "Redis at", "journal at", "is locked", "free space")
IN_DOUBT = "may or may not have taken effect"


class Lost(JournalError):
    """The error of a store, whose text no model may see."""

    def __init__(self, _: str) -> None:
        super().__init__(f"{SECRET} does not answer")


class Step(Enum):
    ALL = "all"


class Life:
    """A run whose tools pay, in one process or several.

    Args:
        kind: Its net.
        names: Its branches.
    """

    def __init__(self, kind: str, names: str) -> None:
        self.kind, self.names = kind, names
        self.paid: Counter[str] = Counter()
        self.result: Any = None

        @tool(requires_approval=kind.startswith("approval"))
        async def pay(name: str, context: ToolContext) -> str:
            """Pay."""
            self.paid[f"{name}{self.payer_in(context)}"] += 1
            return f"paid {name}"

        self.pay = pay

    def payer_in(self, context: ToolContext) -> str:
        """Which of several that have one name pays."""
        return ""

    def look_at(self, call: ModelCall) -> None:
        """Check that a model reads nothing of a store."""
        seen = text_of(call.messages)
        assert not [words for words in OF_STORES if words in seen]

    def _agent(self, call: ModelCall) -> Any:
        """Pays for whoever it was asked for."""
        self.look_at(call)
        name = last_user(call.messages)[-1]
        results = [m.content for m in call.messages if m.role == "tool"]
        return "; ".join(results) or Action(name="pay", args={"name": name}, id=f"pay-{name}")

    def _lead(self, call: ModelCall) -> Any:
        """Calls an agent for each name, and pays too."""
        self.look_at(call)
        results = [m.content for m in call.messages if m.role == "tool"]
        if results:
            return " | ".join(results)
        agents = [Action(name="agent", args={"task": f"Do {n}"}, id=f"do-{n}") for n in self.names]
        return [*agents, Action(name="pay", args={"name": "lead"}, id="pay-lead")]

    def brain(self, memory: Memory) -> Brain:
        """A brain for the run."""
        agent = react(FunctionLLM(self._agent))
        kind = self.kind.removeprefix("approval ")
        items = [f"Do {name}" for name in self.names]
        if kind == "mapped":
            net = Net({Step.ALL: MapState(lambda _: items, agent, on_item_error="collect")})
            return Brain(net, memory, [self.pay])
        if kind == "functions":
            net = Net({Step.ALL: MapState(lambda _: items, self._ask, on_item_error="collect")})
            return Brain(net, memory)
        if kind == "parallel":
            agents = {n: react(FunctionLLM(self._named(n))) for n in self.names}
            return Brain(
                Net({Step.ALL: ParallelState(agents, on_error="report")}), memory, [self.pay]
            )
        helper = Brain(agent, tools=[self.pay]).as_tool("agent", "Do something.")
        lead = react(FunctionLLM(self._lead))
        if kind == "nested in branch":
            lead = Net({Step.ALL: ParallelState({"out": lead}, on_error="report")})
        return Brain(lead, memory, [self.pay, helper])

    def _named(self, name: str) -> Any:
        def reply(call: ModelCall) -> Any:
            self.look_at(call)
            results = [m.content for m in call.messages if m.role == "tool"]
            return "; ".join(results) or Action(name="pay", args={"name": name}, id=f"pay-{name}")

        return reply

    async def _ask(self, item: str) -> str:
        return f"seen {item}"

    async def go_on(self, brain: Any) -> None:
        """Begin the run, or continue it, until it has ended."""
        memory = brain.memory
        await memory.open()
        while self.result is None:
            if memory.control.run_id is None:
                result = await brain.run("Begin.")
            else:
                asked = memory.control.human_requests
                waits = memory.control.status == "waiting" and asked is not None
                given: dict[str, Any] = {}
                if waits and asked is not None:
                    given = {"approve": [asked.approvals[-1]]}
                result = await brain.resume(**given)
            if result.stop_reason != "approval":
                self.result = result

    @asynccontextmanager
    async def process(self, journal: Journal) -> AsyncIterator[Any]:
        """What runs in one process: a brain, or a team."""
        async with MessagesMemory(journal=journal) as memory:
            yield self.brain(memory)

    async def check(self, whole: Life, store: Journal) -> None:
        """Compare the end with that of a run without failures."""
        assert self.result.stop_reason == "done"
        assert max(self.paid.values(), default=0) <= 1, "paid twice"
        answer = self.result.answer
        assert SECRET not in answer
        assert "was not run:" not in answer, "a call was left behind"
        left_out = (whole.paid - self.paid).total()
        assert self.paid <= whole.paid
        assert left_out <= answer.count(IN_DOUBT), "not paid, and nobody was told"
        if IN_DOUBT not in answer:
            assert (answer, self.paid) == (whole.result.answer, whole.paid)
        assert not [key for key in await store.sessions() if is_branch(key)]


async def record_of(store: Journal) -> list[str]:
    """All that a store has, with the same IDs and times for every run."""
    found = []
    for key in sorted(await store.sessions()):
        for entry in await store.read(key, history=True):
            line = json.dumps(entry.data, sort_keys=True)
            found.append(f"{key} {entry.seq} {entry.kind} {entry.retired} {line}")
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z?", "T", "\n".join(found))
    text = re.sub(r'"seconds": [\d.e-]+', '"seconds": 0', text)
    ids: dict[str, str] = {}
    text = re.sub(
        r"[a-z]+_[0-9a-f]{17,}", lambda id_: ids.setdefault(id_[0], f"id-{len(ids)}"), text
    )
    return text.splitlines()


async def killed(life: Life, journal: MortalJournal) -> None:
    """Live until the process is killed."""
    try:
        async with life.process(journal) as brain:
            await life.go_on(brain)
    except BaseException:
        if not journal.dead:
            raise
