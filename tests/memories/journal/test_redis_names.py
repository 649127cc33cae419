"""Sessions and kinds of any name, and journals that share a server, do not meet."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_brain.memories import Entry, JournalError, RedisJournal
from agent_brain.memories.errors import MemoryDefinitionError
from tests.support.redis_server import journal_prefix, redis_url
from tests.support.thorough import examples

HOSTILE = "}{:*?[]^\\\"'%_ /\0\r\n.s$1é汉"
NAMES = st.text(st.sampled_from(HOSTILE) | st.characters(exclude_categories=["Cs"]), max_size=8)


@pytest.fixture(autouse=True, scope="module")
def server() -> None:
    redis_url()


@settings(max_examples=examples(80))
@given(NAMES, NAMES, NAMES)
@example("", "}", "}:entries")
@example("a", "a}:history", "{s:a}")
@example("a\n", "a", "a\0")
@example("%2F", "/", "%252F")
def test_sessions_of_any_names_are_separate(one: str, two: str, three: str) -> None:
    async def run() -> None:
        names = sorted({one, two, three})
        with journal_prefix() as prefix:
            async with RedisJournal(redis_url(), prefix=prefix) as journal:
                for name in names:
                    await journal.append(name, [Entry(name, name)], expect=0)
                assert await journal.sessions() == names
                for part in {name[:2] for name in names}:
                    assert await journal.sessions(part) == [n for n in names if n.startswith(part)]
                for name in names:
                    assert [(e.kind, e.data) for e in await journal.read(name)] == [(name, name)]
                assert [record.key for record in await journal.records()] == names
                await journal.delete(names[0])
                assert await journal.sessions() == names[1:]
                for name in names[1:]:
                    assert len(await journal.read(name)) == 1

    anyio.run(run)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
class TestNames:
    async def test_names_may_be_very_long(self) -> None:
        names = ["汉" * 10_000, "汉" * 9_999 + "a"]
        with journal_prefix() as prefix:
            async with RedisJournal(redis_url(), prefix=prefix) as journal:
                for name in names:
                    await journal.append(name, [Entry(name, 1)])
                assert await journal.sessions("汉" * 9_999) == sorted(names)
                assert [(await journal.read(name))[0].kind for name in names] == names

    async def test_half_a_character_is_refused_before_anything_is_written(self) -> None:
        with journal_prefix() as prefix:
            async with RedisJournal(redis_url(), prefix=prefix) as journal:
                with pytest.raises(JournalError, match="encoded"):
                    await journal.append("a\ud800", [Entry("a", 1)])
                with pytest.raises(JournalError, match="encoded"):
                    await journal.append("a", [Entry("a", 1), Entry("\ud800", 1)])
                with pytest.raises(JournalError, match="encoded"):
                    await journal.sessions("\ud800")
                assert await journal.sessions() == []
                await journal.append("a", [Entry("a", "\ud800")])
                assert len(await journal.read("a")) == 1

    async def test_journals_of_other_prefixes_are_separate(self) -> None:
        with journal_prefix() as prefix:
            prefixes = [prefix, prefix + ":", prefix + ":sessions", prefix + "*", prefix + "\n"]
            journals = [RedisJournal(redis_url(), prefix=name) for name in prefixes]
            for journal in journals:
                await journal.append("s", [Entry("prefix", journal.prefix)], expect=0)
            for journal in journals:
                assert [e.data for e in await journal.read("s")] == [journal.prefix]
                await journal.delete("s")
                await journal.aclose()


@pytest.mark.parametrize("prefix", ["", "a{b", "a}"])
def test_a_prefix_with_braces_is_refused(prefix: str) -> None:
    with pytest.raises(MemoryDefinitionError, match="braces"):
        RedisJournal("redis://localhost", prefix=prefix)
