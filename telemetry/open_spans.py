"""The spans that are open, and which is whose parent.

Parents are looked up here and passed on, never taken from "the current span": a run is a generator,
and what is current while it works is what is current for its consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from time import perf_counter
from typing import Any

from opentelemetry import context as otel
from opentelemetry.context import Context
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from agent_brain.common.secrets import scrub
from agent_brain.states.events import Position
from agent_brain.telemetry.attributes import ERROR_TYPE, UNFINISHED


class OpenSpan:
    """A span that has not ended.

    Args:
        span: The span.
        parent: Its parent and whatever else belongs to the context.
        shared: Attributes that its metrics have too.

    Attributes:
        context: The context for its children.
        first: Seconds until its first output; None before that.
        shared: Attributes that its metrics have too.
        span: The span.
    """

    __slots__ = ("_began", "context", "first", "shared", "span")

    def __init__(
        self, span: Span, parent: Context, shared: Mapping[str, Any] | None = None
    ) -> None:
        self.span = span
        self.context = set_span_in_context(span, parent)
        self.shared = dict(shared or {})
        self.first: float | None = None
        self._began = perf_counter()

    @property
    def seconds(self) -> float:
        """Its duration so far."""
        return perf_counter() - self._began

    def end(self, attributes: Mapping[str, Any] | None = None) -> None:
        """End the span."""
        self.span.set_attributes(dict(attributes or {}))
        self.span.end()

    def fail(
        self, error: BaseException | None, *, content: bool | Callable[[str], str], text: str = ""
    ) -> None:
        """Mark the span as failed, with the text of the error only if ``content`` may be shown."""
        kind = "_OTHER" if error is None else type(error).__name__
        self.span.set_attribute(ERROR_TYPE, kind)
        self.shared[ERROR_TYPE] = kind
        if not content:
            self.span.set_status(Status(StatusCode.ERROR, kind))
            return
        shown = scrub(text or f"{kind}: {error}")
        shown = content(shown) if callable(content) else shown
        self.span.set_status(Status(StatusCode.ERROR, shown))


class Current:
    """Makes a span the current one; notes when something has come of it for the first time.

    Args:
        open_span: The span.
    """

    __slots__ = ("_open", "_token")

    def __init__(self, open_span: OpenSpan) -> None:
        self._open = open_span

    def __enter__(self) -> None:
        self._token = otel.attach(self._open.context)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        otel.detach(self._token)
        if self._open.first is None and error is None:
            self._open.first = self._open.seconds


class OpenStep(OpenSpan):
    """The span of a run or of a step, and those of the calls in it.

    Attributes:
        at: The position; it is kept, so that its identity stays unique.
        calls: The open calls, in the order in which they began.
        owner: Whose span it is.
    """

    __slots__ = ("at", "calls", "owner")

    def __init__(self, span: Span, parent: Context, at: Position, owner: object) -> None:
        super().__init__(span, parent)
        self.at = at
        self.owner = owner
        self.calls: dict[Hashable, OpenSpan] = {}

    def end_calls(self) -> None:
        """End the calls that were cancelled, left early, or wait for a person."""
        while self.calls:
            _, call = self.calls.popitem()  # the inner ones first
            call.end({UNFINISHED: True})


_steps: dict[int, list[OpenStep]] = {}
"""By the identity of the position, which all requests of a step share.

Also across hooks, as a brain that is used as a tool may have a hook of its own.
"""


def add(step: OpenStep) -> OpenStep:
    """Remember the span of a run or of a step."""
    _steps.setdefault(id(step.at), []).append(step)
    return step


def find(at: Position, owner: object, *, foreign: bool = False) -> OpenStep | None:
    """Return the span at a position.

    Args:
        at: The position.
        owner: Whose span.
        foreign: Return somebody else's if there is none of ``owner``.
    """
    known = _steps.get(id(at), ())
    own = [step for step in known if step.owner is owner]
    if own or not (foreign and known):
        return own[-1] if own else None
    return known[-1]


def remove(at: Position, owner: object) -> OpenStep | None:
    """Forget the span at a position and return it, after its calls have ended."""
    step = find(at, owner)
    if step is None:
        return None
    _steps[id(at)].remove(step)
    if not _steps[id(at)]:
        del _steps[id(at)]
    step.end_calls()
    return step
