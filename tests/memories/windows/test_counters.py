"""A counter of tokens that fails leaves a memory as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agent_brain.common.text import count_tokens
from agent_brain.memories import (
    Message,
    RamJournal,
    SummaryMemory,
    VectorMemory,
    WindowedMemory,
)
from agent_brain.memories.views.tokens import message_tokens
from tests.memories.windows.traces import TRACES, updates
from tests.support.thorough import examples

pytestmark = pytest.mark.anyio
few = settings(max_examples=examples(40), phases=[p for p in Phase if p is not Phase.explain])


class Away(Exception):
    """The tokenizer cannot be reached."""


class Counter:
    """Counts tokens, but fails at the calls with these numbers."""

    def __init__(self) -> None:
        self.fails_in: int | None = None

    def __call__(self, text: str) -> int:
        if self.fails_in is not None:
            self.fails_in -= 1
            if self.fails_in < 0:
                self.fails_in = None
                raise Away
        return count_tokens(text)


MEMORIES: dict[str, Callable[..., Any]] = {
    "windowed": lambda counter, **o: WindowedMemory(max_tokens=150, counter=counter, **o),
    "vector": lambda counter, **o: VectorMemory(max_tokens=150, counter=counter, k=0, **o),
    "summary": lambda counter, **o: SummaryMemory(max_tokens=150, counter=counter, **o),
}


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("journal", [None, RamJournal])
@pytest.mark.parametrize("write", ["update", "set_goal", "keep"])
async def test_nothing_is_written_that_cannot_be_counted(name, journal, write) -> None:
    counter = Counter()
    memory = MEMORIES[name](counter, **({"journal": journal()} if journal else {}))
    await memory.update([Message.user("a")])
    before, held = await memory.context(), await memory.messages()
    counter.fails_in = 0
    written: dict[str, Callable[[], Any]] = {
        "update": lambda: memory.update([Message.user("b"), Message.user("c")]),
        "set_goal": lambda: memory.set_goal("goal"),
        "keep": lambda: memory.keep("list", {"shown": "one"}),
    }
    if name == "summary":  # counts when it is shown
        await written[write]()
        with pytest.raises(Away):
            await memory.context()
        await memory.context()
        return
    with pytest.raises(Away):
        await written[write]()
    assert await memory.context() == before
    assert await memory.messages() == held
    assert await memory.goal() == []
    assert await memory.kept("list") is None
    for number in range(200):
        await memory.update([Message.user(f"{number} words")])
    shown = await memory.context()
    assert sum(message_tokens(message, count_tokens) for message in shown) <= 150


@few
@given(TRACES, st.lists(st.integers(0, 60), max_size=8), st.randoms())
@pytest.mark.parametrize("name", ["windowed", "vector"])
@pytest.mark.parametrize("journal", [None, RamJournal])
def test_a_counter_that_fails_now_and_then_costs_nothing_later(
    name, journal, trace, failures, random
) -> None:
    async def run() -> None:
        counter = Counter()
        memory = MEMORIES[name](counter, **({"journal": journal()} if journal else {}))
        due = list(failures)
        for step in trace:
            for messages in updates(step):
                counter.fails_in = due.pop() if due and random.random() < 0.5 else None
                done = False
                while not done:
                    try:
                        if random.random() < 0.2 and (held := await memory.messages()):
                            await memory.forget(random.choice(held).id)
                        await memory.update(messages)
                        await memory.context()
                        done = True
                    except Away:
                        pass
        counter.fails_in = None
        for number in range(30):
            await memory.update([Message.assistant(f"{number}")])
        shown = await memory.context()
        assert shown[-1].content == "29"
        for held in (shown, await memory.messages() if name == "windowed" else shown):
            plain = [m for m in held if m.role in ("user", "assistant") and not m.tool_calls]
            free = [message for message in plain if not message.pinned]
            assert sum(message_tokens(message, count_tokens) for message in free) <= 150

    anyio.run(run)
