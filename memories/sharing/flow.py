"""A diagram of who sent what to whom."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agent_brain.common.text import cut_line, to_compact_json
from agent_brain.memories.message import Message, Role

ALL = "all"  # the receiver of what is to everybody
_UNSAFE = re.compile(r"[^\w .,!?'()/-]|\bend\b", re.IGNORECASE)  # Mermaid may read it as its own


def flow_diagram(messages: Iterable[Message], *, longest: int = 60) -> str:
    """Return a ``sequenceDiagram`` of Mermaid: who sent what to whom, in order.

    The sender is ``sent_from``, else ``name``, else the role. The receivers are ``send_to``; with
    none, what is said is to all if some message has a sender or receivers, else it is between the
    user and the assistant. A call is to its tool, and the result to who has called::

        print(flow_diagram(await memory.messages()))

    Args:
        messages: The messages, in order.
        longest: How many characters of each text are shown.
    """
    arrows = [*_arrows(list(messages))]
    names = dict.fromkeys(name for sender, _, receiver, _ in arrows for name in (sender, receiver))
    ids = {name: f"p{number}" for number, name in enumerate(names)}
    lines = [
        f"    participant {ids[name]} as {_escaped(cut_line(name, longest))}" for name in names
    ]
    for sender, arrow, receiver, text in arrows:
        said = _escaped(cut_line(text, longest)) or "..."
        lines.append(f"    {ids[sender]}{arrow}{ids[receiver]}: {said}")
    return "\n".join(["sequenceDiagram", *lines]) + "\n"


def _arrows(messages: list[Message]) -> Iterator[tuple[str, str, str, str]]:
    """Yield senders, arrows, receivers and texts."""
    many = any(message.sent_from or message.send_to for message in messages)
    asked: dict[str, str] = {}  # who made a call
    user, agent = Role.USER.value, Role.ASSISTANT.value
    for message in messages:
        sender = message.sent_from or message.name or message.role.value
        text = message.content or ", ".join(a.name or a.media_type for a in message.attachments)
        if message.role is Role.TOOL:
            yield sender, "-->>", asked.get(message.tool_call_id or "", agent), text
            continue
        if message.role is Role.USER:
            user = sender
        elif message.role is Role.ASSISTANT:
            agent = sender
        other = ALL if many else user if message.role is Role.ASSISTANT else agent
        if text or not message.tool_calls:
            for receiver in message.send_to or (other,):
                yield sender, "->>", receiver, text
        for call in message.tool_calls:
            asked[call.id] = sender
            yield sender, "->>", call.name, to_compact_json(call.args)


def _escaped(text: str) -> str:
    """Return ``text`` with codes of characters that Mermaid reads as its own."""
    return _UNSAFE.sub(lambda found: "".join(f"#{ord(c)};" for c in found[0]), text)
