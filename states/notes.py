"""What a method must know from step to step, as typed data in the memory's scratch room."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel

from agent_brain.memories.base import Memory


class Notes(BaseModel):
    """A record in ``memory.control.scratch``, under the name of its class.

    A subclass says what there is to note, with a default for each field. States read it, change
    their copy, and write it back as the last thing they do, so that a step that is cut short leaves
    no half of itself. Nets on one memory share its scratch room: two of the same kind, one inside
    the other, need memories of their own.

    Attributes:
        ended: The method has come to its end; who begins anew begins with an empty record.
    """

    ended: bool = False

    @classmethod
    def read(cls, memory: Memory) -> Self:
        """What is noted, or an empty record."""
        noted = memory.control.scratch.get(cls.__name__)
        return cls() if noted is None else cls.model_validate(noted)

    @classmethod
    def take_up(cls, memory: Memory) -> Self:
        """What is noted so far; an empty record if that has ended."""
        notes = cls.read(memory)
        return cls() if notes.ended else notes

    def write(self, memory: Memory) -> None:
        """Note this, in place of what was noted before."""
        memory.control.scratch[type(self).__name__] = self.model_dump(mode="json")
