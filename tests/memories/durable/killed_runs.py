"""Kills runs at random moments: ``python killed_runs.py <journal> <place> <folder> <kills>``.

Each life of a run is a process of its own, a fork of this one, which is killed (SIGKILL) after a
random time; the next one continues. A run that has ended is checked.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import anyio
import click
import numpy as np  # noqa: F401  a journal that was killed is checked with it

from agent_brain.memories import (
    Journal,
    PostgresJournal,
    RamJournal,
    RedisJournal,
    SQLiteJournal,
)
from tests.memories.durable.branching_runs import KINDS, BranchingRun
from tests.memories.durable.whole_runs import MEMORIES, NETS, WholeRun
from tests.support import postgres_server, redis_server

KILLED = -signal.SIGKILL
WHOLE = tuple(f"{net} {memory}" for net, memory in product(NETS, MEMORIES))


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


def make_run(kind: str, folder: Path, session: str) -> WholeRun | BranchingRun:
    """A run of one of :data:`WHOLE` or :data:`KINDS`."""
    if kind in KINDS:
        return BranchingRun(kind, folder, session)
    net, memory = kind.split()
    return WholeRun(net, memory, folder, session)


def in_journal(
    journal: tuple[str, str], work: Callable[[Journal], Awaitable[object]]
) -> Callable[[], Awaitable[object]]:
    """Return ``work`` with a journal that is opened for it."""

    async def done() -> object:
        async with open_journal(*journal) as opened:
            return await work(opened)

    return done


def kill(
    journal: tuple[str, str], folder: Path, kinds: Sequence[str], kills: int, rng: random.Random
) -> tuple[int, int]:
    """Kill runs of these kinds; return the number of kills and of runs, all of which are whole."""
    killed, runs = 0, 0
    usual: dict[str, tuple[Any, float]] = {}  # the outcome, and seconds
    while killed < kills:
        kind = rng.choice(kinds)
        if kind not in usual:
            usual[kind] = without_kills(journal, folder, kind)
        outcome, seconds = usual[kind]
        run, before = make_run(kind, folder, f"{kind} {runs}"), killed
        live = in_journal(journal, run.live)
        while (status := in_a_process(live, rng.uniform(0, seconds))) == KILLED:
            killed += 1
            seconds *= 1.1  # the machine may be slower than it was
            assert killed < before + 100, f"{run.session} does not get on"
        assert status == 0, f"{run.session} failed after {killed} kills"
        check = in_journal(journal, partial(run.check, usual=outcome))
        assert in_a_process(check) == 0, f"{run.session} is not whole after {killed - before} kills"
        runs += 1
    return killed, runs


def without_kills(journal: tuple[str, str], folder: Path, kind: str) -> tuple[Any, float]:
    """Return the outcome of a run that is not killed, and how many seconds it takes."""
    anyio.run(make_run(kind, folder, f"in RAM {kind}").live, RamJournal())  # imports all
    whole = make_run(kind, folder, f"whole {kind}")
    started = time.monotonic()
    assert in_a_process(in_journal(journal, whole.live)) == 0
    seconds = time.monotonic() - started
    return anyio.run(in_journal(journal, whole.outcome)), seconds


@click.command()
@click.argument("journal", type=click.Choice(["sqlite", "redis", "postgres"]))
@click.argument("place")
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.argument("kills", type=int)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice([*WHOLE, *KINDS]),
    help="Only these runs, each with as many kills. Default: any.",
)
@click.option("--seed", default=0, show_default=True)
def main(
    journal: str, place: str, folder: Path, kills: int, kinds: Sequence[str], seed: int
) -> None:
    """Kill runs at random moments. PLACE is a path, a prefix or a schema; effects are in FOLDER."""
    rng = random.Random(seed)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    signal.signal(signal.SIGCHLD, lambda *_: None)
    groups: Sequence[Sequence[str]] = [(kind,) for kind in kinds] or [(*WHOLE, *KINDS)]
    for chosen in groups:
        killed, runs = kill((journal, place), folder, chosen, kills, rng)
        print(f"{journal}, {', '.join(chosen)}: {killed} kills, {runs} runs, all whole", flush=True)


if __name__ == "__main__":
    main()
