"""Calls are answered from earlier ones."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent_brain import Brain, Limits, LiteLLM, Message, MessagesMemory, tool
from agent_brain.demo import demo_tools
from agent_brain.errors import BrainDefinitionError, LLMServerError
from agent_brain.hooks import CallCache, HidePersonalData, RamStore
from agent_brain.memories import RamJournal, Role
from agent_brain.states import (
    Finish,
    ProviderToolCalled,
    SourcesCited,
    TextDelta,
    Usage,
    UsageReported,
)
from agent_brain.states.events import NOWHERE
from agent_brain.states.models.llm import ProviderCall
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import (
    Action,
    BaseTool,
    Media,
    ToolContext,
    ToolError,
    ToolResult,
    current_call,
)
from tests.support.openai_server import OpenAIServer, Reply

pytestmark = pytest.mark.anyio

PAID = Usage(10, 5, cost=0.5)


def llm_of(*turns: Any) -> ScriptedLLM:
    return ScriptedLLM([*turns])


async def test_the_same_question_is_answered_without_a_call() -> None:
    llm = llm_of(["Paris ", "it is.", PAID, Finish("stop", metadata={"citations": ["a"]})])
    cache = CallCache()
    first = await Brain("react", llm=llm, hooks=[cache]).run("Capital of France?")
    brain = Brain("react", llm=llm, hooks=[cache], limits=Limits(max_cost=0.1))
    async with brain.stream("Capital of France?") as run:
        events = [event async for event in run]

    assert first.usage.cost == 0.5
    assert run.result.answer == first.answer == "Paris it is."
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Paris ", "it ", "is."]
    (used,) = [e.usage for e in events if isinstance(e, UsageReported)]
    assert (used.requests, used.total_tokens, used.cost) == (0, 0, 0.0)
    assert run.result.usage.requests == 0
    message = run.result.messages[-1]
    assert message.metadata == {"citations": ["a"], "cached": True}
    assert "cached" not in first.messages[-1].metadata
    llm.assert_complete()


CACHE = CallCache()


def with_params(*turns: Any, **params: Any) -> ScriptedLLM:
    llm = llm_of(*turns)
    llm.params = params  # type: ignore[attr-defined]
    return llm


calls: list[str] = []


@tool(idempotent=True)
async def look_up(city: str) -> Any:
    """Look up a city."""
    calls.append(city)
    if city == "Nowhere":
        raise ToolError("no such city")
    return f"{city} #{len(calls)}"


@tool
async def book(city: str) -> str:
    """Book a flight."""
    calls.append(city)
    return f"booked {len(calls)}"


DIFFERENT: dict[str, Any] = {
    "question": lambda: Brain("react", llm=llm_of("B"), hooks=[CACHE]).run("Other?"),
    "model": lambda: Brain("react", llm=ScriptedLLM(["B"], model="b"), hooks=[CACHE]).run("One?"),
    "tools": lambda: Brain("react", llm=llm_of("B"), tools=[look_up], hooks=[CACHE]).run("One?"),
    "tenant": lambda: Brain(
        "react", MessagesMemory(tenant="bob"), llm=llm_of("B"), hooks=[CACHE]
    ).run("One?"),
    "params": lambda: Brain("react", llm=with_params("B", seed=1), hooks=[CACHE]).run("One?"),
}


@pytest.mark.parametrize("ask", DIFFERENT.values(), ids=DIFFERENT)
async def test_another_call_is_made(ask: Any) -> None:
    await Brain("react", llm=llm_of("A"), hooks=[CACHE]).run("One?")
    assert (await ask()).answer == "B"


NOT_KEPT: dict[str, Any] = {
    "cut off": ["Par", Finish("length")],
    "refused": ["I will not", Finish("refusal")],
    "filtered": ["Par", Finish("content_filter")],
    "an error": LLMServerError("broken"),
}


@pytest.mark.parametrize("turn", NOT_KEPT.values(), ids=NOT_KEPT)
async def test_what_is_not_whole_is_not_kept(turn: Any) -> None:
    cache = CallCache()
    llm = llm_of(turn, "Paris.")
    with suppress(LLMServerError):
        await Brain("react", llm=llm, hooks=[cache]).run("Capital of France?")
    assert (
        await Brain("react", llm=llm, hooks=[cache]).run("Capital of France?")
    ).answer == "Paris."


class Store(dict[str, str]):
    """A place of a program's own, with a clock."""

    fails = False

    async def get(self, key: str) -> str | None:  # type: ignore[override]
        if self.fails:
            raise ConnectionError
        return super().get(key)

    async def set(self, key: str, text: str, seconds: float) -> None:
        assert seconds == 60.0
        if self.fails:
            raise ConnectionError
        self[key] = text


async def ask(hooks: list[Any], *turns: Any, question: str = "x", **options: Any) -> list[str]:
    brain = Brain("react", tools=[look_up, book], llm=llm_of(*turns), hooks=hooks, **options)
    return [m.content for m in (await brain.run(question)).messages if m.role == "tool"]


async def test_calls_of_tools_are_kept_where_they_are_named() -> None:
    def turns() -> list[Any]:
        names = [("look_up", "Oslo"), ("look_up", "Nowhere"), ("book", "Oslo")]
        return [[Action(name=n, args={"city": c}) for n, c in names], "Done."]

    calls.clear()
    cache = CallCache(Store(), lifetime=timedelta(minutes=1), models=[], tools=["look_*", "book"])
    first, second = [await ask([cache], *turns()) for _ in range(2)]
    assert first == ["Oslo #1", "no such city", "booked 3"]
    assert second == ["Oslo #1", "no such city", "booked 5"]
    other = await ask([cache], *turns(), memory=MessagesMemory([look_up, book], tenant="bob"))
    assert other[0] == "Oslo #6"
    assert (await ask([CallCache(models=[])], *turns()))[0] == "Oslo #9", "none unless named"


async def test_an_answer_that_is_a_picture_is_kept() -> None:
    picture: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    llm = ScriptedLLM([[Finish("stop", metadata={"images": [picture]})]])
    cache = CallCache()

    results = [await Brain("react", llm=llm, hooks=[cache]).run("Draw") for _ in range(2)]

    assert [len(result.attachments) for result in results] == [1, 1]
    llm.assert_complete()


async def test_calls_of_a_providers_tools_are_told_again() -> None:
    call = ProviderCall("w1", "web_search", {"query": "Oslo"}, "found")
    told: dict[str, Any] = {"citations": ["https://oslo.example/"]}
    llm = ScriptedLLM([[call, "Oslo.", Finish("stop", metadata=told)]])
    cache = CallCache()
    seen: list[Any] = []

    for _ in range(2):
        async with Brain("react", llm=llm, hooks=[cache]).stream("Where?") as run:
            async for event in run:
                if isinstance(event, ProviderToolCalled | SourcesCited | TextDelta):
                    seen.append(replace(event, response_id=None, at=NOWHERE))

    assert [event.kind for event in seen[:3]] == [
        "provider_tool_called",
        "text_delta",
        "sources_cited",
    ]
    assert seen[:3] == seen[3:]
    llm.assert_complete()


async def test_results_with_pictures_and_rehearsals_are_not_kept() -> None:
    picture = Media("image/png", b64encode(b"png").decode())

    @tool(idempotent=True)
    async def draw(what: str) -> Any:
        """Draw."""
        calls.append(what)
        return ToolResult(what, (picture,)) if what == "cat" else what

    calls.clear()
    cache = CallCache(models=[], tools=["draw"])
    for dry_run in (True, False, False):
        llm = llm_of([Action(name="draw", args={"what": w}) for w in ("cat", "text")], "Done.")
        brain = Brain("react", tools=[draw], llm=llm, hooks=[cache], dry_run=dry_run)
        cat, text = (await brain.run("x")).messages[-3:-1]
        assert (cat.content, text.content) == ("cat", "text") or dry_run
        assert len(cat.attachments) == (not dry_run)
    assert calls == ["cat", "text", "cat"]


async def test_calls_of_tools_in_a_response_are_kept_too() -> None:
    @tool
    def book() -> str:
        """Book."""
        return "booked"

    cache = CallCache()
    llm = llm_of([Action(name="book", id="c1"), Usage(1, 1)], "Booked.")
    for _ in range(2):
        result = await Brain("react", tools=[book], llm=llm, hooks=[cache]).run("Book it")
        assert [m.content for m in result.messages[1:]] == ["", "booked", "Booked."]
    llm.assert_complete()


@pytest.mark.parametrize("order", [1, -1], ids=["first", "last"])
async def test_nobody_gets_what_another_user_has_hidden(order: int) -> None:
    store = Store()
    cache = CallCache(store, lifetime=timedelta(minutes=1), tools=["look_up"])
    hooks = [cache, HidePersonalData()][::order]

    def turn(messages: Sequence[Message]) -> Any:
        wants = Action(name="look_up", args={"city": "[email 1]"})
        return "Mail [email 1]" if messages[-1].role is Role.TOOL else wants

    llm = llm_of(*[turn] * 6)
    for n, name in enumerate(["ann", "bob", "ann"]):
        brain = Brain("react", tools=[look_up], llm=llm, hooks=hooks)
        result = await brain.run(f"Who is {name}@example.org?")
        assert result.answer == f"Mail {name}@example.org"
        assert result.messages[2].content.startswith(f"{name}@example.org #")
        assert result.usage.requests == (0 if n == 2 else 2 if order == 1 or n == 0 else 1)
    kept = [text for text in store.values() if '"actions"' in text]
    assert any("@" in text for text in kept) == (order == 1)


@pytest.mark.parametrize("order", [1, -1], ids=["first", "last"])
async def test_a_call_that_another_hook_changes_is_not_kept_as_another_one(order: int) -> None:
    cache = CallCache(models=[], tools=["look_up"])
    hooks = [cache, HidePersonalData(restore=False)][::order]
    for name in ("ann", "bob"):
        turns = [Action(name="look_up", args={"city": "[email 1]"}), "Done.", "Done."]
        llm = ScriptedLLM(turns, native=False)
        brain = Brain("react", tools=[look_up], llm=llm, hooks=hooks)
        result = await brain.run(f"Who is {name}@example.org?")
        assert f"{name}@example.org #" in str(result.messages)


async def test_calls_that_depend_on_the_run_or_a_person_are_not_kept() -> None:
    @tool(idempotent=True)
    def who_am_i(context: ToolContext) -> str:
        """Say who."""
        return f"user {context.deps}"

    class Asks(BaseTool):
        """Asks as a tool of an MCP server does."""

        async def execute(self, **kwargs: Any) -> str:
            context = current_call()
            assert context is not None
            return f"as {context.ask('Who?')} says"

    asks = Asks("asks", "Ask.", {"type": "object"}, idempotent=True)
    cache = CallCache(models=[], tools=["*"])
    for user in ("ann", "bob"):
        llm = llm_of(Action(name="who_am_i"), Action(name="asks"), "Done.")
        brain = Brain("react", tools=[who_am_i, asks], llm=llm, hooks=[cache])
        await brain.run("x", deps=user)
        result = await brain.resume(input=user)
        results = [m.content for m in result.messages if m.role == "tool"]
        assert results == [f"user {user}", f"as {user} says"]

    named = Brain("react", tools=[who_am_i], llm=llm_of(), hooks=[CallCache(tools=["who_am_i"])])
    with pytest.raises(BrainDefinitionError, match="'who_am_i', which takes a ToolContext"):
        await named.run("x")


async def test_tools_of_the_same_name_are_told_apart() -> None:
    def of_user(user: str) -> Any:
        @tool(idempotent=True)
        def inbox() -> str:
            """Read the mail."""
            return f"mail of {user}"

        return inbox

    cache = CallCache(models=[], tools=["inbox"])
    for inbox, mail in zip(map(of_user, ("ann", "bob")), ("ann", "bob"), strict=True):
        for _ in range(2):
            brain = Brain(
                "react", tools=[inbox], llm=llm_of(Action(name="inbox"), "."), hooks=[cache]
            )
            result = await brain.run("x")
            assert result.messages[2].content == f"mail of {mail}"


async def test_a_store_that_fails_costs_no_run(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    store.fails = True
    cache = CallCache(store, lifetime=timedelta(minutes=1))
    assert (await Brain("react", llm=llm_of("A"), hooks=[cache]).run("?")).answer == "A"
    assert "could not be read: ConnectionError" in caplog.text
    assert "could not be written: ConnectionError" in caplog.text


def test_texts_are_dropped_when_their_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("agent_brain.hooks.cache.monotonic", lambda: now[0])
    store = RamStore(max_entries=2)
    store.set("a", "A", 10)
    store.set("b", "B", 20)
    now[0] = 9.9
    assert store.get("a") == "A"
    store.set("c", "C", 20)
    assert store.get("b") is None, "it was not used for longest"
    now[0] = 10.0
    assert (store.get("a"), store.get("c")) == (None, "C")


WRONG: dict[str, Any] = {
    "lifetime": lambda: CallCache(lifetime=timedelta()),
    "models": lambda: CallCache(models="gpt"),
    "no names": lambda: CallCache(models=[5]),  # type: ignore[list-item]
    "tools": lambda: CallCache(tools=[look_up]),  # type: ignore[list-item]
    "who": lambda: CallCache(who="ann"),  # type: ignore[arg-type]
    "store": lambda: CallCache(3),  # type: ignore[arg-type]
    "max_entries": lambda: RamStore(0),
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_refused(make: Any) -> None:
    with pytest.raises(
        BrainDefinitionError, match=r"^(lifetime|models|tools|who|store|max_entries)="
    ):
        make()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # LiteLLM knows no other
async def test_calls_of_litellm_are_kept() -> None:
    with OpenAIServer([Reply("Oslo."), Reply("Bergen.")]) as server:
        cache = CallCache()
        for seed, answer in ((1, "Oslo."), (1, "Oslo."), (2, "Bergen.")):
            llm = LiteLLM("openai/local", api_base=server.url, api_key="none", seed=seed)
            assert (await Brain("react", llm=llm, hooks=[cache]).run("Which?")).answer == answer
        await llm.aclose()
    assert len(server.requests) == 2


@pytest.mark.parametrize("name", ["react", "plan_execute", "debate", "reflexion"])
@pytest.mark.parametrize("journal", [True, False], ids=["journal", "RAM"])
async def test_what_the_cache_has_answered_is_recorded_and_replayed(
    name: str, journal: bool
) -> None:
    cache = CallCache()
    for hooks in ([cache], [cache], [cache, HidePersonalData()], [HidePersonalData(), cache]):
        memory = MessagesMemory(journal=RamJournal()) if journal else MessagesMemory()
        brain = Brain(name, memory, demo_tools(), llm="rule-based", trace=True, hooks=hooks)
        result = await brain.run("What is 17 times 23?")
        report = await brain.replay()
        assert report.equal, report
        assert report.requests == len(await memory.model_calls())
    assert result.usage.requests == 0
    assert {call.usage["requests"] for call in await memory.model_calls() if call.usage} == {0}


async def test_a_replay_shows_what_is_sent_otherwise_than_when_the_cache_has_answered() -> None:
    cache = CallCache()
    for _ in range(2):
        memory = MessagesMemory(journal=RamJournal())
        brain = Brain("react", memory, llm="rule-based", trace=True, hooks=[cache])
        assert (await brain.run("Hello!")).stop_reason == "done"
    other = Brain("react", memory, llm="rule-based", hooks=[cache])
    report = await other.replay(prompt="Be brief.")
    assert report.difference
    assert report.difference.kind == "request"
