"""Checks a UI message stream against what readers of the AI SDK require."""

from __future__ import annotations

from typing import Any

STARTS = {"text-start": "text", "reasoning-start": "reasoning"}
ENDS = {"text-end": "text", "reasoning-end": "reasoning"}
LAST = ("finish", "abort")


def check(chunks: list[dict[str, Any]], *, known: tuple[str, ...] = ()) -> None:
    """Raise AssertionError if the stream breaks a rule."""
    assert chunks[0]["type"] == "start"
    assert [chunk["type"] in LAST for chunk in chunks].index(True) == len(chunks) - 1
    live: dict[str, set[str]] = {"text": set(), "reasoning": set()}
    used: set[str] = set()
    calls, begun = set(known), set[str]()
    in_step = False
    for chunk in chunks:
        kind = chunk["type"]
        if kind in STARTS:
            assert in_step
            assert chunk["id"] not in used
            used.add(chunk["id"])
            live[STARTS[kind]].add(chunk["id"])
        elif kind in ENDS:
            live[ENDS[kind]].remove(chunk["id"])
        elif kind in ("text-delta", "reasoning-delta"):
            assert chunk["id"] in live[kind.removesuffix("-delta")]
        elif kind == "tool-input-start":
            assert in_step
            begun.add(chunk["toolCallId"])
        elif kind == "tool-input-delta":
            assert chunk["toolCallId"] in begun
        elif kind == "tool-input-available":
            assert chunk["toolCallId"] in begun
            calls.add(chunk["toolCallId"])
        elif kind == "tool-output-error":  # also of a call whose arguments have not all come
            assert chunk["toolCallId"] in calls | begun
        elif kind.startswith(("tool-output", "tool-approval")):
            assert chunk["toolCallId"] in calls
        elif kind == "start-step":
            assert not in_step
            in_step = True
        elif kind == "finish-step":
            assert in_step
            in_step = False
    assert not in_step
    assert not any(live.values())
