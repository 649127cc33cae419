"""Hooks around model calls and tool calls."""

from __future__ import annotations


class HookChain:
    """The hooks of a run, in order."""
