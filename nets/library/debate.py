"""Debate: personas argue, each with a memory of its own, and a moderator answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import Enum

from pydantic import Field

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.nets.composition import NetLike
from agent_brain.nets.delegation import Branch, Delegate, answer_of
from agent_brain.nets.kept_results import KeptResults, RemainingBranches
from agent_brain.nets.library.react import react
from agent_brain.nets.net import Net, as_net
from agent_brain.states import prompts
from agent_brain.states.answering import AnswerState
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import OutputType
from agent_brain.states.session_state import Notes
from agent_brain.states.work import StreamItem

PERSONAS: Mapping[str, str] = {
    "Advocate": "You look for the best answer and argue for it as strongly as the facts allow.",
    "Sceptic": "You doubt. You look for what is wrong, missing or taken for granted.",
}
PERSONA = (
    "You take part in a debate about the user's goal, as {name}. {persona} Use the tools when they "
    "help. Be brief and concrete; change your mind when the others are right."
)
OPENING = "Round 1: say what you think."
REPLY = "Round {round}. The others said:\n\n{others}\n\nReply, and say what you think now."
MODERATION = (
    "You moderated a debate about the user's goal. Weigh what was said, and answer the user now, "
    "directly and completely, without mentioning the debate.\n\nGoal: {goal}\n\n{debate}"
)


class Debate(Enum):
    """The states of :func:`debate`."""

    ROUND = "round"
    MODERATION = "moderation"


class Debated(Notes):
    """The rounds of a debate, and the private messages of each persona."""

    rounds: list[dict[str, str]] = Field(default_factory=list)
    private: dict[str, list[Message]] = Field(default_factory=dict)

    def heard_by(self, listener: str) -> str:
        """Return what the others said in the last round."""
        return _written({name: text for name, text in self.rounds[-1].items() if name != listener})

    def everything(self) -> str:
        """Return everything that was said, round by round."""
        rounds = enumerate(self.rounds, 1)
        return "\n\n".join(f"Round {number}\n\n{_written(said)}" for number, said in rounds)


def _written(said: Mapping[str, str]) -> str:
    return "\n\n".join(f"{name}: {text}" for name, text in said.items())


def debate(
    llm: LLM | str,
    *,
    personas: Mapping[str, str | NetLike] | None = None,
    rounds: int = 2,
    moderator: LLM | str | None = None,
    output_type: OutputType | None = None,
    persona_prompt: str = PERSONA,
    moderator_prompt: prompts.Prompt = MODERATION,
    fallback: bool = False,
) -> Net:
    """Multi-agent debate (Du et al. 2023, https://arxiv.org/abs/2305.14325) with a moderator.

    In each round all personas speak concurrently, each with its own memory of the goal, its own
    work, and what the others said (but not how they reached it). Finally a moderator (Liang et al.
    2023, https://arxiv.org/abs/2305.19118) answers.

    Model calls for n personas of c calls a round, in r rounds: n·c·r + 1.

    Args:
        llm: The model of the personas and the moderator.
        personas: By name, the description of a persona, or a net. Default: :data:`PERSONAS`.
        rounds: The number of rounds.
        moderator: Another model for the moderator.
        output_type: The type of the answer, as in :func:`react`.
        persona_prompt: System prompt of a persona, with ``{name}`` and ``{persona}``.
        moderator_prompt: System prompt of the moderator; ``{debate}`` is what was said.
        fallback: Whether the moderator answers from what was said when a limit stops the run.

    Raises:
        StateDefinitionError: There are fewer than two personas, or ``rounds`` is less than 1.
    """
    llm = as_llm(llm)

    def net_of(name: str, persona: str | NetLike) -> Net:
        if not isinstance(persona, str):
            return as_net(persona)
        told = persona_prompt.replace("{name}", name).replace("{persona}", persona)
        return react(llm, prompt=told)

    who = PERSONAS if personas is None else personas
    if not isinstance(who, Mapping):
        raise StateDefinitionError(
            f"personas={who!r}: pass a dict, such as {{'Sceptic': 'You doubt what others say.'}}"
        )
    if len(who) < 2 or rounds < 1:
        raise StateDefinitionError("A debate needs at least two personas and one round")
    return Net(
        {
            Debate.ROUND: RoundState(
                personas={name: net_of(name, persona) for name, persona in who.items()},
                rounds=rounds,
                on_round=Debate.ROUND,
                on_done=Debate.MODERATION,
            ),
            Debate.MODERATION: AnswerState(
                moderator or llm,
                ask=True,
                output_type=output_type,
                prompt=prompts.extended(moderator_prompt, debate=all_sides),
            ),
        },
        fallback=Debate.MODERATION if fallback else None,
        name="debate",
    )


def all_sides(memory: Memory) -> str:
    """Return everything that was said, round by round."""
    return Debated.read(memory).everything()


@dataclass(eq=False, repr=False, kw_only=True)
class RoundState(State):
    """One round of a debate. It does not change the messages of the memory."""

    parallel = True

    personas: Mapping[str, Net]
    rounds: int
    on_round: Enum
    on_done: Enum

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The nets of the personas by name."""
        return self.personas

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run all personas concurrently and store what they said."""
        notes = Debated.load(memory)
        async with AsyncExitStack() as stack:
            branches: list[Branch] = []
            for name, net in self.personas.items():
                fork = await stack.enter_async_context(await memory.branch(name))
                if not fork.resumed:
                    await fork.update([*notes.private.get(name, ()), _request(notes, name)])
                branches.append(Branch(name, net, fork))
            kept = KeptResults(memory)
            yield RemainingBranches(Delegate(branches, as_thoughts=True), kept, messages=True)
            if not all(branch.completed for branch in branches):
                return  # a limit was reached: on resume those that were cut off speak again
            notes.private = {b.name: await _since(memory, b.memory) for b in branches}
            notes.rounds.append({b.name: await answer_of(b) for b in branches})
        notes.ended = len(notes.rounds) == self.rounds
        notes.write(memory)
        kept.clear()

    async def next_state(self, memory: Memory) -> Enum:
        """Return ``on_round``, or ``on_done`` after the last round."""
        return self.on_done if Debated.read(memory).ended else self.on_round


def _request(notes: Debated, name: str) -> Message:
    number = len(notes.rounds) + 1
    text = OPENING
    if notes.rounds:
        others = notes.heard_by(name)
        text = REPLY.replace("{round}", str(number)).replace("{others}", others)
    return Message.user(text, cause_by=RoundState.__name__)


async def _since(memory: Memory, fork: Memory) -> list[Message]:
    """Return the messages of this turn that only the fork has."""
    known = {message.id for message in await memory.turn()}
    return [message for message in await fork.turn() if message.id not in known]
