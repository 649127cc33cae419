"""Debate: several personas argue, each in a mind of its own, and a moderator decides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from enum import Enum

from pydantic import Field

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.nets.composition import NetLike
from agent_brain.nets.delegation import Branch, Delegate, answer_of
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
    "directly and completely, without telling of the debate.\n\nGoal: {goal}\n\n{debate}"
)


class Debate(Enum):
    """The states of :func:`debate`."""

    ROUND = "round"
    MODERATION = "moderation"


class Debated(Notes):
    """What was said, round by round, and what each persona keeps to itself.

    Attributes:
        rounds: What each said, by name.
        private: The messages of each persona's own memory, by name, oldest first.
    """

    rounds: list[dict[str, str]] = Field(default_factory=list)
    private: dict[str, list[Message]] = Field(default_factory=dict)

    def heard_by(self, listener: str) -> str:
        """What the others said in the last round."""
        return _written({name: text for name, text in self.rounds[-1].items() if name != listener})

    def everything(self) -> str:
        """All that was said, round by round."""
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

    In each round all personas speak at once, each on a memory of its own: it has seen the goal,
    its own work so far, and what the others said, not how they came to it. A moderator (Liang et
    al. 2023, https://arxiv.org/abs/2305.19118) then answers.

    Model calls, with n personas of c calls a round, in r rounds: n·c·r + 1.

    Args:
        llm: The model of all who are not given another.
        personas: Who takes part: by name, what kind of person it is, or a net of its own. Default:
            :data:`PERSONAS`.
        rounds: How often everyone speaks.
        moderator: Another model for the moderator.
        output_type: What the answer must fit: a pydantic model, or any other type that pydantic
            validates; ``Result.output`` is the object.
        persona_prompt: What a persona is told first, with ``{name}`` and ``{persona}``.
        moderator_prompt: What the moderator is told first; ``{debate}`` is what was said.
        fallback: When a limit stops the run, have the moderator answer from what was said so far.

    Raises:
        StateDefinitionError: Fewer than two personas, or ``rounds`` below 1.
    """
    llm = as_llm(llm)

    def net_of(name: str, persona: str | NetLike) -> NetLike:
        if not isinstance(persona, str):
            return persona
        told = persona_prompt.replace("{name}", name).replace("{persona}", persona)
        return react(llm, prompt=told)

    who = PERSONAS if personas is None else personas
    if not isinstance(who, Mapping):
        raise StateDefinitionError(
            f"personas={who!r}: give a dict, such as {{'Sceptic': 'You doubt what others say.'}}"
        )
    return Net(
        {
            Debate.ROUND: RoundState(
                {name: net_of(name, persona) for name, persona in who.items()},
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
    """Everything that was said, round by round."""
    return Debated.read(memory).everything()


class RoundState(State):
    """Everyone speaks once, at the same time; the memory itself is left as it is.

    Args:
        personas: Nets by name.
        rounds: How many rounds there are.
        on_round: Where the next round begins.
        on_done: Where to go after the last.

    Raises:
        StateDefinitionError: Fewer than two personas, or ``rounds`` below 1.
    """

    parallel = True

    def __init__(
        self, personas: Mapping[str, NetLike], *, rounds: int, on_round: Enum, on_done: Enum
    ) -> None:
        if len(personas) < 2 or rounds < 1:
            raise StateDefinitionError("A debate needs at least two personas and one round")
        self.personas = {name: as_net(net) for name, net in personas.items()}
        self.rounds = rounds
        self.on_round = on_round
        self.on_done = on_done

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The nets of the personas, by name."""
        return self.personas

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Have everyone speak; note what was said, and what each keeps to itself."""
        notes = Debated.take_up(memory)
        async with AsyncExitStack() as stack:
            branches: list[Branch] = []
            for name, net in self.personas.items():
                fork = await stack.enter_async_context(await memory.fork())
                await fork.update([*notes.private.get(name, ()), _request(notes, name)])
                branches.append(Branch(name, net, fork))
            yield Delegate(branches)
            if not all(branch.ended for branch in branches):
                return  # a limit was reached: the round is begun anew after it
            notes.private = {b.name: await _since(memory, b.memory) for b in branches}
            notes.rounds.append({b.name: await answer_of(b) for b in branches})
        notes.ended = len(notes.rounds) == self.rounds
        notes.write(memory)

    async def next_state(self, memory: Memory) -> Enum:
        """Another round, or ``on_done``."""
        return self.on_done if Debated.read(memory).ended else self.on_round


def _request(notes: Debated, name: str) -> Message:
    number = len(notes.rounds) + 1
    text = OPENING
    if notes.rounds:
        others = notes.heard_by(name)
        text = REPLY.replace("{round}", str(number)).replace("{others}", others)
    return Message.user(text, cause_by=RoundState.__name__)


async def _since(memory: Memory, fork: Memory) -> list[Message]:
    """What a fork holds of this turn that the memory does not."""
    known = {message.id for message in await memory.turn()}
    return [message for message in await fork.turn() if message.id not in known]
