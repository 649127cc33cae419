"""Tree of thoughts: propose thoughts, judge them, and search for the best path of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Literal, TypeAlias, TypeVar

from pydantic import BaseModel, Field

from agent_brain.common.aio import maybe_await
from agent_brain.common.values import is_count
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.nets.delegation import check_choice
from agent_brain.nets.library.thought_tree import (
    Bounds,
    Search,
    Tree,
    Value,
    breadth_first,
    depth_first,
)
from agent_brain.nets.library.voting import Choice, choice_question
from agent_brain.nets.net import Net
from agent_brain.states import prompts
from agent_brain.states.answering import AnswerState
from agent_brain.states.base import RoutedState, State
from agent_brain.states.concurrency import Piece, Report, Together
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.model_request import (
    StructuredRequest,
    build_messages,
    request_message,
)
from agent_brain.states.models.llm import LLM, Thought
from agent_brain.states.models.resolve import as_llm, choice_or_llm
from agent_brain.states.output_types import OutputType
from agent_brain.states.work import StreamItem

T = TypeVar("T")
Path: TypeAlias = Sequence[str]
Propose: TypeAlias = Callable[[Memory, Path], Sequence[str] | Awaitable[Sequence[str]]]
Assess: TypeAlias = Callable[[Memory, Path], float | Value | Awaitable[float | Value]]

PROPOSING = (
    "You look for ways to reach the user's goal, thought by thought. A thought is one small, "
    "concrete step. Never go further than one thought."
)
CONTINUE = "My thoughts so far:\n{path}\n\nWrite {count} different thoughts that could come next."
SAMPLE = "My thoughts so far:\n{path}\n\nWrite the one thought that should come next."
JUDGING = (
    "You judge how promising a path of thoughts is. Look ahead: can the user's goal still be "
    "reached from here? Be strict with mistakes."
)
JUDGE = "Judge where these thoughts lead:\n{path}"
VOTE = "Which of these paths of thoughts is the most promising?\n\n{options}"


class Thoughts(BaseModel, frozen=True):
    """Thoughts that could come next."""

    thoughts: list[str] = Field(min_length=1, description="thoughts that could come next")


Proposed: TypeAlias = Thoughts | Sequence[str]  # by a model, or by a function
Judged: TypeAlias = Value | Choice | float  # of one way; or which of all is best


def _calls(
    function: Callable[[Memory, Path], T | Awaitable[T]], memory: Memory, paths: Sequence[Path]
) -> list[Piece[T]]:
    async def call(path: Path, report: Report) -> T:
        return await maybe_await(function(memory, path))

    return [partial(call, path) for path in paths]


def written(path: Path) -> str:
    """Return a path of thoughts as numbered lines."""
    return "\n".join(f"{number}. {text}" for number, text in enumerate(path, 1)) or "(none yet)"


@dataclass(eq=False, repr=False, kw_only=True)
class ProposeState(RoutedState):
    """Propose continuations of all paths on the frontier, concurrently."""

    propose: LLM | Propose
    on_done: Enum | None
    count: int
    samples: int  # calls for each path
    bounds: Bounds
    prompt: prompts.Prompt

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Propose thoughts and store them as fresh."""
        tree = Tree.load(memory)
        affordable = max(0, self.bounds.max_calls - tree.calls) // self.samples
        parents = tree.frontier[:affordable]
        paths = [tree.path(parent) for parent in parents for _ in range(self.samples)]
        together = Together(await self._works(memory, paths))
        yield together
        tree.calls += len(paths)
        for index, parent in enumerate(parents):
            samples = together.results[index * self.samples : (index + 1) * self.samples]
            tree.add(parent, [thought for sample in samples for thought in self._read(sample)])
        yield Thought("".join(f"- {tree.nodes[number].thought}\n" for number in tree.fresh))
        tree.write(memory)

    async def _works(self, memory: Memory, paths: Sequence[Path]) -> list[Piece[Proposed]]:
        propose = self.propose
        if isinstance(propose, LLM):
            messages = await build_messages(propose, memory, self.prompt)
            return [self._request(propose, messages, path) for path in paths]
        return _calls(propose, memory, paths)

    def _request(
        self, llm: LLM, messages: list[Message], path: Path
    ) -> StructuredRequest[Thoughts]:
        text = (CONTINUE if self._wanted > 1 else SAMPLE).replace("{count}", str(self._wanted))
        request = request_message(text.replace("{path}", written(path)))
        return StructuredRequest(llm, [*messages, request], Thoughts)

    @property
    def _wanted(self) -> int:
        """The number of thoughts per model call."""
        return self.count if self.samples == 1 else 1

    def _read(self, proposed: Proposed) -> Sequence[str]:
        return proposed.thoughts[: self._wanted] if isinstance(proposed, Thoughts) else proposed


@dataclass(eq=False, repr=False, kw_only=True)
class SearchState(State):
    """Judge the fresh thoughts concurrently, and choose which to follow."""

    evaluate: LLM | Assess
    search: Search
    on_more: Enum
    on_done: Enum
    bounds: Bounds
    votes: int
    prompt: prompts.Prompt

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Judge the fresh thoughts, and choose the next frontier."""
        tree = Tree.read(memory)
        left = max(0, self.bounds.max_calls - tree.calls)
        fresh = tree.fresh if self.votes else tree.fresh[:left]
        works = await self._works(memory, [tree.path(number) for number in fresh])
        together = Together(works[:left])
        yield together
        tree.calls += len(together.works)
        for number, value in zip(fresh, self._values(together.results, len(fresh)), strict=False):
            tree.nodes[number].value = self._at_its_end(value, tree.depth(number))
            yield Thought(f"{value.score:.2g}: {tree.nodes[number].thought}\n")
        self.search(tree, self.bounds)
        tree.ended = not tree.frontier or tree.calls >= self.bounds.max_calls
        tree.write(memory)

    async def _works(self, memory: Memory, paths: Sequence[Path]) -> list[Piece[Judged]]:
        evaluate = self.evaluate
        if isinstance(evaluate, LLM):
            messages = await build_messages(evaluate, memory, self.prompt)
            if self.votes and paths:
                options = [written(path) for path in paths]
                votes = range(self.votes)
                return [choice_question(evaluate, messages, VOTE, options) for _ in votes]
            requests = [request_message(JUDGE.replace("{path}", written(path))) for path in paths]
            return [StructuredRequest(evaluate, [*messages, asked], Value) for asked in requests]
        return _calls(evaluate, memory, paths)

    def _values(self, results: Sequence[Judged], count: int) -> list[Value]:
        """Return a value for each of ``count`` paths: its own, or its share of the votes."""
        votes = [result.number for result in results if isinstance(result, Choice)]
        if votes:
            numbers = range(1, count + 1)
            return [Value(score=votes.count(number) / len(votes)) for number in numbers]
        return [r if isinstance(r, Value) else Value(score=r) for r in results]  # type: ignore[arg-type]

    def _at_its_end(self, value: Value, depth: int) -> Value:
        """Mark a complete path with a score of 1 as solved."""
        solved = value.solved or (depth == self.bounds.depth and value.score >= 1)
        return value.model_copy(update={"solved": solved})

    async def next_state(self, memory: Memory) -> Enum:
        """Return ``on_more``, or ``on_done`` when the search has ended."""
        return self.on_done if Tree.read(memory).ended else self.on_more


ANSWER = (
    "Answer the user's goal now, directly and completely, by these thoughts. Where they do not "
    "reach the goal, say how far they go.\n\nGoal: {goal}\n\n{thoughts}"
)
VOTES = 3  # votes on one level

_SEARCHES: dict[str, Search] = {"bfs": breadth_first, "dfs": depth_first}


class TreeOfThoughts(Enum):
    """The states of :func:`tree_of_thoughts`."""

    PROPOSE = "propose"
    SEARCH = "search"
    ANSWER = "answer"


def tree_of_thoughts(
    llm: LLM | str,
    *,
    propose: LLM | Propose | str = "propose",
    evaluate: LLM | Assess | str = "value",
    strategy: Literal["bfs", "dfs"] = "bfs",
    thoughts: int = 3,
    breadth: int = 3,
    depth: int = 3,
    threshold: float = 0.0,
    max_calls: int = 100,
    output_type: OutputType | None = None,
    propose_prompt: prompts.Prompt = PROPOSING,
    evaluate_prompt: prompts.Prompt = JUDGING,
    answer_prompt: prompts.Prompt = ANSWER,
    fallback: bool = False,
) -> Net:
    """Tree of Thoughts (Yao et al. 2023, https://arxiv.org/abs/2305.10601).

    Proposes thoughts, judges the resulting paths, and continues with the best: level by level
    (``"bfs"``, the best ``breadth`` of a level), or depth first with backtracking (``"dfs"``, the
    best ``breadth`` continuations of a thought). The search ends with the first path that reaches
    the goal, or when no path is left.

    Model calls, breadth first: at most 1 + thoughts for the first level, breadth · (1 + thoughts)
    for each further one, and 1 to answer. ``"sample"`` takes ``thoughts`` calls instead of 1,
    ``"vote"`` takes 3 a level instead of one for each thought, functions take none.

    Args:
        llm: The model that does everything else.
        propose: ``"propose"``: one call proposes several thoughts; ``"sample"``: one call for each;
            another model; or a function of the memory and the thoughts so far, sync or async, that
            returns the thoughts that could come next.
        evaluate: ``"value"``: one call judges each path; ``"vote"``: calls compare all paths of a
            level; another model; or a function of the memory and the thoughts of a path, sync or
            async, that returns a score from 0 (impossible) to 1 (sure), or a
            :class:`~agent_brain.nets.library.thought_tree.Value`. A complete path with a score of 1
            is a solution.
        strategy: ``"bfs"`` or ``"dfs"``.
        thoughts: The number of thoughts that a model proposes at a time.
        breadth: The number of thoughts to follow.
        depth: The number of thoughts in a complete path.
        threshold: Paths must have a higher score to be followed.
        max_calls: The maximum number of proposals and judgements, by models or functions.
        output_type: The type of the answer, as in :func:`react`.
        propose_prompt: System prompt of the proposals.
        evaluate_prompt: System prompt of the judgements.
        answer_prompt: System prompt of the answer; ``{thoughts}`` is the best path.
        fallback: Whether to answer from the best path so far when a limit stops the run.

    Raises:
        StateDefinitionError: The strategy is unknown, a bound is less than 1, or votes are combined
            with a depth-first search.
    """
    llm = as_llm(llm)
    propose = choice_or_llm("propose", propose, ("propose", "sample"))
    evaluate = choice_or_llm("evaluate", evaluate, ("value", "vote"))
    check_choice("strategy", strategy, *_SEARCHES)
    if strategy == "dfs" and evaluate == "vote":
        raise StateDefinitionError("A depth-first search needs values: votes compare a whole level")
    if not all(map(is_count, (thoughts, breadth, depth, max_calls))):
        raise StateDefinitionError("thoughts, breadth, depth and max_calls must be at least 1")
    bounds = Bounds(breadth=breadth, depth=depth, threshold=threshold, max_calls=max_calls)

    def best_path(memory: Memory) -> str:
        tree = Tree.read(memory)
        return written(tree.path(tree.best(threshold)))

    return Net(
        {
            TreeOfThoughts.PROPOSE: ProposeState(
                propose=llm if isinstance(propose, str) else propose,
                on_done=TreeOfThoughts.SEARCH,
                count=thoughts,
                samples=thoughts if propose == "sample" else 1,
                bounds=bounds,
                prompt=prompts.checked(propose_prompt),
            ),
            TreeOfThoughts.SEARCH: SearchState(
                evaluate=llm if isinstance(evaluate, str) else evaluate,
                search=_SEARCHES[strategy],
                on_more=TreeOfThoughts.PROPOSE,
                on_done=TreeOfThoughts.ANSWER,
                bounds=bounds,
                votes=VOTES if evaluate == "vote" else 0,
                prompt=prompts.checked(evaluate_prompt),
            ),
            TreeOfThoughts.ANSWER: AnswerState(
                llm,
                ask=True,
                output_type=output_type,
                prompt=prompts.extended(answer_prompt, thoughts=best_path),
            ),
        },
        fallback=TreeOfThoughts.ANSWER if fallback else None,
        name="tree_of_thoughts",
    )
