"""Hand-offs: several agents on one conversation, of which one speaks at a time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from agent_brain.common.suggest import did_you_mean
from agent_brain.common.values import takes
from agent_brain.nets.errors import NetDefinitionError, Problem
from agent_brain.nets.library.handoff_states import (
    AgentState,
    Filter,
    Filtered,
    OnHandoff,
    StartState,
    TransferringState,
    TransferTool,
)
from agent_brain.nets.library.react import ReAct
from agent_brain.nets.net import Net
from agent_brain.nets.validation import closure
from agent_brain.states.answering import AnswerState
from agent_brain.states.base import State
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import OutputType
from agent_brain.states.prompts import ANSWER, Prompt, joined
from agent_brain.states.reasoning import Mode, ReasoningState
from agent_brain.tools.toolset import ToolLike

START = "START"
"""The name of the first state of :func:`handoff`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffAgent:
    """An agent of :func:`handoff`, which reasons and calls tools as :func:`react` does.

    Attributes:
        prompt: Its system prompt; None for that of :class:`ReasoningState`.
        description: What it is for, for the models of the other agents.
        tools: Tools that only this agent may call, besides those of the memory.
        to: Names of the agents that it may hand the conversation to; None for all others.
        llm: Its model, if it is not the one of the net.
        output_type: The type of its answer and of ``Result.output``.
        see: Returns what its model sees of the conversation: takes the messages without the system
            prompt, may be async. None shows everything. Calls without results and results without
            calls are left out of what it returns.
        mode: How the model calls tools: ``"native"``, ``"text"``, or ``"auto"``.
        on_handoff: Called with the memory, the name of the agent before and its reason when the
            conversation is handed to this one; sync or async. After a crash, perhaps again.
    """

    prompt: Prompt | None = None
    description: str = ""
    tools: Iterable[ToolLike] = ()
    to: Collection[str] | None = None
    llm: LLM | str | None = None
    output_type: OutputType | None = None
    see: Filter | None = None
    mode: Mode = "auto"
    on_handoff: OnHandoff | None = None


def handoff(
    llm: LLM | str,
    agents: Mapping[str, HandoffAgent],
    *,
    start: str | None = None,
    name: str = "handoff",
) -> Net:
    """Have several agents work on one conversation, each until it hands it to another one.

    An agent is offered a tool ``transfer_to_NAME(reason)`` for each agent that it may hand over to.
    After its step the run continues with that agent, on the same memory. The next turn of the
    session begins with the agent that was active last.

    Each agent is a state with its name, so events have it in their ``path``, and the messages of
    its model have it as ``sent_from``. Each has its own model calls; a hand-off costs one.

    Args:
        llm: The model of the agents that have none of their own.
        agents: The agents by name: letters, digits, ``_`` and ``-``, beginning with a letter.
        start: The agent that begins the first turn. Default: the first of ``agents``.
        name: The name of the net. The nets of one memory need different names.

    Raises:
        NetDefinitionError: An unknown name in ``start`` or ``to``, an agent that cannot be reached,
            or a name that a tool cannot have; all problems at once.
        ToolDefinitionError: Two tools of an agent have the same name.
    """
    first = _first(agents) if start is None else start
    if problems := [*_check(agents, first)]:
        raise NetDefinitionError(problems, name=name)
    llm = as_llm(llm)
    make: Any = Enum
    keys: type[Enum] = make("Handoff", [START, *agents])
    entry = StartState(name, {one: keys[one] for one in agents}, first)
    states: dict[Enum, State] = {keys[START]: entry}
    for one, agent in agents.items():
        to = {other: keys[other] for other in _targets(one, agents)}
        transfers = [TransferTool(other, agents[other].description) for other in to]
        own = llm if agent.llm is None else as_llm(agent.llm)
        net = _net(one, agent, own, [*agent.tools, *transfers], owner=name)
        states[keys[one]] = AgentState(one, net, to, owner=name, on_handoff=agent.on_handoff)
    return Net(states, name=name)


def _first(agents: object) -> str:
    return next(iter(agents), "") if isinstance(agents, Mapping) else ""


def _net(name: str, agent: HandoffAgent, llm: LLM, tools: Iterable[ToolLike], *, owner: str) -> Net:
    """Return the net of one agent: that of :func:`react`, with an end after a hand-off."""
    return Net(
        {
            ReAct.REASONING: ReasoningState(
                llm,
                on_action=ReAct.ACTION,
                on_answer=ReAct.ANSWER,
                prompt=agent.prompt,
                mode=agent.mode,
                as_thoughts=agent.output_type is not None,
                output_type=agent.output_type,
                sent_from=name,
            ),
            ReAct.ACTION: TransferringState(name, owner, on_done=ReAct.REASONING),
            ReAct.ANSWER: AnswerState(
                llm,
                output_type=agent.output_type,
                prompt=joined(agent.prompt, ANSWER),
                sent_from=name,
            ),
        },
        name=name,
        hooks=() if agent.see is None else (Filtered(agent.see),),
        tools=tools,
    )


def _targets(name: str, agents: Mapping[str, HandoffAgent]) -> list[str]:
    to = agents[name].to
    if isinstance(to, str):
        return [to]
    return [other for other in agents if other != name] if to is None else [*dict.fromkeys(to)]


def _check(agents: Mapping[str, HandoffAgent], start: str) -> Iterator[Problem]:
    """Find names that cannot be used, unknown ones, and agents that nobody hands over to."""
    given: object = agents
    if not isinstance(given, Mapping):
        what = f"agents={given!r:.100} is not a mapping"
        yield Problem("not_agents", what, 'Pass {"name": HandoffAgent(prompt=…), …}')
    elif not agents:
        yield Problem("empty", "There are no agents", "Give at least one")
    elif wrong := [*_check_values(agents)]:
        yield from wrong
    elif start not in agents:
        yield _unknown(f"start={start!r}", start, agents)
    else:
        unknown = [problem for name in agents for problem in _check_targets(name, agents)]
        yield from unknown or _check_reach(start, agents)


_FUNCTIONS = {"see": ("messages",), "on_handoff": ("memory", "sender", "reason")}


def _check_values(agents: Mapping[str, object]) -> Iterator[Problem]:
    for name, agent in agents.items():
        if not isinstance(agent, HandoffAgent):
            what = f"Agent {name!r} is {agent!r:.100}"
            yield Problem("not_an_agent", what, "Pass a HandoffAgent(prompt=…)", (str(name),))
        for option, given in _FUNCTIONS.items():
            value = getattr(agent, option, None)
            if value is not None and not takes(value, *given):
                what = f"Agent {name!r} has {option}={value!r:.100}"
                hint = f"Pass a function that is called as {option}({', '.join(given)})"
                yield Problem("not_a_function", what, hint, (str(name),))
        if not _is_name(name):
            what = f"{name!r} cannot be the name of an agent"
            hint = (
                f"Use up to {_LONGEST} letters, digits, '_' and '-', beginning with a letter, and "
                f"not 'mro' or {START!r}"
            )
            yield Problem("bad_name", what, hint, (str(name),))


def _check_targets(name: str, agents: Mapping[str, HandoffAgent]) -> Iterator[Problem]:
    for to in _targets(name, agents):
        if to == name:
            what = f"Agent {name!r} hands over to itself"
            yield Problem("unknown_target", what, "Remove it from to=", (name,))
        elif to not in agents:
            yield _unknown(f"Agent {name!r} hands over to {to!r}", to, agents)


def _check_reach(start: str, agents: Mapping[str, HandoffAgent]) -> Iterator[Problem]:
    reached = closure({name: _targets(name, agents) for name in agents}, [start])
    for name in agents:
        if name not in reached:
            what = f"Agent {name!r} cannot be reached from {start!r}"
            yield Problem("unreachable", what, "Add it to to= of an agent, or remove it", (name,))


def _unknown(what: str, name: object, known: Iterable[str]) -> Problem:
    hint = f"The agents are {', '.join(map(repr, known))}.{did_you_mean(name, known)}"
    return Problem("unknown_target", f"{what}, which is not an agent", hint)


_LONGEST = 64 - len(TransferTool.prefix)


def _is_name(name: object) -> bool:
    if not isinstance(name, str) or name in ("mro", START):
        return False
    return len(name) <= _LONGEST and re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) is not None
