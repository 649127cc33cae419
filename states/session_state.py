"""Data of states, kept in the memory from step to step: notes, and what ``into=`` names."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from itertools import starmap
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias
from weakref import WeakKeyDictionary

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError, ValidationInfo
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticSerializationError

from agent_brain.common.json_data import data_of, parts_of
from agent_brain.common.suggest import did_you_mean
from agent_brain.common.values import check_function
from agent_brain.memories.base import Memory
from agent_brain.memories.errors import ScratchError
from agent_brain.states.errors import StateDefinitionError

Scope: TypeAlias = Literal["run", "session"]

_locks: WeakKeyDictionary[Memory, threading.RLock] = WeakKeyDictionary()


def _unless_told(value: Any, info: ValidationInfo) -> Any:
    """Return a register of the program, which no text of a model or a person sets."""
    return False if info.mode == "json" else value


class Notes(BaseModel):
    """Base class for a record in the memory, stored under the name of its class.

    ::

        class Basket(Notes):
            items: list[str] = []

        basket = Basket.read(memory)
        basket.items.append("tea")
        basket.write(memory)

    A subclass declares the fields, each with a default. States read the record, change their copy,
    and write it back as the last thing they do, so that an interrupted step writes nothing. Nets on
    one memory share its records: two nets of the same kind, one inside the other, need memories of
    their own. Tools, several of which may run at once, use :meth:`change`.

    Its lifetime is an argument of the class. The default, ``scope="run"``, keeps it in
    ``memory.control.scratch``, which is emptied when a run begins. ``class Basket(Notes,
    scope="session")`` keeps it in ``memory.control.session``: from run to run, with a journal from
    process to process, in forks, snapshots and exports, until ``memory.clear()``.

    Attributes:
        ended: Whether the work is done; the next :meth:`load` returns an empty record.

    Raises:
        StateDefinitionError: A scope that is neither of these.
    """

    __slots__ = ("_read",)  # what the memory held when it was read; no part of the record

    _scope: ClassVar[Scope] = "run"

    ended: SkipJsonSchema[Annotated[bool, BeforeValidator(_unless_told)]] = Field(
        default=False, exclude=True
    )

    def __init_subclass__(cls, *, scope: Scope | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if scope is None:
            return
        if scope not in ("run", "session"):
            raise StateDefinitionError(
                f"{cls.__name__}: scope={scope!r}, which is neither 'run' nor 'session'."
                f"{did_you_mean(scope, ('run', 'session'))}"
            )
        cls._scope = scope

    @classmethod
    def read(cls, memory: Memory) -> Self:
        """Return the record, or an empty one."""
        noted = cls._room(memory).get(cls.__name__)
        notes = cls() if noted is None else cls._of(noted)
        object.__setattr__(notes, "_read", (noted,))
        return notes

    @classmethod
    @contextmanager
    def change(cls, memory: Memory) -> Iterator[Self]:
        """Read the record, and write it at the end of the ``with`` block, as one change.

        ::

            with Basket.change(memory) as basket:
                basket.items.append(item)

        Others who change records of the memory so, in other threads too, wait meanwhile. Do not
        await inside the block. If it raises, nothing is written.

        Args:
            memory: The memory, such as ``context.memory`` in a tool.

        Raises:
            ScratchError: As :meth:`write`.
        """
        with _lock_of(memory):
            notes = cls.read(memory)
            yield notes
            notes.write(memory)

    @classmethod
    def load(cls, memory: Memory) -> Self:
        """Return the record, or an empty one if it has ended."""
        notes = cls.read(memory)
        return cls() if notes.ended else notes

    def write(self, memory: Memory) -> None:
        """Store this record in place of the one before.

        Raises:
            ScratchError: A field holds what JSON does not hold, or what could not be read again as
                it is; or the record was changed since this one was read.
        """
        name, state = type(self).__name__, memory.control.state
        try:
            stored, again = self._written()
        except PydanticSerializationError as error:
            raise ScratchError(name, f"is not stored: {error}", state=state) from error
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, (name, *first["loc"])))
            wrong = f"{first['msg']}, not {first['input']!r:.100}"
            raise ScratchError(
                field, f"is not stored, as it could not be read again: {wrong}", state=state
            ) from error
        if wrong := "" if again == self else self._difference(again):
            raise ScratchError(name, f"is not stored, as {wrong}", state=state)
        with _lock_of(memory):
            room = self._room(memory)
            read = getattr(self, "_read", None)
            if read is not None and room.get(name) is not read[0]:
                raise ScratchError(
                    name,
                    "is not stored: another call or state has changed it since it was read. Change "
                    f"it in one go: 'with {name}.change(memory) as notes', without await inside",
                    state=state,
                )
            room[name] = stored
            object.__setattr__(self, "_read", (stored,))

    def _written(self) -> tuple[dict[str, Any], Self]:
        """Return the record as JSON data, and what would be read of that."""
        options: Any = {"by_alias": False, "round_trip": True, "warnings": False}
        written = {"ended": self.ended, **self.model_dump(mode="json", **options)}
        with suppress(ValidationError):
            if (again := self._of(written)) == self:
                return written, again
        stored = data_of(self, written)  # it has secrets, or fields that pydantic leaves out
        return stored, self._of(stored)

    @classmethod
    def _of(cls, stored: Any) -> Self:
        return cls.model_validate(stored, by_alias=True, by_name=True)

    def _difference(self, again: Self) -> str:
        """Return what would be read again as another value, if any."""
        found = _difference(self, again)
        if found:
            with suppress(ValidationError):  # a value that was set may be one that its type accepts
                return _difference(self._of(dict(self)), again)
        return found

    @classmethod
    def _room(cls, memory: Memory) -> dict[str, Any]:
        return memory.control.session if cls._scope == "session" else memory.control.scratch


def _difference(value: Any, again: Any) -> str:
    """Return what in a value differs from what would be read again, if anything."""
    parts, others = parts_of(value), parts_of(again)
    if parts is not None and others is not None and isinstance(value, type(again)):
        if parts.keys() == others.keys():
            pairs = ((each, others[name]) for name, each in parts.items())
            return next(filter(None, starmap(_difference, pairs)), "")
    elif isinstance(value, list | tuple) and type(value) is type(again):
        if len(value) == len(again):
            return next(filter(None, map(_difference, value, again)), "")
    elif value == again or value != value or _is_opaque(value, again):
        return ""
    hint = (
        "give the classes a field that tells them apart, such as kind: Literal['a'] = 'a'"
        if isinstance(again, BaseModel) or is_dataclass(again)
        else "give its field a type that JSON data is read as, such as tuple[int, ...] for a tuple"
    )
    return f"{value!r:.100} would be read again as {again!r:.100}: {hint}"


def _is_opaque(value: Any, again: Any) -> bool:
    """Return whether objects are of one class whose instances do not compare by what they hold."""
    compares: Any = type(value).__eq__
    return type(value) is type(again) and compares is object.__eq__


def _lock_of(memory: Memory) -> threading.RLock:
    """Return the lock of the records of a memory, which tools in threads change at once."""
    found = _locks.get(memory)
    return _locks.setdefault(memory, threading.RLock()) if found is None else found


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
