"""One user's memory to which several memories, also of other processes, write at the same time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_brain.memories import RamJournal, VectorMemory
from tests.memories.vector.support import WordsEmbedder, found, said, store_of, stored

pytestmark = pytest.mark.anyio
COUNT = 200

WRITER = """
import sys, anyio
from agent_brain.memories import Message, VectorMemory
from agent_brain.memories.vectors.chroma_folder import ChromaFolder
from tests.memories.vector.support import WordsEmbedder

ChromaFolder.write_rows = 100

async def main(folder):
    embedder = WordsEmbedder(64)
    async with VectorMemory(path=folder, session="ann", shared=True, embedder=embedder) as memory:
        print("open", flush=True)
        for line in sys.stdin:
            order, *words = line.split()
            if order == "add":
                await memory.update([Message.user(" ".join(words))])
                print("added", flush=True)
            elif order == "recall":
                hits = await memory.recall(" ".join(words), 1)
                print(*(hit.message.content for hit in hits), flush=True)
            elif order == "embedded":
                print(*embedder.texts, sep="; ", flush=True)
            else:
                name, count = words
                for start in range(0, int(count), 50):
                    texts = [f"{name} {n}" for n in range(start, start + 50)]
                    await memory.update([Message.user(text, id=text) for text in texts])
                print("filled", flush=True)

anyio.run(main, *sys.argv[1:])
"""


class Writer:
    """A process with a memory of the session, which carries out orders."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.answer() == "open"

    def order(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, line: str) -> str:
        self.order(line)
        return self.answer()


@pytest.fixture
def writers(tmp_path) -> Iterator[list[Writer]]:
    both = [Writer(tmp_path), Writer(tmp_path)]
    yield both
    for writer in both:
        writer.process.communicate(timeout=180)
        assert writer.process.returncode == 0


def test_each_process_finds_what_the_other_wrote_and_embeds_only_its_own(writers) -> None:
    one, two = writers
    assert one.ask("add My kitten sleeps") == two.ask("add We bought a truck") == "added"
    assert one.ask("recall car") == "We bought a truck"
    assert two.ask("recall dog") == "My kitten sleeps"
    assert one.ask("add It rained") == "added"
    assert two.ask("recall rained") == "It rained"
    assert one.ask("embedded") == "My kitten sleeps; car; It rained"
    assert two.ask("embedded") == "We bought a truck; dog; rained"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path) -> None:
    writers = [Writer(tmp_path), Writer(tmp_path)]
    for name, writer in zip(("one", "two"), writers, strict=True):
        writer.order(f"fill {name} {COUNT}")
    assert [writer.answer() for writer in writers] == ["filled", "filled"]
    for writer in writers:
        writer.process.communicate(timeout=180)
    embedder = WordsEmbedder(64)
    async with VectorMemory(path=tmp_path, session="ann", embedder=embedder) as memory:
        assert await memory.count() == 2 * COUNT
        assert "one 77" in await found(memory, "one 77", 3)
        assert embedder.texts == ["one 77"]
        assert len(await stored(memory)) == 2 * COUNT


async def test_what_one_forgets_the_others_do_not_find(tmp_path, embedder) -> None:
    options = {"path": tmp_path, "session": "ann", "shared": True, "embedder": embedder}
    async with VectorMemory(**options) as one, VectorMemory(**options) as two:
        await one.update(said("My kitten sleeps", "It rained"))
        assert await found(two, "dog", 1) == ["My kitten sleeps"]
        assert await two.forget(text="kitten") == 1
        assert await found(one, "dog kitten") == ["It rained"]
        assert len(await stored(two)) == 1


async def test_what_one_adds_while_another_one_opens_stays(tmp_path, embedder, monkeypatch) -> None:
    options = {"path": tmp_path, "session": "ann", "shared": True, "embedder": embedder}
    async with VectorMemory(**options) as one, VectorMemory(**options) as two:
        await one.update(said("My kitten sleeps"))
        keys = store_of(two).keys

        async def keys_after_another_update() -> set[str]:
            await one.update(said("It rained"))
            return await keys()

        with monkeypatch.context() as patch:
            patch.setattr(store_of(two), "keys", keys_after_another_update)
            await two.recall("dog")
        assert len(await stored(one)) == 2


async def test_the_context_recalls_what_another_conversation_has_said() -> None:
    journal = RamJournal()
    one, two = (VectorMemory(journal=journal, shared=True, recent=2) for _ in range(2))
    await one.update(said("My kitten sleeps", "It rained", "It snowed"))
    await two.set_goal("Where is the kitten?")
    assert "My kitten sleeps" in (await two.context())[0].content
