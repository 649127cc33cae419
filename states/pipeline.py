"""The hooks of a run, called around all that happens in it.

There is one way through them, a :class:`Passage`: the hooks before, what happens, and the same
hooks in the opposite order. The pieces of model calls pass through in ``model_stream.py``.
"""

from __future__ import annotations

import math
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import anyio

from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.common.errors import FinalError
from agent_brain.common.secrets import get_logger
from agent_brain.states.debugging import DebugStates
from agent_brain.states.errors import Refused, StateDefinitionError
from agent_brain.states.hooks import (
    EmbeddingRequest,
    Hook,
    HookRequest,
    ModelRequest,
    ModelResponse,
    StateRequest,
    ToolRequest,
    ToolResponse,
    check_given,
)
from agent_brain.states.usage import Usage
from agent_brain.states.work import close_stream, relay

if TYPE_CHECKING:
    from agent_brain.states.model_trace import CallTrace, Embed

T = TypeVar("T")
ErrorT = TypeVar("ErrorT", bound=Exception)
RequestT = TypeVar("RequestT", bound=HookRequest)

Working: TypeAlias = StateRequest | ModelRequest | ToolRequest

logger = get_logger(__name__)


class Kind(NamedTuple):
    """Something that hooks are called around.

    Attributes:
        before: The method that is called before it.
        after: That with its outcome.
        on_error: That with its error.
        changes: What the first may return in place of the request, if anything.
        answers: What all of them may return in place of the response; nothing if they observe.
    """

    before: str
    after: str
    on_error: str
    changes: tuple[type, ...] = ()
    answers: tuple[type, ...] = ()

    @property
    def methods(self) -> tuple[str, str, str]:
        """The names of the three methods."""
        return self.before, self.after, self.on_error


RUN = Kind("before_run", "after_run", "on_run_error")
STATE = Kind("before_state", "after_state", "on_state_error")
MODEL = Kind(
    *("before_model_call", "after_model_call", "on_model_error"),
    (ModelRequest,),
    (ModelResponse,),
)
ATTEMPT = MODEL._replace(
    before="before_attempt", after="after_attempt", on_error="on_attempt_error"
)
EMBEDDING = Kind("before_embedding", "after_embedding", "on_embedding_error", (EmbeddingRequest,))
TOOL = Kind(
    *("before_tool_call", "after_tool_call", "on_tool_error"), (ToolRequest,), (ToolResponse,)
)


class Passage:
    """One run, step or call on its way through the hooks around it.

    Attributes:
        entered: The hooks whose ``before_…`` has returned: only they are called afterwards, each
            once, the last one first.
        kind: What it is.
        request: What the hooks are given, as they have left it.
    """

    __slots__ = ("_hooks", "answered", "entered", "kind", "request")

    def __init__(self, kind: Kind, hooks: Sequence[Hook], request: Any) -> None:
        self.kind = kind
        self.request = request
        self.entered: list[Hook] = []
        self.answered: tuple[Hook, Sequence[Hook]] | None = None
        self._hooks = hooks

    async def enter(self) -> Any:
        """Call ``before_…`` until a hook answers; return its answer, None if none does."""
        changes, answers = self.kind.changes, self.kind.answers
        for number, hook in enumerate(self._hooks, start=1):
            given = await _call(hook, self.kind.before, (self.request,), *changes, *answers)
            if given is not None and isinstance(given, answers):
                self.answered = hook, self._hooks[number:]
                return given
            if given is not None:
                self.request = _kept(hook, self.kind.before, self.request, given)
            self.entered.append(hook)
        return None

    async def leave(self, response: Any) -> Any:
        """Call ``after_…``; return the response as the hooks leave it."""
        while self.entered:
            response = await self._after(self.entered.pop(), response)
        return response

    async def recover(self, error: Exception) -> Any:
        """Call ``on_…_error`` until a hook answers; return its answer, None if none does."""
        if getattr(error, _RAISED_BY_HOOK, False) or isinstance(error, FinalError):
            return None
        while self.entered:
            answer = await self._on_error(self.entered.pop(), error)
            if answer is not None:
                return answer
        return None

    async def _after(self, hook: Hook, response: Any) -> Any:
        args = (self.request, response)
        return await _call(hook, self.kind.after, args, *self.kind.answers) or response

    async def _on_error(self, hook: Hook, error: BaseException) -> Any:
        return await _call(hook, self.kind.on_error, (self.request, error), *self.kind.answers)


class ToolPassage(Passage):
    """A tool call on its way through the hooks: an error in it is a response, as for the model.

    Attributes:
        response: What :meth:`leave` was given, as the hooks called so far leave it.
    """

    __slots__ = ("response",)

    def __init__(self, hooks: Sequence[Hook], request: ToolRequest) -> None:
        super().__init__(TOOL, hooks, request)
        self.response: ToolResponse | None = None

    async def enter(self) -> ToolResponse | None:
        """As :meth:`Passage.enter`; what a hook refuses is answered with an error."""
        try:
            answer: ToolResponse | None = await super().enter()
        except Refused as refused:
            answer = _refusal(refused)
        return answer

    async def leave(self, response: ToolResponse) -> ToolResponse:
        """As :meth:`Passage.leave`, with ``on_tool_error`` before it for what a tool raised."""
        self.response = response
        while self.entered:
            hook, instead = self.entered.pop(), None
            try:
                if (error := response.exception) is not None:
                    instead = await self._on_error(hook, error)
                response = instead or await self._after(hook, response)
            except Refused as refused:
                response = _refusal(refused)
            self.response = response
        return response


class Observation(Passage):
    """A run or a step: hooks are told that it has begun and, once, how it has ended."""

    __slots__ = ()

    async def begin(self) -> None:
        """Call ``before_…``; what a hook raises is raised."""
        await self.enter()

    async def end(self, outcome: object, *, cut: bool = False) -> None:
        """Call ``after_…``; what a hook raises is logged.

        Args:
            outcome: What they are given.
            cut: Whether the run is being cancelled: each hook gets a limited time then.
        """
        await self._tell(self.kind.after, outcome, cut=cut)

    async def fail(self, error: BaseException, *, cut: bool = True) -> None:
        """Call ``on_…_error``, unless the hooks have been told an end; as :meth:`end`."""
        await self._tell(self.kind.on_error, error, cut=cut)

    async def _tell(self, name: str, outcome: object, *, cut: bool) -> None:
        seconds = CLEANUP_SECONDS if cut else math.inf
        while self.entered:
            hook = self.entered.pop()
            try:
                with anyio.move_on_after(seconds, shield=cut):
                    await _call(hook, name, (self.request, outcome))
            except Exception:
                logger.exception("%s.%s failed", type(hook).__name__, name)
            except BaseException:  # cancelled: the other hooks are told nevertheless
                await self._tell(name, outcome, cut=True)
                raise


class Pipeline:
    """The hooks of a run, in order.

    Attributes:
        model: Those around model calls.
        attempt: Those around attempts.
        embedding: Those around embeddings.
        tool: Those around tool calls.
        approval: Those that may ask a person to approve them.
        run: Those that observe the run.
        state: Those that observe states.
        around_calls: These hooks, if there is anything to do around model calls; else None.
        around_tools: These hooks, if there is anything to do around tool calls; else None.
        around: Those that put a context manager around states, models and tools.
        debug: The first that looks at what states do; None if there is none.
        trace: Is told of every call, inside of the hooks; None if nothing is.
    """

    def __init__(self, hooks: Iterable[Hook], trace: CallTrace | None = None) -> None:
        self._all = tuple(hooks)
        self.trace = trace
        replayed = trace is not None and trace.replays
        if replayed:
            self._all = tuple(hook for hook in self._all if hook.in_replay)
        self.model = self._with(*MODEL.methods, "stream_model_call")
        self.embedding = self._with(*EMBEDDING.methods)
        if replayed:  # nothing but model calls happens
            self._all = self._with(*MODEL.methods, *EMBEDDING.methods)
        self.approval = () if replayed else self._with("before_approval", "needs_approval")
        self.attempt = () if replayed else self._with(*ATTEMPT.methods)
        self.tool = () if replayed else self._with(*TOOL.methods)
        self.run = () if replayed else self._with(*RUN.methods)
        self.state = () if replayed else self._with(*STATE.methods)
        self.around = () if replayed else self._with("around")
        for_all = self.around or trace
        self.around_calls = self if self.model or self.attempt or for_all else None
        self.around_tools = self if self.tool or self.approval or for_all else None
        self.debug = next((hook for hook in self._all if isinstance(hook, DebugStates)), None)

    def _with(self, *methods: str) -> tuple[Hook, ...]:
        def overrides(hook: Hook) -> bool:
            return any(getattr(type(hook), n) is not getattr(Hook, n) for n in methods)

        return tuple(hook for hook in self._all if overrides(hook))

    def __iter__(self) -> Iterator[Hook]:
        return iter(self._all)

    def then(self, hooks: Sequence[Hook]) -> Pipeline:
        """Return these hooks with those of an inner net after them; equal ones count once."""
        more = [hook for hook in hooks if hook not in self._all]
        return Pipeline((*self._all, *more), self.trace) if more else self

    async def embed(self, request: EmbeddingRequest, send: Embed) -> tuple[Any, Usage]:
        """Return the vectors of texts, and what they used, with hooks around it."""
        passage = Passage(EMBEDDING, self.embedding, request)
        try:
            await passage.enter()
            request = passage.request
            made = await (send(request) if self.trace is None else self.trace.embed(request, send))
        except Exception as error:
            await passage.recover(error)
            raise
        await passage.leave(made[1])
        return made

    async def as_asked(self, request: ToolRequest) -> ToolRequest:
        """Return a tool call with the arguments that a person is asked about."""
        for hook in self.approval:
            given = await _call(hook, "before_approval", (request,), ToolRequest)
            if given is not None:
                action = request.action.model_copy(update={"args": given.action.args})
                request = replace(request, action=action)
        return request

    def at_work(self, request: Working) -> AbstractContextManager[object]:
        """Return what the hooks put around work, that of the first hook outermost."""
        if len(self.around) == 1:  # which costs less, for each piece of text
            return self.around[0].around(request) or nullcontext()
        return self._all_around(request) if self.around else nullcontext()

    @contextmanager
    def _all_around(self, request: Working) -> Iterator[None]:
        with ExitStack() as stack:
            for hook in self.around:
                surroundings = hook.around(request)
                if surroundings is not None:
                    stack.enter_context(surroundings)
            yield


def surrounded(
    items: AsyncIterator[T], enter: Callable[[], AbstractContextManager[object]]
) -> AsyncGenerator[T, None]:
    """Yield ``items``, with a context manager around the making of each.

    Nothing is entered while the consumer works: what a context manager sets in context variables
    would be seen there.

    Args:
        items: The items.
        enter: Returns a context manager; called for each item, and for closing.
    """

    async def take(item: Coroutine[Any, Any, T]) -> T:
        # It is closed if nothing is entered; StopAsyncIteration is not an error to a hook.
        with closing(item), enter(), suppress(StopAsyncIteration):
            return await item
        raise StopAsyncIteration

    async def close(stream: object) -> None:
        with enter():
            await close_stream(stream)

    return relay(items, take, close)


def hooks_of(*groups: Sequence[Hook], trace: CallTrace | None = None) -> Pipeline | None:
    """Return the hooks of a Brain, then of its net, and a trace; None if there are none."""
    found = (*chain.from_iterable(groups),)
    return Pipeline(found, trace) if found or trace is not None else None


def _kept(hook: Hook, method: str, request: RequestT, given: RequestT) -> RequestT:
    """Return what a hook has returned, with the fields of ``request`` that it cannot change."""
    match request, given:
        case EmbeddingRequest(texts=texts), EmbeddingRequest(texts=changed):
            if len(changed) == len(texts):
                return replace(request, texts=changed)
            counts = f"{len(changed)} texts for {len(texts)}"
            wrong = f"returned {counts}: change texts, or raise Refused"
        case ToolRequest(action=action), ToolRequest() if given.action.id != action.id:
            # the result belongs to the call of the model
            return replace(given, action=given.action.model_copy(update={"id": action.id}))
        case ModelRequest(), ModelRequest():
            if not request.attempt or given.llm is request.llm:
                same = given.response_id == request.response_id
                return given if same else replace(given, response_id=request.response_id)
            wrong = (
                "changed llm: an attempt is made by the model that was called. Change it in "
                "before_model_call"
            )
        case _:
            return given
    raise _own(StateDefinitionError(f"{type(hook).__name__}.{method} {wrong}"))


def _refusal(refused: Refused) -> ToolResponse:
    return ToolResponse(str(refused), is_error=True, exception=refused)


_RAISED_BY_HOOK = "_raised_by_hook"


def _own(error: ErrorT) -> ErrorT:
    """Return ``error``, marked as raised by a hook: it ends the run and no hook handles it."""
    setattr(error, _RAISED_BY_HOOK, True)
    return error


async def _call(hook: Hook, name: str, args: tuple[Any, ...], *kinds: type) -> Any:
    """Return what a method of a hook returned: None, or an object of one of ``kinds``."""
    method = f"{type(hook).__name__}.{name}"
    try:
        given = getattr(hook, name)(*args)
        given = await given if isinstance(given, Awaitable) else given
        if given is not None:
            check_given(method, given, kinds)
    except Exception as error:
        if all(error is not arg for arg in args):
            error.add_note(f"Raised by {method}")
            if not isinstance(error, Refused):
                _own(error)
        raise
    return given
