"""Self-consistency: sample several answers and vote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from agent_brain.common.values import check_count
from agent_brain.memories.base import Memory
from agent_brain.nets.composition import NetLike, ParallelState
from agent_brain.nets.delegation import Branch, answer_of
from agent_brain.nets.library.react import react
from agent_brain.nets.library.voting import VOTING, Candidates, Judge, VoteState, final_answer
from agent_brain.nets.net import Net
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import OutputType
from agent_brain.states.prompts import REASONING, Prompt

PATH = f"{REASONING} Think step by step, and close with one line: The answer is …"


class SelfConsistency(Enum):
    """The states of :func:`self_consistency`."""

    PATHS = "paths"
    VOTE = "vote"


def self_consistency(
    llm: LLM | str,
    *,
    paths: int = 5,
    vote: LLM | Judge | str = "majority",
    normalise: Callable[[str], str] = final_answer,
    path: NetLike | None = None,
    output_type: OutputType | None = None,
    prompt: Prompt | None = None,
    vote_prompt: Prompt = VOTING,
) -> Net:
    """Self-consistency (Wang et al. 2022, https://arxiv.org/abs/2203.11171).

    Samples several reasoning paths concurrently, each on a fork of the memory, and returns the
    answer that most of them reach. The paths differ only by the model's sampling: use a temperature
    above 0. A path that fails has no vote.

    Model calls for n paths of c calls each: n·c, and one more for a judging model.

    Args:
        llm: The model of the paths.
        paths: The number of paths.
        vote: ``"majority"``; a model that judges which answer is best; or a function of the memory
            and the answers, sync or async, that returns one of them.
        normalise: Maps equal answers to equal texts, for the majority.
        path: A net for the paths. Default: :func:`react`.
        output_type: The type of the answer, as in :func:`react`.
        prompt: System prompt of the paths.
        vote_prompt: System prompt of a judging model.

    Raises:
        StateDefinitionError: ``paths`` is less than 1, or ``vote`` is invalid.
    """
    llm = as_llm(llm)
    check_count(StateDefinitionError, "paths", paths)
    if path is None:
        first = prompt if prompt is not None else None if output_type is not None else PATH
        path = react(llm, output_type=output_type, prompt=first)
    return Net(
        {
            SelfConsistency.PATHS: ParallelState(
                {f"path {number}": path for number in range(1, paths + 1)},
                join=note_answers,
                on_error="report",
                on_done=SelfConsistency.VOTE,
            ),
            SelfConsistency.VOTE: VoteState(
                vote, normalise=normalise, output_type=output_type, prompt=vote_prompt
            ),
        },
        name="self_consistency",
    )


async def note_answers(memory: Memory, branches: Sequence[Branch]) -> None:
    """Store the answers of the branches as :class:`Candidates`.

    Raises:
        Exception: The error of the first branch, if none has an answer.
    """
    answers = [await answer_of(branch) for branch in branches if branch.error is None]
    errors = [branch.error for branch in branches if branch.error is not None]
    if errors and not any(answers):
        raise errors[0]
    Candidates(answers=[answer for answer in answers if answer]).write(memory)
