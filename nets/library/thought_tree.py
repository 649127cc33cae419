"""A tree of thoughts as data, and the two ways to search it: breadth first and depth first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pydantic import BaseModel, Field

from agent_brain.states.session_state import Notes


class Value(BaseModel, frozen=True):
    """How promising a way of thinking is.

    Attributes:
        score: From 0, impossible, to 1, sure.
        solved: It has reached the goal; nothing is to be added.
    """

    score: float = Field(description="how likely this leads to the goal: 0 impossible, 1 sure")
    solved: bool = Field(default=False, description="whether it has reached the goal already")


class Node(BaseModel):
    """One thought, as the continuation of another.

    Attributes:
        thought: What it says.
        parent: Number of the thought that it continues; None at the beginning.
        depth: How many thoughts lead up to it, itself included.
        value: How it was judged; None before.
    """

    thought: str
    parent: int | None
    depth: int
    value: Value | None = None


def _beginning() -> list[int | None]:
    return [None]


class Tree(Notes):
    """A search, where it stands; thoughts are known by their numbers.

    Attributes:
        nodes: All thoughts so far.
        frontier: Which are to be continued next; None is the beginning.
        fresh: Which were proposed last and are to be judged.
        waiting: Where a depth-first search can go back to; the most promising last.
        calls: How often thoughts were asked for or judged.
    """

    nodes: list[Node] = Field(default_factory=list)
    frontier: list[int | None] = Field(default_factory=_beginning)
    fresh: list[int] = Field(default_factory=list)
    waiting: list[int] = Field(default_factory=list)
    calls: int = 0

    def path(self, number: int | None) -> list[str]:
        """The thoughts from the beginning up to that one."""
        thoughts: list[str] = []
        while number is not None:
            thoughts.append(self.nodes[number].thought)
            number = self.nodes[number].parent
        return thoughts[::-1]

    def depth(self, number: int | None) -> int:
        """How many thoughts lead up to that one, itself included."""
        return 0 if number is None else self.nodes[number].depth

    def add(self, parent: int | None, thoughts: Sequence[str]) -> None:
        """Propose ``thoughts`` as continuations of ``parent``; the same one twice counts once."""
        for thought in dict.fromkeys(thoughts):
            node = Node(thought=thought, parent=parent, depth=self.depth(parent) + 1)
            self.fresh.append(len(self.nodes))
            self.nodes.append(node)

    def score(self, number: int) -> float:
        """How promising it was judged; nothing is less promising than what was not judged."""
        value = self.nodes[number].value
        return float("-inf") if value is None else value.score

    def solved(self, number: int) -> bool:
        """Whether it was judged to have reached the goal."""
        value = self.nodes[number].value
        return value is not None and value.solved

    def best(self, threshold: float) -> int | None:
        """The solution, or else the furthest thought worth following, the best of several."""

        def rank(number: int) -> tuple[bool, bool, int, float]:
            score = self.score(number)
            return self.solved(number), score > threshold, self.depth(number), score

        return max(range(len(self.nodes)), key=rank, default=None)


class Bounds(BaseModel, frozen=True):
    """How far a search goes.

    Attributes:
        breadth: How many thoughts are followed: of a level breadth first, of a node depth first.
        depth: How many thoughts make a way.
        threshold: Thoughts with no higher score are given up.
        max_calls: How often thoughts may be asked for or judged.
    """

    breadth: int = Field(ge=1)
    depth: int = Field(ge=1)
    threshold: float
    max_calls: int = Field(ge=1)


Search: TypeAlias = Callable[[Tree, Bounds], None]


def breadth_first(tree: Tree, bounds: Bounds) -> None:
    """Follow the best thoughts of the level; the beam of the paper's algorithm 1."""
    kept = _promising(tree, bounds)
    if any(tree.solved(number) for number in kept) or bounds.depth in map(tree.depth, kept):
        kept = []
    tree.frontier = [*kept]
    tree.fresh = []


def depth_first(tree: Tree, bounds: Bounds) -> None:
    """Follow the best thought; where none is worth it, go back. The paper's algorithm 2."""
    kept = _promising(tree, bounds)
    tree.frontier, tree.fresh = [], []
    if any(tree.solved(number) for number in kept):
        tree.waiting = []
        return
    tree.waiting += [number for number in reversed(kept) if tree.depth(number) < bounds.depth]
    if tree.waiting:
        tree.frontier = [tree.waiting.pop()]


def _promising(tree: Tree, bounds: Bounds) -> list[int]:
    """The fresh thoughts that are worth following, best first."""
    worth = [number for number in tree.fresh if tree.score(number) > bounds.threshold]
    worth.sort(key=lambda number: (tree.solved(number), tree.score(number)), reverse=True)
    return worth[: bounds.breadth]
