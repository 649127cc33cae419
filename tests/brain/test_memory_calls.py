"""Model calls and embeddings of a memory are work of the run: hooks, limits, usage, trace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import from_thread

from agent_brain import (
    AutoMemory,
    Brain,
    LayeredMemory,
    Limits,
    Memory,
    MessagesMemory,
    ParallelState,
    State,
    SubnetState,
    SummaryMemory,
    Team,
    TodoMemory,
    UsageBudget,
    UsageLedger,
    VectorMemory,
    WindowedMemory,
    react,
    tool,
)
from agent_brain.errors import BrainUseError, Refused
from agent_brain.memories import (
    DurableMemory,
    Message,
    RamJournal,
    SharedMemory,
    UserMemory,
)
from agent_brain.memories.embedders import (
    Embedder,
    EmbedderLike,
    EmbeddingResult,
    LiteLLMEmbedder,
)
from agent_brain.nets import MapState, learn
from agent_brain.states import (
    LLM,
    AskState,
    EmbeddingRequest,
    Event,
    Hook,
    LiteLLM,
    ModelRequest,
    StreamItem,
    TextDelta,
    Together,
    Usage,
    UsageReported,
    model_extractor,
    model_reranker,
    model_summarizer,
)
from agent_brain.states.models.llm import Piece
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import single
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.thorough import first_of

pytestmark = pytest.mark.anyio

MAIL = "ann@example.org"
PRICE = 0.000_1  # US dollars a character
FREE = Usage(1, 1, cost=0.0)
HOUSE = "I have a red house"
SAYS = f'{{"facts": [{{"text": "Has a red house", "message": "m1", "quote": "{HOUSE}"}}], '
SAYS += '"value": [2, 1]}'  # suits whatever asks: an extractor, a reranker, a summary


class Provider(LLM):
    """A provider of a chat model and an embedding model, which takes money for what it reads."""

    native = True

    def __init__(self) -> None:
        self.model = "provider"
        self.money = 0.0
        self.read: list[str] = []

    def _take(self, texts: Sequence[str]) -> float:
        self.read += texts
        cost = sum(map(len, texts)) * PRICE
        self.money += cost
        return cost

    async def stream(
        self, messages: Sequence[Message], *, tools: Sequence[Any] = (), output_type: Any = None
    ) -> AsyncIterator[Piece]:
        cost = self._take([message.content for message in messages])
        yield (
            f"Reply {len(self.read)}, which is rather long: {SAYS}" if output_type is None else SAYS
        )
        yield Usage(sum(len(message.content) for message in messages), 4, cost=cost)

    async def embed(self, texts: Sequence[str]) -> EmbeddingResult:
        vectors = [[float(len(text)), text.count("e"), 1.0] for text in texts]
        return EmbeddingResult(vectors, sum(map(len, texts)), self._take(texts))

    @property
    def embedder(self) -> EmbedderLike:
        """What embeds."""
        return self.embed


class Remote(LiteLLM):
    """A provider over HTTP."""

    def __init__(self, url: str, price: float) -> None:
        place: dict[str, Any] = {
            "api_base": url,
            "api_key": "secret",
            "input_cost_per_token": price,
        }
        super().__init__("openai/scripted", output_cost_per_token=price, **place)
        self.embedder = LiteLLMEmbedder("openai/scripted", **place)
        self.embed = self.embedder.embed_with_usage


AnyProvider = Provider | Remote


class OwnEmbedder(Embedder):
    """An embedder of a program, over a provider."""

    name = "own"
    dimension = 3

    def __init__(self, provider: AnyProvider) -> None:
        self.provider = provider

    async def embed(self, texts: Sequence[str]) -> Any:
        return await self.provider.embed(texts)


class HideMail(Hook):
    def before_model_call(self, request: ModelRequest) -> ModelRequest:
        hidden = [m.model_copy(update={"content": hide(m.content)}) for m in request.messages]
        return replace(request, messages=hidden)

    def before_embedding(self, request: EmbeddingRequest) -> EmbeddingRequest:
        return replace(request, texts=[hide(text) for text in request.texts])


def hide(text: str) -> str:
    return text.replace(MAIL, "(mail)")


def summary(provider: LLM, **options: Any) -> SummaryMemory:
    return SummaryMemory(summarize=model_summarizer(provider), max_messages=4, **options)


def vector(provider: AnyProvider, **options: Any) -> VectorMemory:
    return VectorMemory(embedder=provider.embedder, recent=2, **options)


def auto(provider: AnyProvider, **options: Any) -> AutoMemory:
    summarize = model_summarizer(provider)
    options |= {"embedder": provider.embedder, "max_tokens": 200}
    return AutoMemory(summarize=summarize, **options)


def user(provider: AnyProvider, **options: Any) -> UserMemory:
    return UserMemory(extract=model_extractor(provider), embedder=provider.embedder, **options)


class OwnMemory(Memory):
    """A memory of four methods that has its messages summarised for each request."""

    def __init__(self, llm: LLM) -> None:
        super().__init__()
        self.llm = llm
        self.kept: list[Message] = []
        self.asked: list[Message] = []

    async def set_goal(self, goal: str | Message) -> None:
        self.kept += self.asked
        self.asked = [goal if isinstance(goal, Message) else Message.user(goal)]

    async def update(self, messages: list[Message]) -> None:
        self.kept += messages

    async def goal(self) -> list[Message]:
        return [*self.asked]

    async def dump(self) -> list[Message]:
        return [*self.kept]

    async def context(self) -> list[Message]:
        call = self.llm.call([*self.kept, Message.user("Sum it up")])
        with self.work_for("notes"):
            async for _ in call.events():
                pass
        return [Message.user(call.text), *self.asked]


MEMORIES: dict[str, Callable[[AnyProvider, Path], Memory]] = {
    "messages": lambda _, __: MessagesMemory(),
    "windowed": lambda _, __: WindowedMemory(max_messages=3),
    "summary": lambda provider, _: summary(provider),
    "summary in a journal": lambda provider, path: summary(provider, journal=path / "a.db"),
    "vector": lambda provider, _: vector(provider),
    "vector in a folder": lambda provider, path: vector(provider, path=path),
    "vector with an embedder": lambda provider, _: VectorMemory(
        embedder=OwnEmbedder(provider), recent=2
    ),
    "vector with a reranker": lambda provider, _: vector(provider, rerank=model_reranker(provider)),
    "vector for several": lambda provider, path: vector(
        provider, journal=path / "a.db", shared=True
    ),
    "auto": lambda provider, _: auto(provider),
    "auto in a journal": lambda provider, path: auto(provider, journal=path / "a.db"),
    "auto in a folder": lambda provider, path: auto(provider, path=path),
    "layered over auto": lambda provider, _: LayeredMemory(
        WindowedMemory(max_messages=2), auto(provider)
    ),
    "layered over vector": lambda provider, _: LayeredMemory(
        WindowedMemory(max_messages=2), vector(provider)
    ),
    "layered over summary": lambda provider, _: LayeredMemory(
        WindowedMemory(max_messages=2), summary(provider)
    ),
    "todo over summary": lambda provider, _: TodoMemory(summary(provider)),
    "todo over vector": lambda provider, _: TodoMemory(vector(provider)),
    "todo over auto": lambda provider, _: TodoMemory(auto(provider)),
    "durable over an own one": lambda provider, path: DurableMemory(
        lambda: OwnMemory(provider), journal=path / "b.db"
    ),
    "an own one": lambda provider, _: OwnMemory(provider),
    "member": lambda provider, _: SharedMemory().member("ann", memory=summary(provider)),
    "user": lambda provider, _: user(provider).over(MessagesMemory()),
    "user over summary": lambda provider, _: user(provider).over(summary(provider)),
    "user over auto in a journal": lambda provider, path: user(
        provider, journal=path / "a.db", tenant="ann"
    ).over(auto(provider, journal=path / "a.db", tenant="ann")),
    "user over vector in a folder": lambda provider, path: user(
        provider, path=path, tenant="ann"
    ).over(vector(provider, path=path, tenant="ann")),
}


@pytest.mark.parametrize("make", MEMORIES.values(), ids=MEMORIES)
async def test_hooks_ledger_result_and_events_count_what_a_memory_pays(
    make: Callable[[Provider, Path], Memory], tmp_path: Path
) -> None:
    provider, ledger = Provider(), UsageLedger()
    brain = Brain("react", make(provider, tmp_path), llm=provider, hooks=[HideMail(), ledger])
    async with brain:
        for turn in range(6):
            before = provider.money
            asked = f"{HOUSE}. Write to {MAIL} for the {turn}th time. " + "Do it now. " * 9
            async with brain.stream(asked) as run:
                events: list[Event] = [event async for event in run]
            reported = [e.usage.cost or 0.0 for e in events if isinstance(e, UsageReported)]
            spent = provider.money - before
            assert run.result.usage.cost == pytest.approx(spent, abs=1e-9)
            assert sum(reported) == pytest.approx(spent, abs=1e-9)
            assert ledger.usage(run=run.result.run_id).cost == pytest.approx(spent, abs=1e-9)
            said = "".join(e.text for e in events if isinstance(e, TextDelta))
            assert said == run.result.answer  # no summary among it
    assert ledger.usage().cost == pytest.approx(provider.money, abs=1e-9)  # with what closing cost
    assert provider.read
    assert not [text for text in provider.read if MAIL in text]


@pytest.mark.parametrize("make", MEMORIES.values(), ids=MEMORIES)
async def test_a_run_that_nobody_reads_counts_the_same(
    make: Callable[[Provider, Path], Memory], tmp_path: Path
) -> None:
    provider = Provider()
    async with Brain("react", make(provider, tmp_path), llm=provider) as brain:
        for turn in range(5):
            before = provider.money
            result = await brain.run(f"{HOUSE}. Question {turn}. " + "Please answer it. " * 9)
            assert result.usage.cost == pytest.approx(provider.money - before, abs=1e-9)


@pytest.mark.parametrize("kind", ["summary", "vector"])
async def test_branches_subnets_and_nested_brains_count_their_memories(kind: str) -> None:
    provider, ledger, inner = Provider(), UsageLedger(), UsageLedger()
    make = summary if kind == "summary" else vector
    helper = Brain("react", make(provider), llm=provider, hooks=[inner, HideMail()])
    for turn in range(5):
        await helper.run(f"Remember {turn}")
    ask = helper.as_tool("helper", "Helps.")
    script = ScriptedLLM([[Action(name="helper", args={"task": "Help"})], "Done."])
    nets = {
        "branches": single(ParallelState([react(provider), react(provider)])),
        "subnet": single(SubnetState(react(provider))),
        "own copy": single(SubnetState(react(provider), fork=True)),
        "nested": react(script),
    }
    for net in nets.values():
        memory = make(provider)
        await memory.update([Message.user(f"Earlier {n}") for n in range(9)])
        memory.add_tools([ask])
        before, known = provider.money, ledger.usage().known_cost
        result = await Brain(net, memory, hooks=[ledger]).run("Go")
        spent = provider.money - before
        assert result.usage.cost is None or result.usage.cost == pytest.approx(spent, abs=1e-9)
        assert ledger.usage().known_cost - known == pytest.approx(spent, abs=1e-9)


async def test_a_team_counts_the_memories_of_its_agents() -> None:
    provider, shared, ledger = Provider(), SharedMemory(), UsageLedger()
    brains = [
        Brain("react", shared.member(name, memory=summary(provider)), llm=provider, hooks=[ledger])
        for name in ("ann", "bob")
    ]
    for turn in range(4):
        await Team(brains, max_rounds=2).run(f"Task {turn}")
    assert ledger.usage().cost == pytest.approx(provider.money, abs=1e-9)
    assert ledger.by_purpose()["summary"].requests > 0


async def test_limits_count_what_a_summary_costs() -> None:
    script = ScriptedLLM([[f"Summary {n}", Usage(10, 1, cost=0.5)] for n in range(9)])
    llm = ScriptedLLM([[f"Answer {n}", Usage(10, 1, cost=0.002)] for n in range(9)])
    memory = SummaryMemory(summarize=model_summarizer(script), max_messages=4)
    await memory.update([Message.user(f"Earlier {n}") for n in range(9)])
    brain = Brain("reflexion", memory, llm=llm, limits=Limits(max_cost=0.1))
    result = await brain.run("Go on")
    assert result.stop_reason == "max_cost"
    assert result.usage.cost == pytest.approx(0.5)
    assert (len(script.calls), len(llm.calls)) == (1, 0)


class RefuseSummaries(Hook):
    def before_model_call(self, request: ModelRequest) -> None:
        if request.purpose == "summary":
            raise Refused("Not now")


@pytest.mark.parametrize("how", ["budget", "refused"])
async def test_a_summary_that_may_not_be_made_is_made_later(how: str) -> None:
    ledger = UsageLedger([UsageBudget("process", cost=0.01)])
    script = ScriptedLLM([[f"Answer {n}", Usage(10, 1, cost=0.05)] for n in range(9)])
    memory = SummaryMemory(summarize=model_summarizer(script), max_messages=4)
    hook: Hook = ledger if how == "budget" else RefuseSummaries()
    brain = Brain("react", memory, llm=script, hooks=[hook])
    await brain.run("First")
    before = [Message.user(f"Earlier {n}") for n in range(9)]
    await memory.update(before)
    result = await brain.run("Second")
    assert result.stop_reason == ("budget" if how == "budget" else "done")
    assert not memory.summary
    assert {m.id for m in before} <= {m.id for m in await memory.dump()}
    await Brain("react", memory, llm=script).run("Third")
    await memory.compact()
    assert memory.summary


async def test_a_summary_of_a_long_backlog_keeps_what_was_written_when_a_limit_is_reached() -> None:
    script = ScriptedLLM([[f"Summary {n}", Usage(10, 1, cost=0.06)] for n in range(99)])
    memory = SummaryMemory(summarize=model_summarizer(script), max_messages=4)
    await memory.update([Message.user(f"Earlier {n}") for n in range(60)])
    llm = ScriptedLLM(["Answer"])
    result = await Brain("react", memory, llm=llm, limits=Limits(max_cost=0.1)).run("Go on")
    assert result.stop_reason == "max_cost"
    assert len(script.calls) == 2  # the limit, and the call in flight
    assert memory.summary == "Summary 1"
    assert 0 < len(memory.summarised) < 55
    assert len(await memory.dump()) == 60 - len(memory.summarised)


async def test_a_strict_limit_ends_the_run_where_an_embedders_price_is_unknown() -> None:
    memory = VectorMemory(embedder=lambda texts: [[1.0, 2.0]] * len(texts), recent=1)
    brain = Brain("react", memory, llm=Provider(), limits=Limits(max_cost=9, strict=True))
    with pytest.raises(BrainUseError, match="price"):
        await brain.run("Hello")


async def test_embeddings_are_refused_once_a_budget_is_used_up_and_made_later() -> None:
    provider = Provider()
    ledger = UsageLedger([UsageBudget("process", cost=0.001)])
    memory = vector(provider)
    brain = Brain("react", memory, llm=provider, hooks=[ledger])
    result = await brain.run("Where is the red house? " * 3)
    assert result.stop_reason == "done"
    read = len(provider.read)
    assert not [text for text in provider.read if text == result.answer]
    found = await Brain("react", memory, llm=provider).memory.recall("red house")  # type: ignore[attr-defined]
    assert found
    await memory.set_goal("Next")
    memory.run_work = None
    await memory.open()
    assert result.answer in provider.read[read:]


async def test_an_embedding_that_is_refused_leaves_the_text_to_be_found_by_its_words() -> None:
    class Refuse(Hook):
        errors: list[Exception] = []

        def before_embedding(self, request: EmbeddingRequest) -> None:
            raise Refused("These texts stay here")

        def on_embedding_error(self, request: EmbeddingRequest, error: Exception) -> None:
            self.errors.append(error)

    provider = Provider()
    memory = vector(provider)
    brain = Brain("react", memory, llm=ScriptedLLM(["Blue."]), hooks=[Refuse()])
    result = await brain.run("Which colour has the sea?")
    assert result.usage.cost == 0 or result.usage.requests == 1
    assert provider.read == []
    assert (await memory.recall("the sea"))[0].message.content == "Which colour has the sea?"


async def test_a_hook_may_not_change_how_many_texts_are_embedded() -> None:
    class Merge(Hook):
        def before_embedding(self, request: EmbeddingRequest) -> EmbeddingRequest:
            return replace(request, texts=[*request.texts, "more"])

    provider = Provider()
    memory = vector(provider)
    await Brain("react", memory, llm=ScriptedLLM(["Blue."]), hooks=[Merge()]).run("Hello")
    assert provider.read == []


@pytest.mark.parametrize("make", [summary, vector])
@pytest.mark.parametrize("stored", [False, True])
async def test_a_traced_run_replays_with_the_calls_of_its_memory(
    make: Callable[..., SummaryMemory | VectorMemory], stored: bool, tmp_path: Path
) -> None:
    provider = Provider()
    async with make(provider, journal=tmp_path / "a.db" if stored else None) as memory:
        await memory.update([Message.user(f"The sea is blue {n}") for n in range(9)])
        brain = Brain("react", memory, llm=provider, trace=True)
        await brain.run("Which colour has the sea?")
        calls = await memory.model_calls()
        assert {c.purpose for c in calls} in ({None, "summary"}, {None, "embedding"})
        read = len(provider.read)
        replay = await brain.replay()
        assert replay.equal, str(replay)
        assert len(provider.read) == read


@pytest.mark.parametrize("stored", [False, True])
async def test_a_replay_finds_the_vectors_of_texts_whose_secrets_were_hidden(
    stored: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    provider, secret = Provider(), "sk-abcdefgh12345678"
    async with vector(provider, journal=tmp_path / "a.db" if stored else None) as memory:
        await memory.update([Message.user(f"The sea is blue {n}") for n in range(9)])
        brain = Brain("react", memory, llm=provider, trace=True)
        await brain.run(f"Which colour has the sea, {secret}?")
        embedded = [c for c in await memory.model_calls() if c.purpose == "embedding"]
        assert embedded
        assert not any(secret in m.content for call in embedded for m in call.messages)
        read = len(provider.read)
        replay = await brain.replay()
        assert replay.equal, str(replay)
        assert len(provider.read) == read
    assert "could not be embedded" not in caplog.text


async def test_a_summary_of_a_step_that_was_interrupted_is_given_again(tmp_path: Path) -> None:
    provider = Provider()
    async with summary(provider, journal=tmp_path / "a.db") as memory:
        await memory.update([Message.user(f"The sea is blue {n}") for n in range(9)])
        brain = Brain("react", memory, llm=ScriptedLLM([OSError("down"), "Blue."]), trace=True)
        with pytest.raises(OSError, match="down"):
            await brain.run("Which colour has the sea?")
        await brain.resume()
        *summaries, failed, answered = await memory.model_calls()
        assert {call.purpose for call in summaries} == {"summary"}
        assert failed.part != answered.part
        replay = await brain.replay()
        assert replay.equal, str(replay)


async def test_a_run_without_a_trace_replays_with_an_embedder_on_this_machine(
    tmp_path: Path,
) -> None:
    class Local(OwnEmbedder):
        local = True

        async def embed(self, texts: Sequence[str]) -> Any:
            return [[float(len(text)), 1.0, 2.0] for text in texts]

    memory = VectorMemory(embedder=Local(Provider()), recent=2, journal=tmp_path / "a.db")
    await memory.update([Message.user(f"The sea is blue {n}") for n in range(9)])
    brain = Brain("react", memory, llm=ScriptedLLM(["Blue."]))
    result = await brain.run("Which colour has the sea?")
    assert result.usage.requests > 1
    assert (await brain.replay()).equal


async def test_a_summariser_of_ones_own_that_uses_a_model_call_is_counted() -> None:
    provider = Provider()

    async def summarize(previous: str, messages: list[Message]) -> str:
        call = provider.call([Message.user(previous), *messages])
        async for _ in call.events():
            pass
        return call.text

    memory = SummaryMemory(summarize=summarize, max_messages=4, keep=3)
    await memory.update([Message.user(f"Earlier {n}") for n in range(4)])
    ledger = UsageLedger()
    result = await Brain("react", memory, llm=ScriptedLLM(["Yes."]), hooks=[ledger]).run("Go")
    assert ledger.by_purpose()["summary"].cost == pytest.approx(provider.money)
    assert result.usage.requests == 2
    again = UsageLedger()
    again.load(ledger.to_dict())
    assert again.by_purpose() == ledger.by_purpose()


async def test_outside_of_a_run_a_memory_calls_its_models_as_ever() -> None:
    provider = Provider()
    for make in (summary, vector):
        memory = make(provider)
        await memory.set_goal("Hello")
        await memory.update([Message.user(f"Earlier {n}") for n in range(9)])
        assert len(await memory.context()) < 9
        assert memory.run_work is None
    assert provider.money > 0


@pytest.mark.parametrize("purpose", ["summary", "embedding"])
async def test_a_call_that_is_cut_off_counts_as_one_of_unknown_cost(purpose: str) -> None:
    class Hanging(Provider):
        """Begins to work, and does not come to an end."""

        async def stream(self, *args: Any, **options: Any) -> AsyncIterator[Piece]:
            yield "The first words"
            begun.set()
            await anyio.sleep_forever()

        async def embed(self, texts: Sequence[str]) -> EmbeddingResult:
            if texts == ["Hello"]:
                begun.set()
                await anyio.sleep_forever()
            return await super().embed(texts)

    begun, ledger = anyio.Event(), UsageLedger()
    memory = (summary if purpose == "summary" else vector)(Hanging())
    await memory.update([Message.user(f"Earlier {n}") for n in range(9)])
    brain = Brain("react", memory, llm=ScriptedLLM(["Hm."]), hooks=[ledger])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(brain.run, "Hello")
        await begun.wait()
        tasks.cancel_scope.cancel()
    assert brain.last_result is not None
    assert brain.last_result.usage.requests == ledger.by_purpose()[purpose].unpriced_requests == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("name", first_of(MEMORIES, "layered over auto", "user over summary"))
@pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning:litellm")
async def test_a_provider_over_http_takes_what_the_ledger_says(name: str, tmp_path: Path) -> None:
    price, prompt, wrote = 0.000_01, 100, 20
    ledger, total = UsageLedger(), 0.0
    with OpenAIServer([Reply(SAYS, usage=(prompt, wrote))] * 99) as server:

        def taken() -> float:
            chats = sum("messages" in request.body for request in server.requests)
            read = sum(len("".join(request.body.get("input", ()))) for request in server.requests)
            return (chats * (prompt + wrote) + read) * price

        llm = Remote(server.url, price)
        async with Brain("react", MEMORIES[name](llm, tmp_path), llm=llm, hooks=[ledger]) as brain:
            for turn in range(5):
                asked = f"{HOUSE}. Question {turn}. " + "Please answer it. " * 9
                total += (await brain.run(asked)).usage.cost or 0.0
                assert total == pytest.approx(taken(), abs=1e-9)
        await llm.aclose()
    assert ledger.usage().cost == pytest.approx(taken(), abs=1e-9)  # with what closing cost


@pytest.mark.parametrize("limit", ["budget", "limit"])
async def test_a_limit_ends_the_run_of_a_memory_that_cannot_do_without_its_model(
    limit: str,
) -> None:
    provider = Provider()
    ledger = UsageLedger([UsageBudget("process", cost=0.001)] if limit == "budget" else [])
    limits = Limits(max_cost=0.001) if limit == "limit" else Limits()
    brain = Brain("reflexion", OwnMemory(provider), llm=provider, hooks=[ledger], limits=limits)
    result = await brain.run("Go on")
    assert result.stop_reason == ("budget" if limit == "budget" else "max_cost")


@pytest.mark.parametrize("error", [Refused("Not these"), ValueError("a bug")])
async def test_an_embedding_is_paid_for_also_if_a_hook_fails_behind_it(error: Exception) -> None:
    class Fails(Hook):
        def after_embedding(self, request: EmbeddingRequest, usage: Usage) -> None:
            raise error

    provider, ledger = Provider(), UsageLedger()
    memory = vector(provider)
    brain = Brain("react", memory, llm=ScriptedLLM(["Blue."]), hooks=[Fails(), ledger])
    await brain.run("Which colour has the sea?")
    assert provider.money > 0
    assert ledger.by_purpose()["embedding"].known_cost == pytest.approx(provider.money)


class Looks(State):
    """Looks something up in a memory that is not the run's."""

    def __init__(self, look: Callable[[], Awaitable[object]]) -> None:
        self.look = look

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        await self.look()
        yield "Seen."

    async def next_state(self, memory: Memory) -> None:
        return None


class Says(State):
    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        yield "Seen."

    async def next_state(self, memory: Memory) -> None:
        return None


class LooksTogether(Looks):
    """Looks it up in an async function beside others."""

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        async def look(_: object) -> object:
            return await self.look()

        together = Together([look])
        yield together
        yield "Seen."


class LooksAround(Looks):
    """Looks it up in one of the methods that are called beside ``run``."""

    def __init__(self, look: Callable[[], Awaitable[object]], method: str) -> None:
        super().__init__(look)
        self.method = method

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        yield "Seen."

    async def on_enter(self, memory: Memory) -> None:
        await self._look("on_enter")

    async def on_exit(self, memory: Memory) -> None:
        await self._look("on_exit")

    async def next_state(self, memory: Memory) -> None:
        await self._look("next_state")

    async def _look(self, method: str) -> None:
        if method == self.method:
            await self.look()


class LooksAtTheEnd(Looks):
    """Looks it up when its stream is closed."""

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        try:
            yield "Seen."
            yield "Not read."
        finally:
            await self.look()


AROUND = ["on_enter", "next_state", "on_exit"]
WHERE = [
    "tool",
    "sync tool",
    "tool that may need approval",
    "state",
    "function of an item",
    "sync function of an item",
    "goal of an item",
    "together",
    "check of an answer",
    *AROUND,
]


def looking(
    where: str, look: Callable[[], Coroutine[Any, Any, object]], memory: Memory, **options: Any
) -> Brain:
    """Return a brain that looks something up in one run."""

    async def in_loop(_: object = None) -> str:
        return repr(await look())

    def in_thread(_: object = None) -> str:
        return repr(from_thread.run(look))

    async def sees_nothing(_: object) -> None:
        await look()

    if where in AROUND:
        return Brain(single(LooksAround(look, where)), memory, **options)
    if where == "check of an answer":
        llm = ScriptedLLM([['"Done."', FREE]])
        asking = AskState(llm, "Answer.", output_type=str, check=sees_nothing, on_done=None)
        return Brain(single(asking), memory, **options)
    if "approval" in where:
        llm = ScriptedLLM([[Action(name="pay"), FREE], ["Done.", FREE]])
        paying = tool(name="pay", requires_approval=sees_nothing)(lambda: "paid")
        return Brain("react", memory, llm=llm, tools=[paying], **options)
    if where == "goal of an item":
        mapped = MapState(lambda _: ["one"], single(Says()), goal=in_loop)
        return Brain(single(mapped), memory, **options)
    if "tool" in where:
        llm = ScriptedLLM([[Action(name="look"), FREE], ["Done.", FREE]])
        tools = [tool(name="look")(partial(in_thread if "sync" in where else in_loop, None))]
        return Brain("react", memory, llm=llm, tools=tools, **options)
    if "item" in where:
        body = in_thread if "sync" in where else in_loop
        return Brain(single(MapState(lambda _: ["one"], body)), memory, **options)
    state = LooksTogether if where == "together" else Looks
    return Brain(single(state(look)), memory, **options)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("what", ["memory", "facts", "news", "learned"])
async def test_what_a_run_looks_up_in_another_memory_is_work_of_it(what: str, where: str) -> None:
    provider, ledger, journal = Provider(), UsageLedger(), RamJournal()
    book = vector(provider)
    known = user(provider, journal=journal, tenant="ann")
    await book.update([Message.user(f"The sea is blue {n}") for n in range(3)])
    await known.remember("Likes tea")
    async with MessagesMemory(journal=journal, tenant="ann", session="chat") as chat:
        await chat.update([Message.user(HOUSE)])
    looks: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "memory": partial(book.recall, "sea"),
        "facts": partial(known.recall, "tea"),
        "news": partial(known.is_new, "I have a blue boat"),
        "learned": partial(known.learn, "chat"),
    }
    hooks, before = [ledger, HideMail()], provider.money
    result = await looking(where, looks[what], MessagesMemory(), hooks=hooks).run("Go")
    assert provider.money > before
    assert result.usage.cost == pytest.approx(provider.money - before)
    assert ledger.usage().cost == pytest.approx(provider.money - before)
    assert what != "learned" or "learn" in ledger.by_purpose()


async def test_what_a_state_looks_up_when_its_stream_is_left_is_work_of_the_run() -> None:
    provider, ledger = Provider(), UsageLedger()
    book = vector(provider)
    await book.update([Message.user(f"The sea is blue {n}") for n in range(3)])
    before = provider.money
    brain = Brain(single(LooksAtTheEnd(partial(book.recall, "sea"))), hooks=[ledger])
    async with brain.stream("Go") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                break
    assert provider.money > before
    assert run.result is not None
    assert run.result.usage.cost == pytest.approx(provider.money - before)
    assert ledger.usage().cost == pytest.approx(provider.money - before)


class LooksUpGoals(MessagesMemory):
    """Looks up what it is given in another memory."""

    def __init__(self, book: VectorMemory) -> None:
        super().__init__()
        self.book = book

    async def set_goal(self, goal: str | Message) -> None:
        await self.book.recall("sea")
        await super().set_goal(goal)

    async def update(self, messages: list[Message]) -> list[str] | Any:
        await self.book.recall("sea")
        return await super().update(messages)


async def test_what_a_memory_looks_up_in_another_one_is_work_of_the_run() -> None:
    provider, ledger = Provider(), UsageLedger()
    book = vector(provider)
    await book.update([Message.user(f"The sea is blue {n}") for n in range(3)])
    before = provider.money
    brain = Brain(single(Says()), LooksUpGoals(book), hooks=[ledger])
    async with brain.stream("Go") as run:
        run.send("Look again.")
        async for _ in run:
            pass
    assert provider.money > before
    assert run.result is not None
    assert run.result.usage.cost == pytest.approx(provider.money - before)
    assert ledger.usage().cost == pytest.approx(provider.money - before)


@pytest.mark.parametrize("where", [where for where in WHERE if "tool" not in where])
async def test_a_replay_gives_again_what_a_state_or_function_looked_up(where: str) -> None:
    provider = Provider()
    books: list[VectorMemory] = []

    async def new_book() -> None:
        books.append(vector(provider, rerank=model_reranker(provider)))
        texts = [f"The sea is blue {n}" for n in range(3)]
        await books[-1].update([Message.user(text, id=text) for text in texts])

    await new_book()
    memory = MessagesMemory(journal=RamJournal())

    async def look() -> str:
        return (await books[-1].recall("sea", k=1))[0].message.content

    brain = looking(where, look, memory, trace=True)
    result = await brain.run("Go")
    asked = where == "check of an answer"
    assert result.usage.requests == 2 + asked  # an embedding, a reranking, and what is checked
    await new_book()
    paid = provider.money
    replay = await brain.replay()
    assert replay.equal, str(replay)
    assert provider.money == paid


@pytest.mark.parametrize("method", AROUND)
async def test_a_budget_that_is_used_up_beside_run_ends_the_run(method: str) -> None:
    provider, memory = Provider(), MessagesMemory()
    notes = OwnMemory(provider)

    async def look() -> None:
        await notes.context()  # reaches the limit
        await notes.context()

    brain = Brain(single(LooksAround(look, method)), memory, limits=Limits(max_cost=PRICE))
    result = await brain.run("Go")
    assert result.stop_reason == "max_cost"
    assert result.answer == ("" if method == "on_enter" else "Seen.")
    assert result.usage.requests == 1
    assert result.usage.cost == pytest.approx(provider.money)
    assert (await brain.resume()).stop_reason == "max_cost"


async def test_what_a_function_beside_a_state_writes_is_written_at_once() -> None:
    memory = MessagesMemory(journal=(journal := RamJournal()), session="chat")
    written: list[str] = []

    async def look() -> None:
        await memory.update([Message.assistant("Noted.")])
        async with MessagesMemory(journal=journal, session="chat", readonly=True) as reader:
            written.extend(message.content for message in await reader.dump())

    await looking("together", look, memory).run("Go")
    assert "Noted." in written


async def search_of_bob(book: VectorMemory, hooks: Sequence[Hook], *, state: bool) -> None:
    """Search a memory that another run uses, or has used, in a run of Bob."""
    memory, text = MessagesMemory(tenant="bob"), "Bob's secret question"
    where = "state" if state else "tool"
    await looking(where, lambda: book.recall(text, k=1), memory, hooks=hooks).run("Go")


class Embedded(Hook):
    """Lists the texts that a run has embedded."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def before_embedding(self, request: EmbeddingRequest) -> None:
        self.texts += request.texts


@pytest.mark.parametrize("state", [False, True], ids=["tool", "state"])
@pytest.mark.parametrize("ended", [False, True], ids=["inside", "ended"])
async def test_a_search_is_work_of_the_run_that_searches_not_of_another_that_used_the_memory(
    ended: bool,
    state: bool,
) -> None:
    provider, ledger = Provider(), UsageLedger()
    anns, bobs = Embedded(), Embedded()
    book = vector(provider, tenant="ann")
    await book.update([Message.user(f"The sea is blue {n}") for n in range(3)])

    @tool
    async def ask_bob() -> str:
        await search_of_bob(book, [ledger, bobs], state=state)
        return "Asked."

    action = [] if ended else [[Action(name="ask_bob"), FREE]]
    llm = ScriptedLLM([*action, ["Done.", FREE]])
    ann = Brain("react", book, tools=[ask_bob], llm=llm, hooks=[ledger, anns])
    await ann.run("Go")
    if ended:
        await search_of_bob(book, [ledger, bobs], state=state)
    secret = "Bob's secret question"
    assert bobs.texts == [secret]
    assert secret not in anns.texts
    assert ledger.usage(user="bob").cost == pytest.approx(len(secret) * PRICE)


async def test_after_a_run_a_search_outside_of_runs_still_belongs_to_it() -> None:
    provider, ledger, hook = Provider(), UsageLedger(), Embedded()
    book = vector(provider)
    await book.update([Message.user(f"The sea is blue {n}") for n in range(3)])
    result = await Brain(
        "react", book, llm=ScriptedLLM([["Done.", FREE]]), hooks=[ledger, hook]
    ).run("Go")
    paid, usage = ledger.usage().requests, result.usage
    await book.recall("A question of the program")
    assert hook.texts[-1] == "A question of the program"
    assert ledger.usage().requests == paid + 1
    assert result.usage == usage


class SumsUpGoals(OwnMemory):
    """Calls its model when a run begins, outside of states."""

    async def set_goal(self, goal: str | Message) -> None:
        await super().set_goal(goal)
        await self.context()


async def test_a_run_inside_a_tool_pays_for_its_own_memory() -> None:
    anns, bobs = UsageLedger(), UsageLedger()
    memory = SumsUpGoals(Provider())

    @tool
    async def ask_bob() -> str:
        return (await Brain(single(Looks(memory.goal)), memory, hooks=[bobs]).run("Sea?")).answer

    llm = ScriptedLLM([[Action(name="ask_bob"), FREE], ["Done.", FREE]])
    await Brain("react", tools=[ask_bob], llm=llm, hooks=[anns]).run("Go")
    assert bobs.by_purpose()["notes"].requests == 1
    assert "notes" not in anns.by_purpose()


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("recall_user", {"query": "house"}),
        ("remember", {"text": "Has a red house", "quote": HOUSE}),
        ("forget", {"text": "house"}),
    ],
)
async def test_the_tools_of_a_users_memory_are_work_of_the_run(
    name: str, args: dict[str, Any]
) -> None:
    provider, ledger = Provider(), UsageLedger()
    known = user(provider, mode="agent")
    await known.remember("Likes tea")
    before = provider.money
    llm = ScriptedLLM([[Action(name=name, args=args), FREE], ["Done.", FREE]])
    async with Brain("react", llm=llm, user=known, hooks=[ledger]) as brain:
        result = await brain.run(HOUSE)
    assert provider.money > before
    assert result.usage.cost == pytest.approx(provider.money - before)
    assert ledger.usage().cost == pytest.approx(provider.money - before)


async def test_learning_in_a_net_counts_what_it_embeds() -> None:
    provider, ledger, journal = Provider(), UsageLedger(), RamJournal()
    known = user(provider, journal=journal, tenant="ann")
    await known.remember("Likes tea")
    async with MessagesMemory(journal=journal, tenant="ann", session="chat") as chat:
        await chat.update([Message.user(HOUSE), Message.assistant("I see.")])
    memory, before = MessagesMemory(tenant="ann"), provider.money
    result = await Brain(learn(provider, user=known), memory, hooks=[ledger]).run("chat")
    assert result.usage.cost == pytest.approx(provider.money - before)
    assert [fact.text for fact in await known.facts()] == ["Likes tea", "Has a red house"]
    assert set(ledger.by_purpose()) == {"learn", "embedding"}
