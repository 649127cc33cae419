"""Facts that a quote does not carry: what is of the past, a wish, or about somebody else.

A model may quote "I used to live in Rome" for "Lives in Rome", and "My brother hates cats" for
"Hates cats". Only what is plain from the words is found, in English, and for other people and the
past in German, French and Spanish too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from agent_brain.memories.user.origins import plain, words_of

_FLAGS = re.IGNORECASE | re.VERBOSE
_CLAUSE = re.compile(
    r"[.,;:!?()\n]|\s[-–—]+\s|\b(?:but|though|although|so|because|while|whereas|who|that|aber|mais"
    r"|pero|(?:and|und|et|y)(?=\s+(?:i|my|we|our|he|she|they|it|ich|je|j['’]\w+|yo)\b))\b",
    re.IGNORECASE,
)
_PERSON = (
    "brother|sister|siblings?|twin|wife|husband|partner|spouse|fianc[eé]e?|girlfriend|boyfriend"
    "|father|mother|dad|mum|mom|parents?|son|daughter|kids?|child(?:ren)?|baby|uncle|aunt|nephew"
    "|niece|cousin|grand\\w+|friends?|boss|manager|colleagues?|co-?workers?|neighbou?rs?|room-?mate"
    "|flat-?mate|landlord|teacher|doctor|therapist|client|customer|ex(?:-\\w+)?|\\w+-in-law"
    "|bruder|schwester|frau|mann|vater|mutter|eltern|sohn|tochter|kinder|onkel|tante|oma|opa"
    "|freund(?:in)?|chef(?:in)?|kolleg(?:e|in)|nachbar(?:in)?"
    "|frère|sœur|soeur|mari|femme|père|mère|fils|fille|oncle|amie?|patron|collègue|voisine?"
    "|hermano|hermana|marido|esposa|padre|madre|hijo|hija|tío|tía|amigo|amiga|novio|novia|jefe"
    "|jefa|vecino|vecina|company|firm|employer|office|team|bank|club|school"
)
_ANOTHER = re.compile(rf"\b(?:{_PERSON})\b|\bfamil", _FLAGS)  # a fact about somebody else
_MINE = "my|our|mein(?:e|er|em|en)?|unser(?:e|er|em|en)?|mon|ma|mes|notre|mi|mis|nuestr[oa]"
# A clause about somebody else: "my older brother Tom …", "she …"; what it says of them follows.
_OTHER = re.compile(
    rf"^\s*(?:(?:{_MINE})\s+(?:(?!(?:{_PERSON})\b)\w+\s+)?(?:{_PERSON})(?:\s+(?-i:[A-Z])[\w-]+)?"
    r"|he|she|they|er|elle|ella|ils|elles|ellos|ellas)\s+(?P<says>\S.*)$",
    _FLAGS,
)
_NAMED = re.compile(  # "Tom lives in Rome", at the beginning of a sentence
    r"^\s*(?!(?:[IJ]|My|We|Our|There|That|This|It|What|Who|Please)\b)[A-Z][\w'’-]+"
    r"(?:\s+[A-Z][\w-]+)?\s+(?P<says>[a-z]\w*s\b.*)$"
)
_ADVERBS = re.compile(
    r"^(?:(?:also|always|never|really|just|still|now|currently|usually|often|only|even|absolutely"
    r"|totally|both|all|has|have|is|are|was|['’]s)\s+)+"
)
_I = re.compile(r"\b(?:i|me|my|mine|we|us|our|ich|mir|mich|wir|uns|je|j['’]|me|moi|nous|yo|nos)\b")
_ME_TOO = re.compile(r"\b(?:(?:so|as) (?:do|am|have) (?:i|we)|me too|like me|auch ich|moi aussi)\b")
_PAST = re.compile(
    r"""\b(?:used\ to(?!\s+(?:the|it|this|that|\w+ing)\b) | formerly | previously | back\ then
    | back\ in\ (?:the\ |my\ )?\w+ | in\ the\ past | in\ my\ (?:youth|childhood|teens|twenties)
    | in\ those\ days | as\ an?\ (?:small\ |little\ |young\ )?(?:child|kid|boy|girl|teen\w*|student)
    | when\ (?:i\ was|i\ were|we\ were) | once\ (?=lived|worked|owned|had|was)
    | my\ (?:old|former|previous|last|ex-?)(?=\s+\w+\s+(?:was|were|had)\b)
    | früher | damals | ehemals | autrefois | à\ l['’]époque | antes(?!\ de\b) | antiguamente
    | sol[ií]a)\b""",
    _FLAGS,
)
_NOW = re.compile(
    r"\b(?:still|since|always|ever|again|now|these days|nowadays|today|immer noch|seit|toujours"
    r"|depuis|todavía|aún|desde)\b"
)
# What a fact that is of the past, a wish or an end says itself.
_SAYS_SO = re.compile(
    r"""^(?:the\ user\ |user\ )?(?:\w+ed|went|took|came|saw|met|got|won|wrote|bought|began|spent)\b
    | \b(?:used\ to | was | were | had | lived | worked | owned | formerly | former | previous\w*
    | past | once | ex | until | childhood | as\ an?\ (?:child|kid|student) | grew\ up | ended
    | left | quit | stopped | gave\ up | given\ up | no\ longer | not | n['’]t | sold | lost | moved
    | wants? | wish\w* | hopes? | hoping | plans? | planning | intends? | dreams? | consider\w*
    | would | might | may | will | goal | future | thinks? | thinking | likes\ to | aims?
    | früher | ehemalig\w* | war | hatte | wohnte | avant | était | habitait | antes | vivía | era
    | going\ to | died | dead | passed | möchte | quiere | veut)\b""",
    _FLAGS,
)
_VERBS = {  # the past of verbs that say what lasts
    "lived": "live", "worked": "work", "owned": "own", "studied": "study", "smoked": "smoke",
    "drove": "drive", "liked": "like", "loved": "love", "hated": "hate", "ate": "eat",
    "drank": "drink", "spoke": "speak", "played": "play", "taught": "teach", "believed": "believe",
    "wohnte": "wohn", "arbeitete": "arbeit", "lebte": "leb", "vivía": "viv", "trabajaba": "trabaj",
    "habitais": "habit", "travaillais": "travaill",
}  # fmt: skip
_DID = re.compile(rf"\b(?:i|we|ich|wir|yo|j['’]?)\s*(?:\w+ly\s+)?(?P<did>{'|'.join(_VERBS)})\b")
_WAS = re.compile(r"\b(?:i|we) (?:was|were) (?!born|raised)(?P<what>(?:an?|the) .+)$")
_ENDED = re.compile(
    r"""\b(?:(?:quit|stopped|ceased|gave\ up|given\ up|giving\ up|dropped|cancell?ed|sold|lost
    | resigned\ from|retired\ from|got\ rid\ of|moved\ (?:away\ |out\ )?(?:from|of)|left|leaving
    | broke\ up\ with|divorced|instead\ of|rather\ than|anything\ but|over\ with|done\ with)
    \s+(?:the|my|our|a|an|at|in|being|job|position|working|living)?\s*){1,2}(?P<what>\S.*)$""",
    _FLAGS,
)
_WISH = re.compile(
    r"""\b(?:i|we)(?:['’]d|['’]m|['’]ve|['’]re|\ am|\ are|\ have|\ would)?\ (?:\w+ly\ |always\ )?
    (?:(?:want|wanted|wish|hope|hoping|like|love|dream|dreaming|think|thinking|plan|planning
    | intend|consider|considering|going|about)\ (?:to|of|about)?\s*
    | wanna | gonna | may | could | might)\s*(?P<what>\S.*)$
    |\b(?:i|we)(?:['’]ll|\ will|\ shall
    | (?:['’]d|\ would)(?!\ (?:rather|prefer|appreciate|recommend|suggest|say|never|not)\b))
    \s+(?P<will>\S.*)$""",
    _FLAGS,
)
_LIKES = re.compile(r"\b(?:i|we) (?:\w+ly )?(?:like|love)(?: to)?\b")  # tells what holds
_VISITS = re.compile(
    r"^(?!.*\b(?:liv\w+|mov\w+|settl\w+|home|resid\w+|based)\b)"
    r".*\b(?:visit\w*|travell?\w*|trip|holidays?|vacation|fl[ey]w?|flight|been to|went to)\b"
)
_BECOMES = {
    "move": ("live", "home", "resid", "citi", "move"),
    "reloc": ("live", "home", "resid"),
    "settl": ("live", "home", "resid"),
    "start": ("work", "job", "studi"),
    "get": ("own", "drive"),
    "buy": ("own", "drive", "home"),
    "adopt": ("own",),
}
_IS_A = re.compile(r"(?:the user )?(?:is|works as)\b")
_FRAME = frozenset(words_of("live work own drive home job user person place city lives in"))


def is_misread(told: str, text: str, *, of_user: bool, now: bool) -> bool:
    """Return whether a fact makes of what the user states what it does not say.

    Args:
        told: What the user states.
        text: The fact.
        of_user: Whether the fact is about the user, and not about somebody else.
        now: Whether the fact is to hold now: it is neither planned nor over.
    """
    near = [*_near(told, text)]
    if not near:
        return False
    another = of_user and not _ANOTHER.search(text) and not _ME_TOO.search(plain(told))
    if another and all(_of_another(clause, text) for clause, _ in near):
        return True
    if not now or _SAYS_SO.search(plain(text)):
        return False
    return all(_was(c, sentence, text) or _is_wished(c, text) for c, sentence in near)


def _near(told: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the clauses that have most words of a fact, each with its sentence."""
    stems = {*words_of(text)} - _FRAME or {*words_of(text)}
    clauses = [
        (clause, sentence)
        for sentence in re.split(r"(?<=[.!?…])\s+|\n", told)
        for clause in _CLAUSE.split(sentence)
    ]
    shared = [len(stems & {*words_of(clause)}) for clause, _ in clauses]
    most = max(shared, default=0)
    yield from (c for c, count in zip(clauses, shared, strict=True) if count and count == most)


def _of_another(clause: str, text: str) -> bool:
    """Return whether a clause says of somebody else what a fact says."""
    found = _OTHER.match(clause) or _NAMED.match(clause)
    if found is None or _I.search(says := plain(found["says"])):
        return False
    parts = re.split(r"\b(?:and|or|und|oder|et|ou|y|o)\b\s*", says)
    verbs = [verb for part in parts for verb in words_of(_ADVERBS.sub("", part))[:1]]
    verbs += [each for verb in verbs for each in _BECOMES.get(verb, ())]
    return _share(verbs, text) and {*words_of(text)} - _FRAME <= {*words_of(says)}


def _was(clause: str, sentence: str, text: str) -> bool:
    """Return whether a clause says that what a fact says is over, or not so."""
    clause, sentence = plain(clause), plain(sentence)
    ended = _ENDED.search(clause)
    if ended and _only_behind(clause[: ended.start()], ended["what"], text):
        return True
    if _NOW.search(clause):
        return False
    did = _DID.search(clause)
    if did and _share([_VERBS[did["did"]]], text):
        return True
    was = _WAS.search(clause)
    if was and _IS_A.match(plain(text)):
        return _share(words_of(was["what"]), text)
    past = _PAST.search(sentence)
    return past is not None and not _NOW.search(sentence)


def _is_wished(clause: str, text: str) -> bool:
    """Return whether a clause says that what a fact says is only wished for, or for a while."""
    clause = plain(clause)
    if _VISITS.search(clause) and re.match(r"(?:the user |user )?lives\b", plain(text)):
        return True
    wish = _WISH.search(clause)
    if wish is None or _LIKES.search(clause):
        return False
    what = wish["what"] or wish["will"]
    first = what.partition(" ")[0]
    if first in ("be", "become", "becoming"):
        called = re.match(r"\w+ \w+(?:ed|own)\b", what)
        return _IS_A.match(plain(text)) is not None and not called and _share(words_of(what), text)
    verb = (words_of(first) or [first])[0]
    there = _content(text) & {*words_of(what)}
    return bool(there) and _share([verb, *_BECOMES.get(verb, ())], text)


def _only_behind(before: str, behind: str, text: str) -> bool:
    """Return whether words of a fact stand right behind a place, and none before it."""
    nearest = [word for word in words_of(behind) if word not in _FRAME][:1] or words_of(behind)[:1]
    return bool({*words_of(text)} & {*nearest}) and not _content(text) & {*words_of(before)}


def _content(text: str) -> set[str]:
    """Return the stems of a fact without those of its verb, if there are others."""
    verb = words_of(re.sub(r"^(?:the user|user)\s+", "", plain(text)))[:1]
    stems = {*words_of(text)}
    return stems - _FRAME - {*verb} or stems - _FRAME or stems


def _share(stems: Collection[str], text: str) -> bool:
    """Return whether a text has a word with one of some stems."""
    words = words_of(text)
    return any(word.startswith(stem) for stem in stems if stem for word in words)
