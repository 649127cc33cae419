"""The ``agent-brain`` command. What a user types is in ``app``; one module each for the rest."""

from __future__ import annotations

from agent_brain.cli.start import main

__all__ = ["main"]
