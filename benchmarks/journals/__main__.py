"""What durability costs: the journals beside LangGraph's checkpointers.

    python -m benchmarks.journals [GROUP …] [--rounds 3] [--quick] [--no-peers]
        [--postgres URL] [--redis URL]

Each figure is the least of several rounds (opening: one); in each round all contenders take turns,
every measurement in a process of its own and in a new file or database. CPU time is that of the process,
without a server. A server that does not answer is left out. The figures are also written to
build/peers/journals.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.journals.contenders import CONTENDERS, LANGGRAPH, Contender
from benchmarks.journals.measure import GROUPS, TINY, Sizes
from benchmarks.journals.places import new_place
from benchmarks.journals.tables import Found, lines, tables_of
from benchmarks.peers.environments import FOLDER, install

ONCE = ("opening",)  # takes a minute for some
SERVERS = {
    "postgres": "postgresql://postgres@127.0.0.1:5432/postgres",
    "redis": "redis://127.0.0.1:6379/0",
}


def answers(storage: str, server: str) -> bool:
    """Return whether a place can be made on a server."""
    try:
        with new_place(storage, server) as place:
            place.written()
    except Exception as error:
        print(f"{storage} is left out: {error}", file=sys.stderr)
        return False
    return True


def measure(
    contenders: Sequence[Contender],
    groups: Sequence[str],
    rounds: int,
    sizes: Sizes,
    servers: dict[str, str],
) -> Found:
    """Return the best figures of each contender."""
    found: Found = {contender: {} for contender in contenders}
    for number in range(rounds):
        for group in groups:
            if number and group in ONCE:
                continue
            offering = [contender for contender in contenders if contender.offers(group)]
            turn = number % len(offering)
            for contender in [*offering[turn:], *offering[:turn]]:
                kept = found[contender]
                server = servers.get(contender.storage, "")
                for name, value in contender.measure(group, sizes, server).items():
                    kept[name] = min(value, kept.get(name, value))
        print(f"round {number + 1} of {rounds} measured", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--no-peers", action="store_true", help="install nothing")
    for storage, url in SERVERS.items():
        parser.add_argument(f"--{storage}", metavar="URL", default=url, help=f"default: {url}")
    options = parser.parse_args()
    unknown = [group for group in options.groups if group not in GROUPS]
    if unknown:
        parser.error(f"there is no group {unknown[0]!r}; groups are {', '.join(GROUPS)}")
    servers = {storage: getattr(options, storage) for storage in SERVERS}
    missing = [storage for storage, server in servers.items() if not answers(storage, server)]
    if not options.no_peers:
        install(LANGGRAPH)
    contenders = [
        contender
        for contender in CONTENDERS
        if contender.storage not in missing
        and not (options.no_peers and contender.program == LANGGRAPH.program)
    ]
    sizes = TINY if options.quick else Sizes()
    print(f"Python {platform.python_version()}, {platform.system()} {platform.release()}")
    found = measure(contenders, options.groups or [*GROUPS], options.rounds, sizes, servers)
    FOLDER.mkdir(parents=True, exist_ok=True)
    written = [{**asdict(contender), **figures} for contender, figures in found.items()]
    (FOLDER / "journals.json").write_text(json.dumps(written, indent=1))
    for table in tables_of(sizes):
        for line in lines(table, found):
            print(line)


if __name__ == "__main__":
    main()
