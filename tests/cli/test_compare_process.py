"""``agent-brain compare`` as a process: signals, terminals, and what is shown meanwhile."""

from __future__ import annotations

import io
import re
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from agent_brain.cli.compare.progress import Lines, Picture, duration
from agent_brain.experiments import CaseResult, Outcome, Progress
from tests.cli.comparing import calls, compare
from tests.cli.support import Process, Terminal, without_styles


def wait(folder: Path, *options: str) -> tuple[str, ...]:
    """The arguments of a comparison whose second case waits."""
    (folder / "wait").touch()
    return ("compare", str(folder / "compare.toml"), *options)


def continued(folder: Path) -> str:
    """What the same command prints when the second case no longer waits."""
    (folder / "wait").unlink()
    done = compare(folder)
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_done_is_kept_after_a_signal(folder: Path, number: signal.Signals) -> None:
    with Process(*wait(folder)) as process:
        code, out, err = process.signal_after("waiting", number)

    assert (code, out) == (130, "")
    assert err.endswith(
        f"Stopped: The cases that ended are kept in {folder / 'compare-results'}: the same command "
        "continues\n"
    )
    assert "Traceback" not in err
    assert len((folder / "compare-results" / "cases.jsonl").read_text().splitlines()) == 1
    assert continued(folder).startswith("1 of 2 cases")
    assert len(calls(folder)) == 3, "the case that was cut short was done again, the other was not"


def test_a_second_ctrl_c_while_it_ends_shows_no_traceback(folder: Path) -> None:
    (folder / "twice").touch()
    with Process(*wait(folder)) as process:
        code, _, err = process.signal_after("waiting", signal.SIGINT)

    assert code == 130
    assert err.endswith("the same command continues\n")
    assert "Traceback" not in err
    assert continued(folder).startswith("1 of 2 cases")


def test_what_was_done_is_kept_when_the_process_is_killed(folder: Path) -> None:
    with Process(*wait(folder)) as process:
        code, *_ = process.signal_after("waiting", signal.SIGKILL)

    assert code == -signal.SIGKILL
    assert "1/2" in continued(folder)
    assert len(calls(folder)) == 3


def test_a_terminal_shows_how_far_it_is_until_ctrl_c(folder: Path) -> None:
    with Terminal(*wait(folder), env={"COLUMNS": "120", "LINES": "20"}) as terminal:
        terminal.expect("waiting")
        terminal.expect("1 of 2 cases · 0 of 1 cell complete · ")
        terminal.type("\x03")
        assert terminal.finish() == 130
    assert "the same command" in without_styles(terminal.seen)


# --- what is shown ---


def progress(done: int, *, error: str | None = None, left: float | None = 100.0) -> Progress:
    last = CaseResult(
        id="1",
        net="react",
        memory="messages",
        model="mini",
        task="sum",
        outcome=Outcome.CRASHED if error else Outcome.PASSED,
        score=0 if error else 1,
        error=error,
        started=datetime.now(UTC),
    )
    return Progress(
        cases_done=done,
        cases=100,
        cells_done=1,
        cells=4,
        passed=done,
        cost=0.25,
        seconds=75.0,
        seconds_left=left,
        last=last if done else None,
    )


def test_lines_come_every_ten_seconds_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 1.0, 9.9, 10.0, 12.0, 12.5])
    show = Lines(lambda: next(times))
    for done in (0, 1, 2, 3, 99, 100):
        show(progress(done, left=None if done == 0 else 3700.0))

    rest = "1 of 4 cells complete"
    assert capsys.readouterr().err.splitlines() == [
        f"0 of 100 cases, {rest}, 0 passed, $0.2500, 1 min",
        f"3 of 100 cases, {rest}, 3 passed, $0.2500, 1 min, about 1 h 2 min left",
        f"100 of 100 cases, {rest}, 100 passed, $0.2500, 1 min",
    ]


def test_the_first_crash_is_told_before_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    show = Lines(lambda: 1.0)
    for done in (0, 1, 2):
        show(progress(done, error="LLMQuotaError: no\nmoney \x1b[2J"))

    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == "Note: react/messages/mini sum: LLMQuotaError: no money ␛[2J"
    assert len(lines) == 2


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_the_picture_fits_into_a_terminal(width: int) -> None:
    written = io.StringIO()
    console = Console(file=written, width=width, force_terminal=True, color_system=None)
    picture = Picture(console)
    with picture:
        picture(progress(7, error=f"ValueError: {'x' * 500}\n\x1b[2J"))

    text = written.getvalue()
    assert "7 of 100 cases" in text
    assert "ValueError" in text
    assert "\x1b[2J" not in text
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", text).splitlines()  # it is drawn several times
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "0 s"),
        (59.4, "59 s"),
        (59.9, "1 min"),
        (75, "1 min"),
        (3599, "1 h 0 min"),
        (9000, "2 h 30 min"),
    ],
)
def test_a_time_is_told_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
