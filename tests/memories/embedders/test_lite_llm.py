from __future__ import annotations

import anyio
import pytest

from agent_brain import StuckPolicy
from agent_brain.common.errors import EventLoopError
from agent_brain.memories import VectorMemory
from agent_brain.memories.embedders import EmbeddingError, LiteLLMEmbedder, embed_all
from tests.support.openai_server import OpenAIServer

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning:litellm"),
]


def embedder_of(server, **options):
    return LiteLLMEmbedder("openai/scripted", api_base=server.url, api_key="secret", **options)


async def test_an_api_gives_one_vector_a_text_in_order():
    with OpenAIServer(dimension=5) as server:
        embedder = embedder_of(server, batch_size=2)
        matrix = await embed_all(embedder, ["one", "two", "three"])
        again = await embed_all(embedder, ["three"])
        await embedder.aclose()
    assert matrix.shape == (3, 5)
    assert again[0] == pytest.approx(matrix[2])
    assert [request.body["input"] for request in server.requests[:2]] == [["one", "two"], ["three"]]
    assert server.requests[0].body["model"] == "scripted"


async def test_a_failure_names_the_model_and_keeps_the_cause():
    with OpenAIServer() as server:
        address = server.url
    embedder = LiteLLMEmbedder("openai/scripted", api_base=address, api_key="secret", max_retries=0)
    with pytest.raises(EmbeddingError, match="openai/scripted") as caught:
        await embed_all(embedder, ["one"])
    await embedder.aclose()
    assert caught.value.__cause__ is not None


async def test_another_event_loop_is_refused_with_the_reason():
    def on_trio():
        anyio.run(embed_all, LiteLLMEmbedder("openai/x"), ["one"], backend="trio")

    with pytest.raises(EventLoopError, match="asyncio"):
        await anyio.to_thread.run_sync(on_trio)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("opneai/text-embedding-3-small", "there is no provider 'opneai'. Did you mean 'openai'?"),
        ("text-embeding-3-small", "Did you mean 'text-embedding-3-small'?"),
        ("openai", "is a provider: write 'openai/MODEL', as 'openai/text-embedding-3-small'"),
        ("openai/", "names no model"),
    ],
)
async def test_a_name_without_a_known_provider_is_refused_where_it_is_given(name, problem):
    for use in (lambda: VectorMemory(embedder=name), lambda: StuckPolicy(embedder=name)):
        with pytest.raises(EmbeddingError) as caught:
            use()
        assert problem in str(caught.value)


@pytest.mark.parametrize("name", ["text-embedding-3-small", "ollama/nomic-embed-text"])
async def test_a_name_that_only_its_provider_can_judge_is_taken(name):
    embedder = VectorMemory(embedder=name).embedder
    assert embedder is not None
    assert embedder.name == name
