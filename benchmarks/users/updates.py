"""Facts that change over the years, learned in any order, against a model of what holds when.

Three people, slots and topics without one; sure and unsure; values that come back; what is of the
past; what a tool says in between; conversations that are learned late, in parts, and in any order.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from agent_brain import Message, MessagesMemory
from agent_brain.memories import Batch, Cited, Draft, Fact, RamJournal, UserMemory
from benchmarks.users.attacks import at, page, user

PEOPLE = ("user", "Anna", "Bob")
VALUES = {
    "home": ("lives in", "Porto Paris Rome Faro Lyon Oslo Bonn Turin Ghent Basel".split()),
    "employer": ("works at", "Bosch Siemens Volvo Nokia Philips Renault Fiat Shell".split()),
    "car": ("drives a", "Panda Beetle Civic Corolla Polo Fiesta Clio Twingo".split()),
    "pet": ("has a pet called", "Rex Tom Mimi Luna Bello Felix Nala Simba".split()),
}
TOPICS = {
    "tea": ("likes tea", "hates tea", "drinks tea on Sundays only", "prefers coffee to tea"),
    "jazz": ("likes jazz", "hates jazz", "plays jazz", "is bored by jazz"),
    "dogs": ("likes dogs", "is afraid of dogs", "breeds dogs", "is allergic to dogs"),
}
ROUNDS = 30  # statements of each chain
NOW = at(4_000)


@dataclass(frozen=True)
class Statement:
    """Something that was said of a person."""

    who: str
    slot: str | None
    topic: str
    text: str
    message: Message
    said: datetime
    since: datetime
    until: datetime | None
    own: bool
    unsure: bool

    @property
    def chain(self) -> tuple[str, str]:
        return self.who, self.topic


def statements(seed: int, rounds: int = ROUNDS) -> list[Statement]:
    """Return what is said over some years, in order for each thing."""
    rng = random.Random(seed)
    made = []
    for who in PEOPLE:
        for topic in (*VALUES, *TOPICS):
            day = rng.uniform(0, 50)
            for _ in range(rounds):
                day += rng.uniform(1, 60)
                made.append(_statement(rng, who, topic, day))
    return made


def _statement(rng: random.Random, who: str, topic: str, day: float) -> Statement:
    slot = topic if topic in VALUES else None
    verb, values = VALUES.get(topic, ("", TOPICS.get(topic, ())))
    unsure = topic in VALUES and rng.random() < 0.1
    told = f"{verb} {rng.choice(values)}{'ville' * unsure}".strip()  # an unsure one repeats none
    text = f"{'The user' if who == 'user' else who} {told}"
    own = rng.random() > 0.2
    kind = rng.random() if slot else 1.0
    since, until = at(day), None
    if kind < 0.1:  # of the past
        since, until = at(day - rng.uniform(200, 400)), at(day - rng.uniform(1, 190))
    elif kind < 0.2:
        since = at(day - rng.uniform(1, 40))
    elif kind < 0.25:
        until = at(day + rng.uniform(1, 100))
    said = f"{text}, day {day:.3f}"
    message = user(said, day) if own else page(said, day)
    return Statement(who, slot, topic, text, message, at(day), since, until, own, unsure)


def held(made: Iterable[Statement], now: datetime) -> dict[tuple[str, str], set[str]]:
    """Return what holds of each thing at a moment, by all that is known: said one after another."""
    everything = sorted(made, key=lambda each: each.said)
    claims = _walk(everything, datetime.max.replace(tzinfo=now.tzinfo))[1]
    holders, _ = _walk([s for s in everything if s.since <= now], now)
    return {
        chain: {s.text for s in held if (s.until is None or now < s.until) and s not in claims}
        for chain, held in holders.items()
    }


def _walk(
    ordered: Iterable[Statement], now: datetime
) -> tuple[dict[tuple[str, str], list[Statement]], list[Statement]]:
    holders: dict[tuple[str, str], list[Statement]] = {}
    claims = []
    for each in ordered:
        if not each.own:
            claims.append(each)
            continue
        if each.until is not None and each.until <= min(each.said, now):
            holders.setdefault((*each.chain, each.text, str(each.said)), [each])  # type: ignore[arg-type]
            continue
        now_held = holders.setdefault(each.chain, [])
        if each.unsure:
            now_held.append(each)
        else:
            now_held[:] = [each]
    return holders, claims


async def learned(made: list[Statement], seed: int, conversations: int) -> UserMemory:
    """Return what is learned from statements, in conversations that are read in any order."""
    rng = random.Random(seed)
    by_id = {each.message.id: each for each in made}
    talks: list[list[Statement]] = [[] for _ in range(conversations)]
    for chain in {each.chain: None for each in made}:
        mine = [each for each in made if each.chain == chain]
        for each, number in zip(mine, rng.sample(range(conversations), len(mine)), strict=True):
            talks[number].append(each)
    journal = RamJournal()
    known = UserMemory(journal=journal, tenant="ann", clock=lambda: NOW, profile_tokens=4_000)

    async def extract(batch: Batch) -> list[Draft]:
        facts = await known.facts(status="all")
        return [_draft(by_id[m.id], facts) for m in batch.messages if m.id in by_id]

    parts = []
    for number, talk in enumerate(talks):
        talk.sort(key=lambda each: each.said)
        cut = rng.randrange(len(talk) + 1)
        parts += [(number, talk[:cut]), (number, talk[cut:])]
    rng.shuffle(parts)
    for number, part in parts:
        place = {"journal": journal, "session": f"talk {number}", "tenant": "ann"}
        async with MessagesMemory(**place) as memory:  # type: ignore[arg-type]
            opener = user(f"Here is what is new, number {len(await memory.messages())}")
            await memory.update([opener, *(each.message for each in part)])
        await known.learn(f"talk {number}", extract=extract)
    return known


def _draft(each: Statement, facts: list[Fact]) -> Draft:
    about = "user" if each.who == "user" else each.who
    texts = {
        f"{'The user' if each.who == 'user' else each.who} {v}" for v in TOPICS.get(each.topic, ())
    }
    replaces = [fact.id for fact in facts if fact.text in texts and fact.text != each.text]
    return Draft(
        text=each.text, about=about, slot=each.slot, unsure=each.unsure, replaces=tuple(replaces),
        sources=(Cited(message=each.message.id, quote=each.text),),
        valid_from=each.since, valid_to=each.until,
    )  # fmt: skip


@dataclass
class Wrong:
    """What was found: changes, questions asked, and how many answers were wrong."""

    changes: int = 0
    shown: int = 0
    asked: int = 0
    wrong_as_of: int = 0


async def measure(seed: int, rounds: int = ROUNDS) -> Wrong:
    """Learn from statements in some order, and compare with what holds."""
    made = statements(seed, rounds)
    known = await learned(made, seed, 2 * rounds)
    found = Wrong(changes=len(made) - len({each.chain for each in made}))
    truth = _by_thing(held(made, NOW))
    for chain, texts in truth.items():
        who, topic = chain
        about = "user" if who == "user" else who
        old = {each.text for each in made if each.chain == chain} - texts
        facts = {fact.text for fact in await known.facts(about=about)}
        found.shown += len(old & facts) + len(texts - facts)
        recalled = {f.text for f in await known.recall(f"{who} {topic} {' '.join(old)}", k=50)}
        found.shown += len(old & recalled)
        memory = known.over(MessagesMemory())
        await memory.set_goal(f"What about the {topic} of {who}? {' '.join(sorted(old))}")
        brief = (await memory.context())[0].content.partition("Others say")[0]
        brief = brief.partition("From earlier conversations:")[0]
        found.shown += sum(f"{text} [" in brief for text in old)
    for day in range(0, 60 * rounds, 25):
        truth = _by_thing(held(made, at(day)))
        then = await known.facts(as_of=at(day))
        got: dict[tuple[str, str], set[str]] = {}
        for fact in then:
            topic = fact.slot or next(t for t in TOPICS if t in fact.text)
            got.setdefault(("user" if fact.about == "user" else fact.about, topic), set()).add(
                fact.text
            )
        for chain in {*truth, *got}:
            found.asked += 1
            found.wrong_as_of += truth.get(chain, set()) != got.get(chain, set())
    return found


def _by_thing(holders: dict[tuple[str, str], set[str]]) -> dict[tuple[str, str], set[str]]:
    by_thing: dict[tuple[str, str], set[str]] = {}
    for key, texts in holders.items():
        by_thing.setdefault((key[0], key[1]), set()).update(texts)
    return by_thing
