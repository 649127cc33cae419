"""Graph of thoughts: a graph of operations on thoughts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from agent_brain.memories.base import Memory
from agent_brain.nets.library.graph_operations import (
    Aggregate,
    Generate,
    KeepBest,
    Operation,
    Refine,
    Score,
    read_operations,
    results_of,
)
from agent_brain.nets.library.graph_states import OPERATING, Graph, OperationState, best_of
from agent_brain.nets.net import Net
from agent_brain.states import prompts
from agent_brain.states.answering import AnswerState
from agent_brain.states.base import State
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import OutputType
from agent_brain.states.stored_answer import TellState

SHAPE = "Give the answer to my goal in the requested format. It is:\n\n{result}"

OPERATIONS: tuple[Operation, ...] = (
    Generate(name="drafts", count=3, prompt="Write {count} different answers to my goal."),
    Score(name="scores", inputs=("drafts",)),
    KeepBest(name="best", inputs=("scores",), count=2),
    Aggregate(name="combined", inputs=("best",)),
    Refine(name="answer", inputs=("combined",)),
)


class GraphOfThoughts(Enum):
    """The states of :func:`graph_of_thoughts`."""

    OPERATION = "operation"
    ANSWER = "answer"


def graph_of_thoughts(
    llm: LLM | str,
    operations: Sequence[Operation | Mapping[str, Any]] = OPERATIONS,
    *,
    output_type: OutputType | None = None,
    prompt: prompts.Prompt = OPERATING,
    fallback: bool = False,
) -> Net:
    """Graph of Thoughts (Besta et al. 2023, https://arxiv.org/abs/2308.09687).

    A declared graph of operations on thoughts: :class:`Generate`, :class:`Aggregate`,
    :class:`Refine`, :class:`Score` and :class:`KeepBest`. In each step of the net, all operations
    whose inputs are ready run concurrently. The answer is the best thought of the operations whose
    thoughts no other takes.

    Model calls: one for each input of a generate, refine or score, one for an aggregate, none for a
    keep-best or for an operation with a function.

    Args:
        llm: The model of operations without a function.
        operations: The graph, as objects, or as plain data with a ``kind``. Default: draft three
            answers, score them, combine the best two, and refine the result.
        output_type: The type of the answer, as in :func:`react`.
            One more model call converts the result.
        prompt: System prompt of the operations.
        fallback: Whether to answer with the best of the latest thoughts when a limit stops the run.

    Raises:
        NetDefinitionError: The operations have problems, such as unknown inputs or cycles.
    """
    llm = as_llm(llm)
    known = read_operations(operations)

    def result(memory: Memory) -> str:
        made = Graph.read(memory).made
        ends = [idea for name in results_of(known) for idea in made.get(name, ())]
        return best_of(ends or [idea for ideas in list(made.values())[-1:] for idea in ideas])

    answer: State = TellState(result)
    if output_type is not None:
        shape = prompts.extended(SHAPE, result=result)
        answer = AnswerState(llm, output_type=output_type, prompt=shape)
    return Net(
        {
            GraphOfThoughts.OPERATION: OperationState(
                llm,
                known,
                on_more=GraphOfThoughts.OPERATION,
                on_done=GraphOfThoughts.ANSWER,
                prompt=prompt,
            ),
            GraphOfThoughts.ANSWER: answer,
        },
        fallback=GraphOfThoughts.ANSWER if fallback else None,
        name="graph_of_thoughts",
    )
