"""What forget() is asked to forget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent_brain.common.text import folded
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message
from agent_brain.memories.store.erasure import LEAST_LETTERS, contains
from agent_brain.memories.store.events import Forgetting
from agent_brain.memories.store.expiry import as_duration
from agent_brain.memories.store.filters import (
    ForgetOptions,
    Names,
    Query,
    checked_text,
    moment,
    names,
)


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be forgotten.

    Attributes:
        fits: Whether a message is.
        ids: The IDs that the choice is limited to, if it is.
        text: The text that messages are chosen by, if they are.
        parts: Texts, folded, that are to be forgotten wherever they are, not only in messages.
    """

    fits: Callable[[Message], bool]
    ids: frozenset[str] | None = None
    text: str | None = None
    parts: frozenset[str] = frozenset()

    def with_rest(self, left: Forgetting | None) -> Choice:
        """Return the choice with what an earlier one has left to do."""
        if left is None:
            return self
        ids, fits = frozenset(left.ids), self.fits
        parts = frozenset(left.texts)
        return Choice(
            lambda m: fits(m) or m.id in ids or any(contains(m, part) for part in parts),
            None if self.ids is None else self.ids | ids,
            self.text,
            self.parts | parts,
        )


def rest_of(left: Forgetting) -> Choice:
    """Return the choice of what an earlier one has left to do."""
    return Choice(lambda _: False, frozenset()).with_rest(left)


def forgettable(ids: Names | None, which: ForgetOptions, now: datetime) -> Choice:
    """Return what the arguments of ``forget()`` choose.

    Raises:
        MemoryUseError: No option is given, or one makes no sense.
    """
    if ids is None and all(given is None for given in which.values()):
        raise MemoryUseError("Say which messages to forget; clear() removes all of them")
    text = which.get("text")
    part = "" if text is None else folded(checked_text("text=", text))
    given = {"text": None if text is None else part, "where": which.get("where")}
    for option, value in given.items():
        if value in ("", {}):
            raise MemoryUseError(
                f"{option}= is empty, which fits every message. Say which messages to forget; "
                "clear() removes all of them"
            )
    older_than = which.get("older_than")
    until = now - older_than if isinstance(older_than, timedelta) else older_than
    if isinstance(older_than, timedelta):
        as_duration("older_than", older_than)
    elif until is not None:
        moment("older_than", until)
    fits = Query(
        where=which.get("where"),
        role=which.get("role"),
        name=which.get("name"),
        tags=which.get("tags"),
    ).predicate()
    wanted = None if ids is None else names("ids", ids)
    alone = wanted is None and [name for name in which if which[name] is not None] == ["text"]  # type: ignore[literal-required]
    return Choice(
        lambda message: (
            (wanted is None or message.id in wanted)
            and (until is None or message.created_at < until)
            and fits(message)
            and contains(message, part)
        ),
        wanted,
        text,
        frozenset([part] if alone and len(part) >= LEAST_LETTERS else ()),
    )
