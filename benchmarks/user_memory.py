"""What a user's memory withstands, and what it costs.

    python -m benchmarks.user_memory [--facts N] [--messages N] [--seeds N]

Kills, many processes and bytes of forgotten text are tests: see docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from agent_brain import Message, MessagesMemory, SQLiteJournal
from agent_brain.memories import Fact, Origin, UserMemory
from benchmarks.users import attacks, honest, updates

WORDS = [f"word{n}" for n in range(3_000)]


def show(what: str, figure: str) -> None:
    print(f"| {what:<52} | {figure:>24} |", flush=True)


async def milliseconds(work: Callable[[int], Awaitable[object]], times: int = 25) -> str:
    """Return the median time of some work, and of it on a CPU, after a first that does not count."""
    await work(times)
    taken, busy = [], []
    for number in range(times):
        start, used = time.perf_counter(), time.process_time()
        await work(number)
        taken.append(time.perf_counter() - start)
        busy.append(time.process_time() - used)
    return f"{median(taken) * 1e3:.1f} ms, CPU {median(busy) * 1e3:.1f}"


async def withstood(seeds: int) -> None:
    for seed in range(seeds):
        found = await updates.measure(seed)
        show(f"changes, order {seed}: shown as they were", f"{found.shown} of {found.changes:,}")
        show("  what held at a moment: wrong answers", f"{found.wrong_as_of} of {found.asked:,}")
    done = {name: await attacks.damage(await attack()) for name, attack in attacks.ATTACKS.items()}
    for name in [name for name, damage in done.items() if damage]:
        show(f"  succeeded: {name}", f"{len(done[name])}")
    show("attacks that succeeded", f"{sum(map(bool, done.values()))} of {len(done)}")
    for setting in honest.SETTINGS:
        lowered = await honest.lowered_in(setting)
        kept = 1 - len(lowered) / len(honest.STATEMENTS)
        show(f"honest statements kept as hers, {setting}", f"{kept:.3f}")


async def timed(facts: int, messages: int, folder: Path) -> None:
    rng = random.Random(1)

    def text() -> str:
        return "Likes " + " ".join(rng.choice(WORDS) for _ in range(8))

    def fact(number: int) -> Fact:
        slot = f"slot {number // 6}" if number % 2 else None
        said = attacks.at(number / 10)
        return Fact(text=text(), slot=slot, origin=Origin.USER, said_at=said)

    async with SQLiteJournal(folder / "agents.db") as journal:
        place = {"journal": journal, "tenant": "ann"}
        async with UserMemory(**place) as user:  # type: ignore[arg-type]
            await user.load({"version": 1, "facts": [fact(n).model_dump() for n in range(facts)]})

        async def opened(number: int) -> None:
            async with UserMemory(**place) as user:  # type: ignore[arg-type]
                await user.facts()

        many = f"over {facts:,} facts"
        show(f"opened and read, {many}", await milliseconds(opened, 3))
        async with UserMemory(**place) as user:  # type: ignore[arg-type]

            async def context(number: int) -> None:
                memory = user.over(MessagesMemory())
                await memory.set_goal(f"What about word{number} and word{7 * number}?")
                await memory.context()

            def told(number: int) -> Message:
                return attacks.user("I like it", 9_000 + number)

            show(
                f"recall {many}", await milliseconds(lambda n: user.recall(f"word{n} word{3 * n}"))
            )
            show(f"context() {many}", await milliseconds(context))
            show(
                f"remember {many}",
                await milliseconds(lambda n: user.remember(text(), source=told(n))),
            )
        for session in range(10):
            async with MessagesMemory(**place, session=f"chat {session}") as chat:  # type: ignore[arg-type]
                await chat.update([attacks.user(text(), n / 10) for n in range(messages // 10)])
        async with UserMemory(**place) as user:  # type: ignore[arg-type]
            many = f"over {messages:,} messages"
            found = await milliseconds(lambda n: user.messages(f"word{n} word{3 * n}", 5))
            show(f"messages {many}", found)


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--facts", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=2, help="orders in which changes are learned")
    options = parser.parse_args()
    await withstood(options.seeds)
    with tempfile.TemporaryDirectory() as folder:
        await timed(options.facts, options.messages, Path(folder))


if __name__ == "__main__":
    asyncio.run(main())
