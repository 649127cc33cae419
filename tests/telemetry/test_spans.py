"""The spans of runs: which there are, in which order, and whose parent is which."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from functools import partial
from typing import Any

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN, StatusCode, get_current_span
from pydantic import JsonValue

from agent_brain import (
    Brain,
    LayeredMemory,
    MessagesMemory,
    Net,
    State,
    VectorMemory,
    WindowedMemory,
    react,
    tool,
)
from agent_brain.errors import BrainDefinitionError, Refused, ToolError
from agent_brain.memories import Message
from agent_brain.memories.embedders import EmbeddingResult
from agent_brain.nets import ParallelState, SubnetState
from agent_brain.states import LLM, Hook, ToolRequest, Usage
from agent_brain.telemetry import OpenTelemetry, open_spans
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.telemetry.recording import Recording

pytestmark = pytest.mark.anyio

CHAT = "chat scripted"
ANSWERS = [("state REASONING", [CHAT]), "state ANSWER"]


class Step(Enum):
    BOTH = "both"
    INNER = "inner"


@pytest.fixture
def recording() -> Any:
    yield Recording()
    assert not open_spans._steps  # nothing is kept


@tool
async def look(at: str) -> str:
    """Look."""
    return f"I see {at}"


@tool
async def fail() -> str:
    """Fail."""
    raise ToolError("the secret plan")


def calls(*names: str, **args: JsonValue) -> list[Action]:
    return [Action(name=name, args=args, id=f"call_{name}") for name in names]


async def test_a_run_has_spans_for_states_models_and_tools(recording: Recording) -> None:
    llm = ScriptedLLM([calls("look", at="the sea"), "Blue."])
    await Brain("react", tools=[look], llm=llm, hooks=[recording.hook()]).run("Look")
    assert recording.tree() == [
        (
            "invoke_agent react",
            [
                ("state REASONING", [CHAT]),
                ("state ACTION", ["execute_tool look"]),
                *ANSWERS,
            ],
        )
    ]


async def test_calls_of_a_memory_are_inside_of_the_state_that_needs_them(
    recording: Recording,
) -> None:
    def embed(texts: list[str]) -> EmbeddingResult:
        return EmbeddingResult([[1.0, 2.0] for _ in texts], input_tokens=7, cost=0.1)

    llm = ScriptedLLM(["Nine.", "Yes."])
    memory = LayeredMemory(SummarisingWindow(llm), VectorMemory(embedder=embed, recent=1))
    await memory.long.update([Message.user(f"Earlier {n}") for n in range(9)])
    await Brain("react", memory, llm=llm, hooks=[recording.hook()]).run("Go on")
    embeddings = [span.name for span in recording.spans if span.name.startswith("embeddings ")]
    assert embeddings
    assert recording.tree() == [
        ("invoke_agent react", [("state REASONING", [CHAT, *embeddings, CHAT]), "state ANSWER"])
    ]
    attributes = recording.attributes(embeddings[0])
    assert attributes["gen_ai.operation.name"] == "embeddings"
    assert attributes["gen_ai.usage.input_tokens"] == 7
    assert attributes["agent_brain.usage.cost"] == 0.1
    assert recording.attributes(CHAT)["agent_brain.purpose"] == "digest"


class SummarisingWindow(WindowedMemory):
    """Has a model write a digest whenever it is read."""

    def __init__(self, llm: LLM) -> None:
        super().__init__()
        self.llm = llm

    async def context(self) -> list[Message]:
        with self.work_for("digest"):
            async for _ in self.llm.call([Message.user("Sum it up")]).events():
                pass
        return await super().context()


async def test_embeddings_that_fail_have_the_error(recording: Recording) -> None:
    async def embed(texts: list[str]) -> list[Any]:
        raise OSError("no route")

    memory = VectorMemory(embedder=embed, recent=1)
    await Brain("react", memory, llm=ScriptedLLM(["Yes."]), hooks=[recording.hook()]).run("Go on")
    (name,) = {span.name for span in recording.spans if span.name.startswith("embeddings")}
    failed = recording.named(name)[0]
    assert failed.status.status_code is StatusCode.ERROR
    assert recording.attributes(name)["error.type"] == "OSError"


async def test_a_subnet_and_branches_are_inside_of_their_state(recording: Recording) -> None:
    branches = {"x": react(ScriptedLLM(["X"])), "y": react(ScriptedLLM(["Y"]))}
    net = {
        Step.BOTH: ParallelState(branches, on_done=Step.INNER),
        Step.INNER: SubnetState(react(ScriptedLLM(["Z"]))),
    }
    await Brain(net, hooks=[recording.hook()]).run("Go")
    (title, (both, inner)) = recording.tree()[0]
    assert title == "invoke_agent Step"
    assert both[0] == "state BOTH"
    assert sorted(map(str, both[1])) == sorted(map(str, ANSWERS * 2))
    assert inner == ("state INNER", ANSWERS)
    paths = {
        span.attributes["agent_brain.path"] for span in recording.named(CHAT) if span.attributes
    }
    assert paths == {("BOTH", "x"), ("BOTH", "y"), ("INNER",)}


@pytest.mark.parametrize("shared", [True, False])
async def test_a_brain_used_as_a_tool_is_inside_of_its_call(
    recording: Recording, shared: bool
) -> None:
    hook = recording.hook()
    expert = Brain(
        react(ScriptedLLM(["One.", "Two."])), hooks=[hook if shared else recording.hook()]
    )
    asked = [Action(name="ask", args={"task": text}) for text in ("1", "2")]
    llm = ScriptedLLM([asked, "Known."])
    brain = Brain("react", tools=[expert.as_tool("ask", "Ask.")], llm=llm, hooks=[hook])
    await brain.run("Go")
    action = recording.tree()[0][1][1]
    assert action == ("state ACTION", [("execute_tool ask", ANSWERS)] * 2)


async def test_spans_of_a_tool_are_inside_of_its_call(recording: Recording) -> None:
    tracer = trace.get_tracer("mine", tracer_provider=recording.tracer_provider)

    @tool
    def query(n: int) -> str:
        """Ask the database, in a thread."""
        with tracer.start_as_current_span(f"query {n}"):
            return str(n)

    asked = [Action(name="query", args={"n": n}) for n in (1, 2)]
    brain = Brain("react", tools=[query], llm=ScriptedLLM([asked, "x"]), hooks=[recording.hook()])
    async with brain.stream("Go") as run:
        async for _ in run:
            assert get_current_span() is INVALID_SPAN
    below = sorted(recording.tree()[0][1][1][1])
    assert below == [("execute_tool query", ["query 1"]), ("execute_tool query", ["query 2"])]


async def test_a_run_is_inside_of_the_callers_span(recording: Recording) -> None:
    tracer = trace.get_tracer("mine", tracer_provider=recording.tracer_provider)
    brain = Brain(react(ScriptedLLM(["Hi."])), hooks=[recording.hook()])
    with tracer.start_as_current_span("request") as request:
        async with brain.stream("Go") as run:
            async for _ in run:
                assert get_current_span() is request
    assert recording.tree() == [("request", [("invoke_agent react", ANSWERS)])]


async def test_runs_at_once_do_not_mix(recording: Recording) -> None:
    hook = recording.hook()

    async def one(name: str) -> None:
        memory = MessagesMemory([look], session=name)
        llm = ScriptedLLM([calls("look", at="it"), "x"])
        async with Brain(react(llm), memory, hooks=[hook]).stream("Go") as run:
            async for _ in run:
                await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        for name in ("a", "b", "c"):
            group.start_soon(one, name)
    tree = recording.tree()
    assert len(tree) == 3
    assert tree[0] == tree[1] == tree[2]
    traces: dict[int, set[tuple[Any, Any]]] = {}
    for span in recording.spans:
        assert span.context is not None
        found = span.attributes or {}
        known = found["gen_ai.conversation.id"], found["agent_brain.run.id"]
        traces.setdefault(span.context.trace_id, set()).add(known)
    assert [len(known) for known in traces.values()] == [1, 1, 1]
    assert {session for known in traces.values() for session, _ in known} == {"a", "b", "c"}


async def test_forks_that_resume_the_same_run_do_not_mix(recording: Recording) -> None:
    @tool(requires_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    hook = recording.hook()
    script = [calls("pay"), "Done.", "Done."]
    brain = Brain("react", tools=[pay], llm=ScriptedLLM(script))
    await brain.run("Pay")
    forks = [await brain.memory.fork() for _ in range(2)]
    async with anyio.create_task_group() as group:
        for memory in forks:
            again = Brain(brain.net, memory, hooks=[hook])
            group.start_soon(partial(again.resume, approve=True))
    expected = ("invoke_agent react", [("state ACTION", ["execute_tool pay"]), *ANSWERS])
    assert recording.tree() == [expected, expected]


class Wait(State):
    async def run(self, memory: Any) -> AsyncIterator[str]:
        yield "waits"
        await anyio.sleep_forever()

    async def next_state(self, memory: Any) -> None:
        return None


async def test_a_run_that_is_left_ends_all_its_spans(recording: Recording) -> None:
    started = anyio.Event()

    @tool
    async def hang() -> str:
        """Wait."""
        started.set()
        await anyio.sleep_forever()
        return ""

    llm = ScriptedLLM([calls("hang"), "x"])
    inner = react(llm)
    brain = Brain(Net({Step.INNER: SubnetState(inner)}), tools=[hang], hooks=[recording.hook()])
    async with anyio.create_task_group() as group:
        group.start_soon(brain.run, "Go")
        await started.wait()
        group.cancel_scope.cancel()
    run = recording.tree()[0]
    assert run[1][0][1][1] == ("state ACTION", ["execute_tool hang"])
    assert recording.attributes("execute_tool hang")["agent_brain.unfinished"] is True
    assert recording.attributes("state INNER")["agent_brain.unfinished"] is True
    assert recording.attributes(run[0])["agent_brain.stop_reason"] == "cancelled"
    assert recording.points("gen_ai.execute_tool.duration") == []


async def test_a_model_call_that_is_left_ends_its_span(recording: Recording) -> None:
    brain = Brain(react(ScriptedLLM([["One ", "two ", "three."]])), hooks=[recording.hook()])
    async with brain.stream("Count") as run:
        async for event in run:
            if event.kind == "text_delta":
                break
    assert recording.tree() == [("invoke_agent react", [("state REASONING", [CHAT])])]
    assert recording.attributes(CHAT)["agent_brain.unfinished"] is True


async def test_a_call_that_waits_for_a_person_ends_with_its_state(recording: Recording) -> None:
    from agent_brain.errors import InputNeeded

    @tool
    async def ask() -> str:
        """Ask."""
        raise InputNeeded("Which one?")

    llm = ScriptedLLM([calls("ask"), "Thanks."])
    brain = Brain("react", tools=[ask], llm=llm, hooks=[recording.hook()])
    await brain.run("Go")
    found = recording.attributes("invoke_agent react")
    assert found["agent_brain.stop_reason"] == "input"
    assert recording.attributes("execute_tool ask")["agent_brain.unfinished"] is True


async def test_a_refused_tool_call_is_an_error_of_its_class(recording: Recording) -> None:
    class Guard(Hook):
        def before_tool_call(self, request: ToolRequest) -> None:
            raise Refused("The secret reason")

    llm = ScriptedLLM([calls("look", at="it"), "Well."])
    hooks = [recording.hook(), Guard()]
    await Brain("react", tools=[look], llm=llm, hooks=hooks).run("Go")
    (span,) = recording.named("execute_tool look")
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "Refused"
    assert span.attributes is not None
    assert span.attributes["error.type"] == "Refused"


@pytest.mark.parametrize("name, kind", [("fail", "ToolError"), ("unknown", "_OTHER")])
async def test_a_tool_call_that_fails_has_the_class_of_its_error(
    recording: Recording, name: str, kind: str
) -> None:
    llm = ScriptedLLM([calls(name), "Well."])
    await Brain("react", tools=[fail], llm=llm, hooks=[recording.hook()]).run("Go")
    assert recording.attributes(f"execute_tool {name}")["error.type"] == kind
    assert "error.type" not in recording.attributes("state ACTION")
    (point,) = recording.points("gen_ai.execute_tool.duration")
    assert point.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "error.type": kind,
    }


async def test_a_run_that_fails_has_the_error_on_every_span_that_it_went_through(
    recording: Recording,
) -> None:
    brain = Brain(react(ScriptedLLM([ValueError("secret")])), hooks=[recording.hook()])
    with pytest.raises(ValueError, match="secret"):
        await brain.run("Go")
    for name in (CHAT, "state REASONING", "invoke_agent react"):
        (span,) = recording.named(name)
        assert (span.attributes or {})["error.type"] == "ValueError"
        assert span.status.description == "ValueError"
        assert not span.events
    (point,) = recording.points("gen_ai.invoke_agent.duration")
    assert point.attributes["error.type"] == "ValueError"


SAID = ("secret", "plan", "sea", "Blue")


@pytest.mark.parametrize("content", [False, True])
async def test_what_is_said_is_recorded_only_on_request(
    recording: Recording, content: bool
) -> None:
    llm = ScriptedLLM([calls("look", at="the sea"), calls("fail"), "Blue."])
    hook = recording.hook(content=True) if content else recording.hook()
    await Brain("react", tools=[look, fail], llm=llm, hooks=[hook]).run("Tell the secret")
    everything = "\n".join(span.to_json() for span in recording.spans)
    assert [word in everything for word in SAID] == [content] * 4
    names = {name for span in recording.spans for name in span.attributes or {}}
    opt_in = {
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.tool.definitions",
    }
    assert names & opt_in == (opt_in if content else set())


async def test_a_function_hides_what_is_said(recording: Recording) -> None:
    llm = ScriptedLLM([calls("look", at="a@b.org"), calls("fail"), "a@b.org is blue."])
    hook = recording.hook(content=lambda text: text.replace("a@b.org", "[email]"))
    result = await Brain("react", tools=[look, fail], llm=llm, hooks=[hook]).run("Tell a@b.org")
    assert result.answer == "a@b.org is blue."
    everything = "\n".join(span.to_json() for span in recording.spans)
    assert "[email]" in everything
    assert "a@b.org" not in everything


async def test_messages_have_the_form_of_the_conventions(recording: Recording) -> None:
    import json

    llm = ScriptedLLM([["Let me see. ", *calls("look", at="it")], "Blue."])
    hook = recording.hook(content=True)
    await Brain("react", tools=[look], llm=llm, hooks=[hook]).run("Look")
    call = {"type": "tool_call", "id": "call_look", "name": "look", "arguments": {"at": "it"}}
    said = json.loads(recording.attributes(CHAT)["gen_ai.output.messages"])
    assert said == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "Let me see. "}, call],
            "finish_reason": "stop",
        }
    ]
    sent = json.loads(recording.attributes(CHAT, 1)["gen_ai.input.messages"])
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert sent[1]["parts"][-1] == call
    assert sent[2]["parts"] == [
        {"type": "tool_call_response", "id": "call_look", "response": "I see it"}
    ]


async def test_tokens_and_durations_are_measured(recording: Recording) -> None:
    usage = Usage(12, 7, cost=0.5, cached_tokens=3, reasoning_tokens=2, model="scripted")
    llm = ScriptedLLM([["Blue.", usage]])
    await Brain(react(llm), hooks=[recording.hook()]).run("Go")
    expected = {
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "agent_brain.usage.cost": 0.5,
    }
    for name in (CHAT, "invoke_agent react"):
        assert recording.attributes(name).items() >= expected.items()
    shared = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "ScriptedLLM",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.model": "scripted",
    }
    tokens = {
        point.attributes["gen_ai.token.type"]: (point.sum, point.attributes)
        for point in recording.points("gen_ai.client.token.usage")
    }
    assert tokens == {
        "input": (12, shared | {"gen_ai.token.type": "input"}),
        "output": (7, shared | {"gen_ai.token.type": "output"}),
    }
    for metric in ("operation.duration", "operation.time_to_first_chunk"):
        (point,) = recording.points(f"gen_ai.client.{metric}")
        assert (point.count, point.attributes) == (1, shared)
    (point,) = recording.points("gen_ai.invoke_agent.duration")
    assert point.attributes["gen_ai.agent.name"] == "react"


async def test_a_call_whose_tokens_are_unknown_has_no_measure_of_them(recording: Recording) -> None:
    llm = ScriptedLLM([["Blue.", Usage(cost=0.5, model="scripted")]])
    await Brain(react(llm), hooks=[recording.hook()]).run("Go")
    assert recording.points("gen_ai.client.token.usage") == []
    assert recording.attributes(CHAT)["agent_brain.usage.cost"] == 0.5


async def test_the_agent_may_have_a_name(recording: Recording) -> None:
    hook = recording.hook(name="support")
    await Brain(react(ScriptedLLM(["Hi."])), hooks=[hook]).run("Go")
    assert recording.tree() == [("invoke_agent support", ANSWERS)]


async def test_without_providers_nothing_is_recorded_or_sent() -> None:
    result = await Brain(react(ScriptedLLM(["Hi."])), hooks=[OpenTelemetry()]).run("Go")
    assert result.answer == "Hi."


@pytest.mark.parametrize("option", ["tracer_provider", "meter_provider", "name"])
def test_a_wrong_option_is_refused(option: str) -> None:
    with pytest.raises(BrainDefinitionError, match=rf"OpenTelemetry\({option}=7\): pass a"):
        OpenTelemetry(**{option: 7})  # type: ignore[arg-type]
