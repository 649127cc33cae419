"""An offline demo model and its tools, for real runs without a key, network or cost.

:class:`DemoLLM` is a small rule-based program, not a language model, and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.demo.llm import DemoLLM as DemoLLM
    from agent_brain.demo.toolset import demo_tools as demo_tools
