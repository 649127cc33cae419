from __future__ import annotations

import random
from datetime import timedelta
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_brain.memories.recall.index import RecallIndex
from agent_brain.memories.recall.indexing import Item
from tests.memories.recall.conversations import LINES, START, cosines, ids, index_of, items
from tests.support.thorough import examples


def test_a_message_is_found_by_its_words():
    assert ids(index_of().search("Where is the lighthouse?", 1)) == ["m3"]


def test_a_message_is_found_by_an_id():
    assert ids(index_of().search("how much was inv-2041", 1)) == ["m7"]


def test_what_a_person_said_comes_before_what_was_said_to_them():
    (hit,) = index_of().search("What did Bob say about the boat?", 1)
    assert hit.id == "m1"
    assert hit.why["speaker"] > 0


def test_the_answer_to_a_question_is_found_though_it_shares_no_word_with_it():
    hits = index_of().search("What is the name of Ann's puppy?", 3)
    assert "m6" in ids(hits)
    answer = next(hit for hit in hits if hit.id == "m6")
    assert answer.why["answers"] > 0
    assert "words" not in answer.why


def test_a_first_person_question_is_searched_as_one_that_names_nobody():
    index = index_of()
    assert index.dense_question("What did I say about the boat?") == (
        "What did I say about the boat?"
    )
    first = index.search("What did I say about the boat?", 8)
    nameless = index.search("What did they say about the boat?", 8)
    assert first == nameless
    assert not any("speaker" in hit.why for hit in first)


def test_answers_are_known_by_role_where_nobody_has_a_name():
    index = RecallIndex()
    index.add([Item("q", "Which harbour is the boat in?", role="user")])
    index.add([Item("a", "Kiel.", role="assistant"), Item("b", "Kiel.", role="assistant")])
    hits = {hit.id: hit for hit in index.search("harbour of the boat")}
    assert "answers" in hits["a"].why
    assert "answers" not in hits["b"].why


LONG = (
    "Here is an answer about a boat. " + "It goes on and on about sails, ropes and harbours. " * 9
)
CHATS = [
    Item(f"{name}{day}", text, time=START + timedelta(days=day), role=role)
    for day, said in enumerate(
        ["I keep my boat in Kiel.", "What does a boat cost?", "The boat has a new mast."]
    )
    for name, role, text in (("q", "user", said), ("a", "assistant", LONG))
]


def test_what_a_user_said_comes_before_the_long_answers_of_an_assistant():
    hits = index_of(CHATS).search("Where is the boat?", 6)
    assert {*ids(hits)[:3]} == {"q0", "q1", "q2"}
    assert hits[0].why["role"] > 0
    asked = index_of(CHATS).search("What did you suggest about the boat?", 6)
    assert {*ids(asked)[:3]} == {"a0", "a1", "a2"}


def chats(days: int, told: str, answer: str) -> list[Item]:
    return [
        Item(f"{name}{day}", text, time=START + timedelta(days=day), role=role)
        for day in range(days)
        for name, role, text in (("q", "user", f"{told} {day}"), ("a", "assistant", answer))
    ]


TOLD = "I was at the boat again, which took me most of the day, and I am rather tired now, day"
ANSWER = "That is a good thing to do, and there is more to say about it, as you may know. " * 8


def test_what_an_assistant_said_is_found_by_its_meaning_among_what_the_user_said_about_it():
    index = index_of(chats(40, TOLD, ANSWER))
    cosines = {f"q{day}": 0.3 - day / 200 for day in range(40)}
    cosines |= {f"a{day}": 0.1 - day / 200 for day in range(40)}
    hits = index.search("How high should a mast be?", 10, cosines=cosines | {"a20": 0.7})
    assert "a20" in ids(hits)
    assert sum(hit.id.startswith("q") for hit in hits) > 5


def test_what_a_user_said_is_found_among_ten_long_answers_about_it():
    index = index_of(chats(40, TOLD, ANSWER))
    cosines = {f"{name}{day}": -day / 200 for day in range(40) for name in "qa"}
    cosines |= {f"a{day}": 0.4 for day in range(10, 20)} | {"q30": 0.4}
    assert ids(index.search("How high is my mast?", 5, cosines=cosines))[0] == "q30"


def test_only_who_asks_for_what_the_agent_said_is_answered_with_it():
    for text in ("The boat is fine, as you said.", "I took the boat that you suggested."):
        assert ids(index_of(CHATS).search(text, 1))[0].startswith("q")
    for text in ("Which boat did you suggest", "The boat you suggested, what was it?"):
        assert ids(index_of(CHATS).search(text, 1))[0].startswith("a")


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (("user", "My boat is in Kiel.", 0), ("user", "A boat with two red masts, it is.", 0)),
        (("user", "My boat is in Kiel.", 0), ("user", "Where are boats painted?", 1)),
        (("assistant", "Keep boats in Kiel.", 0), ("assistant", "Keep boats clean.", 1)),
    ],
)
def test_only_what_a_user_states_in_another_conversation_comes_before_what_is_older(first, later):
    index = index_of(chats(5, TOLD, ANSWER))
    for name, (role, text, day) in (("first", first), ("later", later)):
        index.add([Item(name, text, time=START + timedelta(days=day), role=role)])
    cosines = {f"{name}{day}": 0.1 for day in range(5) for name in "qa"}
    alike = {name: np.ones((1, 1), np.float32) for name in ("first", "later")}
    cosines |= {"first": 0.95, "later": 0.8}
    hits = index.search("Which harbour is it?", 2, cosines=cosines, vectors=lambda _: alike)
    assert ids(hits) == ["first", "later"]


def test_of_conversations_that_match_the_newer_comes_first_and_recent_others_do_not():
    days = [
        "My boat is in Kiel.",
        "My boat is in Rome.",
        "Bread needs salt, and flour.",
        "It rained.",
    ]
    index = RecallIndex()
    for day, text in enumerate(days):
        index.add([Item(text, text, time=START + timedelta(days=day), role="user")])
    hits = {hit.id: hit.why.get("recent", 0) for hit in index.search("my boat?", 4)}
    assert [*hits][:2] == [days[1], days[0]]
    assert hits[days[1]] > hits.get(days[3], 0)


def test_what_has_all_words_of_a_question_comes_before_what_is_like_it_and_newer():
    index = RecallIndex()
    texts = [f"{word} {n}" for n in range(60) for word in ("one", "two", "three", "four", "five")]
    random.Random(2).shuffle(texts)
    for hour, text in enumerate(texts):
        index.add([Item(text, text, time=START + timedelta(hours=hour), role="user")])
    assert [index.search(text, 1)[0].id for text in texts] == texts


def test_conversations_that_share_words_with_the_best_ones_match_too():
    talks = [
        ["My thesis is about wild bees.", "The supervisor wants a chapter on pollen by May."],
        ["Bees again: the supervisor liked the pollen chapter.", "Thesis printed."],
        ["The thesis needs pollen, the supervisor wrote."],
        ["The thesis of aunt Ida burned in Rome."],
    ]
    index = RecallIndex()
    for day, talk in enumerate(talks):
        start = START + timedelta(days=day)
        index.add(items([(None, text) for text in talk], prefix=f"{day}.", start=start))
    why = {hit.id: hit.why["conversation"] for hit in index.search("bees thesis", 9)}
    assert why["2.0"] > why["3.0"]


def test_what_the_agent_said_comes_first_if_it_is_asked_for():
    said = [
        "I like hotels by the sea.",
        "For Lisbon I recommend the hotel Avenida, it is quiet and " * 9,
    ]
    index = RecallIndex()
    for n, (text, role) in enumerate(zip(said * 3, ["user", "assistant"] * 3, strict=True)):
        index.add([Item(f"{role}{n}", text, time=START + timedelta(hours=n), role=role)])
    own = ("Which hotel do I like?", "Can you recommend a hotel?", "Remind me which hotel I like.")
    agents = (
        "Which hotel did you tell me about?",
        "What hotel did you suggest?",
        "Remind me of the hotel you've recommended.",
    )
    assert all(index.search(q, 1)[0].id.startswith("user") for q in own)
    assert all(index.search(q, 1)[0].id.startswith("assistant") for q in agents)


def test_a_newer_statement_about_the_same_thing_comes_before_the_older_one():
    old, new = (
        "I live in Paris, near the river: we live well.",
        "I moved to Porto, so I live far away.",
    )
    index = RecallIndex()
    for day, text in enumerate([old, "Bread needs salt.", new, "It rained."]):
        index.add([Item(text, text, time=START + timedelta(days=day), role="user")])
    assert ids(index.search("Where do I live?", 2)) == [new, old]
    invoices = items([(None, "INV-1 is paid."), (None, "INV-2 is paid.")])
    assert ids(index_of(invoices).search("Is INV-1 paid?", 2)) == ["m0", "m1"]


def statements_among_others(*texts: str) -> RecallIndex:
    index = RecallIndex()
    for day, text in enumerate([*texts, *(f"Bread {n} needs salt." for n in range(20))]):
        index.add([Item(text, text, time=START + timedelta(days=day), role="user")])
    return index


def test_all_newer_statements_about_the_same_thing_come_before_the_older_one():
    old = "I pay 900 in rent."
    newer = ["The rent I pay is 1,100.", "From this month on the rent is 1,300."]
    found = ids(statements_among_others(old, *newer).search("What do I pay in rent?", 3))
    assert found == [*newer[::-1], old]


def test_a_newer_statement_may_lack_a_word_of_the_question():
    old, new = "My usual morning drink is cocoa.", "I stopped that, my morning drink is matcha now."
    index = statements_among_others(old, new)
    assert ids(index.search("What is my usual morning drink?", 2)) == [new, old]


def test_the_best_of_another_conversation_comes_before_more_of_the_same():
    one = items(
        [("Ann", "The boat is blue, a fine boat."), ("Ann", "That boat of ours is getting old.")]
    )
    other = items([("Ann", "A boat.")], start=START + timedelta(days=2), prefix="n")
    found = ids(index_of(one, other).search("boat", 3))
    assert {*found[:2]} == {"m0", "n0"}


def test_a_vector_finds_what_words_do_not():
    index = RecallIndex()
    index.add([Item("a", "Mist ahead."), Item("b", "Sunny.")])
    (hit,) = index.search("fog?", 1, cosines={"a": 0.99, "b": 0.1})
    assert hit.id == "a"
    assert hit.why["meaning"] > 0


def test_the_reasons_add_up_to_the_score():
    for hit in index_of().search("When did Ann adopt a puppy on 4 March?", 8):
        assert sum(hit.why.values()) == pytest.approx(hit.score, abs=1e-5)


def test_a_named_day_brings_up_what_was_said_around_it():
    later = items([("Ann", "We went swimming.")], start=START + timedelta(days=60), prefix="x")
    index = index_of(items(), later)
    assert ids(index.search("What happened on 3 May 2024?", 1)) == ["x0"]
    asked = START + timedelta(days=61)
    assert ids(index.search("What happened yesterday?", 1, now=asked)) == ["x0"]


def test_a_day_on_which_nothing_was_said_is_looked_up_as_words():
    index = index_of(items([("Ann", "We had cake yesterday."), ("Ann", "We swam.")]))
    asked = START + timedelta(days=900)
    assert ids(index.search("What happened yesterday?", 1, now=asked)) == ["m0"]


def test_what_nothing_speaks_for_is_not_found():
    index = index_of()
    assert index.search("zebra") == []
    assert index.search("") == []
    assert RecallIndex().search("boat", cosines={"m1": 1.0}) == []
    assert index.search("boat", 0) == []


def test_of_equal_messages_the_newer_are_found_first():
    index = RecallIndex()
    index.add(Item(str(i), "the same boat", thread=str(i)) for i in range(100))
    assert ids(index.search("boat", 20)) == [str(i) for i in range(99, 79, -1)]
    timed = RecallIndex()
    for i in (1, 0, 2):
        time = START + timedelta(days=i)
        timed.add([Item(str(i), "the same boat", thread=str(i), time=time)])
    assert ids(timed.search("boat")) == ["2", "1", "0"]


def test_surroundings_end_where_a_thread_ends_or_pauses():
    lines = [("Ann", "I bought a lighthouse."), ("Bob", "Really.")]
    together = index_of(items(lines))
    assert ids(together.search("lighthouse")) == ["m0", "m1"]
    threads = RecallIndex()
    threads.add([items(lines, thread="a")[0], items(lines, thread="b")[1]])
    assert ids(threads.search("lighthouse")) == ["m0"]
    pause = index_of(items(lines[:1]))
    pause.add(items(lines[1:], start=START + timedelta(days=1), prefix="n"))
    assert ids(pause.search("lighthouse")) == ["m0"]


def test_threads_may_be_mixed():
    mixed, apart = RecallIndex(), RecallIndex()
    one, two = items(thread="one"), items(LINES[::-1], thread="two", prefix="n")
    mixed.add(item for pair in zip(one, two, strict=True) for item in pair)
    apart.add(one + two)
    scores = [
        {hit.id: hit.score for hit in index.search("boat in the harbour", 16)}
        for index in (mixed, apart)
    ]
    assert scores[0] == pytest.approx(scores[1])


def test_filters_choose_and_do_not_change_how_a_message_is_ranked():
    index = index_of()
    whole = index.search("the boat of Bob", 100)
    allowed = {"m1", "m3", "m7"}
    expected = [hit for hit in whole if hit.id in allowed]
    assert index.search("the boat of Bob", 2, where=allowed.__contains__) == expected[:2]
    assert index.search("the boat of Bob", where=lambda item_id: False) == []


def test_a_span_of_time_has_its_start_and_not_its_end():
    index = index_of()
    since, until = START + timedelta(minutes=1), START + timedelta(minutes=3)
    assert set(ids(index.search("boat", since=since, until=until))) == {"m1", "m2"}
    index.add([Item("timeless", "A boat without a date.")])
    assert "timeless" not in ids(index.search("boat", since=since))


def test_a_message_is_added_once():
    index = index_of(items(), items())
    index.add([Item("m1", "something else entirely"), Item("x", "a"), Item("x", "b")])
    assert len(index) == len(LINES) + 1
    assert ids(index.search("something else")) == []


def test_a_removed_message_leaves_nothing():
    index = index_of()
    index.remove([item.id for item in items()] + ["unknown"])
    assert len(index) == 0
    assert index.dense_question("What did Ann say?") == "What did Ann say?"
    index.add([Item("new", "hello", sender="Cid")])
    assert index.search("boat harbour lighthouse") == []
    remains = repr([vars(part) for part in vars(index).values() if hasattr(part, "__dict__")])
    assert not any(word in remains for word in ("boat", "harbour", "Ann", "Bob", "m1"))


def test_vectors_may_be_those_of_some_messages_and_of_unknown_ones():
    index = index_of()
    assert ids(index.search("x", 1, cosines={"m3": 1.0, "gone": 0.9, "m4": 0.0})) == ["m3"]


@pytest.mark.parametrize(
    "text, question",
    [
        ("我的猫叫小白", "猫"),
        ("東京で寿司を食べました", "寿司"),
        ("ฉันไปทะเลเมื่อวาน", "ทะเล"),
        ("Мы купили новую машину", "машины"),
        ("Ο σκύλος μου τρέχει", "σκυλος"),
        ("party 🎉", "🎉"),
        ("NUL\x00in the middle", "middle"),
        ("broken \ud800 surrogate", "surrogate"),
    ],
)
def test_texts_of_all_scripts_are_found(text, question):
    index = index_of()
    index.add([Item("it", text, sender="Ann"), Item("empty", "")])
    assert ids(index.search(question, 1)) == ["it"]


def test_a_megabyte_of_text_is_no_trouble():
    index = index_of()
    index.add([Item("big", "lorem ipsum dolor " * 60_000 + "lighthouse")])
    assert "big" in ids(index.search("ipsum", 2))
    assert ids(index.search("lighthouse", 1)) == ["m3"]
    index.search("what " * 100_000, 1)


class Embedded(NamedTuple):
    """A message with its vector, if it has one."""

    item: Item
    vector: list[float] | None = None


def vectors_of(messages):
    return {m.item.id: m.vector for m in messages if m.vector is not None}


WORDS = st.sampled_from(
    ["boat", "harbour", "puppy", "Ann", "when", "yesterday", "?", "猫", "INV-1"]
)
MESSAGES = st.lists(
    st.builds(
        lambda words, sender, thread, hours, vector: Embedded(
            Item("", " ".join(words), sender, START + timedelta(hours=hours), thread), vector
        ),
        st.lists(WORDS, max_size=5),
        st.sampled_from(["Ann", "Bob", None]),
        st.sampled_from(["one", "two"]),
        st.integers(0, 30),
        st.sampled_from([None, [1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]),
    ),
    min_size=1,
    max_size=15,
)
QUESTIONS = ["When did Ann see the boat on 4 March?", "harbour 猫", "puppy?"]


def numbered(messages):
    return [Embedded(m.item._replace(id=str(i)), m.vector) for i, m in enumerate(messages)]


@settings(max_examples=examples(60), deadline=None)
@given(MESSAGES, st.data())
def test_an_index_that_grew_and_shrank_is_one_that_was_built_anew(messages, data):
    messages = numbered(messages * 6)
    gone = data.draw(st.sets(st.sampled_from([m.item.id for m in messages])))
    if data.draw(st.booleans()):
        gone |= {m.item.id for m in messages[5:]}
    kept = [m for m in messages if m.item.id not in gone]
    grown, built = RecallIndex(), RecallIndex()
    half = len(messages) // 2
    grown.add(m.item for m in messages[:half])
    grown.remove(m.item.id for m in messages[:half] if m.item.id in gone)
    grown.add(m.item for m in messages[half:])
    grown.remove(gone)
    built.add(m.item for m in kept)
    for question in QUESTIONS:
        for vector in (None, [1, 0.2]):
            near = cosines(vectors_of(kept), vector)
            found = grown.search(question, 100, cosines=near)
            anew = built.search(question, 100, cosines=near)
            assert {h.id: h.score for h in found} == pytest.approx(
                {h.id: h.score for h in anew}, abs=1e-5
            )


@settings(max_examples=examples(60), deadline=None)
@given(MESSAGES, st.integers(1, 8), st.data())
def test_any_filter_chooses_from_the_whole_ranking(messages, k, data):
    messages = numbered(messages)
    index = RecallIndex()
    index.add(m.item for m in messages)
    near = cosines(vectors_of(messages), [1, 0.2])
    allowed = data.draw(st.sets(st.sampled_from([m.item.id for m in messages])))
    since = START + timedelta(hours=data.draw(st.integers(0, 30)))
    for question in QUESTIONS:
        whole = index.search(question, 100, cosines=near)
        assert whole == index.search(question, 100, cosines=near)
        expected = [
            hit for hit in whole if hit.id in allowed and messages[int(hit.id)].item.time >= since
        ][:k]
        where = allowed.__contains__
        assert index.search(question, k, cosines=near, where=where, since=since) == expected


def test_after_most_messages_are_gone_the_rest_is_found_as_before():
    messages = [
        line._replace(id=f"{line.id}/{i}", text=f"{line.text} {i}", thread=str(i))
        for i in range(30)
        for line in items()
    ]
    kept = [message for message in messages if message.thread in {"7", "23"}]
    late = Item("late", "A late boat.", "Cid")
    index, anew = RecallIndex(), RecallIndex()
    index.add(messages)
    index.remove([message.id for message in messages if message not in kept])
    index.add([late])
    anew.add([*kept, late])
    vectors = {m.id: [int(m.thread or 0), 1] for m in kept} | {"late": [1, 2]}
    for vector in (None, [1, 0.5]):
        near = cosines(vectors, vector)
        found = index.search("When did Bob repair the boat on 4 March?", 50, cosines=near)
        same = anew.search("When did Bob repair the boat on 4 March?", 50, cosines=near)
        assert ids(found) == ids(same)
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in same])


def test_among_people_two_words_of_a_question_outweigh_one_that_is_rarer():
    lines = [("Ann" if n % 2 else "Bob", f"Filler{n} talk{n}.") for n in range(80)]
    for n in range(7):
        lines[n] = ("Ann", f"Garden thing{n}.")
        lines[70 + n] = ("Ann", f"Summer thing{n}.")
    lines[30] = ("Bob", "Garden summer.")
    lines[50] = ("Bob", "Zucchini pie.")
    index = index_of(items(lines))
    assert ids(index.search("garden summer zucchini", 2)) == ["m30", "m50"]
