"""Blocks: short texts about a user that a model edits."""

from __future__ import annotations

from datetime import datetime

from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.store.filters import checked_text
from agent_brain.memories.user.log import Block, UserLog

MOST_LETTERS = 2_000
MOST_BLOCKS = 20
LONGEST_NAME = 64


async def edit(log: UserLog, name: str, text: str, expect: int | None, now: datetime) -> Block:
    """Write a version of a block; see :meth:`UserMemory.edit_block`."""
    checked_text("a block's text", text)
    if (
        not isinstance(name, str)
        or not name.isprintable()
        or not 0 < len(name.strip()) <= LONGEST_NAME
    ):
        raise MemoryUseError(
            f"A block's name has 1 to {LONGEST_NAME} characters in one line, not {name!r}"
        )
    if len(text) > MOST_LETTERS:
        raise MemoryUseError(
            f"Block {name!r} would have {len(text):,} characters, and at most {MOST_LETTERS:,} are "
            "allowed: shorten it. Nothing was written"
        )
    written: list[Block] = []

    def plan() -> list[Block]:
        versions = log.blocks(name)
        at = versions[-1].version if versions else 0
        if expect is not None and expect != at:
            now_there = f"version {at}: {versions[-1].text!r}" if versions else "not there"
            raise MemoryUseError(
                f"Block {name!r} is {now_there}, and version {expect} was to be replaced. Nothing "
                "was written: read it again"
            )
        if not versions and len({block.name for block in log.known.all(Block)}) >= MOST_BLOCKS:
            raise MemoryUseError(f"There are {MOST_BLOCKS} blocks already, the most allowed")
        written[:] = [Block(name=name, text=text, version=at + 1, at=now)]
        return written

    await log.write(plan)
    return written[0]
