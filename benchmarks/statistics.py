"""Whether the statistics of experiments hold what they claim, in simulated experiments.

    python -m benchmarks.statistics [--experiments 1000] [--seed 0] [--few]

Agents that pass a task with known probabilities do experiments of several sizes, with and without
repeats. Tasks differ in difficulty, partly for all agents alike. One agent is better than the base
by a planted difference; the others are as good as the base, and to find a difference for any of
them is false. Printed is, for each size:

- rates: the share of 95 % intervals of passed cases that contain the true rate, over all cells,
- differences: the same of the differences to the base; nan where reports give no interval,
- false: the share of experiments that found any difference that is not there, after Holm,
- found: the share of experiments that found the planted difference, after Holm.

The first table compares the number of tasks that a report says a difference needs with the share of
experiments of that size that find it.

The tables of few tasks (``--few``: these alone) are of experiments that were stopped, so that tasks
have different numbers of repeats, and of scores that are nearly all equal: a task scores 0 with a
small probability, and 0.9 otherwise, or about 0.8. Printed is the share of intervals of the
difference of mean scores that contain the true one, also for so few tasks that reports give none.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from math import nan
from statistics import NormalDist

import numpy as np

from agent_brain.experiments.case import CaseResult, Cell, ExperimentInfo, Outcome, TaskInfo
from agent_brain.experiments.report.figures import FEWEST
from agent_brain.experiments.report.report import Report
from agent_brain.experiments.statistics.power import tasks_needed
from agent_brain.experiments.statistics.rates import mean_bootstrap

STARTED = datetime(2026, 1, 1, tzinfo=UTC)
TIES, PLANTED = (0.65, 0.65, 0.65, 0.65, 0.65), (0.65, 0.95, 0.65, 0.65, 0.65)
LOWEST, HIGHEST = 0.4, 0.97  # of rates that are drawn for each experiment


@dataclass(frozen=True, kw_only=True)
class Agents:
    """Agents of known rates; the first is the base. Without rates, five are drawn."""

    rates: Sequence[float] = ()
    tasks: int
    repeat: int = 1
    stopped: float = 0.0  # share of the repeats after the first that were not run
    alike: float = 0.6  # how far repeats of a task agree: 0 not more than tasks do, 1 all the same
    shared: float = 0.5  # how much of a task's difficulty is the same for all agents

    def passes(self, rates: Sequence[float], dice: np.random.Generator) -> np.ndarray:
        """One experiment: agents × tasks × repeats. Each agent's rate is exactly the given one."""
        agents, tasks = len(rates), self.tasks
        hard = np.sqrt(self.shared) * dice.standard_normal((1, tasks, 1))
        hard = hard + np.sqrt(1 - self.shared) * dice.standard_normal((agents, tasks, 1))
        luck = dice.standard_normal((agents, tasks, self.repeat))
        tries = np.sqrt(self.alike) * hard + np.sqrt(1 - self.alike) * luck
        skills = [NormalDist().inv_cdf(rate) for rate in rates]
        passes: np.ndarray = tries < np.array(skills)[:, None, None]
        return passes

    def runs(self, agents: int, dice: np.random.Generator) -> np.ndarray:
        """Which cases were run, agents × tasks × repeats: at least one of each task."""
        found: np.ndarray = dice.random((agents, self.tasks, self.repeat)) >= self.stopped
        found[:, :, 0] = True
        return found


@cache
def info_of(agents: int, tasks: int, repeat: int) -> ExperimentInfo:
    names = {f"agent{n}": "" for n in range(agents)}
    return ExperimentInfo(
        nets=names,
        memories={"m": ""},
        models={"o": ""},
        tasks=tuple(TaskInfo(id=f"t{n}", turns=("?",)) for n in range(tasks)),
        base=Cell("agent0", "m", "o"),
        repeat=repeat,
        started=STARTED,
    )


@cache
def case_of(agent: int, task: int, repeat: int, passed: bool) -> CaseResult:
    return CaseResult(
        id=f"{agent}-{task}-{repeat}",
        net=f"agent{agent}",
        memory="m",
        model="o",
        task=f"t{task}",
        repeat=repeat,
        outcome=Outcome.PASSED if passed else Outcome.WRONG,
        score=float(passed),
        started=STARTED,
    )


def report_of(passes: np.ndarray, run: np.ndarray) -> Report:
    """The report of one experiment, of the cases that were run."""
    cases = [
        case_of(*place, bool(passed)) for place, passed in np.ndenumerate(passes) if run[place]
    ]
    return Report(info_of(*passes.shape), cases)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What many experiments showed, as shares."""

    rates: float
    differences: float
    false: float
    found: float
    wrong_way: float


def simulate(agents: Agents, experiments: int, seed: int) -> Seen:
    """Do so many experiments, and count where the report was right."""
    dice = np.random.default_rng(seed)
    rates = differences = false = found = wrong_way = all_rates = 0
    for _ in range(experiments):
        true = agents.rates or list(dice.uniform(LOWEST, HIGHEST, 5))
        base, *others = true
        report = report_of(agents.passes(true, dice), agents.runs(len(true), dice))
        rates += sum(
            one.passed.low <= rate <= one.passed.high
            for one, rate in zip(report.cells, true, strict=True)
        )
        all_rates += len(true)
        compared = list(zip(report.comparisons, others, strict=True))
        differences += sum(
            one.low <= rate - base <= one.high
            for one, rate in compared
            if one.low is not None and one.high is not None
        )
        false += any(one.significant for one, rate in compared if rate == base)
        found += any(
            one.significant and one.difference * (rate - base) > 0 for one, rate in compared
        )
        wrong_way += any(
            one.significant and one.difference * (rate - base) < 0 for one, rate in compared
        )
    return Seen(
        rates=rates / all_rates,
        differences=differences / (all_rates - experiments) if agents.tasks >= FEWEST else nan,
        false=false / experiments,
        found=found / experiments,
        wrong_way=wrong_way / experiments,
    )


def scores_held(
    tasks: int, failures: tuple[float, float], equal: bool, experiments: int, seed: int
) -> float:
    """Return the share of intervals of mean scores that contain the true difference.

    Args:
        tasks: How many tasks; each is done once to three times by each of two agents.
        failures: How likely a task scores 0, by agent.
        equal: All other scores are 0.9; else they are about 0.8, and each is another.
        experiments: How many.
        seed: Of the dice.
    """
    dice = np.random.default_rng(seed)
    agents = Agents(tasks=tasks, repeat=3, stopped=0.5)
    usual, held = 0.9 if equal else 0.8, 0
    for _ in range(experiments):
        scores = np.full((2, tasks, 3), usual)
        if not equal:
            scores += 0.05 * dice.uniform(-1, 1, scores.shape) + 0.1 * dice.uniform(
                -1, 1, (tasks, 1)
            )
        scores[dice.random((2, tasks)) < np.array(failures)[:, None]] = 0.0
        run = agents.runs(2, dice)
        first, second = (scores * run).sum(axis=2) / run.sum(axis=2)  # the mean of each task
        low, high = mean_bootstrap(first - second, lowest=-1, samples=2_000)
        held += low <= usual * (failures[1] - failures[0]) <= high
    return held / experiments


def print_few(experiments: int, seed: int) -> None:
    print("\nStopped experiments: two to three repeats, of which half were not run")
    print(f"{'tasks':>6}{'repeats':>9}{'rates':>9}{'differences':>13}{'false':>8}")
    for repeat in (2, 3):
        for tasks in (6, 10, 15, 20):
            agents = Agents(tasks=tasks, repeat=repeat, stopped=0.5)
            seen = simulate(agents, experiments, seed)
            tied = simulate(
                Agents(rates=TIES, tasks=tasks, repeat=repeat, stopped=0.5), experiments, seed
            )
            print(
                f"{tasks:>6}{repeat:>9}{seen.rates:>9.3f}{seen.differences:>13.3f}"
                f"{tied.false:>8.3f}",
                flush=True,
            )
    print("\nMean scores: a task fails with this probability, and has the usual score otherwise")
    print(f"{'base':>6}{'other':>7}{'tasks':>7}{'equal scores':>14}{'other scores':>14}")
    for failures in ((0.05, 0.0), (0.05, 0.05), (0.05, 0.15), (0.3, 0.1)):
        for tasks in (6, 20, 30, 60, 100):
            equal, other = (
                scores_held(tasks, failures, same, experiments, seed) for same in (True, False)
            )
            print(
                f"{failures[0]:>6.2f}{failures[1]:>7.2f}{tasks:>7}{equal:>14.3f}{other:>14.3f}",
                flush=True,
            )


def print_sizes(title: str, rates: Sequence[float], experiments: int, seed: int) -> None:
    print(f"\n{title}")
    print(f"{'tasks':>6}{'repeats':>9}{'rates':>9}{'differences':>13}{'false':>8}{'found':>8}")
    for repeat in (1, 2, 3):
        for tasks in (5, 10, 20, 40):
            seen = simulate(Agents(rates=rates, tasks=tasks, repeat=repeat), experiments, seed)
            print(
                f"{tasks:>6}{repeat:>9}{seen.rates:>9.3f}{seen.differences:>13.3f}"
                f"{seen.false:>8.3f}{seen.found:>8.3f}",
                flush=True,
            )


def shares(first: float, second: float) -> tuple[float, float]:
    """The shares of tasks that only the first and only the second of two agents passes."""
    passes = Agents(tasks=400_000).passes((first, second), np.random.default_rng(0))
    one, other = passes[:, :, 0]
    return float((one & ~other).mean()), float((other & ~one).mean())


def print_power(experiments: int, seed: int) -> None:
    print(f"\n{'planted':>14}{'tasks needed':>14}{'found with so many':>20}{'with half':>11}")
    for first, second in ((0.95, 0.5), (0.95, 0.65), (0.9, 0.65), (0.9, 0.75)):
        needed = tasks_needed(*shares(first, second))
        assert needed is not None
        whole, half = (
            simulate(Agents(rates=(second, first), tasks=tasks), experiments, seed).found
            for tasks in (needed, needed // 2)
        )
        print(f"{first:>6.2f} to {second:.2f}{needed:>14}{whole:>20.3f}{half:>11.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Do the statistics hold what they claim?")
    parser.add_argument("--experiments", type=int, default=1_000, help="of each size")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--few", action="store_true", help="the tables of few tasks alone")
    given = parser.parse_args()
    print_few(given.experiments, given.seed)
    if given.few:
        return
    print_power(given.experiments, given.seed)
    for title, rates in (
        ("A planted tie: all have 0.65", TIES),
        ("A planted difference: base 0.65, one 0.95, the others 0.65", PLANTED),
        (f"Five rates drawn anew for each experiment, {LOWEST} to {HIGHEST}", ()),
    ):
        print_sizes(title, rates, given.experiments, given.seed)


if __name__ == "__main__":
    main()
