"""The error of a failed call, chosen by the provider's message, not only by its status."""

from __future__ import annotations

import pytest

from agent_brain.memories.message import Message
from agent_brain.states import (
    ContextWindowError,
    LiteLLM,
    LLMAuthenticationError,
    LLMBadRequestError,
    LLMError,
    LLMQuotaError,
    LLMRateLimitError,
    LLMServerError,
)
from tests.support.openai_server import Failure, OpenAIServer, Page, Raw, Reply, Response

pytestmark = [
    pytest.mark.asyncio,
    # litellm looks at every attribute of its pydantic models, also at deprecated ones
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning:litellm"),
]


async def failure_of(
    response: Response, model: str = "openai/scripted", *, retries: int = 0
) -> tuple[LLMError, int]:
    """The error, and how often the provider was asked."""
    with OpenAIServer([response, response]) as server:
        llm = LiteLLM(
            model, api_base=server.url, api_key="some-secret-key", retries=retries, backoff=0.001
        )
        with pytest.raises(LLMError) as caught:
            _ = [piece async for piece in llm.stream([Message.user("Hello")])]
        await llm.aclose()
    return caught.value, len(server.requests)


# --- too long ---

TOO_LONG = [
    (400, "This model's maximum context length is 4097 tokens. However, you requested 5000."),
    (400, "Your input exceeds the context window of this model. Please adjust your input."),
    (400, "prompt is too long: 202095 tokens > 200000 maximum"),
    (400, "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000"),
    (413, "Request exceeds the maximum size"),
    (
        400,
        "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
    ),
    (400, "the input token count is 40000 but model only supports up to 32768"),
    (400, "Input is too long for requested model."),
    (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
    (400, "Please reduce the length of the messages or completion."),
    (413, "Request too large for model `llama` on tokens per minute (TPM): Limit 6000"),
    (400, "too many tokens: total number of tokens in the prompt cannot exceed 128000"),
    (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    (400, "the request exceeds the available context size. try increasing the context size"),
    (500, "the request exceeds the available context size. try increasing the context size"),
    (400, "This endpoint's maximum context length is 32768 tokens. However, you requested 42832."),
    (400, "Please reduce the length of the messages. Current length is 9000 while limit is 8192"),
    (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    (400, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"),
    (422, "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000"),
]


@pytest.mark.parametrize(("status", "words"), TOO_LONG)
async def test_a_conversation_that_is_too_long_is_known_by_the_words(
    status: int, words: str
) -> None:
    error, asked = await failure_of(Failure(status, words), retries=1)
    assert type(error) is ContextWindowError
    assert asked == 1


async def test_a_conversation_that_is_too_long_is_known_by_its_code() -> None:
    error, _ = await failure_of(Failure(400, "No.", "context_length_exceeded"))
    assert type(error) is ContextWindowError


@pytest.mark.parametrize(
    "page",
    [
        Page('{"error": {"message": "Request too large"}}', "application/json", 413),
        Page("<html><title>413 Request Entity Too Large</title></html>", status=413),
    ],
    ids=["words", "page"],
)
async def test_a_request_that_a_gateway_finds_too_large_is_too_long(page: Page) -> None:
    error, asked = await failure_of(page, retries=1)
    assert type(error) is ContextWindowError
    assert asked == 1


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro"])
async def test_a_conversation_that_is_too_long_is_known_in_other_protocols(model: str) -> None:
    words = "prompt is too long: 202095 tokens > 200000 maximum"
    body = (
        f'{{"type": "error", "error": {{"type": "invalid_request_error", "message": "{words}"}}}}'
    )
    error, _ = await failure_of(Page(body, "application/json", 400), model)
    assert type(error) is ContextWindowError


async def test_a_request_that_is_larger_than_a_minute_allows_is_too_long() -> None:
    words = (
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 41000. The "
        "input or output tokens must be reduced in order to run successfully."
    )
    error, asked = await failure_of(Failure(429, words, "rate_limit_exceeded"), retries=1)
    assert type(error) is ContextWindowError
    assert asked == 1


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (400, "max_tokens is too large: 100000. At most 4096 completion tokens.", None),
        (400, "Invalid 'user': string too long. Expected a string with maximum length 64.", None),
        (429, "Too many tokens, please wait before trying again.", LLMRateLimitError),
        (401, "Incorrect API key provided: the context window is closed", LLMAuthenticationError),
    ],
)
async def test_other_lengths_are_not_those_of_the_conversation(
    status: int, words: str, kind: type[LLMError] | None
) -> None:
    error, _ = await failure_of(Failure(status, words))
    assert type(error) is (kind or LLMBadRequestError)


async def test_a_stream_that_fails_in_the_middle_says_so_too() -> None:
    too_long = Raw('{"error": {"message": "No.", "code": "context_length_exceeded"}}')
    used_up = Raw('{"error": {"message": "No.", "type": "insufficient_quota"}}')
    assert type((await failure_of(Reply(too_long)))[0]) is ContextWindowError
    assert type((await failure_of(Reply(used_up)))[0]) is LLMQuotaError


# --- used up ---

OPENAI_QUOTA = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("status", "words", "code"),
    [
        (429, OPENAI_QUOTA, "insufficient_quota"),
        (429, OPENAI_QUOTA, None),
        (402, "Insufficient Balance", None),
        (402, "This request requires more credits", None),
        (400, "Your credit balance is too low to access the Anthropic API.", None),
        (403, "Your team has either used all available credits or reached its limit.", None),
        (403, "You have reached your monthly spending limit", None),
        (400, "Billing hard limit has been reached", "billing_hard_limit_reached"),
        (429, "Quota exceeded: GenerateRequestsPerDayPerProjectPerModel-FreeTier", None),
        (429, "Quota exceeded for metric: free_tier_requests, limit: 0", None),
    ],
)
async def test_a_quota_that_is_used_up_is_named_and_not_tried_again(
    status: int, words: str, code: str | None
) -> None:
    error, asked = await failure_of(Failure(status, words, code), retries=1)
    assert type(error) is LLMQuotaError
    assert str(error).startswith("The account's quota or credit is used up: ")
    assert asked == 1


async def test_a_quota_of_a_minute_is_a_rate_limit() -> None:
    words = f"{OPENAI_QUOTA} Please retry in 0.001s."
    error, asked = await failure_of(Failure(429, words), retries=1)
    assert type(error) is LLMRateLimitError
    assert asked == 2


async def test_a_wait_that_is_asked_for_in_the_body_is_kept() -> None:
    words = 'Quota exceeded. "retryDelay": "120s"'
    error, asked = await failure_of(Failure(429, words), retries=1)
    assert asked == 1
    assert "asks to wait 120 s" in str(error)


async def test_what_is_not_allowed_is_not_called_a_wrong_key() -> None:
    error, asked = await failure_of(Failure(403, "Country not supported"), retries=1)
    assert type(error) is LLMAuthenticationError
    assert str(error).startswith("The provider does not allow the request: Country not supported")
    assert asked == 1


# --- pages and other bodies that are not an answer ---

PAGE = "<!DOCTYPE html><html><head><title>{}</title></head><body><p>Go away</p></body></html>"


@pytest.mark.parametrize("model", ["openai/scripted", "anthropic/claude-sonnet-4-5"])
@pytest.mark.parametrize(
    ("status", "title", "kind"),
    [
        (502, "502 Bad Gateway", LLMServerError),
        (403, "Attention Required!", LLMBadRequestError),
        (404, "Not Found", LLMBadRequestError),
    ],
)
async def test_a_page_of_a_gateway_is_named(
    model: str, status: int, title: str, kind: type[LLMError]
) -> None:
    error, _ = await failure_of(Page(PAGE.format(title), status=status), model)
    assert type(error) is kind
    assert f"it sent an HTML page ('{title}'); a gateway may have answered" in str(error)
    assert "Go away" not in str(error)


@pytest.mark.parametrize("model", ["openai/scripted", "anthropic/claude-sonnet-4-5"])
async def test_a_page_that_came_as_a_success_is_named(model: str) -> None:
    error, _ = await failure_of(Page(PAGE.format("Sign in")), model)
    assert type(error) is LLMServerError
    assert "sent text/html instead of a streamed answer" in str(error)
    assert "check api_base" in str(error)


async def test_an_answer_that_is_not_streamed_is_named() -> None:
    error, _ = await failure_of(Page('{"choices": []}', "application/json"))
    assert "sent application/json instead of a streamed answer" in str(error)


async def test_an_empty_response_is_tried_again() -> None:
    with OpenAIServer([Page("", "text/event-stream"), Reply("Hi")]) as server:
        llm = LiteLLM("openai/x", api_base=server.url, api_key="some-secret-key", backoff=0.001)
        pieces = [piece async for piece in llm.stream([Message.user("Hello")])]
        await llm.aclose()
    assert "Hi" in pieces
