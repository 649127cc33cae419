"""Cassettes: real model calls, recorded once and replayed without a network."""

from __future__ import annotations

from agent_brain.testing.cassettes.errors import (
    CassetteError,
    CassetteFileError,
    CassetteMismatchError,
)
from agent_brain.testing.cassettes.llm import CassetteLLM
from agent_brain.testing.cassettes.tape import Cassette, cassette, record, replay

__all__ = [
    "Cassette",
    "CassetteError",
    "CassetteFileError",
    "CassetteLLM",
    "CassetteMismatchError",
    "cassette",
    "record",
    "replay",
]
