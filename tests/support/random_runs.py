"""Random sequences of events, also ones that no run would have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from agent_brain.errors import BrainUseError
from agent_brain.memories.message import Message
from agent_brain.states.events import (
    ActionDelta,
    ActionFinished,
    ActionRequested,
    ActionStarted,
    AgentEvent,
    ApprovalRequested,
    InputRequested,
    MessageReceived,
    OtherEvent,
    PartialOutput,
    Position,
    ResponseStarted,
    RunFailed,
    RunFinished,
    RunStarted,
    SourcesCited,
    StateEntered,
    StateExited,
    StuckDetected,
    TextDelta,
    ToolProgress,
    UsageReported,
)
from agent_brain.states.sources import CitedSource
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action

PATHS: list[tuple[str, ...]] = [(), ("A",), ("A", "x"), ("A", "y"), ("A", "x", "B"), ("B",)]
STATES = ["A", "B"]

states = st.sampled_from(STATES)
places = st.builds(
    lambda path, state: Position("run_1", 0, state, path), st.sampled_from(PATHS), states
)
responses = st.sampled_from(["resp_1", "resp_2", None])
actions = st.builds(
    Action,
    name=st.sampled_from(["add", "pick_color"]),
    args=st.just({"a": 1}),
    id=st.sampled_from(["c1", "c2", "c3"]),
    unparsed=st.sampled_from([None, "{"]),
)
texts = st.sampled_from(["", "Hello", "\ud83d", "é\n\u2028"])


def _finished(action: Action, at: Position, *, is_error: bool) -> ActionFinished:
    return ActionFinished(action, Message.tool("3", action, is_error=is_error), at=at)


inner_events: st.SearchStrategy[Any] = st.one_of(
    st.builds(StateEntered, at=places),
    st.builds(StateExited, next=st.sampled_from(["A", "B", None]), at=places),
    st.builds(TextDelta, text=texts, thought=st.booleans(), response_id=responses, at=places),
    st.builds(ResponseStarted, response_id=responses, model=st.just("m"), at=places),
    st.builds(UsageReported, usage=st.just(Usage(3, 4)), response_id=responses, at=places),
    st.builds(
        ActionDelta,
        id=st.sampled_from(["c1", "c2", "c3"]),
        name=st.sampled_from(["add", "pick_color"]),
        text=texts,
        response_id=responses,
        dropped=st.booleans(),
        at=places,
    ),
    st.builds(
        PartialOutput,
        output=st.sampled_from([None, {"a": "é"}]),
        thought=st.booleans(),
        response_id=responses,
        at=places,
    ),
    st.builds(ActionRequested, action=actions, response_id=responses, at=places),
    st.builds(ActionStarted, action=actions, at=places),
    st.builds(ToolProgress, action=actions, done=st.just(0.5), at=places),
    st.builds(_finished, action=actions, at=places, is_error=st.booleans()),
    st.builds(
        SourcesCited,
        sources=st.just((CitedSource("https://e.org/a", "é"), CitedSource("https://e.org/b"))),
        response_id=responses,
        at=places,
    ),
    st.builds(MessageReceived, message=st.builds(Message.user, texts), at=places),
    st.builds(OtherEvent, kind=st.just("own"), data=st.just({"type": "é"}), at=places),
    st.builds(StuckDetected, reason=texts, verdict=st.just("hint"), at=places),
)
waits: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        ApprovalRequested,
        actions=st.lists(actions, min_size=1, max_size=2, unique_by=lambda a: a.id).map(tuple),
        at=places,
    ),
    st.builds(InputRequested, prompt=texts, id=st.sampled_from(["", "c1", "c2"]), at=places),
)


def _run(body: list[AgentEvent], asked: list[AgentEvent], end: AgentEvent | None) -> list[Any]:
    events: list[AgentEvent | None] = [RunStarted(Message.user("Go"), at=Position("run_1"))]
    if isinstance(end, RunFinished) and end.stop_reason in ("approval", "input"):
        return [*events, *body, *asked, end]
    return [*events, *body, *([end] if end else [])]


def runs(*, most: int = 30) -> st.SearchStrategy[list[AgentEvent]]:
    """Return a strategy of sequences: a start, anything, and an end, or none if it is cut off."""
    reasons = ["done", "approval", "input", "max_steps", "stopped", "cancelled"]
    finished: Callable[[str, str], RunFinished] = lambda reason, answer: RunFinished(  # noqa: E731
        reason, answer, at=Position("run_1")
    )
    ends = st.one_of(
        st.none(),
        st.builds(finished, st.sampled_from(reasons), texts),
        st.just(RunFailed(BrainUseError("no"), at=Position("run_1"))),
    )
    return st.builds(
        _run, st.lists(inner_events, max_size=most), st.lists(waits, min_size=1, max_size=3), ends
    )
