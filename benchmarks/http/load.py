"""Clients of a server, in a process of their own: print what they saw as JSON.

    python -m benchmarks.http.load STREAM PORT PID CLIENTS CHUNKS SECONDS REQUESTS

Each client makes REQUESTS requests on one connection, one after another, whose answers are of
CHUNKS chunks with SECONDS between them. PID is the server, whose CPU time is read.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from benchmarks.http.pace import task
from benchmarks.http.streams import STREAMS, Request, Stream, encoded

APART = 0.005  # seconds between the first requests of two clients of a paced stream


def cpu_seconds(process: int) -> float:
    """Return the CPU time of all threads of a process, to the nanosecond."""
    files = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


def nearest(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


class Client:
    """One client, on one connection."""

    def __init__(self, stream: Stream, port: int) -> None:
        self.stream = stream
        self.port = port
        self.id = ""
        self.firsts: list[float] = []
        self.gaps: list[float] = []
        self.chunks = 0

    async def connect(self, number: int) -> None:
        self.id = f"client{number}"
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        if self.stream.once is not None:
            await self.name(self.stream.once)

    async def name(self, request: Request) -> None:
        """Make a request whose answer has the ID that the next one needs."""
        self.writer.write(encoded(request, self.port))
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head[:20] or b" 201 " in head[:20], head
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        body = await self.reader.readexactly(length)
        self.id = json.loads(body)[self.stream.id]

    async def read(self, said: str) -> None:
        """Make a request, and read the stream that answers it."""
        marker = self.stream.marker
        start = last = time.perf_counter()
        if self.stream.before is not None:
            await self.name(self.stream.before(said))
        self.writer.write(encoded(self.stream.request(said, self.id), self.port))
        tail, begun = b"", False
        while not tail.endswith(b"\r\n0\r\n\r\n"):
            data = await self.reader.read(65536)
            if not data:
                raise SystemExit(f"the server broke off: {tail!r}")
            tail += data
            found = tail.count(marker)
            if found:
                now = time.perf_counter()
                (self.gaps if begun else self.firsts).append(now - (last if begun else start))
                last, begun = now, True
                self.chunks += found
                tail = tail[tail.rfind(marker) + len(marker) :]
            tail = tail[-8192:]

    async def requests(self, said: str, count: int, delay: float) -> None:
        await asyncio.sleep(delay)
        for _ in range(count):
            await self.read(said)


async def load(
    stream: Stream, port: int, process: int, clients: int, said: str, requests: int
) -> dict[str, float]:
    several = [Client(stream, port) for _ in range(clients)]
    for start in range(0, clients, 50):
        batch = enumerate(several[start : start + 50], start)
        await asyncio.gather(*(client.connect(number) for number, client in batch))
    paced = float(said.split()[1]) > 0
    apart = APART if paced else 0.0
    cpu, wall = cpu_seconds(process), time.perf_counter()
    await asyncio.gather(
        *(client.requests(said, requests, apart * k) for k, client in enumerate(several))
    )
    cpu, wall = cpu_seconds(process) - cpu, time.perf_counter() - wall
    chunks = sum(client.chunks for client in several)
    wanted = clients * requests * int(said.split(maxsplit=1)[0])
    if chunks != wanted:
        raise SystemExit(f"{stream.title}: {chunks} chunks came, not {wanted}")
    firsts = [first * 1e3 for client in several for first in client.firsts]
    gaps = [gap * 1e3 for client in several for gap in client.gaps]
    for client in several:
        client.writer.close()
    return {
        "cpu_us_per_chunk": cpu / chunks * 1e6,
        "cpu_us_per_request": cpu / (clients * requests) * 1e6,
        "requests_per_second": clients * requests / wall,
        "first_ms_p50": nearest(firsts, 0.5),
        "first_ms_p99": nearest(firsts, 0.99),
        "gap_ms_p50": nearest(gaps, 0.5),
        "gap_ms_p99": nearest(gaps, 0.99),
    }


def main() -> None:
    name, *numbers, chunks, seconds, requests = sys.argv[1:]
    port, process, clients = map(int, numbers)
    said = task(int(chunks), float(seconds))
    done = load(STREAMS[name], port, process, clients, said, int(requests))
    print(json.dumps(asyncio.run(done)))


if __name__ == "__main__":
    main()
