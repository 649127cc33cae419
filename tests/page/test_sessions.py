"""Several sessions, reloads, and two tabs on one session."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import expect

from agent_brain import Brain
from tests.page.model import Script, words


@pytest.mark.thorough
def test_a_reload_finds_the_session_with_its_messages(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["**Oslo**."]))).url)

    chat.ask("The capital?")
    chat.wait_until_idle()
    expect(chat.answers).to_have_text("Oslo.")
    chat.page.reload()

    expect(chat.answers.locator("strong")).to_have_text("Oslo")
    expect(chat.log.get_by_role("article")).to_have_text(["The capital?", "Oslo."])


def test_a_reload_in_the_middle_shows_the_answer_so_far_and_the_rest(serve, open_chat, pauses):
    pause = pauses()
    llm = Script(["Hello."], [*words(0, 40), pause, *words(40, 80)])
    chat = open_chat(serve(Brain(llm=llm)).url)

    chat.ask("Hi")
    expect(chat.answers).to_have_text("Hello.")
    chat.ask("Count.")
    pause.wait_until_reached()
    chat.page.reload()
    expect(chat.answers.last).to_contain_text("w39")
    pause.release()

    expect(chat.answers).to_have_text(["Hello.", "".join(words(0, 80)).strip()])
    expect(chat.log.get_by_role("article", name="You")).to_have_text(["Hi", "Count."])


def test_two_tabs_on_one_session_show_the_same(serve, open_chat, pauses):
    pause = pauses()
    llm = Script([*words(0, 30), pause, *words(30, 60)], ["Yes, it was."])
    first = open_chat(serve(Brain(llm=llm)).url)

    first.ask("Count.")
    pause.wait_until_reached()
    second = open_chat(first.page.url, beside=first)
    expect(second.answers).to_contain_text("w29")
    pause.release()
    first.wait_until_idle()
    second.wait_until_idle()
    second.ask("Was that all?")

    for chat in (first, second):
        expect(chat.answers).to_have_text(["".join(words(0, 60)).strip(), "Yes, it was."])
        questions = chat.log.get_by_role("article", name="You")
        expect(questions).to_have_text(["Count.", "Was that all?"])


def test_sessions_are_listed_opened_and_deleted(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["One."], ["Two."]))).url)
    links = chat.page.get_by_role("navigation", name="Chats").get_by_role("link")

    chat.ask("First")
    chat.wait_until_idle()
    chat.button("New chat").click()
    expect(chat.log.get_by_role("article")).to_have_count(0)
    chat.ask("Second")
    chat.wait_until_idle()
    expect(links).to_contain_text(["Second", "First"])
    links.nth(1).click()
    expect(chat.answers).to_have_text("One.")
    chat.button("Delete First").click()
    chat.page.get_by_role("dialog").get_by_role("button", name="Delete").click()

    expect(links).to_have_count(1)
    expect(links).to_contain_text("Second")
    expect(chat.page.get_by_text("What can I do for you?")).to_be_visible()


@pytest.mark.thorough
def test_a_chat_is_kept_if_the_person_thinks_again(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["One."]))).url)

    chat.ask("First")
    chat.wait_until_idle()
    chat.button("Delete First").click()
    chat.page.get_by_role("dialog").get_by_role("button", name="Keep").click()

    expect(chat.page.get_by_role("dialog")).to_be_hidden()
    expect(chat.answers).to_have_text("One.")


def test_back_and_forward_move_between_sessions(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["One."], ["Two."]))).url)

    chat.ask("First")
    expect(chat.answers).to_have_text("One.")
    chat.wait_until_idle()
    chat.button("New chat").click()
    chat.ask("Second")
    expect(chat.answers).to_have_text("Two.")
    chat.page.go_back()
    chat.page.go_back()

    expect(chat.answers).to_have_text("One.")


def test_an_unknown_session_is_an_error_in_words(serve, open_chat):
    chat = open_chat(serve(Brain(), user=None).url + "#/nothing-here")
    chat.tolerate("404")

    expect(chat.page.locator("#problem")).to_contain_text("nothing-here")


@pytest.mark.thorough
def test_the_list_is_asked_for_once_and_events_say_the_rest(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["One."], ["Two."]))).url)
    asked: list[str] = []
    chat.page.on("request", lambda each: asked.append(f"{each.method} {each.url}"))
    links = chat.page.get_by_role("navigation", name="Chats").get_by_role("link")

    for question in ("First question", "Second question"):
        chat.ask(question)
        chat.wait_until_idle()
    expect(links).to_contain_text(["First question"])
    expect(chat.page).to_have_title("First question – Agent Brain")

    assert [each for each in asked if "/sessions" in each and each.startswith("GET")] == [
        each for each in asked if each.startswith("GET") and "/sessions/" in each
    ]


def test_a_chat_is_renamed(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["One."], ["Two."]))).url)
    links = chat.page.get_by_role("navigation", name="Chats").get_by_role("link")
    dialog = chat.page.get_by_role("dialog")

    chat.ask("First")
    chat.wait_until_idle()
    chat.button("Rename First").click()
    dialog.get_by_label("Title").fill("The best <b>one</b>")
    dialog.get_by_label("Title").press("Enter")
    expect(links).to_contain_text(["The best <b>one</b>"])
    chat.ask("Second")
    chat.wait_until_idle()
    chat.button("Rename The best <b>one</b>").click()
    dialog.get_by_role("button", name="Cancel").click()

    expect(links).to_contain_text(["The best <b>one</b>"])
    expect(chat.page).to_have_title("The best <b>one</b> – Agent Brain")
    chat.page.reload()
    expect(links).to_contain_text(["The best <b>one</b>"])


def test_more_chats_are_loaded_and_found(serve, open_chat, tmp_path):
    server = serve(Brain(llm=Script(*(["Yes."] for _ in range(60)))), journal=tmp_path / "j.db")
    for n in range(60):
        body = {"task": f"Question {n} of sixty"}
        path = f"{server.url}sessions/s{n}/runs"
        httpx.post(path, json=body, headers={"accept": "application/json"}).raise_for_status()
    chat = open_chat(server.url)
    links = chat.page.get_by_role("navigation", name="Chats").locator("li > a:first-child")

    expect(links).to_have_count(50)
    chat.button("More chats").click()
    expect(links).to_have_count(60)
    expect(chat.button("More chats")).to_be_hidden()
    chat.page.get_by_label("Search chats").fill("QUESTION 7")

    expect(links).to_have_count(1)
    expect(links).to_contain_text(["Question 7 of sixty"])
    chat.page.get_by_label("Search chats").fill("of seventy")
    expect(chat.page.get_by_text("No chat found.")).to_be_visible()
