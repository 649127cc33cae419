"""The extra ``otel``: loaded when it is used, and named when it is missing."""

from __future__ import annotations

import subprocess
import sys


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_logging_does_not_load_opentelemetry() -> None:
    program = (
        "import sys; from agent_brain.telemetry import LogRuns, RunFilter; LogRuns(); RunFilter(); "
        "print('opentelemetry' in sys.modules)"
    )
    assert run(program) == "False"


def test_a_missing_extra_is_named() -> None:
    program = """
import sys
sys.modules["opentelemetry"] = None
from agent_brain.errors import BrainDefinitionError
import agent_brain.telemetry
try:
    agent_brain.telemetry.OpenTelemetry
except BrainDefinitionError as error:
    print(error)
"""
    assert run(program).endswith("pip install 'agent-brain[otel]'")


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    assert run("import agent_brain.telemetry as t; print(hasattr(t, 'Nothing'))") == "False"
