"""Diagrams of who sent what to whom."""

from __future__ import annotations

import re

from agent_brain.memories import Attachment, Message, flow_diagram
from agent_brain.tools import Action

DIAGRAM = """sequenceDiagram
    participant p0 as system
    participant p1 as assistant
    participant p2 as Ann
    participant p3 as add
    p0->>p1: Be brief
    p2->>p1: Add 1
    p1->>p3: #123;#34;a#34;#58; 1#125;
    p3-->>p1: 2
    p1->>p2: Two
    p2->>p1: image/png
    p1->>p2: ...
"""
LINE = re.compile(r"    (participant p\d+ as|p\d+--?>>p\d+:) ([\w .,!?'()/-]|#\d+;)+")


def test_a_conversation_with_calls() -> None:
    call = Action(name="add", args={"a": 1})
    picture = Attachment(media_type="image/png", url="https://example.com/a.png")
    said = [
        Message.system("Be brief"),
        Message.user("Add 1", name="Ann"),
        Message.assistant("", call),
        Message.tool("2", call),
        Message.assistant("Two"),
        Message.user("", name="Ann", attachments=picture),
        Message.assistant(""),
    ]
    assert flow_diagram(said) == DIAGRAM


def test_agents_that_send_to_some_or_to_all() -> None:
    said = [
        Message.user("Write"),
        Message.assistant("Draft", sent_from="writer", send_to=["critic", "editor"]),
        Message.assistant("Good", sent_from="critic"),
    ]
    arrows = [line.strip() for line in flow_diagram(said).splitlines()[6:]]
    assert arrows == ["p0->>p1: Write", "p2->>p3: Draft", "p2->>p4: Draft", "p3->>p1: Good"]


def test_names_and_texts_cannot_be_read_as_mermaid() -> None:
    said = [
        Message.user("x; end\nnote over p0: 1 # <b>", sent_from="Ann->>Bob: hi\nloop"),
        Message.user("y" * 99, sent_from="end", send_to="%%{init}%%"),
        Message.user("汉字 ok", sent_from="汉字"),
    ]
    head, *lines = flow_diagram(said, longest=40).splitlines()
    assert head == "sequenceDiagram"
    assert len(lines) == 5 + 3
    for line in lines:
        assert LINE.fullmatch(line), line
        assert not re.search(r"(?i)\bend\b", line)
    assert lines[-2].endswith("y" * 39 + "#8230;")
    assert lines[-1].endswith("汉字 ok")
    assert flow_diagram([]) == "sequenceDiagram\n"
