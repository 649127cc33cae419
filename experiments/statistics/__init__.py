"""Intervals, tests and power for experiments: pure functions, each with its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.experiments.statistics.power import mcnemar_power as mcnemar_power
    from agent_brain.experiments.statistics.power import tasks_needed as tasks_needed
    from agent_brain.experiments.statistics.rates import Interval as Interval
    from agent_brain.experiments.statistics.rates import clustered_wilson as clustered_wilson
    from agent_brain.experiments.statistics.rates import holm as holm
    from agent_brain.experiments.statistics.rates import mcnemar_exact as mcnemar_exact
    from agent_brain.experiments.statistics.rates import mean_bootstrap as mean_bootstrap
    from agent_brain.experiments.statistics.rates import paired_interval as paired_interval
    from agent_brain.experiments.statistics.rates import sign_flip as sign_flip
    from agent_brain.experiments.statistics.rates import wilson as wilson
