"""``agent-brain user`` shows, corrects and forgets what is known about a user."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from click.testing import Result

from agent_brain.memories import Message, MessagesMemory, UserMemory
from agent_brain.tools import Action
from tests.cli.support import in_order, invoke, json_lines, run
from tests.memories.user.support import by_rules, day, said


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A journal with what is known about Ann."""
    path = tmp_path / "memory.db"

    async def fill() -> None:
        async with UserMemory(journal=path, tenant="ann", extract=by_rules) as ann:
            chat = MessagesMemory(journal=ann.journal, session="first", tenant="ann")
            await chat.update([said("I live in Paris"), said("I moved to Porto", 40)])
            await ann.learn()
            page = Message.tool("Ann lives in Rome", Action(name="web"), created_at=day(50))
            await ann.remember("Lives in \x1b[31mRome", slot="home", source=page)
            await ann.edit_block("project", "A house")

    anyio.run(fill)
    return path


def user(command: str, place: Path, *args: str, stdin: str = "") -> Result:
    return invoke("user", command, "--journal", str(place), "--tenant", "ann", *args, stdin=stdin)


def facts(place: Path, *args: str) -> dict[str, dict[str, object]]:
    found = json_lines(user("list", place, "--json", *args).stdout)
    return {str(each["text"]): each for each in found if "id" in each}


def test_what_is_known_is_listed_and_each_fact_has_a_history_with_sources(place):
    shown = user("list", place).stdout
    assert in_order(shown, ["fact", "Lives in Porto", "user", "current", "Rome", "tool", "claim"])
    assert in_order(shown, ["block", "project", "A house"])
    assert "Paris" not in shown
    assert "\x1b" not in shown
    assert facts(place, "--all").keys() == {
        "Lives in Porto",
        "Lives in \x1b[31mRome",
        "Lives in Paris",
    }
    chain = user("history", place, str(facts(place)["Lives in Porto"]["id"])).stdout
    told = ["replaced", "Lives in Paris", "“I live in Paris”", "first", "current", "Lives in Porto"]
    assert in_order(chain, told)


def test_a_fact_is_corrected_and_forgotten(place):
    porto = str(facts(place)["Lives in Porto"]["id"])
    assert in_order(user("correct", place, porto, "Lives in Lisbon").stdout, ["Stored as", porto])
    lisbon = str(facts(place)["Lives in Lisbon"]["id"])
    assert "Lives in Porto" not in facts(place)
    assert user("forget", place, lisbon, stdin="n\n").exit_code == 1
    assert user("forget", place, lisbon, "--yes").stdout == "Forgotten: 1 fact\n"
    assert user("forget", place, "--text", "porto", "-y").exit_code == 0
    assert facts(place, "--all").keys() == {"Lives in \x1b[31mRome", "Lives in Paris"}
    assert b"Porto" not in place.read_bytes()
    assert user("forget", place, "--everything", "--yes").exit_code == 0
    assert facts(place, "--all") == {}


def test_what_is_known_moves_as_a_file_between_processes(place, tmp_path):
    file, other = tmp_path / "ann.json", tmp_path / "other.db"
    where = ("--journal", str(place), "--tenant", "ann")
    assert run("user", "export", *where, "-o", str(file)).returncode == 0
    assert len(json.loads(file.read_text())["facts"]) == 3
    done = run("user", "import", "--journal", str(other), "--tenant", "ann", str(file))
    assert (done.returncode, done.stdout) == (0, "Added: 3 facts\n")
    assert user("import", other, str(file)).stdout == "Added: 0 facts\n"
    assert facts(other, "--all") == facts(place, "--all")


def test_mistakes_are_told(place, tmp_path):
    empty = tmp_path / "empty.json"
    empty.write_text('{"version": 1}')
    for args, told in (
        (("history", "fact_0"), "No fact has the ID 'fact_0'"),
        (("correct", "fact_0", "x"), "No fact has the ID 'fact_0'"),
        (("forget", "--yes"), "Choose what to forget"),
        (("forget", "--text", "a b c", "--slot", "home", "--yes"), "Choose what to forget"),
        (("import", str(place)), "is not"),
        (("import", str(empty)), "takes what export() returned"),
    ):
        done = user(args[0], place, *args[1:])
        assert done.exit_code == 2, args
        assert told in done.stderr
    nobody = invoke("user", "list", "--journal", str(place), "--tenant", "anne")
    assert nobody.exit_code == 2
    assert "There are no sessions of 'anne'; there are some of 'ann'" in nobody.stderr
