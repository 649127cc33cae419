"""Where a state keeps data for later states: ``into=``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from agent_brain.common.json_data import data_of
from agent_brain.common.values import check_function
from agent_brain.memories.base import Memory
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.session_state import Notes

Keep: TypeAlias = Callable[[Memory, Any], Awaitable[None] | None]
Into: TypeAlias = str | type[Notes] | Keep


def keeper(kind: Any, into: Into | None, *, name: str) -> Keep:
    """Return what keeps data of a type.

    Args:
        kind: The type, or a JSON Schema, whose values are JSON data.
        into: The name of a value in ``memory.control.scratch``, a class of notes with a field of
            the type, or a function of the memory and the data. None: notes of the type itself, or
            the value called ``name``.
        name: The name of the type.

    Raises:
        StateDefinitionError: ``into`` cannot keep it.
    """
    if isinstance(kind, Mapping):
        kind = Any
    if into is None and is_notes(kind):
        return _write
    if into == "":
        raise StateDefinitionError("into='': give a name, or leave into= out")
    if into is None or isinstance(into, str):
        place = into or name
        adapter: TypeAdapter[Any] = TypeAdapter(kind)

        def keep(memory: Memory, data: Any) -> None:
            written = adapter.dump_python(data, mode="json", by_alias=False, round_trip=True)
            memory.control.scratch[place] = data_of(data, written)

        return keep
    if isinstance(into, type) and issubclass(into, Notes):
        return _into_notes(into, kind)
    if callable(into) and not isinstance(into, type):
        check_function(StateDefinitionError, "into", into, "memory", "data")
        return into
    raise StateDefinitionError(
        f"into={into!r}: a name, a class of notes, or a function of the memory and the data"
    )


def keeper_if_any(kind: Any, into: Into | None) -> Keep | None:
    """Return what keeps data of a type; without ``into``, only notes are kept: as such.

    Args:
        kind: As of :func:`keeper`.
        into: As of :func:`keeper`.

    Raises:
        StateDefinitionError: ``into`` cannot keep it.
    """
    return None if into is None and not is_notes(kind) else keeper(kind, into, name="")


def is_notes(kind: Any) -> bool:
    """Return whether a type is a class of notes."""
    return isinstance(kind, type) and issubclass(kind, Notes)


def _write(memory: Memory, data: Any) -> None:
    if isinstance(data, Notes):  # an output of a net with several types may be no notes
        data.write(memory)


def _into_notes(notes: type[Notes], kind: Any) -> Keep:
    """Return what writes data into the field of the notes that is of its type."""
    fields = {name: field.annotation for name, field in notes.model_fields.items()}
    fitting = [name for name, found in fields.items() if found in (kind, kind | None, Any)]
    name, *more = fitting or [""]
    if more or not name:
        what = f"fields {', '.join(fitting)} are" if more else "no field is"
        raise StateDefinitionError(
            f"into={notes.__name__}: {what} of the type {kind!r}: give a function"
        )

    def keep(memory: Memory, data: Any) -> None:
        with notes.change(memory) as noted:
            setattr(noted, name, data)

    return keep
