"""Runs of several agents whose tools pay: each hands over, votes, debates, plans, or is in a team."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from agent_brain import Brain, Memory, SharedMemory, Team, react
from agent_brain.memories import Journal
from agent_brain.memories.sharing.shared import TASK
from agent_brain.nets import HandoffAgent, MapState, Net, ParallelState, handoff
from agent_brain.nets.library.debate import debate
from agent_brain.nets.library.plan_execute import plan_execute, tools_succeeded
from agent_brain.nets.library.router import RouteName, router
from agent_brain.nets.library.self_consistency import self_consistency
from agent_brain.nets.library.tree_of_thoughts import tree_of_thoughts
from agent_brain.states import Plan
from agent_brain.states.models.llm import LLM
from agent_brain.testing import ModelCall
from agent_brain.tools import Action, ToolContext
from tests.memories.durable.paying import Life, Step
from tests.nets.models import FunctionLLM, last_user, text_of
from tests.nets.test_nets_by_memories import FILLED


def _pay(name: str) -> Action:
    return Action(name="pay", args={"name": name}, id=f"pay-{name}")


def _ask(name: str) -> Action:
    return Action(name="agent", args={"task": f"Do {name}"}, id=f"do-{name}")


class AgentsLife(Life):
    """A run of one of the nets in :attr:`NETS`.

    Args:
        kind: The net; in those that begin with ``"approval"`` a person approves each payment.
        names: Its agents.
    """

    def brain(self, memory: Memory) -> Brain:
        """A brain for the run."""
        make = self.NETS[self.kind.removeprefix("approval ")]
        return Brain(make(self), memory, [self.pay])

    def payer_in(self, context: ToolContext) -> str:
        """The path of a vote; others differ by name."""
        return f" in {context.place[1]}" if self.kind.endswith("vote") else ""

    def _asks(self, *wanted: Action) -> LLM:
        """A model that asks for calls, each once, and then tells their results."""

        def reply(call: ModelCall) -> Any:
            self.look_at(call)
            results = {m.tool_call_id: m.content for m in call.messages if m.role == "tool"}
            asked = [action for action in wanted if action.id not in results]
            return asked or "; ".join(results.values())

        return FunctionLLM(reply)

    def _pays(self, name: str, *following: Action) -> LLM:
        return self._asks(_pay(name), *following)

    def _tells(self) -> LLM:
        """A model that tells all that it sees, and fills every shape."""
        filled = {
            **FILLED,
            Plan: Plan(steps=[f"Do {name}." for name in self.names]),
            RouteName: RouteName(name="handoff"),
        }

        def reply(call: ModelCall) -> Any:
            self.look_at(call)
            shape = call.output_type
            return text_of(call.messages) if shape is None else filled[shape]

        return FunctionLLM(reply)

    def _handoff(self, first: str = "", helper: Any = None) -> Net:
        """Agents that hand over to the next one in the round in which they pay."""
        agents = {}
        for name, after in zip(self.names, (*self.names[1:], ""), strict=True):
            to = (
                [Action(name=f"transfer_to_{after}", args={"reason": "So."}, id=f"to-{after}")]
                if after
                else []
            )
            llm = self._asks(_ask(name), *to) if helper else self._pays(first + name, *to)
            tools = [helper] if helper else []
            agents[name] = HandoffAgent(llm=llm, tools=tools, to=[after] if after else [])
        return handoff(self._tells(), agents)

    def _helper(self) -> Any:
        """A brain as a tool, which pays for whoever it was asked for."""
        return Brain(react(FunctionLLM(self._agent)), tools=[self.pay]).as_tool("agent", "Pay.")

    def _helped(self) -> Net:
        """Agents at once, each of which calls a brain in a branch of its own."""
        agents = {
            name: Net({Step.ALL: ParallelState({"one": react(self._asks(_ask(name)))})})
            for name in self.names
        }
        return Net({Step.ALL: ParallelState(agents)}, tools=[self._helper()])

    def _mapped(self) -> Net:
        """The same for the items of a list."""

        def reply(call: ModelCall) -> Any:
            self.look_at(call)
            results = [m.content for m in call.messages if m.role == "tool"]
            return "; ".join(results) or _ask(last_user(call.messages)[-1])

        agent = Net({Step.ALL: ParallelState({"one": react(FunctionLLM(reply))})})
        items = [f"Do {name}" for name in self.names]
        collect = MapState(lambda _: items, agent, on_item_error="collect")
        return Net({Step.ALL: collect}, tools=[self._helper()])

    def _called_handoff(self) -> Net:
        """An agent that calls a brain, which hands over, and pays too."""
        tool = Brain(self._handoff(), tools=[self.pay]).as_tool("agent", "Pay.")
        lead = react(self._asks(_ask("it"), _pay("lead")))
        return Net({Step.ALL: ParallelState({"one": lead})}, tools=[tool])

    def _handoffs(self) -> Net:
        return Net({Step.ALL: ParallelState({n: self._handoff(n) for n in self.names})})

    def _plan(self) -> Net:
        def step(call: ModelCall) -> Any:
            self.look_at(call)
            name = re.findall(r"Do (\w)\.", text_of(call.messages))[-1]
            results = {m.tool_call_id: m.content for m in call.messages if m.role == "tool"}
            return results.get(f"pay-{name}") or _pay(name)

        return plan_execute(self._tells(), step=react(FunctionLLM(step)), evaluate=tools_succeeded)

    def _vote(self) -> Net:
        path = react(self._pays("all"))
        return self_consistency(self._tells(), paths=len(self.names), path=path, vote=self._count)

    def _count(self, memory: Memory, answers: Sequence[str]) -> str:
        return " | ".join(answers)

    def _debate(self) -> Net:
        who = {name: react(self._pays(name)) for name in self.names}
        return debate(self._tells(), personas=who)

    NETS = {
        "handoff": _handoff,
        "handoff with brains": lambda self: self._handoff(helper=self._helper()),
        "handoffs at once": _handoffs,
        "handoff as a tool": _called_handoff,
        "brains at once": _helped,
        "brains mapped": _mapped,
        "debate": _debate,
        "vote": _vote,
        "plan": _plan,
        "tree": lambda self: tree_of_thoughts(self._tells()),
        "router": lambda self: router(self._tells(), routes={"handoff": self._handoff()}),
    }


class TeamLife(Life):
    """A task of a lead and its helpers, who pay at once."""

    def _lead(self, call: ModelCall) -> Any:
        self.look_at(call)
        seen = text_of(call.messages)
        if "The task has ended" in seen:
            return "It has ended."
        if "Sent to" not in seen:
            to: dict[str, Any] = {"to": [*self.names], "content": "Pay."}
            return Action(name="send_message", args=to, id="send")
        told = [re.search(f"^{name}: (.*)$", seen, re.MULTILINE) for name in self.names]
        if not all(told):
            return "I wait."
        answer = "; ".join(found[1] for found in told if found)
        return Action(name="finish_task", args={"answer": answer}, id="end")

    def team(self, shared: SharedMemory) -> Team:
        """A team for the task."""
        lead = shared.member("lead", watch={"task", *self.names})
        helpers = [
            Brain(
                react(FunctionLLM(self._named(name))),
                shared.member(name, watch=(), send_to="lead"),
                [self.pay],
            )
            for name in self.names
        ]
        return Team([Brain(react(FunctionLLM(self._lead)), lead), *helpers], may_end="lead")

    @asynccontextmanager
    async def process(self, journal: Journal) -> AsyncIterator[Team]:
        async with SharedMemory(journal) as shared:
            yield self.team(shared)

    async def go_on(self, team: Team) -> None:
        """Begin the task, or continue it, until it has ended."""
        while self.result is None:
            if not await team.shared.messages(last=1, tags=TASK):
                result = await team.run("Pay them.")
            else:
                members = team.shared.members.values()
                for member in members:
                    await member.open()
                asked = [m.control.human_requests for m in members if m.control.status == "waiting"]
                waits = [call for requests in asked if requests for call in requests.approvals]
                result = await team.resume(approve=waits[-1:] or None)
            if result.stop_reason != "approval":
                self.result = result


def life_of(kind: str, names: str) -> Life:
    """A life of any kind."""
    plain = kind.removeprefix("approval ")
    return (TeamLife if plain == "team" else AgentsLife if plain in AgentsLife.NETS else Life)(
        kind, names
    )
