"""The branches in RAM that wait for a person, kept by the memory that they are branches of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from agent_brain.memories.base import Memory

Place: TypeAlias = tuple[str, str, str]  # the run, the step, and the name of the branch


class Origin(NamedTuple):
    """Which memory a branch was made of, and for which place in its run.

    Attributes:
        parent: The memory that it is a branch of.
        place: Its place.
        nested: Whether it is a copy of another memory, for a run inside the step.
    """

    parent: Memory
    place: Place
    nested: bool = False


def is_branch_of(memory: Memory, parent: Memory) -> bool:
    """Return whether ``parent.branch()`` has made ``memory``, and finds it again."""
    return memory._origin is not None and memory._origin.parent is parent


def keep_branch(memory: Memory) -> None:
    """Keep the memory of a branch that waits until the step of the net around it has ended."""
    if memory._origin is not None and not memory.lasting:
        parent, place, _ = memory._origin
        parent._kept = {**(parent._kept or {}), place: memory}


def kept_branches(memory: Memory) -> list[Memory]:
    """Return the branches of the current step of ``memory`` that are kept in RAM."""
    return [branch for _, branch in named_branches(memory)]


def named_branches(memory: Memory) -> list[tuple[str, Memory]]:
    """Return the same with their names."""
    kept, step = memory._kept or {}, memory.step_place
    return [(place[2], branch) for place, branch in kept.items() if place[:2] == step]


async def kept_branch(memory: Memory, place: Place) -> Memory | None:
    """Return the branch of ``memory`` that is kept for a place, ready for use."""
    branch = None if memory._kept is None else memory._kept.get(place)
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
    if memory._kept:
        step = memory.step_place
        memory._kept = {place: kept for place, kept in memory._kept.items() if place[:2] == step}
