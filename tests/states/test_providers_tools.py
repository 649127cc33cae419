"""A provider's own tools are sent with those of the brain, and what they find is kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from agent_brain import Brain, LiteLLM, MessagesMemory, tool
from agent_brain.memories import Attachment, Role
from agent_brain.states import (
    ActionRequested,
    AttachmentReceived,
    CitedSource,
    Finish,
    Hook,
    ModelResponse,
    ProviderToolCalled,
    SourcesCited,
    StateDefinitionError,
)
from agent_brain.states.models.litellm.attempt import MOST_PAUSES
from agent_brain.states.models.llm import ProviderCall
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import ToolDefinitionError
from tests.states.test_litellm_wire import (
    CLAUDE,
    GEMINI,
    claude,
    claude_text,
    gemini,
    model_of,
    sse,
)
from tests.support.openai_server import OpenAIServer, Page, Raw, Reply

pytestmark = pytest.mark.asyncio
# litellm looks at every attribute of its pydantic models, also at deprecated ones
LITELLM_LOOKS = pytest.mark.filterwarnings(
    "ignore:Accessing the 'model_:DeprecationWarning:litellm"
)

SEARCH = {"type": "web_search"}
CITED = {
    "type": "url_citation",
    "url_citation": {
        "url": "https://example.org/a",
        "title": "A",
        "start_index": 0,
        "end_index": 4,
    },
}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}, "index": 0}


@pytest_asyncio.fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:
    """Close the connections to the server."""
    yield
    await LiteLLM("openai/local").aclose()


@tool
def look_up(city: str) -> str:
    """Look up a city."""
    return city


def chunk(delta: dict[str, Any], **more: Any) -> Raw:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    head = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "local"}
    return Raw(json.dumps({**head, **more, "choices": [choice]}))


def model(server: OpenAIServer, **params: Any) -> LiteLLM:
    return LiteLLM("openai/local", api_base=server.url, api_key="none", **params)


@pytest.mark.parametrize("tools", [[], [look_up]], ids=["alone", "beside the brain's"])
async def test_tools_of_the_provider_are_sent(tools: list[Any]):
    with OpenAIServer([Reply("Oslo.")]) as server:
        await Brain("react", tools=tools, llm=model(server, tools=[SEARCH])).run("Which city?")

    sent = server.requests[0].body["tools"]
    assert sent[0] == SEARCH
    assert [each["function"]["name"] for each in sent[1:]] == [each.name for each in tools]


CITATIONS: dict[str, tuple[list[Raw], list[Any]]] = {
    "annotations": ([chunk({"annotations": [CITED]})], [CITED]),
    "annotations again in each chunk": ([chunk({"annotations": [CITED]})] * 3, [CITED]),
    "links of the whole response": (
        [chunk({"content": " It is."}, citations=["https://example.org/a"])],
        ["https://example.org/a"],
    ),
}


@pytest.mark.parametrize(("chunks", "kept"), CITATIONS.values(), ids=CITATIONS)
async def test_citations_are_kept_with_the_message(chunks: list[Raw], kept: list[Any]):
    with OpenAIServer([Reply("Oslo.", *chunks)]) as server:
        result = await Brain("react", llm=model(server)).run("Which city?")

    assert result.answer.startswith("Oslo.")
    assert result.messages[-1].metadata["citations"] == kept


CITES: dict[str, tuple[Any, list[CitedSource]]] = {
    "Chat Completions": ([CITED], [CitedSource("https://example.org/a", "A", ((0, 4),))]),
    "Responses": ([CITED["url_citation"]], [CitedSource("https://example.org/a", "A", ((0, 4),))]),
    "Anthropic": (
        [{"type": "web_search_result_location", "url": "http://e.org", "cited_text": "Oslo"}],
        [CitedSource("http://e.org")],
    ),
    "Perplexity": (
        ["https://e.org/1", "https://e.org/2"],
        [CitedSource("https://e.org/1"), CitedSource("https://e.org/2")],
    ),
    "each once, with its title": (
        ["https://e.org", {"url": "https://e.org", "title": "E"}, {"url": "https://e.org"}],
        [CitedSource("https://e.org", "E")],
    ),
    "no page": (
        [
            {"url": "javascript:alert(1)", "title": "bad"},
            {"url": "data:text/html,x"},
            {"url": "https:"},
            {"url": "https://e.org/ javascript:x"},
            {"url": "//e.org"},
            {"url": None},
            {"url_citation": None},
            {"file_id": "f1"},
            "e.org",
            5,
        ],
        [],
    ),
    "no title": ([{"url": "HTTPS://e.org", "title": {}}], [CitedSource("HTTPS://e.org")]),
    "no list": ({"url": "https://e.org"}, []),
}


@pytest.mark.parametrize(("cited", "pages"), CITES.values(), ids=CITES)
async def test_pages_that_a_model_cites_are_told_and_kept_in_one_form(
    cited: Any, pages: list[CitedSource]
):
    turn = ["Oslo.", Finish("stop", metadata={"citations": cited})]
    brain = Brain("react", llm=ScriptedLLM([turn]))
    events = await events_of(brain, "Which city?")

    assert sources_in(events) == ([pages] if pages else [])
    kept = (await brain.memory.dump())[-1].metadata.get("sources", [])
    assert kept == [{"url": page.url, "title": page.title} for page in pages]
    told = [event.kind for event in events]
    if pages:
        assert told[told.index("sources_cited") :][:2] == ["sources_cited", "usage_reported"]


async def test_pictures_are_kept_with_the_message():
    with OpenAIServer([Reply("Here it is.", chunk({"images": [PICTURE]}))]) as server:
        result = await Brain("react", llm=model(server)).run("Draw a city")

    assert result.attachments == (Attachment(media_type="image/png", data="AAAA"),)
    assert "images" not in result.messages[-1].metadata


async def test_a_picture_alone_is_an_answer():
    with OpenAIServer([Reply("", chunk({"images": [PICTURE]})), Reply("Oslo.")]) as server:
        brain = Brain("react", llm=model(server))
        result = await brain.run("Draw a city")
        await brain.run("Which one is it?")

    assert (result.answer, result.steps) == ("", 2)
    assert [each.data for each in result.messages[-1].attachments] == ["AAAA"]
    sent = server.requests[1].body["messages"]
    assert [each["content"] for each in sent[1:]] == [
        "Draw a city",
        "[picture]",
        "Which one is it?",
    ]


async def test_what_was_kept_is_not_sent_back():
    replies = [Reply("Oslo.", chunk({"annotations": [CITED]})), Reply("Yes.")]
    with OpenAIServer(replies) as server:
        brain = Brain("react", llm=model(server))
        await brain.run("Which city?")
        await brain.run("Sure?")

    assert "example.org" not in json.dumps(server.requests[1].body)


SEARCHED = {"type": "web_search_result", "url": "https://e.org", "title": "E"}
CLAUDE_SEARCHES: list[dict[str, Any]] = [
    {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {},
        "deltas": [{"type": "input_json_delta", "partial_json": '{"query": "oslo"}'}],
    },
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [{**SEARCHED, "encrypted_content": "sealed"}],
    },
    {
        "type": "text",
        "text": "",
        "deltas": [
            {"type": "text_delta", "text": "Oslo."},
            {"type": "citations_delta", "citation": {"url": "https://e.org", "cited_text": "Oslo"}},
        ],
    },
]


def items(*given: dict[str, Any], text: str = "Oslo.") -> Page:
    """A response of OpenAI's Responses API."""
    cited = {"type": "output_text", "text": text, "annotations": [CITED["url_citation"]]}
    said = {"type": "message", "id": "m", "role": "assistant", "content": [cited]}
    head = {"id": "r", "object": "response", "created_at": 1, "model": "gpt-4.1", "output": []}
    usage = {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}
    done = [
        {"type": "response.output_item.done", "output_index": n, "item": item}
        for n, item in enumerate(given)
    ]
    return sse(
        {"type": "response.created", "response": {**head, "status": "in_progress"}},
        *done,
        {"type": "response.output_text.delta", "output_index": 9, "delta": text},
        {"type": "response.output_item.done", "output_index": 9, "item": said},
        {"type": "response.completed", "response": {**head, "status": "completed", "usage": usage}},
    )


async def events_of(brain: Brain[Any], goal: str) -> list[Any]:
    async with brain.stream(goal) as run:
        return [event async for event in run]


def calls_in(events: list[Any]) -> list[tuple[Any, ...]]:
    called = (event for event in events if isinstance(event, ProviderToolCalled))
    return [(event.name, event.args, event.result) for event in called]


class WithoutCitations(Hook):
    async def after_model_call(self, request: Any, response: ModelResponse) -> ModelResponse:
        return replace(response, text="Paris.", metadata={})


async def test_a_hook_that_changes_a_response_says_what_it_cites():
    turn = ["Oslo.", Finish("stop", metadata={"citations": ["https://e.org"]})]
    result = await Brain("react", llm=ScriptedLLM([turn]), hooks=[WithoutCitations()]).run("Which?")

    message = result.messages[-1]
    assert (message.content, message.metadata) == ("Paris.", {})


def sources_in(events: list[Any]) -> list[list[CitedSource]]:
    return [[*event.sources] for event in events if isinstance(event, SourcesCited)]


@LITELLM_LOOKS
async def test_calls_of_claudes_tools_are_told_kept_and_sent_back():
    pages = [claude(*deepcopy(CLAUDE_SEARCHES)), claude(claude_text("Yes."))]
    with OpenAIServer(pages) as server:
        llm = model_of(server, CLAUDE, provider_tools=["web_search"])
        brain = Brain("react", tools=[look_up], llm=llm)
        events = await events_of(brain, "Which city?")
        message = (await brain.memory.dump())[-1]
        await brain.run("Sure?")
        await llm.aclose()

    assert calls_in(events) == [("web_search", {"query": "oslo"}, [SEARCHED])]
    assert not [e for e in events if isinstance(e, ActionRequested)], "it is not for us to run"
    assert not message.tool_calls
    assert message.metadata["citations"] == [{"url": "https://e.org", "cited_text": "Oslo"}]
    assert sources_in(events) == [[CitedSource("https://e.org")]]
    called = message.metadata["provider_calls"]
    assert [call["name"] for call in called] == ["web_search"]  # type: ignore[union-attr, call-overload, index]
    first, second = (request.body for request in server.requests)
    assert first["tools"][0] == {"type": "web_search_20250305", "name": "web_search"}
    blocks = second["messages"][1]["content"]
    assert [block["type"] for block in blocks] == [
        "text",
        "server_tool_use",
        "web_search_tool_result",
    ]
    assert blocks[2]["content"][0]["encrypted_content"] == "sealed"


def search_number(n: int) -> list[dict[str, Any]]:
    called, found = deepcopy(CLAUDE_SEARCHES[:2])
    return [{**called, "id": f"srvtoolu_{n}"}, {**found, "tool_use_id": f"srvtoolu_{n}"}]


@LITELLM_LOOKS
@pytest.mark.parametrize("words", ["Let me look. ", ""])
async def test_a_response_that_claude_pauses_is_sent_back_and_continued(words: str):
    said = [claude_text(words)] if words else []
    pages = [
        claude(*said, *search_number(1), stop="pause_turn"),
        claude(*search_number(2), stop="pause_turn"),
        claude(claude_text("Oslo.")),
    ]
    with OpenAIServer(pages) as server:
        llm = model_of(server, CLAUDE, provider_tools=["web_search"])
        brain = Brain("react", llm=llm)
        result = await brain.run("Which city?")
        await llm.aclose()

    assert (result.answer, result.finish_reason) == (f"{words}Oslo.", "stop")
    assert result.usage.requests == 3
    [message] = [m for m in result.messages if m.role is Role.ASSISTANT]
    assert [call["id"] for call in message.metadata["provider_calls"]] == [  # type: ignore[union-attr, call-overload, index]
        "srvtoolu_1",
        "srvtoolu_2",
    ]
    *_, third = (request.body["messages"] for request in server.requests)
    assert [m["role"] for m in third] == ["user", "assistant"]
    kinds = [block["type"] for block in third[1]["content"]]
    searches = ["server_tool_use", "web_search_tool_result"] * 2
    assert kinds == [*(["text"] if words else []), *searches]


@LITELLM_LOOKS
async def test_a_response_that_is_paused_again_and_again_is_cut_off():
    pages = [claude(*search_number(n), stop="pause_turn") for n in range(MOST_PAUSES + 1)]
    pages[0] = claude(claude_text("I look."), *search_number(0), stop="pause_turn")
    with OpenAIServer(pages) as server:
        llm = model_of(server, CLAUDE, provider_tools=["web_search"])
        result = await Brain("react", llm=llm).run("Which city?")
        await llm.aclose()

    assert (result.answer, result.finish_reason) == ("I look.", "length")
    assert len(server.requests) == MOST_PAUSES + 1


@LITELLM_LOOKS
async def test_places_of_citations_are_those_of_the_whole_text():
    first = {"type": "output_text", "text": "First. ", "annotations": []}
    page = items({"type": "message", "id": "a", "role": "assistant", "content": [first]})
    delta = {"type": "response.output_text.delta", "output_index": 0, "delta": "First. "}
    before = f"data: {json.dumps(delta)}\n\n"
    at = page.body.index("data: ", 1)
    page = Page(page.body[:at] + before + page.body[at:], page.content_type)
    with OpenAIServer([page]) as server:
        llm = model_of(server, "openai/responses/gpt-4.1", provider_tools=["web_search"])
        events = await events_of(Brain("react", llm=llm), "Which city?")
        await llm.aclose()

    [[cited]] = sources_in(events)
    assert [events[-1].answer[start:end] for start, end in cited.places] == ["Oslo"]


@LITELLM_LOOKS
async def test_calls_of_openais_tools_are_told_with_pictures_and_citations():
    page = items(
        {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "oslo"}},
        {
            "type": "code_interpreter_call",
            "id": "c",
            "code": "1+1",
            "outputs": [{"type": "logs", "logs": "2"}],
        },
        {"type": "image_generation_call", "id": "i", "result": "iVBORw0KGgo="},
        {"type": "function_call", "id": "f", "call_id": "f", "name": "x", "arguments": "{}"},
    )
    with OpenAIServer([page]) as server:
        names = ["web_search", "code_execution"]
        llm = model_of(server, "openai/responses/gpt-4.1", provider_tools=names)
        brain = Brain("react", llm=llm)
        events = await events_of(brain, "Which city?")
        await llm.aclose()

    assert calls_in(events) == [
        ("web_search", {"type": "search", "query": "oslo"}, None),
        ("code_execution", {"code": "1+1"}, [{"type": "logs", "logs": "2"}]),
        ("image_generation", {}, None),
    ]
    picture = Attachment(media_type="image/png", data="iVBORw0KGgo=")
    assert [e.attachment for e in events if isinstance(e, AttachmentReceived)] == [picture]
    message = (await brain.memory.dump())[-1]
    assert message.attachments == (picture,)
    assert message.metadata["citations"] == [CITED["url_citation"]]
    assert sources_in(events) == [[CitedSource("https://example.org/a", "A", ((0, 4),))]]
    sent = [each["type"] for each in server.requests[0].body["tools"]]
    assert sent == ["web_search", "code_interpreter"]


@LITELLM_LOOKS
async def test_calls_of_geminis_tools_are_told_and_its_pictures_sent_back():
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
    ]
    page = gemini(*parts)
    searched = {"groundingMetadata": {"webSearchQueries": ["oslo"]}}
    grounded = Page(
        page.body.replace('"finishReason"', f'{json.dumps(searched)[1:-1]}, "finishReason"'),
        page.content_type,
    )
    with OpenAIServer([grounded, gemini({"text": "Yes."})]) as server:
        llm = model_of(server, GEMINI, provider_tools=["web_search", "code_execution"])
        brain = Brain("react", llm=llm)
        events = await events_of(brain, "Draw a city")
        await brain.run("Bluer")
        await llm.aclose()

    assert calls_in(events) == [
        (
            "code_execution",
            {"language": "PYTHON", "code": "print(1)"},
            parts[1]["codeExecutionResult"],
        ),
        ("web_search", {"queries": ["oslo"]}, None),
    ]
    first, second = (request.body for request in server.requests)
    assert {"googleSearch": {}} in first["tools"]
    assert any("ecution" in json.dumps(each) for each in first["tools"])
    drawn = second["contents"][1]["parts"]
    assert [next(iter(part.values()))["data"] for part in drawn if "inline_data" in part] == [
        "iVBORw0KGgo="
    ]


async def test_gemini_counts_bytes_and_its_sources_have_places_in_characters():
    page = gemini({"text": "Ærlig: Øst er øst."})
    support = {"segment": {"startIndex": 8, "endIndex": 21}, "groundingChunkIndices": [0]}
    web = {"web": {"uri": "https://e.org/a", "title": "A"}}
    found = {"groundingMetadata": {"groundingChunks": [web], "groundingSupports": [support]}}
    body = page.body.replace('"finishReason"', f'{json.dumps(found)[1:-1]}, "finishReason"')
    with OpenAIServer([Page(body, page.content_type)]) as server:
        llm = model_of(server, GEMINI, provider_tools=["web_search"])
        events = await events_of(Brain("react", llm=llm), "Where?")
        await llm.aclose()
    [cited] = [event for event in events if isinstance(event, SourcesCited)]
    assert cited.sources == (CitedSource("https://e.org/a", "A", ((7, 18),)),)
    assert "Ærlig: Øst er øst."[7:18] == "Øst er øst."


REFUSED = {
    "another API": (
        "openai/gpt-4.1",
        ["web_search"],
        r"no web_search of its provider over this API: name it 'openai/responses/gpt-4.1'. In its",
    ),
    "none": (
        "mistral/mistral-large-latest",
        ["code_execution"],
        "give the brain a tool: calculate",
    ),
    "Bedrock": ("bedrock/anthropic.claude-3-7-sonnet", ["web_search"], "has no web_search"),
    "OpenRouter": ("openrouter/anthropic/claude-sonnet-4", ["web_search"], "http_get_tool"),
    "Vertex AI": ("vertex_ai/claude-sonnet-4", ["web_search", "code_execution"], "no code_exec"),
    "unknown": (CLAUDE, ["telepathy"], "provider_tools has 'telepathy': it may have 'web_search'"),
    "no list": (CLAUDE, "web_search", r"such as \['web_search'\]"),
    "number": (CLAUDE, 5, r"such as \['web_search'\]"),
}


@pytest.mark.parametrize(("name", "tools", "why"), REFUSED.values(), ids=REFUSED)
async def test_a_tool_that_a_provider_has_not_is_refused_with_a_reason(
    name: str, tools: Any, why: str
):
    with pytest.raises(StateDefinitionError, match=why):
        LiteLLM(name, provider_tools=tools)


@pytest.mark.parametrize(
    "tools", [[look_up], 5, SEARCH, "web_search"], ids=["function", "number", "dict", "name"]
)
async def test_tools_of_the_brain_are_no_tools_of_the_provider(tools: Any):
    with pytest.raises(StateDefinitionError, match="functions are tools of the brain"):
        LiteLLM(CLAUDE, tools=tools)


NAMED = {"type": "web_search_20250305", "name": "web_search"}


@pytest.mark.parametrize(
    "given",
    [{"provider_tools": ["web_search"] * 2}, {"provider_tools": ["web_search"], "tools": [NAMED]}],
    ids=["by name", "in both forms"],
)
async def test_a_tool_of_the_provider_is_given_once(given: Any):
    with pytest.raises(StateDefinitionError, match="give each tool of the provider once"):
        LiteLLM(CLAUDE, **given)


@pytest.mark.parametrize("given", [{"provider_tools": ["web_search"]}, {"tools": [NAMED]}])
async def test_a_tool_of_the_brain_has_no_name_of_a_providers_tool(given: Any):
    @tool
    def web_search(query: str) -> str:
        """Search."""
        return query

    llm = LiteLLM(CLAUDE, **given)
    with pytest.raises(ToolDefinitionError, match="'web_search' has the name of one"):
        Brain("react", tools=[web_search], llm=llm)
    brain = Brain("react", llm=llm)
    with pytest.raises(ToolDefinitionError, match="give it another name"):
        await brain.run("Search.", tools=[web_search])
    brain.memory.add_tools([web_search])  # later, as those of a server are
    with pytest.raises(ToolDefinitionError, match="give it another name"):
        await brain.run("Search.")


async def test_a_fallback_must_have_the_tools_too():
    with pytest.raises(StateDefinitionError, match="'groq/x' has no web_search"):
        LiteLLM(CLAUDE, provider_tools=["web_search"], fallbacks=["groq/x"])


async def test_calls_and_pictures_of_any_model_are_recorded_and_replayed(tmp_path: Any):
    metadata: dict[str, Any] = {"images": [PICTURE], "citations": ["https://e.org"]}
    call = ProviderCall("p", "web_search", {"query": "oslo"}, "E")
    llm = ScriptedLLM([[call, "Oslo.", Finish("stop", metadata=metadata)]])
    memory = MessagesMemory(journal=tmp_path / "brain.db", session="ann")
    async with Brain("react", memory, llm=llm, trace=True) as brain:
        events = await events_of(brain, "Which city?")
        again = await brain.replay()

    assert calls_in(events) == [("web_search", {"query": "oslo"}, "E")]
    assert brain.last_result is not None
    kept = brain.last_result.messages[-1].metadata["provider_calls"]
    assert kept == [{"id": "p", "name": "web_search", "args": {"query": "oslo"}, "result": "E"}]
    assert again.equal, str(again)
    assert calls_in([*again.events]) == calls_in(events)
    assert sources_in([*again.events]) == sources_in(events) == [[CitedSource("https://e.org")]]


async def test_a_picture_may_be_an_address_alone():
    addresses: Any = ["data:image/gif;base64,AAAA", "https://e.org/a.png", "", 3]
    llm = ScriptedLLM([["Here.", Finish("stop", metadata={"images": addresses})]])
    result = await Brain("react", llm=llm).run("Draw a city")
    assert result.attachments == (
        Attachment(media_type="image/gif", data="AAAA"),
        Attachment(media_type="image/png", url="https://e.org/a.png"),
    )
