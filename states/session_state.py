"""Typed data of states, kept in the memory from step to step."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from enum import Enum
from functools import partial
from itertools import starmap
from typing import Any, ClassVar, Literal, Self, TypeAlias
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticSerializationError, to_jsonable_python

from agent_brain.common.suggest import did_you_mean
from agent_brain.memories.base import Memory
from agent_brain.memories.errors import ScratchError
from agent_brain.states.errors import StateDefinitionError

Scope: TypeAlias = Literal["run", "session"]

_locks: WeakKeyDictionary[Memory, threading.RLock] = WeakKeyDictionary()


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

    ended: SkipJsonSchema[bool] = False  # no model is asked for it

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
        notes = cls() if noted is None else cls.model_validate(noted)
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
            ScratchError: A field holds what JSON does not hold, or what is not of its type and
                could not be read again; or the record was changed since this one was read.
        """
        name, state = type(self).__name__, memory.control.state
        try:
            stored = self.model_dump(mode="json", warnings=False)
            again = self.model_validate(stored)
            if "**********" in str(stored):  # as pydantic writes secrets
                stored = with_secrets(self, stored)
        except PydanticSerializationError as error:
            raise ScratchError(name, f"is not stored: {error}", state=state) from error
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, (name, *first["loc"])))
            wrong = f"{first['msg']}, not {first['input']!r:.100}"
            raise ScratchError(
                field, f"is not stored, as it could not be read again: {wrong}", state=state
            ) from error
        if wrong := "" if again == self else _other_class(self, again):
            raise ScratchError(
                name,
                f"is not stored, as {wrong}: give the classes a field that tells them apart, such "
                "as kind: Literal['a'] = 'a'",
                state=state,
            )
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

    @classmethod
    def _room(cls, memory: Memory) -> dict[str, Any]:
        return memory.control.session if cls._scope == "session" else memory.control.scratch


def with_secrets(value: Any, written: Any) -> Any:
    """Return how pydantic has written a value as JSON, with secrets in place of their asterisks."""
    from pydantic import RootModel, Secret, SecretBytes, SecretStr

    if isinstance(value, Secret | SecretStr | SecretBytes):
        return to_jsonable_python(value.get_secret_value())
    if isinstance(value, RootModel):
        return with_secrets(value.root, written)
    if isinstance(written, dict):
        get = value.get if isinstance(value, Mapping) else partial(getattr, value)
        return {key: with_secrets(get(key, None), each) for key, each in written.items()}
    if isinstance(written, list) and isinstance(value, list | tuple):
        return [with_secrets(*pair) for pair in zip(value, written, strict=True)]
    return written


def _other_class(value: Any, again: Any) -> str:
    """Return which object in a value would be read again as one of another class, if any."""
    if type(value).__module__ != "builtins" and not isinstance(value, type(again)):
        if isinstance(again, BaseModel | Enum) or is_dataclass(again):
            return f"{value!r:.100} would be read again as {again!r:.100}"
        return ""
    if isinstance(value, BaseModel | Mapping):
        pairs = ((each, dict(again).get(key)) for key, each in dict(value).items())
        return next(filter(None, starmap(_other_class, pairs)), "")
    if isinstance(value, list | tuple) and isinstance(again, list | tuple):
        return next(filter(None, map(_other_class, value, again)), "")
    return ""


def _lock_of(memory: Memory) -> threading.RLock:
    """Return the lock of the records of a memory, which tools in threads change at once."""
    found = _locks.get(memory)
    return _locks.setdefault(memory, threading.RLock()) if found is None else found
