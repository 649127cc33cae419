"""A process that acquires a lease and is killed: ``python redis_writer.py URL PREFIX SECONDS``."""

from __future__ import annotations

import sys

import anyio

from agent_brain.memories import Entry, RedisJournal


async def main() -> None:
    url, prefix, seconds = sys.argv[1:]
    async with RedisJournal(url, prefix=prefix) as journal:
        lease = await journal.acquire("s", seconds=float(seconds))
        await journal.append("s", [Entry("a", "of the other process")], lease=lease)
        print("leased", flush=True)
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main)
