from __future__ import annotations

import numpy as np
import pytest

from agent_brain.memories.recall import questions
from agent_brain.memories.recall.features import Features
from agent_brain.memories.recall.questions import Participants, in_first_person


def read(question, people):
    return questions.read(question, people, Features())


def participants(*names):
    people = Participants()
    for name in names:
        people.add(name)
    return people


@pytest.mark.parametrize(
    "question, dense",
    [
        ("When did Ann join her group?", "When did I join my group?"),
        ("What does Ann's sister do?", "What does my sister do?"),
        ("Has ANN seen it herself?", "Have I seen it myself?"),
        ("What did Mary Ann Lee buy?", "What did I buy?"),
        ("What did Ann give Bob?", "What did I give I?"),
        ("What did Anna say?", "What did Anna say?"),
        ("What did I say about the boat?", "What did I say about the boat?"),
        ("¿Qué dijo Carlos?", "¿Qué dijo Carlos?"),
    ],
)
def test_a_question_is_embedded_as_those_it_names_would_put_it(question, dense):
    people = participants("Ann", "Bob", "Mary Ann Lee")
    assert in_first_person(question, people.mentions(question)) == dense


@pytest.mark.parametrize(
    "question, speaker",
    [
        ("What did Ann buy?", "Ann Smith"),
        ("what did ann smith buy?", "Ann Smith"),
        ("What did Ann give Bob?", "Ann Smith"),
        ("What do Ann and Bob share?", None),
        ("Do both Bob, Ann like it?", None),
        ("What did Smith buy?", None),
        ("What did I buy?", None),
        ("", None),
    ],
)
def test_a_question_is_about_the_one_person_it_names(question, speaker):
    people = participants("Ann Smith", "Joe Smith", "Bob")
    assert read(question, people).speaker == speaker


def test_a_name_that_is_a_word_too_counts_only_where_it_is_written_as_a_name():
    people = participants("Will")
    assert read("When will the boat come?", people).speaker is None
    assert read("Will the boat come?", people).speaker is None
    assert read("What did Will say?", people).speaker == "Will"


def test_names_are_found_inside_scripts_without_spaces():
    assert read("张伟说了什么？", participants("张伟", "李娜")).speaker == "张伟"


def test_names_are_not_looked_up_as_words():
    assert "ann" not in read("What did Ann say about boats?", participants("Ann")).terms


def test_words_of_asking_are_looked_up_only_where_there_are_no_others():
    assert read("What kind of boat did Ann mention?", participants("Ann")).terms == ("boat",)
    assert read("What was mentioned?", participants("Ann")).terms == ("mention",)


def test_who_has_no_message_left_takes_no_part():
    people = participants("Ann", "Ann", "Bob", "张伟")
    people.keep(np.array([people.numbers["Ann"], people.numbers["Bob"]]))
    assert people.mentions("Ann")
    assert not people.mentions("张伟")
    people.keep(np.array([people.numbers["Bob"]]))
    assert not people.mentions("Ann 张伟")
    assert people.mentions("Bob")


@pytest.mark.parametrize("name", ["", "🎉", "\x00", "I", "...", "s"])
def test_odd_names_are_found_nowhere(name):
    question = "What is this 🎉 about?"
    assert in_first_person(question, participants(name).mentions(question)) == question
