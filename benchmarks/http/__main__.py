"""What the server costs beside a bare endpoint that streams the same bytes, and other servers.

    python -m benchmarks.http [STREAM …] [--rounds 3] [--clients 1 100 500] [--no-peers]

Each server is a process of its own, and so are the clients. All servers stream at the same times:
the model pauses before each chunk. A figure is the best of several rounds, in which the servers
take turns; CPU time is that of the server's process. Figures are also written to
build/peers/http.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.http.streams import STREAMS, Stream
from benchmarks.peers.environments import FOLDER, PEERS, install
from scripts.link_package import ROOT

OWN = ("bare", "ours")
MOST = ("requests_per_second",)

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Load:
    """What clients ask for: requests one after another, chunks, and seconds between chunks."""

    clients: int
    requests: int
    chunks: int
    seconds: float

    @property
    def title(self) -> str:
        if self.seconds:
            rate = f"a chunk every {self.seconds * 1000:g} ms"
            return f"{self.clients} clients, {rate}"
        return f"{self.clients} clients, answers of {self.chunks} chunks without a pause"


PACED = {1: Load(1, 1, 400, 0.005), 100: Load(100, 1, 100, 0.05), 500: Load(500, 1, 60, 0.1)}
BURSTS = {1: Load(1, 300, 10, 0.0), 100: Load(100, 6, 10, 0.0), 500: Load(500, 2, 10, 0.0)}


@dataclass(frozen=True, slots=True)
class Server:
    """A process that serves one of the applications."""

    process: int
    port: int

    def measure(self, name: str, load: Load) -> Figures:
        numbers = (self.port, self.process, load.clients, load.chunks, load.seconds, load.requests)
        command = [sys.executable, "-m", "benchmarks.http.load", name, *map(str, numbers)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        return dict(json.loads(done.stdout)) if done.returncode == 0 else {}


@contextmanager
def serving(app: str) -> Iterator[Server]:
    """Start the server of an application, in its environment."""
    python = next((str(peer.python) for peer in PEERS if peer.program == app), sys.executable)
    where = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    where.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [python, "-m", "benchmarks.http.serve", app]
    with subprocess.Popen(command, cwd=ROOT, env=where, stdout=subprocess.PIPE, text=True) as done:
        assert done.stdout is not None
        url = done.stdout.readline()
        if not url:
            raise SystemExit(f"the server {app!r} did not start: see above")
        try:
            yield Server(done.pid, int(url.rpartition(":")[2]))
        finally:
            done.terminate()


def measure(names: list[str], loads: list[Load], rounds: int) -> dict[Load, dict[str, Figures]]:
    found: dict[Load, dict[str, Figures]] = {load: {name: {} for name in names} for load in loads}
    with ExitStack() as stack:
        apps = {STREAMS[name].app for name in names}
        servers = {app: stack.enter_context(serving(app)) for app in sorted(apps)}
        for name in names:  # so that everything is imported
            servers[STREAMS[name].app].measure(name, Load(5, 2, 20, 0.001))
        for number in range(rounds):
            for load in loads:
                turn = number % len(names)
                for name in [*names[turn:], *names[:turn]]:
                    kept = found[load][name]
                    for figure, value in servers[STREAMS[name].app].measure(name, load).items():
                        better = max if figure in MOST else min
                        kept[figure] = better(value, kept.get(figure, value))
            print(f"round {number + 1} of {rounds} measured", file=sys.stderr, flush=True)
    return found


def beside(name: str) -> str:
    """Return the bare endpoint that a stream is compared with."""
    return "bare" if STREAMS[name].marker == STREAMS["bare"].marker else "bare-openai"


def tables(found: dict[Load, dict[str, Figures]]) -> Iterator[str]:
    for load, figures in found.items():
        yield f"\n{load.title}\n"
        unit = "chunk" if load.seconds else "request"
        yield (
            f"| server | CPU us a {unit} | over bare | requests/s | first ms, p50 | p99 "
            "| gap ms, p99 |"
        )
        yield "|---|---:|---:|---:|---:|---:|---:|"
        key = f"cpu_us_per_{unit}"
        for name, values in figures.items():
            if not values:
                yield f"| {STREAMS[name].title} | failed | | | | | |"
                continue
            floor = figures.get(beside(name), {}).get(key)
            ratio = f"{values[key] / floor:.2f}x" if floor else ""
            cells = [STREAMS[name].title, f"{values[key]:,.0f}", ratio]
            cells.append(f"{values['requests_per_second']:,.0f}")
            cells += [
                f"{values[each]:,.1f}" for each in ("first_ms_p50", "first_ms_p99", "gap_ms_p99")
            ]
            yield f"| {' | '.join(cells)} |"


def peers_of(names: list[str]) -> None:
    apps = {STREAMS[name].app for name in names}
    for peer in PEERS:
        if peer.program in apps:
            install(peer)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("streams", nargs="*", metavar="STREAM", help=f"of {', '.join(STREAMS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=[*PACED], choices=[*PACED])
    parser.add_argument("--no-peers", action="store_true", help="install nothing")
    options = parser.parse_args()
    unknown = [name for name in options.streams if name not in STREAMS]
    if unknown:
        parser.error(f"there is no stream {unknown[0]!r}; streams are {', '.join(STREAMS)}")

    def wanted(stream: Stream) -> bool:
        return stream.app in OWN or not options.no_peers

    names = options.streams or [name for name, stream in STREAMS.items() if wanted(stream)]
    peers_of(names)
    loads = [kind[clients] for kind in (PACED, BURSTS) for clients in options.clients]
    found = measure(names, loads, options.rounds)
    FOLDER.mkdir(parents=True, exist_ok=True)
    written = {load.title: figures for load, figures in found.items()}
    (FOLDER / "http.json").write_text(json.dumps(written, indent=1))
    print("\n".join(tables(found)))


if __name__ == "__main__":
    main()
