"""Approvals and questions are answered where they arise, or later."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain import MessagesMemory
from agent_brain.cli.decisions import ask_person
from agent_brain.memories.runs.human_requests import HumanRequests
from agent_brain.tools import Action
from tests.cli.support import Terminal, in_order, invoke, json_lines

SCRIPTED = ("--net", "scripted", "--model", "demo")
TOOLS = '''
from agent_brain import tool
from agent_brain.tools.builtin import ask_user

__all__ = ["ask_user"]


@tool(requires_approval=True)
async def pay(amount: int, to: str = "Ann") -> str:
    """Pay somebody in dollars."""
    return f"paid {amount} to {to}"
'''


@pytest.fixture
def tools(tmp_path):
    path = tmp_path / "paying.py"
    path.write_text(TOOLS)
    return ("-t", f"{path}:pay", "-t", f"{path}:ask_user")


def pay(amount, number=1):
    return Action(name="pay", args={"amount": amount, "to": "Ann"}, id=f"call_{number}")


def question(text, number=9):
    return Action(name="ask_user", args={"question": text}, id=f"call_{number}")


@pytest.mark.parametrize(
    "typed, told",
    [
        ("yes", "paid 500 to Ann"),
        ("y", "paid 500 to Ann"),
        ("no, too dear", "too dear"),
        ("no", "gave no reason"),
        ('edit {"amount": 50}', "paid 50 to Ann"),
        ('edit\n{"amount": 50, "to": "Bob"}', "paid 50 to Bob"),
        ('{"amount": 5}', "paid 5 to Ann"),
        ("what?\nyes", "paid 500 to Ann"),
        ("edit {\nyes", "paid 500 to Ann"),
        ('edit {"amount": "much"}\nyes', "paid 500 to Ann"),
        ("edit [1]\nyes", "paid 500 to Ann"),
    ],
)
def test_a_call_is_decided_in_the_chat(script, tools, typed, told):
    model = script([[pay(500)], "Done."])
    result = invoke("chat", *SCRIPTED, *tools, stdin=f"Pay Ann\n{typed}\n")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "Done.")
    assert told in model.calls[1].messages[-1].content
    assert '  approve   pay(amount=500, to="Ann")\n' in result.stderr


@pytest.mark.parametrize(
    "typed, said",
    [
        ("maybe", "Write yes, no, edit or later"),
        ("edit [1]", "Write yes, no, edit or later"),
        ('edit {"amount": }', "The arguments of pay are not JSON"),
        ('edit {"amount": "much"}', "amount"),
    ],
)
def test_a_decision_that_is_not_understood_is_asked_again(script, tools, typed, said):
    script([[pay(500)], "Done."])
    result = invoke("chat", *SCRIPTED, *tools, stdin=f"Pay Ann\n{typed}\nyes\n")
    assert (result.exit_code, said in result.stderr) == (0, True)


def test_several_calls_and_questions_wait_together(script, tools):
    calls = [pay(1, 1), pay(2, 2), pay(3, 3), question("Which city?"), question("When?", 10)]
    model = script([calls, "All done."])
    lines = ["go", "yes", "no not that one", 'edit {"amount": 30}', "Rome", "", "today"]
    result = invoke("chat", *SCRIPTED, *tools, stdin="\n".join(lines))
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "All done.")
    results = {m.tool_call_id: m.content for m in model.calls[1].messages if m.tool_call_id}
    assert results["call_1"].endswith("paid 1 to Ann")
    assert "not that one" in results["call_2"]
    assert results["call_3"].endswith("paid 30 to Ann")
    assert (results["call_9"], results["call_10"]) == ("Rome", "today")


def test_one_decision_may_lead_to_the_next(script, tools):
    script([[pay(1)], [pay(2, 2)], [question("Sure?")], "Done."])
    result = invoke("chat", *SCRIPTED, *tools, stdin="go\nyes\nno\nyes\n\n")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "Done.")


@pytest.mark.parametrize(
    "ending", ["", " later\n", "Later, please\n", "/exit\nnever\n", "later\n/exit\n"]
)
def test_a_decision_can_be_postponed(script, tools, tmp_path, ending):
    model = script([[pay(500)], "Done."])
    kept = ("--folder", str(tmp_path / "kept"), "--session", "ann")
    result = invoke("chat", *SCRIPTED, *tools, *kept, stdin=f"Pay Ann\n{ending}")
    assert result.exit_code == 3
    assert "the run waits for approval" in result.stderr
    again = invoke("chat", *SCRIPTED, *tools, *kept, stdin=ending or "Pay Bob\n")
    assert again.exit_code == 3
    assert "the run waits for a person\n  pay(amount=500" in again.stderr
    later = invoke("chat", *SCRIPTED, *tools, *kept, stdin="yes\n")
    assert (later.exit_code, later.stdout) == (0, "Done.\n")
    assert in_order(later.stderr, ["This conversation waits for you", "  approve   pay("])
    assert len(model.calls) == 2


@pytest.mark.parametrize("memory", ["windowed", "vector", "summary", "layered", "todo"])
def test_every_memory_keeps_what_waits(script, tools, tmp_path, memory):
    script([[pay(500), question("Which city?")], "Done."])
    kept = ("--folder", str(tmp_path / "kept"), "--memory", memory)
    assert invoke("ask", *SCRIPTED, *tools, *kept, "Pay Ann").exit_code == 3
    result = invoke("chat", *SCRIPTED, *tools, *kept, stdin="yes\nRome\n")
    assert (result.exit_code, result.stdout) == (0, "Done.\n")


def test_a_new_question_replaces_a_postponed_run(script, tools, tmp_path):
    script([[pay(500)], "Hello."])
    kept = ("--folder", str(tmp_path / "kept"))
    invoke("ask", *SCRIPTED, *tools, *kept, "Pay Ann")
    result = invoke("chat", *SCRIPTED, *tools, *kept, stdin="later\nhi\n")
    assert result.stdout == "Hello.\n"


def test_ask_says_how_to_answer_and_resume_does(script, tools, tmp_path):
    script([[pay(500), pay(2, 2), question("Which city?")], "Done."])
    kept = ("--folder", str(tmp_path / "my kept"), "--session", "a b")
    result = invoke("ask", *SCRIPTED, *tools, *kept, "Pay Ann")
    assert (result.exit_code, result.stdout) == (3, "")
    assert in_order(
        result.stderr,
        [
            "Stopped: the run waits for approval; there is no answer yet\n",
            '  pay(amount=500, to="Ann"): --approve call_1, --deny call_1=WHY or --edit call_1=JSON\n',
            "Answer with agent-brain resume",
            "my kept'",
        ],
    )
    part = invoke("resume", *SCRIPTED, *tools, *kept, "--approve", "call_1")
    assert part.exit_code == 3
    assert "--approve call_2" in part.stderr
    assert "--approve call_1" not in part.stderr
    asked = invoke("resume", *SCRIPTED, *tools, *kept, "--deny", "call_2=no")
    assert asked.exit_code == 3
    assert "  Which city? --input TEXT\n" in asked.stderr
    rest = invoke("resume", *SCRIPTED, *tools, *kept, "--input", "Rome = Roma")
    assert (rest.exit_code, rest.stdout) == (0, "Done.\n")


@pytest.mark.parametrize(
    "options, told",
    [
        (["--approve", "all"], "paid 500"),
        (["--approve", "call_1"], "paid 500"),
        (["--deny", "all"], "gave no reason"),
        (["--deny", "too dear"], "too dear"),
        (["--edit", '{"amount": 7}'], "paid 7"),
        (["--edit", 'call_1={"amount": 7}'], "paid 7"),
    ],
)
def test_decisions_as_options(script, tools, tmp_path, options, told):
    model = script([[pay(500)], "Done."])
    kept = ("--folder", str(tmp_path / "kept"))
    invoke("ask", *SCRIPTED, *tools, *kept, "Pay Ann")
    result = invoke("resume", *SCRIPTED, *tools, *kept, *options)
    assert (result.exit_code, result.stdout) == (0, "Done.\n")
    assert told in model.calls[1].messages[-1].content


@pytest.mark.parametrize(
    "options, said",
    [
        ([], 'The run waits for a person\n  pay(amount=500, to="Ann"): --approve call_1, --deny'),
        (["--input", "Rome"], "matches nothing that waits. Waiting: none"),
        (["--approve", "call_7"], "matches nothing that waits. Waiting: 'call_1', 'call_2'"),
        (["--edit", "call_1=7"], "not a JSON object"),
        (["--edit", 'call_1={"sum": 7}'], "amount"),
        (["--approve", "call_1", "--deny", "call_1"], "two decisions"),
    ],
)
def test_decisions_that_do_not_fit_change_nothing(script, tools, tmp_path, options, said):
    script([[pay(500), pay(2, 2)], "Done."])
    kept = ("--folder", str(tmp_path / "kept"))
    invoke("ask", *SCRIPTED, *tools, *kept, "Pay Ann")
    wrong = invoke("resume", *SCRIPTED, *tools, *kept, *options)
    assert (wrong.exit_code, said in wrong.stderr) == (2, True)
    assert invoke("resume", *SCRIPTED, *tools, *kept, "--approve", "all").stdout == "Done.\n"


@pytest.mark.parametrize("name", ["call_7", "call_1=yes", "", "ALL"])
def test_approving_another_call_does_not_run_the_only_one_that_waits(script, tools, tmp_path, name):
    model = script([[pay(500)], "Done."])
    kept = ("--folder", str(tmp_path / "kept"))
    invoke("ask", *SCRIPTED, *tools, *kept, "Pay Ann")
    wrong = invoke("resume", *SCRIPTED, *tools, *kept, "--approve", name)
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert f"{name!r} matches nothing that waits. Waiting: 'call_1'" in wrong.stderr
    assert len(model.calls) == 1
    assert invoke("resume", *SCRIPTED, *tools, *kept, "--approve", "call_1").stdout == "Done.\n"


def test_approving_all_calls_answers_no_question(script, tools, tmp_path):
    script([[question("Which city?")], "Done."])
    kept = ("--folder", str(tmp_path / "kept"))
    invoke("ask", *SCRIPTED, *tools, *kept, "Book")
    wrong = invoke("resume", *SCRIPTED, *tools, *kept, "--approve", "all")
    assert (wrong.exit_code, "matches nothing that waits" in wrong.stderr) == (2, True)


def test_there_may_be_nothing_to_resume(script, tools, tmp_path):
    script(["Hello."])
    kept = ("--folder", str(tmp_path / "kept"))
    missing = invoke("resume", *SCRIPTED, *kept)
    assert (missing.exit_code, "there is no such folder" in missing.stderr) == (2, True)
    assert not (tmp_path / "kept").exists()
    assert invoke("ask", *SCRIPTED, *kept, "hi").stdout == "Hello.\n"
    result = invoke("resume", *SCRIPTED, *kept, "--approve", "all")
    assert (result.exit_code, "matches nothing that waits" in result.stderr) == (2, True)
    result = invoke("resume", *SCRIPTED)
    assert (result.exit_code, "--folder is missing" in result.stderr) == (2, True)


def test_a_run_stopped_by_a_limit_is_continued(script, tools, tmp_path):
    script([[question("?")], "Done."])
    kept = ("--folder", str(tmp_path / "kept"))
    assert invoke("ask", *SCRIPTED, *kept, "--max-steps", "1", "go").exit_code == 3
    result = invoke("resume", *SCRIPTED, *kept)
    assert (result.exit_code, result.stdout) == (0, "Done.\n")


def test_without_a_folder_ask_says_that_nothing_is_stored(script, tools):
    script([[pay(500)], "Done."])
    result = invoke("ask", *SCRIPTED, *tools, "Pay Ann")
    assert result.exit_code == 3
    assert "--folder stores it" in result.stderr


def test_json_has_the_events_of_both_parts(script, tools):
    script([[pay(500)], "Done."])
    result = invoke("chat", *SCRIPTED, *tools, "--json", stdin="Pay Ann\nyes\n")
    ends = [e["stop_reason"] for e in json_lines(result.stdout) if e["kind"] == "run_finished"]
    assert ends == ["approval", "done"]


DEMO_TOOLS = '''
from agent_brain import tool
from agent_brain.tools import InputNeeded


@tool(requires_approval=True)
async def pay_dollars(amount: int) -> str:
    """Pay dollars."""
    return f"paid {amount}"


@tool
async def book_hotel(nights: int) -> str:
    """Book a hotel."""
    raise InputNeeded("Which city?")
'''


@pytest.fixture
def demo_tools(tmp_path):
    path = tmp_path / "asking.py"
    path.write_text(DEMO_TOOLS)
    return ("-m", "demo", "-t", f"{path}:pay_dollars", "-t", f"{path}:book_hotel")


def test_in_a_terminal(demo_tools, tmp_path):
    kept = ("--folder", str(tmp_path / "kept"))
    with Terminal("ask", *demo_tools, *kept, "pay 500 dollars") as terminal:
        terminal.expect("approve   pay_dollars(amount=500)")
        terminal.expect("later> ")
        terminal.type("\n")
        terminal.expect("Write yes, no, edit or later")
        terminal.expect("later> ")
        terminal.type("later\n")
        assert terminal.finish() == 3
        assert "agent-brain resume" in terminal.seen
    with Terminal("chat", *demo_tools, *kept) as terminal:
        terminal.expect("This conversation waits for you")
        terminal.expect("later> ")
        terminal.type('edit {"amount": 5}\n')
        terminal.expect("paid 5")
        terminal.expect("you> ")
        terminal.type("book a hotel for 3 nights\n")
        terminal.expect("question  Which city?")
        terminal.expect("/later> ")
        terminal.type("\n")
        terminal.expect("/later> ")
        terminal.type("Rome\n")
        terminal.expect("says: Rome.")
        terminal.expect("you> ")
        terminal.type("pay 7 dollars\n")
        terminal.expect("later> ")
        terminal.type("/exit\n")
        assert terminal.finish() == 0
    with Terminal("resume", *demo_tools, *kept) as terminal:
        terminal.expect("later> ")
        terminal.type("later\n")
        assert terminal.finish() == 3
        assert "--approve" in terminal.seen
    with Terminal("resume", *demo_tools, *kept) as terminal:
        terminal.expect("approve   pay_dollars(amount=7)")
        terminal.expect("later> ")
        terminal.type("no thanks\n")
        assert terminal.finish() == 0


TYPED = '''
import select
import sys

from agent_brain import tool


def typed(args: dict[str, int]) -> bool:
    assert select.select([sys.stdin], [], [], 60)[0]
    return True


@tool(requires_approval=typed)
def pay_dollars(amount: int) -> str:
    """Pay dollars."""
    return f"paid {amount}"
'''


def test_what_was_typed_before_a_call_is_shown_does_not_approve_it(tmp_path):
    path = tmp_path / "typed.py"
    path.write_text(TYPED)
    with Terminal("ask", "-m", "demo", "-t", f"{path}:pay_dollars", "pay 500 dollars") as terminal:
        terminal.type("yes\n")
        terminal.expect("approve   pay_dollars(amount=500)")
        terminal.expect("later> ")
        terminal.type("no\n")
        assert terminal.finish() == 0
    assert "paid 500" not in terminal.seen


LONG = "cat notes.txt | " + "sort | " * 60 + "head && rm -rf /srv/data"

RUN = '''
from agent_brain import tool


@tool(requires_approval=True)
def run(command: str, options: dict[str, str] | None = None) -> str:
    """Run a command."""
    return "ran"
'''


def test_all_that_is_approved_is_shown(script, tmp_path):
    (tmp_path / "run_tools.py").write_text(RUN)
    tools = ["--tool", f"{tmp_path / 'run_tools.py'}:run"]
    folder = ["--folder", str(tmp_path / "chats"), "--session", "a"]
    args: dict[str, Any] = {"command": LONG, "options": {"more": "x  \u202e" * 60 + "END"}}
    call = Action(name="run", args=args, id="call_1")
    script([[call], "Done."])

    chat = invoke("chat", *SCRIPTED, *tools, *folder, stdin="Tidy up\nlater\n")

    shown = [line for line in chat.stderr.splitlines() if f'run(command="{LONG}", options=' in line]
    assert shown[0].split()[0] == "approve"
    assert "--approve call_1" in shown[1]  # how to answer later
    assert all("END" in line and "\u202e" not in line for line in shown)


RESERVE = '''
from datetime import date
from enum import Enum
from typing import Literal

from pydantic import BaseModel, Field, SecretStr

from agent_brain import tool
from agent_brain.tools import ToolContext


class Seat(BaseModel):
    row: int = Field(ge=1, le=30, description="Row, from the front")
    side: Literal["window", "aisle"]
    note: str | None = None


@tool
def reserve(context: ToolContext) -> str:
    """Reserve a seat."""
    seat = context.ask("Which seat?", Seat)
    day = context.ask("Which day?", date)
    return f"row {seat.row}, {seat.side}, {seat.note}, {day:%d.%m.}"


class Dish(Enum):
    """What is served."""

    FISH = "fish"
    SOUP = "soup"


class Order(BaseModel):
    meal: Dish


@tool
def order(context: ToolContext) -> str:
    """Order a meal."""
    return context.ask("What may it be?", Order).meal.value


class Guest(BaseModel):
    name: str
    ages: list[int]


class Party(BaseModel):
    host: Guest
    dishes: list[Dish] = []


@tool
def invite(context: ToolContext) -> str:
    """Plan a party."""
    return repr(context.ask("Which party?", Party))


class Account(BaseModel):
    password: SecretStr
    pin: SecretStr | None = None


@tool
def sign_in(context: ToolContext) -> str:
    """Sign in."""
    account = context.ask("Which account?", Account)
    return f"{len(account.password)} and {len(account.pin)} characters"
'''


@pytest.fixture
def reserve(tmp_path):
    path = tmp_path / "reserving.py"
    path.write_text(RESERVE)
    return ("-t", f"{path}:reserve")


def test_a_form_is_filled_in_field_by_field(script, reserve):
    model = script([[Action(name="reserve", args={})], "Done."])
    typed = ["Reserve", "40", "4", "left", "Window", "", "tomorrow", "2026-03-01"]

    result = invoke("chat", *SCRIPTED, *reserve, stdin="\n".join(typed) + "\n")

    assert model.calls[1].messages[-1].content == "row 4, window, None, 01.03."
    assert in_order(
        result.stderr,
        [
            "question  Which seat?",
            "That does not fit: 40 is greater than the maximum of 30",
            "That does not fit: 'left' is not one of ['window', 'aisle']",
            "question  Which day?",
            "That does not fit: 'tomorrow' is not a 'date'",
        ],
    )


def test_lists_and_forms_in_forms_are_filled_in(script, reserve):
    model = script([[Action(name="invite", args={})], "Done."])
    typed = ["Invite", "Bo", "3, x", "3, 4", "Soup, fish"]
    tools = ("-t", reserve[1].replace(":reserve", ":invite"))
    result = invoke("chat", *SCRIPTED, *tools, stdin="\n".join(typed) + "\n")

    assert model.calls[1].messages[-1].content == (
        "Party(host=Guest(name='Bo', ages=[3, 4]), "
        "dishes=[<Dish.SOUP: 'soup'>, <Dish.FISH: 'fish'>])"
    )
    assert "That does not fit: 'x' is not of type 'integer'" in result.stderr
    assert result.stderr.count("Which party?") == 1


def test_a_form_is_shown_in_a_terminal_and_may_be_postponed(script, reserve, tmp_path):
    kept = ("--folder", str(tmp_path / "kept"))
    script([[Action(name="reserve", args={})]])
    result = invoke("chat", *SCRIPTED, *reserve, *kept, stdin="Reserve\n4\n/later\n")
    assert "row (a whole number from 1 to 30), side (window / aisle), note" in result.stderr

    script(["Done."])
    wrong = invoke("resume", *SCRIPTED, *reserve, *kept, "--input", '{"row": 4}')
    assert wrong.exit_code != 0
    assert "'side' is a required property" in wrong.stderr
    form = '{"row": 4, "side": "aisle"}'
    asked = invoke("resume", *SCRIPTED, *reserve, *kept, "--input", form)
    assert "Which day? (a date such as 2026-12-31) --input" in asked.stderr
    done = invoke("resume", *SCRIPTED, *reserve, *kept, "--input", "2026-03-01")
    assert done.stdout.splitlines()[-1] == "Done."


def test_the_fields_of_a_form_are_named_at_the_keyboard(tmp_path, reserve):
    demo = ("-m", "demo", *reserve)
    with Terminal("ask", *demo, "reserve") as terminal:
        terminal.expect("Which seat?")
        terminal.expect("Row, from the front (a whole number from 1 to 30), or /later> ")
        terminal.type("4\n")
        terminal.expect("Side (window / aisle), or /later> ")
        terminal.type("aisle\n")
        terminal.expect("Note (text, optional), or /later> ")
        assert terminal.seen.count("Which seat?") == 1
        terminal.type("\n")
        terminal.expect("answer (a date such as 2026-12-31), or /later> ")
        terminal.type("2026-03-01\n")
        terminal.expect("row 4, aisle, None, 01.03.")
        assert terminal.finish() == 0


def test_a_secret_is_not_shown_while_it_is_typed(tmp_path, reserve):
    tools = ("-t", reserve[1].replace(":reserve", ":sign_in"))
    with Terminal("ask", "-m", "demo", *tools, "sign_in") as terminal:
        terminal.expect("Password (text), or /later> ")
        terminal.type("hunter2\n")
        terminal.expect("Pin (text, optional), or /later> ")
        terminal.type("1234\n")
        terminal.expect("7 and 4 characters")
        assert "hunter2" not in terminal.seen
        assert "1234" not in terminal.seen
        assert terminal.finish() == 0


def test_a_field_is_named_as_in_its_form_and_not_as_its_class(tmp_path, reserve):
    tools = ("-t", reserve[1].replace(":reserve", ":order"))
    with Terminal("ask", "-m", "demo", *tools, "order") as terminal:
        terminal.expect("Meal (fish / soup), or /later> ")
        terminal.type("soup\n")
        assert terminal.finish() == 0


def test_an_answer_may_begin_with_the_word_that_postpones() -> None:
    memory = MessagesMemory()
    memory.control.status = "waiting"
    memory.control.human_requests = HumanRequests(questions={"q": "When?"})
    lines = iter(["/later today\n", "/later\n"])

    def read(prompt: str, *, hidden: bool = False) -> str | None:
        return next(lines)

    assert ask_person(memory, read) == {"input": {"q": "/later today"}}
    assert ask_person(memory, read) is None
