"""How far an experiment is: live on terminals, as lines now and then elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from agent_brain.cli.exit_codes import notify
from agent_brain.cli.sanitize import sanitize
from agent_brain.common.text import count_of, cut_line

if TYPE_CHECKING:
    from agent_brain.experiments import CaseResult, Progress

INTERVAL = 10.0  # seconds between two lines where there is no terminal
MAX_ERROR = 300  # characters of the error of a case


@contextlib.contextmanager
def shown_progress(*, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Yield what shows the progress on stderr, if anything should.

    Meanwhile what is printed goes to stderr too, because stdout is for the report.
    """
    console = Console(stderr=True)
    with contextlib.redirect_stdout(sys.stderr):
        if quiet:
            yield None
        elif console.is_terminal and not console.is_dumb_terminal:
            with Picture(console) as picture:
                yield picture
        else:
            yield Lines()


@dataclass(slots=True)
class Lines:
    """Writes a line at the begin, at the end and every ten seconds; and the first crash."""

    clock: Callable[[], float] = time.monotonic
    _next: float = 0.0
    _crashed: bool = False

    def __call__(self, progress: Progress) -> None:
        """Write how far it is, unless that was written a moment ago."""
        if not self._crashed and (error := crash_of(progress.last)):
            self._crashed = True
            notify(error, kind="Note")
        now = self.clock()
        if now >= self._next or progress.cases_done == progress.cases:
            self._next = now + INTERVAL
            notify(", ".join([_cases(progress), *_facts(progress)]), kind="")


class Picture(Live):
    """Shows a bar, what is known, and the last crash, as wide as the terminal is.

    Use it as a context manager; at the end it is removed.
    """

    def __init__(self, console: Console) -> None:
        self._progress: Progress | None = None
        self._since = 0.0
        self._crash = ""
        super().__init__(console=console, transient=True, get_renderable=self._picture)

    def __call__(self, progress: Progress) -> None:
        """Show how far it is."""
        self._progress, self._since = progress, time.monotonic()
        self._crash = crash_of(progress.last) or self._crash

    def _picture(self) -> Group:
        if self._progress is None:
            return Group()
        progress = later(self._progress, time.monotonic() - self._since)
        facts = Text(" · ".join([_cases(progress), *_facts(progress)]))
        bar = ProgressBar(total=progress.cases, completed=progress.cases_done)
        return Group(facts, bar, *([Text(self._crash, style="red")] if self._crash else []))


def later(progress: Progress, seconds: float) -> Progress:
    """Return the same progress some seconds later."""
    left = progress.seconds_left
    return replace(
        progress,
        seconds=progress.seconds + seconds,
        seconds_left=None if left is None else max(left - seconds, 0.0),
    )


def crash_of(case: CaseResult | None) -> str | None:
    """Return which case raised an error, and which error; None if it raised none."""
    if case is None or not case.error:
        return None
    return sanitize(f"{case.cell} {case.task}: {cut_line(case.error, MAX_ERROR)}")


def _cases(progress: Progress) -> str:
    return f"{progress.cases_done} of {count_of(progress.cases, 'case')}"


def _facts(progress: Progress) -> Iterator[str]:
    yield f"{progress.cells_done} of {count_of(progress.cells, 'cell')} complete"
    yield f"{progress.passed} passed"
    if progress.cost:
        yield f"${progress.cost:.4f}"
    yield duration(progress.seconds)
    if progress.seconds_left is not None and progress.cases_done < progress.cases:
        yield f"about {duration(progress.seconds_left)} left"


def duration(seconds: float) -> str:
    """Return a time in words, such as ``"1 h 5 min"``, ``"3 min"`` or ``"12 s"``."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
