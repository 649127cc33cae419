"""Errors of states and of the models they call."""

from __future__ import annotations

from agent_brain.tools.errors import AgentBrainError


class StateMutationError(AgentBrainError, AttributeError):
    """A state tried to keep run data on itself.

    Attributes:
        attribute: The attribute that was assigned.
    """

    def __init__(self, state: str, attribute: str) -> None:
        self.attribute = attribute
        super().__init__(
            f"{state}.{attribute} cannot be assigned: a state in use holds configuration only, as "
            "one object serves many runs. Keep run data in memory.control.scratch"
        )


class StateDefinitionError(AgentBrainError, ValueError):
    """A state cannot be built as it was described."""


class StateCancelledError(AgentBrainError, RuntimeError):
    """A state awaited something that was cancelled, although nobody cancelled the run.

    Attributes:
        state: The name of the state in the net.
    """

    def __init__(self, state: str, kind: str) -> None:
        super().__init__(
            f"State {state!r} ({kind}) awaited a task or a future that was cancelled, and the run "
            "itself was not: catch CancelledError where the state awaits its own tasks"
        )
        self.state = state


class StateTimeoutError(AgentBrainError, TimeoutError):
    """A guarded state took longer than it may.

    Attributes:
        timeout: Seconds it was given.
    """

    def __init__(self, state: str, timeout: float) -> None:
        self.timeout = timeout
        super().__init__(f"{state} took longer than {timeout:g} s and was stopped")


class LLMError(AgentBrainError):
    """A model call failed, after any retries.

    Attributes:
        provider: Who serves the model, as far as known.
        model: The model.
        state: The state that called it, once the Brain has seen the error.
        retries: How often the call was tried again before this was raised.
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
    """The key is missing, wrong, or not allowed to do this. Not retried."""


class LLMBadRequestError(LLMError):
    """The provider does not take the request as it is. Not retried."""


class ContextWindowError(LLMBadRequestError):
    """The messages have more tokens than the model takes. Not retried."""


class LLMRateLimitError(LLMError):
    """Too many requests; retried, no sooner than the provider asks for."""


class LLMQuotaError(LLMError):
    """The account's quota or credit is used up. Not retried."""


class LLMTimeoutError(LLMError):
    """The model did not answer in time; retried while nothing was received."""


class LLMConnectionError(LLMError):
    """No connection, or one that broke; retried while nothing was received."""


class LLMServerError(LLMError):
    """The provider failed; retried while nothing was received."""


class MalformedOutputError(LLMError):
    """The model's output could not be used, and its correction neither.

    Attributes:
        output: What the model wrote last.
    """

    def __init__(self, message: str, *, output: str, model: str | None = None) -> None:
        super().__init__(message, model=model)
        self.output = output


class LLMRefusalError(LLMError):
    """The model declined to answer, or the provider withheld the answer. Not retried.

    Attributes:
        reason: ``"refusal"`` or ``"content_filter"``.
        output: What the model said about it, if anything.
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
    """An error that was read back from the JSON of an event.

    Attributes:
        type: The name of the class of the error that was written.
    """

    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(message)
        self.type = type_name
