"""Runs, or resumes, a session: ``python runner.py <kind of journal> <its place> <folder> <wait>``.

Its tool notes itself in ``begun.txt`` and returns when there is a file ``go``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from agent_brain import Brain, tool
from agent_brain.memories import (
    Journal,
    LeaseHeldError,
    MessagesMemory,
    PostgresJournal,
    RedisJournal,
    SQLiteJournal,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.support import postgres_server, redis_server

KIND, PLACE, FOLDER, WAIT = sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])


@tool(idempotent=True)
async def work() -> str:
    """Work."""
    with (FOLDER / "begun.txt").open("a", encoding="utf-8") as file:
        file.write("begun\n")
    print("begun", flush=True)
    while not (FOLDER / "go").exists():
        await anyio.sleep(0.01)
    return "worked"


def open_journal() -> Journal:
    if KIND == "sqlite":
        return SQLiteJournal(PLACE)
    if KIND == "redis":
        return RedisJournal(redis_server.URL, prefix=PLACE)
    return PostgresJournal(postgres_server.URL, schema=PLACE)


async def main() -> None:
    async with (
        open_journal() as journal,
        MessagesMemory(journal=journal, session="shared", lease_wait=WAIT) as memory,
    ):
        resumes = memory.control.run_id is not None
        print("opened", flush=True)
        call = [Action(name="work", args={})]
        turns = ["done", "not asked"] if resumes else [call, "done"]
        brain = Brain("react", memory, [work], llm=ScriptedLLM(turns))
        try:
            result = await (brain.resume() if resumes else brain.run("go"))
        except LeaseHeldError as error:
            print(f"held: {error.owner}", flush=True)
            return
        print(f"answer: {result.answer}", flush=True)


anyio.run(main)
