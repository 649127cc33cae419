"""The task sets that are made by a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from agent_brain.experiments.task import Task
from agent_brain.experiments.task_sets.arithmetic import arithmetic
from agent_brain.experiments.task_sets.lookups import failing_tool, lookup
from agent_brain.experiments.task_sets.making import make_tasks
from agent_brain.experiments.task_sets.remembering import (
    long_conversation,
    long_memory_task,
    sessions,
)
from agent_brain.experiments.task_sets.structured import structured

KINDS: tuple[Callable[[Random, str], Task], ...] = (
    arithmetic,
    lookup,
    long_conversation,
    sessions,
    structured,
    failing_tool,
)


def basics(n: int = 40, seed: int = 0) -> list[Task]:
    """Return tasks of what every agent needs, six kinds in turn, each with a tag.

    - ``arithmetic``: an expression of three to five operations, with a tool for each operation
    - ``lookup``: two to four look-ups, each of which needs what the one before it found
    - ``long conversation``: ten turns; facts come early, one is corrected, the question comes last
    - ``sessions``: two sessions that say different things, with restarts of the program in between
    - ``structured``: a form (``output_type``) to be filled in from one of three notes
    - ``failing tool``: a tool that fails once, or for one argument while another tool works

    No answer can be guessed from its question, and each task holds what does not belong to it. The
    same seed makes the same tasks, and fewer tasks are the first of more.

    Args:
        n: How many tasks.
        seed: Another seed makes other tasks.

    Raises:
        ExperimentError: ``n`` is not a whole number from 1.
    """

    def make(random: Random, name: str) -> Task:
        place = int(name.rpartition("-")[2]) - 1
        return KINDS[place % len(KINDS)](random, name)

    return _sourced(make_tasks(make, n, seed=seed, name="basics"), f"basics(seed={seed})")


def long_memory(n: int = 12, seed: int = 0) -> list[Task]:
    """Return tasks that a window cannot do: the fact is followed by 160 other messages.

    The memory holds them when the turn begins (``Task.messages``). ``messages`` shows all of them,
    ``vector`` and ``layered`` find the fact by its words, without an embedder; ``windowed`` has
    lost it, and so has every window of up to 160 messages.

    Args:
        n: How many tasks.
        seed: Another seed makes other tasks.

    Raises:
        ExperimentError: ``n`` is not a whole number from 1.
    """
    made = make_tasks(long_memory_task, n, seed=seed, name="long-memory")
    return _sourced(made, f"long_memory(seed={seed})")


def _sourced(tasks: list[Task], source: str) -> list[Task]:
    return [replace(task, source=f"agent_brain.experiments.{source}") for task in tasks]
