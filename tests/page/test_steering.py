"""A person stops a run, cancels it, or writes to it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from agent_brain import Brain, Limits, tool
from agent_brain.tools import Action
from tests.page.model import Pause, Script


def brain_with_a_slow_tool(pause: Pause) -> tuple[Brain[str], Script]:
    @tool
    async def search() -> str:
        """Search."""
        await pause.wait()
        return "found"

    llm = Script([Action(name="search")], ["It is ", "here."], ["You are welcome."])
    return Brain(llm=llm, tools=[search]), llm


def test_stop_ends_the_run_after_the_step_and_it_can_be_continued(serve, open_chat, pauses):
    pause = pauses()
    brain, _ = brain_with_a_slow_tool(pause)
    chat = open_chat(serve(brain).url)

    chat.ask("Where is it?")
    pause.wait_until_reached()
    with chat.page.expect_response("**/stop"):
        chat.button("Stop").click()
    pause.release()
    expect(chat.log.get_by_text("The run was stopped.")).to_be_visible()
    expect(chat.page.locator("#announcer")).to_have_text("The run was stopped.")
    expect(chat.tool("search").get_by_label("Result")).to_have_text("found")
    chat.button("Continue the run").click()

    expect(chat.answers).to_have_text("It is here.")
    chat.wait_until_idle()


def test_cancel_ends_the_run_at_once(serve, open_chat, pauses):
    pause = pauses()
    brain, _ = brain_with_a_slow_tool(pause)
    chat = open_chat(serve(brain).url)

    chat.ask("Where is it?")
    pause.wait_until_reached()
    chat.button("Cancel now").click()

    expect(chat.log.get_by_text("The run was cancelled.")).to_be_visible()
    expect(chat.page.locator("#announcer")).to_have_text("The run was cancelled.")
    expect(chat.button("Stop")).to_be_hidden()
    expect(chat.input).to_be_focused()


@pytest.mark.parametrize("reload", [False, True])
def test_an_answer_that_was_cut_off_is_given_whole_when_the_run_continues(
    serve, open_chat, pauses, reload
):
    llm = Script(["It is ", pauses()], ["It is here."])
    chat = open_chat(serve(Brain(llm=llm)).url)

    chat.ask("Where is it?")
    expect(chat.answers).to_have_text("It is")
    chat.button("Cancel now").click()
    chat.wait_until_idle()
    if reload:
        chat.page.reload()
    chat.button("Continue the run").click()

    expect(chat.answers).to_have_text(["It is here."])
    chat.wait_until_idle()


def test_a_run_that_reaches_a_limit_says_so(serve, open_chat):
    llm = Script([Action(name="look")])
    brain = Brain(llm=llm, tools=[tool(name="look")(lambda: "far")], limits=Limits(max_steps=2))
    chat = open_chat(serve(brain).url)

    chat.ask("Where is it?")

    said = "The run has reached its limit of steps."
    expect(chat.log.get_by_text(said)).to_be_visible()
    expect(chat.page.locator("#announcer")).to_have_text(said)


def test_a_message_that_is_sent_meanwhile_is_read_after_the_step(serve, open_chat, pauses):
    pause = pauses()
    brain, llm = brain_with_a_slow_tool(pause)
    chat = open_chat(serve(brain).url)

    chat.ask("Where is it?")
    pause.wait_until_reached()
    chat.ask("Look in Oslo.")
    waiting = chat.log.get_by_role("article", name="You, not read yet")
    expect(waiting).to_have_text("Look in Oslo.")
    pause.release()

    expect(waiting).to_have_count(0)
    expect(chat.log.get_by_role("article", name="You")).to_have_text(
        ["Where is it?", "Look in Oslo."]
    )
    expect(chat.answers).to_have_text("It is here.")
    assert [message.content for message in llm.asked[1] if message.role == "user"][
        -1
    ] == "Look in Oslo."


@pytest.mark.thorough
def test_a_message_that_comes_too_late_starts_the_next_run(serve, open_chat, pauses):
    pause = pauses()
    llm = Script(["It is here.", pause], ["You are welcome."])
    chat = open_chat(serve(Brain(llm=llm)).url)

    chat.ask("Where is it?")
    expect(chat.answers).to_have_text("It is here.")
    chat.ask("Thanks!")
    expect(chat.log.get_by_role("article", name="You, not read yet")).to_have_text("Thanks!")
    pause.release()

    expect(chat.answers).to_have_text(["It is here.", "You are welcome."])
    expect(chat.log.get_by_role("article", name="You")).to_have_text(["Where is it?", "Thanks!"])
    chat.wait_until_idle()
