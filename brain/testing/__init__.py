"""What a state, a net or a memory needs to be tested without a model and without a network."""

from __future__ import annotations

from agent_brain.testing.fake_memory import FakeMemory
from agent_brain.testing.guard import RealModelError, no_real_models
from agent_brain.testing.run_state import StateRun, run_state
from agent_brain.testing.scripted import ModelCall, ScriptedLLM, ScriptError, Turn

__all__ = [
    "FakeMemory",
    "ModelCall",
    "RealModelError",
    "ScriptError",
    "ScriptedLLM",
    "StateRun",
    "Turn",
    "no_real_models",
    "run_state",
]
