"""The branches in RAM that wait for a person, kept by the memory that they are branches of."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Self, TypeAlias

if TYPE_CHECKING:
    from agent_brain.memories.base import Memory

Place: TypeAlias = tuple[str, str, str]  # the run, the step, and the name of the branch


class _Owned:
    """Belongs to one memory, and not to copies of it, which may refer to it.

    Args:
        owner: The memory.
    """

    __slots__ = ("_owner",)

    def __init__(self, owner: Memory) -> None:
        self._owner = weakref.ref(owner)

    def is_of(self, memory: Memory) -> bool:
        """Return whether it belongs to ``memory``, and not to what that was copied from."""
        return self._owner() is memory

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class Origin(_Owned):
    """Which memory a branch was made of, and for which place in its run.

    Args:
        branch: The memory of the branch.
        parent: The memory that it is a branch of.
        place: Its place.
        nested: Whether it is a copy of another memory, for a run inside the step.
    """

    __slots__ = ("nested", "parent", "place")

    def __init__(
        self, branch: Memory, parent: Memory, place: Place, *, nested: bool = False
    ) -> None:
        super().__init__(branch)
        self.parent = parent
        self.place = place
        self.nested = nested


class KeptBranches(_Owned):
    """The branches that a memory keeps."""

    __slots__ = ("by_place",)

    def __init__(self, owner: Memory) -> None:
        super().__init__(owner)
        self.by_place: dict[Place, Memory] = {}


def is_branch_of(memory: Memory, parent: Memory) -> bool:
    """Return whether ``parent.branch()`` has made ``memory``, and finds it again."""
    origin = memory._origin
    return origin is not None and origin.is_of(memory) and origin.parent is parent


def keep_branch(memory: Memory) -> None:
    """Keep the memory of a branch that waits until the step of the net around it has ended."""
    origin = memory._origin
    if origin is not None and origin.is_of(memory) and not memory.lasting:
        parent = origin.parent
        if parent._kept is None or not parent._kept.is_of(parent):
            parent._kept = KeptBranches(parent)
        parent._kept.by_place[origin.place] = memory


def kept_branches(memory: Memory) -> list[Memory]:
    """Return the branches of the current step of ``memory`` that are kept in RAM."""
    return [branch for _, branch in named_branches(memory)]


def named_branches(memory: Memory) -> list[tuple[str, Memory]]:
    """Return the same with their names."""
    step = memory.step_place
    return [(place[2], kept) for place, kept in _by_place(memory).items() if place[:2] == step]


def _by_place(memory: Memory) -> dict[Place, Memory]:
    """Return all branches that ``memory`` keeps, and not what it was copied from."""
    kept = memory._kept
    return kept.by_place if kept is not None and kept.is_of(memory) else {}


async def kept_branch(memory: Memory, place: Place) -> Memory | None:
    """Return the branch of ``memory`` that is kept for a place, ready for use."""
    branch = _by_place(memory).get(place)
    if branch is not None:
        branch.resumed = True
        await branch.open()
    return branch


async def copy_kept_branches(memory: Memory, copied: Memory) -> None:
    """Give a copy of a memory copies of the branches that this one keeps for its current step.

    A fork that is made while a run uses the memory is not a copy of the run, and gets none.
    """
    if not memory.busy and copied.step_place == memory.step_place:
        for name, branch in named_branches(memory):
            await copied._take_branch(name, branch)


def drop_kept_branches(memory: Memory) -> None:
    """Drop the branches of earlier steps of ``memory`` that are kept in RAM."""
    kept, step = _by_place(memory), memory.step_place
    for place in [place for place in kept if place[:2] != step]:
        del kept[place]
