"""An offline demo model and its tools, for real runs without a key, network or cost.

:class:`DemoLLM` is a small rule-based program, not a language model, and says so.
"""

from __future__ import annotations

from agent_brain.demo.llm import DemoLLM
from agent_brain.demo.toolset import demo_tools

__all__ = ["DemoLLM", "demo_tools"]
