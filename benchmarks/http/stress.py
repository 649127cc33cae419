"""500 clients of one server at once: most read, some leave, some are slow, some stop reading.

    python -m benchmarks.http.stress [--clients 500] [--waves 3]

Prints how long the first chunk and the gaps between chunks took, whether every client got its own
text and all of it, when the runs of those that left had ended, and what memory was left.
The exit code is 1 if a text was not whole or mixed, or a run was not cancelled within a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import resource
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.http.apps.stress import STALL
from benchmarks.http.load import cpu_seconds, nearest
from benchmarks.http.streams import Request, encoded
from scripts.link_package import ROOT

CHUNKS, SECONDS = 100, 0.1
BIG = 65_536  # characters of a chunk to a reader that stops: more than sockets hold
PIECE = re.compile(rb'"text": "<(\w+):(\d+)>')
PATIENCE = 60.0


@dataclass
class Seen:
    """What a client has seen, by the kind of client."""

    kind: str
    marker: str
    first: float = 0.0
    gaps: list[float] = field(default_factory=list)
    pieces: list[tuple[str, int]] = field(default_factory=list)
    finished: bool = False
    left_at: float = 0.0
    session: str = ""


async def connect(port: int, buffer: int | None = None) -> tuple[Any, Any]:
    """Return the streams of a connection, with a small buffer for what it receives if asked."""
    where = socket.socket()
    if buffer is not None:
        where.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    where.setblocking(False)
    await asyncio.get_running_loop().sock_connect(where, ("127.0.0.1", port))
    return await asyncio.open_connection(sock=where, limit=4096 if buffer else 65536)


async def ask(port: int, request: Request) -> Any:
    """Make one request and return the JSON of the answer."""
    reader, writer = await connect(port)
    writer.write(encoded(request, port))
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    body = await reader.readexactly(int(length[1]) if length else 0)
    writer.close()
    return json.loads(body) if body else None


async def client(port: int, seen: Seen, delay: float, chance: random.Random) -> None:
    """Open a session, ask, and behave as ``seen.kind`` says."""
    await asyncio.sleep(delay)
    seen.session = (await ask(port, ("POST", "/sessions", {})))["id"]
    stalls = seen.kind == "stalls"
    reader, writer = await connect(port, 4096 if stalls else None)
    task = f"{seen.marker} {CHUNKS} {SECONDS} {BIG if stalls else 0}"
    start = last = time.monotonic()
    writer.write(encoded(("POST", f"/sessions/{seen.session}/runs", {"task": task}), port))
    leaves_after = chance.randrange(1, CHUNKS // 2)
    tail = b""
    while True:
        if stalls and seen.pieces:
            writer.transport.pause_reading()
            return
        data = await reader.read(512 if seen.kind == "slow" else 65536)
        if not data:
            break
        tail += data
        found = [*PIECE.finditer(tail)]
        if found and seen.kind != "slow":
            now = time.monotonic()
            if seen.pieces:
                seen.gaps.append(now - last)
            else:
                seen.first = now - start
            last = now
        for piece in found:
            seen.pieces.append((piece[1].decode(), int(piece[2])))
        seen.finished = seen.finished or b"event: run_finished" in tail
        if tail.endswith(b"\r\n0\r\n\r\n"):
            break
        tail = tail[found[-1].end() :] if found else tail[-1000:]
        if seen.kind == "leaves" and len(seen.pieces) >= leaves_after:
            break
        if seen.kind == "slow":
            await asyncio.sleep(0.05)
    seen.left_at = time.monotonic()
    writer.transport.abort() if seen.kind == "leaves" else writer.close()


def kinds(clients: int) -> list[str]:
    """Return the kind of each client: of 20, 2 leave, 2 are slow, 1 stops reading."""
    some = {0: "leaves", 5: "slow", 10: "leaves", 15: "slow", 19: "stalls"}
    return [some.get(number % 20, "reads") for number in range(clients)]


def rss_mib(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024**2


async def wave(port: int, process: int, number: int, clients: int) -> dict[str, Any]:
    """Let all clients come, wait until every run has ended, remove the sessions, and report."""
    chance = random.Random(number)
    seen = [Seen(kind, f"w{number}c{k}") for k, kind in enumerate(kinds(clients))]
    cpu = cpu_seconds(process)
    await asyncio.gather(
        *(client(port, each, chance.random() * clients / 200, chance) for each in seen)
    )
    cpu = cpu_seconds(process) - cpu
    peak = rss_mib(process)
    ended: dict[str, tuple[float, bool]] = {}
    give_up = time.monotonic() + PATIENCE
    while len(ended) < len(seen) and time.monotonic() < give_up:
        ended |= (await ask(port, ("GET", "/debug", None)))["ended"]
        await asyncio.sleep(0.2)
    gate = asyncio.Semaphore(50)

    async def remove(session: str) -> None:
        async with gate:
            await ask(port, ("DELETE", f"/sessions/{session}", None))

    await asyncio.gather(*(remove(each.session) for each in seen))
    after = await ask(port, ("GET", "/debug", None))
    return {"cpu": cpu, "peak": peak, **judge(seen, ended), **after, "rss": rss_mib(process)}


def judge(seen: list[Seen], ended: dict[str, tuple[float, bool]]) -> dict[str, Any]:
    """Return what was wrong, and how long things took."""
    whole = [each for each in seen if each.kind in ("reads", "slow")]
    lost = [
        each.marker
        for each in whole
        if [number for _, number in each.pieces] != list(range(CHUNKS)) or not each.finished
    ]
    mixed = [each.marker for each in seen if any(name != each.marker for name, _ in each.pieces)]
    left = [each for each in seen if each.kind == "leaves"]
    late = [ended[each.marker][0] - each.left_at for each in left if each.marker in ended]
    stalled = [each for each in seen if each.kind == "stalls"]
    return {
        "lost": lost,
        "mixed": mixed,
        "unended": [each.marker for each in seen if each.marker not in ended],
        "not_cancelled": [
            each.marker for each in left + stalled if ended.get(each.marker, (0, True))[1]
        ],
        "cancelled_ms": [value * 1e3 for value in late],
        "first_ms": [each.first * 1e3 for each in seen if each.first],
        "gap_ms": [gap * 1e3 for each in seen for gap in each.gaps],
        "chunks": sum(len(each.pieces) for each in seen),
    }


def line(name: str, values: list[float]) -> str:
    figures = (nearest(values, 0.5), nearest(values, 0.99), max(values, default=0.0))
    return f"{name:<32} p50 {figures[0]:8.1f}   p99 {figures[1]:8.1f}   max {figures[2]:8.1f} ms"


def report(number: int, found: dict[str, Any]) -> bool:
    """Print the report of a wave, and return whether all was as it should be."""
    print(f"\nwave {number}: {found['chunks']:,} chunks read, {found['cpu']:.1f} s of server CPU")
    print(line("first chunk", found["first_ms"]))
    print(line(f"gap between chunks (of {SECONDS * 1000:g})", found["gap_ms"]))
    print(line("left, until the run had ended", found["cancelled_ms"]))
    wrong = {name: found[name] for name in ("lost", "mixed", "unended", "not_cancelled")}
    print("   ".join(f"{name.replace('_', ' ')} {len(which)}" for name, which in wrong.items()))
    print(
        f"running {found['running']}   objects {found['objects']:,}   "
        f"RSS {found['rss']:.1f} MiB (during the wave {found['peak']:.1f})"
    )
    for name, which in wrong.items():
        if which:
            print(f"  {name}: {', '.join(which[:10])}")
    slow = max(found["cancelled_ms"], default=0.0) > 1000
    return not slow and not any(wrong.values()) and found["running"] == 0


async def stress(port: int, process: int, clients: int, waves: int) -> bool:
    print(f"{clients} clients; a reader that stops is dropped after {STALL:g} s")
    await wave(port, process, 0, min(clients, 40))  # so that everything is imported
    fine, objects, kinds = True, [], []
    for number in range(1, waves + 1):
        found = await wave(port, process, number, clients)
        objects.append(found["objects"])
        kinds.append(Counter(found["kinds"]))
        fine = report(number, found) and fine
    if waves > 1:
        print(f"\nobjects after the waves: {', '.join(f'{count:,}' for count in objects)}")
        grown = (kinds[-1] - kinds[0]).most_common(5)
        print(f"grown most: {', '.join(f'{name} {count:+,}' for name, count in grown)}")
    return fine


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--waves", type=int, default=3)
    options = parser.parse_args()
    command = [sys.executable, "-m", "benchmarks.http.serve", "stress"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().rpartition(":")[2])
        try:
            fine = asyncio.run(stress(port, server.pid, options.clients, options.waves))
        finally:
            server.terminate()
    raise SystemExit(0 if fine else 1)


if __name__ == "__main__":
    main()
