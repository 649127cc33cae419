"""Experiments of a test, in a folder of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_brain.experiments import Experiment, Report


class ExperimentRunner:
    """Runs the experiments of one test, and keeps their reports. The fixture ``experiment``.

    ::

        @pytest.mark.anyio
        async def test_it_remembers(experiment):
            report = await experiment(nets="react", memories=["messages", "vector"], tasks=TASKS)
            assert report.cell("react/vector").passed.low > 0.6

    Attributes:
        folder: The folder of its experiments, each in a folder by its number: ``1``, ``2``, …
            Cases that are kept there already are not run again.
        reports: The reports so far, in order.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reports: list[Report] = []
        self._begun = 0

    async def __call__(self, **options: Any) -> Report:
        """Run an experiment; returns its report, after writing report.md and report.html.

        Args:
            **options: Those of :class:`~agent_brain.experiments.Experiment`.

        Raises:
            ExperimentError: It cannot be run as described.
        """
        experiment, folder = self._begin(options)
        return self._keep(await experiment.run(folder))

    def run_sync(self, **options: Any) -> Report:
        """Run an experiment in a test that is not async; otherwise the same."""
        experiment, folder = self._begin(options)
        return self._keep(experiment.run_sync(folder))

    def _begin(self, options: dict[str, Any]) -> tuple[Experiment, Path]:
        from agent_brain.experiments import Experiment

        experiment = Experiment(**options)
        self._begun += 1
        return experiment, self.folder / str(self._begun)

    def _keep(self, report: Report) -> Report:
        report.save()
        self.reports.append(report)
        return report

    def sections(self) -> list[tuple[str, str]]:
        """Return a title and a text for each report, as sections of the test's report."""
        found = []
        for report in self.reports:
            path = f"{report.folder}/report.html"
            found.append((f"experiment {report.info.name}", f"{report.to_markdown()}\n{path}"))
        return found
