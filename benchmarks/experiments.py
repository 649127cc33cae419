"""What an experiment costs beside a plain loop over ``Brain.run``: CPU of 1,000 cases of 5 steps.

    python -m benchmarks.experiments [CASES]

The model costs nothing. The loops do what an experiment does for each case: a memory and tools of
its own, and a run; one with memories in RAM, one with the same SQLite journal and trace. Each is
measured in a process of its own, in turns; the figures are medians, in milliseconds of CPU a case.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import anyio

from agent_brain import LLM, Brain, Message
from agent_brain.experiments import Experiment, Task
from agent_brain.memories import MessagesMemory, SQLiteJournal
from agent_brain.nets import react
from agent_brain.states import Usage
from agent_brain.tools import Action

ROUNDS = 3
AT_ONCE = 8


class TwoCalls(LLM):
    """Calls a tool twice, then answers: reasoning and acting twice, and the answer's two steps."""

    model = "two-calls"
    rule_based = True

    async def stream(self, messages: Sequence[Message], **_: Any) -> AsyncIterator[Any]:
        done = 0
        for message in reversed(messages):
            if message.role == "user":
                break
            done += message.role == "tool"
        if done < 2:
            yield Action(name="add", args={"a": done, "b": 1})
        else:
            yield "It is 2"
        yield Usage(100, 10, cost=0.0, model=self.model)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def plain(count: int, folder: Path, *, stored: bool) -> None:
    """Run so many cases in tasks, as many at once as the experiment does."""
    net = react(TwoCalls())
    numbers = iter(range(count))
    journal = SQLiteJournal(folder.with_suffix(".db"), durability="os") if stored else None

    async def work() -> None:
        for number in numbers:
            place: Any = {"journal": journal, "tenant": str(number)} if stored else {}
            async with MessagesMemory([add], **place) as memory:
                result = await Brain(net, memory, trace=stored).run(f"Say 2 ({number})")
            assert "2" in result.answer
            assert result.steps == 6

    async with anyio.create_task_group() as group:
        for _ in range(AT_ONCE):
            group.start_soon(work)
    if journal is not None:
        await journal.aclose()


async def experiment(count: int, folder: Path, **options: Any) -> None:
    tasks = [
        Task(id=f"t{number}", turns=f"Say 2 ({number})", expected=2, tools=[add])
        for number in range(count)
    ]
    made = Experiment(nets="react", models=TwoCalls(), tasks=tasks, at_once=AT_ONCE, **options)
    report = await made.run(folder)
    assert all(case.passed for case in report.cases)


WAYS: dict[str, Callable[[int, Path], Awaitable[None]]] = {
    "loop, RAM": partial(plain, stored=False),
    "loop, SQLite and trace": partial(plain, stored=True),
    "experiment": experiment,
    "experiment, nothing stored": partial(experiment, trace=False, keep_sessions=False),
}


def measure(way: str, count: int) -> float:
    """Return the seconds of CPU of this process for so many cases, after a few others."""
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(WAYS[way], 20, Path(folder) / "warm-up")
        begun = time.process_time()
        anyio.run(WAYS[way], count, Path(folder) / "measured")
        return time.process_time() - begun


def main(count: int) -> None:
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, seconds in found.items():
            command = [sys.executable, "-m", "benchmarks.experiments", str(count), way]
            seconds.append(float(subprocess.check_output(command, text=True)))
    base = median(found["loop, SQLite and trace"])
    print(f"{'':<28}{'ms a case':>10}{'ratio':>8}")
    for way, seconds in found.items():
        print(f"{way:<28}{median(seconds) / count * 1000:>10.2f}{median(seconds) / base:>8.2f}")


if __name__ == "__main__":
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    if len(sys.argv) > 2:
        print(measure(sys.argv[2], cases))
    else:
        main(cases)
