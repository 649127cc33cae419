"""Removes what was forgotten, deleted or cleared from the state of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_brain.memories.control import Control
from agent_brain.memories.message import Message

LEAST_LETTERS = 2  # shorter texts are too common to be quotes


@dataclass(frozen=True, slots=True)
class Erasure:
    """What the state of a run must not hold after messages were removed.

    Attributes:
        calls: IDs of the calls that the messages asked for.
        texts: What must not be quoted, in lower case.
        everything: Whether all messages were removed.
        for_good: Whether no copy may stay; otherwise only the calls must not run.
    """

    calls: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    everything: bool = False
    for_good: bool = False


def deleted(messages: Iterable[Message]) -> Erasure:
    """Return what to remove with deleted messages."""
    return Erasure(calls=frozenset(call.id for message in messages for call in message.tool_calls))


def forgotten(
    messages: Iterable[Message], text: str | None = None, *, everything: bool = False
) -> Erasure:
    """Return what to remove with forgotten messages; ``text`` selected them, if it is not None."""
    chosen = list(messages)
    texts = [text or "", *(leaf for message in chosen for leaf in texts_of(message))]
    return Erasure(
        calls=deleted(chosen).calls,
        texts=frozenset(t.strip().casefold() for t in texts if len(t.strip()) >= LEAST_LETTERS),
        everything=everything,
        for_good=True,
    )


def strike(control: Control, gone: Erasure, *, live: bool) -> None:
    """Remove from ``control`` whatever holds or quotes what is ``gone``.

    The registers of an ended run are not needed any more, so they are emptied. A run that waits, or
    was interrupted, ends if they held anything of it, as it cannot continue without it. A run that
    is in progress loses only that.

    Args:
        control: Changed in place.
        gone: What is gone.
        live: A run is in progress over the memory.
    """
    held = control.forget_calls(gone.calls)
    if gone.everything:
        control.session = {}
    if control.status in ("idle", "ended"):
        if gone.for_good:
            control.empty()
        return
    held = _take_quotes(control, gone.texts) or held or gone.everything
    if held and not live:
        control.abort()


def _take_quotes(control: Control, texts: frozenset[str]) -> bool:
    """Remove registers that quote one of ``texts``; return whether there were any."""
    if not texts:
        return False
    quoting = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in texts))

    def quotes(value: Any) -> bool:
        return any(quoting.search(leaf.casefold()) for leaf in _leaves(value))

    found = False
    registers: list[dict[str, Any]] = [control.scratch, control.session, control.ended]
    if (asked := control.human_requests) is not None:
        registers += [asked.questions, asked.answers]
        quoted = [call.id for call in asked.calls if quotes(call.args)]
        asked.forget(quoted)
        found = bool(quoted)
    for register in registers:
        for name in [name for name, value in register.items() if quotes(value)]:
            del register[name]
            found = True
    for name in ("error", "failure"):
        if (text := getattr(control, name)) is not None and quotes(text):
            setattr(control, name, None)
            found = True
    if quotes(_plain(control.output)):
        control.output = None
        found = True
    return found


def texts_of(message: Message) -> Iterator[str]:
    """Yield the texts of a message: its content, and those in the arguments of its calls."""
    yield message.content
    for call in message.tool_calls:
        yield from _leaves(call.args)


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else value


def _leaves(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
