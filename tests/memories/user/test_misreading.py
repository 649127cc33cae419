"""Facts that a quote does not carry: of the past, of somebody else, wished for."""

from __future__ import annotations

import pytest

from agent_brain import Message, MessagesMemory
from agent_brain.memories import Batch, Cited, Draft, UserMemory
from tests.memories.user.support import day, said

pytestmark = pytest.mark.anyio

WRONG = [  # what the user says, and what a model makes of it
    ("I used to live in Rome", "Lives in Rome"),
    ("I used to live in Rome.", "The user lives in Rome"),
    ("I used to smoke", "Smokes"),
    ("I lived in Rome for ten years", "Lives in Rome"),
    ("I worked at Bosch until 2020", "Works at Bosch"),
    ("I worked for Bosch back then", "Works for Bosch"),
    ("When I was a child I had a dog", "Has a dog"),
    ("When I was a child, I had a dog called Rex", "Has a dog called Rex"),
    ("As a student I lived in Bonn", "Lives in Bonn"),
    ("I was a nurse", "Is a nurse"),
    ("I was a nurse before", "Works as a nurse"),
    ("I stopped eating meat", "Eats meat"),
    ("I quit smoking", "Smokes"),
    ("I gave up coffee last year", "Drinks coffee"),
    ("I left Bosch in May", "Works at Bosch"),
    ("I moved away from Rome", "Lives in Rome"),
    ("I moved from Rome to Porto", "Lives in Rome"),
    ("I sold my Volvo", "Drives a Volvo"),
    ("I drink tea instead of coffee", "Drinks coffee"),
    ("I moved to Porto instead of Rome", "Lives in Rome"),
    ("Formerly I worked at Siemens", "Works at Siemens"),
    ("I once owned a boat", "Owns a boat"),
    ("Früher habe ich in Rom gewohnt", "Wohnt in Rom"),
    ("Ich wohnte in Rom", "Wohnt in Rom"),
    ("Antes vivía en Roma", "Vive en Roma"),
    ("Autrefois j'habitais à Rome", "Habite à Rome"),
    ("My brother hates cats", "Hates cats"),
    ("My brother hates cats.", "The user hates cats"),
    ("My sister lives in Rome", "Lives in Rome"),
    ("My older brother Tom lives in Rome", "Lives in Rome"),
    ("He likes jazz", "Likes jazz"),
    ("She lives in Rome", "Lives in Rome"),
    ("Tom lives in Rome", "Lives in Rome"),
    ("Anna works at Bosch", "Works at Bosch"),
    ("My boss is a vegetarian", "Is a vegetarian"),
    ("I met Tom. He lives in Rome now.", "Lives in Rome"),
    ("My wife is allergic to peanuts", "Is allergic to peanuts"),
    ("My parents live in Rome and I visit them often", "Lives in Rome"),
    ("Mein Bruder hasst Katzen", "Hasst Katzen"),
    ("Mi hermana vive en Roma", "Vive en Roma"),
    ("Mon frère déteste les chats", "Déteste les chats"),
    ("I want to move to Oslo", "Lives in Oslo"),
    ("I want to live in Oslo", "Lives in Oslo"),
    ("I'd like to move to Oslo", "Lives in Oslo"),
    ("I hope to live in Oslo one day", "Lives in Oslo"),
    ("I'm thinking of moving to Oslo", "Lives in Oslo"),
    ("I plan to move to Oslo", "Lives in Oslo"),
    ("I dream of living in Oslo", "Lives in Oslo"),
    ("I will move to Oslo", "Lives in Oslo"),
    ("I'm going to work at Bosch", "Works at Bosch"),
    ("I wish I lived in Oslo", "Lives in Oslo"),
    ("I want to be a pilot", "Is a pilot"),
    ("I would love to live in Oslo", "Lives in Oslo"),
    ("I might move to Oslo", "Lives in Oslo"),
    ("I'm considering moving to Oslo", "Lives in Oslo"),
    ("I want to buy a Volvo", "Drives a Volvo"),
    ("I want to become a pilot", "Is a pilot"),
    ("My neighbour Paul is a dentist", "Is a dentist"),
    ("My friend moved to Oslo", "Moved to Oslo"),
    ("My mother speaks Polish", "Speaks Polish"),
    ("Our son plays chess", "Plays chess"),
    ("I would live in Oslo", "Lives in Oslo"),
    ("I'd live in Oslo if I could", "Lives in Oslo"),
    ("I'd buy a Volvo", "Drives a Volvo"),
]
RIGHT = [
    ("I have lived in Rome since 2010", "Lives in Rome"),
    ("I've always lived in Rome", "Lives in Rome"),
    ("I am used to the heat", "Is used to the heat"),
    ("I used to live in Rome", "Used to live in Rome"),
    ("I used to live in Rome", "Lived in Rome"),
    ("I used to live in Rome but now I live in Porto", "Lives in Porto"),
    ("I used to live in Rome, now in Porto", "Lives in Porto"),
    ("I moved from Paris to Porto", "Lives in Porto"),
    ("I left Bosch for Siemens", "Works at Siemens"),
    ("I left Bosch and work at Siemens now", "Works at Siemens"),
    ("I drink tea instead of coffee", "Drinks tea"),
    ("I prefer tea rather than coffee", "Prefers tea over coffee"),
    ("My brother hates cats", "Brother hates cats"),
    ("My brother hates cats, and so do I", "Hates cats"),
    ("My brother gave me a cat", "Has a cat"),
    ("My wife and I live in Rome", "Lives in Rome"),
    ("My brother hates cats but I love cats", "Loves cats"),
    ("My sister lives in Rome", "The user's sister lives in Rome"),
    ("My wife Sofia is a dentist", "Sofia, the user's wife, is a dentist"),
    ("My name is Tom", "Is called Tom"),
    ("My dog is called Rex, he's a beagle", "Owns a beagle named Rex"),
    ("My doctor prescribed sertraline", "Takes sertraline"),
    ("I want to move to Oslo", "Wants to move to Oslo"),
    ("I'd like to have short answers", "Prefers short answers"),
    ("I would like to be called Chris", "Is called Chris"),
    ("I want you to always answer in French", "Always answer in French"),
    ("I love to cook", "Loves cooking"),
    ("I like hiking", "Likes hiking"),
    ("I'd rather have short answers", "Prefers short answers"),
    ("I was born in Rome", "Was born in Rome"),
    ("I was born in Rome", "Born in Rome"),
    ("I was promoted to team lead", "Is team lead"),
    ("I had a baby last week", "Has a baby"),
    ("I got married ten years ago", "Is married"),
    ("I moved to Porto five years ago", "Lives in Porto"),
    ("I quit smoking in January", "Stopped smoking"),
    ("I want a dog", "Wants a dog"),
    ("I still live in Rome, as when I was a child", "Lives in Rome"),
    ("We live in Rome", "Lives in Rome"),
    ("I'm going to be a father", "Is going to be a father"),
    ("I plan my week on Sundays", "Plans the week on Sundays"),
    ("I like to live in Oslo", "Lives in Oslo"),
    ("I will be 40 in June", "Turns 40 in June"),
    ("I started at Bosch last week", "Works at Bosch"),
    ("Porto is where I live", "Lives in Porto"),
    ("Bosch employs me", "Works at Bosch"),
    ("My family lives in Rome", "Family lives in Rome"),
    ("I'm thinking about my home in Porto", "Has a home in Porto"),
    ("Thanks, lives in Porto is right", "Lives in Porto"),
    ("I hate when he smokes", "Hates smoke"),
    ("My daughter is vegan", "Daughter is vegan"),
    ("I live where my parents lived, in Rome", "Lives in Rome"),
    ("My car is a red Volvo", "Drives a red Volvo"),
    ("Python suits me best", "Prefers Python"),
    ("Coffee keeps me awake", "Coffee keeps the user awake"),
    ("My partner and I are getting married", "Is getting married"),
    ("I just got back from Rome, I live in Porto", "Lives in Porto"),
    ("I lost my mother in 2020", "Mother died in 2020"),
    ("I was a nurse and still am a nurse", "Is a nurse"),
    ("My favourite colour is green", "Favourite colour is green"),
    ("I'd prefer a window seat", "Prefers a window seat"),
    ("I would appreciate short answers", "Appreciates short answers"),
    ("I would never eat meat", "Never eats meat"),
]


async def learned(told: str, **fields: object) -> UserMemory:
    """What is known after a model has made a fact of what the user says."""

    def extract(batch: Batch) -> list[Draft]:
        (message,) = batch.messages
        cited = Cited(message=message.id, quote=message.content)
        return [Draft.model_validate({"sources": (cited,), **fields})]

    user = UserMemory(extract=extract)
    memory = MessagesMemory()
    await memory.update([said(told)])
    await user.learn(memory)
    return user


async def test_what_a_quote_does_not_say_is_no_current_fact_of_the_user() -> None:
    found = []
    for text, fact in WRONG:
        user = await learned(text, text=fact)
        found += [(text, each.text) for each in await user.facts()]
        memory = user.over(MessagesMemory())
        await memory.set_goal("What do you know about me?")
        shown = (await memory.context())[0].content
        found += [(text, shown)] if "The user:" in shown else []
    assert found == []


async def test_what_is_said_stays_the_word_of_the_user() -> None:
    found = []
    for text, fact in RIGHT:
        user = await learned(text, text=fact)
        facts = await user.facts(status="all")
        found += [(text, fact)] if any(each.status == "claim" for each in facts) else []
    assert found == []


async def test_a_fact_that_says_whom_and_when_it_is_about_is_the_word_of_the_user() -> None:
    told: list[tuple[str, dict[str, object]]] = [
        ("My brother hates cats", {"text": "Hates cats", "about": "brother"}),
        ("I lived in Rome until 2020", {"text": "Lives in Rome", "valid_to": day(-1_000)}),
        ("I will move to Oslo", {"text": "Lives in Oslo", "valid_from": day(50_000)}),
        ("As a child I saw Rome", {"text": "The visit to Rome", "kind": "event"}),
    ]
    for text, fields in told:
        (fact,) = await (await learned(text, **fields)).facts(status="all")
        assert fact.origin == "user", text


async def test_what_used_to_be_does_not_renew_a_fact_nor_replace_one() -> None:
    user = await learned("I live in Porto", text="Lives in Porto", slot="home")
    (fact,) = await user.facts()
    for text in ("I used to live in Rome", "My sister lives in Rome", "I want to move to Rome"):
        source = Message.user(text, created_at=day(9))
        told = await user.remember("Lives in Rome", slot="home", source=source)
        assert (told.status, told.origin) == ("claim", "assistant")
    assert await user.facts() == [fact]


async def test_names_and_texts_are_the_same_in_the_cases_of_turkish() -> None:
    user = UserMemory()
    source = said("İstanbul'da, IĞDIR Caddesi'nde oturuyorum")
    quote = "istanbul'da, ığdır caddesi'nde"
    fact = await user.remember("İstanbul'da oturuyor", slot="İL", source=source, quote=quote)
    assert (await user.remember("istanbul'da oturuyor", slot="il", source=source)).id == fact.id
    assert await user.facts(slot="il") == [fact]
    assert await user.recall("IĞDIR oturuyor") == await user.recall("ığdır oturuyor") == [fact]
    assert await user.forget(text="ISTANBUL") == 1
