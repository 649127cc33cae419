"""``agent-brain sessions`` copies, compares and removes what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest

from agent_brain import Brain
from agent_brain.memories import (
    Message,
    MessagesMemory,
    SQLiteJournal,
    WindowedMemory,
    session_key,
)
from agent_brain.serving import Sessions
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.cli.stored import look, store, summarizing
from tests.cli.support import Terminal, in_order, invoke, json_lines


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "j.db"


def sessions(command: str, place: Path | str, *args: str, **options: Any):
    return invoke("sessions", command, "--journal", str(place), *args, **options)


def names(place: Path) -> list[tuple[str | None, str]]:
    found = json_lines(sessions("list", place, "--json").stdout)
    return sorted((each["tenant"] or "", each["session"]) for each in found)


# fork


def test_a_fork_goes_on_from_its_step_and_its_origin_stays_as_it_was(place):
    _, call, *_ = store(place)
    before = sessions("show", place, "ann", "--full").stdout
    done = sessions("fork", place, "ann", "--step", str(call), "--to", "other")
    assert done.exit_code == 0
    assert f"session 'other' has {call} entries, up to step {call}" in done.stdout

    async def resume() -> str:
        async with MessagesMemory(journal=place, session="other") as memory:
            brain = Brain("react", memory, [look], llm=ScriptedLLM(["another answer"]))
            result = await brain.resume()
            assert [m.content for m in await memory.messages(role="tool")] == ["seen 0"]
            return result.answer

    assert anyio.run(resume) == "another answer"
    assert sessions("show", place, "ann", "--full").stdout == before


@pytest.mark.thorough
@pytest.mark.parametrize("memory", [MessagesMemory, WindowedMemory, summarizing])
def test_a_fork_is_the_session_as_of_the_step_whatever_memory_it_is_of(place, memory):
    options = {} if memory is MessagesMemory else {"max_messages": 3}
    steps = store(place, count=80, memory=memory, history="all", **options)

    async def shown(session: str, step: int | None) -> Any:
        opened = memory(journal=place, session=session, **options)
        was = opened if step is None else await opened.as_of(step)
        try:
            context = [(m.id, m.content, m.tool_calls) for m in await was.context()]
            snapshot = (await was.snapshot()).model_dump(exclude={"created_at"})
            snapshot["views"].get("summary", {}).pop("at", None)  # when it was made
            return context, snapshot
        finally:
            await opened.aclose()

    for number in steps[5], steps[len(steps) // 2], steps[-1]:
        name = f"at {number}"
        assert not sessions("fork", place, "ann", "--step", str(number), "--to", name).exit_code
        assert anyio.run(shown, name, None) == anyio.run(shown, "ann", number)


def test_a_fork_says_how_to_go_on_in_a_folder(tmp_path):
    step = store(tmp_path / "memory.db")[1]
    args = ("sessions", "fork", "--folder", str(tmp_path), "ann", "--step", str(step))
    done = invoke(*args, "--to", "its own")
    assert f"agent-brain resume --folder {tmp_path} --session 'its own'" in done.stdout
    done = invoke(*args, "--to", "theirs", "--to-tenant", "acme")
    assert "'session': 'theirs', 'tenant': 'acme'" in done.stdout


def test_a_fork_stays_with_its_tenant_unless_another_is_named(place):
    step = store(place, tenant="acme")[0]
    fork = ("ann", "--tenant", "acme", "--step", str(step), "--to", "b")
    sessions("fork", place, *fork)
    sessions("fork", place, *fork, "--to-tenant", "other")
    assert names(place) == [("acme", "ann"), ("acme", "b"), ("other", "b")]


def test_a_fork_replaces_nothing(place):
    step = store(place)[0]
    store(place, "bob")
    before = sessions("show", place, "bob").stdout
    done = sessions("fork", place, "ann", "--step", str(step), "--to", "bob")
    assert done.exit_code == 2
    assert "There is a session 'bob' already: choose another name with --to" in done.stderr
    assert sessions("show", place, "bob").stdout == before


# diff


@pytest.mark.parametrize("script", [None, lambda: [[Action(name="send", args={"to": "Bob"})]]])
def test_the_same_conversation_in_two_sessions_is_no_difference(place, script):
    for session in "ab":
        store(place, session, script=script and script())  # calls with IDs of their own
    done = sessions("diff", place, "a", "b")
    messages = 2 if script else 4
    same = f"No difference: {messages} messages, and the same state\n"
    assert (done.exit_code, done.stdout) == (0, same)


def test_two_steps_of_a_session_differ_in_what_came_between(place):
    _, call, result, *_ = store(place)
    done = sessions("diff", place, f"ann@{call}", f"ann@{result}")
    assert done.exit_code == 1
    assert in_order(
        done.stdout,
        [
            "2 messages in common",
            *(f"ann@{call}: 0 messages more", f"ann@{result}: 1 message more", "look: seen 0"),
            *("state", 'state: "ACTION" → "REASONING"', "next_actions", "→ []"),
        ],
    )


def test_conversations_that_part_show_both_sides(place):
    store(place, "a", script=["yes"])
    store(place, "b", script=["no"])
    done = sessions("diff", place, "a", "b")
    assert done.exit_code == 1
    assert in_order(
        done.stdout,
        ["1 message in common", "a: 1 message more", "yes", "b: 1 message more", "no"],
    )
    assert "state" not in done.stdout


def test_conversations_without_anything_in_common_differ(place):
    store(place, "a", script=["yes"], question="A")
    store(place, "b", script=["yes"], question="B")
    assert "0 messages in common" in sessions("diff", place, "a", "b").stdout


def test_values_beside_the_messages_are_compared(place):
    async def keep() -> None:
        for session in "ab":
            async with MessagesMemory(journal=place, session=session) as memory:
                await memory.keep("colour", session)

    anyio.run(keep)
    done = sessions("diff", place, "a", "b")
    assert done.exit_code == 1
    assert 'colour: "a" → "b"' in done.stdout


def test_a_session_whose_name_ends_like_a_step_is_found_by_its_name(place):
    step = store(place, "ann@example.com")[0]
    store(place, f"ann@{step}")
    store(place, "ann", count=2)
    done = sessions("diff", place, f"ann@{step}", f"ann@example.com@{step}")
    assert in_order(done.stdout, ["1 message in common", f"ann@{step}: 3 messages more"])
    assert sessions("diff", place, f"ann@{step}@{step}", f"ann@example.com@{step}").exit_code == 0


# rm


def test_a_session_is_removed_with_all_that_belongs_to_it(place):
    store(place)
    store(place, "bob")
    done = sessions("rm", place, "ann", "--yes")
    assert (done.exit_code, done.stdout) == (0, "Removed session 'ann': 12 entries\n")
    assert names(place) == [("", "bob")]
    assert b"ann" not in place.read_bytes()


def test_a_served_session_leaves_the_list_of_its_user(place):
    async def serve(*, ask: bool) -> int:
        async with Sessions(Brain(llm=ScriptedLLM(["hi"])), journal=place) as served:
            if ask:
                async with (
                    served.use("first", user="ann") as session,
                    session.stream("hello") as run,
                ):
                    assert [event async for event in run]
            return len(await served.list(user="ann"))

    assert anyio.run(lambda: serve(ask=True)) == 1
    assert sessions("rm", place, "first", "--tenant", "ann", "--yes").exit_code == 0
    assert anyio.run(lambda: serve(ask=False)) == 0


@pytest.mark.parametrize("answer,left", [("y\n", 0), ("Yes\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_it_asks_before_it_removes(place, answer, left):
    store(place)
    done = sessions("rm", place, "ann", stdin=answer)
    assert "Remove session 'ann' with 12 entries? There is no undo [y/N]" in done.stderr
    assert len(names(place)) == left
    assert done.exit_code == left
    assert ("Nothing was removed" in done.stdout) == bool(left)


def test_ctrl_c_at_the_question_removes_nothing(place):
    store(place)
    with Terminal("sessions", "rm", "--journal", str(place), "ann") as shown:
        shown.expect("[y/N]")
        shown.type("\x03")
        assert shown.finish() == 130
    assert len(names(place)) == 1


# forget


@pytest.mark.parametrize("answer,left", [("y\n", 0), ("n\n", 1), ("", 1)])
def test_a_text_is_forgotten_in_all_sessions_of_a_tenant(place, answer, left):
    async def fill() -> None:
        for session, tenant in (("one", "ann"), ("two", "ann"), ("one", "bob")):
            async with MessagesMemory(journal=place, session=session, tenant=tenant) as memory:
                await memory.update([Message.user(f"{tenant} is zebra-4711")])

    anyio.run(fill)
    done = sessions("forget", place, "Ann is Zebra", "--tenant", "ann", stdin=answer)
    assert "Forget 'Ann is Zebra' in all sessions of 'ann'? There is no undo [y/N]" in done.stderr
    assert done.exit_code == left
    assert (b"ann is zebra" in place.read_bytes()) == bool(left)
    assert b"bob is zebra" in place.read_bytes()
    told = "Nothing was forgotten" if left else "Forgotten in the sessions of 'ann': 2 messages"
    assert told in done.stdout


def test_forgetting_names_a_session_that_is_in_use(place):
    store(place)
    with leased(place, "ann"):
        done = sessions("forget", place, "seen", "--yes")
    assert done.exit_code == 2
    assert "'ann'" in done.stderr
    assert sessions("forget", place, "seen", "--yes").exit_code == 0
    assert sessions("forget", place, " ", "--yes").exit_code == 2


def test_forgetting_for_a_tenant_without_sessions_names_those_that_have_some(place):
    store(place)
    store(place, tenant="bob")
    done = sessions("forget", place, "seen", "--tenant", "bop", stdin="y\n")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "There are no sessions of 'bop'; there are some of 'bob', nobody (without" in done.stderr


@contextmanager
def leased(place: Path, session: str) -> Iterator[None]:
    """Another runner has the lease of a session."""

    async def acquire(journal: SQLiteJournal) -> Any:
        return await journal.acquire(session_key(session))

    with anyio.from_thread.start_blocking_portal() as portal:
        journal = SQLiteJournal(place)
        lease = portal.call(acquire, journal)
        try:
            yield
        finally:
            portal.call(journal.release, lease)
            portal.call(journal.aclose)


def test_a_session_that_is_in_use_is_not_removed(place):
    store(place)
    with leased(place, "ann"):
        done = sessions("rm", place, "ann", "--yes")
        assert done.exit_code == 2
        assert "is in use by process" in done.stderr
        assert sessions("list", place).exit_code == sessions("show", place, "ann").exit_code == 0
    assert names(place) == [("", "ann")]
    assert sessions("rm", place, "ann", "--yes").exit_code == 0


# mistakes


@pytest.mark.parametrize(
    "args,message",
    [
        (["show", "an"], "There is no session 'an'. Similar: 'ann'"),
        (["show", "ANN"], "Similar: 'ann'"),
        (["show", "xyz"], "There is no session 'xyz'; agent-brain sessions list shows all"),
        (["show", ""], "The name of the session is empty"),
        (["show", "theirs"], "There is no session 'theirs', but with --tenant 'ac me'"),
        (["show", "ann", "--tenant", "ac me"], "of tenant 'ac me', but with no --tenant"),
        (["show", "ann", "--tenant", " "], "the name is empty"),
        (["list", "--tenant", ""], "the name is empty"),
        (["fork", "ann", "--step", "3", "--to", ""], "the name is empty"),
        (["fork", "ann", "--step", "3", "--to", "b", "--to-tenant", ""], "the name is empty"),
        (["import", "-", "--as", ""], "the name is empty"),
        (["show", "ann", "--step", "4"], "no step 4 of session 'ann': the closest are 3, 5, 8"),
        (["show", "ann", "--step", "0"], "0 is not in the range"),
        (["steps", "xyz"], "There is no session 'xyz'"),
        (["fork", "ann", "--step", "3"], "--to"),
        (["fork", "ann", "--to", "b"], "--step"),
        (["fork", "ann", "--step", "4", "--to", "b"], "no step 4"),
        (["fork", "xyz", "--step", "3", "--to", "b"], "no session 'xyz'"),
        (["diff", "ann", "xyz"], "no session 'xyz'"),
        (["diff", "ann@4", "ann"], "no step 4"),
        (["diff", "ann@x", "ann"], "no session 'ann@x'"),
        (["rm", "xyz", "--yes"], "no session 'xyz'"),
        (["list", "--limit", "0"], "0 is not in the range"),
        (["lst"], "Did you mean 'list'"),
    ],
)
def test_mistakes(place, args, message):
    store(place)
    store(place, "theirs", tenant="ac me")
    before = place.read_bytes()
    done = sessions(args[0], place, *args[1:])
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert place.read_bytes() == before


COMMANDS = {
    "list": [],
    "show": ["ann"],
    "steps": ["ann"],
    "fork": ["ann", "--step", "1", "--to", "b"],
    "diff": ["a", "b"],
    "rm": ["ann", "--yes"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_journal_that_is_not_there_is_not_created(tmp_path, command):
    (tmp_path / "folder").mkdir()
    for where in (
        ("--journal", str(tmp_path / "j.db")),
        ("--folder", str(tmp_path / "folder")),
        ("--folder", str(tmp_path / "other")),
    ):
        done = invoke("sessions", command, *where, *COMMANDS[command])
        assert done.exit_code == 2
        assert "there is no" in done.stderr.lower()
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


@pytest.mark.parametrize(
    "args,message",
    [
        ([], "Give --folder or --journal"),
        (["--journal", "x", "--folder", "y"], "not both"),
        (["--journal", "mysql://me:hunter22@host/db"], "is not the place of a journal"),
        (["--journal", "redis://me:hunter22@127.0.0.1:1/0"], "redis"),
        (["--journal", "postgresql://me:hunter22@127.0.0.1:1/db"], "127.0.0.1"),
        (["--journal", "mysql://me:pass@hunter22@host/db"], "is not the place of a journal"),
        (["--journal", "."], "'.' is a folder"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_and_no_password_is_shown(tmp_path, args, message):
    done = invoke("sessions", "list", *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert "hunter22" not in done.output
    assert "hunter22" not in invoke("sessions", "list", *args, "--debug").output


def test_two_journals_in_a_folder_must_be_chosen_from(tmp_path):
    for name in ("memory.db", "journal.db"):
        store(tmp_path / name)
    done = invoke("sessions", "list", "--folder", str(tmp_path))
    assert done.exit_code == 2
    assert "choose one with --journal" in done.stderr


def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("just notes\n" * 100)
    done = sessions("list", path)
    assert done.exit_code == 2
    assert "notes.txt" in done.stderr
    assert path.read_text() == "just notes\n" * 100


def damage(place: Path) -> None:
    """Change a letter of what is stored."""
    data = place.read_bytes()
    assert data.count(b"answer 0") >= 1
    place.write_bytes(data.replace(b"answer 0", b"answer 9"))


@pytest.mark.parametrize("args", [["show", "ann"], ["fork", "ann", "--step", "13", "--to", "b"]])
def test_a_damaged_session_is_reported_with_what_to_do(place, args):
    store(place)
    damage(place)
    done = sessions(args[0], place, *args[1:])
    assert done.exit_code == 2
    assert "agent-brain sessions salvage" in done.stderr
    assert names(place) == [("", "ann")]


def test_a_damaged_session_is_listed_beside_the_others(place):
    store(place)
    store(place, "bob", script=["fine"])
    damage(place)
    done = sessions("list", place)
    assert done.exit_code == 0
    assert in_order(done.stdout, ["bob", "ended", "ann", "question 0", "damaged"])
    assert "agent-brain sessions salvage" in done.stderr


def test_what_is_before_the_damage_is_shown(place):
    store(place)
    damage(place)
    assert in_order(sessions("show", place, "ann").stdout, ["question 0", "look", "seen 0"])
