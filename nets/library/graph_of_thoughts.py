"""Graph of thoughts: a graph of operations on thoughts, run as far as they are ready."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pydantic import BaseModel, Field

from agent_brain.common.aio import maybe_await
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
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
from agent_brain.nets.library.tree_of_thoughts import Thoughts
from agent_brain.nets.net import Net
from agent_brain.states import prompts
from agent_brain.states.answering import AnswerState, TellState
from agent_brain.states.base import State
from agent_brain.states.concurrency import Piece, Report, Together
from agent_brain.states.model_request import (
    StructuredRequest,
    build_messages,
    request_message,
)
from agent_brain.states.models.llm import LLM, Thought
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import OutputType
from agent_brain.states.session_state import Notes
from agent_brain.states.work import StreamItem

OPERATING = (
    "You do one operation of a larger plan to reach the user's goal. Do exactly what is asked; "
    "others do the rest."
)
REQUESTS: Mapping[str, str] = {
    "generate": "Write {count} different thoughts that help to reach my goal.",
    "aggregate": "Combine these into one that is better than each.",
    "refine": "Improve this: correct its mistakes, and fill its gaps.",
    "score": "Score this from 0, useless, to 1, perfect.",
}


class Idea(BaseModel):
    """A thought of the graph, with its score if it has one."""

    text: str
    score: float | None = None


class Graph(Notes):
    """The thoughts made by each operation, by its name."""

    made: dict[str, list[Idea]] = Field(default_factory=dict)

    def inputs(self, operation: Operation) -> list[Idea]:
        """Return the thoughts that ``operation`` takes."""
        return [idea for name in operation.inputs for idea in self.made[name]]


class OneThought(BaseModel, frozen=True):
    """One thought."""

    thought: str


class Rating(BaseModel, frozen=True):
    """The score of a thought."""

    score: float = Field(description="from 0, useless, to 1, perfect")


_OUTPUTS: Mapping[str, type[BaseModel]] = {
    "generate": Thoughts,
    "aggregate": OneThought,
    "refine": OneThought,
    "score": Rating,
}


@dataclass(eq=False, repr=False, kw_only=True)
class OperationState(State):
    """Run all operations whose inputs are ready, concurrently."""

    llm: LLM
    operations: tuple[Operation, ...]
    on_more: Enum
    on_done: Enum
    prompt: prompts.Prompt

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the operations and store their thoughts."""
        graph = Graph.load(memory)
        done = graph.made.keys()
        todo = [o for o in self.operations if o.name not in done and done >= {*o.inputs}]
        messages = await build_messages(self.llm, memory, self.prompt)
        portions = [(o, ideas) for o in todo for ideas in _portions(o, graph.inputs(o))]
        together = Together([self._work(o, ideas, memory, messages) for o, ideas in portions])
        yield together
        for (operation, ideas), found in zip(portions, together.results, strict=True):
            made = _made(operation, ideas, found)
            graph.made.setdefault(operation.name, []).extend(made)
            yield Thought("".join(f"{operation.name}: {idea.text}\n" for idea in made))
        graph.ended = len(graph.made) == len(self.operations)
        graph.write(memory)

    def _work(
        self, operation: Operation, ideas: Sequence[Idea], memory: Memory, messages: list[Message]
    ) -> Piece[Any]:
        """Return a part of an operation, done by its function or by the model."""
        by: Any = getattr(operation, "by", None)
        if by is None and not isinstance(operation, KeepBest):
            request = [*messages, _request(operation, ideas)]
            return StructuredRequest(self.llm, request, _OUTPUTS[operation.kind])
        texts = [idea.text for idea in ideas]

        async def call(report: Report) -> Any:
            arguments = [texts] if isinstance(operation, Aggregate) else texts or [""]
            return None if by is None else await maybe_await(by(memory, *arguments))

        return call

    async def next_state(self, memory: Memory) -> Enum:
        """Return ``on_more`` while operations are left."""
        return self.on_done if Graph.read(memory).ended else self.on_more


def _made(operation: Operation, ideas: Sequence[Idea], found: Any) -> list[Idea]:
    """Return the thoughts made from ``found``, the result of a model or a function."""
    match operation:
        case KeepBest():
            return ranked(ideas)[: operation.count]
        case Generate(by=by):
            texts = found if by else found.thoughts[: operation.count]
            return [Idea(text=text) for text in texts]
        case Score(by=by):
            return [Idea(text=ideas[0].text, score=found if by else found.score)]
        case Aggregate(by=by) | Refine(by=by):
            return [Idea(text=found if by else found.thought)]


def _portions(operation: Operation, ideas: Sequence[Idea]) -> list[list[Idea]]:
    """Return what is done at a time: all thoughts, or each; an empty list for the goal."""
    if isinstance(operation, Aggregate | KeepBest):
        return [list(ideas)]
    return [[idea] for idea in ideas] or [[]]


def _request(operation: Operation, ideas: Sequence[Idea]) -> Message:
    text = operation.prompt or REQUESTS[operation.kind]
    if isinstance(operation, Generate):
        text = text.replace("{count}", str(operation.count))
    return request_message("\n\n".join([text, *(idea.text for idea in ideas)]))


def ranked(ideas: Sequence[Idea]) -> list[Idea]:
    """Return thoughts by their scores, best first; those without a score come last."""
    return sorted(ideas, key=lambda i: float("-inf") if i.score is None else i.score, reverse=True)


def best_of(ideas: Sequence[Idea]) -> str:
    """Return the text of the best thought; empty if there are none."""
    return ranked(ideas)[0].text if ideas else ""


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
                llm=llm,
                operations=known,
                on_more=GraphOfThoughts.OPERATION,
                on_done=GraphOfThoughts.ANSWER,
                prompt=prompts.checked(prompt),
            ),
            GraphOfThoughts.ANSWER: answer,
        },
        fallback=GraphOfThoughts.ANSWER if fallback else None,
        name="graph_of_thoughts",
    )
