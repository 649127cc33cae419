"""Arithmetic in words and symbols: "17 times 23 plus 4" becomes an expression."""

from __future__ import annotations

import re

from agent_brain.demo.numbers import words_to_digits
from agent_brain.tools.builtin.expression import ExpressionError, Node, Number
from agent_brain.tools.builtin.parse import MAX_LENGTH, parse

_FILLER = re.compile(
    r"^(?:(?:and|then|now|next|so|first|finally|just|if (?:i|you|we)|"
    r"what(?:'s| is| are| do you get if you| happens if you| would be| does| do)?|"
    r"calculate|compute|evaluate|work out|figure out|find|solve|"
    r"how much(?: is| are| does)?|how many (?:is|are)|the (?:result|value|answer) of|result of|"
    r"value of|can you|could you|do)\b[\s,:]*)+",
    re.I,
)
_TAIL = re.compile(
    r"(?:[\s,.?!]*\b(?:equals?|equal to|make|give|is|are|in total|altogether|now|"
    r"what (?:do|would|will) (?:i|you|we) (?:get|have)|what is (?:it|that)))?[\s=?.,]*$"
)
_EARLIER = re.compile(
    r"\b(?:it|that|this|(?:the|that|this) (?:previous |last )?(?:result|answer|total|sum|product|"
    r"number|value|outcome)(?! of\b))\b"
)
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}\W*")
_N = r"-?(?:\d+(?:\.\d+)?|@)"
_OPERAND = r"(.+?)"

_LISTS = {"sum": "+", "total": "+", "product": "*", "average": "+", "mean": "+"}
_LIST = re.compile(
    rf"(?:the )?(sum|total|product|average|mean) of ({_N}(?:\s*(?:,\s*and|,|and)\s*{_N})+)"
)
_PAIRS = [  # whole instructions; \1 and \2 are expressions of their own
    (rf"add {_OPERAND} (?:to|onto) {_OPERAND}", r"(\2) + (\1)"),
    (rf"add (?:up )?({_N}(?:\s*(?:,\s*and|,|and)\s*{_N})+)(?: together)?", "SUM"),
    (rf"({_N}(?:\s*(?:,\s*and|,|and)\s*{_N})+) (?:add|sum) up to", "SUM"),
    (rf"(?:subtract|take(?: away)?|deduct) {_OPERAND} (?:away )?from {_OPERAND}", r"(\2) - (\1)"),
    (rf"multiply {_OPERAND} (?:by|and|with) {_OPERAND}", r"(\1) * (\2)"),
    (rf"divide {_OPERAND} (?:by|and) {_OPERAND}", r"(\1) / (\2)"),
    (rf"raise {_OPERAND} to (?:the power (?:of )?)?{_OPERAND}", r"(\1) ** (\2)"),
    (rf"increase {_OPERAND} by {_OPERAND} ?%", r"(\1) * (1 + (\2) / 100)"),
    (rf"(?:decrease|reduce) {_OPERAND} by {_OPERAND} ?%", r"(\1) * (1 - (\2) / 100)"),
    (rf"increase {_OPERAND} by {_OPERAND}", r"(\1) + (\2)"),
    (rf"(?:decrease|reduce) {_OPERAND} by {_OPERAND}", r"(\1) - (\2)"),
    (rf"({_N}) ?% off (?:of )?{_OPERAND}", r"(\2) * (1 - \1 / 100)"),
    (rf"(?:the )?difference (?:between|of) {_OPERAND} and {_OPERAND}", "DIFFERENCE"),
    (rf"(?:the )?(?:quotient|ratio) (?:between|of) {_OPERAND} and {_OPERAND}", r"(\1) / (\2)"),
    (rf"multiply(?: it)? by {_OPERAND}", r"@ * (\1)"),
    (rf"divide(?: it)? by {_OPERAND}", r"@ / (\1)"),
    (rf"times {_OPERAND}", r"@ * (\1)"),
    (rf"(?:plus|add) {_OPERAND}", r"@ + (\1)"),
    (rf"the square of {_OPERAND}", r"(\1) ** 2"),
    (rf"(?:subtract|take away|deduct) {_OPERAND}", r"@ - (\1)"),
    (rf"(?:double|triple|halve|square|cube) ({_N})", "SINGLE"),
    (r"take (?:the )?(?:square root|root)", "sqrt @"),
]
_SINGLES = {"double": "* 2", "triple": "* 3", "halve": "/ 2", "square": "** 2", "cube": "** 3"}
_WORDS = [
    (r"\b(?:percent|per cent)\b", "%"),
    (r"%\s+of\b", "/ 100 *"),
    (r"\b(?:the )?cube root of\b", "cbrt"),
    (r"\b(?:the )?(?:square root|root|sqrt) of\b", "sqrt"),
    (r"\b(?:the )?factorial of\b", "factorial"),
    (r"\b(?:the )?absolute value of\b", "abs"),
    (r"\b(?:a )?half (?:of )?(?=[\d(@])", "0.5 * "),
    (r"\b(?:a|one|1) (?:quarter|fourth) of\b", "0.25 *"),
    (r"\b(?:a|one|1) third of\b", "1 / 3 *"),
    (r"\b(?:twice|double)\b", "2 *"),
    (r"\btriple\b", "3 *"),
    (r"(?<=\S) factorial\b(?!\s*[\d(@])", " !"),
    (r"\bsquared\b", "** 2"),
    (r"\bcubed\b", "** 3"),
    (r"\b(?:raised )?to the (?:power (?:of )?|(?=\d+(?:st|nd|rd|th)\b))", "** "),
    (r"\braised to\b", "**"),
    (r"(?<=\d)(?:st|nd|rd|th)(?: power)?\b", ""),
    (r"\bmultiplied (?:by|with)\b|\btimes\b", "*"),
    (r"(?<=[\d)@])\s*x\s*(?=[\d(@-])", " * "),
    (r"\bdivided by\b|\bover\b", "/"),
    (r"\bmod(?:ulo|ulus)?\b", "mod"),
    (r"\bincreased by\b|\badded to\b|\bplus\b", "+"),
    (r"\bdecreased by\b|\bminus\b|\bless\b", "-"),
    (r"\bnegative\b", "-"),
]
_START = re.compile(rf"(?:take|start (?:with|from|at)|begin with) ({_N})")


def read_arithmetic(text: str) -> Node | None:
    """The expression that ``text`` asks to work out, or None if it asks for something else."""
    if len(text) > MAX_LENGTH or _DATE.fullmatch(text.strip()):
        return None
    words = _normal(text)
    started = _START.fullmatch(words)
    if started:
        return parse(started[1])
    try:
        node = parse(_in_symbols(words))
    except ExpressionError:
        return None
    return None if isinstance(node, Number) or words in ("@", "") else node


def _normal(text: str) -> str:
    words = words_to_digits(text.lower().replace("\u2019", "'").strip())
    words = _TAIL.sub("", _FILLER.sub("", words))
    words = re.sub(r"\b(?:percent|per cent)\b", "%", words)
    return re.sub(r"^the (?=\d|\()", "", _EARLIER.sub("@", words)).strip()


def _in_symbols(words: str) -> str:
    words = _LIST.sub(_list_in_symbols, words)
    for pattern, symbols in _PAIRS:
        match = re.fullmatch(pattern, words)
        if match:
            words = _pair_in_symbols(match, symbols)
            break
    for pattern, symbol in _WORDS:
        words = re.sub(pattern, symbol, words)
    return words


def _pair_in_symbols(match: re.Match[str], symbols: str) -> str:
    if symbols == "SUM":
        return " + ".join(re.findall(_N, match[1]))
    if symbols == "DIFFERENCE":  # people mean the distance, so the larger number comes first
        numbers = sorted(match.groups(), key=_literal, reverse=True)
        return "({}) - ({})".format(*numbers)
    if symbols == "SINGLE":
        return f"{match[1]} {_SINGLES[match[0].split()[0]]}"
    return match.expand(symbols)


def _list_in_symbols(match: re.Match[str]) -> str:
    numbers = re.findall(_N, match[2])
    joined = f"({f' {_LISTS[match[1]]} '.join(numbers)})"
    return f"{joined} / {len(numbers)}" if match[1] in ("average", "mean") else joined


def _literal(text: str) -> float:
    return float(text) if re.fullmatch(r"-?\d+(?:\.\d+)?", text) else 0.0
