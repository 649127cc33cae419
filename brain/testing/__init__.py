"""Tools for testing states, nets, memories, models and tools without a network.

Names are imported on first use, because every test suite loads the pytest plugin of this package in
an environment where the library is installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_brain.testing.cassette_format import (
        CassetteError,
        CassetteFileError,
        CassetteMismatchError,
    )
    from agent_brain.testing.cassettes import Cassette, cassette, record, replay
    from agent_brain.testing.conformance import (
        Check,
        journal_conformance,
        llm_conformance,
        memory_conformance,
        tool_conformance,
    )
    from agent_brain.testing.export import export_test
    from agent_brain.testing.export_events import ExportError
    from agent_brain.testing.fake_memory import FakeMemory
    from agent_brain.testing.net_run import NetRun, run_net
    from agent_brain.testing.normalize import normalize_events
    from agent_brain.testing.real_models import CassetteLLM, RealModelError, no_real_models
    from agent_brain.testing.scripted import ModelCall, ScriptedLLM, ScriptError, Turn
    from agent_brain.testing.state_run import StateRun, run_state
    from agent_brain.testing.tool_spy import SpiedCall, ToolSpy

_NAMES = {
    "cassette_format": "CassetteError CassetteFileError CassetteMismatchError",
    "cassettes": "Cassette cassette record replay",
    "conformance": (
        "Check journal_conformance llm_conformance memory_conformance tool_conformance"
    ),
    "export": "export_test",
    "export_events": "ExportError",
    "fake_memory": "FakeMemory",
    "net_run": "NetRun run_net",
    "normalize": "normalize_events",
    "real_models": "CassetteLLM RealModelError no_real_models",
    "scripted": "ModelCall ScriptError ScriptedLLM Turn",
    "state_run": "StateRun run_state",
    "tool_spy": "SpiedCall ToolSpy",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Cassette",
    "CassetteError",
    "CassetteFileError",
    "CassetteLLM",
    "CassetteMismatchError",
    "Check",
    "ExportError",
    "FakeMemory",
    "ModelCall",
    "NetRun",
    "RealModelError",
    "ScriptError",
    "ScriptedLLM",
    "SpiedCall",
    "StateRun",
    "ToolSpy",
    "Turn",
    "cassette",
    "export_test",
    "journal_conformance",
    "llm_conformance",
    "memory_conformance",
    "no_real_models",
    "normalize_events",
    "record",
    "replay",
    "run_net",
    "run_state",
    "tool_conformance",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"agent_brain.testing.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
