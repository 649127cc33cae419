"""A memory that shows everything while it fits, then a window with recall, then a summary."""

from __future__ import annotations

import random
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, ParallelState, react
from agent_brain.common.text import count_tokens
from agent_brain.memories import (
    AutoMemory,
    MemoryDefinitionError,
    Message,
    MessagesMemory,
    RamJournal,
    create_memory,
)
from agent_brain.memories.views.tokens import message_tokens
from agent_brain.states import MemoryEscalated, MessagesRecalled, MessagesTrimmed, model_summarizer
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import single

pytestmark = pytest.mark.anyio

QUESTION = "Where does my sister Ines live?"


def talk(number: int, words: int = 20) -> Message:
    return Message.user(f"Talk {number}: " + "nothing of note " * (words // 3), id=f"talk-{number}")


def conversation(count: int) -> list[Message]:
    return [Message.user("My sister Ines lives in Porto.", id="porto"), *map(talk, range(count))]


def tokens_of(messages: list[Message]) -> int:
    return sum(message_tokens(message, count_tokens) for message in messages)


async def shown(memory: AutoMemory) -> list[str]:
    return [message.id for message in await memory.context()]


async def test_everything_is_shown_while_it_fits_as_by_a_memory_that_shows_everything() -> None:
    auto, everything = create_memory("auto"), MessagesMemory()
    action = Action(name="add", args={"a": 1})
    messages = [
        *conversation(20),
        Message.system("Be brief."),
        Message.assistant("", tool_calls=[action]),
        Message.user("Meanwhile: ключ 鍵"),
        Message.tool("2", action),
        Message.assistant("", tool_calls=[Action(name="add", args={})]),  # has no result
        Message.assistant("Done."),
    ]
    for memory in (auto, everything):
        await memory.update(messages)
        await memory.set_goal("And now?")
        await memory.delete("talk-3")  # type: ignore[attr-defined]
    expected = [m.content for m in await everything.context()]
    assert [m.content for m in await auto.context()] == expected
    assert isinstance(auto, AutoMemory)
    assert auto.fits


@pytest.mark.parametrize("max_tokens", [200, 300, 500, 1_000, 2_000])
async def test_what_no_longer_fits_is_recalled_for_the_goal(max_tokens: int) -> None:
    memory = AutoMemory(max_tokens=max_tokens)
    await memory.update(conversation(200))
    await memory.set_goal(QUESTION)
    context = await memory.context()
    assert not memory.fits
    assert "Porto" in context[0].content
    assert "porto" in context[0].metadata["recalled"]  # type: ignore[operator]
    assert tokens_of(context) <= max_tokens
    assert [m.id for m in context[1:-1]] == [f"talk-{n}" for n in range(200)][-len(context) + 2 :]
    assert context[-1].content == QUESTION
    assert "porto" in [found.message.id for found in await memory.recall("Ines", k=2)]
    assert len(await memory.dump()) == 201


def test_a_window_that_is_too_small_for_recall_is_told(caplog: pytest.LogCaptureFixture) -> None:
    AutoMemory(max_tokens=200)
    assert not caplog.records
    AutoMemory(context_window=200)
    assert "max_tokens=100 is too small to recall what has left: give at least 200" in caplog.text


async def test_the_run_in_which_it_shows_less_tells_so_once() -> None:
    memory = AutoMemory(max_tokens=1_000, summarize=lambda before, messages: f"{len(messages)}")
    await memory.update(conversation(25))
    assert memory.fits
    brain = Brain("react", memory, llm=ScriptedLLM(["Porto"] * 9))
    events: list[Any] = []
    for n in range(9):
        async with brain.stream(QUESTION if n else QUESTION + " please" * 200) as run:
            events += [event async for event in run]
    first, second = (e for e in events if isinstance(e, MemoryEscalated))
    assert (first.before, first.now, first.max_tokens) == ("everything", "window", 1_000)
    assert first.tokens > 1_000
    assert (second.before, second.now) == ("window", "summary")
    trimmed = next(e for e in events if isinstance(e, MessagesTrimmed))
    assert trimmed.ids[0] == "porto"
    assert events.index(first) < events.index(trimmed)  # the reason comes first
    recalled = [e for e in events if isinstance(e, MessagesRecalled) and e.query == QUESTION]
    assert recalled[0].items[0].id == "porto"
    assert [e.kind for e in events].count("compacted") in (1, 2)  # not with each message


async def test_a_summary_covers_what_leaves_before_it_leaves() -> None:
    read: list[str] = []

    async def summarize(before: str, messages: list[Message]) -> str:
        read.extend(message.id for message in messages)
        return f"{before} {len(read)}".strip()

    memory = AutoMemory(max_tokens=1_000, summarize=summarize)
    for n in range(150):
        await memory.update([talk(n)])
        there = {*await shown(memory)} | {*read}
        assert there >= {f"talk-{m}" for m in range(n + 1)}
        assert tokens_of(await memory.context()) <= 1_000
    assert len({*read}) == len(read)
    assert memory.summary.count(" ") in range(8, 20)  # calls: one for about a quarter of the limit


async def test_a_summary_has_whole_groups_and_nothing_that_is_forgotten_meanwhile() -> None:
    read: list[Message] = []

    async def summarize(before: str, messages: list[Message]) -> str:
        read.extend(messages)
        if len(read) == len(messages):
            await memory.forget("porto")
        return f"Summary of {len(messages)}"

    memory = AutoMemory(max_tokens=1_000, summarize=summarize)
    await memory.update(conversation(25))
    calls = [Action(name="look", args={"at": number}) for number in range(9)]
    await memory.update([Message.assistant("", tool_calls=calls)])
    await memory.update([Message.tool("seen " * 30, call) for call in calls])
    await memory.context()
    assert memory.summary == ""
    await memory.context()
    assert memory.summary == f"Summary of {len(read) // 2}"
    assert not [message for message in read if message.role == "tool"]
    await memory.update([talk(n) for n in range(30, 50)])
    await memory.context()
    results = [message for message in read if message.role == "tool"]
    assert len(results) == 9
    assert len([message for message in read if message.tool_calls]) == 1


async def test_a_summariser_that_fails_is_tried_again_and_nothing_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = ScriptedLLM([ValueError("down"), "They talked."])
    memory = AutoMemory(max_tokens=1_000, summarize=model_summarizer(script))
    await memory.update(conversation(60))
    await memory.set_goal(QUESTION)
    assert "Porto" in (await memory.context())[0].content
    assert (memory.summary, len(script.calls)) == ("", 1)
    assert "The summariser failed" in caplog.text
    await memory.context()
    assert len(script.calls) == 1
    await memory.update([talk(n) for n in range(60, 70)])
    assert (await memory.context())[0].content.endswith("They talked.")


async def test_a_summary_that_may_quote_something_forgotten_is_written_again(
    tmp_path: Path,
) -> None:
    def summarize(before: str, messages: list[Message]) -> str:
        return " ".join([before, *(m.content for m in messages if "Porto" in m.content)]) or "-"

    place = tmp_path / "a.db"
    async with AutoMemory(max_tokens=1_000, summarize=summarize, journal=place) as memory:
        await memory.update(conversation(40))
        await memory.context()
        assert "Porto" in memory.summary
        await memory.forget("talk-39")  # which the summary does not cover
        assert "Porto" in memory.summary
        await memory.forget("porto")
        assert memory.summary == ""
        await memory.context()
        assert memory.summary
    assert b"Porto" not in place.read_bytes()


async def operate(memory: AutoMemory, what: str, number: int, known: list[str]) -> AutoMemory:
    """Do something with a memory; return the memory to go on with."""
    match what:
        case "say":
            added = [talk(len(known), number)]
            known += [message.id for message in added]
            await memory.update(added)
        case "ask":
            await memory.set_goal(Message.user("Why? " * (number // 9), id=f"talk-{len(known)}"))
            known.append(f"talk-{len(known)}")
        case "call":
            action = Action(name="look", args={"at": number})
            asking = Message.assistant("", tool_calls=[action], id=f"talk-{len(known)}")
            known.append(asking.id)
            await memory.update([asking])
            await memory.update([Message.tool("seen " * number, action)])
        case "checkpoint":
            await memory.checkpoint()
        case "open":
            return opened(memory, readonly=False)
        case _ if known:
            await getattr(memory, what)(known[number % len(known)])
    return memory


def opened(memory: AutoMemory, **options: Any) -> AutoMemory:
    assert memory.journal is not None
    return AutoMemory(
        max_tokens=400,
        journal=memory.journal,
        summarize=lambda before, messages: f"{before[-20:]} {len(messages)}",
        **options,
    )


OPERATIONS = ["say"] * 6 + ["ask", "call", "delete", "forget", "pin", "unpin", "checkpoint", "open"]


@pytest.mark.parametrize("seed", range(12))
async def test_a_session_that_is_opened_again_shows_the_same(seed: int) -> None:
    chance, known = random.Random(seed), []  # type: ignore[var-annotated]
    memory = opened(AutoMemory(journal=RamJournal()))
    for _ in range(60):
        what, number = chance.choice(OPERATIONS), chance.randint(1, 60)
        memory = await operate(memory, what, number, known)
        now = [message.content for message in await memory.context()]
        again = await opened(memory, readonly=True).context()
        assert [message.content for message in again] == now


async def test_a_long_session_of_another_memory_is_continued_without_reading_all(
    tmp_path: Path,
) -> None:
    place = tmp_path / "a.db"
    async with MessagesMemory(journal=place) as before:
        await before.update(conversation(6_000))
    async with AutoMemory(journal=place) as memory:
        context = await memory.context()
        assert context[-1].id == "talk-5999"
        assert 6_000 < tokens_of(context) <= 8_000
        assert memory.store.log.encoded > 4_000
        await memory.set_goal(QUESTION)
        assert "Porto" in (await memory.context())[0].content
    async with MessagesMemory(journal=place) as after:
        assert len(await after.context()) == 6_002


async def test_branches_and_forks_show_the_same_and_change_nothing() -> None:
    memory = AutoMemory(max_tokens=1_000, embedder=lambda texts: [[1.0, 0.5]] * len(texts))
    await memory.update(conversation(60))
    await memory.set_goal(QUESTION)
    fork = await memory.fork()
    assert await shown(fork) == await shown(memory)
    await fork.update([talk(n) for n in range(60, 90)])
    assert await memory.count() == 62
    llm = ScriptedLLM(["Porto"] * 2)
    net = single(ParallelState({"one": react(llm), "two": react(llm)}))
    await Brain(net, memory).run(QUESTION)
    asked = ["".join(message.content for message in call.messages) for call in llm.calls]
    assert [text.count("Porto") for text in asked] == [1, 1]


async def test_what_expires_or_is_cleared_makes_room() -> None:
    memory = AutoMemory(max_tokens=1_000, ttl=timedelta(days=1))
    await memory.update(conversation(60))
    assert not memory.fits
    await memory.clear()
    await memory.update(conversation(3))
    assert memory.fits
    assert len(await memory.context()) == 4


async def test_nothing_is_imported_or_embedded_before_something_has_left(tmp_path: Path) -> None:
    program = """
import sys, anyio
from agent_brain.memories import AutoMemory, Message

async def main():
    async with AutoMemory(path=sys.argv[1], embedder=lambda texts: 1 / 0) as memory:
        await memory.update([Message.user("Hello")])
        await memory.set_goal("Hello?")
        await memory.context()
        await memory.checkpoint()
    assert not {"chromadb", "numpy", "litellm"} & {*sys.modules}

anyio.run(main)
"""
    subprocess.run([sys.executable, "-c", program, tmp_path], check=True)


@pytest.mark.parametrize(
    ("window", "limit"),
    [
        (None, 16_000),
        (4_096, 2_048),
        (1_000_000, 64_000),
        ("gpt-3.5-turbo", 16_385 // 2),
        ("no-such-model", 16_000),
    ],
)
async def test_the_limit_follows_from_what_the_model_can_read(window: Any, limit: int) -> None:
    memory = AutoMemory(context_window=window, journal=RamJournal())
    for n in range(0, 80_000, 1_000):
        await memory.update([Message.user("word" * 996, id=str(n))])  # 1,000 tokens
        if not memory.fits:
            break
    assert n == limit // 1_000 * 1_000


@pytest.mark.parametrize(
    "options",
    [
        {"max_tokens": 0},
        {"max_tokens": 9, "context_window": 9},
        {"context_window": 0},
        {"summarize": "gpt"},
        {"summarize": len, "shared": True, "journal": RamJournal()},
    ],
    ids=", ".join,
)
async def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(MemoryDefinitionError):
        AutoMemory(**options)
