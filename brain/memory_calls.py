"""The model calls and embeddings that a memory makes for a run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from agent_brain.common.ids import new_id
from agent_brain.common.text import count_tokens
from agent_brain.errors import LimitCheckError, LimitReachedError
from agent_brain.limits import StopReason
from agent_brain.memories.base import Memory
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.runs.work import EMBEDDING, RunWork, run_here, set_run_work
from agent_brain.states.events import (
    KINDS,
    NOWHERE,
    OF_MEMORIES,
    Event,
    OtherEvent,
    Position,
    ResponseStarted,
    UsageReported,
)
from agent_brain.states.hooks import EmbeddingRequest
from agent_brain.states.model_stream import failed_usage
from agent_brain.states.pipeline import Pipeline
from agent_brain.states.usage import NOTHING, Usage
from agent_brain.usage.budget import Budget

if TYPE_CHECKING:
    from agent_brain.memories.embedders.base import Embedder
    from agent_brain.recorder import StepRecorder
    from agent_brain.states.model_call import ModelCall
    from agent_brain.states.work import WorkContext


_REPORTS = {event.kind: event for event in OF_MEMORIES}


@dataclass(slots=True, eq=False, repr=False)
class MemoryCalls:
    """Makes what a memory needs in a run: with its hooks, limits, usage and trace.

    Before the first step there is no record, and what was used is counted when the run has begun.
    After the last step the hooks and ledgers of the run still apply, for a memory that hands a
    conversation over when it is closed. While a run that was cut short is recorded, none is made.

    Attributes:
        budget: Says whether a call may begin; counts what is used while there is no record.
        cut_short: Why the run is cut short, while it is recorded.
        error: Ends the run after the step: a strict limit could not count a call.
        hooks: The hooks of the run, if there are any.
        listens: Whether somebody reads the events of the run.
        memory: The memory.
        outer: The run in which it began, if there is one, until it ends.
        outgoing: Takes the events, which the run yields.
        over: Whether it has ended.
        record: Counts the calls; None before the first step and after the last.
        start: The position while there is no record.
        unyielded: The model calls that a state has made and not yielded yet.
    """

    watched = False  # what a memory asks is shown to nobody

    memory: Memory
    hooks: Pipeline | None
    budget: Budget
    outgoing: list[Event] = field(default_factory=list)
    start: Position = NOWHERE
    _: KW_ONLY
    listens: bool = False
    record: StepRecorder | None = None
    over: bool = False
    outer: RunWork | None = field(default_factory=run_here)
    cut_short: StopReason | None = None
    error: LimitCheckError | None = None
    unyielded: list[ModelCall] = field(default_factory=list)

    def __deepcopy__(self, memo: dict[int, Any]) -> MemoryCalls:
        return self  # what copies a memory sets its own

    @property
    def at(self) -> Position:
        """The current position."""
        return self.start if self.record is None else self.record.at

    def end(self, memories: Iterable[Memory]) -> None:
        """End the run of ``memories``; what it could not count, its ledgers count."""
        if self.record is None:
            for event in self.outgoing:
                self._charge(event)
        self.record, self.over, self.cut_short = None, True, None
        self.listens, self.outer = False, None
        if self.hooks is None:
            set_run_work(memories, None)
        else:
            self.hooks = Pipeline(self.hooks)  # without the trace

    def check_budget(self) -> None:
        """Check that a call may begin.

        Raises:
            LimitReachedError: A budget, or the limit of tokens or cost, is used up, or the run is
                cut short.
        """
        if self.cut_short is not None:
            refusal: StopReason | None = self.cut_short
        elif self.record is not None:
            refusal = self.budget.refusal()
        else:
            if not self.over:
                self.budget.add_payers(self.hooks or (), self.at, self.memory)
            refusal = StopReason.BUDGET if self.budget.is_used_up else None
        if refusal is not None:
            raise LimitReachedError(refusal.clause)

    def usage(self) -> Usage:
        """Return what the calls used whose events were not yielded yet."""
        reported = [event.usage for event in self.outgoing if isinstance(event, UsageReported)]
        return sum(reported, NOTHING)

    def count_unread(self, event: Event) -> None:
        """Count a call, and keep its event until it can be yielded."""
        if self.over:
            self._charge(event)
            return
        self.outgoing.append(event)
        if self.record is not None:
            try:
                self.record.note(event)
            except LimitCheckError as error:  # which the memory would take for one of the model
                self.error = error

    def _charge(self, event: Event) -> None:
        if isinstance(event, UsageReported):
            self.budget.charge(event.usage, event.purpose)

    def report(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Yield an event of the memory where those of its calls are yielded.

        Raises:
            MemoryUseError: Events of this kind are not for memories.
            TypeError: The fields are others.
        """
        if (made := _REPORTS.get(kind)) is not None:
            event = made(**fields, at=self.at)
        elif kind in KINDS:
            raise MemoryUseError(
                f"report({kind!r}, …): such events are not reported by memories; use a kind of "
                f"your own, or {', '.join(map(repr, _REPORTS))}"
            )
        else:
            event = OtherEvent(kind, dict(fields), at=self.at)
        self.count_unread(event)

    async def model_call(self, call: ModelCall, purpose: str) -> AsyncGenerator[Event, None]:
        """Make a model call; yield its events."""
        call.purpose = purpose
        async with aclosing(call.events(cast("WorkContext", self))) as events:
            async for event in events:
                if isinstance(event, ResponseStarted | UsageReported):
                    self.count_unread(event)
                yield event

    async def embed(self, embedder: Embedder, texts: Sequence[str]) -> Any:
        """Return one vector for each text."""
        self.check_budget()
        request = EmbeddingRequest(
            embedder=embedder,
            texts=tuple(texts),
            at=self.at,
            memory=self.memory,
            response_id=new_id("emb"),
        )
        name, call_id, at = embedder.name, request.response_id, request.at
        self.count_unread(ResponseStarted(call_id, name, EMBEDDING, at=at))
        hooks, paid = self.hooks, list[Usage]()

        async def send(request: EmbeddingRequest) -> tuple[Any, Usage]:
            made = await request.embedder.embed_with_usage(request.texts)
            tokens, model = made.input_tokens, request.embedder.name
            read = sum(map(count_tokens, request.texts)) if tokens is None else tokens
            paid.append(Usage(read, cost=made.cost, model=model, estimated=tokens is None))
            return made.vectors, paid[-1]

        try:
            if hooks is None or not (hooks.embedding or hooks.trace):
                return (await send(request))[0]
            vectors, usage = await hooks.embed(request, send)
            paid.append(usage)
            return vectors
        except Exception as error:  # of the embedder, or of a hook after it
            if not paid:
                paid.append(replace(failed_usage(None, error, said=False), model=name))
            raise
        finally:
            usage = paid[-1] if paid else Usage(model=name)  # of a call that is cancelled
            self.count_unread(UsageReported(usage, call_id, None, EMBEDDING, at=at))
