"""Task sets are fetched from a local server, checked, and made into tasks."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent_brain.experiments import gsm8k
from scripts import fetch_task_sets
from scripts.fetch_task_sets import TASK_SETS, FetchError, TaskSet, fetch, main

PROBLEM = {
    "question": "Ann has 3 boats and buys 1,200. How many?",
    "answer": "3 + 1200\n#### 1,203",
}
QUESTION = {
    "_id": "5a8b",
    "question": "Are both towns in Norway?",
    "answer": "yes",
    "type": "comparison",
    "level": "hard",
    "context": [
        ["Bergen", ["Bergen is a town.", " It is in Norway."]],
        ["Narvik", ["So is Narvik."]],
    ],
}


class Handler(SimpleHTTPRequestHandler):
    requests: list[str] = []

    def log_message(self, *args: Any) -> None:
        self.requests.append(self.path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server, and the folder of its files."""
    files = tmp_path / "served"
    files.mkdir()
    Handler.requests = []
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(files))) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=[0.01])
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}", files
        serving.shutdown()
        thread.join()


def served(name: str, text: str, files: Path) -> TaskSet:
    """Return the task set of a name, with one file of this text that a server has."""
    real = TASK_SETS[name]
    file = next(iter(real.files))
    place = files / name / file
    place.parent.mkdir(parents=True)
    place.write_text(text)
    known = sha256(text.encode()).hexdigest()
    return TaskSet(
        real.about, real.licence, f"https://far.away/{name}", {file: known}, real.convert
    )


def test_gsm8k_is_fetched_once_and_made_into_tasks(
    server: tuple[str, Path], tmp_path: Path
) -> None:
    url, files = server
    task_set = served("gsm8k", json.dumps(PROBLEM) + "\n", files)
    mirrors = {"https://far.away": url}

    places = fetch("gsm8k", task_set, tmp_path, mirrors)
    assert places == [tmp_path / "gsm8k" / "test.jsonl", tmp_path / "gsm8k" / "tasks.jsonl"]
    (task,) = map(json.loads, places[1].read_text().splitlines())
    (same,) = gsm8k(places[0])
    assert (task["id"], task["turns"], task["expected"]) == (same.id, same.turns, same.expected)
    assert task["source"] == same.source

    fetch("gsm8k", task_set, tmp_path, mirrors)
    assert Handler.requests == ["/gsm8k/test.jsonl"]


def test_hotpotqa_is_made_into_tasks(server: tuple[str, Path], tmp_path: Path) -> None:
    url, files = server
    task_set = served("hotpotqa", json.dumps([QUESTION]), files)

    places = fetch("hotpotqa", task_set, tmp_path, {"https://far.away": url})
    (task,) = map(json.loads, places[1].read_text().splitlines())
    assert task["turns"].startswith("Bergen: Bergen is a town. It is in Norway.\n\nNarvik: So is")
    assert task["turns"].endswith("Are both towns in Norway?")
    assert task["tags"] == ["hotpotqa", "comparison", "hard"]
    assert "CC BY-SA" in task["source"]
    assert re.search(task["expected"]["matches"], "Yes, they are.")
    assert not re.search(task["expected"]["matches"], "Yesterday")


def test_a_file_that_is_another_is_not_kept(server: tuple[str, Path], tmp_path: Path) -> None:
    url, files = server
    task_set = served("gsm8k", json.dumps(PROBLEM), files)
    (files / "gsm8k" / "test.jsonl").write_text("something else")
    (tmp_path / "gsm8k").mkdir()
    (tmp_path / "gsm8k" / "test.jsonl").write_text("what was there")

    with pytest.raises(FetchError, match="SHA-256"):
        fetch("gsm8k", task_set, tmp_path, {"https://far.away": url})
    assert [place.name for place in (tmp_path / "gsm8k").iterdir()] == ["test.jsonl"]
    assert (tmp_path / "gsm8k" / "test.jsonl").read_text() == "what was there"


def test_a_file_that_is_missing_is_named(
    server: tuple[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, _ = server
    mirror = f"https://raw.githubusercontent.com={url}"
    assert main(["bfcl", "--folder", str(tmp_path), "--mirror", mirror]) == 1
    said = capsys.readouterr()
    assert "Apache License" in said.out
    assert f"{url}/ShishirPatil/gorilla/" in said.err
    assert not list(tmp_path.rglob("*.part"))


def test_a_file_without_end_is_not_read_to_it(
    server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, files = server
    task_set = served("gsm8k", json.dumps(PROBLEM), files)
    monkeypatch.setattr(fetch_task_sets, "LARGEST", 20)

    with pytest.raises(FetchError, match="more than 20 bytes"):
        fetch("gsm8k", task_set, tmp_path, {"https://far.away": url})
    assert not list((tmp_path / "gsm8k").iterdir())


def test_a_mirror_that_is_no_address_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror = "https://raw.githubusercontent.com=http://a..b"
    assert main(["gsm8k", "--folder", str(tmp_path), "--mirror", mirror]) == 1
    assert "http://a..b/openai" in capsys.readouterr().err


def test_the_command_fetches_what_is_named(
    server: tuple[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, files = server
    task_set = served("gsm8k", json.dumps(PROBLEM), files)
    monkeypatch.setattr(fetch_task_sets, "TASK_SETS", {"gsm8k": task_set})
    assert main(["gsm8k", "--folder", str(tmp_path), "--mirror", f"https://far.away={url}"]) == 0
    assert str(tmp_path / "gsm8k" / "tasks.jsonl") in capsys.readouterr().out


def test_without_names_it_lists_them_all_with_licences(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    for name, task_set in TASK_SETS.items():
        assert f"{name}: " in said
        assert task_set.licence in said


@pytest.mark.parametrize("arguments", [["gsm9k"], ["gsm8k", "--mirror", "nothing"]])
def test_what_it_cannot_do_is_said(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert "there are gsm8k" in capsys.readouterr().err


def test_every_file_has_a_checksum() -> None:
    for task_set in TASK_SETS.values():
        assert all(re.fullmatch("[0-9a-f]{64}", known) for known in task_set.files.values())
        assert task_set.base.startswith(("https://", "http://curtis.ml.cmu.edu/"))
