"""The ``agent-brain`` command: ``app`` has its commands, ``options`` what they share."""

from __future__ import annotations

try:
    from agent_brain.cli.start import main
except KeyboardInterrupt:  # before there is anything to end
    raise SystemExit(130) from None

__all__ = ["main"]
