"""Runs with branches and nested brains that may be killed at any moment; effects are in a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from agent_brain import Brain, Memory, MessagesMemory, react, tool
from agent_brain.errors import ResumeError
from agent_brain.memories import Journal
from agent_brain.memories.store.session import is_branch
from agent_brain.nets import Net, ParallelState
from agent_brain.testing import ModelCall
from agent_brain.tools import Action, ToolContext
from agent_brain.tools.builtin import ask_user
from tests.memories.durable.whole_runs import Notes
from tests.nets.models import FunctionLLM, last_user

KINDS = ("parallel", "nested", "nested in branch", "waiting", "waiting nested")
NAMES = "abc"
IN_DOUBT = re.compile(r"'\w+' was interrupted while .* was not run again")
RESULT = re.compile(r"([\w-]+)=([^;|\n]*[^;|\s])")  # in an answer


class Step(Enum):
    ALL = "all"


@dataclass(frozen=True)
class Outcome:
    """How a run has ended.

    Attributes:
        told: The role, the call and the text of each message, and the answer.
        steps: The steps that were counted.
        calls: The tool calls that were counted.
        requests: The model calls that were counted.
        asked: How often each model was asked.
    """

    told: list[tuple[str, str, str]]
    steps: int
    calls: int
    requests: int
    asked: dict[str, int]

    def doubts(self) -> set[str]:
        """The IDs of the calls that may have happened."""
        found = {call for _, call, text in self.told if IN_DOUBT.fullmatch(text)}
        for _, _, text in self.told:
            found |= {call for call, result in RESULT.findall(text) if IN_DOUBT.fullmatch(result)}
        return found

    def without(self, doubts: set[str]) -> list[tuple[str, str, str]]:
        """What was told, without the results of calls in doubt."""

        def shown(found: re.Match[str]) -> str:
            return f"{found[1]}=?" if found[1] in doubts else found[0]

        return [
            (role, call, "?" if call in doubts else RESULT.sub(shown, text))
            for role, call, text in self.told
        ]


class BranchingRun(Notes):
    """A run of three agents at once, each of several rounds of calls.

    Args:
        kind: One of :data:`KINDS`: branches of a state, brains that are called as tools, or both.
            In those that wait, a person approves each payment and answers a question of each agent.
        folder: Where the effects are noted.
        session: Its session.
    """

    def __init__(self, kind: str, folder: Path, session: str) -> None:
        super().__init__(folder, session)
        self.kind, self.waits = kind, kind.startswith("waiting")

    def _tools(self) -> list[Any]:
        @tool(requires_approval=self.waits)
        async def pay(context: ToolContext) -> str:
            """Pay, once."""
            self.note(f"pay {context.action.id}")
            return "paid"

        @tool(idempotent=True)
        def look() -> str:
            """Look something up."""
            return "seen"

        return [pay, look, ask_user]

    def _work(self, call: ModelCall, name: str = "") -> Any:
        """The model of an agent: two payments, then a question, then its results."""
        name = name or last_user(call.messages)[-1]
        self.note(f"asked {name}")
        rounds = sum(1 for message in call.messages if message.tool_calls)
        if rounds < 2:
            return [Action(name=kind, id=f"{kind}-{name}-{rounds}") for kind in ("look", "pay")]
        if rounds == 2 and self.waits:
            question: dict[str, Any] = {"question": f"Is {name} well?"}
            return Action(name="ask_user", args=question, id=f"ask-{name}")
        results = [f"{m.tool_call_id}={m.content}" for m in call.messages if m.role == "tool"]
        return f"{name}: {'; '.join(results)}"

    def _lead(self, call: ModelCall) -> Any:
        """The model that calls three agents at once, and pays too."""
        self.note("asked lead")
        results = [m for m in call.messages if m.role == "tool"]
        if results:
            return " | ".join(f"{'pay-lead=' * (m.name == 'pay')}{m.content}" for m in results)
        agents = [Action(name="agent", args={"task": f"Do {n}"}, id=f"agent-{n}") for n in NAMES]
        return [*agents, Action(name="pay", id="pay-lead")]

    def brain(self, memory: Memory) -> Brain:
        """A brain for the run."""
        tools = self._tools()
        if "nested" not in self.kind:
            models = {name: FunctionLLM(partial(self._work, name=name)) for name in NAMES}
            branches = ParallelState({name: react(llm) for name, llm in models.items()})
            return Brain(Net({Step.ALL: branches}), memory, tools)
        agent = Brain(react(FunctionLLM(self._work)), tools=tools).as_tool("agent", "Do something.")
        lead = react(FunctionLLM(self._lead))
        if self.kind == "nested in branch":
            lead = Net({Step.ALL: ParallelState({"out": lead})})
        return Brain(lead, memory, [*tools, agent])

    async def live(self, journal: Journal) -> None:
        """Begin the run, or continue it, until it has ended."""
        self.note("life")
        while True:
            async with self._open(journal) as memory:
                if memory.control.status == "ended":
                    return
                begun = memory.control.run_id is not None
                brain, decided = self.brain(memory), _decided(memory)
                try:
                    await (brain.resume(**decided) if begun else brain.run("Begin."))
                except ResumeError:  # a server may do the last write of a killed process later
                    if _decided(memory) == decided:
                        raise

    def _open(self, journal: Journal) -> Memory:
        return MessagesMemory(journal=journal, session=self.session)

    async def outcome(self, journal: Journal) -> Outcome:
        """How the run has ended."""
        async with self._open(journal) as memory:
            assert memory.control.stop_reason == "done"
            result = await self.brain(memory).resume()
            said = [*await memory.goal(), *await memory.dump()]
            spent = memory.control.spent
        told = [(m.role.value, m.tool_call_id or "", m.content) for m in said]
        asked = {line.split()[1]: times for line, times in self.noted("asked").items()}
        return Outcome(
            [*told, ("answer", "", result.answer)],
            result.steps,
            spent.tool_calls,
            result.usage.requests or 0,
            asked,
        )

    async def check(self, journal: Journal, usual: Outcome) -> None:
        """Check a run that has ended against one that was never killed."""
        ended, kills = await self.outcome(journal), self.noted("life")["life"] - 1
        doubts = ended.doubts()
        assert ended.without(doubts) == usual.without(doubts)
        paid = {line.split()[1]: times for line, times in self.noted("pay").items()}
        assert all(times == 1 for times in paid.values()), f"paid twice: {paid}"
        wanted = {f"pay-{name}-{n}" for name in NAMES for n in range(2)}
        wanted |= {"pay-lead"} if "nested" in self.kind else set()
        assert {*paid} <= wanted
        assert wanted - {*paid} <= doubts <= wanted, "not paid, and nobody was told"
        assert len(doubts) <= kills * (len(NAMES) + 1), "more in doubt than can have been running"
        for name, times in ended.asked.items():
            assert usual.asked[name] <= times <= usual.asked[name] + kills, f"{name}: {times}"

        assert (ended.steps, ended.calls) == (usual.steps, usual.calls)
        assert usual.requests <= ended.requests <= sum(ended.asked.values())
        assert not [key for key in await journal.sessions() if is_branch(key)], "a branch is left"


def _decided(memory: Memory) -> dict[str, Any]:
    """What a person says to the last thing that a run waits for."""
    control = memory.control
    asked = control.human_requests
    if control.status != "waiting" or asked is None:
        return {}
    if asked.approvals:
        return {"approve": [asked.approvals[-1]]}
    questions: Sequence[str] = [*asked.questions]
    return {"input": {questions[-1]: "Very."}}
