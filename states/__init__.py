"""States: the small stateless steps of thinking, what they stream, and the model port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.states.aclosing import closing as closing
    from agent_brain.states.acting import ActionState as ActionState
    from agent_brain.states.answering import AnswerState as AnswerState
    from agent_brain.states.base import State as State
    from agent_brain.states.concurrency import Together as Together
    from agent_brain.states.debugging import DebugStates as DebugStates
    from agent_brain.states.errors import ContextWindowError as ContextWindowError
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
    from agent_brain.states.evaluation import Evaluation as Evaluation
    from agent_brain.states.evaluation import EvaluationState as EvaluationState
    from agent_brain.states.evaluation import best_answer as best_answer
    from agent_brain.states.events import ActionFinished as ActionFinished
    from agent_brain.states.events import ActionRequested as ActionRequested
    from agent_brain.states.events import ActionStarted as ActionStarted
    from agent_brain.states.events import AgentEvent as AgentEvent
    from agent_brain.states.events import ApprovalRequested as ApprovalRequested
    from agent_brain.states.events import ContextCompacted as ContextCompacted
    from agent_brain.states.events import Event as Event
    from agent_brain.states.events import FactsLearned as FactsLearned
    from agent_brain.states.events import InputRequested as InputRequested
    from agent_brain.states.events import MessageReceived as MessageReceived
    from agent_brain.states.events import MessagesRecalled as MessagesRecalled
    from agent_brain.states.events import MessagesTrimmed as MessagesTrimmed
    from agent_brain.states.events import OtherEvent as OtherEvent
    from agent_brain.states.events import Position as Position
    from agent_brain.states.events import ResponseStarted as ResponseStarted
    from agent_brain.states.events import RunFailed as RunFailed
    from agent_brain.states.events import RunFinished as RunFinished
    from agent_brain.states.events import RunStarted as RunStarted
    from agent_brain.states.events import SleepRequested as SleepRequested
    from agent_brain.states.events import StateEntered as StateEntered
    from agent_brain.states.events import StateExited as StateExited
    from agent_brain.states.events import StuckDetected as StuckDetected
    from agent_brain.states.events import TextDelta as TextDelta
    from agent_brain.states.events import ToolProgress as ToolProgress
    from agent_brain.states.events import UsageReported as UsageReported
    from agent_brain.states.extracting import model_extractor as model_extractor
    from agent_brain.states.function import FunctionState as FunctionState
    from agent_brain.states.hook_requests import EmbeddingRequest as EmbeddingRequest
    from agent_brain.states.hook_requests import HookRequest as HookRequest
    from agent_brain.states.hook_requests import ModelRequest as ModelRequest
    from agent_brain.states.hook_requests import ModelResponse as ModelResponse
    from agent_brain.states.hook_requests import RunRequest as RunRequest
    from agent_brain.states.hook_requests import StateRequest as StateRequest
    from agent_brain.states.hook_requests import ToolRequest as ToolRequest
    from agent_brain.states.hook_requests import ToolResponse as ToolResponse
    from agent_brain.states.hooks import Hook as Hook
    from agent_brain.states.model_call import ModelCall as ModelCall
    from agent_brain.states.model_request import StructuredRequest as StructuredRequest
    from agent_brain.states.model_request import TextRequest as TextRequest
    from agent_brain.states.model_request import build_messages as build_messages
    from agent_brain.states.models.litellm.adapter import LiteLLM as LiteLLM
    from agent_brain.states.models.llm import LLM as LLM
    from agent_brain.states.models.llm import Finish as Finish
    from agent_brain.states.models.llm import FinishReason as FinishReason
    from agent_brain.states.models.llm import Piece as Piece
    from agent_brain.states.models.llm import Thought as Thought
    from agent_brain.states.planning import Plan as Plan
    from agent_brain.states.planning import PlanningState as PlanningState
    from agent_brain.states.reasoning import ReasoningState as ReasoningState
    from agent_brain.states.reflection import Reflection as Reflection
    from agent_brain.states.reflection import ReflectionState as ReflectionState
    from agent_brain.states.reflection import SelfReflectionState as SelfReflectionState
    from agent_brain.states.resilience import GuardedState as GuardedState
    from agent_brain.states.session_state import Notes as Notes
    from agent_brain.states.sleep import Sleep as Sleep
    from agent_brain.states.stored_answer import TellState as TellState
    from agent_brain.states.summarizing import model_summarizer as model_summarizer
    from agent_brain.states.usage import Usage as Usage
    from agent_brain.states.work import StreamItem as StreamItem
    from agent_brain.states.work import Work as Work
