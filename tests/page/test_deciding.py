"""A run waits for a person, who decides on the page."""

from __future__ import annotations

import re

from playwright.sync_api import Route, expect
from pydantic import JsonValue

from agent_brain import Brain, tool
from agent_brain.tools import Action
from agent_brain.tools.builtin import ask_user
from tests.page.model import Pause, Script


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
    area.fill('{"path": ')
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
    chat.tolerate("409")
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
    group.get_by_label("Your answer").fill("Blue")
    group.get_by_label("Your answer").press("Enter")

    expect(chat.answers.last).to_have_text("Blue it is.")
    expect(group).to_have_count(0)


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
