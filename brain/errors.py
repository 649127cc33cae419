"""Every error that this library raises on purpose, in one tree.

::

    AgentBrainError
    ├── BrainDefinitionError       a Brain, or its limits, cannot be built as described
    ├── BrainUseError              a Brain cannot do this now, or not with these arguments
    │   ├── SessionBusyError       a session of a server has a run already
    │   ├── SessionNotFoundError   the caller has no session of that ID
    │   ├── SessionsClosedError    the sessions of a server are closed, or being closed
    │   └── TooManySessionsError   a server cannot open another session now
    ├── ResumeError                there is nothing to resume
    ├── TransitionError            a state proposed a target that no edge leads to
    ├── NetDefinitionError         a net is invalid: .problems lists everything
    ├── NetFileError               a file does not describe a net, or cannot be read
    ├── UnknownNetError            no net of that name, or not with those options
    ├── StateDefinitionError       a state cannot be built as described
    ├── StateMutationError         a state assigned to one of its own attributes
    ├── StateCancelledError        a state awaited something that was cancelled
    ├── StateTimeoutError          a guarded state exceeded its time limit
    ├── RecordedError              an error that was read from the JSON of an event
    ├── EventLoopError             something that needs asyncio was used on another event loop
    ├── LLMError                   a model call failed
    │   ├── LLMAuthenticationError
    │   ├── LLMBadRequestError
    │   │   └── ContextWindowError
    │   ├── LLMQuotaError
    │   ├── LLMRateLimitError
    │   ├── LLMTimeoutError
    │   ├── LLMConnectionError
    │   ├── LLMServerError
    │   ├── LLMRefusalError        the model declined to answer, or its answer was withheld
    │   ├── MalformedOutputError
    │   └── Refused                a hook refused a call
    ├── MemoryDefinitionError      a memory cannot be built or registered as described
    ├── MemoryUseError             a method of a memory was called with unsuitable arguments
    │   ├── ReadOnlyMemoryError    a memory opened with readonly=True should write
    │   └── ScratchError           a value in scratch is not a JSON value
    ├── MemoryBusyError            another run is using this memory
    ├── JournalError               a journal cannot be read or written
    │   ├── JournalConflictError   another writer got there first
    │   │   └── SessionConflictError
    │   ├── JournalDamagedError    an entry is not what was written
    │   ├── LeaseHeldError         another process runs the session
    │   └── LeaseLostError         another process has taken the session over
    ├── VectorStoreError           the store of vectors cannot be used
    │   └── EmbedderMismatchError  the session was embedded by another model
    ├── EmbeddingError             an embedder cannot be built, or did not return vectors
    ├── SnapshotError              not a snapshot, or of an unknown version
    ├── ToolDefinitionError        a tool, or a set of tools, cannot be built as described
    │   └── McpConfigError         MCP servers cannot be used as described: see .problems
    ├── InputNeeded                raise it inside a tool to ask a person
    └── ToolError                  raise it inside a tool: the model reads its text
        ├── ToolArgumentsError     the arguments do not fit the tool's schema
        └── McpServerError         an MCP server could not be reached, stopped, or refused

Data is on attributes; each class says which.
"""

from __future__ import annotations

from agent_brain.memories.errors import (
    EmbedderMismatchError,
    EmbeddingError,
    JournalConflictError,
    JournalDamagedError,
    JournalError,
    LeaseHeldError,
    LeaseLostError,
    MemoryBusyError,
    MemoryDefinitionError,
    MemoryUseError,
    ReadOnlyMemoryError,
    ScratchError,
    SessionConflictError,
    SnapshotError,
    VectorStoreError,
)
from agent_brain.nets.errors import (
    NetDefinitionError,
    NetFileError,
    TransitionError,
    UnknownNetError,
)
from agent_brain.states.errors import (
    ContextWindowError,
    LLMAuthenticationError,
    LLMBadRequestError,
    LLMConnectionError,
    LLMError,
    LLMQuotaError,
    LLMRateLimitError,
    LLMRefusalError,
    LLMServerError,
    LLMTimeoutError,
    MalformedOutputError,
    RecordedError,
    Refused,
    StateCancelledError,
    StateDefinitionError,
    StateMutationError,
    StateTimeoutError,
)
from agent_brain.tools.errors import (
    AgentBrainError,
    EventLoopError,
    InputNeeded,
    McpConfigError,
    McpServerError,
    ToolArgumentsError,
    ToolDefinitionError,
    ToolError,
)


class BrainDefinitionError(AgentBrainError, ValueError):
    """Raised when a Brain, or one of its policies, cannot be built as described."""


class BrainUseError(AgentBrainError, RuntimeError):
    """Raised when a Brain cannot do something now, or not with these arguments."""


class SessionBusyError(BrainUseError):
    """Raised when a session has a run already, and the caller did not want to wait."""


class SessionNotFoundError(BrainUseError):
    """Raised when the caller has no session of that ID."""


class SessionsClosedError(BrainUseError):
    """Raised when the sessions of a server are closed, or being closed."""


class TooManySessionsError(BrainUseError):
    """Raised when a server cannot open another session now."""


class ResumeError(AgentBrainError, RuntimeError):
    """Raised when there is no run to continue, or it does not fit this Brain's net."""


__all__ = [
    "AgentBrainError",
    "BrainDefinitionError",
    "BrainUseError",
    "ContextWindowError",
    "EmbedderMismatchError",
    "EmbeddingError",
    "EventLoopError",
    "InputNeeded",
    "JournalConflictError",
    "JournalDamagedError",
    "JournalError",
    "LLMAuthenticationError",
    "LLMBadRequestError",
    "LLMConnectionError",
    "LLMError",
    "LLMQuotaError",
    "LLMRateLimitError",
    "LLMRefusalError",
    "LLMServerError",
    "LLMTimeoutError",
    "LeaseHeldError",
    "LeaseLostError",
    "MalformedOutputError",
    "McpConfigError",
    "McpServerError",
    "MemoryBusyError",
    "MemoryDefinitionError",
    "MemoryUseError",
    "NetDefinitionError",
    "NetFileError",
    "ReadOnlyMemoryError",
    "RecordedError",
    "Refused",
    "ResumeError",
    "ScratchError",
    "SessionBusyError",
    "SessionConflictError",
    "SessionNotFoundError",
    "SessionsClosedError",
    "SnapshotError",
    "StateCancelledError",
    "StateDefinitionError",
    "StateMutationError",
    "StateTimeoutError",
    "TooManySessionsError",
    "ToolArgumentsError",
    "ToolDefinitionError",
    "ToolError",
    "TransitionError",
    "UnknownNetError",
    "VectorStoreError",
]
