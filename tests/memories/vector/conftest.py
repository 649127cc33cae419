"""A Chroma server for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.memories.vector.support import ChromaProcess, WordsEmbedder, chroma_process


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaProcess]:
    with chroma_process(tmp_path_factory.mktemp("server")) as process:
        yield process


@pytest.fixture
def embedder() -> WordsEmbedder:
    return WordsEmbedder()
