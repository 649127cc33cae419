"""Errors of memories."""

from __future__ import annotations

from agent_brain.tools.errors import AgentBrainError


class MemoryDefinitionError(AgentBrainError, ValueError):
    """A memory cannot be built, or registered, as it was described."""


class MemoryUseError(AgentBrainError, ValueError):
    """A memory was asked for something that it cannot do with what it was given."""


class ReadOnlyMemoryError(MemoryUseError):
    """A memory that was opened with ``readonly=True`` was asked to write; nothing has changed."""


class ScratchError(MemoryUseError):
    """A value was put into ``control.scratch`` or ``control.session`` that JSON does not hold.

    Attributes:
        key: Under which key.
        problem: What is wrong with it.
        state: Name of the state that did it; None outside of any.
    """

    def __init__(self, key: str, problem: str, *, state: str | None = None) -> None:
        super().__init__(key, problem)
        self.key = key
        self.problem = problem
        self.state = state

    def __str__(self) -> str:
        whose = "" if self.state is None else f"State {self.state!r}: "
        return f"{whose}the value of {self.key!r} {self.problem}"


class MemoryBusyError(AgentBrainError):
    """A run is already going on over this memory: one memory serves one run at a time."""


class SnapshotError(AgentBrainError, ValueError):
    """A snapshot cannot be read: wrong version, or not a snapshot at all."""


class JournalError(AgentBrainError):
    """A journal cannot be read or written; the message says which one and why."""


class JournalConflictError(JournalError):
    """Someone else wrote to the session first; nothing was written.

    Attributes:
        session: The session's key in the journal.
        expected: The last sequence number that the writer knew.
        found: The last sequence number that the journal has.
    """

    def __init__(self, message: str, *, session: str, expected: int, found: int) -> None:
        super().__init__(message)
        self.session = session
        self.expected = expected
        self.found = found


class SessionConflictError(JournalConflictError):
    """Another memory, perhaps in another process, has written to the session of this one."""


class VectorStoreError(AgentBrainError):
    """The store of vectors cannot be used; the record of messages is not concerned."""


class EmbedderMismatchError(VectorStoreError):
    """The session's vectors were made by another embedder; vectors of two cannot be compared.

    Attributes:
        known: The embedder that made them.
        given: The embedder that was given now.
    """

    def __init__(self, known: str, given: str) -> None:
        self.known = known
        self.given = given
        super().__init__(
            f"The session was embedded by {known!r}, and the memory now has {given!r}: use the "
            "first one again, or call 'await memory.reindex()' to embed every message anew"
        )


class EmbeddingError(AgentBrainError, ValueError):
    """An embedder cannot be built, or what it gave back are not the vectors that were asked for.

    Attributes:
        embedder: Name of the embedder.
    """

    def __init__(self, embedder: str, problem: str) -> None:
        self.embedder = embedder
        super().__init__(f"Embedder {embedder!r}: {problem}")
