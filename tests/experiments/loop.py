"""A small loop over tasks: each turn by a Brain, with a restart where the task wants one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from agent_brain import Brain
from agent_brain.experiments.checks import Reply, Verdict
from agent_brain.experiments.task import Task, Turn
from agent_brain.memories import create_memory
from agent_brain.nets import create_net
from agent_brain.result import Result
from agent_brain.states.models.llm import LLM


async def passes(
    task: Task, net: str, memory: str, llm: LLM, folder: Path | None, **options: Any
) -> tuple[bool, list[Result[Any]]]:
    """Return whether a task passes, and the results of its turns."""
    results: list[Result[Any]] = []
    tools, good = task.make_tools(), True
    begun: set[str] = set()
    typed: dict[str, Any] = {"output_type": task.output_type}
    if task.output_type is None or net == "router":
        typed = {}
    for turns in _between_restarts(task):
        session = turns[0].session
        place: dict[str, Any] = {**options}
        if folder is not None:
            place |= {"journal": str(folder / "tasks.db"), "session": session}
            place["tenant"] = f"{net} {task.id}"
        async with AsyncExitStack() as stack:
            made: Any = create_memory(memory, tools, **place)
            store = await stack.enter_async_context(made)
            if session not in begun and task.messages:
                await store.update([*task.messages])
            begun.add(session)
            brain = await stack.enter_async_context(Brain(create_net(net, llm, **typed), store))
            for turn in turns:
                results.append(await brain.run(turn.text))
                good &= fits(turn.expected, task, turn, results[-1])
    return good and fits(task.expected, task, task.all_turns[-1], results[-1]), results


def _between_restarts(task: Task) -> list[list[Turn]]:
    parts = [[task.all_turns[0]]]
    for before, turn in pairwise(task.all_turns):
        if turn.restart or turn.session != before.session:
            parts.append([])
        parts[-1].append(turn)
    return parts


def fits(expected: object, task: Task, turn: Turn, result: Result[Any]) -> bool:
    match expected:
        case None:
            return True
        case str():
            return expected.casefold() in result.answer.casefold()
        case int():
            return re.findall(r"-?\d+", result.answer)[-1:] == [str(expected)]
        case dict():
            return TypeAdapter(Any).dump_python(result.output, mode="json") == expected
        case _ if callable(expected):
            verdict = expected(Reply(task, turn, result))
            return verdict.passed if isinstance(verdict, Verdict) else bool(verdict)
    raise TypeError(expected)


def passed_tags(rows: Iterable[tuple[Task, bool]]) -> dict[str, str]:
    """Return "3/4" by tag."""
    found: dict[str, list[bool]] = {}
    for task, good in rows:
        for tag in task.tags:
            found.setdefault(tag, []).append(good)
    return {tag: f"{sum(goods)}/{len(goods)}" for tag, goods in found.items()}
