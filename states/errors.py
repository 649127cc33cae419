"""Errors of states and models.

* AgentBrainError
    * LimitReachedError
    * StateDefinitionError
    * StateMutationError
    * StateCancelledError
    * StateTimeoutError
    * LLMError
        * LLMAuthenticationError
        * LLMBadRequestError
            * ContextWindowError
        * LLMRateLimitError
        * LLMQuotaError
        * LLMTimeoutError
        * LLMConnectionError
        * LLMServerError
        * LLMRefusalError
        * MalformedOutputError
    * RecordedError
"""

from __future__ import annotations

from agent_brain.common.errors import AgentBrainError, FinalError


class LimitReachedError(FinalError):
    """Raised where work does not begin, as a limit or a budget of the run is reached.

    The Brain ends the run with the ``stop_reason`` of the limit. Code sees the error only if it
    does work by itself, such as iterating over ``call.events(context)``.
    """


class StateMutationError(AgentBrainError, AttributeError):
    """Raised when a state assigns to one of its own attributes, or changes it, while it is in use.

    Attributes:
        attribute: The name of the attribute.
    """

    def __init__(self, state: str, attribute: str) -> None:
        self.attribute = attribute
        super().__init__(
            f"{state}.{attribute} cannot be changed: a state in use holds configuration only, as "
            "one object serves many runs. Store run data in memory.control.scratch"
        )


class StateDefinitionError(AgentBrainError, ValueError):
    """Raised when a state cannot be created with the given arguments."""


class StateCancelledError(AgentBrainError, RuntimeError):
    """Raised when a state awaits something that was cancelled, although the run was not.

    Attributes:
        state: Name of the state in the net.
    """

    def __init__(self, state: str, kind: str) -> None:
        super().__init__(
            f"State {state!r} ({kind}) awaited a task or a future that was cancelled, and the run "
            "itself was not: catch CancelledError where the state awaits its own tasks"
        )
        self.state = state


class StateTimeoutError(AgentBrainError, TimeoutError):
    """Raised when a guarded state exceeds its time limit.

    Attributes:
        timeout: The limit in seconds.
    """

    def __init__(self, state: str, timeout: float) -> None:
        self.timeout = timeout
        super().__init__(f"{state} took longer than {timeout:g} s and was stopped")


class LLMError(AgentBrainError):
    """Raised when a model call failed, after any retries.

    Attributes:
        provider: The provider of the model, if known.
        model: The name of the model, if known.
        state: Name of the state that called the model; the Brain sets it.
        retries: Number of retries before the error was raised.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        retries: int = 0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.provider = provider
        self.model = model
        self.retries = retries
        self.state: str | None = None

    def __str__(self) -> str:
        parts = [("provider", self.provider), ("model", self.model), ("state", self.state)]
        known = [f"{name} {value!r}" for name, value in parts if value]
        if self.retries:
            known.append(f"tried {self.retries + 1} times")
        return f"{self.message} ({', '.join(known)})" if known else self.message


class LLMAuthenticationError(LLMError):
    """Raised when the API key is missing, invalid or lacks permission. Not retried."""


class LLMBadRequestError(LLMError):
    """Raised when the provider rejects the request. Not retried."""


class ContextWindowError(LLMBadRequestError):
    """Raised when the messages exceed the context window of the model. Not retried."""


class LLMRateLimitError(LLMError):
    """Raised for too many requests. Retried after the delay that the provider asks for."""


class LLMQuotaError(LLMError):
    """Raised when the quota or credit of the account is used up. Not retried."""


class LLMTimeoutError(LLMError):
    """Raised when the model does not answer in time. Retried if nothing was received."""


class LLMConnectionError(LLMError):
    """Raised when the connection fails or breaks. Retried if nothing was received."""


class LLMServerError(LLMError):
    """Raised when the provider fails. Retried if nothing was received."""


class MalformedOutputError(LLMError):
    """Raised when neither the output of the model nor its correction is valid.

    Attributes:
        output: The last output of the model.
    """

    def __init__(self, message: str, *, output: str, model: str | None = None) -> None:
        super().__init__(message, model=model)
        self.output = output


class LLMRefusalError(LLMError):
    """Raised when the model refuses to answer, or the provider withholds it. Not retried.

    Attributes:
        reason: ``"refusal"`` or ``"content_filter"``.
        output: The explanation of the model, if any.
    """

    def __init__(self, reason: str, *, output: str = "", model: str | None = None) -> None:
        who = (
            "The model refused to answer"
            if reason == "refusal"
            else "The provider's content filter withheld the answer"
        )
        super().__init__(f"{who}: {output.strip()}" if output.strip() else who, model=model)
        self.reason = reason
        self.output = output


class Refused(LLMError):  # noqa: N818 - what a hook says
    """Raise it in a hook to refuse a model call or a tool call.

    A refused model call fails with it; of a refused tool call, the model reads the text as the
    result. Not retried.
    """


class RecordedError(AgentBrainError):
    """An error read from the JSON of an event.

    Attributes:
        type: The class name of the original error.
    """

    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(message)
        self.type = type_name
