"""Removes what was forgotten, deleted or cleared from the state of a run."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from agent_brain.common.text import folded, has_folded
from agent_brain.memories.control import Control
from agent_brain.memories.message import Attachment, Message, Role

_ESCAPED = re.compile(r"\\(.)")  # in a line of JSON
LEAST_LETTERS = 2  # shorter texts are too common to be quotes
_TEXTS = ("text/", "application/json", "application/xml", "application/yaml")  # types of files
_BESIDE = ("name", "sent_from", "send_to", "tags", "metadata", "tool_calls", "attachments")


@dataclass(frozen=True, slots=True)
class Erasure:
    """What the state of a run must not hold after messages were removed.

    Attributes:
        calls: IDs of the calls that the messages asked for.
        texts: What must not be quoted as whole words, folded.
        parts: What must not be there at all, also as a part of a word, folded.
        everything: Whether all messages were removed.
        for_good: Whether no copy may stay; otherwise only the calls must not run.
        ends_run: Whether a run that waits or was interrupted ends, as one of its branches lost
            something.
    """

    calls: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    everything: bool = False
    for_good: bool = False
    ends_run: bool = False

    def finder(self) -> Callable[[Any], bool]:
        """Return a function that says whether a JSON value quotes something that is gone."""
        return lambda value: any(self._is_quoted_in(folded(leaf)) for leaf in leaves(value))

    def _is_quoted_in(self, said: str) -> bool:
        return any(part in said for part in self.parts) or any(
            _has_words(said, text) for text in self.texts
        )

    def line_finder(self) -> Callable[[str], bool]:
        """Return a function that says whether an entry, as JSON text, contains one of ``parts``."""
        return lambda line: any(has_folded(_ESCAPED.sub(_read, line), part) for part in self.parts)


def _read(escaped: re.Match[str]) -> str:
    """Return what stands for a character in JSON as it is compared."""
    return " " if escaped[1] in "nrtfb" else escaped[1]


def _has_words(said: str, text: str) -> bool:
    """Return whether ``said`` contains ``text`` as whole words.

    There is no regular expression, as to compile one takes microseconds for each letter.
    """
    at = said.find(text)
    while at >= 0:
        beside = said[max(at - 1, 0) : at] + said[at + len(text) : at + len(text) + 1]
        if not any(letter.isalnum() or letter == "_" for letter in beside):
            return True
        at = said.find(text, at + 1)
    return False


def deleted(messages: Iterable[Message]) -> Erasure:
    """Return what to remove with deleted messages."""
    return Erasure(calls=frozenset(call.id for message in messages for call in message.tool_calls))


def forgotten(
    messages: Iterable[Message],
    text: str | None = None,
    parts: frozenset[str] = frozenset(),
    *,
    everything: bool = False,
) -> Erasure:
    """Return what to remove with forgotten messages.

    Args:
        messages: The messages.
        text: The text that selected them, if one did.
        parts: See :attr:`Erasure.parts`.
        everything: Whether they are all messages.
    """
    chosen = list(messages)
    texts = [text or "", *(leaf for message in chosen for leaf in said_in(message))]
    return Erasure(
        calls=deleted(chosen).calls,
        texts=frozenset(folded(t) for t in texts if len(t.strip()) >= LEAST_LETTERS),
        parts=parts,
        everything=everything,
        for_good=True,
    )


def forget_in_control(control: Control, gone: Erasure, *, live: bool) -> bool:
    """Remove from ``control`` whatever holds or quotes what is ``gone``; return whether it did.

    The registers of an ended run are not needed any more, so they are emptied. A run that waits, or
    was interrupted, ends if they held anything of it, as it cannot continue without it. A run that
    is in progress loses only that.

    Args:
        control: Changed in place.
        gone: What is gone.
        live: A run is in progress over the memory.
    """
    over = control.status in ("idle", "ended")
    if gone.everything:
        control.session = {}
        control.state = None if over else control.state  # there is nothing to resume
    if over and gone.for_good:
        control.empty()
    quotes = gone.finder()
    held = control.forget_calls(gone.calls | {*_quoting_calls(control, quotes)})
    held = _take_quotes(control, quotes) or held or gone.everything
    if (gone.ends_run and control.status != "idle") or (held and not over and not live):
        control.abort()
    return held


def _quoting_calls(control: Control, quotes: Callable[[Any], bool]) -> Iterator[str]:
    """Yield the IDs of the open calls that quote something: their arguments, results, decisions."""
    asked = control.human_requests
    for call in (*control.next_actions, *(() if asked is None else asked.calls)):
        if quotes([call.args, call.unparsed]):
            yield call.id
    for call_id, begun in control.pending.items():
        result = None if begun.result is None else [*texts_of(begun.result)]
        if quotes([begun.action.args, begun.action.unparsed, result]):
            yield call_id
    for call_id, args in ({} if asked is None else asked.changed).items():
        if quotes(args):
            yield call_id
    for call_id, decided in ({} if asked is None else asked.decisions).items():
        if quotes([decided.args, decided.reason]):
            yield call_id


def _take_quotes(control: Control, quotes: Callable[[Any], bool]) -> bool:
    """Remove registers that quote something; return whether there were any."""
    found = False
    registers: list[dict[str, Any]] = [control.scratch, control.session, control.ended]
    if (asked := control.human_requests) is not None:
        registers += [asked.questions, asked.schemas, asked.answers, asked.again]
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


def said_in(message: Message) -> Iterator[str]:
    """Yield what a message says: its content, and the texts in the arguments of its calls."""
    yield message.content
    for call in message.tool_calls:
        yield from leaves(call.args, numbers=False)


def contains(message: Message, part: str) -> bool:
    """Return whether a message contains a text, which is folded."""
    if has_folded(message.content, part):
        return True
    fields = message.__dict__
    return any(fields[name] for name in _BESIDE) and any(
        has_folded(said, part) for said in texts_of(message)
    )


def texts_of(message: Message) -> Iterator[str]:
    """Yield all texts of a message but IDs, times, and the names of tools and states."""
    yield message.content
    people = (message.name if message.role is not Role.TOOL else None, message.sent_from)
    yield from filter(None, people)
    yield from message.send_to
    yield from message.tags
    yield from leaves(message.metadata)
    for call in message.tool_calls:
        yield from leaves([call.args, call.unparsed])
    for attached in message.attachments:
        yield from filter(None, (attached.name, attached.url, attached.data, _text_in(attached)))


def _text_in(attached: Attachment) -> str:
    """Return what a text file says; empty if it is another file, or its bytes are elsewhere."""
    head, comma, data = (attached.url or f"data:;base64,{attached.data}").partition(",")
    if not (attached.media_type.startswith(_TEXTS) and comma and head.startswith("data:")):
        return ""
    raw = unquote_to_bytes(data)
    try:
        return (b64decode(raw) if head.endswith(";base64") else raw).decode(errors="replace")
    except ValueError:
        return ""


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else value


def leaves(value: Any, *, numbers: bool = True) -> Iterator[str]:
    """Yield all texts in a JSON value, keys included, and numbers as texts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from leaves(inner, numbers=numbers)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner, numbers=numbers)
    elif numbers and isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
