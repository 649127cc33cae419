"""GSM8K: word problems of primary school (Cobbe et al. 2021, https://arxiv.org/abs/2110.14168)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from random import Random
from typing import Any

from agent_brain.common.values import is_count
from agent_brain.errors import ExperimentError
from agent_brain.experiments.task import Task

SOURCE = "GSM8K, MIT License, Copyright (c) 2021 OpenAI"


def gsm8k(path: str | PathLike[str], n: int = 50, seed: int = 0) -> list[Task]:
    """Return problems of GSM8K (Cobbe et al. 2021, https://arxiv.org/abs/2110.14168).

    The data (MIT) is not shipped; ``python -m scripts.fetch_task_sets gsm8k`` fetches it. An
    answer passes if its last number is the right one.

    Args:
        path: The file ``task_sets/gsm8k/test.jsonl``, or another of the same form: a line is a
            JSON object with ``question`` and ``answer``, which ends with ``#### NUMBER``.
        n: How many; all if there are fewer.
        seed: Another seed draws others.

    Raises:
        ExperimentError: The file cannot be read, a line is of another form, or ``n`` is not a whole
            number from 1.
    """
    if not is_count(n):
        raise ExperimentError(f"gsm8k(n={n!r}): a whole number from 1")
    place = Path(path)
    try:
        lines = place.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(
            f"gsm8k({str(path)!r}): {error}. Fetch it: python -m scripts.fetch_task_sets gsm8k"
        ) from error
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    drawn = Random(f"gsm8k {seed}").sample(numbered, min(n, len(numbered)))
    return [_task(place, number, line) for number, line in drawn]


def _task(place: Path, number: int, line: str) -> Task:
    where = f"{place}, line {number}"
    try:
        problem = json.loads(line)
    except ValueError as error:
        raise ExperimentError(f"{where} is not JSON: {error}") from error
    try:
        return Task(
            id=f"gsm8k-{number:04}",
            turns=problem["question"],
            expected=read_answer(problem),
            tags=["gsm8k"],
            source=SOURCE,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ExperimentError(
            f"{where}: an object with a question and an answer that ends with '#### NUMBER'"
        ) from error


def read_answer(problem: Mapping[str, Any]) -> int | float:
    """Return the number at the end of an answer.

    Raises:
        ValueError: There is none.
        KeyError: There is no answer.
    """
    number = float(problem["answer"].rpartition("####")[2].replace(",", ""))
    return int(number) if number.is_integer() else number
