"""``agent-brain sessions`` moves sessions between journals, and saves what a damaged one has left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_brain.memories import SQLiteJournal, session_key
from tests.cli.stored import store
from tests.cli.support import in_order, invoke, json_lines, run
from tests.cli.test_sessions_changes import damage, leased


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "j.db"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target.db"


def sessions(command: str, place: Path | str, *args: str, **options: Any):
    return invoke("sessions", command, "--journal", str(place), *args, **options)


def stored(place: Path, session: str, tenant: str | None = None) -> list[Any]:
    async def read() -> list[Any]:
        async with SQLiteJournal(place, readonly=True) as journal:
            return await journal.read(session_key(session, tenant), history=True)

    return anyio.run(read)


# export and import


def test_an_exported_session_is_imported_as_it_was(place, target, tmp_path):
    store(place, count=60, history=5)
    file = tmp_path / "ann.jsonl"
    done = sessions("export", place, "ann", "-o", str(file))
    assert (done.exit_code, done.output) == (0, "")
    done = sessions("import", target, str(file))
    entries = stored(place, "ann")
    assert done.stdout == f"Imported session 'ann': {len(entries)} entries\n"
    assert stored(target, "ann") == entries
    assert any(entry.retired for entry in entries)
    assert [path.name for path in tmp_path.glob("*ann*")] == ["ann.jsonl"]


def test_a_session_goes_through_a_pipe(place, target):
    store(place, question="Grüße\u2028\x1b[2J")
    exported = sessions("export", place, "ann")
    assert not {*"\x1b\u2028"} & {*exported.stdout}
    assert len(json_lines(exported.stdout)) == 12 + 2
    assert sessions("import", target, "-", stdin=exported.stdout).exit_code == 0
    assert stored(target, "ann") == stored(place, "ann")


def test_it_goes_through_the_pipe_of_a_shell(place, target):
    store(place, question="Grüße")
    exported = run("sessions", "export", "--journal", str(place), "ann")
    done = run("sessions", "import", "--journal", str(target), "-", stdin=exported.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert stored(target, "ann") == stored(place, "ann")


def test_an_imported_session_gets_another_name_and_tenant(place):
    store(place, tenant="acme")
    exported = sessions("export", place, "ann", "--tenant", "acme").stdout
    sessions("import", place, "-", "--as", "bob", stdin=exported)
    sessions("import", place, "-", "--tenant", "other", stdin=exported)
    for name, tenant in (("bob", "acme"), ("ann", "other")):
        assert stored(place, name, tenant) == stored(place, "ann", "acme")


def test_a_folder_is_made_for_what_is_imported(place, tmp_path):
    store(place)
    exported = sessions("export", place, "ann").stdout
    folder = str(tmp_path / "new" / "folder")
    assert invoke("sessions", "import", "--folder", folder, "-", stdin=exported).exit_code == 0
    assert stored(Path(folder) / "memory.db", "ann") == stored(place, "ann")


def test_an_import_replaces_nothing(place):
    store(place)
    before = stored(place, "ann")
    exported = sessions("export", place, "ann").stdout
    done = sessions("import", place, "-", stdin=exported)
    assert done.exit_code == 2
    assert "There is a session 'ann' already: choose another name with --as" in done.stderr
    assert stored(place, "ann") == before


@pytest.mark.parametrize("cut", ["empty", "head", "half", "no end", "words", "json", "keyless"])
def test_what_is_no_whole_session_is_not_imported(place, target, cut):
    store(place)
    lines = sessions("export", place, "ann").stdout.splitlines(keepends=True)
    head = json.loads(lines[0])
    text = {
        "empty": "",
        "head": lines[0],
        "half": "".join(lines[:7]),
        "no end": "".join(lines[:-1]),
        "words": "hello\nworld\n",
        "json": "[1, 2]\n",
        "keyless": "".join([json.dumps({**head, "session": "ann"}), *lines[1:]]),
    }[cut]
    done = sessions("import", target, "-", stdin=text)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr
    assert sessions("list", target).stdout == ""


def test_a_file_that_cannot_be_read_or_written_is_reported(place, tmp_path):
    store(place)
    done = sessions("import", place, str(tmp_path / "none"))
    assert done.exit_code == 2
    assert "cannot be read: " in done.stderr
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert sessions("import", place, str(tmp_path / "binary")).exit_code == 2
    done = sessions("export", place, "ann", "-o", str(tmp_path / "none" / "file"))
    assert done.exit_code == 2
    assert "cannot be written: " in done.stderr


def test_a_damaged_session_replaces_no_file(place, tmp_path):
    store(place)
    damage(place)
    file = tmp_path / "out"
    file.write_text("as it was")
    done = sessions("export", place, "ann", "-o", str(file))
    assert done.exit_code == 2
    assert "agent-brain sessions salvage" in done.stderr
    assert file.read_text() == "as it was"
    assert {path.name for path in tmp_path.iterdir()} <= {"out", "j.db", "j.db-wal", "j.db-shm"}


def test_a_session_in_use_is_exported(place):
    store(place)
    with leased(place, "ann"):
        assert sessions("export", place, "ann").exit_code == 0


# salvage


def test_what_is_before_the_damage_is_salvaged(place, target):
    store(place)
    store(place, "bob", tenant="acme", question="other", script=["fine"])
    damage(place)
    before = place.read_bytes()
    done = invoke("sessions", "salvage", str(place), str(target))
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert in_order(lines[0], ["session", "copied", "lost"])
    assert any(in_order(line, ["'ann'", "8 entries", "all after entry 8"]) for line in lines)
    assert any(in_order(line, ["'bob' of tenant 'acme'", "7 entries"]) for line in lines)
    assert in_order(done.stderr, ["Note: Entry 9", "is damaged"])
    assert [entry.seq for entry in stored(target, "ann")] == [*range(1, 9)]
    assert "seen 0" in sessions("show", target, "ann").stdout
    assert place.read_bytes() == before


def test_a_whole_journal_is_copied_and_nothing_is_lost(place, target):
    store(place)
    done = invoke("sessions", "salvage", str(place), str(target))
    assert done.exit_code == 0
    assert "lost" not in done.stdout
    assert stored(target, "ann") == stored(place, "ann")


def test_a_salvage_replaces_nothing(place, target):
    store(place)
    store(target, question="other")
    before = stored(target, "ann")
    done = invoke("sessions", "salvage", str(place), str(target))
    assert done.exit_code == 1
    assert in_order(done.stdout, ["'ann'", "0 entries", "all"])
    assert "The target has this session already" in done.stderr
    assert stored(target, "ann") == before


def test_a_journal_is_not_salvaged_into_itself_or_from_nowhere(place, tmp_path):
    store(place)
    done = invoke("sessions", "salvage", str(place), str(place))
    assert done.exit_code == 2
    assert "TARGET is SOURCE" in done.stderr
    done = invoke("sessions", "salvage", str(tmp_path / "none.db"), str(tmp_path / "new.db"))
    assert done.exit_code == 2
    assert [path.name for path in tmp_path.glob("n*.db")] == []
