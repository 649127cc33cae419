"""Copies of a session as of a step, with changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from pydantic import JsonValue

from agent_brain.common.ids import new_id
from agent_brain.common.text import clean_json
from agent_brain.errors import BrainUseError, StepNotFoundError
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.sessions.copies import SessionCopy, copy_at
from agent_brain.memories.store.events import MESSAGES, RECORDED_CALL
from agent_brain.memories.store.many import in_thread_if_many
from agent_brain.memories.store.session import Session as StoredSession
from agent_brain.memories.store.session import entries_of
from agent_brain.serving.catalog import Branch, make_title

if TYPE_CHECKING:
    from agent_brain.serving.session import Session

NO_STEPS = (
    "This session keeps no steps: they are kept in a journal, for sessions that one run at a time "
    "writes to. Give the server a journal, such as Sessions(…, journal='chats.db') or --folder"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The ways in which the turn of a message was taken.

    Attributes:
        sessions: The sessions that took them first, in the order in which they were made.
        at: The index of the one whose way the session that was asked for goes along.
    """

    sessions: list[str]
    at: int


@dataclass(frozen=True, slots=True)
class Chat:
    """A session with the others that are branches of the same chat.

    Attributes:
        sessions: The IDs of all, in the order in which they were made.
        choices: By the IDs of the messages that the session has: the ways to choose from.
    """

    sessions: list[str]
    choices: Mapping[str, Choice]


def first_with(branches: Sequence[Branch], session: str, step: int) -> str:
    """Return the session that first recorded a step that ``session`` has, perhaps as a copy."""
    return [*_line(branches, session, step)][-1]


def first_of(branches: Sequence[Branch], message: str) -> str:
    """Return the ID of the message that a message was edited from, or its own."""
    return next((branch.message for branch in branches if branch.own == message), message)


def choices_in(
    branches: Sequence[Branch], session: str, existing: Collection[str]
) -> dict[str, Choice]:
    """Return what there is to choose from in ``session``.

    Args:
        branches: All branches of the chat, in the order in which they were made.
        session: The ID of one of the sessions.
        existing: Those that were not deleted.
    """
    own = {branch.session: branch.own for branch in branches}
    found: dict[str, Choice] = {}
    for branch in branches:
        ways = [branch.of, *(b.session for b in branches if b.message == branch.message)]
        line = _line(branches, session, branch.step)
        along = next((each for each in line if each in ways), None)
        if along is None:
            continue
        goes = {along: session}  # if the session that took a way first was deleted, another one
        for each in existing:
            way = next((w for w in _line(branches, each, branch.step) if w in ways), None)
            if way is not None:
                goes.setdefault(way, each)
        shown = {way: way if way in existing else goes[way] for way in ways if way in goes}
        if len(shown) > 1:
            message = branch.message if along == branch.of else own[along]
            found[message] = Choice([*shown.values()], [*shown].index(along))
    return found


def _line(branches: Sequence[Branch], session: str, step: int) -> Iterator[str]:
    """Yield a session, and those that it has the step from, if it is a copy there."""
    known = {branch.session: branch for branch in branches}
    yield session
    while (branch := known.get(session)) is not None and step <= branch.step:
        session = branch.of
        yield session


@dataclass(frozen=True, slots=True)
class Edits:
    """What is changed in a copy.

    Attributes:
        messages: New texts of messages, by ID.
        calls: New arguments of calls that run next, by ID.
        ids: The IDs that the changed messages have in the copy, by those that they had: a message
            that says something else is another one, which is not forgotten with the first.
    """

    messages: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.ids.update((message, new_id("msg")) for message in self.messages)


def title_of(copied: SessionCopy) -> str:
    """Return the beginning of the first question in a copy."""
    for entry in copied.entries:
        data: Any = entry.data
        if entry.kind in MESSAGES and data.get("role") == "user":
            return make_title(data.get("content", ""))
    return ""


def kept_by(session: Session) -> StoredSession:
    """Return where the steps of a session are kept.

    Raises:
        BrainUseError: Nowhere.
    """
    stored = session.kept
    if stored is None:
        raise BrainUseError(NO_STEPS)
    return stored


def no_step(session: str, number: int | str) -> StepNotFoundError:
    """Return the error for a step that is not kept."""
    return StepNotFoundError(
        f"Session {session!r} has no step {number}, or does not keep it any more: how many steps "
        "are kept is set with history= of the memory"
    )


async def step_with(session: Session, message: str) -> int:
    """Return the number of the step that a message was recorded with, before a model has seen it.

    Raises:
        BrainUseError: The session keeps no steps, or the message is not one of a user.
        StepNotFoundError: It has no such message, or does not keep the step any more.
    """
    stored = kept_by(session)
    found = False
    async with aclosing(entries_of(stored.journal, stored.key)) as entries:
        async for entry in entries:
            data: Any = entry.data
            if found and entry.kind == "step":
                return entry.seq
            if entry.kind in MESSAGES:  # another one before a step: that one is gone
                found = data["id"] == message
                if found and data["role"] != "user":
                    raise BrainUseError(
                        f"Message {message!r} is from the {data['role']}: a branch takes the turn "
                        "of a message of the user another way"
                    )
    raise no_step(session.id, f"with the message {message!r}")


async def copy_as_of(session: Session, number: int, edits: Edits) -> SessionCopy:
    """Return a copy of a session as of the step of a number.

    Raises:
        BrainUseError: The session keeps no steps, or an edit does not fit.
        StepNotFoundError: The journal does not have the step.
    """
    stored = kept_by(session)
    copied = await copy_at(stored.journal, stored.key, number)
    last_first = reversed(copied.entries)
    step = next((e for e in last_first if e.seq == number and e.kind == "step"), None)
    if step is None:
        raise no_step(session.id, number)
    control = cast("dict[str, Any]", step.data)
    if not (edits.messages or edits.calls):
        return copied
    editing = _Editing(edits, control)
    changed = await in_thread_if_many(
        copied.entries, lambda entries: editing.change([e for e in entries if e.seq <= number])
    )
    if not _asks_inside(control):
        return SessionCopy(changed)
    return SessionCopy([*changed, *copied.entries[len(changed) :]], copied.branches)


def _asks_inside(control: Mapping[str, Any]) -> bool:
    """Return whether branches wait for a person; others begin again after an edit."""
    return bool((control.get("human_requests") or {}).get("inside"))


class _Editing:
    """Applies edits to entries.

    Args:
        edits: The edits.
        control: The state of the run that the entries end with.
    """

    def __init__(self, edits: Edits, control: Mapping[str, Any]) -> None:
        self._texts = {name: clean_json(text) for name, text in edits.messages.items()}
        self._ids = edits.ids
        self._args = {name: clean_json(dict(args)) for name, args in edits.calls.items()}
        self._found: set[str] = set()
        next_calls = {action["id"] for action in control.get("next_actions", ())}
        if unknown := [call for call in self._args if call not in next_calls]:
            raise BrainUseError(
                f"Call {unknown[0]!r} does not run next as of this step: its arguments cannot be "
                "changed"
            )

    def change(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return the entries with the edits.

        Raises:
            BrainUseError: A message is not among them, or would be empty.
        """
        changed = [
            replace(entry, data=self._edited(entry.data, record=entry.kind == RECORDED_CALL))
            for entry in entries
        ]
        if unknown := [name for name in self._texts if name not in self._found]:
            raise BrainUseError(f"As of this step the session has no message {unknown[0]!r}")
        return changed

    def _edited(self, value: Any, *, record: bool) -> Any:
        """Return data with the edits, which names changed messages by their new IDs.

        A record of what a model saw and said stays as it is, but for the IDs. So do arguments.
        """
        if isinstance(value, str):
            return self._ids.get(value, value)
        if isinstance(value, list):
            return [self._edited(item, record=record) for item in value]
        if not isinstance(value, dict):
            return value
        data = {
            self._ids.get(name, name): (
                item if name in ("content", "args") else self._edited(item, record=record)
            )
            for name, item in value.items()
        }
        if record:
            return data
        known = str(value.get("id"))
        if "role" in value and known in self._texts:
            text = self._texts[known]
            self._found.add(known)
            if value["role"] == "user" and not text.strip() and not value.get("attachments"):
                raise BrainUseError(f"Message {known!r} would be empty")
            return {**data, "content": text, "is_error": False}
        if "args" in value and known in self._args:
            return {**data, "args": self._args[known], "unparsed": None}
        return data
