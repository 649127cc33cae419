"""The task sets that are made by a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from agent_brain.experiments.task import Task
from agent_brain.experiments.task_sets.making import make_tasks
from agent_brain.experiments.task_sets.structured import structured
from agent_brain.experiments.task_sets.users import (
    long_conversation,
    long_memory_task,
    sessions,
    user_task,
)
from agent_brain.experiments.task_sets.with_tools import arithmetic, failing_tool, lookup
from agent_brain.states.models.llm import LLM

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


def user_memory(n: int = 50, seed: int = 0, judge: LLM | str | None = None) -> list[Task]:
    """Return tasks of what a user says over three sessions, five kinds in turn, each with a tag.

    - ``update``: what was said in the first session has changed in the second
    - ``preference``: how the user wants to be answered, from the second session on
    - ``deletion``: the user has something forgotten
    - ``absent``: something is asked for that the user has never said
    - ``contradiction``: a page that a tool returns says something else than the user

    The first session has 80 messages, and the question stands alone in the last one. So a memory
    must hold several sessions: give :func:`with_user`, :func:`one_conversation`, or a function of
    your own.

    Args:
        n: How many tasks.
        seed: Another seed makes other tasks.
        judge: A model that judges the answers by what each must say, as a language model may say
            it in many ways; None to check their words.

    Raises:
        ExperimentError: ``n`` is not a whole number from 1, or ``judge`` is not a model.
    """
    made = make_tasks(partial(user_task, judge=judge), n, seed=seed, name="user-memory")
    return _sourced(made, f"user_memory(seed={seed})")


def _sourced(tasks: list[Task], source: str) -> list[Task]:
    return [replace(task, source=f"agent_brain.experiments.{source}") for task in tasks]
