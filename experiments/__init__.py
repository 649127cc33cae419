"""Experiments: which net, which memory, which model for your tasks.

::

    from agent_brain.experiments import Experiment, basics

    experiment = Experiment(
        nets=["react", "plan_execute"],
        memories=["messages", "vector"],
        models=["openai/gpt-4.1-mini"],
        tasks=basics(),
    )
    report = await experiment.run("results")
    print(report.to_markdown())
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.experiments.case import CaseResult as CaseResult
    from agent_brain.experiments.case import Cell as Cell
    from agent_brain.experiments.case import ExperimentInfo as ExperimentInfo
    from agent_brain.experiments.case import Outcome as Outcome
    from agent_brain.experiments.case import TaskInfo as TaskInfo
    from agent_brain.experiments.checks import Check as Check
    from agent_brain.experiments.checks import Contains as Contains
    from agent_brain.experiments.checks import Equals as Equals
    from agent_brain.experiments.checks import Function as Function
    from agent_brain.experiments.checks import JsonMatches as JsonMatches
    from agent_brain.experiments.checks import Matches as Matches
    from agent_brain.experiments.checks import Number as Number
    from agent_brain.experiments.checks import Reply as Reply
    from agent_brain.experiments.checks import Verdict as Verdict
    from agent_brain.experiments.experiment import Experiment as Experiment
    from agent_brain.experiments.judge import Judge as Judge
    from agent_brain.experiments.loading import load_tasks as load_tasks
    from agent_brain.experiments.plan import Plan as Plan
    from agent_brain.experiments.report.figures import CellReport as CellReport
    from agent_brain.experiments.report.figures import Comparison as Comparison
    from agent_brain.experiments.report.figures import Rate as Rate
    from agent_brain.experiments.report.report import Report as Report
    from agent_brain.experiments.report.report import load_report as load_report
    from agent_brain.experiments.rule_based.llm import RuleBasedLLM as RuleBasedLLM
    from agent_brain.experiments.running.runner import Progress as Progress
    from agent_brain.experiments.task import Task as Task
    from agent_brain.experiments.task import Turn as Turn
    from agent_brain.experiments.task_sets.generated import basics as basics
    from agent_brain.experiments.task_sets.generated import long_memory as long_memory
    from agent_brain.experiments.task_sets.generated import user_memory as user_memory
    from agent_brain.experiments.task_sets.published import game24 as game24
    from agent_brain.experiments.task_sets.published import gsm8k as gsm8k
    from agent_brain.experiments.user_memories import one_conversation as one_conversation
    from agent_brain.experiments.user_memories import with_user as with_user
