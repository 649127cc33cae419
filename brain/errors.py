"""Every error that this library raises on purpose, in one tree.

::

    AgentBrainError
    ├── BrainDefinitionError       a Brain, or its limits, cannot be built as described
    ├── BrainUseError              a Brain was asked for something that it cannot do now
    ├── ResumeError                there is nothing to resume
    ├── TransitionError            a state proposed to go where no edge goes
    ├── NetDefinitionError         a net is wrong: .problems has everything at once
    ├── NetFileError               a file does not describe a net, or cannot be read
    ├── UnknownNetError            no net of that name, or not with those options
    ├── StateDefinitionError       a state cannot be built as described
    ├── StateMutationError         a state tried to keep run data on itself
    ├── StateCancelledError        a state awaited something that was cancelled
    ├── StateTimeoutError          a guarded state took longer than it may
    ├── RecordedError              an error that was read back from the JSON of an event
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
    ├── MemoryUseError             a memory cannot do that with what it was given
    │   └── ScratchError           scratch got a value that JSON does not hold
    ├── MemoryBusyError            a run is already going on over this memory
    ├── JournalError               a journal cannot be read or written
    │   └── JournalConflictError   someone else wrote to the session first
    │       └── SessionConflictError
    ├── VectorStoreError           the store of vectors cannot be used
    │   └── EmbedderMismatchError  the session was embedded by another model
    ├── EmbeddingError             an embedder cannot be built, or gave back no vectors
    ├── SnapshotError              not a snapshot, or of an unknown version
    ├── ToolDefinitionError        a tool, or a set of tools, cannot be built as described
    │   └── McpConfigError         MCP servers cannot be used so: .problems has everything at once
    ├── InputNeeded                raise it inside a tool: a person is asked
    └── ToolError                  raise it inside a tool: the model is told
        ├── ToolArgumentsError     the arguments do not fit the tool's schema
        └── McpServerError         an MCP server could not be reached, stopped, or refused

Data is on attributes; each class says which.
"""

from __future__ import annotations

from agent_brain.memories.errors import (
    EmbedderMismatchError,
    EmbeddingError,
    JournalConflictError,
    JournalError,
    MemoryBusyError,
    MemoryDefinitionError,
    MemoryUseError,
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
    """A Brain, or one of its policies, cannot be built as it was described."""


class BrainUseError(AgentBrainError, RuntimeError):
    """A Brain was asked for something that it cannot do now."""


class ResumeError(AgentBrainError, RuntimeError):
    """There is no run to go on with, or it does not fit this Brain's net."""


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
    "MalformedOutputError",
    "McpConfigError",
    "McpServerError",
    "MemoryBusyError",
    "MemoryDefinitionError",
    "MemoryUseError",
    "NetDefinitionError",
    "NetFileError",
    "RecordedError",
    "Refused",
    "ResumeError",
    "ScratchError",
    "SessionConflictError",
    "SnapshotError",
    "StateCancelledError",
    "StateDefinitionError",
    "StateMutationError",
    "StateTimeoutError",
    "ToolArgumentsError",
    "ToolDefinitionError",
    "ToolError",
    "TransitionError",
    "UnknownNetError",
    "VectorStoreError",
]
