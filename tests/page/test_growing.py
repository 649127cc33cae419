"""A person watches the arguments of a call and an object while the model writes them."""

from __future__ import annotations

import json
import os
from enum import Enum
from pathlib import Path

import pytest
from playwright.sync_api import expect
from pydantic import BaseModel

from agent_brain import Brain, Net, react, tool
from agent_brain.nets import ParallelState
from agent_brain.states import ArgumentsDelta
from agent_brain.tools import Action
from tests.page.model import Pause, Script

ARGUMENTS = '{"city": "Oslo", "note": "what to wear on the first of May?"}'
TRIP = '{"title": "Fjords in spring", "days": 12, "stops": ["Bergen", "Flåm", "Balestrand"]}'


class Trip(BaseModel):
    title: str
    days: int
    stops: list[str]


@tool
async def weather(city: str, note: str) -> str:
    """The weather in a city.

    Args:
        city: Its name.
        note: What it is asked for.
    """
    return f"Rain in {city}"


def called(call: str, name: str, text: str, *pauses: Pause) -> list[ArgumentsDelta | Pause]:
    """The pieces of the arguments, with a pause after each but the last one."""
    size = -(-len(text) // (len(pauses) + 1))
    pieces = [ArgumentsDelta(call, name, text[i : i + size]) for i in range(0, len(text), size)]
    return [step for pair in zip(pieces, pauses, strict=False) for step in pair] + pieces[-1:]


def picture(chat, name: str) -> None:
    if folder := os.environ.get("AGENT_BRAIN_PICTURES"):
        for scheme in ("light", "dark"):
            chat.page.emulate_media(color_scheme=scheme)
            chat.page.screenshot(path=Path(folder) / f"{name}-{scheme}.png")


def test_arguments_and_the_object_grow_on_the_page(serve, open_chat, pauses):
    in_call, in_object = pauses(), pauses()
    llm = Script(
        [
            "Let me look. ",
            *called("c1", "weather", ARGUMENTS, in_call),
            Action(name="weather", args={"city": "Oslo", "note": "what to wear?"}, id="c1"),
        ],
        [
            *called("c2", "final_result", TRIP, in_object),
            Action(
                name="final_result",
                args={"title": "Fjords in spring", "days": 12, "stops": ["Bergen", "Flåm"]},
                id="c2",
            ),
        ],
    )
    chat = open_chat(serve(Brain(llm=llm, tools=[weather], output_type=Trip)).url)
    chat.ask("Where to?")

    card = chat.tool("weather")
    expect(card.get_by_label("arguments")).to_have_text('{"city": "Oslo", "note": "what')
    expect(card.locator(".tool-status")).to_have_text("is being written")
    picture(chat, "arguments")
    in_call.release()

    expect(card).to_have_count(1)
    expect(card.get_by_label("arguments")).to_contain_text("what to wear?")
    expect(card.locator(".tool-status")).to_have_text("done")
    grown = chat.log.get_by_label("Answer", exact=True)
    expect(grown).to_have_text('{"title":"Fjords in spring","days":12}')
    picture(chat, "object")
    in_object.release()

    expect(grown).to_contain_text('"Flåm"')
    chat.wait_until_idle()
    picture(chat, "whole")
    assert chat.log.get_by_text("Fjords in spring").count() == 1
    chat.page.reload()
    expect(chat.log.get_by_label("Answer", exact=True)).to_contain_text('"days": 12')


class Plan(Enum):
    ASK = "ask"


def test_objects_of_branches_stay_where_they_have_grown(serve, open_chat):
    def planner() -> Net:
        call = Action(name="final_result", args=json.loads(TRIP), id="c")
        return react(Script([*called("c", "final_result", TRIP), call]), output_type=Trip)

    branches = ParallelState({"north": planner(), "south": planner()}, join=lambda *_: "Two trips.")
    chat = open_chat(serve(Brain(Net({Plan.ASK: branches}))).url)
    chat.ask("Where to?")

    expect(chat.answers.last).to_have_text("Two trips.")
    chat.wait_until_idle()
    for name in ("north", "south"):
        branch = chat.log.locator("details.branch details.branch").filter(has_text=name)
        expect(branch.get_by_label("Answer", exact=True)).to_contain_text('"Balestrand"')


@pytest.mark.thorough
def test_what_does_not_come_is_taken_back(serve, open_chat, pauses):
    in_call, in_object = pauses(), pauses()
    llm = Script(
        [
            "Hm. ",
            *called("c0", "weather", ARGUMENTS, in_call)[:-1],
            *called("c2", "final_result", TRIP, in_object)[:-1],
            ConnectionError("gone"),
        ],
    )
    chat = open_chat(serve(Brain(llm=llm, tools=[weather], output_type=Trip)).url)
    chat.ask("Where to?")

    expect(chat.tool("weather")).to_have_count(1)
    in_call.release()
    expect(chat.log.get_by_label("Answer", exact=True)).to_have_count(1)
    in_object.release()

    expect(chat.log.get_by_text("The run failed.")).to_be_visible()
    expect(chat.tool("weather")).to_have_count(0)
    expect(chat.log.get_by_label("Answer", exact=True)).to_have_count(0)


@pytest.mark.thorough
def test_an_object_that_was_cancelled_is_not_shown_as_an_answer(serve, open_chat, pauses):
    in_object = pauses()
    llm = Script(called("c2", "final_result", TRIP, in_object))
    chat = open_chat(serve(Brain(llm=llm, output_type=Trip)).url)
    chat.ask("Where to?")
    expect(chat.log.get_by_label("Answer", exact=True)).to_have_count(1)

    chat.button("Stop").click()
    chat.button("Cancel now").click()

    expect(chat.log.get_by_text("Cancelled.")).to_be_visible()
    expect(chat.log.get_by_label("Answer", exact=True)).to_have_count(0)
