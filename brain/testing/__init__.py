"""What a state, a net, a memory, a model or a tool needs to be tested, without a network.

Names are imported when they are first used: the pytest plugin is part of this package, and every
test suite loads it in an environment where the library is installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_brain.testing.cassettes import (
        Cassette,
        CassetteError,
        CassetteFileError,
        CassetteLLM,
        CassetteMismatchError,
        cassette,
        record,
        replay,
    )
    from agent_brain.testing.clock import FakeClock, clock_backend, fake_clock
    from agent_brain.testing.conformance import (
        Check,
        journal_conformance,
        llm_conformance,
        memory_conformance,
        tool_conformance,
    )
    from agent_brain.testing.export import ExportError, export_test
    from agent_brain.testing.fake_memory import FakeMemory
    from agent_brain.testing.guard import RealModelError, no_real_models
    from agent_brain.testing.net_run import NetRun, run_net
    from agent_brain.testing.normalize import normalize_events
    from agent_brain.testing.scripted import ModelCall, ScriptedLLM, ScriptError, Turn
    from agent_brain.testing.state_run import StateRun, run_state
    from agent_brain.testing.tool_spy import SpiedCall, ToolSpy

# No module has the name of what it exports: importing it would put the module in its place.
_HOMES = {
    "Cassette": "cassettes",
    "CassetteError": "cassettes",
    "CassetteFileError": "cassettes",
    "CassetteLLM": "cassettes",
    "CassetteMismatchError": "cassettes",
    "Check": "conformance",
    "ExportError": "export",
    "FakeClock": "clock",
    "FakeMemory": "fake_memory",
    "ModelCall": "scripted",
    "NetRun": "net_run",
    "RealModelError": "guard",
    "ScriptError": "scripted",
    "ScriptedLLM": "scripted",
    "SpiedCall": "tool_spy",
    "StateRun": "state_run",
    "ToolSpy": "tool_spy",
    "Turn": "scripted",
    "cassette": "cassettes",
    "clock_backend": "clock",
    "export_test": "export",
    "fake_clock": "clock",
    "journal_conformance": "conformance",
    "llm_conformance": "conformance",
    "memory_conformance": "conformance",
    "no_real_models": "guard",
    "normalize_events": "normalize",
    "record": "cassettes",
    "replay": "cassettes",
    "run_net": "net_run",
    "run_state": "state_run",
    "tool_conformance": "conformance",
}

__all__ = [
    "Cassette",
    "CassetteError",
    "CassetteFileError",
    "CassetteLLM",
    "CassetteMismatchError",
    "Check",
    "ExportError",
    "FakeClock",
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
    "clock_backend",
    "export_test",
    "fake_clock",
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
