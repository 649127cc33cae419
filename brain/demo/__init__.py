"""The offline demo model and its tools: true runs without a key, a network or a bill.

:class:`DemoLLM` is a small rule-based program, not a language model, and says so.
"""

from __future__ import annotations

from agent_brain.demo.llm import DemoLLM
from agent_brain.demo.toolset import demo_tools

__all__ = ["DemoLLM", "demo_tools"]
