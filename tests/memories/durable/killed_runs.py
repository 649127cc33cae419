"""Kills whole runs at random moments: ``python killed_runs.py <journal> <place> <folder> <kills>``.

Each life of a run is a process of its own, a fork of this one, which is killed (SIGKILL) after a
random time; the next one continues. A run that has ended is checked. ``<place>`` is a path, a prefix
of Redis or a schema of PostgreSQL. An optional last argument is the seed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from itertools import count, product
from pathlib import Path

import anyio

from agent_brain.memories import (
    Journal,
    PostgresJournal,
    RamJournal,
    RedisJournal,
    SQLiteJournal,
)
from tests.memories.durable.whole_runs import MEMORIES, NETS, WholeRun
from tests.support import postgres_server, redis_server

KILLED = -signal.SIGKILL


def open_journal(kind: str, place: str) -> Journal:
    if kind == "sqlite":
        return SQLiteJournal(place)
    if kind == "redis":
        return RedisJournal(redis_server.URL, prefix=place)
    return PostgresJournal(postgres_server.URL, schema=place)


def in_a_process(work: Callable[[], Awaitable[object]], seconds: float | None = None) -> int:
    """Do ``work`` in a process that is killed after ``seconds``; return how it ended."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            anyio.run(work)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    if seconds is not None and signal.sigtimedwait([signal.SIGCHLD], seconds) is None:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.sigtimedwait([signal.SIGCHLD], 0)
    return status


def main(kind: str, place: str, folder: Path, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    signal.signal(signal.SIGCHLD, lambda *_: None)
    killed, runs = 0, count()
    usual: dict[tuple[str, str], tuple[int, float]] = {}  # payments, seconds
    for net, memory in product(NETS, MEMORIES):
        whole = WholeRun(net, memory, folder, f"whole {net} {memory}")

        async def once(whole: WholeRun = whole) -> None:
            async with open_journal(kind, place) as journal:
                await whole.live(journal)

        async def in_ram(whole: WholeRun = whole) -> None:
            await whole.live(RamJournal())

        anyio.run(in_ram)  # this process imports what the others need
        whole.file.unlink()
        started = time.monotonic()
        assert in_a_process(once) == 0
        usual[net, memory] = len(whole.noted("pay")), time.monotonic() - started
    while killed < kills:
        net, memory = rng.choice([*usual])
        payments, seconds = usual[net, memory]
        run = WholeRun(net, memory, folder, f"{next(runs)} {net} {memory}")

        async def live(run: WholeRun = run) -> None:
            async with open_journal(kind, place) as journal:
                await run.live(journal)

        async def check(run: WholeRun = run, payments: int = payments) -> None:
            async with open_journal(kind, place) as journal:
                await run.check(journal, payments)

        before = killed
        while (status := in_a_process(live, rng.uniform(0, seconds))) == KILLED:
            killed += 1
            seconds *= 1.1  # the machine may be slower than it was
            assert killed < before + 100, f"{run.session} does not get on"
        assert status == 0, f"{run.session} failed after {killed} kills"
        assert in_a_process(check) == 0, f"{run.session} is not whole after {killed} kills"
    print(f"{killed} kills, {next(runs)} runs, all whole")


if __name__ == "__main__":
    main(
        sys.argv[1],
        sys.argv[2],
        Path(sys.argv[3]),
        int(sys.argv[4]),
        int(sys.argv[5]) if len(sys.argv) > 5 else 0,
    )
