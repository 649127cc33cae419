"""Fetch public task sets that are not shipped, and make tasks of those that are plain questions.

    python -m scripts.fetch_task_sets [NAME …] [--folder task_sets] [--mirror FROM=TO]

Without names it lists them. Each file is checked by its SHA-256, and kept if it is there already.
Of GSM8K and HotpotQA it also writes ``NAME/tasks.jsonl``, which ``load_tasks`` reads. What you do
with the data is between you and its licence, which is printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from agent_brain.experiments.task_sets.published import SOURCE, read_answer

RAW = "https://raw.githubusercontent.com"
GSM8K = f"{RAW}/openai/grade-school-math/3101c7d5072418e28b9008a6636bde82a006892c"
TAU2 = f"{RAW}/sierra-research/tau2-bench/a2c024725189473d2d7cea3a5cfdbcc67478e41f"
BFCL = f"{RAW}/ShishirPatil/gorilla/6ea57973c7a6097fd7c5915698c54c17c5b1b6c8"
LARGEST = 200_000_000  # bytes of a file; none has as many
HOTPOTQA = "http://curtis.ml.cmu.edu/datasets/hotpot"

Convert = Callable[[Path], Iterator[dict[str, Any]]]


class FetchError(Exception):
    """A file cannot be fetched, or is not what it should be."""


@dataclass(frozen=True)
class TaskSet:
    """A task set to fetch.

    Attributes:
        about: What it is, with its source.
        licence: Under which terms it is published.
        base: The address of the folder with its files.
        files: The SHA-256 of each file, by its path below ``base``.
        convert: Yields tasks from the folder of the files, in the form that ``load_tasks`` reads;
            None if its tasks need more than text: its own tools and checks.
    """

    about: str
    licence: str
    base: str
    files: Mapping[str, str]
    convert: Convert | None = None


def gsm8k_tasks(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the problems of GSM8K as tasks; the last number of an answer counts."""
    with (folder / "test.jsonl").open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            problem = json.loads(line)
            yield {
                "id": f"gsm8k-{number:04}",
                "turns": problem["question"],
                "expected": read_answer(problem),
                "tags": ["gsm8k"],
                "source": SOURCE,
            }


def hotpotqa_tasks(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the questions of HotpotQA as tasks, each with its ten paragraphs."""
    (place,) = folder.glob("*.json")
    for question in json.loads(place.read_text(encoding="utf-8")):
        paragraphs = [f"{title}: {''.join(said)}" for title, said in question["context"]]
        answer = question["answer"]
        whole = {"matches": rf"(?i)(?<!\w){re.escape(answer)}(?!\w)"}
        yield {
            "id": f"hotpotqa-{question['_id']}",
            "turns": "\n\n".join([*paragraphs, question["question"]]),
            "expected": whole,
            "tags": ["hotpotqa", question["type"], question["level"]],
            "source": "HotpotQA (Yang et al. 2018), CC BY-SA 4.0",
        }


TASK_SETS: Mapping[str, TaskSet] = {
    "gsm8k": TaskSet(
        "1,319 word problems of primary school (Cobbe et al. 2021, https://arxiv.org/abs/2110.14168)",
        "MIT License, Copyright (c) 2021 OpenAI",
        f"{GSM8K}/grade_school_math/data",
        {"test.jsonl": "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14"},
        gsm8k_tasks,
    ),
    "hotpotqa": TaskSet(
        "7,405 questions over two paragraphs of ten (Yang et al. 2018, "
        "https://arxiv.org/abs/1809.09600)",
        "CC BY-SA 4.0: name the authors, and pass on what you change under the same licence",
        HOTPOTQA,
        {
            "hotpot_dev_distractor_v1.json": (
                "4e9ecb5c8d3b719f624d66b60f8d56bf227f03914f5f0753d6fa1b359d7104ea"
            )
        },
        hotpotqa_tasks,
    ),
    "tau2": TaskSet(
        "114 conversations with customers of a shop, its policy and its data (Barres et al. 2025, "
        "https://arxiv.org/abs/2506.07982); it needs the benchmark's own tools and user",
        "MIT License, Copyright (c) 2025 Sierra Research",
        f"{TAU2}/data/tau2/domains/retail",
        {
            "tasks.json": "8e03ebce7901bd6218e7a7dc3105faa9324091a68058f7fe61c65262868812e8",
            "db.json": "413a65160adbdb5fde0ffc0015c49b6d70250b10c18128de169b597af7766765",
            "policy.md": "2c9652afbce57d6e087768d37cda64d31c53d50b3e3225cfdb791bac66466467",
            "split_tasks.json": "ed0580ec52575b63fbf76568af42490da6ee7783ecb4aa81af46961291358f20",
        },
    ),
    "bfcl": TaskSet(
        "Calls of functions and what they should be, from the Berkeley Function Calling "
        "Leaderboard (Patil et al. 2025); it needs the benchmark's own checks",
        "Apache License 2.0",
        f"{BFCL}/berkeley-function-call-leaderboard/bfcl_eval/data",
        {
            "BFCL_v4_simple_python.json": (
                "82dd63ba502eb2520c6b5d1d9a5c4b590e03ff261565175561f6228a367d1991"
            ),
            "BFCL_v4_multiple.json": (
                "aef168155ebd74b7ac2401198b201343bc7d16d7a3d7e0d4e6d8ee82c6969b2a"
            ),
            "BFCL_v4_parallel.json": (
                "19f51a82eff42e5d62541aa500115a056eb78f437c2ba1f10415fd7c8e5dda84"
            ),
            "BFCL_v4_parallel_multiple.json": (
                "8863ea8433239f55c5f016154cf0830853c89f693c6ea270396a2fa121960579"
            ),
            "BFCL_v4_irrelevance.json": (
                "2b6ed4c2e992cdcf5f1678a701851f944bef7550ee026ed1ddb89efed5be01a6"
            ),
            "possible_answer/BFCL_v4_simple_python.json": (
                "90cd5bc653690ee8e459b5b3f3fc9458606f7f3fcbf795bb51b7dc581f8c86dc"
            ),
            "possible_answer/BFCL_v4_multiple.json": (
                "244e00ce9395df948bcafc7bee64e8f9c87ef70887587d83cae45b13699f3047"
            ),
            "possible_answer/BFCL_v4_parallel.json": (
                "8a6aa19c1adddc6a5a2f7e40f9dbf30cc7e95815e7b830c90589ab318229e0f0"
            ),
            "possible_answer/BFCL_v4_parallel_multiple.json": (
                "5ebf24f458c1f16300c05505d83d6f0a1b68b79be273a033febd0d4f840507e3"
            ),
        },
    ),
}


def fetch(name: str, task_set: TaskSet, folder: Path, mirrors: Mapping[str, str]) -> list[Path]:
    """Fetch the files of a task set into ``folder / name``, and return them.

    Args:
        name: The name of its folder.
        task_set: The task set.
        folder: The folder of all task sets.
        mirrors: What the beginning of an address is replaced by.

    Raises:
        FetchError: A file cannot be fetched, or has another SHA-256; what was there before stays.
    """
    places = [folder / name / file for file in task_set.files]
    with httpx.Client(follow_redirects=True, timeout=60) as client:
        for place, (file, known) in zip(places, task_set.files.items(), strict=True):
            if not (place.is_file() and _sha256(place) == known):
                _download(client, _mirrored(f"{task_set.base}/{file}", mirrors), place, known)
    if task_set.convert is not None:
        tasks = folder / name / "tasks.jsonl"
        begun = tasks.with_name("tasks.jsonl.part")
        with begun.open("w", encoding="utf-8") as lines:
            for task in task_set.convert(folder / name):
                lines.write(json.dumps(task, ensure_ascii=False) + "\n")
        begun.replace(tasks)
        places.append(tasks)
    return places


def _download(client: httpx.Client, url: str, place: Path, known: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    begun = place.with_name(f"{place.name}.part")
    try:
        with client.stream("GET", url) as response, begun.open("wb") as file:
            response.raise_for_status()
            for chunk in response.iter_bytes():
                if file.tell() + len(chunk) > LARGEST:
                    raise FetchError(f"{url} has more than {LARGEST:,} bytes: it is another file")
                file.write(chunk)
        found = _sha256(begun)
        if found != known:
            raise FetchError(f"{url} has the SHA-256 {found}, and not {known}: it is another file")
        begun.replace(place)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise FetchError(f"{url} cannot be fetched: {error}") from error
    finally:
        begun.unlink(missing_ok=True)


def _sha256(place: Path) -> str:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _mirrored(url: str, mirrors: Mapping[str, str]) -> str:
    for begin, instead in mirrors.items():
        if url.startswith(begin):
            return instead + url.removeprefix(begin)
    return url


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch the named task sets, or list them all; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TASK_SETS))
    parser.add_argument("--folder", type=Path, default=Path("task_sets"))
    parser.add_argument(
        "--mirror", action="append", default=[], metavar="FROM=TO", help="fetch from there instead"
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in TASK_SETS]
    if unknown or not all("=" in mirror for mirror in options.mirror):
        what = f"No task set is called {unknown[0]!r}" if unknown else "Give --mirror FROM=TO"
        parser.error(f"{what}; there are {', '.join(TASK_SETS)}")
    mirrors = dict(mirror.split("=", 1) for mirror in options.mirror)
    for name in options.names or TASK_SETS:
        task_set = TASK_SETS[name]
        print(f"{name}: {task_set.about}\n  {task_set.licence}")
        if name not in options.names:
            continue
        try:
            for place in fetch(name, task_set, options.folder, mirrors):
                print(f"  {place}")
        except (FetchError, OSError) as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
