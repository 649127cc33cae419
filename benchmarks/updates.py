"""What recall does with statements that change, and with preferences: the messages are made here.

    python -m benchmarks.updates [--embedder minilm] [--users 20]

Each made-up user tells an assistant, over a year, some twenty things that change later, at times in
passing in a longer message, among requests, statements about other people, and long answers. Asked
is for each thing as it is now. Counted is whether the newer statement is among the first ten
messages, whether both are, and where both are, whether the newer one comes first. Then twenty
preferences among two hundred other messages are looked up by questions that share no word with them,
by recall and by the cosine of the whole messages alone.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import anyio

from agent_brain.memories import Message, VectorMemory
from agent_brain.memories.embedders import Embedder, embed_all
from agent_brain.memories.vectors.ram import RamVectors, unit_vectors
from benchmarks.minilm import embedder_of

START = datetime(2025, 1, 6, 9, 0, tzinfo=UTC)
CITIES = "Porto Leeds Kyoto Graz Malmö Austin Nantes Turin Bergen Quito Perth Galway".split()
NAMES = "Tom Nadia Igor Lucía Pavel Mei Oscar Farah Jonas Priya".split()

# What changes: values, how it is told first, how the change is told, how it is asked for
THINGS: list[tuple[str, str, str, str]] = [
    (
        "|".join(CITIES),
        "I live in {}.|Home for me is a small flat in {}.|I've been living in {} for years.",
        (
            "I moved to {} last weekend.|We just got the keys to our new place in {}!|"
            "My new address is in {}."
        ),
        "Where do I live?|Which city do I live in now?|What city is my home?",
    ),
    (
        "nurse|paralegal|barista|surveyor|data analyst|florist|welder|translator",
        "I work as a {}.|My job is being a {}.|I earn my living as a {}.",
        (
            "I started a new job as a {} today.|I quit, and from now on I work as a {}.|"
            "They hired me as a {}."
        ),
        "What is my job?|What do I do for a living?|What do I work as?",
    ),
    (
        "Volvo estate|red Fiat|blue Kia|old Saab|Tesla|Skoda",
        "I drive a {}.|My car is a {}.",
        "I sold the car and bought a {}.|My new car, a {}, arrived.",
        "Which car do I drive?|What car do I have?",
    ),
    (
        "vegetarian|vegan|pescatarian|keto|gluten-free",
        "I eat {} these days.|My diet is {}.",
        "I changed my diet: it is {} now.|My doctor put me on a {} diet.",
        "What is my diet?|What kind of diet am I on?",
    ),
    (
        "green|purple|orange|turquoise|grey|yellow",
        "My favourite colour is {}.|I like {} best of all colours.",
        "I've gone off it, {} is my favourite colour now.|These days my favourite colour is {}.",
        "What is my favourite colour?|Which colour do I like best?",
    ),
    (
        "half past five|six|seven|a quarter to eight",
        "My alarm rings at {}.|I get up at {} on weekdays.",
        "I now get up at {} on weekdays.|I set my alarm to {} from today on.",
        "When do I get up?|What time does my alarm ring?",
    ),
    (
        "Spanish|Korean|Welsh|Arabic|Dutch|Finnish",
        "I am learning {}.|I take evening classes in {}.",
        "I dropped it and am learning {} instead.|I signed up for {} classes, a new language for me.",
        "Which language am I learning?|What language do I study?",
    ),
    (
        "Dr. Moss|Dr. Patel|Dr. Weiss|Dr. Okafor",
        "My dentist is {}.|I go to {} for my teeth.",
        "I changed dentists, I see {} now.|My new dentist is {}.",
        "Who is my dentist?|Which dentist do I go to?",
    ),
    (
        "$1,200|$950|$1,480|$1,730|$2,050",
        "My rent is {} a month.|I pay {} in rent.",
        "The landlord raised my rent to {}.|From this month on the rent is {}.",
        "How much is my rent?|What do I pay in rent?",
    ),
    (
        "yoga|climbing|rowing|fencing|swimming|squash",
        "I do {} twice a week to stay fit.|My sport is {}.",
        "I gave it up and switched my sport to {}.|For sport I now do {}.",
        "What sport do I do?|Which sport keeps me fit?",
    ),
    (
        "oat milk latte|black tea|espresso|matcha|hot chocolate",
        "I start the day with {}.|My usual morning drink is {}.",
        "I stopped that, my morning drink is {} now.|These days I start the day with {}.",
        "What do I drink in the morning?|What is my usual morning drink?",
    ),
    (
        "|".join(NAMES),
        "My manager is {}.|I report to {}.",
        "{} is my new manager since the reorganisation.|I report to {} from now on.",
        "Who is my manager?|Whom do I report to?",
    ),
    (
        "May 3|June 12|August 20|October 5|November 14",
        "The wedding is planned for {}.|We will get married on {}.",
        "We had to postpone the wedding to {}.|New wedding date: {}.",
        "When is the wedding?|On what date do we get married?",
    ),
    (
        "Lisbon|Iceland|Crete|Vietnam|the Azores|Scotland",
        "For the holidays we are going to {}.|We booked a holiday in {}.",
        "Change of plan, our holiday is in {} now.|We cancelled that and will spend the holidays in {}.",
        "Where do we go on holiday?|Where are we spending the holidays?",
    ),
    (
        "Android phone|iPhone|Pixel|Fairphone|Nokia",
        "I use an {} as my phone.|My phone is a {}.",
        "I replaced my phone with a {}.|My new phone is a {}.",
        "What phone do I have?|Which phone do I use?",
    ),
    (
        "Python|Rust|Go|TypeScript|Elixir",
        "I write most of my code in {}.|{} is my main programming language.",
        "We rewrote everything, my main programming language is {} now.|I write my code in {} now.",
        "Which programming language do I use?|What do I write my code in?",
    ),
    (
        "10 kilometres|a half marathon|a marathon|a triathlon",
        "I am training for {}.|My goal for this year is to finish {}.",
        "I changed my goal: I want to finish {}.|My coach has me training for {} instead.",
        "What am I training for?|What is my goal for the race?",
    ),
    (
        "a cat called Miso|a beagle called Rolf|two parrots|a rabbit called Pim",
        "At home we have {} as a pet.|Our pet is {}.",
        "We gave our pet to my aunt and have {} now.|Our new pet is {}.",
        "Which pet do I have?|What pet do we have at home?",
    ),
    (
        "FreshBox|the corner shop|Greenline|the market hall",
        "I buy my groceries at {}.|My groceries come from {}.",
        "I switched to {} for groceries.|Groceries I now get from {}.",
        "Where do I buy groceries?|Where do my groceries come from?",
    ),
    (
        "bullet points|two short paragraphs|tables|one sentence",
        "Please write your answers to me as {}.|I like answers as {}.",
        "From now on please give me answers as {}.|I changed my mind, answers as {} please.",
        "How should answers be written?|What form of answers do I like?",
    ),
]
OTHERS = (
    "My brother lives in {city}.|{name} drives a van to work.|My neighbour is learning Greek.|"
    "My mother's favourite colour is white.|{name} starts work at nine.|{name} is going to {city} "
    "on holiday.|My cousin got a job at a bank in {city}.|{name}'s rent went up again.|"
    "The dentist of my sister is on leave.|{name} runs marathons."
)
REQUESTS = (
    "Can you draft a polite email to {name} about the invoice?|What is a good recipe with {food}?|"
    "Summarise the news about {topic} for me.|How do I remove {stain} from a shirt?|"
    "Plan a day trip to {city} with two children.|Explain {topic} as if I were ten.|"
    "Which film should I watch with {name} tonight?|Fix this formula: =SUM(A1:B{number})|"
    "Write a birthday poem for {name}.|What is the weather in {city} like in March?|"
    "Give me three ideas for a talk about {topic}.|Is {food} healthy?|Translate 'good luck' for me.|"
    "How long does it take to get from {city} to {city}?|Compare two books about {topic}."
)
FILL = {
    "city": CITIES,
    "name": NAMES,
    "food": "lentils,aubergine,rye flour,salmon,figs,leeks".split(","),
    "topic": "glaciers,interest rates,bees,the Roman army,batteries,jazz".split(","),
    "stain": "wine,ink,grass,coffee".split(","),
    "number": [str(n) for n in range(10, 99)],
}
ANSWERS = (
    "Here is what I would do first.|It depends on how much time you have.|There are three options, and "
    "each of them has its price.|Start with the simplest one and look at the result.|Many people find "
    "this harder than it is.|Let me know which one you like best.|A good rule is to begin early and to "
    "keep notes.|The second step takes the longest, so plan an hour for it.|You may want to ask a friend "
    "to look at it too.|In short: keep it simple, be friendly, and say what you need.|If it does not "
    "work, we can try another way.|As for {topic}, there is much to say.|In {city} that is different.|"
    "I would avoid {food} on that day."
)
# A preference, and a question that shares no word with it
PREFERENCES = [
    ("I can't stand coriander.", "What herbs should be left out of the soup?"),
    ("Window seats only, please, I get anxious in the aisle.", "How to book the flight?"),
    ("I never read anything on paper anymore.", "Which format for the novel I am buying?"),
    ("Loud places wear me out.", "What restaurant suits me for Saturday?"),
    ("Peanuts send me to hospital.", "Do I have allergies?"),
    ("I only run before sunrise.", "When should the training session be scheduled?"),
    ("Horror movies keep me awake for days.", "Which film genre should be avoided?"),
    ("I gave up alcohol in 2019.", "Would wine be a good present?"),
    ("Metric units, always.", "Show distances in miles or kilometres?"),
    ("Heights terrify me.", "Would a cable car trip be fun?"),
    ("I'd rather write than phone.", "What is the best way to contact me?"),
    ("Bach calms me down.", "What music should be played while working?"),
    ("I avoid dairy.", "Is cheese fine for dinner?"),
    ("Gold jewellery is not my thing, silver is.", "Which ring to choose as a gift?"),
    ("We don't own a television.", "Where could the series be watched?"),
    ("Hot weather makes me ill.", "Is a desert vacation in July sensible?"),
    ("I collect vinyl from the seventies.", "Ideas for a birthday surprise: records?"),
    ("Please keep explanations short.", "How long should the answer be?"),
    ("I vote for train over plane every time.", "How would I like to travel to Berlin?"),
    ("Spreadsheets bore me to tears.", "Should budgets come as Excel tables?"),
]


@dataclass(frozen=True)
class Change:
    """Where a thing is told, where its change, and the questions for it."""

    old: str
    new: str
    questions: list[str]


def pick(dice: random.Random, choices: str) -> str:
    """Return one of ``choices`` with its places filled in."""
    text = dice.choice(choices.split("|"))
    for name, values in FILL.items():
        while "{" + name + "}" in text:
            text = text.replace("{" + name + "}", dice.choice(values), 1)
    return text


def life(dice: random.Random, others: int = 15) -> tuple[list[Message], list[Change]]:
    """Return the messages of a user, and what changes in them.

    Args:
        dice: Makes them.
        others: How many other messages of the user there are for each change.
    """
    said: list[tuple[float, str, str]] = []
    changes = []
    for number, (values, first, later, questions) in enumerate(THINGS):
        one, other = dice.sample(values.split("|"), 2)
        times = sorted(dice.uniform(0, 1) for _ in range(2))
        for kind, forms, value, at in zip(
            ("old", "new"), (first, later), (one, other), times, strict=True
        ):
            text = pick(dice, forms).format(value)
            if dice.random() < 0.4:  # in passing
                text = " ".join(dice.sample([text, pick(dice, REQUESTS)], 2))
            said.append((at, f"{kind}{number}", text))
        changes.append(Change(f"old{number}", f"new{number}", questions.split("|")))
    for number in range(others * len(THINGS)):
        forms = OTHERS if dice.random() < 0.2 else REQUESTS
        said.append((dice.uniform(0, 1), f"other{number}", pick(dice, forms)))
    return [*_talk(dice, sorted(said))], changes


def _talk(dice: random.Random, said: list[tuple[float, str, str]]) -> Iterator[Message]:
    conversation = 0
    for number, (at, name, text) in enumerate(said):
        conversation += dice.random() < 0.25
        time = START + timedelta(days=365 * at)
        where = {"conversation": f"c{conversation}"}
        yield Message.user(text, id=name, created_at=time, metadata=where)
        about = " ".join(pick(dice, ANSWERS) for _ in range(dice.randint(2, 25)))
        answer = f'You wrote: "{text[:80]}" {about}' if dice.random() < 0.5 else about
        yield Message.assistant(
            answer, id=f"answer{number}", created_at=time + timedelta(seconds=9), metadata=where
        )


async def ask_changes(memory: VectorMemory, changes: list[Change]) -> Iterator[tuple[int, ...]]:
    """Return for each question whether the newer is found, both are, and the newer is first."""
    rows = []
    for change in changes:
        for question in change.questions:
            found = [hit.message.id for hit in await memory.recall(question, 10)]
            both = change.old in found and change.new in found
            first = both and found.index(change.new) < found.index(change.old)
            rows.append((change.new in found, both, first))
    return iter(rows)


async def measure_changes(embedder: Embedder | None, users: int) -> None:
    rows, asking = [], []
    for seed in range(users):
        messages, changes = life(random.Random(seed))
        memory = VectorMemory(embedder=embedder)
        await memory.update(messages)
        started = time.perf_counter()
        answers = [*await ask_changes(memory, changes)]
        asking.append((time.perf_counter() - started) / len(answers))
        rows += answers
    new, both, first = (sum(column) for column in zip(*rows, strict=True))
    print(f"changes: {len(rows)} questions, {1000 * statistics.median(asking):.1f} ms each")
    print(f"  newer found @10 {new / len(rows):.3f}   both {both / len(rows):.3f}", end="   ")
    print(f"newer first where both are {first / max(both, 1):.3f}")


async def measure_preferences(embedder: Embedder | None, users: int, *, answered: bool) -> None:
    rows = []
    for seed in range(users):
        dice = random.Random(seed)
        said = [(dice.uniform(0, 1), f"like{n}", p) for n, (p, _) in enumerate(PREFERENCES)]
        said += [(dice.uniform(0, 1), f"other{n}", pick(dice, REQUESTS)) for n in range(200)]
        talk = [m for m in _talk(dice, sorted(said)) if answered or m.role == "user"]
        memory = VectorMemory(embedder=embedder)
        await memory.update(talk)
        nearest = RamVectors()
        questions = [question for _, question in PREFERENCES]
        vectors = []
        if embedder is not None:
            nearest.put([m.id for m in talk], await embed_all(embedder, [m.content for m in talk]))
            vectors = [*unit_vectors(await embed_all(embedder, questions))]
        for number, question in enumerate(questions):
            found = [hit.message.id for hit in await memory.recall(question, 10)]
            close = nearest.nearest(vectors[number], 10) if vectors else {}
            rows.append((f"like{number}" in found, f"like{number}" in close))
    found, close = (statistics.mean(column) for column in zip(*rows, strict=True))
    print(
        f"preferences, {'with' if answered else 'without'} answers: {len(rows)} questions", end=" "
    )
    print(f"found @10 {found:.3f}, by the cosine alone {close:.3f}")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--embedder", default="none", help="none (default), wordllama, minilm …")
    parser.add_argument("--users", type=int, default=20)
    options = parser.parse_args()
    embedder = embedder_of(options.embedder)
    await measure_changes(embedder, options.users)
    for answered in (True, False):
        await measure_preferences(embedder, options.users, answered=answered)


if __name__ == "__main__":
    anyio.run(main)
