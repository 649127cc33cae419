"""Tools for testing states, nets, memories, models and tools without a network.

Names are imported at first use, because every test suite loads the pytest plugin of this package in
an environment where the library is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.testing.cassettes import Cassette as Cassette
    from agent_brain.testing.cassettes import CassetteError as CassetteError
    from agent_brain.testing.cassettes import CassetteFileError as CassetteFileError
    from agent_brain.testing.cassettes import CassetteMismatchError as CassetteMismatchError
    from agent_brain.testing.cassettes import cassette as cassette
    from agent_brain.testing.cassettes import export_cassette as export_cassette
    from agent_brain.testing.cassettes import record as record
    from agent_brain.testing.cassettes import replay as replay
    from agent_brain.testing.conformance.check import Check as Check
    from agent_brain.testing.conformance.journal import journal_conformance as journal_conformance
    from agent_brain.testing.conformance.memory import memory_conformance as memory_conformance
    from agent_brain.testing.conformance.model import llm_conformance as llm_conformance
    from agent_brain.testing.conformance.tool import tool_conformance as tool_conformance
    from agent_brain.testing.differences import normalize_events as normalize_events
    from agent_brain.testing.experiment_runner import ExperimentRunner as ExperimentRunner
    from agent_brain.testing.export import export_test as export_test
    from agent_brain.testing.exported_run import ExportError as ExportError
    from agent_brain.testing.fake_memory import FakeMemory as FakeMemory
    from agent_brain.testing.models import CassetteLLM as CassetteLLM
    from agent_brain.testing.models import ModelCall as ModelCall
    from agent_brain.testing.models import RealModelError as RealModelError
    from agent_brain.testing.models import ScriptedLLM as ScriptedLLM
    from agent_brain.testing.models import ScriptError as ScriptError
    from agent_brain.testing.models import Turn as Turn
    from agent_brain.testing.models import no_real_models as no_real_models
    from agent_brain.testing.net_run import NetRun as NetRun
    from agent_brain.testing.net_run import run_net as run_net
    from agent_brain.testing.state_run import StateRun as StateRun
    from agent_brain.testing.state_run import run_state as run_state
    from agent_brain.testing.tool_spy import SpiedCall as SpiedCall
    from agent_brain.testing.tool_spy import ToolSpy as ToolSpy
