"""What a method must know from step to step, as typed data in the memory."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel

from agent_brain.memories.base import Memory
from agent_brain.states.errors import StateDefinitionError
from agent_brain.tools.suggest import did_you_mean

Scope: TypeAlias = Literal["run", "session"]


class Notes(BaseModel):
    """A record in the memory, under the name of its class.

    A subclass says what there is to note, with a default for each field. States read it, change
    their copy, and write it back as the last thing they do, so that a step that is cut short leaves
    no half of itself. Nets on one memory share its notes: two of the same kind, one inside the
    other, need memories of their own.

    How long it lasts is an argument of the class. The default, ``scope="run"``, keeps it in
    ``memory.control.scratch``, which is emptied when a run begins. ``class Basket(Notes,
    scope="session")`` keeps it in ``memory.control.session``: from run to run, with a journal from
    process to process, in forks, snapshots and exports, until ``memory.clear()``.

    Attributes:
        ended: The method has come to its end; who begins anew begins with an empty record.

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
        """What is noted, or an empty record."""
        noted = cls._room(memory).get(cls.__name__)
        return cls() if noted is None else cls.model_validate(noted)

    @classmethod
    def take_up(cls, memory: Memory) -> Self:
        """What is noted so far; an empty record if that has ended."""
        notes = cls.read(memory)
        return cls() if notes.ended else notes

    def write(self, memory: Memory) -> None:
        """Note this, in place of what was noted before.

        Raises:
            ScratchError: A field holds what JSON does not hold.
        """
        self._room(memory)[type(self).__name__] = self.model_dump(mode="json")

    @classmethod
    def _room(cls, memory: Memory) -> dict[str, Any]:
        return memory.control.session if cls._scope == "session" else memory.control.scratch
