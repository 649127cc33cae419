"""What the rule-based model replies to each request of the built-in nets: a table of rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pydantic import TypeAdapter

from agent_brain.demo.filling import Filler, resolve
from agent_brain.experiments.rule_based.sight import (
    REMARK,
    Sight,
    in_order,
    questions_in,
    statements_in,
)
from agent_brain.experiments.rule_based.solving import (
    UNKNOWN,
    Answer,
    Data,
    Move,
    failures,
    known_answer,
    solve,
    steps_to,
)
from agent_brain.nets.library.voting import majority
from agent_brain.states.output_types import OutputTool
from agent_brain.tools.action import Action

_SUBJECT = re.compile(r"\b(?:for|about) (?:the )?([^.,:?!]+)[.,:?!]", re.I)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def fill(sight: Sight, schema: Mapping[str, Any]) -> Any:
    """Return data that fits the schema: what is known; where nothing is, a value that says so."""
    match = _SUBJECT.search(sight.question)
    filler = Filler(schema, sight.question, [], "unknown", 0.0, ())
    fields = resolve(schema, schema).get("properties", {})
    values = {}
    for name, part in fields.items():
        found = _known(sight, name.replace("_", " "), match[1] if match else "")
        if not found and len(fields) == 1:  # a number, say, is asked for in a form of one field
            found = known_answer(sight).value
        values[name] = _read(found, resolve(part, schema), filler)
    return values


def _known(sight: Sight, name: str, subject: str) -> str:
    """Return what is known about a field of a form; empty if nothing is."""
    asked = [parts for parts in questions_in(sight.question) if parts[0].casefold() == name]
    chains = [f"the {' of '.join(parts)}" for parts in asked] or [f"the {name} of {subject}"]
    return known_answer(sight, f"Find {chains[0]}.").value


def _read(text: str, part: Mapping[str, Any], filler: Filler) -> Any:
    """Return a text as data of a type."""
    numbers = _NUMBER.findall(text)
    match part.get("type"):
        case "string" if text:
            return text
        case "integer" if numbers:
            return int(float(numbers[-1]))
        case "number" if numbers:
            return float(numbers[-1])
        case "boolean" if text:
            return text.casefold() in ("yes", "true")
        case "array" if text:
            items = resolve(part.get("items", {}), filler.root)
            return [_read(item, items, filler) for item in re.split(r",? and |, ", text)]
        case _ if text in part.get("enum", ()):
            return text
    return filler.fill(part)


Reply = Callable[[Sight, Mapping[str, str]], Move]

_CLOSING_LINE = "The answer is"
_LONG = 3  # steps from which on a plan is worth its calls
_NUMBERED = re.compile(r"^Number \d+:\n", re.MULTILINE)
_ENDING = re.compile(r"\balways end your answers with the word (\w+)", re.I)
_USER_LINE = re.compile(r"^(m\d+) \[[\d-]+\] user: (.*(?:\n(?!m\d+ \[).*)*)", re.MULTILINE)
_LISTED = re.compile(r"^- ([^\n:]+): ([^\n]*)$", re.MULTILINE)
_STEP = re.compile(r"^\d+\. ", re.MULTILINE)


def reply_to(sight: Sight) -> Move:
    """Return the reply to what is shown."""
    request = sight.request
    if request is not None and request.kind in REPLIES:
        return REPLIES[request.kind](sight, request.fields)
    if sight.output_type is not None:
        return Data(fill(sight, TypeAdapter(sight.output_type).json_schema()))
    outputs = [tool for tool in sight.tools if isinstance(tool, OutputTool)]
    if outputs:
        others = [tool for tool in sight.tools if not isinstance(tool, OutputTool)]
        solved = solve(Sight(sight.messages, others))
        if not isinstance(solved, Answer):
            return solved
        first = outputs[0]
        return Action(name=first.name, args=fill(sight, first.input_schema))
    solved = solve(sight)
    if not isinstance(solved, Answer):
        return solved
    text = solved.text  # with the ending that the prompt or the user asks for
    if solved.value and _CLOSING_LINE in sight.system:
        text += f"\n{_CLOSING_LINE} {solved.value}"
    if asked := [found[1] for said in sight.said for found in _ENDING.finditer(said)]:
        text += f" {asked[-1]}."
    return replace(solved, text=text)


def _extract(sight: Sight, fields: Mapping[str, str]) -> Move:
    """Return what the user says in a conversation, for what is known about the user."""
    found = []
    for number, line in _USER_LINE.findall(fields["messages"]):
        said = in_order(line)
        told = [{"text": text, "slot": slot} for text, slot, _ in statements_in(said)]
        told += [{"text": end[0], "kind": "instruction"} for end in _ENDING.finditer(said)]
        found += [{**fact, "message": number, "quote": fact["text"]} for fact in told]
    return Answer(json.dumps({"facts": found}))


def _plan(sight: Sight, fields: Mapping[str, str]) -> Move:
    """Return the steps whose results neither tools nor people have told yet."""
    steps = [
        step
        for step in steps_to(sight.goal)
        if not ("Find" in step and known_answer(sight, step).value)
    ]
    return Data({"steps": steps[: int(fields["most"])]})


def _judge_answer(sight: Sight, fields: Mapping[str, str]) -> Move:
    """Compare an answer with what is known."""
    own, given = known_answer(sight), fields["answer"]
    if UNKNOWN in given:
        return _evaluation("It does not answer the question")
    wrong = own.value and not _says(given, own.value)
    return _evaluation("It is not what the results say" if wrong else "")


def _judge_step(sight: Sight, fields: Mapping[str, str]) -> Move:
    return _evaluation("It gave no result" if UNKNOWN in fields["answer"] else "")


def _evaluation(problem: str) -> Data:
    return Data({"passed": not problem, "score": float(not problem), "feedback": problem})


def _judge_last_step(sight: Sight, fields: Mapping[str, str]) -> Move:
    failed = failures(sight)
    remark = f"{REMARK}the tool {' and '.join(failed)} failed." if failed else ""
    return Data({"on_track": not failed, "remark": remark})


def _reflect(sight: Sight, fields: Mapping[str, str]) -> Move:
    return Answer("I will take the steps one by one and use the results as they are.")


def _choose(sight: Sight, fields: Mapping[str, str]) -> Move:
    """Choose the answer that says what is known, or the one that most give."""
    options = [text.strip() for text in _NUMBERED.split(fields["options"])[1:]]
    own = known_answer(sight).value
    right = [place for place, text in enumerate(options, 1) if own and _says(text, own)]
    best = right[0] if right else options.index(majority(options)) + 1
    others = [number for number in range(1, len(options) + 1) if number != best]
    return Data({"number": best}, tuple({"number": number} for number in others))


def _continue(sight: Sight, fields: Mapping[str, str]) -> Move:
    """Propose what could come next: the next steps to the answer, with their results."""
    path, count = _path(fields["path"]), int(fields.get("count", "1"))
    said = _thoughts(sight)
    return Data({"thoughts": said[len(path) : len(path) + count] or said[-1:]})


def _judge_path(sight: Sight, fields: Mapping[str, str]) -> Move:
    path = _path(fields["path"])
    said = _thoughts(sight)
    right = [thought in said and UNKNOWN not in thought for thought in path]
    solved = all(right) and path[-1:] == said[-1:]
    return Data({"score": 1.0 if solved else 0.5 if all(right) else 0.1, "solved": solved})


def _thoughts(sight: Sight) -> list[str]:
    """Return the steps to the answer with their results, the answer last."""
    steps = [known_answer(sight, step).text for step in steps_to(sight.goal)]
    return [*dict.fromkeys([*steps, known_answer(sight).text])]


def _path(written: str) -> list[str]:
    return [text.strip() for text in _STEP.split(written)[1:]]


def _generate(sight: Sight, fields: Mapping[str, str]) -> Move:
    """Give as many answers as are asked for: one that is known, and how far one gets without."""
    said = _thoughts(sight)[::-1]
    said += [f"{UNKNOWN}; this is draft {number}." for number in range(len(said) + 1, 9)]
    return Data({"thoughts": said[: int(fields.get("count") or 1)]})


def _rate(sight: Sight, fields: Mapping[str, str]) -> Move:
    own = known_answer(sight)
    return Data({"score": 1.0 if _says(fields["ideas"], own.value or own.text) else 0.2})


def _combine(sight: Sight, fields: Mapping[str, str]) -> Move:
    """Return the best of several thoughts: the one that says what is known."""
    ideas = [idea for idea in fields["ideas"].split("\n\n") if idea.strip()]
    own = known_answer(sight)
    said = [idea.strip() for idea in ideas if _says(idea, own.value or own.text)]
    return Data({"thought": said[0] if said else own.text})


def _route(sight: Sight, fields: Mapping[str, str]) -> Move:
    """Choose the net for many steps if there are many, otherwise the first."""
    routes = _LISTED.findall(sight.system)
    many = [name for name, what in routes if re.search(r"\bmany\b|\bplan\b|\blong", what)]
    few = [name for name, _ in routes if name not in many]
    long = len(steps_to(sight.goal)) > _LONG
    best, *others = dict.fromkeys([*(many if long else few), *few, *many])
    return Data({"name": best}, tuple({"name": other} for other in others))


def _says(text: str, value: str) -> bool:
    """Return whether a text says a value."""
    plain = text.replace(",", "")
    if re.fullmatch(r"-?\d+(?:/\d+)?", value):
        return Fraction(value) in [*map(Fraction, re.findall(r"-?\d+(?:/[1-9]\d*)?", plain))]
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.I) is not None


REPLIES: Mapping[str, Reply] = {
    "extract": _extract,
    "plan": _plan,
    "plan again": _plan,
    "judge answer": _judge_answer,
    "judge step": _judge_step,
    "judge last step": _judge_last_step,
    "reflect": _reflect,
    "choose answer": _choose,
    "choose path": _choose,
    "continue path": _continue,
    "next thought": _continue,
    "judge path": _judge_path,
    "generate": _generate,
    "rate": _rate,
    "aggregate": _combine,
    "refine": _combine,
    "route": _route,
}
"""The replies by the kind of request; any other message is a question, or a form to fill in."""
