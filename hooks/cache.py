"""Answer model calls and tool calls from earlier ones."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from fnmatch import fnmatchcase
from inspect import isfunction
from time import monotonic
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from agent_brain.common.aio import maybe_await
from agent_brain.common.ids import new_id
from agent_brain.common.secrets import get_logger
from agent_brain.common.text import clean_json, to_compact_json
from agent_brain.common.values import check_count, check_function
from agent_brain.errors import BrainDefinitionError
from agent_brain.memories.base import Memory
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.states.hooks import (
    Hook,
    HookRequest,
    ModelRequest,
    ModelResponse,
    RunRequest,
    ToolRequest,
    ToolResponse,
)
from agent_brain.states.models.call_data import hash_of, request_to_data, schema_of, tool_to_data
from agent_brain.states.usage import NOTHING
from agent_brain.tools.action import Action, thawed
from agent_brain.tools.base import BaseTool
from agent_brain.tools.function import FunctionTool

logger = get_logger(__name__)
DAY = timedelta(days=1)


class CacheStore(Protocol):
    """Where a cache keeps what it knows: texts by keys. Both methods may be async."""

    def get(self, key: str) -> str | Awaitable[str | None] | None:
        """Return the text of a key; None if there is none, or its time is over."""
        ...

    def set(self, key: str, text: str, seconds: float) -> object:
        """Keep a text for a number of seconds."""
        ...


class RamStore:
    """Keeps texts in RAM.

    Args:
        max_entries: How many; those that were not used for longest are dropped.
    """

    def __init__(self, max_entries: int = 10_000) -> None:
        check_count(BrainDefinitionError, "max_entries", max_entries)
        self._most = max_entries
        self._texts: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def get(self, key: str) -> str | None:
        """Return the text of a key."""
        text, until = self._texts.get(key, (None, 0.0))
        if text is None or until <= monotonic():
            self._texts.pop(key, None)
            return None
        self._texts.move_to_end(key)
        return text

    def set(self, key: str, text: str, seconds: float) -> None:
        """Keep a text."""
        self._texts[key] = text, monotonic() + seconds
        self._texts.move_to_end(key)
        if len(self._texts) > self._most:
            self._texts.popitem(last=False)


class CallCache(Hook):
    """Answers calls that were made before: of models, and of the tools that it is given.

    ::

        Brain("react", tools=[weather], hooks=[CallCache(tools=["weather"])])

    A model call is the same if model, parameters, messages, tools and type of the output are; the
    IDs and times of messages do not matter. Not kept are errors, and responses that are empty, cut
    off or refused. A response from the cache streams word by word, uses nothing, and its message
    has ``metadata["cached"]``.

    A response is kept as the hooks after this one leave it, for the request as it came here: what
    a hook before this one has hidden is not in it.

    A tool call is the same if the tool and its arguments are. Functions at the top of a module are
    the same in all processes; others count as the objects that they are. Never kept are errors, the
    calls of tools that are not ``idempotent``, take a ``ToolContext`` or ask a person, and calls
    that a hook after this one has changed.

    Args:
        store: Where it keeps what it knows. Default: in RAM.
        lifetime: How long it keeps it.
        models: Patterns of the names of models whose calls it answers.
        tools: Patterns of the names of tools whose calls it answers: those whose result depends on
            nothing but the arguments and on who asks.
        who: Returns whose calls share what is kept, from the ``deps`` of a run or its memory. By
            default the tenant of the memory; ``lambda request: ""`` lets all share.

    Raises:
        BrainDefinitionError: An argument of a wrong kind; when a run begins: the name of a tool
            that takes a ``ToolContext``.
    """

    in_replay = False

    def __init__(
        self,
        store: CacheStore | None = None,
        *,
        lifetime: timedelta = DAY,
        models: Iterable[str] = ("*",),
        tools: Iterable[str] = (),
        who: Callable[[HookRequest], str | None] = lambda request: request.tenant,
    ) -> None:
        if store is not None and not (hasattr(store, "get") and hasattr(store, "set")):
            raise BrainDefinitionError(f"store={store!r}: give an object with get and set")
        if not isinstance(lifetime, timedelta) or lifetime <= timedelta():
            raise BrainDefinitionError(f"lifetime={lifetime!r}: give a timedelta above 0")
        check_function(BrainDefinitionError, "who", who, "request")
        self._models, self._tools = _patterns("models", models), _patterns("tools", tools)
        self._store: CacheStore = RamStore() if store is None else store
        self._seconds = lifetime.total_seconds()
        self._who = who
        self._keys: WeakKeyDictionary[Memory, dict[str, str]] = WeakKeyDictionary()
        self._objects: WeakKeyDictionary[object, str] = WeakKeyDictionary()  # with their IDs

    def before_run(self, request: RunRequest) -> None:
        """Refuse a tool whose calls cannot be kept."""
        known = {} if request.memory is None else request.memory.available_tools
        for name in self._tools:
            if name in known and _takes_context(known[name]):
                raise BrainDefinitionError(
                    f"CallCache(tools={[*self._tools]!r}): the result of {name!r}, which takes a "
                    "ToolContext, may depend on more than its arguments"
                )

    async def before_model_call(self, request: ModelRequest) -> ModelResponse | None:
        """Answer a call that is known."""
        if not _matches(request.model, self._models):
            return None
        known = await self._known(request, request.response_id, _model_call(request))
        if known is None:
            return None
        taken = {action.id for message in request.messages for action in message.tool_calls}
        actions = [Action.model_validate(action) for action in known.pop("actions")]
        for n, action in enumerate(actions):
            if action.id in taken:  # the same call once more
                actions[n] = Action(name=action.name, args=action.args)
        metadata = {**known.pop("metadata"), "cached": True}
        return ModelResponse(**known, actions=tuple(actions), metadata=metadata, usage=NOTHING)

    async def after_model_call(self, request: ModelRequest, response: ModelResponse) -> None:
        """Keep a response that is complete."""
        complete = response.finish_reason in (None, "stop", "tool_calls")
        whole = all(action.unparsed is None for action in response.actions)
        says = response.text.strip() or response.actions or response.metadata.get("images")
        if not (complete and whole and says):
            return
        data = {name: getattr(response, name) for name in ("text", "thoughts")}
        data |= {name: dict(getattr(response, name)) for name in ("provider_data", "metadata")}
        data["actions"] = [action.model_dump(mode="json") for action in response.actions]
        data["finish_reason"] = response.finish_reason or "stop"
        await self._keep(request, request.response_id, data)

    async def before_tool_call(self, request: ToolRequest) -> ToolResponse | None:
        """Answer a call that is known."""
        if (call := self._tool_call(request)) is None:
            return None
        known = await self._known(request, request.action.id, call)
        return None if known is None else ToolResponse(**known)

    async def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> None:
        """Keep a result that is neither an error nor has pictures or files."""
        if not response.is_error and not response.media and (call := self._tool_call(request)):
            data = {"content": response.content}
            await self._keep(request, request.action.id, data, self._key(request, call))

    def _tool_call(self, request: ToolRequest) -> dict[str, Any] | None:
        """Return what a result is kept for; None if it is not to be kept."""
        tool, action, memory = request.tool, request.action, request.memory
        if tool is None or memory is None or not _matches(action.name, self._tools):
            return None
        control = memory.control
        asked = control.human_requests is not None and action.id in control.human_requests.again
        if not tool.idempotent or _takes_context(tool) or asked or control.dry_run:
            return None
        origin = self._origin(tool)
        call = {"tool": tool_to_data(tool), "args": thawed(action.args), "origin": origin}
        return None if origin is None else call

    def _origin(self, tool: BaseTool) -> str | None:
        """Return what distinguishes a tool from others of the same name; None if nothing does."""
        made_of = tool.function if isinstance(tool, FunctionTool) else tool
        kind = made_of if hasattr(made_of, "__qualname__") else type(made_of)
        name = f"{kind.__module__}.{kind.__qualname__}"
        if isfunction(made_of) and made_of.__closure__ is None and "<" not in name:
            return name
        try:
            known = self._objects.setdefault(getattr(made_of, "__self__", made_of), new_id("tool"))
        except TypeError:  # it has no hash
            return None
        return f"{name} {known}"

    async def _known(
        self, request: HookRequest, call_id: str, call: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Return what is kept of a call; note its key, as other hooks may still change it."""
        if request.memory is None:
            return None
        key = self._key(request, call)
        try:
            text = await maybe_await(self._store.get(key))
            if text is not None:
                return dict(json.loads(text))
        except Exception as error:
            logger.warning("A cache of calls could not be read: %r", error)
        self._keys.setdefault(request.memory, {})[call_id] = key
        return None

    def _key(self, request: HookRequest, call: dict[str, Any]) -> str:
        return hash_of({**call, "who": self._who(request)})

    async def _keep(
        self, request: HookRequest, call_id: str, data: dict[str, Any], made: str | None = None
    ) -> None:
        """Keep the outcome of a call, unless another one was ``made`` than was looked for."""
        keys = {} if request.memory is None else self._keys.get(request.memory, {})
        if (key := keys.pop(call_id, None)) is None or made not in (None, key):
            return
        try:
            text = to_compact_json(clean_json(data))
            await maybe_await(self._store.set(key, text, self._seconds))
        except Exception as error:
            logger.warning("A cache of calls could not be written: %r", error)


def _patterns(option: str, given: Iterable[str]) -> tuple[str, ...]:
    several: object = given
    if isinstance(several, Iterable) and not isinstance(several, str):
        patterns = tuple(several)
        if all(isinstance(pattern, str) for pattern in patterns):
            return patterns
        given = list(patterns)
    raise BrainDefinitionError(f"{option}={given!r}: give a list of patterns")


def _takes_context(tool: BaseTool) -> bool:
    return isinstance(tool, FunctionTool) and tool.takes_context


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _model_call(request: ModelRequest) -> dict[str, Any]:
    call = RecordedCall(
        model=request.model,
        messages=tuple(request.messages),
        tools=tuple(map(tool_to_data, request.tools)),
        output_schema=schema_of(request.output_type),
    )
    params = getattr(request.llm, "params", {})
    params = json.dumps(params, default=repr, sort_keys=True)  # clients and the like
    return {**request_to_data(call), "params": params}
