"""Every error that this library raises on purpose, in one tree.

::

    AgentBrainError
    ├── BrainDefinitionError       a Brain, or its limits, cannot be built as described
    ├── BrainUseError              a Brain cannot do this now, or not with these arguments
    │   ├── SessionBusyError       a session of a server has a run already
    │   ├── SessionNotFoundError   the caller has no session of that ID
    │   ├── SessionsClosedError    the sessions of a server are closed, or being closed
    │   ├── StepNotFoundError      a session of a server has no step of that number
    │   └── TooManySessionsError   a server cannot open another session now
    ├── FinalError                 an error that no net, state, item or tool handles
    │   ├── JournalError           a journal cannot be read or written
    │   │   ├── JournalConflictError   another writer got there first
    │   │   │   └── SessionConflictError
    │   │   ├── JournalDamagedError    an entry is not what was written
    │   │   ├── LeaseHeldError     another process runs the session
    │   │   └── LeaseLostError     another process has taken the session over
    │   ├── LimitCheckError        a strict limit cannot count a model call
    │   ├── LimitReachedError      work does not begin, as a limit is reached
    │   └── VectorStoreError       the store of vectors cannot be used
    │       └── EmbedderMismatchError  the session was embedded by another model
    ├── QueueError                 a queue of runs cannot be used as described
    │   ├── QueuedRunError         a run of a queue failed
    │   ├── RunConflictError       a run of that ID has another task, or is in progress
    │   ├── RunNotFoundError       a queue has no run of that ID
    │   └── WorkerLostError        other workers have taken this one for dead
    ├── ExperimentError            an experiment cannot be run or read as described
    ├── ResumeError                there is nothing to resume
    │   └── DecisionError          decisions or answers do not fit what a run waits for
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
    ├── EmbeddingError             an embedder cannot be built, or did not return vectors
    ├── SnapshotError              not a snapshot, or of an unknown version
    ├── ToolDefinitionError        a tool, or a set of tools, cannot be built as described
    │   └── McpConfigError         MCP servers cannot be used as described: see .problems
    ├── InputNeeded                raise it inside a tool to ask a person
    ├── SleepNeeded                raise it inside a tool to wait for a time
    └── ToolError                  raise it inside a tool: the model reads its text
        ├── ToolArgumentsError     the arguments do not fit the tool's schema
        └── McpServerError         an MCP server could not be reached, stopped, or refused

Data is on attributes; each class says which.
"""

# ruff: noqa: PLC0414 - names that are imported to be exported

from __future__ import annotations

from agent_brain.common.errors import AgentBrainError as AgentBrainError
from agent_brain.common.errors import EventLoopError as EventLoopError
from agent_brain.common.errors import FinalError as FinalError
from agent_brain.common.errors import ToolDefinitionError as ToolDefinitionError
from agent_brain.memories.errors import EmbedderMismatchError as EmbedderMismatchError
from agent_brain.memories.errors import EmbeddingError as EmbeddingError
from agent_brain.memories.errors import JournalConflictError as JournalConflictError
from agent_brain.memories.errors import JournalDamagedError as JournalDamagedError
from agent_brain.memories.errors import JournalError as JournalError
from agent_brain.memories.errors import LeaseHeldError as LeaseHeldError
from agent_brain.memories.errors import LeaseLostError as LeaseLostError
from agent_brain.memories.errors import MemoryBusyError as MemoryBusyError
from agent_brain.memories.errors import MemoryDefinitionError as MemoryDefinitionError
from agent_brain.memories.errors import MemoryUseError as MemoryUseError
from agent_brain.memories.errors import ReadOnlyMemoryError as ReadOnlyMemoryError
from agent_brain.memories.errors import ScratchError as ScratchError
from agent_brain.memories.errors import SessionConflictError as SessionConflictError
from agent_brain.memories.errors import SnapshotError as SnapshotError
from agent_brain.memories.errors import VectorStoreError as VectorStoreError
from agent_brain.nets.errors import NetDefinitionError as NetDefinitionError
from agent_brain.nets.errors import NetFileError as NetFileError
from agent_brain.nets.errors import TransitionError as TransitionError
from agent_brain.nets.errors import UnknownNetError as UnknownNetError
from agent_brain.states.errors import ContextWindowError as ContextWindowError
from agent_brain.states.errors import LimitReachedError as LimitReachedError
from agent_brain.states.errors import LLMAuthenticationError as LLMAuthenticationError
from agent_brain.states.errors import LLMBadRequestError as LLMBadRequestError
from agent_brain.states.errors import LLMConnectionError as LLMConnectionError
from agent_brain.states.errors import LLMError as LLMError
from agent_brain.states.errors import LLMQuotaError as LLMQuotaError
from agent_brain.states.errors import LLMRateLimitError as LLMRateLimitError
from agent_brain.states.errors import LLMRefusalError as LLMRefusalError
from agent_brain.states.errors import LLMServerError as LLMServerError
from agent_brain.states.errors import LLMTimeoutError as LLMTimeoutError
from agent_brain.states.errors import MalformedOutputError as MalformedOutputError
from agent_brain.states.errors import RecordedError as RecordedError
from agent_brain.states.errors import Refused as Refused
from agent_brain.states.errors import StateCancelledError as StateCancelledError
from agent_brain.states.errors import StateDefinitionError as StateDefinitionError
from agent_brain.states.errors import StateMutationError as StateMutationError
from agent_brain.states.errors import StateTimeoutError as StateTimeoutError
from agent_brain.tools.errors import InputNeeded as InputNeeded
from agent_brain.tools.errors import McpConfigError as McpConfigError
from agent_brain.tools.errors import McpServerError as McpServerError
from agent_brain.tools.errors import SleepNeeded as SleepNeeded
from agent_brain.tools.errors import ToolArgumentsError as ToolArgumentsError
from agent_brain.tools.errors import ToolError as ToolError


class BrainDefinitionError(AgentBrainError, ValueError):
    """Raised when a Brain, or one of its policies, cannot be built as described."""


class BrainUseError(AgentBrainError, RuntimeError):
    """Raised when a Brain cannot do something now, or not with these arguments."""


class LimitCheckError(BrainUseError, FinalError):
    """Raised when a strict limit cannot count a model call: its price or usage is unknown."""


class SessionBusyError(BrainUseError):
    """Raised when a session has a run already, and the caller did not want to wait."""


class SessionNotFoundError(BrainUseError):
    """Raised when the caller has no session of that ID."""


class SessionsClosedError(BrainUseError):
    """Raised when the sessions of a server are closed, or being closed."""


class StepNotFoundError(BrainUseError):
    """Raised when a session has no step of that number, or does not keep it any more."""


class TooManySessionsError(BrainUseError):
    """Raised when a server cannot open another session now."""


class ResumeError(AgentBrainError, RuntimeError):
    """Raised when there is no run to continue, or it does not fit this Brain's net."""


class DecisionError(ResumeError):
    """Raised when decisions and answers do not fit what a run waits for: it waits as before."""


class ExperimentError(AgentBrainError):
    """Raised when an experiment cannot be run, or its results cannot be read, as described."""


class QueueError(AgentBrainError):
    """Raised when a queue of runs cannot be built, opened or used as described.

    Attributes:
        id: The ID of the run; empty if it is about none.
    """

    def __init__(self, message: str, *, id: str = "") -> None:  # noqa: A002 - what it is
        super().__init__(message)
        self.id = id


class RunNotFoundError(QueueError):
    """Raised when a queue has no run of that ID."""


class RunConflictError(QueueError):
    """Raised when a run of that ID has another task, or is in progress."""


class QueuedRunError(QueueError):
    """Raised for the result of a run of a queue that failed.

    Attributes:
        id: The ID of the run.
        type: The name of the class of the error.
    """

    def __init__(self, message: str, *, id: str, type: str) -> None:  # noqa: A002 - what they are
        super().__init__(message, id=id)
        self.type = type


class WorkerLostError(QueueError):
    """Raised when a worker was silent for so long that others have taken over its runs."""


# every class above
__all__ = sorted(name for name, kind in globals().items() if isinstance(kind, type))  # noqa: PLE0605  # pyright: ignore[reportUnsupportedDunderAll]
