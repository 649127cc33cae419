"""The states of a tree search: propose thoughts, then judge them and follow the best."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from enum import Enum
from functools import partial
from typing import TypeAlias

from pydantic import BaseModel, Field

from agent_brain.common.aio import maybe_await
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.nets.library.thought_tree import Bounds, Search, Tree, Value
from agent_brain.nets.library.voting import Choice, choice_question
from agent_brain.states import prompts
from agent_brain.states.base import State
from agent_brain.states.concurrency import Piece, Report, Together
from agent_brain.states.model_request import (
    StructuredRequest,
    build_messages,
    request_message,
)
from agent_brain.states.models.llm import LLM, Thought
from agent_brain.states.models.resolve import llm_or
from agent_brain.states.work import StreamItem

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


def written(path: Path) -> str:
    """Return a path of thoughts as numbered lines."""
    return "\n".join(f"{number}. {text}" for number, text in enumerate(path, 1)) or "(none yet)"


class ProposeState(State):
    """Propose continuations of all paths on the frontier, concurrently."""

    def __init__(
        self,
        propose: LLM | Propose | str,
        *,
        on_done: Enum,
        count: int,
        sample: bool,
        bounds: Bounds,
        prompt: prompts.Prompt = PROPOSING,
    ) -> None:
        self.propose: LLM | Propose = llm_or(propose)
        self.on_done = on_done
        self.count = count
        self.samples = count if sample else 1
        self.bounds = bounds
        self.prompt = prompts.checked(prompt)

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

        async def call(path: Path, report: Report) -> Sequence[str]:
            return await maybe_await(propose(memory, path))

        return [partial(call, path) for path in paths]

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

    async def next_state(self, memory: Memory) -> Enum:
        """Return ``on_done``."""
        return self.on_done


class SearchState(State):
    """Judge the fresh thoughts concurrently, and choose which to follow."""

    def __init__(
        self,
        evaluate: LLM | Assess | str,
        *,
        search: Search,
        on_more: Enum,
        on_done: Enum,
        bounds: Bounds,
        votes: int = 0,
        prompt: prompts.Prompt = JUDGING,
    ) -> None:
        self.evaluate: LLM | Assess = llm_or(evaluate)
        self.search = search
        self.on_more = on_more
        self.on_done = on_done
        self.bounds = bounds
        self.votes = votes
        self.prompt = prompts.checked(prompt)

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

        async def call(path: Path, report: Report) -> float | Value:
            return await maybe_await(evaluate(memory, path))

        return [partial(call, path) for path in paths]

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
