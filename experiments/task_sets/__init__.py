"""The task sets that are shipped, and readers of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.experiments.task_sets.game_of_24 import game24 as game24
    from agent_brain.experiments.task_sets.generated import basics as basics
    from agent_brain.experiments.task_sets.generated import long_memory as long_memory
    from agent_brain.experiments.task_sets.generated import user_memory as user_memory
    from agent_brain.experiments.task_sets.word_problems import gsm8k as gsm8k
