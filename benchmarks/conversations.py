"""Conversations with questions about them and the messages that answer, from files of two formats.

LoCoMo (snap-research, ``locomo10.json``) and REALTALK (``Chat_*.json``, or one list of them): both
are samples with ``session_1``, ``session_2``, … each a list of turns with a ``dia_id``, and a list
``qa`` of questions whose ``evidence`` names turns. The data are not part of this repository.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D\s*:?\s*(\d+)\s*:\s*(\d+)(?:\s*-\s*(?:D\s*\d+\s*:\s*)?(\d+))?")
_TIMES = ("%I:%M %p on %d %B, %Y", "%d.%m.%Y, %H:%M:%S")


@dataclass(frozen=True)
class Turn:
    id: str
    session: int
    speaker: str
    text: str
    time: datetime | None


@dataclass(frozen=True)
class Question:
    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    name: str
    turns: list[Turn]
    questions: list[Question]


def load(path: Path) -> list[Conversation]:
    """The conversations of a file, or of a folder of ``Chat_*.json`` files."""
    if path.is_dir():
        files = sorted(path.glob("Chat_*.json"), key=lambda file: int(file.stem.split("_")[1]))
        samples = [
            {"sample_id": file.stem, **json.loads(file.read_text("utf-8"))} for file in files
        ]
    else:
        samples = json.loads(path.read_text("utf-8"))
    return [_conversation(sample) for sample in samples]


def _conversation(sample: dict[str, Any]) -> Conversation:
    talk = sample.get("conversation", sample)
    numbers = sorted(int(m[1]) for key in talk if (m := _SESSION.fullmatch(key)))
    turns = [
        _turn(raw, number, talk.get(f"session_{number}_date_time"))
        for number in numbers
        for raw in talk[f"session_{number}"]
    ]
    known = {turn.id for turn in turns}
    asked = [
        Question(str(raw["question"]).strip(), int(raw["category"]), _evidence(raw, known))
        for raw in sample["qa"]
    ]
    return Conversation(sample["sample_id"], turns, [q for q in asked if q.evidence])


def _turn(raw: dict[str, Any], session: int, session_time: str | None) -> Turn:
    text = (raw.get("text", raw.get("clean_text")) or "").strip()
    caption = raw.get("blip_caption") or ""
    if isinstance(caption, list):
        caption = "; ".join(filter(None, caption))
    if caption:
        text = f"{text} [image: {caption.strip()}]".strip()
    time = _time(raw.get("date_time")) or _time(session_time)
    return Turn(raw["dia_id"], session, raw["speaker"].strip(), text, time)


def _time(text: str | None) -> datetime | None:
    for form in _TIMES if text else ():
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _evidence(raw: dict[str, Any], known: set[str]) -> frozenset[str]:
    """Return the IDs of existing turns; ``D8:6; D9:17`` is split, ``D30:05`` normalised."""
    found: set[str] = set()
    for entry in raw.get("evidence") or []:
        for session, first, last in _EVIDENCE.findall(entry):
            turns = range(int(first), int(last or first) + 1)
            found |= {f"D{int(session)}:{turn}" for turn in turns}
        found.add(entry)
    return frozenset(found & known)
