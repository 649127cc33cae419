"""Draw the two sequence diagrams of docs/architecture.md.

    python -m scripts.draw_sequences

Change the calls below when the code does, and run it again.
"""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from scripts.link_package import ROOT

LANE, ROW, TOP, LEFT = 130, 40, 70, 85
INK, SOFT, LINE, WRITE = "#1d2b45", "#52617a", "#2b5fb4", "#b4432b"


class Call(NamedTuple):
    """An arrow from one lane to another; ``writes`` marks an append to the journal."""

    start: int
    end: int
    text: str
    writes: bool = False


MESSAGE_LANES = (
    ("your program", ""),
    ("brain/", "brain run engine"),
    ("states/", "reasoning acting"),
    ("states/models/", "llm litellm"),
    ("tools/", "calling function"),
    ("memories/", "stored views control"),
    ("memories/journal/", "sqlite postgres …"),
)
MESSAGE = (
    Call(0, 1, 'brain.run("…"): brain.py, run.py'),
    Call(1, 5, "begin(goal): a turn begins"),
    Call(5, 6, "append: goal, registers", writes=True),
    Call(1, 2, "engine.py enters ReasoningState.run()"),
    Call(2, 5, "context(): what the views show"),
    Call(2, 1, "yield llm.call(…): model_call.py"),
    Call(1, 3, "the engine runs it, hooks around"),
    Call(3, 1, "pieces → TextDelta, ActionRequested"),
    Call(2, 5, "update([message]), request_calls(): held"),
    Call(1, 2, "next_state(): engine.py → ActionState"),
    Call(2, 1, "yield ToolRound: tool_round.py"),
    Call(1, 5, "begin_calls(), record()"),
    Call(5, 6, "append: the step, calls begun", writes=True),
    Call(1, 4, "call_tool(): validate, invoke, fit"),
    Call(4, 1, "ActionFinished"),
    Call(1, 5, "update([result]), checkpoint()"),
    Call(5, 6, "append: results, the step", writes=True),
    Call(1, 2, "ReasoningState again: it answers"),
    Call(5, 6, "append: answer, the step", writes=True),
    Call(1, 2, "AnswerState, the net ends"),
    Call(5, 6, "append: the end of the run", writes=True),
    Call(1, 0, "Result"),
)
REQUEST_LANES = (
    ("client", "browser, SDK"),
    ("serving/web/", "access routes"),
    ("serving/", "sessions pool session"),
    ("brain/", "run"),
    ("serving/", "session_run event_log"),
    ("serving/web/", "responses, adapters"),
)
REQUEST = (
    Call(0, 1, "POST /sessions/{id}/runs"),
    Call(1, 1, "access.py: host, origin, token, rate"),
    Call(1, 2, "sessions.py: whose session, opened once"),
    Call(2, 3, "session.py waits for its turn, starts a run"),
    Call(3, 4, "events get numbers and are kept"),
    Call(4, 5, "translators: events in, chunks out"),
    Call(5, 0, "server-sent events, until the client leaves"),
    Call(0, 1, "GET /sessions/{id}/events with Last-Event-ID, after a lost connection"),
    Call(1, 4, "event_log.py: what came since"),
)


def drawing(label: str, lanes: tuple[tuple[str, str], ...], calls: tuple[Call, ...]) -> str:
    """Return an SVG document."""
    width, height = LEFT * 2 + LANE * (len(lanes) - 1), TOP + ROW * (len(calls) + 1)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12" role="img" '
        f'aria-label="{escape(label)}">'
    )
    parts = [
        head,
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
        "<defs>",
        *(_head(colour) for colour in (LINE, WRITE)),
        "</defs>",
        *(_lane(number, *lane, height) for number, lane in enumerate(lanes)),
        *(_arrow(number, call) for number, call in enumerate(calls, 1)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _head(colour: str) -> str:
    return (
        f'<marker id="{colour[1:]}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
    )


def _lane(number: int, name: str, modules: str, height: int) -> str:
    x = LEFT + LANE * number
    return (
        f'<line x1="{x}" y1="58" x2="{x}" y2="{height - 16}" stroke="#c9d2e0" stroke-width="1.5"/>'
        f'<rect x="{x - 60}" y="12" width="120" height="46" rx="6" fill="#eef3fb" '
        f'stroke="#9db4d8"/><text x="{x}" y="{33 if modules else 39}" text-anchor="middle" '
        f'font-weight="bold" fill="{INK}">{escape(name)}</text>'
        f'<text x="{x}" y="49" text-anchor="middle" font-size="10.5" fill="{SOFT}">'
        f"{escape(modules)}</text>"
    )


def _arrow(number: int, call: Call) -> str:
    y = TOP + ROW * number - 8
    start, end = LEFT + LANE * call.start, LEFT + LANE * call.end
    colour, text = WRITE if call.writes else LINE, f"{number}  {call.text}"
    line = f'stroke="{colour}" stroke-width="1.6" marker-end="url(#{colour[1:]})"'
    left, step = min(start, end) + 8, 3 if end > start else -3
    if start == end:
        shape = f'<path d="M{start} {y - 6}h26v12h-23" fill="none" {line}/>'
        left, y = start + 34, y + 10
    else:
        shape = f'<line x1="{start + step}" y1="{y}" x2="{end - step}" y2="{y}" {line}/>'
    box = f'<rect x="{left - 2}" y="{y - 19}" width="{len(text) * 6}" height="15" fill="#ffffff"/>'
    words = f'<text x="{left}" y="{y - 7}" fill="{INK}">{escape(text)}</text>'
    return shape + box + words


def main() -> None:
    """Write both."""
    docs = ROOT / "docs"
    one, other = "One message with one tool call", "One request to a server"
    (docs / "architecture.svg").write_text(drawing(one, MESSAGE_LANES, MESSAGE), "utf-8")
    (docs / "request.svg").write_text(drawing(other, REQUEST_LANES, REQUEST), "utf-8")


if __name__ == "__main__":
    main()
