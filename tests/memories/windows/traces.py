"""Random conversations, and what must hold of whatever a memory shows of them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from agent_brain.common.text import count_tokens
from agent_brain.memories import Memory, Message, Role
from agent_brain.memories.views.groups import arranged, group
from agent_brain.memories.views.tokens import LEAST_TOKENS, message_tokens
from agent_brain.tools import Action

TEXTS = st.sampled_from(["", "yes", "some words " * 3, "汉字" * 20, "word " * 400, "x" * 9000])


@dataclass(frozen=True)
class Step:
    """One thing that happens: ``kind`` says what."""

    kind: str
    text: str
    pinned: bool = False
    calls: int = 0
    order: int = 0
    one_by_one: bool = False
    between: bool = False
    abandoned: bool = False


STEPS = st.builds(
    Step,
    kind=st.sampled_from(["user", "goal", "model", "model", "model", "system"]),
    text=TEXTS,
    pinned=st.sampled_from([False] * 9 + [True]),
    calls=st.integers(0, 4),
    order=st.integers(0, 23),
    one_by_one=st.booleans(),
    between=st.sampled_from([False] * 5 + [True]),
    abandoned=st.sampled_from([False] * 9 + [True]),
)
TRACES = st.lists(STEPS, max_size=25)


def updates(step: Step) -> list[list[Message]]:
    """The updates that a step makes, one after the other."""
    if step.kind in ("user", "goal"):
        return [[Message.user(step.text, pinned=step.pinned)]]
    if step.kind == "system":
        return [[Message.system(step.text, pinned=step.pinned)]]
    calls = [Action(name="look", args={"at": n}) for n in range(step.calls)]
    asking = Message.assistant(step.text[:50] or "hm", calls, pinned=step.pinned)
    results = [Message.tool(step.text, call, is_error=n == 1) for n, call in enumerate(calls)]
    results = results[step.order % 4 :] + results[: step.order % 4]
    if step.abandoned:
        return [[asking]]
    between = [[Message.user("by the way")]] if step.between and calls else []
    if step.one_by_one:
        return [[asking], *between, *[[result] for result in results]]
    return [[asking], *between, results] if between else [[asking, *results]]


async def play(memory: Memory, trace: list[Step], check) -> list[Message]:
    """Let ``trace`` happen; ``check(everything so far)`` is awaited after each update."""
    told: list[Message] = []
    for step in trace:
        for messages in updates(step):
            told += messages
            if step.kind == "goal":
                await memory.set_goal(messages[0])
            else:
                await memory.update(messages)
            await check(told)
    return told


def check_whole(shown: list[Message], told: list[Message]) -> None:
    """No result without its call before it; no call without its results, but the last that waits."""
    places = {message.id: place for place, message in enumerate(arranged(told))}
    order = [places[message.id] for message in shown]
    assert order == sorted(order), "not in the order in which it happened"
    groups = {members[0].id: members for members in group(told)}
    assert all(message.role is not Role.TOOL for message in shown[:1]), "a result without its call"
    seen = {message.id for message in shown}
    last_speaker = max(
        (m.id for m in told if m.role is Role.ASSISTANT), key=places.__getitem__, default=None
    )
    for members in groups.values():
        there = [message.id in seen for message in members]
        assert all(there) or not any(there), f"half a group is shown: {members}"
        answered = {message.tool_call_id for message in members[1:]}
        waiting = [call for call in members[0].tool_calls if call.id not in answered]
        if there[0] and waiting:
            assert members[0].id == last_speaker, "a call that will not be answered is shown"


def check_budget(
    shown: list[Message],
    told: list[Message],
    goal: list[Message],
    max_messages: int | None,
    max_tokens: int | None,
    beside: int = 0,
) -> None:
    """Within the limits, with ``beside`` tokens of a summary, unless everything left must stay."""
    tokens = beside + sum(message_tokens(message, count_tokens) for message in shown)
    much = max_messages is not None and len(shown) > max_messages
    dear = max_tokens is not None and tokens > max_tokens
    if not much and not dear:
        return
    groups = group(shown)
    if any(
        {call.id for call in members[0].tool_calls} - {m.tool_call_id for m in members[1:]}
        for members in groups
    ):
        return  # results are on their way: nothing from the call on may leave
    system = [m for m in shown if m.role is Role.SYSTEM and not m.pinned]
    system_tokens = sum(message_tokens(message, count_tokens) for message in system)
    few = max_messages is None or len(system) <= max_messages // 2
    cheap = max_tokens is None or system_tokens <= max_tokens // 2
    stays = {m.id for m in system} if len(system) <= 2 or (few and cheap) else set()
    stays |= {m.id for m in goal}
    free = [
        members
        for members in groups
        if not any(m.pinned for m in members) and members[0].id not in stays
    ]
    assert len(free) <= 1, f"{len(shown)} messages, {tokens} tokens, and these could go: {free}"
    if dear:
        longest = max((count_tokens(m.content) for ms in free for m in ms), default=0)
        assert longest <= LEAST_TOKENS, "a text could be shortened"
