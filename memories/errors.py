"""Errors of memories.

* AgentBrainError
    * MemoryDefinitionError
    * MemoryUseError
        * ReadOnlyMemoryError
        * ScratchError
    * MemoryBusyError
    * SnapshotError
    * FinalError
        * JournalError
            * JournalConflictError
                * SessionConflictError
            * JournalDamagedError
            * LeaseHeldError
            * LeaseLostError
        * VectorStoreError
            * EmbedderMismatchError
    * EmbeddingError
"""

from __future__ import annotations

from agent_brain.common.errors import AgentBrainError, FinalError


class MemoryDefinitionError(AgentBrainError, ValueError):
    """Raised when a memory cannot be created or registered with the given arguments."""


class MemoryUseError(AgentBrainError, ValueError):
    """Raised when a method of a memory is called with unsuitable arguments."""


class ReadOnlyMemoryError(MemoryUseError):
    """Raised when a memory opened with ``readonly=True`` should write; nothing has changed."""


class ScratchError(MemoryUseError):
    """Raised when a value in ``control.scratch`` or ``control.session`` is not a JSON value.

    Attributes:
        key: The key of the value.
        problem: What is wrong with the value.
        state: Name of the state that stored it; None outside of a state.
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
    """Raised when a run starts on a memory that another run is using."""


class SnapshotError(AgentBrainError, ValueError):
    """Raised when a snapshot cannot be read: it is damaged, or its version is not supported."""


class JournalError(FinalError):
    """Raised when a journal cannot be read or written; it ends a run, which can be resumed."""


class JournalConflictError(JournalError):
    """Raised when another writer got there first; nothing was written.

    Attributes:
        session: The key of the session in the journal.
        expected: The last sequence number that the writer knew.
        found: The last sequence number in the journal.
    """

    def __init__(self, message: str, *, session: str, expected: int, found: int) -> None:
        super().__init__(message)
        self.session = session
        self.expected = expected
        self.found = found


class SessionConflictError(JournalConflictError):
    """Raised when another memory, perhaps in another process, has written to this session."""


class JournalDamagedError(JournalError):
    """Raised when an entry is not what was written. Entries before it can be read.

    Attributes:
        session: The key of the session in the journal.
        seq: The sequence number of the first damaged entry; 0 if it is unknown.
    """

    def __init__(self, message: str, *, session: str, seq: int = 0) -> None:
        super().__init__(message)
        self.session = session
        self.seq = seq


class LeaseHeldError(JournalError):
    """Raised when another runner has the lease of a session; nothing was written.

    Attributes:
        session: The key of the session in the journal.
        owner: Who has the lease, as text for people.
        seconds: How long the lease still lasts if it is not renewed.
    """

    def __init__(self, message: str, *, session: str, owner: str, seconds: float) -> None:
        super().__init__(message)
        self.session = session
        self.owner = owner
        self.seconds = seconds


class LeaseLostError(JournalError):
    """Raised when a runner's lease was taken over, as it was not renewed; nothing was written.

    Attributes:
        session: The key of the session in the journal.
    """

    def __init__(self, message: str, *, session: str) -> None:
        super().__init__(message)
        self.session = session


class VectorStoreError(FinalError):
    """Raised when the vector store cannot be used; the stored messages are not affected.

    It ends a run, which can be resumed.
    """


class EmbedderMismatchError(VectorStoreError):
    """Raised when the vectors of a session come from another embedder and cannot be compared.

    Attributes:
        known: The embedder of the stored vectors.
        given: The embedder of the memory.
    """

    def __init__(self, known: str, given: str) -> None:
        self.known = known
        self.given = given
        super().__init__(
            f"The session was embedded with {known!r}, and the memory has {given!r}: use the "
            "former, or call 'await memory.reindex()' to embed every message again"
        )


class EmbeddingError(AgentBrainError, ValueError):
    """Raised when an embedder cannot be created, or does not return one vector for each text.

    Attributes:
        embedder: Name of the embedder.
    """

    def __init__(self, embedder: str, problem: str) -> None:
        self.embedder = embedder
        super().__init__(f"Embedder {embedder!r}: {problem}")


STORE_ERRORS = (JournalError, VectorStoreError)
"""Errors of a store: what a kill at that point would have left is left, and nothing is written."""
