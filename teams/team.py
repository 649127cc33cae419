"""Several brains that work on one task, over a record that they share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast

from agent_brain.brain import Brain
from agent_brain.common.suggest import did_you_mean
from agent_brain.common.values import check_count
from agent_brain.errors import BrainDefinitionError, BrainUseError
from agent_brain.human_input import Approve, Decisions, Deny
from agent_brain.limits import Limits
from agent_brain.memories.message import Message, as_message
from agent_brain.memories.sharing.member import MemberMemory
from agent_brain.memories.sharing.shared import TASK
from agent_brain.memories.store.filters import Names, names
from agent_brain.nets.delegation import Delegate
from agent_brain.teams.run import TeamPlan, TeamResult, TeamRun
from agent_brain.teams.tools import FinishTaskTool, SendMessageTool


class Team:
    """Several brains that work on one task and send each other messages.

    ::

        shared = SharedMemory()
        writer = Brain("react", shared.member("writer", watch={"task", "critic"}))
        critic = Brain("react", shared.member("critic", watch={"writer"}))
        result = await Team([writer, critic]).run("Write about the sea.")

    A task is a message of the record, with the ``cause_by`` ``"task"``. In each round, every agent
    with messages in its inbox has one turn: it takes them, and runs its net. Its answer is added to
    the record with its name as ``sent_from`` and ``cause_by``, addressed to the ``send_to`` of its
    memory. An agent may also address others with the tool ``send_message``; what it says at the end
    of that turn is then not sent. The task ends when no inbox has messages, when an agent calls
    ``finish_task``, or at a limit.

    With a journal, a task that was interrupted is continued by :meth:`resume`, in another process
    too: no message is lost, taken twice or sent twice. One task of a record is run at a time.

    Args:
        brains: The agents: each over a memory of the same :class:`SharedMemory`, which has their
            names. Each turn has the limits and hooks of its brain.
        limits: Limits on all turns of a task together. Steps, tokens, cost and tool calls are
            checked after each step of each agent; the time is that of one call.
        max_rounds: Rounds of a task; None for no such limit.
        max_concurrency: Agents that work at once; None for all.
        may_end: Names of the agents that may end the task with ``finish_task``; None for all.

    Raises:
        BrainDefinitionError: Brains without names, over different records, or with one name; or an
            option that is wrong.
    """

    def __init__(
        self,
        brains: Iterable[Brain[Any]],
        *,
        limits: Limits = Limits(max_steps=None),  # noqa: B008 - frozen
        max_rounds: int | None = 20,
        max_concurrency: int | None = None,
        may_end: Names | None = None,
    ) -> None:
        self._brains = _by_name(brains)
        members = {name: _member_of(brain) for name, brain in self._brains.items()}
        self.shared = next(iter(members.values())).shared_memory
        if not isinstance(limits, Limits):
            raise BrainDefinitionError(f"limits={limits!r}: pass limits=Limits(…)")
        check_count(BrainDefinitionError, "max_rounds", max_rounds, optional=True)
        check_count(BrainDefinitionError, "max_concurrency", max_concurrency, optional=True)
        self._plan = TeamPlan(
            brains=self._brains,
            members=members,
            shared=self.shared,
            limits=limits,
            max_rounds=max_rounds,
            order=Delegate((), max_concurrency=max_concurrency),
        )
        self._offer_tools(members, self._known("may_end", may_end, BrainDefinitionError))

    @property
    def brains(self) -> Mapping[str, Brain[Any]]:
        """The brains by the names of the agents."""
        return MappingProxyType(self._brains)

    def _offer_tools(self, members: Mapping[str, MemberMemory], may_end: Collection[str]) -> None:
        for name, member in members.items():
            others = {n: m.description for n, m in members.items() if n != name}
            offered = [SendMessageTool(member, others)] if others else []
            ending = [FinishTaskTool(member)] if name in may_end else []
            for tool in (*offered, *ending):  # in place of those of another team
                tool.always_offered = True
                member.available_tools[tool.name] = tool

    def _known(self, what: str, given: Names | None, error: type[Exception]) -> tuple[str, ...]:
        """Return the names of agents; all for None."""
        if given is None:
            return tuple(self._brains)
        found = sorted(names(what, given))
        for name in found:
            if name not in self._brains:
                known = ", ".join(map(repr, self._brains))
                hint = did_you_mean(name, self._brains)
                raise error(f"{what}={name!r} is no agent of the team, but {known}.{hint}")
        return tuple(found)

    def stream(self, task: str | Message, *, send_to: Names = (), deps: object = None) -> TeamRun:
        """Return a run to iterate over, as :meth:`Brain.stream` does.

        The events of an agent have its name as the first part of their ``path``. The first and the
        last event are those of the task, with an empty path. Leaving the block early ends all turns
        at once; the memories keep what was finished.

        Args:
            task: What is to be done.
            send_to: The agents that get the task; by default all that want what is sent to all.
            deps: As for :meth:`Brain.run`, for the runs of all agents.

        Raises:
            BrainUseError: The task is empty, or no agent gets it.
        """
        receivers = self._known("send_to", send_to, BrainUseError) if send_to else ()
        return TeamRun(self._plan, self._as_task(task, receivers), deps=deps)

    async def run(
        self, task: str | Message, *, send_to: Names = (), deps: object = None
    ) -> TeamResult:
        """Run ``task`` to the end and return the result; see :meth:`stream`.

        Raises:
            LeaseHeldError: Another process runs the team.
        """
        return await self.stream(task, send_to=send_to, deps=deps).to_end()

    def stream_resume(
        self,
        *,
        approve: Approve | None = None,
        deny: Deny | None = None,
        edit: Mapping[str, Mapping[str, Any]] | None = None,
        input: object = None,  # noqa: A002 - what it is
        deps: object = None,
    ) -> TeamRun:
        """Like :meth:`resume`, to iterate over as over :meth:`stream`."""
        return TeamRun(self._plan, None, Decisions(approve, deny, edit, input), deps=deps)

    async def resume(
        self,
        *,
        approve: Approve | None = None,
        deny: Deny | None = None,
        edit: Mapping[str, Mapping[str, Any]] | None = None,
        input: object = None,  # noqa: A002 - what it is
        deps: object = None,
    ) -> TeamResult:
        """Continue the last task: after a crash, an error, a limit or a wait.

        Turns that were interrupted continue as with :meth:`Brain.resume`. An agent that waits for a
        person continues when it is given a decision or an answer; the others need not wait for it.

        Args:
            approve: IDs of calls that may run; True for all that wait.
            deny: IDs of calls that may not run, with reasons for the model.
            edit: Changed arguments by the IDs of the calls, which approves them.
            input: The answer to the question, or answers by the IDs of the questions; the question
                of a state has the name of the agent.
            deps: As for :meth:`run`.

        Raises:
            ResumeError: The record has no task, the decisions do not match what agents wait for, or
                the team lacks an agent whose turn was interrupted.
        """
        run = self.stream_resume(approve=approve, deny=deny, edit=edit, input=input, deps=deps)
        return await run.to_end()

    def _as_task(self, task: str | Message, receivers: tuple[str, ...]) -> Message:
        given = as_message(task)
        if not given.content.strip() and not given.attachments:
            raise BrainUseError("The task is empty: say what is to be done")
        fields: dict[str, Any] = {
            "cause_by": given.cause_by or TASK,
            "send_to": given.send_to or receivers,
            "tags": given.tags | {TASK},
        }
        message = given.model_copy(update=fields)
        if not any(member.wants(message) for member in self._plan.members.values()):
            raise BrainUseError(
                "No agent gets the task: name one with send_to=, or let one watch 'task', as in "
                'shared.member("writer", watch={"task"})'
            )
        return message


def _member_of(brain: Brain[Any]) -> MemberMemory:
    return cast("MemberMemory", brain.memory)


def _by_name(brains: Iterable[Brain[Any]]) -> dict[str, Brain[Any]]:
    found: dict[str, Brain[Any]] = {}
    several: object = brains
    if not isinstance(several, Iterable):
        raise BrainDefinitionError(f"Team({several!r:.100}): pass a list, as in Team([brain])")
    for brain in brains:
        given: object = brain
        if isinstance(given, Brain) and given.user is not None:
            raise BrainDefinitionError(
                "Brain(user=…) is for conversations with the user, and agents of a team talk with "
                "each other: give those that may look up the user the tools user.tools()"
            )
        if not isinstance(given, Brain) or not isinstance(given.memory, MemberMemory):
            raise BrainDefinitionError(
                f"Team([…]) takes brains over members of a SharedMemory, not {given!r:.100}: make "
                'each with Brain("react", shared.member("its name"))'
            )
        member = given.memory
        if member.name in found:
            raise BrainDefinitionError(f"There are two agents with the name {member.name!r}")
        found[member.name] = brain
    if not found:
        raise BrainDefinitionError("A team needs at least one brain")
    if len({id(_member_of(brain).shared_memory) for brain in found.values()}) > 1:
        raise BrainDefinitionError(
            "The agents of a team share one SharedMemory: these have several"
        )
    return found
