"""States: the small stateless steps of thinking, what they stream, and the model port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.states.aclosing import closing
from agent_brain.states.acting import ActionState
from agent_brain.states.answering import AnswerState
from agent_brain.states.base import State
from agent_brain.states.concurrency import Together
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
from agent_brain.states.evaluation import Evaluation, EvaluationState
from agent_brain.states.events import (
    ActionFinished,
    ActionRequested,
    ActionStarted,
    AgentEvent,
    ApprovalRequested,
    Event,
    InputRequested,
    Position,
    ResponseStarted,
    RunFailed,
    RunFinished,
    RunStarted,
    StateEntered,
    StateExited,
    StuckDetected,
    TextDelta,
    ToolProgress,
    UsageReported,
)
from agent_brain.states.function import FunctionState
from agent_brain.states.hooks import Hook, ModelRequest, ModelResponse, ToolRequest, ToolResponse
from agent_brain.states.model_call import ModelCall
from agent_brain.states.model_call import ModelCall as Response
from agent_brain.states.model_request import (
    DataQuestion,
    Question,
    StructuredRequest,
    TextQuestion,
    TextRequest,
    brief,
    build_messages,
)
from agent_brain.states.models.llm import LLM, Finish, FinishReason, Piece, Thought
from agent_brain.states.planning import Plan, PlanningState
from agent_brain.states.reasoning import ReasoningState
from agent_brain.states.reflection import Reflection, ReflectionState, SelfReflectionState
from agent_brain.states.resilience import GuardedState
from agent_brain.states.session_state import Notes
from agent_brain.states.stored_answer import TellState
from agent_brain.states.summarizing import model_summarizer
from agent_brain.states.usage import Usage
from agent_brain.states.work import StreamItem, Work

if TYPE_CHECKING:
    from agent_brain.states.models.litellm.adapter import LiteLLM

__all__ = [
    "LLM",
    "ActionFinished",
    "ActionRequested",
    "ActionStarted",
    "ActionState",
    "AgentEvent",
    "AnswerState",
    "ApprovalRequested",
    "ContextWindowError",
    "DataQuestion",
    "Evaluation",
    "EvaluationState",
    "Event",
    "Finish",
    "FinishReason",
    "FunctionState",
    "GuardedState",
    "Hook",
    "InputRequested",
    "LLMAuthenticationError",
    "LLMBadRequestError",
    "LLMConnectionError",
    "LLMError",
    "LLMQuotaError",
    "LLMRateLimitError",
    "LLMRefusalError",
    "LLMServerError",
    "LLMTimeoutError",
    "LiteLLM",
    "MalformedOutputError",
    "ModelCall",
    "ModelRequest",
    "ModelResponse",
    "Notes",
    "Piece",
    "Plan",
    "PlanningState",
    "Position",
    "Question",
    "ReasoningState",
    "RecordedError",
    "Reflection",
    "ReflectionState",
    "Refused",
    "Response",
    "ResponseStarted",
    "RunFailed",
    "RunFinished",
    "RunStarted",
    "SelfReflectionState",
    "State",
    "StateCancelledError",
    "StateDefinitionError",
    "StateEntered",
    "StateExited",
    "StateMutationError",
    "StateTimeoutError",
    "StreamItem",
    "StructuredRequest",
    "StuckDetected",
    "TellState",
    "TextDelta",
    "TextQuestion",
    "TextRequest",
    "Thought",
    "Together",
    "ToolProgress",
    "ToolRequest",
    "ToolResponse",
    "Usage",
    "UsageReported",
    "Work",
    "brief",
    "build_messages",
    "closing",
    "model_summarizer",
]


def __getattr__(name: str) -> object:
    if name == "LiteLLM":
        from agent_brain.states.models.litellm.adapter import LiteLLM

        return LiteLLM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
