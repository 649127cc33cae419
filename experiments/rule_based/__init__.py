"""A model of rules for the tasks of this package: it answers only from what it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.experiments.rule_based.llm import RuleBasedLLM as RuleBasedLLM
