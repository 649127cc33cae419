"""The data of a tree of thoughts, and its breadth-first and depth-first search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pydantic import BaseModel, Field

from agent_brain.states.session_state import Notes


class Value(BaseModel, frozen=True):
    """The value of a path of thoughts.

    Attributes:
        score: From 0 (impossible) to 1 (sure).
        solved: Whether it has reached the goal.
    """

    score: float = Field(description="how likely this leads to the goal: 0 impossible, 1 sure")
    solved: bool = Field(default=False, description="whether it has reached the goal already")


class TreeNode(BaseModel):
    """One thought in the tree."""

    thought: str
    parent: int | None  # None for a first one
    depth: int  # the number of thoughts up to this one, inclusive
    value: Value | None = None  # None before it is judged


def _beginning() -> list[int | None]:
    return [None]


class Tree(Notes):
    """The state of a search; thoughts are identified by their numbers.

    Attributes:
        nodes: All thoughts so far.
        frontier: The thoughts to continue next; None is the root.
        fresh: The thoughts proposed last, to be judged.
        waiting: The thoughts that a depth-first search can go back to, the most promising last.
        calls: The number of proposals and judgements so far.
    """

    nodes: list[TreeNode] = Field(default_factory=list)
    frontier: list[int | None] = Field(default_factory=_beginning)
    fresh: list[int] = Field(default_factory=list)
    waiting: list[int] = Field(default_factory=list)
    calls: int = 0

    def path(self, number: int | None) -> list[str]:
        """Return the thoughts up to this one."""
        thoughts: list[str] = []
        while number is not None:
            thoughts.append(self.nodes[number].thought)
            number = self.nodes[number].parent
        return thoughts[::-1]

    def depth(self, number: int | None) -> int:
        """Return the number of thoughts up to this one, inclusive."""
        return 0 if number is None else self.nodes[number].depth

    def add(self, parent: int | None, thoughts: Sequence[str]) -> None:
        """Add continuations of ``parent``, without duplicates."""
        for thought in dict.fromkeys(thoughts):
            node = TreeNode(thought=thought, parent=parent, depth=self.depth(parent) + 1)
            self.fresh.append(len(self.nodes))
            self.nodes.append(node)

    def score(self, number: int) -> float:
        """Return the score; minus infinity if the thought was not judged."""
        value = self.nodes[number].value
        return float("-inf") if value is None else value.score

    def solved(self, number: int) -> bool:
        """Return whether the thought has reached the goal."""
        value = self.nodes[number].value
        return value is not None and value.solved

    def best(self, threshold: float) -> int | None:
        """Return the solution, or else the best of the deepest thoughts above the threshold."""

        def rank(number: int) -> tuple[bool, bool, int, float]:
            score = self.score(number)
            return self.solved(number), score > threshold, self.depth(number), score

        return max(range(len(self.nodes)), key=rank, default=None)


class Bounds(BaseModel, frozen=True):
    """The bounds of a search."""

    breadth: int = Field(ge=1)  # thoughts to follow, of a level or (depth first) of a node
    depth: int = Field(ge=1)  # thoughts in a complete path
    threshold: float  # thoughts must have a higher score to be followed
    max_calls: int = Field(ge=1)  # proposals and judgements


Search: TypeAlias = Callable[[Tree, Bounds], None]


def breadth_first(tree: Tree, bounds: Bounds) -> None:
    """Follow the best thoughts of the level (the paper's algorithm 1)."""
    kept = _promising(tree, bounds)
    if any(tree.solved(number) for number in kept) or bounds.depth in map(tree.depth, kept):
        kept = []
    tree.frontier = [*kept]
    tree.fresh = []


def depth_first(tree: Tree, bounds: Bounds) -> None:
    """Follow the best thought, or go back if there is none (the paper's algorithm 2)."""
    kept = _promising(tree, bounds)
    tree.frontier, tree.fresh = [], []
    if any(tree.solved(number) for number in kept):
        tree.waiting = []
        return
    tree.waiting += [number for number in reversed(kept) if tree.depth(number) < bounds.depth]
    if tree.waiting:
        tree.frontier = [tree.waiting.pop()]


def _promising(tree: Tree, bounds: Bounds) -> list[int]:
    """Return the fresh thoughts to follow, best first."""
    worth = [number for number in tree.fresh if tree.score(number) > bounds.threshold]
    worth.sort(key=lambda number: (tree.solved(number), tree.score(number)), reverse=True)
    return worth[: bounds.breadth]
