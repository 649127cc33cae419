"""What users state, what of it is new, and what they only ask, suppose, deny or take back.

Words and marks decide, for English first: "Do I live in Rome?", "If I live in Rome, …" and "I live
in Rome? No, that is wrong." do not state that somebody lives in Rome.
"""

from __future__ import annotations

import re
from bisect import bisect, bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate

from agent_brain.memories.recall.tokenizer import ENGLISH, runs
from agent_brain.memories.user.facts import Fact
from agent_brain.memories.user.misreading import is_misread
from agent_brain.memories.user.origins import NOT, NOT_ELSEWHERE, is_negative, plain, words_of

_FLAGS = re.IGNORECASE | re.VERBOSE
_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")  # of a sentence
_CLAUSE = re.compile(
    r"[.,;:!?，。！？\n]|\b(?:but|aber|sondern|sino|pero|mais|and(?= (?:i|my|we|our)\b))\b"
    r"|\s[-–—]+\s|\b(?:und|et|y|e|и)\b(?=(?:\s+[\w'’]+){3}|\s+(?:kein|nicht|pas|no\b|не\b))"
)
_COMMA = re.compile(r"[,;，；]\s*|\s[-–—]+\s")
_VERBS = "do|does|did|am|is|are|was|were|have|has|had|can|could|should|would|will|shall|may|might"
_LEAD = r"\s*(?:(?:and|but|so|or|ok|okay|hey|hi|well|then|now)[,\s]+)*"
# What begins a question, whether or not a question mark ends it; a request is none.
_ASKS = re.compile(
    rf"""{_LEAD}(?:
    (?:{_VERBS})(?:n['’]t)?\s+(?:i|we|he|she|it|they)\b
    | (?:do|does|did|are|were|have|had|should|may|might)(?:n['’]t)?\s+you\b
    | (?:can|could|will|would)(?:n['’]t)?\s+you\s+(?:\w+\s+)?
      (?:tell|say|check|confirm|verify|guess|know|see|find\s+out|look
      | remember(?!\s+(?:that|i|my)\b))\b
    | (?:what|where|when|why|how)(?:['’]s|\s+(?:{_VERBS}))\b
    )""",
    _FLAGS,
)
# The same, in a sentence that a question mark ends.
_MAY_ASK = re.compile(
    rf"""{_LEAD}(?:what|who|whom|whose|where|when|why|how|which|if|do|does|did|am|is|are|was|were
    | has|have|had|should|shall|may|wer|wo|wann|warum|wieso|wie|welche\w*|est-ce
    | (?:\w+e|bin|hab|kann|muss|soll|darf|war)\s+ich
    )\b""",
    _FLAGS,
)
_CONFIRM = re.compile(  # what asks whether all of a sentence is so
    rf"""(?:(?:{_VERBS})(?:n['’]t)?\s+(?:i|we)(?:\s+not)? | isn['’]t\s+it | am\s+i\s+right
    | (?:is\s+that\s+)?(?:right|correct) | oder(?:\s+nicht)? | nicht(?:\s+wahr)? | verdad
    | n['’]est-ce\s+pas)[\s?!？]*$""",
    _FLAGS,
)
_REQUESTS = re.compile(rf"{_LEAD}(?:(?:can|could|will|would)\s+you|please)\b", re.IGNORECASE)
_SUPPOSES = re.compile(
    r"""(?:\b(?:if|unless|whether|provided\ that|in\ case
    | (?<!i\ )(?:suppose|supposing|assume|assuming|imagine|pretend|hypothetically)|let['’]?s\ say
    | wenn|falls\ (?:ich|wir|mein\w*)|sofern|ob|angenommen)\b
    | (?:^|(?<=[,;:]\ ))(?:and\ |y\ |et\ )?(?:si\b|s['’]ils?\b)(?=[^,]*,)
    | 如果|要是|假如|もし)
    .*?(?=[,;:，；：]|\s[-–—]+\s|\bthen\b|\bdann\b|$)""",
    _FLAGS,
)
_TAKES_BACK = re.compile(
    r"""(?:^|[,;:.…–—-]\s*|\b(?:no|nope|wait|sorry|actually|but|nein|non)[,\s]+)
    (?:(?:(?:that|this|it)(?:['’]s|\s+is|\s+was)\s+(?:\w+\s+)?
        (?:wrong|false|untrue|incorrect|a\ lie|a\ joke|not\s+(?:true|right|correct|so))
    | (?:that|this|it)\s+(?:is|was)n['’]t\s+(?:true|right|correct|so)
    | (?:(?:i['’]m|i\s+am|i\s+was)\s+)?(?:just|only)\s+(?:kidding|joking)
    | (?:scratch|strike)\s+that | not\s+true | i\s+(?:lied|misspoke)
    | (?:das\s+)?stimmt\s+nicht | das\s+ist\s+(?:falsch|nicht\s+wahr) | nein,?\s+doch\s+nicht
    | (?:eso\s+)?no\s+es\s+(?:verdad|cierto|así) | (?:es|é)\s+(?:falso|mentira)
    | c['’]est\s+faux | (?:ce\s+)?n['’]est\s+pas\s+vrai | non\s+è\s+vero
    | (?:wait|actually|oh|moment),?\s+(?:no|nein) | no,?\s+wait | nein,?\s+moment
    | actually,?\s+i(?:\s+\w+|['’]\w+)?(?:n['’]t|\s+not)(?:\s+\w+\s+there)?)
    (?=\s*(?:[,;.!?:…]|$|\s[-–—]|\bi\b))
    | not(?=[\s.!…]*$)
    # "No, in Porto", "I mean Porto": a few words to the end take the place of others
    | (?:(?:no|nein|non|nope),|i\s+meant?|correction:)\s+
      (?=(?:(?:in|at|on|to|from|for|with|auf|en|à|au|em)\s+\w|(?-i:[A-Z])\w|\d)
      [\w'’-]*(?:,?\s+[\w'’-]+)?[\s.!]*$)(?!(?:thanks?|thank\s+you)\b|i\b))""",
    _FLAGS,
)
POLITE = frozenset(
    words_of(
        "thanks thank great good nice cool perfect awesome ok okay yes yeah yep no nope please "
        "sure hello hi hey bye goodbye morning evening night welcome sorry wow lol right fine done "
        "ja jawohl genau stimmt nein danke bitte klar gut oui non merci sûr sí si claro "
        "gracias vale sim não obrigado obrigada да нет спасибо"
    )
)
# Words with which facts are told, whatever they tell.
FRAME = frozenset(
    "live like love enjoy prefer want own work name call use speak go move plan "
    "user person year old".split()
)
_REPORTS = re.compile(  # up to the end of the sentence
    r"""\b(?:
    i\ (?:was|am|have\ been)\ told\b | according\ to\b
    | in\ (?:my|the|a)\ (?:\w+\ )?(?:novel|story|book|poem|game|dreams?|nightmare|play|film|movie)\b
    | (?:write|tell|invent|make\ up|continue)\ (?:me\ )?(?:a|an|the|this|my)\ (?:\w+\ )?
      (?:story|poem | song|tale|novel|joke|dialogue|scene|script|limerick|haiku|sentence)\b
    | (?:an?|the|this)\ example\b | let['’]?s\ play\b | role-?play\b
    ).*$""",
    _FLAGS | re.DOTALL,
)
# A verb of saying and the beginning of what is said: "that", a mark, or a pronoun. Behind some
# subjects, anything is said; some verbs are never of the first person.
_SAYING = re.compile(
    r"""\b(?:(?P<others>
    (?:he|she|they|you|people|every(?:one|body)|some(?:one|body)|friends?
      | (?:the|this|that|a|an)\ (?:\w+\ )?(?:page|web\s?site|site|article|document|e?mail|message
        | post|book|novel|song|text|story|ad|tool|bot|assistant|ai|model|search|results?))
    \ (?:also\ |always\ |just\ )?(?:says?|said|thinks?|thought|claims?|claimed|believes?|believed
      | writes?|wrote|states?|stated|goes|tells?\ (?:me|us)|told\ (?:me|us)|insists?)\b)
    | (?:(?P<third>says|thinks|claims|believes|writes|(?<!united\ )states|tells|insists|swears
        | confirms|sagt|meint|behauptet|glaubt|denkt|schreibt|dice|dicen|dijo|dijeron|cree|creen
        | afirma|disent|croit|affirme|prétend|diz|dizem|crede|dicono)
      | say|said|think|thought|claim|claimed|believe|believed|write|wrote|stated|told|insisted
      | swore|confirmed|sagten?|gesagt|meinten?|behauptete|glaubte|dachte|schrieb|geschrieben
      | dit|écrit)\b
      (?:\ (?:to\ )?(?:me|us|you|him|her|them|every(?:one|body)|mir|uns|dir))?\s*
      (?:[,:：]?\s*(?:that|dass|daß|que|qu['’]|che)\b | [:："'“„«‘]
      | ,(?!\s*(?:and|but|so|or|und|aber|y|pero|et|mais)\b)
      | (?=(?:i|my|we|our|he|she|it|they|there)\b)))""",
    _FLAGS,
)
_PART = re.compile(
    r"[.,;:!?()\n]|\s[-–—]+\s|\b(?:and|but|because|while|und|aber|weil|y|pero|et)\b",
    re.IGNORECASE,
)
_FIRST = re.compile(r"\b(?:i|we|let|to|can|please|ich|wir|yo|je|j['’]\w+|nous)\b", re.IGNORECASE)
_AGREES = re.compile(
    r"\s*(?:(?:as|like|wie|como|comme)\b|(?:that|having|having that)\s*$)", re.IGNORECASE
)
_CONTRASTS = re.compile(
    r"\b(?:but|aber|pero|mais)\s+(?:i|my|we|ich|mein\w*|yo|mi|je)\b", re.IGNORECASE
)
_LONGEST_SUBJECT = 200  # letters of a subject
_TIMED = frozenset(("until", "till", "since"))  # "I live here until May"
_FIRST_PERSON = frozenset("i im ive id ill my me mine myself we our us ours".split())


def stems_of(text: str) -> set[str]:
    """Return the stems of a text; single letters of scripts without spaces are in too many."""
    return {stem for stem in words_of(text) if len(stem) > 1 or stem.isascii()}


def states(own: str, quote: str, text: str, *, of_user: bool = True, now: bool = True) -> bool:
    """Return whether a user states a fact, rather than asks, supposes, denies it or takes it back.

    Args:
        own: What the user says in a message.
        quote: The words of it that a fact rests on.
        text: The fact.
        of_user: Whether the fact is about the user.
        now: Whether the fact is to hold now: it is neither planned nor over.
    """
    if plain(own) == plain(text):
        return True
    told = stated(own, quote)
    stems, words = stems_of(text), stems_of(told)
    content = stems - FRAME or stems
    if not words - POLITE or (content & stems_of(own) and not content & words):
        return False
    return not _denied(told, quote, text) and not is_misread(told, text, of_user=of_user, now=now)


def stated(own: str, quote: str = "") -> str:
    """Return what a user states in the sentences that have a part of a quote, a line for each."""
    sentences = [part for part in _END.split(own) if part.strip()]
    ends = [*accumulate((len(_squeezed(part)) for part in sentences), initial=0)]
    whole, sought = _squeezed("".join(sentences)), _squeezed(quote)
    found = [m.start() for m in re.finditer(re.escape(sought), whole)] if sought else []
    told: list[str] = []
    for number, sentence in enumerate(sentences):
        back = _TAKES_BACK.search(sentence)
        if back is not None:
            if len(stems_of(sentence[: back.start()]) - POLITE) < 2 and told:  # "No wait, that …"
                told[-1] = ""
            sentence = sentence[back.end() :]
        start, end = ends[number : number + 2]
        before = bisect_left(found, end)  # the last one that begins before the end
        touched = not found or (before and found[before - 1] + len(sought) > start)
        told.append(_told(sentence) if touched else "")
    return "\n".join(filter(None, told))


def _squeezed(text: str) -> str:
    """Return a text without spaces, which a quote may have elsewhere."""
    return plain(text).replace(" ", "")


def _told(sentence: str) -> str:
    """Return a sentence without what it asks, supposes, or reports of what others say."""
    if re.search(r", ¿(?:verdad|no)\?", sentence):
        return ""
    sentence = re.sub(r"¿[^?]*\?", "", sentence).strip()
    asks = sentence.rstrip(" !\"'”’)").endswith(("?", "？"))
    if _ASKS.match(sentence) or (asks and _MAY_ASK.match(sentence)):
        return ""
    if asks and not _REQUESTS.match(sentence):  # "I live in Porto, what is the weather?"
        *clauses, asked = _COMMA.split(sentence)
        if _CONFIRM.match(asked):  # "I live in Porto, don't I?"
            return ""
        sentence = ", ".join(clause for clause in clauses if not _ASKS.match(clause))
    return _unreported(_SUPPOSES.sub("", sentence))


def _unreported(sentence: str) -> str:
    """Return a sentence without what it only reports, which may end before "but I"."""
    sentence = _REPORTS.sub("", sentence)
    kept, upto = [], 0
    for found in _SAYING.finditer(sentence):
        start = found.start()
        if start < upto or not _by_another(
            sentence[max(upto, start - _LONGEST_SUBJECT) : start], found
        ):
            continue
        kept.append(sentence[upto:start])
        own = _CONTRASTS.search(sentence, found.end())
        upto = own.start() if own else len(sentence)
    return "".join([*kept, sentence[upto:]])


def _by_another(before: str, saying: re.Match[str]) -> bool:
    """Return whether somebody else says something: not "I told Bob that" nor "As Bob says,"."""
    clauses = [clause for clause in _PART.split(before) if clause.strip()]
    subject = clauses[-1] if clauses else ""
    if _AGREES.match(subject):
        return False
    if saying["others"] or saying["third"]:
        return True
    return bool(subject) and not _FIRST.search(subject)


def _denied(told: str, quote: str, text: str) -> bool:
    """Return whether a "not" stands before a quote, or before the words of a fact without one."""
    if is_negative(text) or (re.search(r"\bno\b", plain(text)) and "não" not in plain(told)):
        return False
    before = [*_before(plain(told), plain(quote))]
    if before and all(map(is_negative, before)):
        return True
    stems = stems_of(text)
    near = [part.strip() for part in _CLAUSE.split(plain(told)) if stems & stems_of(part)]
    if near and all(map(NOT_ELSEWHERE.search, near)):
        return True
    if near and all(_has_no(part, stems) for part in near):
        return True
    having = [part for part in near if stems <= stems_of(part)]
    return bool(having) and all(any(_negated(part, stems)) for part in having)


def _has_no(clause: str, stems: set[str]) -> bool:
    """Return whether a clause in English says "no" of words of a fact."""
    english = re.search(r"\b(?:i|i['’]?m|my|we|our)\b", clause) is not None
    return english and any(stems & stems_of(word) for word in re.findall(r"\bno (\w+)", clause))


def _before(told: str, quote: str) -> Iterator[str]:
    """Yield what stands before a quote in its clause, with the first word of the quote."""
    starts = [0, *(at for found in _CLAUSE.finditer(told) for at in found.span())]
    for found in re.finditer(re.escape(quote), told):
        start = starts[bisect(starts, found.start()) - 1]
        yield told[start : found.start()] + quote.split(" ", 1)[0]


def _negated(clause: str, stems: set[str]) -> Iterator[bool]:
    """Yield whether the words of a fact stand behind each "not" of a clause, and little else."""
    clause = plain(clause)
    for found in NOT.finditer(clause):
        behind = stems_of(clause[found.end() :])
        yield stems <= behind and (len(stems) > 1 or stems == behind)


def says_something(text: str) -> bool:
    """Return whether a text may say something about who wrote it: not thanks, not a mere question.

    A question in English says nothing, nor does a request without "I" or "my"; in other languages
    they may.
    """
    if not set(words_of(text)) - POLITE:
        return False
    words = set(runs(text))
    if not words & ENGLISH:
        return True
    asks = all(part.endswith("?") for part in re.findall(r"[^.!?]+[.!?]*", text.strip()))
    return bool(words_of(stated(text))) and (not asks or bool(words & _FIRST_PERSON))


def said_in(text: str, facts: Iterable[Fact]) -> Fact | None:
    """Return the first fact that says the same, as it has all words of a text; None if none."""
    if _TIMED & set(runs(text)):
        return None
    words, denies = set(words_of(text)), is_negative(text)
    for fact in facts:
        if words <= set(words_of(fact.text)) and denies is is_negative(fact.text):
            return fact
    return None
