"""Events of a session as server-sent events and as newline-delimited JSON."""

from __future__ import annotations

from agent_brain.serving.event_json import event_json
from agent_brain.serving.event_log import Gap, SessionEvent

SSE = "text/event-stream"
NDJSON = "application/x-ndjson"
KEEPALIVE = {SSE: b": keepalive\n\n", NDJSON: b"\n"}


def sse_frame(item: SessionEvent | Gap) -> bytes:
    """Return ``item`` as a server-sent event: its ID, its kind and its JSON.

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
    """
    if isinstance(item, Gap):
        return b"id: %b\nevent: gap\ndata: {}\n\n" % item.id.encode()
    kind = item.event.kind.encode()
    return b"id: %b-%d\nevent: %b\ndata: %b\n\n" % (
        item.log.encode(),
        item.number,
        kind,
        event_json(item.event),
    )


def ndjson_line(item: SessionEvent | Gap) -> bytes:
    """Return ``item`` as one line of JSON: its ID and the event.

    Source: https://github.com/ndjson/ndjson-spec
    """
    if isinstance(item, Gap):
        return b'{"id": "%b", "event": {"kind": "gap"}}\n' % item.id.encode()
    return b'{"id": "%b-%d", "event": %b}\n' % (
        item.log.encode(),
        item.number,
        event_json(item.event),
    )


FRAMES = {SSE: sse_frame, NDJSON: ndjson_line}
