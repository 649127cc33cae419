"""Misspelt names and options in other forms either work or are refused immediately."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from agent_brain import (
    Action,
    AgentBrainError,
    Brain,
    BrainDefinitionError,
    BrainUseError,
    Limits,
    LiteLLM,
    Message,
    MessagesMemory,
    Net,
    State,
    create_memory,
    create_net,
    react,
    register_memory,
    register_net,
)
from agent_brain.brainfile import net_from_file
from agent_brain.common.litellm import load_litellm
from agent_brain.errors import (
    MemoryDefinitionError,
    MemoryUseError,
    NetDefinitionError,
    StateDefinitionError,
    ToolDefinitionError,
    UnknownNetError,
)
from agent_brain.memories import layered
from agent_brain.memories import registry as memories
from agent_brain.memories.options import MemoryOptions, StoreOptions
from agent_brain.nets import (
    SubnetState,
    net_names,
    plan_execute,
    registry,
    router,
    self_consistency,
    tree_of_thoughts,
)
from agent_brain.nets.registry import NetOptions
from agent_brain.states import AnswerState, EvaluationState, ReasoningState
from agent_brain.states.models.resolve import as_llm
from agent_brain.testing import FakeMemory, ScriptedLLM, run_net
from agent_brain.testing.net_run import LimitOptions
from tests.brain.nets import Say, single
from tests.support.openai_server import OpenAIServer, Reply


class S(Enum):
    A = "a"
    B = "b"


class T(StrEnum):
    A = "a"
    B = "b"


def going(annotation: Any, target: Any = None) -> State:
    class Going(State):
        async def run(self, memory):
            yield "x"

        async def next_state(self, memory):
            return target

    if annotation is not ...:
        Going.next_state.__annotations__["return"] = annotation
    return Going()


END = going(None)


# Models


@pytest.mark.parametrize("name", net_names())
def test_every_built_in_net_takes_a_model_by_its_name(name: str) -> None:
    assert create_net(name, "openai/gpt-4.1").name == name
    factory = registry._registry.find(name)
    assert factory is not None
    assert factory("openai/gpt-4.1").name == name


def test_a_net_function_makes_one_model_of_a_name() -> None:
    net = react("openai/gpt-4.1")
    models = [state.llm for state in net.states.values() if hasattr(state, "llm")]
    assert [type(model) for model in models] == [LiteLLM, LiteLLM]
    assert models[0] is models[1]
    assert models[0].model == "openai/gpt-4.1"


def test_a_brain_closes_the_models_that_its_net_made_of_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = LiteLLM("openai/mine")
    closed: list[str] = []

    async def note(self: LiteLLM) -> None:
        closed.append(self.model)

    monkeypatch.setattr(LiteLLM, "aclose", note)
    inner = SubnetState(react("openai/inner"), on_done=S.B)
    net = Net({S.A: inner, S.B: AnswerState("openai/outer")}, on_error=lambda memory, error: None)

    async def use() -> None:
        async with Brain(net), Brain(react(own)), Brain("react", llm="openai/named"):
            assert closed == []

    anyio.run(use)
    assert sorted(closed) == ["openai/inner", "openai/named", "openai/outer"]


def test_run_sync_leaves_no_connection_of_a_model_by_name_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with OpenAIServer([Reply("Hello.")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        assert Brain(react("openai/gpt-4.1")).run_sync("Hi").answer == "Hello."
        clients = load_litellm().in_memory_llm_clients_cache.cache_dict
        assert [key for key in clients if re.search(r"-\d+$", key)] == []  # of an event loop


def test_run_sync_leaves_no_connection_of_a_given_model_open() -> None:
    with OpenAIServer([Reply("Hello.")]) as server:
        llm = LiteLLM("openai/x", api_base=server.url, api_key="none")
        assert Brain(react(llm)).run_sync("Hi").answer == "Hello."
        clients = load_litellm().in_memory_llm_clients_cache.cache_dict
        assert [key for key in clients if re.search(r"-\d+$", key)] == []  # of an event loop


def test_a_state_takes_a_model_by_its_name() -> None:
    state = ReasoningState("openai/gpt-4.1", on_action=S.A, on_answer=S.B)
    assert isinstance(state.llm, LiteLLM)
    assert isinstance(AnswerState("openai/y", ask=True).llm, LiteLLM)
    assert isinstance(EvaluationState("openai/y", on_pass=None, on_fail=S.A).evaluate, LiteLLM)


@pytest.mark.anyio
async def test_the_demo_model_goes_by_its_name_everywhere() -> None:
    run = await run_net(react("demo"), "What is 17 times 23?")
    assert run.result is not None
    assert run.result.answer


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gpt5", "'gpt5' has no provider: write PROVIDER/MODEL.* Did you mean 'gpt-5'"),
        ("opnai/gpt-4.1", "there is no provider 'opnai'. Did you mean 'openai'"),
    ],
)
def test_a_model_without_a_provider_is_refused_when_it_is_named(
    name: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for make in (react, plan_execute, as_llm, lambda llm: AnswerState(llm, ask=True)):
        with pytest.raises(StateDefinitionError, match=hint):
            make(name)
    with pytest.raises(BrainDefinitionError, match=f"llm: .*{hint}"):
        Brain(llm=name)
    monkeypatch.setenv("AGENT_BRAIN_MODEL", name)
    with pytest.raises(BrainDefinitionError, match=f"AGENT_BRAIN_MODEL: .*{hint}"):
        Brain()


@pytest.mark.parametrize("wrong", [None, "", "  ", 3, ScriptedLLM])
def test_what_is_not_a_model_is_refused_when_the_net_is_built(wrong: Any) -> None:
    with pytest.raises(StateDefinitionError, match="is not a model"):
        react(wrong)
    with pytest.raises(StateDefinitionError, match="is not a model"):
        as_llm(wrong)


def test_another_model_by_its_name_for_a_part_of_a_net() -> None:
    net = plan_execute("demo", plan_llm="openai/a", evaluate="openai/b")
    planning, _, evaluation, _ = net.states.values()
    assert (planning.llm.model, evaluation.evaluate.model) == ("openai/a", "openai/b")  # type: ignore[attr-defined]
    choice = next(iter(router("demo", choose="openai/c").states.values()))
    assert choice.chooser.model == "openai/c"  # type: ignore[attr-defined]
    *_, vote = self_consistency("demo", vote="openai/d").states.values()
    assert vote.vote.model == "openai/d"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: tree_of_thoughts("demo", propose="sampel"), "Did you mean 'sample'"),
        (lambda: tree_of_thoughts("demo", evaluate="votes"), "Did you mean 'vote'"),
        (lambda: self_consistency("demo", vote="majorty"), "Did you mean 'majority'"),
        (lambda: react("demo", mode="nativ"), "Did you mean 'native'"),  # type: ignore[arg-type]
    ],
)
def test_a_misspelt_choice_is_refused(make: Any, hint: str) -> None:
    with pytest.raises(StateDefinitionError, match=hint):
        make()


def test_a_model_with_a_net_object_is_refused() -> None:
    with pytest.raises(BrainDefinitionError, match=r"Brain\(react\(llm\)\)"):
        Brain(react(ScriptedLLM()), llm="demo")
    with pytest.raises(BrainDefinitionError, match="llm="):
        Brain({S.A: END}, llm=ScriptedLLM())


@pytest.mark.anyio
@pytest.mark.parametrize("turn", ["Hello.", Action(name="add"), lambda messages: "Hello."])
async def test_a_script_of_one_turn_needs_no_list(turn: Any) -> None:
    llm = ScriptedLLM(turn)
    [piece] = [piece async for piece in llm.stream([])]
    assert piece == turn or piece == "Hello."
    llm.assert_complete()


# Names and options


@pytest.mark.parametrize(
    ("make", "error", "hint"),
    [
        (lambda: Brain("reakt"), UnknownNetError, "'react'"),
        (lambda: Brain(memory="vectors"), MemoryDefinitionError, "'vector'"),
        (lambda: create_net("Re-Akt", "demo"), UnknownNetError, "'react'"),
        (lambda: Brain(net_options={"promt": "x"}), UnknownNetError, "'prompt'"),
        (lambda: create_net("react", "demo", promt="x"), UnknownNetError, "'prompt'"),  # type: ignore[call-arg]
        (
            lambda: Brain(memory="windowed", memory_options={"max_mesages": 3}),
            MemoryDefinitionError,
            "'max_messages'",
        ),
        (lambda: create_memory("layered", max_mesages=3), MemoryDefinitionError, "'max_messages'"),  # type: ignore[call-arg]
        (
            lambda: create_memory("todo", inner="windowed", max_mesages=3),  # type: ignore[call-arg]
            MemoryDefinitionError,
            "'max_messages'",
        ),
        (lambda: Net({S.A: END}, allow=["unreachble"]), NetDefinitionError, "'unreachable'"),
        (lambda: Net({S.A: END}, initial="a"), NetDefinitionError, r"S\.A"),  # type: ignore[arg-type]
        (lambda: Net({S.A: END}, fallback=T.A), NetDefinitionError, r"S\.A"),
    ],
)
def test_a_misspelt_name_is_refused_with_a_suggestion(
    make: Any, error: type[Exception], hint: str
) -> None:
    with pytest.raises(error, match=f"Did you mean {hint}"):
        make()


def test_a_name_that_is_close_to_none_is_refused_without_a_guess() -> None:
    with pytest.raises(UnknownNetError, match=r"There is no net named 'xyzzy'; .*thoughts\.$"):
        Brain("xyzzy")


@pytest.mark.parametrize("register", [register_net, register_memory])
def test_what_cannot_be_called_is_not_registered(register: Any) -> None:
    with pytest.raises(AgentBrainError, match="is not callable"):
        register("nothing", 3)


def test_an_error_inside_a_memory_that_mentions_an_argument_is_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memories._registry, "factories", {})

    def broken(tools: Any) -> Any:
        raise TypeError("bad argument type for built-in operation")

    register_memory("broken for a test", broken)
    with pytest.raises(TypeError, match="bad argument type"):
        create_memory("broken for a test")


def test_the_typed_options_are_those_of_the_built_in_nets_and_memories() -> None:
    nets, kept = (
        {p for name in known.built_in for p in options(known.find(name))}
        for known in (registry._registry, memories._registry)
    )
    assert {*NetOptions.__annotations__} == nets
    passed_on = {*StoreOptions.__annotations__, *layered.OWN_OPTIONS}
    assert {*MemoryOptions.__annotations__} == kept | passed_on
    assert {*LimitOptions.__annotations__} == {field.name for field in fields(Limits)}


def options(function: Any) -> list[str]:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]


# One where several may be


def test_one_receiver_tag_or_call_needs_no_collection() -> None:
    call = Action(name="add")
    message = Message.assistant("", call, send_to="Bob", tags="sums", cause_by=AnswerState)
    assert (message.send_to, message.tags) == (("Bob",), frozenset({"sums"}))
    assert message.cause_by == "AnswerState"
    assert message.tool_calls == (call,)
    assert Message(role="user", sent_from=State).sent_from == "State"  # type: ignore[arg-type]
    assert FakeMemory("go", message, next_actions=call).next_actions == [call]


@pytest.mark.anyio
async def test_messages_are_found_by_the_class_that_caused_them() -> None:
    memory = MessagesMemory()
    await memory.update([Message.assistant("yes", cause_by=AnswerState), Message.user("no")])
    assert [m.content for m in await memory.messages(cause_by=AnswerState)] == ["yes"]
    assert [m.content for m in await memory.messages(cause_by=[State, AnswerState])] == ["yes"]


@pytest.mark.parametrize("tools", [lambda: "add", "server.py", {"mcpServers": {}}, 3])
def test_tools_that_are_not_a_list_are_refused(tools: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"write tools=\[…\]"):
        Brain(tools=tools)


@pytest.mark.anyio
async def test_a_server_that_is_not_in_a_list_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match=r"write tools=\[…\]"):
        await Brain.create(tools="https://example.com/mcp")


@pytest.mark.anyio
@pytest.mark.parametrize("task", [["one", "two"], [Message.user("hi")], None, 3])
async def test_a_task_that_is_not_one_is_refused_before_anything_is_recorded(task: Any) -> None:
    brain = Brain(single(Say("x")))
    with pytest.raises(BrainUseError, match="The task is a text or a Message"):
        await brain.run(task)
    with pytest.raises(BrainUseError, match="The task is a text or a Message"):
        brain.stream(task)
    with pytest.raises(BrainUseError):
        [chunk async for chunk in brain.answer(task)]
    with pytest.raises(MemoryUseError, match="A goal is a text or a Message"):
        await MessagesMemory().set_goal(task)
    assert await brain.memory.dump() == []


@pytest.mark.parametrize("options", [{"limits": {"max_steps": 3}}, {"limits": 3}, {"stuck": True}])
def test_limits_and_policies_of_another_kind_are_refused(options: Any) -> None:
    with pytest.raises(BrainDefinitionError, match=r"pass (limits=Limits|stuck=StuckPolicy)\(…\)"):
        Brain(single(Say("x")), **options)


# Edges


@pytest.mark.parametrize("text", ["b", "B", "bb"])
def test_a_text_in_the_annotation_is_refused_and_the_member_named(text: str) -> None:
    with pytest.raises(
        NetDefinitionError, match=rf"'{text}', which is not a state.*Did you mean S\.B"
    ):
        Net({S.A: going(Literal[text], S.B), S.B: END})


def test_a_text_in_transitions_is_refused_and_the_member_named() -> None:
    with pytest.raises(NetDefinitionError, match=r"Did you mean S\.B"):
        Net({S.A: going(..., S.B), S.B: END}, transitions={S.A: "b"})  # type: ignore[dict-item]


@pytest.mark.anyio
async def test_a_text_is_accepted_for_a_member_of_a_text_enum() -> None:
    net = Net({T.A: going(Literal["b"], T.B), T.B: END})
    assert net.edges[T.A] == (T.B,)
    assert type(net.edges[T.A][0]) is T
    assert (await run_net(net, "go")).path == ["A", "B"]


@pytest.mark.anyio
async def test_without_an_annotation_every_state_and_the_end_may_come_next() -> None:
    net = Net({S.A: going(..., S.B), S.B: going(...)})
    assert set(net.edges[S.A]) == {S.A, S.B, None}
    assert (await run_net(net, "go")).path == ["A", "B"]


def test_a_subnet_may_be_a_dict_of_states() -> None:
    assert SubnetState({S.A: END}).net.name == "S"


# Files


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('net = "reakt"', "Did you mean 'react'"),
        ('net = "react"\noptions = {promt = "x"}', "Did you mean 'prompt'"),
        ('net = "react"\nmemry = "todo"', "Did you mean 'memory'"),
        ('net = "react"\nlimits = {max_step = 3}', "Did you mean 'max_steps'"),
        ('[states.ONE]\ntype = "anser"', "Did you mean 'answer'"),
        ('[states.ONE]\ntype = "answer"\nprmpt = "x"', "Did you mean 'prompt'"),
        ('[states.ONE]\ntype = "answer"\non_done = "ONNE"', "Did you mean 'ONE'"),
        ('initial = "ON"\n[states.ONE]\ntype = "answer"', "Did you mean 'ONE'"),
    ],
)
def test_a_misspelt_name_in_a_file_is_refused_with_a_suggestion(
    text: str, hint: str, tmp_path: Path
) -> None:
    path = tmp_path / "net.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(AgentBrainError, match=hint):
        net_from_file(path, "demo")
