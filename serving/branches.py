"""The branches of a chat: sessions that take the turn of a message another way."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Branch:
    """A session in which the turn of a message was taken another way.

    Attributes:
        session: The ID of the session.
        of: The session that the message was first recorded in.
        message: The ID of the message there.
        step: The number of the step that the message was recorded with.
        own: The ID of the message in this session: another one if it says something else.
    """

    session: str
    of: str
    message: str
    step: int
    own: str


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
