"""Arithmetic in words: "17 times 23 plus 4" becomes an expression for the calculator."""

from __future__ import annotations

import re

from agent_brain.tools.builtin.arithmetic import ExpressionError, evaluate

_LEAD_IN = re.compile(
    r"^(?:(?:and|then|now|so|please|what(?:'s| is| are)?|how much (?:is|are)|calculate|compute|"
    r"work out|tell me|the (?:result|value) of|can you|could you)\b[\s,:]*)+"
)
_EARLIER = re.compile(r"\b(?:it|that|this|the (?:result|answer|total))\b(?! of)")
_NUMBER = r"-?\d+(?:\.\d+)?"
_RULES = [
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (r"^add (.+) (?:and|to) (.+)$", r"(\1) + (\2)"),
    (r"^subtract (.+) from (.+)$", r"(\2) - (\1)"),
    (r"^multiply (.+) (?:by|with|and) (.+)$", r"(\1) * (\2)"),
    (r"^divide (.+) by (.+)$", r"(\1) / (\2)"),
    (r" ?(?:percent|%) of\b", " / 100 *"),
    (r"\b(?:the )?square root of (\S+)", r"sqrt(\1)"),
    (r"\bsquared\b", "** 2"),
    (r"\bto the power of\b", "**"),
    (r"\b(?:multiplied by|times)\b|(?<=\d) x (?=\d)", "*"),
    (r"\bdivided by\b", "/"),
    (r"\bplus\b", "+"),
    (r"\bminus\b", "-"),
    (rf"(?<!sqrt)\(({_NUMBER})\)", r"\1"),
]


def read_sum(text: str, earlier: str = "") -> str | None:
    """The expression that ``text`` asks for, or None if it asks for something else.

    Args:
        text: A question.
        earlier: What "it" and "that" mean.
    """
    said = _LEAD_IN.sub("", text.strip().lower()).strip(" ?!.=")
    if _EARLIER.search(said):
        if not re.fullmatch(_NUMBER, earlier):
            return None
        said = _EARLIER.sub(earlier, said)
    for pattern, symbols in _RULES:
        said = re.sub(pattern, symbols, said)
    if re.fullmatch(rf"[\d-]+|{_NUMBER}|pi|e|", said):  # a number, a date
        return None
    try:
        evaluate(said)
    except ExpressionError as error:
        return said if "zero" in str(error) else None
    return said
