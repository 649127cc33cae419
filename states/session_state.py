"""Typed data of states, kept in the memory from step to step."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from agent_brain.memories.base import Memory
from agent_brain.memories.errors import ScratchError
from agent_brain.states.errors import StateDefinitionError
from agent_brain.tools.suggest import did_you_mean

Scope: TypeAlias = Literal["run", "session"]


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
    their own.

    Its lifetime is an argument of the class. The default, ``scope="run"``, keeps it in
    ``memory.control.scratch``, which is emptied when a run begins. ``class Basket(Notes,
    scope="session")`` keeps it in ``memory.control.session``: from run to run, with a journal from
    process to process, in forks, snapshots and exports, until ``memory.clear()``.

    Attributes:
        ended: Whether the work is done; the next :meth:`load` returns an empty record.

    Raises:
        StateDefinitionError: A scope that is neither of these.
    """

    _scope: ClassVar[Scope] = "run"

    ended: bool = False

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
        return cls() if noted is None else cls.model_validate(noted)

    @classmethod
    def load(cls, memory: Memory) -> Self:
        """Return the record, or an empty one if it has ended."""
        notes = cls.read(memory)
        return cls() if notes.ended else notes

    take_up = load  # the name of earlier versions

    def write(self, memory: Memory) -> None:
        """Store this record in place of the one before.

        Raises:
            ScratchError: A field holds what JSON does not hold, or what is not of its type and
                could not be read again.
        """
        name, state = type(self).__name__, memory.control.state
        try:
            stored = self.model_dump(mode="json", warnings=False)
            self.model_validate(stored)
        except PydanticSerializationError as error:
            raise ScratchError(name, f"is not stored: {error}", state=state) from error
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, (name, *first["loc"])))
            wrong = f"{first['msg']}, not {first['input']!r:.100}"
            raise ScratchError(
                field, f"is not stored, as it could not be read again: {wrong}", state=state
            ) from error
        self._room(memory)[name] = stored

    @classmethod
    def _room(cls, memory: Memory) -> dict[str, Any]:
        return memory.control.session if cls._scope == "session" else memory.control.scratch
