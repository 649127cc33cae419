"""The Brain runs a net over a memory."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, overload

import anyio
from anyio.abc import AsyncResource
from typing_extensions import Unpack

from agent_brain.answer_stream import AnswerStream
from agent_brain.brain_tool import BrainTool
from agent_brain.common.aio import in_event_loop
from agent_brain.default_model import models_of, resolve_llm
from agent_brain.errors import BrainDefinitionError, BrainUseError
from agent_brain.human_input import Decisions
from agent_brain.limits import Limits
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, as_message
from agent_brain.memories.registry import create_memory
from agent_brain.nets.errors import UnknownNetError
from agent_brain.nets.net import Net, as_net
from agent_brain.nets.registry import create_net
from agent_brain.options import (
    BrainOptions,
    OneRun,
    ResumeOptions,
    RunOptions,
    ToolOptions,
    check_options,
)
from agent_brain.result import OutputT_co, Result, as_result
from agent_brain.run import Run, RunPlan, text_only
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.function import StateFunction
from agent_brain.states.hooks import Hook, as_hooks
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import made_of_names
from agent_brain.states.output_types import OutputType
from agent_brain.stuck import StuckPolicy
from agent_brain.tool_sources import SourceContext, split, withdraw
from agent_brain.tools.toolset import ToolLike, ToolSource, collect

if TYPE_CHECKING:
    from agent_brain.memories.journal.base import Journal
    from agent_brain.memories.user.user_memory import UserMemory
    from agent_brain.recording.replay import Replay
    from agent_brain.states.model_trace import CallTrace
    from agent_brain.tools.mcp import McpSource

NetLike = str | Net | Mapping[Any, State | StateFunction]
T = TypeVar("T")


class Brain(AsyncResource, Generic[OutputT_co]):
    """An agent: runs a net over a memory.

    ::

        brain = Brain("react", tools=[shipping_cost], llm="openai/gpt-4.1")
        result = brain.run_sync("What does a parcel of 3 kg cost?")
        print(result.answer)

    ``answer``, ``stream``, ``run`` and ``run_sync`` use the same loop and end in the same ways. A
    brain has one run at a time; each run is a turn of the session in its memory. For type checkers
    it is generic in ``Result.output``: ``output_type=City`` makes it a ``Brain[City | None]``.

    Attributes:
        net: The net.
        memory: The memory.
        limits: The limits of each run.
        user: What is known about the user, if anything is.

    Args:
        net: The name of a registered net, a net, or a dict of states by the members of an Enum.
        memory: The name of a registered memory, or a memory.
        tools: Tools that the agent may call, or functions with type hints.
        llm: For a net by name: an :class:`LLM`, a LiteLLM model name, or None for the model that
            ``AGENT_BRAIN_MODEL`` names, else the offline demo model.
        output_type: For a net by name: the type of the answer, a pydantic model or any other type
            that pydantic validates (``int``, ``list[str]``, a dataclass, …).
        limits: Limits on steps, tokens, cost, tool calls and time.
        stuck: What to do about a run that repeats itself; None to do nothing.
        dry_run: Validate tool calls but do not execute them; their results say so.
        on_uncertain: What happens when a run is resumed after a crash to calls that had begun, may
            have taken effect and are not idempotent: ``"tell"`` tells the model so, ``"pause"``
            waits for a person, who approves to run them again or denies it.
        hooks: Hooks around every model call, each of its attempts, and every tool call, in the nets
            inside as well (:class:`agent_brain.states.Hook`).
        trace: Record in the memory what models are sent and what they return, in the nets inside as
            well: ``await memory.model_calls()`` returns it. It needs a built-in memory.
        net_options: For a net by name: further options of its function.
        memory_options: For a memory by name: options of its class.
        user: What is known about the user: shown to models, changed with its tools, and learned
            from the conversation when the brain is closed.

    Raises:
        BrainDefinitionError: Arguments that do not go together.
        NetDefinitionError: The net is wrong.
        UnknownNetError: No net of that name.
        MemoryDefinitionError: No memory of that name.
        ToolDefinitionError: Two tools have one name, or a function cannot be a tool.
    """

    @overload
    def __init__(
        self: Brain[T | None],
        net: NetLike = "react",
        memory: str | Memory = "messages",
        tools: Iterable[ToolLike] = (),
        *,
        output_type: type[T],
        **options: Unpack[BrainOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: Brain[Any],
        net: NetLike = "react",
        memory: str | Memory = "messages",
        tools: Iterable[ToolLike] = (),
        *,
        output_type: object = None,
        **options: Unpack[BrainOptions],
    ) -> None: ...

    def __init__(
        self,
        net: NetLike = "react",
        memory: str | Memory = "messages",
        tools: Iterable[ToolLike] = (),
        *,
        llm: LLM | str | None = None,
        output_type: Any = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        stuck: StuckPolicy | None = StuckPolicy(),  # noqa: B008 - frozen
        dry_run: bool = False,
        on_uncertain: Literal["tell", "pause"] = "tell",
        hooks: Iterable[Hook] = (),
        trace: bool = False,
        net_options: Mapping[str, Any] | None = None,
        memory_options: Mapping[str, Any] | None = None,
        user: UserMemory | None = None,
    ) -> None:
        self._owned: list[LLM | Memory] = []
        self._models: dict[str, LLM] = {}  # of single runs, by name
        self._made: tuple[str, dict[str, Any]] | None = None  # how the memory was made
        self._named: tuple[str, LLM, dict[str, Any]] | None = None  # how the net was made
        self._sources: tuple[ToolSource, ...] = ()
        self._last_result: list[Result[Any] | None] = [None]  # shared with the runs
        self.memory = self._find_memory(memory, tools, memory_options)
        self.user = user
        if user is not None:
            self.memory = self._with_user(self.memory, close=isinstance(memory, str))
            self._owned = [self.memory]
        self.net = self._find_net(net, llm, output_type, net_options)
        for model in models_of(self.net):
            if model in made_of_names and model not in self._owned:  # nobody else can close it
                self._owned.append(model)
            model.check_tools((*self.memory.available_tools.values(), *self.net.tools))
        self.limits = _checked("limits", limits, Limits)
        self.stuck = None if stuck is None else _checked("stuck", stuck, StuckPolicy)
        self.dry_run = _checked("dry_run", dry_run, bool)
        if on_uncertain not in ("tell", "pause"):
            raise BrainDefinitionError(f"on_uncertain={on_uncertain!r}: 'tell' or 'pause'")
        self.on_uncertain = on_uncertain
        self.hooks = as_hooks(hooks)
        self.trace = _checked("trace", trace, bool)
        self._check_trace()

    @overload
    @classmethod
    async def create(
        cls,
        net: NetLike = "react",
        memory: str | Memory = "messages",
        tools: Iterable[ToolLike | McpSource] = (),
        *,
        output_type: type[T],
        **options: Unpack[BrainOptions],
    ) -> Brain[T | None]: ...

    @overload
    @classmethod
    async def create(
        cls,
        net: NetLike = "react",
        memory: str | Memory = "messages",
        tools: Iterable[ToolLike | McpSource] = (),
        *,
        output_type: object = None,
        **options: Unpack[BrainOptions],
    ) -> Self: ...

    @classmethod
    async def create(
        cls,
        net: NetLike = "react",
        memory: str | Memory = "messages",
        tools: Iterable[ToolLike | McpSource] = (),
        *,
        output_type: Any = None,
        **options: Unpack[BrainOptions],
    ) -> Brain[Any]:
        """Make a brain as the constructor does, and open it.

        The tools may also be those of MCP servers (extra ``mcp``). The servers are connected once
        and closed with the brain: use ``async with``, or ``aclose()``. Changes to their tools take
        effect between steps. A tool whose name is taken is offered as ``server_tool``.

        Args:
            net: As for the constructor.
            memory: As for the constructor.
            tools: Besides tools and functions: the URL of an MCP server (streamable HTTP), the path
                of a server script (``.py`` or ``.js``), a ``{"mcpServers": {…}}`` dict, or the path
                of a JSON file that holds one.
            output_type: As for the constructor.
            **options: As for the constructor.

        Raises:
            McpConfigError: Servers cannot be used as described: everything that is wrong at once.
            McpServerError: Servers could not be started or reached.
        """
        here, elsewhere = split(tools)
        brain = cls(net, memory, here, output_type=output_type, **options)
        try:
            await brain.open()
            if elsewhere:
                await brain.connect(*elsewhere)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await brain.aclose()
            raise
        return brain

    @property
    def last_result(self) -> Result[OutputT_co] | None:
        """The result of the last run, however it was started.

        None before the first run, while a run is active, and after a run that failed. Of a run that
        was left early its ``stop_reason`` is ``"cancelled"``.
        """
        return self._last_result[0]

    async def stored_result(self) -> Result[OutputT_co] | None:
        """Return the result of the last run of the memory's session, also of an earlier process.

        It is what that run returned; one that failed or waits has a result too. None if there is
        none: no run was begun, or the last one is in progress or was interrupted.
        """
        stored = await self.memory.last_result()
        return None if stored is None else as_result(stored, self.net)

    async def connect(self, *servers: McpSource | ToolSource) -> None:
        """Add the tools of MCP servers, until the brain is closed.

        Args:
            *servers: What names them, as for :meth:`create`; or sources of tools, which are closed
                with the brain.

        Raises:
            McpConfigError: Servers cannot be used as described: everything that is wrong at once.
            McpServerError: Servers could not be started or reached; none of these is used.
        """
        from agent_brain.tools.mcp import McpTools

        sources = [server for server in servers if isinstance(server, ToolSource)]
        named = [server for server in servers if not isinstance(server, ToolSource)]
        for source in sources:
            await source.refresh(self.memory.available_tools)
        if named:
            sources.append(await McpTools.open(named, taken=self.memory.available_tools))
        for source in sources:
            self._sources += (source,)
            self.memory.add_tools(source.tools)
            if source.gives_context:
                self.hooks = (SourceContext(source), *self.hooks)

    async def open(self) -> None:
        """Open the memory and the models of the net, so that the first run need not.

        ``async with`` and :meth:`create` do it. A server calls it at its start: the first use of
        LiteLLM takes seconds. Calling it again does nothing.
        """
        await self.memory.open()
        for model in models_of(self.net):
            await model.open()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def aclose(self) -> None:
        """Close what the brain itself made.

        These are its models and its memory, if they were given by name, and its connections to
        servers, whose tools are removed from the memory.
        """
        sources, self._sources = self._sources, ()
        async with AsyncExitStack() as stack:  # one that fails does not keep the others open
            for owned in (*self._models.values(), *reversed(self._owned)):
                stack.push_async_callback(owned.aclose)
            self._models.clear()
            for source in sources:
                withdraw(self.memory, source)
                stack.push_async_callback(source.aclose)

    def answer(
        self, task: str | Message, *, deps: object = None, **options: Unpack[RunOptions]
    ) -> AnswerStream:
        """Run ``task`` and stream the text as it arrives, without the model's thoughts.

        The text is ``Result.answer``, preceded by text that the model added to its tool calls,
        each followed by a blank line. :attr:`last_result` then says how the run ended: the
        loop also ends when the run waits for a person or reaches a limit. Leaving the loop early
        ends the run. Raises what :meth:`run` raises.

        Raises:
            BrainUseError: The task is empty.
        """
        run: Run[Any] = Run(self._plan(options, deps), _as_goal(task), reads=text_only)
        return AnswerStream(run)

    def stream(
        self, task: str | Message, *, deps: object = None, **options: Unpack[RunOptions]
    ) -> Run[OutputT_co]:
        """Return a run to iterate over.

        ::

            async with brain.stream(task) as run:
                async for event in run:
                    ...
            print(run.result.answer)

        The run continues only while events are read. Leaving the block early ends it at once, and
        the memory keeps what was finished. A run that fails yields :class:`RunFailed`, then raises.

        Raises:
            BrainUseError: The task is empty.
        """
        return Run(self._plan(options, deps), _as_goal(task))

    async def run(
        self, task: str | Message, *, deps: object = None, **options: Unpack[RunOptions]
    ) -> Result[OutputT_co]:
        """Run ``task`` to the end and return the result.

        Args:
            task: What is to be done.
            deps: What the states (``memory.deps``), tools (``ToolContext.deps``) and hooks
                (``request.deps``) of this run need, such as who asks or a database. It is never
                stored, so :meth:`resume` takes it again.
            **options: ``llm=``, ``tools=``, ``limits=``, ``prompt=`` and ``output_type=`` for
                this run (:class:`RunOptions`).

        Raises:
            BrainUseError: The task is empty, or an option makes no sense.
            LLMError: A model call failed, after its retries.
            TransitionError: A state proposed a state that no edge leads to.
            MemoryBusyError: Another run over the same memory is in progress.
        """
        run: Run[OutputT_co] = Run(self._plan(options, deps), _as_goal(task), reads=False)
        async for _ in run:  # not run.to_end(), whose frame would be kept beside this one
            pass
        return run.result

    def run_sync(
        self, task: str | Message, *, deps: object = None, **options: Unpack[RunOptions]
    ) -> Result[OutputT_co]:
        """Like :meth:`run`, for programs without an event loop.

        Raises:
            BrainUseError: An event loop is running here.
        """
        return _run_and_release("run", lambda: self.run(task, deps=deps, **options))

    def stream_resume(self, **options: Unpack[ResumeOptions]) -> Run[OutputT_co]:
        """Like :meth:`resume`, to iterate over as over :meth:`stream`."""
        return self._resume(options, reads=True)

    async def resume(self, **options: Unpack[ResumeOptions]) -> Result[OutputT_co]:
        """Continue the run in the memory: after a crash, an error, a limit or a wait.

        An interrupted step is repeated from its beginning. A run that waits for a person
        (``stop_reason`` ``"approval"`` or ``"input"``) needs the decisions or the answer; given a
        part, it waits for the rest. Decisions are kept in the memory.

        Args:
            approve: IDs of calls that may run; True for all that wait.
            deny: IDs of calls that may not run, with reasons for the model.
            edit: Changed arguments by the IDs of the calls, which approves them.
            input: The answer to the question, or answers by the IDs of the questions. An answer is
                a text, or what its type asks for (:class:`agent_brain.states.Ask`): JSON data, or
                an object of that type.
            deps: As for :meth:`run`.
            **options: As for :meth:`run`.

        Raises:
            ResumeError: The memory has no run, or its state is not in the net; or the decisions do
                not match what the run waits for, and it continues to wait.
        """
        return await self._resume(options, reads=False).to_end()

    def _resume(self, options: ResumeOptions, *, reads: bool) -> Run[OutputT_co]:
        given: dict[str, Any] = {**options}
        names = ("approve", "deny", "edit", "input")
        decisions = Decisions(**{name: given.pop(name, None) for name in names})
        deps = given.pop("deps", None)
        return Run(self._plan(given, deps), None, decisions, reads=reads)

    def resume_sync(self, **options: Unpack[ResumeOptions]) -> Result[OutputT_co]:
        """Like :meth:`resume`, for programs without an event loop.

        Raises:
            BrainUseError: An event loop is running here.
        """
        return _run_and_release("resume", lambda: self.resume(**options))

    async def replay(
        self, run_id: str | None = None, *, deps: object = None, **options: Unpack[RunOptions]
    ) -> Replay:
        """Run a recorded run of the memory again, with this net; return where it differs.

        No model is asked and no tool runs: model calls return what they returned, and tools too.
        It begins with a copy in RAM of the memory as it was, and changes nothing in it. Compared
        are the states, each request to a model, the calls, the end and the messages. Functions and
        states of the net run: what they do elsewhere is done again. Of the hooks only those around
        model calls are called.

        Record runs with ``trace=True``. A run that was not is replayed from its messages, if each
        model call made one; its requests are then not compared.

        Args:
            run_id: The run. Default: the last one.
            deps: As for :meth:`run`.
            **options: Those that the run was given, as for :meth:`run`.

        Raises:
            BrainUseError: An option makes no sense.
            ReplayError: There is no such run, or what the replay needs is not recorded.
        """
        from agent_brain.recording.replay import replay_run

        return await replay_run(self._plan(options, deps), run_id)

    def as_tool(self, name: str, description: str, **options: Unpack[ToolOptions]) -> BrainTool:
        """Return this brain as a tool: each call runs it on a fork of its memory.

        Args:
            name: The name of the tool.
            description: What it does and when to use it, for the model.
            **options: ``requires_approval``, ``idempotent``, ``max_result_tokens``, as for tools.

        Raises:
            ToolDefinitionError: A name that no model API would take.
        """
        return BrainTool(self, name, description, **options)

    def over(self, memory: Memory) -> Self:
        """Return a copy of this brain over another memory; closing the copy closes nothing."""
        if not isinstance(memory, Memory):
            raise BrainDefinitionError(f"memory={memory!r} is not a Memory")
        other = copy.copy(self)
        other.memory = memory if self.user is None else self._with_user(memory, close=False)
        other._check_trace()
        other._last_result = [None]
        other._owned = []
        other._sources = ()
        return other

    def _with_user(self, memory: Memory, *, close: bool) -> Memory:
        """Return a memory that shows what is known about the user, if it does not do so yet."""
        from agent_brain.memories.user.knowing import UserAwareMemory
        from agent_brain.memories.user.user_memory import UserMemory

        if not isinstance(self.user, UserMemory):
            raise BrainDefinitionError(
                f"user={self.user!r} is not what is known about a user: UserMemory(tenant=…)"
            )
        aware = isinstance(memory, UserAwareMemory)
        return memory if aware else self.user.over(memory, close=close)

    @property
    def can_make_memories(self) -> bool:
        """Whether :meth:`memory_for` can be used: the memory was given by name."""
        return self._made is not None

    def memory_for(self, session: str, *, journal: Journal, tenant: str | None = None) -> Memory:
        """Return a new memory for a session, made as this brain's own, with the same tools.

        Args:
            session: Which session.
            journal: Where it is stored.
            tenant: Whose.

        Raises:
            BrainDefinitionError: The memory of this brain was not given by name, or names a
                journal itself.
            MemoryDefinitionError: The memory cannot be stored in a journal.
        """
        if self._made is None:
            raise BrainDefinitionError(
                "The memory of this brain was given as an object: give its name and memory_options="
            )
        name, options = self._made
        if own := sorted({"journal", "session", "tenant"} & options.keys()):
            raise BrainDefinitionError(f"memory_options={own}: leave these to memory_for()")
        place: Any = {"journal": journal, "session": session, "tenant": tenant}
        memory = create_memory(name, **options, **place)
        tools = self.memory.available_tools.values()
        memory.add_tools(tool for tool in tools if tool.name not in memory.available_tools)
        return memory

    def _plan(self, options: Mapping[str, Any], deps: object) -> RunPlan:
        trace: Callable[[Memory], CallTrace] | None = None
        if self.trace:
            from agent_brain.states.model_trace import ModelTrace as trace  # noqa: N813

        plan = RunPlan(
            self.net,
            self.memory,
            self.limits,
            self.stuck,
            self._last_result,
            self._sources,
            self.dry_run,
            self.hooks,
            self.on_uncertain == "pause",
            trace,
            self.net.tools,
            deps,
        )
        return plan if not options else self._for_one_run(plan, options)

    def _for_one_run(self, plan: RunPlan, options: Mapping[str, Any]) -> RunPlan:
        check_options(options)
        model, prompt = options.get("llm"), options.get("prompt")
        if isinstance(model, str):  # which this brain closes
            if model not in self._models:
                self._models[model] = resolve_llm(model)
            model = self._models[model]
        net = plan.net
        if (output_type := options.get("output_type")) is not None:
            net = self._net_with(output_type)
        changes: dict[str, Any] = {
            "net": net,
            "tools": (*net.tools, *collect(options.get("tools", ())).values()),
        }
        if model is not None or prompt:
            llm = None if model is None else resolve_llm(model)
            changes["hooks"] = (OneRun(llm, prompt), *plan.hooks)
        if (limits := options.get("limits")) is not None:
            changes["limits"] = limits
        return dataclasses.replace(plan, **changes)

    def _net_with(self, output_type: OutputType) -> Net:
        """Return the net with another output type.

        Raises:
            BrainUseError: There is none.
        """
        if self._named is None:
            raise BrainUseError(
                "output_type= of a run goes with a net that was given by name: the states of a "
                "net that was given as an object have output types of their own"
            )
        name, model, options = self._named
        try:
            return create_net(name, model, **{**options, "output_type": output_type})
        except (UnknownNetError, StateDefinitionError) as error:
            raise BrainUseError(
                f"The net {name!r} cannot answer with this type: {error}"
            ) from error

    def _check_trace(self) -> None:
        if not self.trace:
            return
        from agent_brain.memories.wrapper import offers

        if not offers(self.memory, "record_call"):
            raise BrainDefinitionError(
                f"trace=True records model calls in the memory, and {type(self.memory).__name__} "
                "cannot keep them: use a built-in memory, or write record_call() and "
                "recorded_calls()"
            )

    def _find_memory(
        self, memory: str | Memory, tools: Iterable[ToolLike], options: Mapping[str, Any] | None
    ) -> Memory:
        if isinstance(memory, str):
            wanted: dict[str, Any] = dict(options or {})
            self._made = memory, wanted
            created = create_memory(memory, tools, **wanted)
            self._owned.append(created)
            return created
        if not isinstance(memory, Memory):
            raise BrainDefinitionError(f"memory={memory!r} is neither a Memory nor a memory's name")
        if options:
            raise BrainDefinitionError(
                "memory_options= go with a memory by name, not with an object"
            )
        memory.add_tools(tools)
        return memory

    def _find_net(
        self,
        net: NetLike,
        llm: LLM | str | None,
        output_type: OutputType | None,
        options: Mapping[str, Any] | None,
    ) -> Net:
        if isinstance(net, str):
            model = resolve_llm(llm)
            if model is not llm:
                self._owned.append(model)
            wanted = dict(options or {})
            if output_type is not None:
                wanted["output_type"] = output_type
            self._named = net, model, wanted
            return create_net(net, model, **wanted)
        if llm is not None:
            raise BrainDefinitionError(
                "llm= goes with a net by name: give the model to the net's own function or states "
                "instead, as in Brain(react(llm))"
            )
        if output_type is not None or options:
            raise BrainDefinitionError(
                "output_type= and net_options= go with a net by name: give them to the net's own "
                "function instead, as in react(llm, output_type=…)"
            )
        if not isinstance(net, Net | Mapping):
            raise BrainDefinitionError(
                f"net={net!r} is neither a Net, nor a dict of states, nor a net's name"
            )
        return as_net(net)


def _run_and_release(name: str, run: Callable[[], Awaitable[T]]) -> T:
    """Run a method in an event loop of its own."""
    if in_event_loop():
        raise BrainUseError(
            f"{name}_sync() cannot be used inside a running event loop: use 'await brain.{name}(…)'"
        )
    from agent_brain.common.litellm import run_and_release

    return run_and_release(run)


def _checked(name: str, value: T, kind: type[T]) -> T:
    if isinstance(value, kind):
        return value
    hint = "True or False" if kind is bool else f"pass {name}={kind.__name__}(…)"
    raise BrainDefinitionError(f"{name}={value!r}: {hint}")


def _as_goal(task: str | Message) -> Message:
    given: object = task
    if not isinstance(given, str | Message | Mapping):
        raise BrainUseError(
            f"The task is a text or a Message, not {type(given).__name__}: give the last message "
            "as the task, and record what was said before it with 'await memory.update([…])'"
        )
    goal = Message.user(task) if isinstance(task, str) else as_message(task)
    if not goal.content.strip() and not goal.attachments:
        raise BrainUseError("The task is empty: say what is to be done")
    return goal
