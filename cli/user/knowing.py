"""Show, correct and forget what is known about a user."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agent_brain.cli.exit_codes import ExitCode, UserError
from agent_brain.cli.options import Options
from agent_brain.cli.sanitize import one_line
from agent_brain.cli.sessions.changing import agrees, check_tenant, reading, writing
from agent_brain.cli.sessions.places import opened
from agent_brain.cli.sessions.tables import local_time, print_found, print_table
from agent_brain.common.text import count_of
from agent_brain.memories.user.facts import LIVE, USER, Fact
from agent_brain.memories.user.user_memory import UserMemory

COLUMNS = ("fact", "about", "slot", "text", "from", "status", "said")
DAY = len("2000-01-01")


@asynccontextmanager
async def opened_user(
    options: Options, *, write: bool = False, create: bool = False
) -> AsyncIterator[UserMemory]:
    """Open what is known about the user that the options name.

    Args:
        options: The options.
        write: Whether to write.
        create: Create the journal if it is missing; the user need not be known.

    Raises:
        UserError: There is no such journal or user, or it cannot be used as wanted.
    """
    async with opened(options, write=write, create=create) as journal:
        if not create:
            await check_tenant(journal, options.tenant)
        async with UserMemory(journal=journal, tenant=options.tenant, readonly=not write) as known:
            yield known


async def show_facts(options: Options, *, everything: bool) -> None:
    """Print the facts, current ones first, and the blocks."""
    async with opened_user(options) as user:
        found, blocks = await user.facts(status="all"), await user.blocks()
    shown = (*LIVE, *(("replaced", "ended") if everything else ()))
    facts = [fact for status in shown for fact in found[::-1] if fact.status == status]
    known = [item.model_dump(mode="json") for item in (*facts, *blocks)]
    if print_found(options, known, "Nothing is known"):
        return
    if facts:
        print_table(COLUMNS, map(_row, facts), long="text")
    if blocks:
        cells = [(block.name, block.text, str(block.version)) for block in blocks]
        print_table(("block", "text", "version"), cells, long="text")


def _row(fact: Fact) -> tuple[str, ...]:
    about = "" if fact.about == USER else fact.about
    when = local_time(fact.said_at)[:DAY]
    return fact.id, about, fact.slot or "", fact.text, fact.origin, fact.status, when


async def show_history(options: Options, fact_id: str) -> None:
    """Print a fact and those before and after it, with their sources."""
    async with opened_user(options) as user:
        chain = await user.history(fact_id)
    if print_found(options, [fact.model_dump(mode="json") for fact in chain], ""):
        return
    rows: list[tuple[str, ...]] = []
    for fact in chain:
        rows.append((fact.id, fact.status, fact.text, fact.origin, local_time(fact.said_at)))
        rows += [
            ("", "", f"“{source.quote}”", source.session or "", local_time(source.at))
            for source in fact.sources
        ]
    print_table(("fact", "status", "text", "from", "said"), rows, long="text")


async def correct_fact(options: Options, fact_id: str, text: str) -> None:
    """Replace a fact by a text."""
    async with opened_user(options, write=True) as user:
        new = await user.correct(fact_id, text)
    print(f"Stored as {new.id}, in place of {fact_id}")


def forget_facts(options: Options, *, confirmed: bool, **which: Any) -> ExitCode:
    """Forget facts and what they rest on, if the user agrees."""
    chosen = {name: value for name, value in which.items() if value}
    if len(chosen) != 1:
        raise UserError(
            "Choose what to forget: FACT, --text, --slot, --about, --conversation or --everything"
        )
    what = " ".join("everything" if value is True else repr(value) for value in chosen.values())
    if not confirmed:
        asyncio.run(_check_user(options))
        if not agrees(f"Forget {what} about {options.tenant!r}, and where it was said"):
            print("Nothing was forgotten")
            return ExitCode.FAILED
    count = asyncio.run(_forget(options, chosen))
    print(f"Forgotten: {count_of(count, 'fact')}")
    return ExitCode.ANSWERED


async def _check_user(options: Options) -> None:
    async with opened_user(options):
        pass


async def _forget(options: Options, which: dict[str, Any]) -> int:
    async with opened_user(options, write=True) as user:
        return await user.forget(**which)


async def export_facts(options: Options, output: Path) -> None:
    """Write all that is known as JSON, to a file or stdout."""
    async with opened_user(options) as user:
        exported = await user.export()
    with writing(output) as file:
        file.write(f"{one_line(json.dumps(exported, ensure_ascii=False))}\n")


async def import_facts(options: Options, path: Path) -> None:
    """Add what was exported to what is known."""
    with reading(path) as file:
        try:
            data = json.load(file)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{str(path)!r} is not JSON: {error}") from error
    async with opened_user(options, write=True, create=True) as user:
        count = await user.load(data)
    print(f"Added: {count_of(count, 'fact')}")
