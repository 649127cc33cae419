"""The output for each event."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import pytest
from pydantic import TypeAdapter

from agent_brain.cli.options import Options
from agent_brain.cli.printers import LivePrinter, make_printer
from agent_brain.cli.sanitize import brief, call_text, one_line, sanitize
from agent_brain.cli.screen import Screen
from agent_brain.common.text import cut_line
from agent_brain.memories import Message, RecalledItem
from agent_brain.states.events import (
    ActionDelta,
    ActionFinished,
    ActionRequested,
    ApprovalRequested,
    ContextCompacted,
    Event,
    FactsLearned,
    InputRequested,
    MemoryEscalated,
    MessagesRecalled,
    MessagesTrimmed,
    PartialOutput,
    Position,
    RunFailed,
    RunFinished,
    RunStarted,
    SourcesCited,
    StateEntered,
    StateExited,
    StuckDetected,
    TextDelta,
    UsageReported,
)
from agent_brain.states.sources import CitedSource
from agent_brain.states.usage import Usage
from agent_brain.tools import Action
from tests.support.own_events import FIELDS, PagesRead

ADD = Action(name="add", args={"a": 1, "b": "two"})


class Pieces(StringIO):
    """A stream that remembers what was visible after each flush."""

    def __init__(self):
        super().__init__()
        self.shown = []

    def flush(self):
        self.shown.append(self.getvalue())


def live(*events, **options):
    out = StringIO()
    printer = LivePrinter(Screen(out), **options)
    for event in events:
        printer(event)
    return out.getvalue()


GROWING = [ActionDelta("c1", "add", '{"a"'), PartialOutput({"city": "Os"})]


def test_what_the_model_writes_is_shown_meanwhile_on_a_terminal(monkeypatch):
    assert live(*GROWING, verbose=True) == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    shown = live(*GROWING, ActionRequested(ADD))
    assert "  writing   add …" in shown
    assert '  writing   {"city": "Os"} …' in shown
    assert shown.index("\r\x1b[K", shown.index("Os")) < shown.index("add(")


BY_MEMORY = [
    MessagesRecalled("Where?", (RecalledItem("a", 0.7), RecalledItem("f", what="fact")), 1_200),
    MessagesTrimmed(("a",)),
    ContextCompacted(20, 1_500, 300),
    MemoryEscalated("everything", "window", 16_100, 16_000),
    FactsLearned(added=("f",), refused={"no such quote": 2}, read=7),
]


def test_what_a_memory_does_is_shown_on_request():
    assert live(*BY_MEMORY) == ""
    lines = [" ".join(line.split()) for line in live(*BY_MEMORY, verbose=True).splitlines()]
    assert lines == [
        "memory recalled 1 fact and 1 message (1,200 tokens)",
        "memory 1 message left the window",
        "memory summarised 20 messages: 1,500 tokens to 300",
        "memory more than 16,000 tokens: shows a window from now on",
        "memory learned 1 fact from 7 messages, 0 replaced, 2 refused",
    ]


def test_text_is_visible_piece_by_piece():
    out = Pieces()
    printer = LivePrinter(Screen(out))
    for piece in ("Hel", "lo", "!"):
        printer(TextDelta(piece))
        assert out.shown[-1] == out.getvalue()
    assert out.shown == ["Hel", "Hello", "Hello!"]


def test_steps_are_labelled_lines_and_text_has_blank_lines_around_it():
    shown = live(
        TextDelta("I ", thought=True),
        TextDelta("think\n\n", thought=True),
        TextDelta("so.\n", thought=True),
        TextDelta("\nLet me"),
        TextDelta(" see."),
        ActionRequested(ADD),
        ActionFinished(ADD, Message.tool("3\n4", ADD)),
        TextDelta("It is 3."),
        StateExited(None),
        RunFinished("done", "It is 3."),
    )
    assert shown == (
        "  thinking  I think\n"
        "            \n"
        "            so.\n"
        "\n"
        "Let me see.\n"
        "\n"
        '  tool      add(a=1, b="two")\n'
        "  result    add: 3\n"
        "            4\n"
        "\n"
        "It is 3.\n"
    )


def test_text_and_thoughts_of_line_ends_alone_are_not_shown():
    assert live(TextDelta("\n"), TextDelta("\n", thought=True), TextDelta("\nHi")) == "Hi"


def test_thoughts_between_words_are_thoughts_of_their_own():
    shown = live(
        TextDelta("One.", thought=True),
        TextDelta("Said."),
        TextDelta("Two.", thought=True),
    )
    assert shown == "  thinking  One.\n\nSaid.\n\n  thinking  Two."


def of(branch, kind, *values, state="THINK", response=None, **fields):
    """Return an event of a branch, or of a call of a model."""
    extra = {"response_id": response} if response else {}
    return kind(*values, **extra, **fields, at=Position("run", 1, state, tuple(branch)))


def thinks(branch, text, response=None):
    return of(branch, TextDelta, text, thought=True, response=response)


@pytest.mark.parametrize("out", [None, StringIO()], ids=["terminal", "pipe"])
def test_branches_that_think_at_once_are_shown_one_after_another(out):
    shown = live(
        thinks("a", "I am "),
        thinks("b", "I think "),
        thinks("a", "Ann."),
        of("b", UsageReported, Usage(), response="r"),  # of another call
        thinks("b", "of"),
        thinks("c", "Three"),
        of("a", StateExited, None),
        thinks("b", " Bob."),
        of("c", StateExited, None),
        of("b", StateExited, None),
        of("", RunFinished, "done", ""),
        out=out,
    )
    assert shown == (
        "  thinking  a › I am Ann.\n  thinking  b › I think of Bob.\n  thinking  c › Three\n"
    )


def test_thoughts_of_calls_at_once_are_shown_one_after_another():
    shown = live(
        thinks("", "Yes, ", "r1"),
        thinks("", "No, ", "r2"),
        thinks("", "it will.", "r1"),
        of("", UsageReported, Usage(), response="r1"),
        thinks("", "it will not.", "r2"),
        of("", TextDelta, "Perhaps."),
        of("", RunFinished, "done", ""),
    )
    assert shown == "  thinking  Yes, it will.\n  thinking  No, it will not.\n\nPerhaps.\n"


def test_what_a_branch_has_thought_stands_before_its_calls():
    shown = live(
        thinks("a", "I wait."),
        thinks("b", "I add."),
        of("b", ActionRequested, ADD),
        of("b", ActionFinished, ADD, Message.tool("3", ADD)),
        thinks("a", " And wait."),
        of("a", RunFailed, ValueError("x")),
    )
    assert shown == (
        "  thinking  a › I wait.\n"
        "  thinking  b › I add.\n"
        '  tool      b › add(a=1, b="two")\n'
        "  result    b › add: 3\n"
        "  thinking  a ›  And wait.\n"
    )


def test_a_run_that_failed_leaves_a_whole_line():
    assert live(TextDelta("Half"), RunFailed(ValueError("x"))) == "Half\n"


def test_rare_events_are_shown():
    shown = live(
        StuckDetected("the same again", "hint"),
        StuckDetected("the same again", "stop"),
        ApprovalRequested((ADD,)),
        InputRequested("Which one?"),
        verbose=True,
    )
    assert shown == (
        "  stuck     the same again; a hint is given\n"
        "  stuck     the same again; the run is stopped\n"
        '  approval  add(a=1, b="two")\n'
        "  question  Which one?\n"
    )


def test_what_an_answer_cites_is_listed_after_it():
    cited = SourcesCited(
        (CitedSource("https://a.org/x", "A\n\x1b[31mpage"), CitedSource("https://b.org"))
    )
    events = [TextDelta("It rains."), cited, cited, RunFinished("done", "It rains.")]
    listed = "  sources   A ␛[31mpage  https://a.org/x\n            https://b.org\n"
    assert live(*events) == f"It rains.\n\n{listed}"
    out = StringIO()
    assert live(*events, out=out) == listed
    assert out.getvalue() == "It rains.\n"


def test_verbose_shows_states_with_their_path_and_the_end():
    at = Position("run", 1, "INNER", ("OUTER",))
    shown = live(
        StateEntered(at=at),
        RunFinished("done", "", usage=Usage(5, 6, 0.5, 2), at=Position("run", 1)),
        verbose=True,
    )
    assert shown == (
        "  state     OUTER › INNER\n  end       done, 1 step, 2 model calls, 11 tokens, $0.5000\n"
    )


def test_echo_shows_the_question():
    started = RunStarted(Message.user("Who?\nMe?"))
    assert live(started, echo=True) == "  you       Who?\n            Me?\n"
    assert live(started) == ""


def test_a_terminal_gets_everything_on_one_stream(monkeypatch):
    out, err = StringIO(), StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    printer = make_printer(Options(), out, err)
    printer(ActionRequested(ADD))
    printer(TextDelta("Hi"))
    assert "\x1b[36m" in out.getvalue()
    assert out.getvalue().endswith("\nHi")
    assert err.getvalue() == ""


def test_only_the_text_of_the_last_step_is_the_answer():
    out, err = StringIO(), StringIO()
    printer = make_printer(Options(), out, err)
    for step, text in enumerate(("A plan.", "An ", "answer.")):
        printer(TextDelta(text, at=Position("run", min(step, 1), "S")))
    printer(RunFinished("done", "An answer."))
    assert out.getvalue() == "An answer.\n"
    assert err.getvalue() == "  said      A plan.\n"


def test_what_an_agent_says_before_its_calls_names_it():
    said = live(of("a", TextDelta, "Wait."), of("a", ActionRequested, ADD), out=StringIO())
    assert said == '  said      a › Wait.\n  tool      a › add(a=1, b="two")\n'


def test_an_empty_answer_prints_nothing():
    out = StringIO()
    make_printer(Options(), out, StringIO())(RunFinished("max_steps", ""))
    assert out.getvalue() == ""


@pytest.mark.parametrize(
    "text,shown",
    [
        ("plain [bold]text[/]\n\tnext", "plain [bold]text[/]\n\tnext"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("a\r\nb\rc", "a\nbc"),
        ("\x00\x07\x08\x7f", "␀␇␈␡"),
        ("\x9b31m", "\ufffd31m"),
        ("\u202eevil", "\ufffdevil"),
        ("one\u2028two", "one\ntwo"),
        ("\ud800", "\ufffd"),
        ("naïve 日本語 👩‍👩‍👧 שלום", "naïve 日本語 👩‍👩‍👧 שלום"),
    ],
)
def test_text_of_others_is_only_text(text, shown):
    assert sanitize(text) == shown


def test_json_stays_on_one_line():
    assert one_line('"a\u2028b\x9bc\ud800"') == '"a\\u2028b\\u009bc\\ud800"'


def test_long_texts_are_cut():
    assert brief("a\nb\nc", max_lines=2) == "a\nb… (5 characters)"
    assert brief("abcdef", max_chars=4) == "abcd… (6 characters)"
    assert brief("ab\n") == "ab"
    assert cut_line("a  b\nc", 4) == "a b…"
    assert len(call_text(Action(name="f", args={"x": "y" * 500, "z": 1}))) < 120


@pytest.mark.parametrize(
    "event",
    [PagesRead(3, 7), TypeAdapter(Event).validate_json(PagesRead(3, 7).to_json())],
    ids=["of a class", "read"],
)
def test_an_event_of_a_class_of_its_own_is_a_line(event):
    assert live(event) == '  pages_read {"done": 3, "total": 7, "note": "é <b>\\n"}\n'
    inner = replace(event, at=Position("run", 1, "PAGES", ("BOTH", "reader")))
    assert live(inner).startswith('  pages_read BOTH › reader › {"done": 3,')
    out = StringIO()
    make_printer(Options(as_json=True), out)(event)
    assert json.loads(out.getvalue())["note"] == FIELDS["note"]
