"""Vectors in a folder, on a server and behind a client: kept, isolated, rebuilt."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

import anyio
import chromadb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_brain import Brain
from agent_brain.memories import (
    EmbedderMismatchError,
    Message,
    SessionConflictError,
    SQLiteJournal,
    VectorMemory,
    VectorStoreError,
)
from agent_brain.memories.embedders import FunctionEmbedder
from agent_brain.memories.recall.passages import passages
from agent_brain.memories.vectors.chroma_folder import ChromaFolder
from agent_brain.memories.vectors.ram import RamVectors, unit_vectors
from agent_brain.testing import ScriptedLLM
from tests.memories.vector.support import (
    ChromaProcess,
    WordsEmbedder,
    bytes_under,
    chroma_process,
    found,
    said,
    store_of,
    stored,
)
from tests.support.thorough import thorough

pytestmark = pytest.mark.anyio
one_loop = pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the rest of it is not ours
TEXTS = ["My kitten sleeps", "We drove home", "It rained all day"]


@pytest.fixture
def big_writes(monkeypatch) -> None:
    """Nobody waits for the event loop here."""
    monkeypatch.setattr(ChromaFolder, "write_rows", 500)


@pytest.fixture(params=["folder", "server", "client"])
def place(request, tmp_path: Path):
    """Options of a memory that is kept, in each of the ways there are."""
    if request.param == "folder":
        return {"path": tmp_path / "memory"}
    journal = tmp_path / "journal.db"
    if request.param == "server":
        return {
            "url": request.getfixturevalue("server").url,
            "journal": journal,
            "tenant": str(tmp_path),
        }
    return {"client": chromadb.EphemeralClient(), "journal": journal, "tenant": str(tmp_path)}


async def test_a_later_process_has_the_same_memory_without_embedding_again(place, embedder) -> None:
    async with VectorMemory(**place, embedder=embedder) as memory:
        await memory.update(said(*TEXTS))
    later = WordsEmbedder()
    async with VectorMemory(**place, embedder=later) as memory:
        assert later.texts == []
        assert await found(memory, "dog", 1) == ["My kitten sleeps"]
        assert later.texts == ["dog"]


@one_loop
async def test_one_message_among_many_that_are_alike_is_found_by_meaning(tmp_path) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        vectors = []
        for text in texts:
            vector = [0.001] * 16
            for word in text.lower().split():
                vector[zlib.crc32(word.encode()) % 16] += 1
            vectors.append(vector)
        return vectors

    embedder = FunctionEmbedder(embed, name="counts")
    messages = said(*[f"message number{n} ünïcode{n} 日本語 🎉" for n in range(501)])
    async with VectorMemory(path=tmp_path, embedder=embedder) as memory:
        await memory.update(messages[:500])
        await memory.update(messages[500:])
        before = await memory.recall("ünïcode1 日本語", k=2)
    async with VectorMemory(path=tmp_path, embedder=embedder) as memory:
        after = await memory.recall("ünïcode1 日本語", k=2)
        told = [*messages[:499], *messages[500:]]
        await memory.forget(ids=[messages[499].id])
        last = await memory.recall("number499 ünïcode499", k=501)
    assert [one.score for one in after] == pytest.approx([one.score for one in before], abs=0.01)
    assert all("meaning" in one.why for one in after)
    assert {one.message.id for one in last} <= {one.id for one in told}


async def test_a_process_that_ended_early_costs_a_few_texts_at_most(place, embedder) -> None:
    memory = VectorMemory(**place, embedder=embedder)
    await memory.update(said(*[f"kitten {n}" for n in range(200)]))
    await memory.update(said("left in RAM"))
    later = WordsEmbedder()
    async with VectorMemory(**place, embedder=later):
        assert later.texts == ["left in RAM"]
    await memory.aclose()


async def test_another_model_is_refused_and_reindex_takes_it(place, embedder) -> None:
    async with VectorMemory(**place, embedder=embedder) as memory:
        await memory.update(said(*TEXTS))
    for other in (WordsEmbedder(name="other"), WordsEmbedder(16)):
        memory = VectorMemory(**place, embedder=other)
        with pytest.raises(EmbedderMismatchError, match="reindex") as caught:
            await memory.update(said("refused"))
        assert "words" in caught.value.known
        await memory.reindex()
        assert await found(memory, "dog", 1) == ["My kitten sleeps"]
        assert await memory.count() == 3
        assert other.texts[:3] == TEXTS
        await memory.aclose()
        async with VectorMemory(
            **place, embedder=(again := WordsEmbedder(other.dimension, name=other.name))
        ) as memory:
            assert again.texts == []
        async with VectorMemory(**place, embedder=other) as memory:
            memory._vectors.embedder = embedder
            await memory.reindex()


@pytest.mark.parametrize("method", ["set_goal", "begin", "restore", "load", "run"])
async def test_another_model_is_refused_before_anything_is_written(
    tmp_path, embedder, method
) -> None:
    async with VectorMemory(path=tmp_path, embedder=embedder) as memory:
        await memory.update(said(*TEXTS))
    async with VectorMemory() as other:
        await other.update(said("It is windy"))
        snapshot, exported = await other.snapshot(), await other.export()
    memory = VectorMemory(path=tmp_path, embedder=WordsEmbedder(16))
    brain = Brain("react", memory, llm=ScriptedLLM(["It is."]))
    calls = {
        "set_goal": lambda: memory.set_goal("Is it?"),
        "begin": lambda: memory.begin(Message.user("Is it?"), "run", "START"),
        "restore": lambda: memory.restore(snapshot),
        "load": lambda: memory.load(exported),
        "run": lambda: brain.run("Is it?"),
    }
    with pytest.raises(EmbedderMismatchError, match="reindex"):
        await calls[method]()
    await memory.aclose()
    async with VectorMemory(path=tmp_path) as later:
        assert [message.content for message in await later.messages()] == TEXTS


async def test_clear_forget_and_deletion_reach_the_store(place, embedder) -> None:
    memory = VectorMemory(**place, embedder=embedder)
    await memory.update(said(*[f"kitten {n}" for n in range(100)]))
    await memory.forget(text="kitten 5")
    kept = await stored(memory)
    assert kept
    assert not kept - {m.id for m in await memory.messages()}
    await memory.clear()
    assert await stored(memory) == set()
    await memory.aclose()


def test_a_removed_vector_is_not_in_ram_either() -> None:
    vectors = RamVectors()
    vectors.put(["a", "b", "c"], np.eye(3))
    assert vectors.remove("a")
    assert vectors.remove("c")
    assert np.argwhere(vectors._room).tolist() == [[0, 1]]


async def test_what_the_store_could_not_delete_is_deleted_later(
    tmp_path, embedder, monkeypatch
) -> None:
    async def down(keys: object) -> None:
        raise VectorStoreError("the store is down")

    place = {"client": chromadb.EphemeralClient(), "journal": tmp_path / "journal.db"}
    async with VectorMemory(**place, tenant=str(tmp_path), embedder=embedder) as memory:
        await memory.update(said(*TEXTS))
        await memory._vectors.save()
        with monkeypatch.context() as patch:
            patch.setattr(store_of(memory), "delete", down)
            with pytest.raises(VectorStoreError, match="down"):
                await memory.forget(text="kitten")
        await memory._vectors.save()
        assert await stored(memory) == {m.id for m in await memory.messages()}


async def test_what_a_crash_left_behind_is_deleted_when_the_session_is_opened(
    place, embedder, monkeypatch
) -> None:
    async with VectorMemory(**place, embedder=embedder) as memory:
        await memory.update(said(*TEXTS))
        await memory._vectors.save()
        monkeypatch.setattr(memory._vectors, "remove", lambda messages: None)  # it ends there
        await memory.forget(text="kitten")
    async with VectorMemory(**place, embedder=embedder) as memory:
        assert len(await stored(memory)) == 2


async def test_tenants_and_sessions_do_not_see_each_other(place, embedder) -> None:
    common = {key: value for key, value in place.items() if key != "tenant"}
    owner = place.get("tenant", "owner")
    names = [
        ("b:c", owner),
        ("c", f"{owner}:b"),
        (f"{owner}:b:c", None),
        (f"{owner}:b:c", "None"),
        ("c", f"{owner}','b"),
    ]
    memories = [VectorMemory(**common, session=s, tenant=t, embedder=embedder) for s, t in names]
    for number, memory in enumerate(memories):
        await memory.update([Message.user(f"kitten of {number}", id="same")])
        await memory.aclose()
    later = WordsEmbedder()
    memories = [VectorMemory(**common, session=s, tenant=t, embedder=later) for s, t in names]
    for memory in memories:
        await memory.open()
    assert later.texts == []
    assert await memories[0].forget("same") == 1
    for number, memory in enumerate(memories):
        assert await found(memory, "kitten") == ([] if number == 0 else [f"kitten of {number}"])
        await memory.clear()
        await memory.aclose()


@settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.text("a:/[\"',]\\\x00 é", min_size=1, max_size=4)),
            st.text("a:/[\"',]\\\x00 é", min_size=1, max_size=4),
        ),
        min_size=2,
        max_size=4,
        unique=True,
    )
)
def test_no_two_names_share_a_session(tmp_path_factory, names) -> None:
    folder, client = tmp_path_factory.mktemp("shared"), chromadb.EphemeralClient()

    async def check() -> None:
        embedder = WordsEmbedder()
        memories = [
            VectorMemory(
                client=client, journal=folder / "j.db", session=s, tenant=t, embedder=embedder
            )
            for t, s in names
        ]
        for number, memory in enumerate(memories):
            await memory.update([Message.user(f"kitten {number}", id="same")])
            await memory._vectors.save()
        await memories[0].forget("same")
        assert await found(memories[0], "kitten") == []
        for number, memory in enumerate(memories[1:], 1):
            assert await found(memory, "kitten") == [f"kitten {number}"]
            assert await stored(memory) == {"same"}
        for memory in memories:
            await memory.clear()
            await memory.aclose()

    anyio.run(check)


@pytest.mark.parametrize("saved", [3, *thorough([150]), 1_100])
@pytest.mark.parametrize("sentences", [1, 80])
async def test_nothing_of_a_forgotten_message_is_in_the_folder(
    tmp_path, embedder, saved, sentences, big_writes
) -> None:
    memory = VectorMemory(path=tmp_path, embedder=embedder, journal=tmp_path / "journal.db")
    secret = " ".join(f"Zanzibar {n} password." for n in range(sentences))
    await memory.set_goal("tell me")
    await memory.update(said(*[f"kitten {n}" for n in range(saved)], secret, "rain"))
    await memory._vectors.save()
    made = [np.array(embedder._vector(passage), "<f4") for passage in passages(secret)]
    shapes = [shape.tobytes() for v in made for shape in (v, unit_vectors([v]))]
    assert (len(made) > 1) is (sentences > 1)
    before = bytes_under(tmp_path)
    assert b"Zanzibar" in before
    assert any(shape in before for shape in shapes)
    assert await memory.forget(text="zanzibar") == 1
    assert await found(memory, "Zanzibar password", 5, where=lambda m: "Zanzi" in m.content) == []
    left = bytes_under(tmp_path)
    assert b"Zanzibar" not in left
    database = (store_of(memory)._path / "chroma.sqlite3").read_bytes()
    assert not any(shape in database for shape in shapes)
    assert await stored(memory) == {message.id for message in await memory.messages()}
    await memory.aclose()
    assert b"Zanzibar" not in bytes_under(tmp_path)
    later = WordsEmbedder()
    async with VectorMemory(path=tmp_path, embedder=later) as memory:
        assert later.texts == []
        assert await memory.count() == saved + 2


@one_loop
async def test_the_ram_of_the_process_is_in_no_file(tmp_path, embedder) -> None:
    """Chroma writes a new index, and one of few rows at each opening, as ``malloc`` gave it."""
    for _ in range(3):
        freed = [b"Zanzibar" * (size // 8) for size in (400, 27_000) for _ in range(500)]
        del freed
        async with VectorMemory(path=tmp_path, embedder=embedder) as memory:
            await memory.update(said("kitten", "rain"))
            assert await found(memory, "kitten", 1) == ["kitten"]
            await memory._vectors.save()
            indexes = [*store_of(memory)._path.rglob("data_level0.bin")]
            indexes += store_of(memory)._path.rglob("length.bin")
            assert len(indexes) == 2
            assert not any(b"".join(map(Path.read_bytes, indexes)))
        assert not any(b"".join(map(Path.read_bytes, indexes)))


@pytest.mark.parametrize(
    "count, damage",
    [
        *[(5, each) for each in ("deleted", "truncated", "overwritten", "emptied")],
        *[(5, each) for each in ("misspelt", "not utf-8")],
        (1_010, "truncated"),  # an index of its own
        *thorough((1_010, each) for each in ("deleted", "overwritten")),
    ],
)
@one_loop
async def test_a_broken_folder_is_rebuilt_from_the_record(
    tmp_path, embedder, damage, count, big_writes
) -> None:
    for session in ("a", "b"):
        async with VectorMemory(path=tmp_path, session=session, embedder=embedder) as memory:
            await memory.update(said(*[f"kitten {n}" for n in range(count)]))
            folder = store_of(memory)._path
    for file in [file for file in folder.rglob("*") if file.is_file()]:
        if damage == "deleted":
            file.unlink()
        elif damage == "emptied":
            file.write_bytes(b"")
        elif damage == "truncated":
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        elif damage == "misspelt":
            table = b"CREATE TABLE 'embedding_fulltext_search_content'"
            file.write_bytes(file.read_bytes().replace(table, table.replace(b"TABLE", b"TABLX")))
        elif damage == "not utf-8":
            file.write_bytes(file.read_bytes().replace(b"CREATE TABLE", b"CREATE TABL\xff"))
        else:
            file.write_bytes(b"\x07" * file.stat().st_size)
    later = WordsEmbedder()
    async with VectorMemory(path=tmp_path, session="b", embedder=later) as memory:
        assert await found(memory, "dog kitten 3", 1) == ["kitten 3"]
        assert len(later.texts) == count + 1
    async with VectorMemory(path=tmp_path, session="b", embedder=(again := WordsEmbedder())):
        assert again.texts == []
    async with VectorMemory(path=tmp_path, session="a", embedder=(other := WordsEmbedder())):
        assert other.texts == []


async def test_a_folder_that_vanishes_while_it_is_open_is_filled_again(tmp_path, embedder) -> None:
    import shutil

    memory = VectorMemory(path=tmp_path, embedder=embedder)
    await memory.update(said(*[f"kitten {n}" for n in range(100)]))
    shutil.rmtree(tmp_path / "vectors")
    await memory.update(said(*[f"car {n}" for n in range(100)]))
    assert "kitten 7" in await found(memory, "kitten 7", 2)
    await memory.update(said(*[f"rain {n}" for n in range(100)]))
    await memory.aclose()
    later = WordsEmbedder()
    async with VectorMemory(path=tmp_path, embedder=later) as memory:
        assert await memory.count() == 300
        assert later.texts == []


@pytest.mark.thorough
@one_loop
async def test_a_server_that_is_killed_and_started_again(tmp_path, embedder) -> None:
    with chroma_process(tmp_path / "chroma") as server:
        options = {"url": server.url, "journal": tmp_path / "journal.db"}
        memory = VectorMemory(**options, embedder=embedder)
        await memory.update(said(*[f"kitten {n}" for n in range(100)]))
        server.kill()
        await memory.update(said(*[f"car {n}" for n in range(100)], "the dog is grey"))
        assert await found(memory, "dog grey", 1) == ["the dog is grey"]
        with pytest.raises(VectorStoreError, match=server.url):
            await memory.forget(text="kitten 50")
        assert await found(memory, "kitten 50", 1) != ["kitten 50"]
        await memory.checkpoint()
        server.start()
        await memory.update(said("back again"))
        await memory.aclose()
        later = WordsEmbedder()
        async with VectorMemory(**options, embedder=later) as memory:
            assert later.texts == []
            assert await memory.count() == 201
            assert len(await stored(memory)) == 201


@one_loop
async def test_a_server_that_lost_its_data_gets_it_again(tmp_path, embedder) -> None:
    with chroma_process(tmp_path / "chroma") as server:
        options = {"url": server.url, "journal": tmp_path / "journal.db"}
        memory = VectorMemory(**options, embedder=embedder)
        await memory.update(said(*[f"kitten {n}" for n in range(100)]))
        server.kill()
        server.folder = tmp_path / "empty"
        server.start()
        await memory.update(said(*[f"car {n}" for n in range(100)]))
        await memory.aclose()
        later = WordsEmbedder()
        async with VectorMemory(**options, embedder=later):
            assert later.texts == []


async def test_a_server_that_is_down_is_told_when_the_memory_is_opened(tmp_path, embedder) -> None:
    url = ChromaProcess(tmp_path).url
    memory = VectorMemory(url=url, journal=tmp_path / "journal.db", embedder=embedder)
    with pytest.raises(VectorStoreError, match=url):
        await memory.open()
    with pytest.raises(VectorStoreError, match=url):
        await memory.update(said("x"))
    await memory.aclose()
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        assert await journal.sessions() == []  # what was refused has left no trace


async def test_two_sessions_write_to_one_folder_at_once(tmp_path) -> None:
    embedders = [WordsEmbedder(), WordsEmbedder()]

    async def write(number: int) -> None:
        async with VectorMemory(
            path=tmp_path, session=f"s{number}", embedder=embedders[number]
        ) as memory:
            for start in range(0, 200, 20):
                await memory.update(
                    said(*[f"kitten {number}.{n}" for n in range(start, start + 20)])
                )

    async with anyio.create_task_group() as group:
        group.start_soon(write, 0)
        group.start_soon(write, 1)
    for number in range(2):
        later = WordsEmbedder()
        async with VectorMemory(path=tmp_path, session=f"s{number}", embedder=later) as memory:
            assert later.texts == []
            assert await found(memory, f"{number}.77", 1) == [f"kitten {number}.77"]


PROGRAM = """
import sys, anyio
from agent_brain.memories import SessionConflictError, VectorMemory
from agent_brain.memories.embedders import FunctionEmbedder
from agent_brain.memories.vectors.chroma_folder import ChromaFolder
from tests.memories.vector.support import WordsEmbedder, said

ChromaFolder.write_rows = 500

async def main(folder, session):
    async with VectorMemory(path=folder, session=session, embedder=WordsEmbedder()) as memory:
        print("open", flush=True)
        sys.stdin.readline()
        try:
            for start in range(0, 1200, 200):
                await memory.update(said(*[f"{session} {n}" for n in range(start, start + 200)]))
            print("done", flush=True)
        except SessionConflictError:
            print("conflict", flush=True)

anyio.run(main, *sys.argv[1:])
"""


def _process(folder: Path, session: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), session],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _talk(processes: list[subprocess.Popen[str]]) -> list[str]:
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate(timeout=180)[0].strip() for process in processes]


@pytest.mark.thorough
def test_two_processes_share_a_folder_with_a_session_each(tmp_path) -> None:
    assert _talk([_process(tmp_path, "one"), _process(tmp_path, "two")]) == ["done", "done"]

    async def check() -> None:
        for session in ("one", "two"):
            later = WordsEmbedder()
            async with VectorMemory(path=tmp_path, session=session, embedder=later) as memory:
                assert (await memory.count(), later.texts) == (1200, [])
                assert await found(memory, f"{session} 1111", 1) == [f"{session} 1111"]

    anyio.run(check)


def test_the_second_process_on_one_session_is_told(tmp_path) -> None:
    assert sorted(_talk([_process(tmp_path, "s"), _process(tmp_path, "s")])) == ["conflict", "done"]

    async def check() -> None:
        async with VectorMemory(path=tmp_path, session="s", embedder=WordsEmbedder()) as memory:
            assert await memory.count() == 1200
            assert await found(memory, "s 1111", 1) == ["s 1111"]

    anyio.run(check)


async def test_the_second_memory_on_one_session_is_told(tmp_path, embedder) -> None:
    first = VectorMemory(path=tmp_path, embedder=embedder)
    second = VectorMemory(path=tmp_path, embedder=embedder)
    await first.update(said("one kitten"))
    await second.open()
    await first.update(said("two"))
    with pytest.raises(SessionConflictError):
        await second.update(said("three"))
    await second.reopen()
    await second.update(said("three"))
    assert sorted(await found(second, "one two three", 5)) == ["one kitten", "three", "two"]
    assert embedder.texts.count("one kitten") <= 2
    await first.aclose()
    await second.aclose()


async def test_a_reopened_session_shows_the_same_and_decodes_only_its_end(tmp_path) -> None:
    texts = [f"message {n}" for n in range(300)]
    async with VectorMemory(path=tmp_path, recent=4, k=0) as memory:
        await memory.update([Message.system("Be brief"), Message.user("kept", pinned=True)])
        messages = said(*texts)
        await memory.update(messages)
        await memory.pin(messages[50].id)
        await memory.set_goal("the goal")
        await memory.update(said(*texts))
        shown = await memory.context()
    async with VectorMemory(path=tmp_path, recent=4, k=0) as memory:
        assert await memory.context() == shown
        assert memory.store.log.encoded > 500
        await memory.pin(messages[70].id)
        assert messages[70] in [
            m.model_copy(update={"pinned": False}) for m in await memory.context()
        ]
        assert memory.store.log.encoded > 500
