"""Runs evaluations of Inspect and prints what came of each, as JSON: ``program.py FOLDER``.

Inspect warns of its own deprecated code, so it cannot run where warnings are errors.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval  # noqa: A004 - Inspect's name
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    Model,
    get_model,
)
from inspect_ai.scorer import includes
from pydantic import BaseModel

from agent_brain import LLM, Brain, Limits, Message, tool
from agent_brain.experiments.inspect import InspectLLM, brain_agent
from agent_brain.experiments.inspect.messages import from_inspect, to_inspect, tool_info
from agent_brain.memories import Attachment
from agent_brain.states import Finish, Thought, Usage
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.support.openai_server import OpenAIServer, Reply, tool_calls

LOGS = Path(sys.argv[1])


@tool
def multiply(a: int, b: int) -> str:
    """Multiply."""
    return str(a * b)


@tool(requires_approval=True)
def pay(euros: int) -> str:
    """Pay."""
    return "paid"


class Place(BaseModel):
    city: str
    near: list[Place] = []


@tool
def visit(place: Place) -> str:
    """Visit."""
    return place.city


MULTIPLY = Action(name="multiply", args={"a": 17, "b": 23}, id="call-1")


class Thinking(LLM):
    """Thinks, with data for its provider, and remembers what it was sent."""

    model = "thinking"

    def __init__(self) -> None:
        self.sent: list[list[Message]] = []

    async def stream(self, messages, *, tools=(), output_type=None):
        self.sent.append(list(messages))
        yield Thought("Hm.")
        if len(self.sent) == 1:
            yield MULTIPLY
            yield Finish("tool_calls", {"signature": "abc"})
        else:
            yield "391"
            yield Finish("length")
        yield Usage(100, 20, cost=0.5, cached_tokens=30, reasoning_tokens=5)


def run(
    llm: LLM | None,
    make: Callable[[], Brain[Any]] | None = None,
    given: str | Sequence[ChatMessage] = "What is 17 times 23?",
    *,
    model: str | Model | None = None,
    **options: Any,
) -> dict[str, Any]:
    make = make or (lambda: Brain("react", tools=[multiply], llm=InspectLLM()))
    task = Task(
        dataset=[Sample(input=given if isinstance(given, str) else [*given], target="391")],
        solver=brain_agent(make),
        scorer=includes(),
    )
    model = model or get_model("agent_brain/scripted", memoize=False, llm=llm)
    options = {"fail_on_error": False, "display": "none", **options}
    (log,) = eval(task, model=model, log_dir=str(LOGS), **options)
    return told(log)


def told(log: EvalLog) -> dict[str, Any]:
    assert log.samples, log.error
    (sample,) = log.samples
    return {
        "status": log.status,
        "error": sample.error.message if sample.error else None,
        "limit": sample.limit.type if sample.limit else None,
        "score": sample.scores["includes"].value if sample.scores else None,
        "answer": sample.output.completion,
        "metadata": sample.output.metadata,
        "messages": [[message.role, message.text] for message in sample.messages],
        "calls": [
            [e.function, e.arguments, e.result, bool(e.error), e.pending]
            for e in sample.events
            if e.event == "tool"
        ],
        "model calls": [
            [len(e.input), [t.name for t in e.tools], e.cache]
            for e in sample.events
            if e.event == "model"
        ],
        "states": [e.name for e in sample.events if e.event == "span_begin" and e.type == "state"],
        "usage": {
            name: usage.model_dump(exclude_none=True) for name, usage in sample.model_usage.items()
        },
    }


def scripted(*turns: Any) -> ScriptedLLM:
    return ScriptedLLM([*turns])


def cached() -> dict[str, Any]:
    llm = scripted("391")

    def make() -> Brain[Any]:
        return Brain("react", llm=InspectLLM(cache=True))

    run(llm, make)
    return run(llm, make)


def thinking() -> dict[str, Any]:
    llm = Thinking()
    found = run(llm)
    (asked,) = [message for message in llm.sent[1] if message.tool_calls]
    return {**found, "sent back": asked.metadata}


def over_http() -> dict[str, Any]:
    script = [
        Reply(*tool_calls(("call_1", "multiply", '{"a": 17, "b": 23}')), finish="tool_calls"),
        Reply("391", usage=(50, 7)),
    ]
    with OpenAIServer(script) as server:
        found = run(
            None,
            model="agent_brain/openai/scripted",
            model_base_url=server.url,
            model_args={"api_key": "none"},
            temperature=0.25,
        )
        return {**found, "temperature": server.requests[0].body.get("temperature")}


def messages() -> list[Any]:
    picture = Attachment(media_type="image/png", data="AAAA")
    sound = Attachment(media_type="audio/wav", data="AAAA")
    paper = Attachment(media_type="application/pdf", url="https://example.org/a.pdf")
    ours = [
        Message.system("Be brief."),
        Message.user("Look", attachments=[picture, sound, paper]),
        Message.assistant("Hm", [MULTIPLY, Action(name="f", unparsed="{", id="call-2")]),
        Message.tool("391", MULTIPLY),
        Message.tool("It failed", MULTIPLY, is_error=True),
    ]
    again = [from_inspect(to_inspect(message)) for message in ours]
    return [
        [m.role, m.content, [a.media_type for a in m.attachments], m.is_error, len(m.tool_calls)]
        for m in again
    ]


def main() -> None:
    asked: list[ChatMessage] = [
        ChatMessageSystem(content="Answer in digits."),
        ChatMessageUser(content="Hello"),
        ChatMessageAssistant(content=[ContentReasoning(reasoning="x"), ContentText(text="Hi")]),
        ChatMessageUser(content="What is 17 times 23?"),
    ]
    limited = Brain("react", tools=[multiply], llm=InspectLLM(), limits=Limits(max_steps=1))
    waits = Brain("react", tools=[pay], llm=InspectLLM())
    pays = Action(name="pay", args={"euros": 1})
    twice = ["Let me see. ", MULTIPLY], "It is 391."
    found = {
        "answered": run(scripted(*twice)),
        "conversation": run(scripted("391"), None, asked),
        "without a goal": run(scripted(), None, [ChatMessageSystem(content="Hello")]),
        "own limit": run(scripted(*twice), lambda: limited),
        "message limit": run(scripted(*twice), message_limit=3),
        "failed": run(scripted(["Hm. ", MULTIPLY], RuntimeError("the model broke"))),
        "failed call": run(scripted(Action(name="multiply", args={"a": "x"}), "391")),
        "waits": run(scripted(pays), lambda: waits),
        "cached": cached(),
        "thinking": thinking(),
        "over http": over_http(),
        "messages": messages(),
        "schema": tool_info(visit).parameters.model_dump(exclude_none=True),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
