"""What a sentence only reports: what somebody else says, is told to say, or what is made up."""

from __future__ import annotations

import re

_FLAGS = re.IGNORECASE | re.VERBOSE
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
_CLAUSE = re.compile(
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
_LONGEST = 200  # letters of a subject


def unreported(sentence: str) -> str:
    """Return a sentence without what it only reports, which may end before "but I"."""
    sentence = _REPORTS.sub("", sentence)
    kept, upto = [], 0
    for found in _SAYING.finditer(sentence):
        start = found.start()
        if start < upto or not _by_another(sentence[max(upto, start - _LONGEST) : start], found):
            continue
        kept.append(sentence[upto:start])
        own = _CONTRASTS.search(sentence, found.end())
        upto = own.start() if own else len(sentence)
    return "".join([*kept, sentence[upto:]])


def _by_another(before: str, saying: re.Match[str]) -> bool:
    """Return whether somebody else says something: not "I told Bob that" nor "As Bob says,"."""
    clauses = [clause for clause in _CLAUSE.split(before) if clause.strip()]
    subject = clauses[-1] if clauses else ""
    if _AGREES.match(subject):
        return False
    if saying["others"] or saying["third"]:
        return True
    return bool(subject) and not _FIRST.search(subject)
