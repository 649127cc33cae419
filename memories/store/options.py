"""The options of a store, and checks of them."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.store.expiry import utc_now
from agent_brain.memories.store.session import History
from agent_brain.memories.views.base import View

if TYPE_CHECKING:
    from agent_brain.memories.options import StoreOptions

JournalLike: TypeAlias = Journal | str | PathLike[str]
HISTORY = 100  # steps that are kept by default


def check_options(views: Sequence[View], options: StoreOptions) -> None:
    """Check the options of a store.

    Raises:
        MemoryDefinitionError: One of them makes no sense.
    """
    journal, shared = options.get("journal"), options.get("shared", False)
    lease_wait = options.get("lease_wait", 0)
    for what, given in (("readonly", options.get("readonly")), ("shared", shared)):
        if given and journal is None:
            raise MemoryDefinitionError(
                f"{what}=True opens a session of a journal: give journal= too"
            )
    if lease_wait and (journal is None or shared):
        raise MemoryDefinitionError(
            "lease_wait= waits for another run of a session of a journal to end: "
            + ("a shared session has no lease" if shared else "give journal= too")
        )
    session, tenant = options.get("session", "default"), options.get("tenant")
    for what, value in (("session", session), ("tenant", "nobody" if tenant is None else tenant)):
        if not isinstance(value, str) or not value:
            raise MemoryDefinitionError(f"{what}= must be a text that is not empty: {value!r}")
    for view in views:
        if not isinstance(view, View):
            raise MemoryDefinitionError(f"views= takes View objects, not {view!r}")
    if not callable(clock := options.get("clock", utc_now)):
        raise MemoryDefinitionError(f"clock= takes a function that returns a time: {clock!r}")
    if not lease_wait >= 0:
        raise MemoryDefinitionError(f"lease_wait= must be 0 seconds or more, not {lease_wait}")
    if journal is not None and not isinstance(journal, Journal | str | PathLike):
        raise MemoryDefinitionError(
            f"journal={journal!r} is not a journal: use a path, the URL of a server, a journal "
            "such as SQLiteJournal(path), or nothing"
        )


def history_to_keep(
    history: History | None, journal: Journal | None, *, shared: bool = False
) -> History:
    """Return how many steps a journal keeps.

    Raises:
        MemoryDefinitionError: ``history`` is something else, or no steps can be kept.
    """
    if history is None:
        return HISTORY if journal is not None and journal.persistent else "last"
    if history in ("all", "last") or (type(history) is int and history > 0):
        if journal is None:
            raise MemoryDefinitionError("history= keeps steps in a journal: give journal= too")
        if shared:
            raise MemoryDefinitionError("history= keeps steps of runs: shared=True stores none")
        if history != "last" and not journal.has_history:
            raise MemoryDefinitionError(
                f"history={history!r}: {type(journal).__name__} keeps no entries of earlier steps"
            )
        return history
    raise MemoryDefinitionError(
        f'history= must be "all", "last" or a number of steps above 0, not {history!r}'
    )
