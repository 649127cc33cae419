"""A question as the people whom it names would put it about themselves.

People speak of themselves in the first person. The vector of "When did Ann join her group?" is
therefore closest to messages that *address* Ann, written by everybody else; the vector of "When did
I join my group?" is closest to what Ann said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_brain.memories.recall.participants import Mention

_POSSESSIVE = re.compile(r"['’]s\b", re.I)
_SPACES = re.compile(r"\s+")
_PRONOUNS = (
    (re.compile(r"\b(?:his|her|their)\b(?=\s+\w)"), "my"),
    (re.compile(r"\b(?:he|she|they)\b"), "I"),
    (re.compile(r"\b(?:himself|herself|themselves)\b"), "myself"),
)
_VERBS = {"does": "do", "has": "have", "is": "am"}
_THIRD = "|".join(_VERBS)
_AGREEMENT = re.compile(rf"\b(?:({_THIRD}) I\b|I ({_THIRD})\b)", re.I)


def without_names(question: str, mentions: Sequence[Mention]) -> str:
    """``question`` with the names taken out."""
    return _replace(question, mentions, "", "") if mentions else question


def in_first_person(question: str, mentions: Sequence[Mention]) -> str:
    """``question`` with the people it names speaking for themselves; as it is if it names none.

    Third-person pronouns are taken for the named person where there is only one.
    """
    if not mentions:
        return question
    text = _replace(question, mentions, "my", "I")
    if len({mention.people for mention in mentions}) == 1:
        for pronoun, own in _PRONOUNS:
            text = pronoun.sub(own, text)
    return _AGREEMENT.sub(_agree, text)


def _agree(found: re.Match[str]) -> str:
    verb = found[1] or found[2]
    own = _VERBS[verb.lower()]
    own = own.capitalize() if verb[0].isupper() else own
    return f"{own} I" if found[1] else f"I {own}"


def _replace(text: str, mentions: Sequence[Mention], whose: str, who: str) -> str:
    out, done = [], 0
    for mention in mentions:
        possessive = _POSSESSIVE.match(text, mention.end)
        out += [text[done : mention.start], whose if possessive else who]
        done = possessive.end() if possessive else mention.end
    return _SPACES.sub(" ", "".join([*out, text[done:]])).strip()
