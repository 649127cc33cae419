"""A run waits for a person, who decides on the page."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Literal

import pytest
from playwright.sync_api import Route, expect
from pydantic import BaseModel, Field, JsonValue, SecretStr, field_validator

from agent_brain import Brain, tool
from agent_brain.tools import Action, ToolContext
from agent_brain.tools.builtin import ask_user
from tests.page.model import Pause, Script, words
from tests.support.thorough import thorough


@tool(requires_approval=True)
def wipe(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


def waiting(*args: str) -> Script:
    return Script(
        ["Let me. ", *(Action(name="wipe", args={"path": each}) for each in args)], ["All right."]
    )


def test_a_call_runs_once_it_is_approved(serve, open_chat):
    chat = open_chat(serve(Brain(llm=waiting("/a"), tools=[wipe])).url)

    chat.ask("Delete it.")
    expect(chat.status).to_have_text("Waits for you")
    expect(chat.tool("wipe").locator(".tool-status")).to_have_text("waits for you")
    chat.button("Approve").click()

    expect(chat.tool("wipe").get_by_label("Result")).to_have_text("deleted /a")
    expect(chat.answers.last).to_have_text("All right.")
    expect(chat.button("Approve")).to_have_count(0)


def test_all_that_is_approved_is_shown_without_scrolling_in_it(serve, open_chat):
    long = "cat notes.txt | " + "sort | " * 800 + "head && rm -rf /srv/data"
    chat = open_chat(serve(Brain(llm=waiting(long), tools=[wipe])).url)

    chat.ask("Delete it.")
    expect(chat.status).to_have_text("Waits for you")
    shown = chat.tool("wipe").locator("pre")
    expect(shown).to_contain_text("rm -rf /srv/data")
    assert shown.evaluate("each => each.scrollHeight - each.clientHeight") <= 0
    chat.button("Approve").click()

    expect(chat.tool("wipe").get_by_label("Result")).to_contain_text("deleted")
    assert shown.first.evaluate("each => each.scrollHeight - each.clientHeight") > 0


def test_a_call_is_denied_with_a_reason(serve, open_chat):
    chat = open_chat(serve(Brain(llm=waiting("/a"), tools=[wipe])).url)

    chat.ask("Delete it.")
    chat.button("Deny…").click()
    chat.page.get_by_label("Reason").fill("I still need it")
    chat.button("Deny").click()

    expect(chat.tool("wipe").locator(".tool-status")).to_have_text("refused")
    expect(chat.tool("wipe")).to_contain_text("I still need it")
    expect(chat.answers.last).to_have_text("All right.")


def test_arguments_are_edited_and_mistakes_in_them_are_named(serve, open_chat):
    chat = open_chat(serve(Brain(llm=waiting("/a"), tools=[wipe])).url)

    chat.ask("Delete it.")
    chat.button("Edit arguments…").click()
    area = chat.page.get_by_label("Arguments, as a JSON object")
    for wrong in ('{"path": ', '["/a"]'):
        area.fill(wrong)
        chat.button("Approve with these").click()
        expect(chat.log.get_by_role("alert")).to_have_text("The arguments are not a JSON object.")
    area.fill('{"path": "/b"}')
    chat.button("Approve with these").click()

    expect(chat.tool("wipe").get_by_label("Result")).to_contain_text("deleted /b")


def test_a_decision_that_the_server_refuses_can_be_made_again(serve, open_chat):
    chat = open_chat(serve(Brain(llm=waiting("/a"), tools=[wipe])).url)

    chat.ask("Delete it.")
    chat.button("Edit arguments…").click()
    chat.page.get_by_label("Arguments, as a JSON object").fill('{"file": "/b"}')
    chat.button("Approve with these").click()
    expect(chat.log.get_by_role("alert")).to_contain_text("path: Field required")
    chat.tolerate("400")
    chat.button("Approve").click()

    expect(chat.tool("wipe").get_by_label("Result")).to_have_text("deleted /a")


def test_several_decisions_are_sent_together(serve, open_chat):
    chat = open_chat(serve(Brain(llm=waiting("/a", "/b"), tools=[wipe])).url)

    chat.ask("Delete them.")
    chat.button("Approve").nth(1).click()
    expect(chat.log).to_contain_text(
        "The run continues when you have decided about the others too."
    )
    expect(chat.status).to_have_text("Waits for you")
    chat.button("Deny…").first.click()
    chat.page.get_by_label("Reason").press("Enter")

    expect(chat.tool("wipe").nth(0).locator(".tool-status")).to_have_text("refused")
    expect(chat.tool("wipe").nth(1).get_by_label("Result")).to_have_text("deleted /b")


def test_a_question_of_the_agent_is_answered_in_place(serve, open_chat):
    llm = Script([Action(name="ask_user", args={"question": "Which colour?"})], ["Blue it is."])
    chat = open_chat(serve(Brain(llm=llm, tools=[ask_user])).url)

    chat.ask("Paint it.")
    group = chat.log.get_by_role("group", name="Which colour?")
    status = chat.tool("ask_user").locator(".tool-status")
    expect(status).to_have_text("waits for you")
    chat.page.reload()
    expect(status).to_have_text("waits for you")
    group.get_by_label("Your answer").fill("Blue")
    group.get_by_label("Your answer").press("Enter")

    expect(chat.answers.last).to_have_text("Blue it is.")
    expect(status).to_have_text("done")
    expect(group).to_have_count(0)


@pytest.mark.thorough
def test_a_run_still_waits_after_a_reload(serve, open_chat):
    chat = open_chat(serve(Brain(llm=waiting("/a"), tools=[wipe])).url)

    chat.ask("Delete it.")
    expect(chat.button("Approve")).to_be_enabled()
    chat.page.reload()
    chat.button("Approve").click()

    expect(chat.answers).to_have_text(["Let me. ", "All right."])
    expect(chat.tool("wipe").get_by_label("Result")).to_have_text("deleted /a")


def test_a_reload_after_a_decision_shows_everything_once(serve, open_chat, pauses):
    pause: Pause = pauses()

    @tool(requires_approval=True)
    async def publish() -> str:
        """Publish."""
        await pause.wait()
        return "published"

    llm = Script(["Let me. ", Action(name="publish")], ["It is out."])
    chat = open_chat(serve(Brain(llm=llm, tools=[publish])).url)

    chat.ask("Publish it.")
    chat.button("Approve").click()
    pause.wait_until_reached()
    chat.page.reload()
    expect(chat.tool("publish").locator(".tool-status")).to_have_text("running")
    pause.release()

    expect(chat.answers).to_have_text(["Let me. ", "It is out."])
    expect(chat.log.get_by_role("article", name="You")).to_have_text(["Publish it."])
    expect(chat.tool("publish")).to_have_count(1)


def test_what_is_approved_is_shown_exactly_and_sent_back_unchanged(serve, open_chat):
    @tool(requires_approval=True)
    def pay(account: int, file: str) -> str:
        """Pay."""
        return f"paid {account} for {file!a}"

    args: dict[str, JsonValue] = {"account": 12345678901234567890, "file": "bill\u202egnp.exe"}
    llm = Script([Action(name="pay", args=args)], ["Paid."])
    chat = open_chat(serve(Brain(llm=llm, tools=[pay])).url)

    chat.ask("Pay it.")
    shown = '{"account":12345678901234567890,"file":"bill\\u202egnp.exe"}'
    expect(chat.tool("pay").get_by_label("Arguments")).to_have_text(shown)
    chat.button("Edit arguments…").click()
    chat.button("Approve with these").click()

    expect(chat.tool("pay").get_by_label("Result")).to_contain_text(
        "paid 12345678901234567890 for 'bill\\u202egnp.exe'"
    )


@pytest.mark.thorough
def test_a_call_without_a_recorded_request_can_be_approved(serve, open_chat):
    chat = open_chat(serve(Brain(llm=waiting("/a"), tools=[wipe])).url)
    chat.ask("Delete it.")
    expect(chat.button("Approve")).to_be_enabled()

    def forget(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json=response.json() | {"messages": []})

    chat.page.route(re.compile(r"/sessions/[^/]+$"), forget, times=1)
    chat.page.reload()
    chat.button("Approve").click()

    expect(chat.tool("wipe").get_by_label("Result")).to_have_text("deleted /a")


class Seat(BaseModel):
    row: int = Field(ge=1, le=30, description="Row, from the front")
    side: Literal["window", "aisle"] = "aisle"
    day: date
    meal: bool = False
    tags: list[str] = []
    wishes: list[Literal["quiet", "front", "exit"]] = []

    @field_validator("row")
    @classmethod
    def _is_not_13(cls, row: int) -> int:
        if row == 13:
            raise ValueError("there is no row 13")
        return row


@tool
def reserve(context: ToolContext) -> str:
    """Reserve a seat."""
    seat = context.ask("Which seat would you like?", Seat)
    tip = context.ask("Would you like to leave a tip?", int | None)
    sure = context.ask("Shall I book it now?", bool)
    return f"{seat.row} {seat.side} {seat.day} {seat.meal} {seat.tags} {seat.wishes} {tip} {sure}"


def test_a_form_is_filled_in_and_mistakes_are_named_at_their_field(serve, open_chat):
    llm = Script([Action(name="reserve")], ["Booked."])
    chat = open_chat(serve(Brain(llm=llm, tools=[reserve])).url)
    page, alert = chat.page, chat.log.get_by_role("alert")

    chat.ask("A seat, please.")
    row, day = page.get_by_label("Row, from the front"), page.get_by_label("Day")
    row.fill("40")
    chat.button("Answer").click()
    expect(alert).to_contain_text("Row, from the front: ")
    expect(row).to_be_focused()
    row.fill("13")
    chat.button("Answer").click()
    expect(alert).to_contain_text("Day: ")
    page.reload()  # the form is there again, from what the server says
    page.get_by_label("Row, from the front").fill("13")
    day.fill("2026-03-01")
    page.get_by_label("Side").select_option("window")
    page.get_by_label("Meal").check()
    page.get_by_label("Tags (optional)").fill("quiet\nfront")
    chat.button("Answer").click()
    expect(chat.log.get_by_text("there is no row 13")).to_be_visible()
    page.get_by_label("Row, from the front").fill("14")
    day.fill("2026-03-01")
    page.get_by_label("Tags (optional)").fill("window shade\n\nlight")
    page.get_by_label("Wishes (optional)").select_option(["quiet", "exit"])
    day.press("Enter")
    chat.button("Leave open").click()
    chat.button("Yes").click()

    expect(chat.tool("reserve").get_by_label("Result")).to_have_text(
        "14 aisle 2026-03-01 False ['window shade', 'light'] ['quiet', 'exit'] None True"
    )
    expect(chat.answers.last).to_have_text("Booked.")


@pytest.mark.thorough
def test_an_answer_that_the_server_refuses_can_be_given_again(serve, open_chat):
    @tool
    def count(context: ToolContext) -> str:
        """Count."""
        return str(context.ask("How many?", {"type": "integer", "multipleOf": 5}))

    llm = Script([Action(name="count")], ["Counted."])
    chat = open_chat(serve(Brain(llm=llm, tools=[count])).url)
    chat.ask("Count.")
    chat.page.get_by_label("Your answer").fill("7")
    chat.button("Answer").click()
    expect(chat.log.get_by_role("alert")).to_contain_text("7 is not a multiple of 5")
    chat.tolerate("400")
    chat.page.get_by_label("Your answer").fill("10")
    chat.button("Answer").click()

    expect(chat.tool("count").get_by_label("Result")).to_have_text("10")


class Guest(BaseModel):
    """Who comes along."""

    name: str


class Party(BaseModel):
    host: Guest
    tables: list[int]
    price: Decimal = Decimal("3.5")
    music: bool | None = None
    note: str | None = "none yet"
    dogs: int | None


@tool
def invite(context: ToolContext) -> str:
    """Plan a party."""
    party = context.ask("Which party?", Party)
    code = context.ask("Which code?", int | str)
    return f"{party!r} {code!r}"


@pytest.mark.thorough
def test_fields_of_a_form_have_their_own_names_and_may_be_left_open(serve, open_chat):
    chat = open_chat(
        serve(Brain(llm=Script([Action(name="invite")], ["Done."]), tools=[invite])).url
    )
    page = chat.page

    chat.ask("A party, please.")
    page.get_by_role("group", name="Host").get_by_label("Name").fill("Bo")
    page.get_by_label("Tables").fill("1\n12")
    expect(page.get_by_label("Price (optional)")).to_have_value("3.5")
    expect(page.get_by_label("Music (optional)")).to_have_text("Choose…YesNo")
    page.get_by_label("Note (optional)").fill("")
    chat.button("Answer").click()
    page.get_by_label("Your answer").fill("A 7")
    chat.button("Answer").click()

    expect(chat.tool("invite").get_by_label("Result")).to_have_text(
        "Party(host=Guest(name='Bo'), tables=[1, 12], price=Decimal('3.5'), music=None, note=None,"
        " dogs=None) 'A 7'"
    )


class Order(BaseModel):
    note: str = "hello"
    code: str = Field(title="Postal code", description="Four digits")
    count: int = Field(default=5, description="How many")
    kind: Literal["", "a", "b", "c", "d"] = "a"
    price: Decimal
    sizes: list[int] = []
    weights: list[Decimal] = []


@tool
def order(context: ToolContext) -> str:
    """Order something."""
    return f"{context.ask('Which order?', Order)!r} {context.ask('Which number?', int | str)!r}"


@pytest.mark.thorough
def test_what_is_typed_is_sent_as_it_is(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script([Action(name="order")], ["Done."]), tools=[order])).url)
    page, alert = chat.page, chat.log.get_by_role("alert")
    chat.ask("Order it.")
    page.get_by_label("Note (optional)").fill("")
    page.get_by_label("Postal code: Four digits").fill("0150")
    page.get_by_label("Count: How many (optional)").fill("")
    page.get_by_label("Kind (optional)").select_option("(empty)")
    page.get_by_label("Price").fill("12345678901234567.80")
    page.get_by_label("Sizes (optional)").fill("1, x")
    page.get_by_label("Weights (optional)").fill("1.10, 2")
    chat.button("Answer").click()
    expect(alert).to_contain_text("count: ", ignore_case=True)  # its preset would return
    page.get_by_label("Count: How many (optional)").fill("6")
    chat.button("Answer").click()
    expect(page.locator(".field", has=page.get_by_role("alert"))).to_contain_text(
        "Sizes: x is not a number."
    )
    page.get_by_label("Sizes (optional)").fill("1, 2\n3")
    chat.button("Answer").click()
    page.get_by_label("Your answer").fill("0012")
    chat.button("Answer").click()

    expect(chat.tool("order").get_by_label("Result")).to_have_text(
        "Order(note='', code='0150', count=6, kind='', price=Decimal('12345678901234567.80'), "
        "sizes=[1, 2, 3], weights=[Decimal('1.10'), Decimal('2')]) '0012'"
    )


def test_a_call_that_was_not_decided_does_not_run_when_something_else_is_asked(serve, open_chat):
    llm = Script([Action(name="ask_user", args={"question": "Which city?"})], ["Fine."])
    chat = open_chat(serve(Brain(llm=llm, tools=[ask_user])).url)
    chat.ask("Book")
    expect(chat.log.get_by_text("Which city?", exact=True)).to_be_visible()
    chat.ask("Something else")
    expect(chat.answers.last).to_have_text("Fine.")
    expect(chat.tool("ask_user").locator(".tool-status")).to_have_text("failed")


class Place(BaseModel):
    city: str
    rooms: list[int] = []


class Contact(BaseModel):
    name: str
    place: Place | None = None


class Shipment(BaseModel):
    sender: Contact
    receiver: Contact = Contact(name="Ann")
    express: bool = False


@tool
def send(context: ToolContext) -> str:
    """Send a parcel."""
    return repr(context.ask("Which parcel?", Shipment))


@pytest.mark.thorough
def test_a_form_in_a_form_has_fields_and_is_left_out_where_nothing_is_filled_in(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script([Action(name="send")], ["Sent."]), tools=[send])).url)
    page = chat.page
    chat.ask("Send it.")
    sender = page.get_by_role("group", name="Sender")
    place = sender.get_by_role("group", name="Place (optional)")
    receiver = page.get_by_role("group", name="Receiver (optional)")
    expect(receiver.get_by_label("Name")).to_have_value("Ann")
    chat.button("Answer").click()
    expect(chat.log.get_by_role("alert")).to_contain_text("Name: ")
    sender.get_by_label("Name").fill("Bo")
    place.get_by_label("Rooms (optional)").fill("3\n4")
    chat.button("Answer").click()
    expect(chat.log.get_by_role("alert")).to_contain_text("City: ")
    place.get_by_label("City").fill("Oslo")
    chat.button("Answer").click()

    expect(chat.tool("send").get_by_label("Result")).to_have_text(
        "Shipment(sender=Contact(name='Bo', place=Place(city='Oslo', rooms=[3, 4])), "
        "receiver=Contact(name='Ann', place=None), express=False)"
    )


class Account(BaseModel):
    name: str
    password: SecretStr
    first: str = ""
    second: str = ""
    third: str = ""
    fourth: str = ""
    fifth: str = ""


@pytest.mark.parametrize("width", [390, *thorough([1360])])
def test_a_long_form_begins_in_view_and_hides_what_is_secret(serve, open_chat, width):
    @tool
    def sign_up(context: ToolContext) -> str:
        """Sign up."""
        return context.ask("Which account?", Account).name

    llm = Script(["Hello."], [Action(name="sign_up")], words(0, 600))
    size = {"width": width, "height": 500}
    chat = open_chat(serve(Brain(llm=llm, tools=[sign_up])).url, viewport=size)
    page = chat.page

    chat.ask("Sign me up.\n" * 30)
    chat.wait_until_idle()
    chat.ask("Now.")
    for _ in range(2):
        expect(chat.log.get_by_text("Which account?")).to_be_in_viewport()
        page.reload()
    chat.log.get_by_label("Name").fill("ann")
    expect(page.get_by_label("Password")).to_have_attribute("type", "password")
    page.get_by_label("Password").fill("hunter2")
    chat.button("Answer").click()
    chat.wait_until_idle()

    expect(chat.tool("sign_up").get_by_label("Result")).to_have_text("ann")
    expect(chat.answers.last).to_contain_text("w599")
    assert page.evaluate("innerWidth >= document.documentElement.scrollWidth")
    box = "document.querySelector('#log')"
    page.wait_for_function(f"{box}.scrollHeight - {box}.scrollTop - {box}.clientHeight < 2")
