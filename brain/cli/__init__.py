"""The ``agent-brain`` command: ``app`` has its commands, ``options`` their options."""

from __future__ import annotations

from agent_brain.cli.start import main

__all__ = ["main"]
