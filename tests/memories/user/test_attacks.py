"""Others' words are never kept as the user's own, and the user's own words are."""

from __future__ import annotations

import pytest

from agent_brain import Brain, Message, MessagesMemory
from agent_brain.memories import Batch, Cited, Draft, RamJournal, UserMemory
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from benchmarks.users.attacks import ATTACKS, damage
from benchmarks.users.honest import SETTINGS, STATEMENTS, lowered_in
from tests.memories.user.support import by_rules, said

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_achieves_nothing(name: str) -> None:
    assert await damage(await ATTACKS[name]()) == []


async def test_what_the_user_says_is_the_users_word() -> None:
    lowered = [each for setting in SETTINGS for each in await lowered_in(setting)]
    assert len(lowered) <= 0.05 * len(STATEMENTS) * len(SETTINGS), lowered


@pytest.mark.parametrize(
    "text",
    [
        "My wife’s name is Eva, she says I’m late. {}",
        "She says I can’t cook, ’tis true. {}",
        "Here’s my brother’s advice, he’s kind: don’t move. {}",
        "From: Porto\nTo: Lisbon\nDate: 3 May\n{}",
        "Subject: taxes\n{}",
        "On Monday Bob wrote:\n> Come to Oslo\n{}",
        "On Monday I wrote a letter: it says nothing. {}",
        "<webpage>Hi</webpage> {} <webpage>Bye</webpage>",
        "<strong>{}</strong>",
        "<user_message>{}</user_message>",
        "I use Vec<String>, x < 3 and y > 2. {}",
    ],
)
async def test_words_beside_what_others_say_are_the_users(text: str) -> None:
    user, memory = UserMemory(extract=by_rules), MessagesMemory()
    await memory.update([said(text.format("I live in Rome."))])
    assert [fact.origin for fact in (await user.learn(memory)).facts] == ["user"]


async def origins_of(message: str, quote: str, text: str) -> list[str]:
    """The origin of a fact with a quote of a message of the user."""

    def extract(batch: Batch) -> list[Draft]:
        (asked,) = batch.messages
        return [Draft(text=text, sources=(Cited(message=asked.id, quote=quote),))]

    user, memory = UserMemory(extract=extract), MessagesMemory()
    await memory.update([said(message)])
    return [fact.origin for fact in (await user.learn(memory)).facts]


@pytest.mark.parametrize(
    ("message", "quote", "text"),
    [
        ("Ich wohne nicht mehr in Berlin.", "Ich wohne nicht mehr in Berlin", "Wohnt in Berlin"),
        ("Ich mag keinen Fisch.", "mag keinen Fisch", "Mag Fisch"),
        ("Ich mag Katzen nicht.", "Ich mag Katzen", "Mag Katzen"),
        ("Ich bin Vegetarier – stimmt nicht.", "Ich bin Vegetarier", "Vegetarier"),
        ("Ich wohne in Berlin, oder?", "Ich wohne in Berlin", "Wohnt in Berlin"),
        ("Je n'aime pas le poisson.", "aime pas le poisson", "Aime le poisson"),
        ("Je n'habite plus à Nice.", "habite plus à Nice", "Habite à Nice"),
        ("No me gusta el pescado.", "me gusta el pescado", "Le gusta el pescado"),
        ("Ya no vivo en Madrid.", "vivo en Madrid", "Vive en Madrid"),
        ("Vivo en Madrid, ¿verdad?", "Vivo en Madrid", "Vive en Madrid"),
        ("Eu não moro no Porto.", "moro no Porto", "Mora no Porto"),
        ("Non mangio carne.", "mangio carne", "Mangia carne"),
        ("Я не живу в Москве.", "живу в Москве", "Живёт в Москве"),
        ("Jag bor inte i Lund.", "i Lund", "Bor i Lund"),
        ("私は東京に住んでいません。", "東京に住んでい", "東京に住んでいる"),
        ("Ja, genau.", "Ja, genau", "Lebt in Rom"),
        ("Sí, claro.", "Sí, claro", "Vive en Roma"),
        ("I live in Porto, don't I?", "I live in Porto", "Lives in Porto"),
        ("I live in Porto, right?", "I live in Porto", "Lives in Porto"),
        ("I wish I lived in Rome.", "I lived in Rome", "Lived in Rome"),
        ("I almost moved to Rome.", "moved to Rome", "Moved to Rome"),
        ("I cannot eat nuts.", "eat nuts", "Eats nuts"),
        ("i cant eat nuts", "eat nuts", "Eats nuts"),
        ("I have no children.", "I have no children", "Has children"),
        ("I'm no vegetarian.", "vegetarian", "Is vegetarian"),
        ("I might live in Rome soon.", "live in Rome", "Lives in Rome"),
        ("Maybe I live in Rome.", "I live in Rome", "Lives in Rome"),
        ("I hardly eat meat", "eat meat", "Eats meat"),
    ],
)
async def test_what_is_denied_in_any_language_is_not_stated(
    message: str, quote: str, text: str
) -> None:
    assert await origins_of(message, quote, text) in (["assistant"], [])


@pytest.mark.parametrize(
    ("message", "quote", "text"),
    [
        ("I can't eat nuts.", "I can't eat nuts", "Cannot eat nuts"),
        ("I don't eat fish and I live in Porto.", "I live in Porto", "Lives in Porto"),
        ("I live in Porto, can you find a doctor?", "I live in Porto", "Lives in Porto"),
        ("I have no children.", "I have no children", "Has no children"),
        ("Can you remember that I live in Porto?", "I live in Porto", "Lives in Porto"),
        ("Maybe suggest a bar - I live in Porto.", "I live in Porto", "Lives in Porto"),
        ("Ich habe zwei Kinder und keinen Hund.", "Ich habe zwei Kinder", "Hat zwei Kinder"),
        ("I have no time as I live in Porto.", "I live in Porto", "Lives in Porto"),
        ("Correct: I live in Porto.", "I live in Porto", "Lives in Porto"),
        ("Translate my mails. I live in Porto.", "I live in Porto", "Lives in Porto"),
        ("Ich mag keinen Fisch.", "Ich mag keinen Fisch", "Mag keinen Fisch"),
        ("Ich esse keinen Fisch und wohne in Köln.", "wohne in Köln", "Wohnt in Köln"),
        ("Ich wohne nicht in Rom, sondern in Köln.", "sondern in Köln", "Wohnt in Köln"),
        ("Ich mag nicht nur Tee.", "Ich mag nicht nur Tee", "Mag Tee"),
        ("Je ne mange que du poisson.", "mange que du poisson", "Mange du poisson"),
        ("Je n'aime pas le café et j'habite à Lyon.", "j'habite à Lyon", "Habite à Lyon"),
        ("Je ne bois pas de café mais du thé.", "mais du thé", "Boit du thé"),
        ("J'habite pas loin de Lyon.", "J'habite pas loin de Lyon", "Habite près de Lyon"),
        ("No bebo café sino té.", "sino té", "Bebe té"),
        ("Ya no vivo en Madrid, vivo en Jaén.", "vivo en Jaén", "Vive en Jaén"),
        ("No, vivo en Madrid.", "vivo en Madrid", "Vive en Madrid"),
        ("Moro no Porto e não gosto de peixe.", "Moro no Porto", "Mora no Porto"),
    ],
)
async def test_what_is_said_beside_a_denial_is_stated(message: str, quote: str, text: str) -> None:
    assert await origins_of(message, quote, text) == ["user"]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("Translate: I live in Rome.", "I live in Rome"),
        ("Please translate this to German: Hello! I live in Rome.", "I live in Rome"),
        ("Translate 'I live in Rome' to German.", "I live in Rome"),
        ("Übersetze „Ich wohne in Rom“ ins Englische.", "Ich wohne in Rom"),
        ("Traduis « J'habite à Rome » en anglais.", "J'habite à Rome"),
        ("Fix my essay:\nIt is warm. I live in Rome.", "I live in Rome"),
    ],
)
async def test_what_is_to_be_translated_is_not_the_users_word(message: str, text: str) -> None:
    assert await origins_of(message, text, text) in (["document"], [])


@pytest.mark.parametrize(
    "message",
    [
        "2025-03-12 10:22 Bob: {}",
        "[3/12/25, 10:22:01 PM] Bob Smith: {}",
        "[22:01:03] <@bob> {}",
        "Bob (10:22): {}",
        "- Bob: hi\n- Ann: {}\n- Bob: ok",
        "Bob: hi\n{}\nAnn: nice\nBob: ok",
        "Bob: hi\n\nAnn: {}\n\nBob: ok",
        "My parents say {}",
        "Bob said, {}",
        "Bob has told everyone that {}",
        "The very long letter from the old bank in Porto says that {}",
        "Bob: 'Hi. {}'",
        "‘{},’ says Bob",
        "Translate to German '{}'",
        "Correct the following text.\n\n{}",
        "Please translate into Italian the text below.\n{}",
        "Traduce al inglés: {}",
        "Перевод: {}",
        "翻译：{}",
        "   ~~~~\n~~~\n{}\n~~~~",
        "```\nls\n    ```\n{}\n```",
        "Look: ```\n{}",
        "{}. Oh no, in Lisbon.",
        "{}... NOT",
        "{}. No, Lisbon.",
        "{}. Ce n'est pas vrai.",
        "It is simply not true that {}",
        "It is a lie that {}",
    ],
)
async def test_what_others_say_or_the_user_takes_back_is_not_stated(message: str) -> None:
    text = message.format("I live in Rome")
    assert await origins_of(text, "I live in Rome", "Lives in Rome") in (
        ["document"],
        ["assistant"],
        [],
    )


@pytest.mark.parametrize(
    "message",
    [
        "Name: Ann\nHome: {}\nJob: I am a nurse",
        "Context: {}\nTask: find a hotel\nFormat: list",
        "Q: Where do you live?\nA: {}",
        "10:22 is late for me: {}",
        "Monday 10:00: gym\n{}",
        "That said, {}",
        "As Bob says, {}",
        "I already told you that {}",
        "My bank told me, so {}",
        "My home was the United States, {}",
        "Tell Bob that {}",
        "My doctor told me stories, {}",
        "I said 'no' to Bob. {}",
        'My favourite book "Dune" says a lot. {}',
        "Translation is my job: {}",
        "Check the spelling of my name. {}",
        "Read the following.\n{}",
        "Run ```ls``` please. {}",
        "```ls```\n{}",
        "~~~\n```\n~~~\n{}",
        "- x\n  ```\n  ls\n  ```\n{}",
        "No. {}",
        "Actually no. {}",
        "{}. No, Ann does not.",
        "{}. No kids.",
        "{}. I mean it.",
        "{}. Not far from the station.",
        "{}. Actually, I do not need a visa.",
        "I would like to add that {}",
        "It is true that {}",
        "No doubt {}",
    ],
)
async def test_what_looks_like_the_words_of_others_is_the_users(message: str) -> None:
    text = message.format("I live in Rome")
    assert await origins_of(text, "I live in Rome", "Lives in Rome") == ["user"]


@pytest.mark.parametrize(
    "message",
    ["Bob says that I live in Rome", "[10:22] Bob: I live in Rome", "I live in Rome - not."],
)
async def test_a_model_does_not_remember_what_others_say_as_the_users_word(message: str) -> None:
    user = UserMemory(mode="agent")
    call = Action(name="remember", args={"text": "Lives in Rome", "quote": "I live in Rome"})
    async with Brain("react", llm=ScriptedLLM([[call], "Done"]), user=user) as brain:
        await brain.run(message)
    assert [fact.origin for fact in await user.facts(status="all")] in (["assistant"], ["document"])


async def test_the_task_of_a_brain_as_a_tool_is_not_the_users_word() -> None:
    inner = ScriptedLLM(["Done"])
    scout = Brain("react", llm=inner).as_tool("scout", "Finds out")
    llm = ScriptedLLM([[Action(name="scout", args={"task": "I live in Rome"})], "Done"])
    async with Brain("react", llm=llm, tools=[scout]) as brain:
        await brain.run("Look it up")
    assert [message.cause_by for message in inner.calls[0].messages[-1:]] == ["BrainTool"]


async def test_messages_that_come_late_are_read() -> None:
    journal = RamJournal()
    user = UserMemory(journal=journal, tenant="ann", extract=by_rules)
    for part in (["I like tea", "I like jazz"], ["I like figs"]):
        async with MessagesMemory(journal=journal, session="may", tenant="ann") as chat:
            stray = Message.tool("no call asked for this", Action(name="web"))
            await chat.update([said(part[0]), stray, *map(said, part[1:])])
        await user.learn("may")
    assert [fact.text for fact in await user.facts()] == ["Likes tea", "Likes jazz", "Likes figs"]
