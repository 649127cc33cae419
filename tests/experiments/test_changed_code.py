"""Code of the user's own that changes between two runs of an experiment."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from agent_brain.experiments import Experiment, Report, load_report

APP = {
    "app/__init__.py": "",
    "app/texts.py": """
        from enum import Enum

        OTHER = "not used"
        GREETING = "Hello"
        class Word(Enum):
            ONE = "one"

        TABLE = {"plain": ["a", "b"], "set": {"x", "y", "z"}, "words": {Word.ONE, ("y", 1)}}
        class Style:
            polite = True
    """,
    "app/helpers.py": """
        from app import texts
        from app.inner import deep

        def unused():
            return 1

        def greet(name):
            '''Greet.'''
            # a comment
            return f"{texts.GREETING} {name} {deep(name)} {texts.TABLE['plain'][0]}"
    """,
    "app/inner.py": """
        import functools

        WORDS = frozenset(("one", "two", "three"))

        def counted(function):
            @functools.wraps(function)
            def wrapper(*args):
                return function(*args) + DOT
            return wrapper

        DOT = "."

        @counted
        def deep(text):
            return even(len(text))

        def even(n):
            return "even" if n == 0 else odd(n - 1)

        def odd(n):
            return "odd" if n == 0 else even(n - 1)
    """,
    "app/lazy.py": "def late():\n    return 'late'\n",
    "app/states.py": """
        from enum import Enum
        from typing import Literal
        from agent_brain import Message, Net, State
        from app.helpers import greet

        class Kind(Enum):
            SHORT = "in short"

        class Base(State):
            closing = "Bye"

        class Answer(Base):
            def __init__(self, llm, style="kind"):
                self.llm = llm
                self.manner = style.upper()

            async def run(self, memory):
                from app.lazy import late
                try:
                    text = greet(self.closing) + late() + Kind.SHORT.value
                except ValueError:
                    text = ""
                yield text
                await memory.update([Message.assistant(text)])

            async def next_state(self, memory) -> None:
                return None

        class Step(Enum):
            ANSWER = 1

        def answering(llm):
            return Net({Step.ANSWER: Answer(llm)})

        def plain(llm):
            return Net({Step.ANSWER: Answer(llm, style="plain")})

        NET = Net({Step.ANSWER: Answer(None, style="given")})
    """,
    "app/tasks.py": """
        from dataclasses import dataclass, field
        from pydantic import BaseModel, field_validator
        from agent_brain import tool
        from agent_brain.experiments import Task

        LEAST = 3
        STOCK = {"lamp": 12}

        def long_enough(reply):
            return len(reply.result.answer) >= LEAST

        @tool
        def in_stock(item: str) -> int:
            '''Tell how many there are.'''
            return STOCK[item]

        def makes():
            return [1]

        class Order(BaseModel):
            item: str
            amounts: list[int] = []

            @field_validator("item")
            @classmethod
            def known(cls, value):
                return value.lower()

        @dataclass
        class Deps:
            limit: int = 5
            items: list = field(default_factory=makes)

        def prepared(memory):
            return None

        TASKS = [
            Task(id="check", turns="?", expected=long_enough),
            Task(id="tool", turns="?", expected=1, tools=[in_stock]),
            Task(id="form", turns="?", expected=1, output_type=Order, deps=Deps()),
            Task(id="prepared", turns="?", expected=1, prepare=prepared),
        ]
    """,
    "app/memories.py": """
        from agent_brain import MessagesMemory, WindowedMemory
        SIZE = 5

        class Mine(MessagesMemory):
            async def recall(self, text):
                return text

        def short(tools, *, session, journal, tenant):
            return WindowedMemory(tools, max_messages=SIZE, session=session, journal=journal,
                                  tenant=tenant)
    """,
    "app/main.py": """
        from agent_brain.experiments import Experiment
        from app.memories import short
        from app.states import answering
        from app.tasks import TASKS

        def make(**options):
            given = {"nets": {"mine": answering}, "memories": {"short": short}, "tasks": TASKS}
            return Experiment(**given, models="demo", **options)
    """,
}


def write(folder: Path, *edits: tuple[str, str, str]) -> Path:
    """Write the program, with changes: a file, a text in it, and what replaces it."""
    texts = {name: dedent(text) for name, text in APP.items()}
    for name, before, after in edits:
        assert texts[name].count(before) == 1
        texts[name] = texts[name].replace(before, after)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Have modules of the program imported anew by each test, and forgotten after it."""
    yield monkeypatch
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "app"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def made(folder: Path, fresh: pytest.MonkeyPatch, **options: str) -> dict[str, str]:
    """Return the ID of the case of each task, as a program in this folder makes it."""
    forget()
    with fresh.context() as patch:
        patch.syspath_prepend(folder)
        experiment: Experiment = importlib.import_module("app.main").make(**options)
        return {case.task.id: case.id for case in experiment.plan().cases}


ALL = {"check", "tool", "form", "prepared"}


@pytest.mark.parametrize(
    ("edit", "again"),
    [
        pytest.param(("app/states.py", "= greet(self.closing)", "= greet('')"), ALL, id="run"),
        pytest.param(("app/states.py", 'closing = "Bye"', 'closing = "So long"'), ALL, id="base"),
        pytest.param(("app/states.py", "ValueError", "KeyError"), ALL, id="except"),
        pytest.param(("app/states.py", '"in short"', '"at length"'), ALL, id="value of an Enum"),
        pytest.param(("app/states.py", 'style="kind"', 'style="rude"'), ALL, id="default"),
        pytest.param(("app/states.py", ".upper()", ".lower()"), ALL, id="constructor"),
        pytest.param(("app/helpers.py", "{name} {deep", "{name}{deep"), ALL, id="helper"),
        pytest.param(("app/texts.py", '"Hello"', '"Dear"'), ALL, id="constant of a module"),
        pytest.param(("app/texts.py", '["a"', '["A"'), ALL, id="value in a dict"),
        pytest.param(("app/texts.py", '"one"', '"two"'), ALL, id="Enum in a set"),
        pytest.param(("app/texts.py", '("y", 1)', '("y", 2)'), ALL, id="tuple in a set"),
        pytest.param(("app/inner.py", 'return "odd" if', 'return "ODD" if'), ALL, id="recursion"),
        pytest.param(("app/inner.py", 'DOT = "."', 'DOT = "!"'), ALL, id="decorator's global"),
        pytest.param(("app/lazy.py", "'late'", "'later'"), ALL, id="import in a function"),
        pytest.param(("app/memories.py", "SIZE = 5", "SIZE = 6"), ALL, id="memory"),
        pytest.param(("app/tasks.py", "LEAST = 3", "LEAST = 4"), {"check"}, id="check's constant"),
        pytest.param(("app/tasks.py", "answer) >=", "answer) >"), {"check"}, id="check"),
        pytest.param(("app/tasks.py", '"lamp": 12', '"lamp": 13'), {"tool"}, id="tool's data"),
        pytest.param(("app/tasks.py", "how many", "how few"), {"tool"}, id="tool's docstring"),
        pytest.param(
            ("app/tasks.py", "item: str) -> int", "item: int) -> int"), {"tool"}, id="tool"
        ),
        pytest.param(("app/tasks.py", "item: str\n", "item: int\n"), {"form"}, id="field"),
        pytest.param(("app/tasks.py", "value.lower()", "value.upper()"), {"form"}, id="validator"),
        pytest.param(("app/tasks.py", "limit: int = 5", "limit: int = 6"), {"form"}, id="deps"),
        pytest.param(("app/tasks.py", "return [1]", "return [2]"), {"form"}, id="default factory"),
        pytest.param(("app/tasks.py", "return None", "return 1"), {"prepared"}, id="prepare"),
        pytest.param(("app/helpers.py", "# a comment\n", "# another\n\n\n"), set(), id="comment"),
        pytest.param(("app/helpers.py", "return 1", "return 2"), set(), id="function not used"),
        pytest.param(("app/texts.py", '"not used"', '"changed"'), set(), id="constant not used"),
        pytest.param(
            ("app/texts.py", "polite = True", "polite = False"), set(), id="class not used"
        ),
        pytest.param(("app/states.py", 'style="plain"', 'style="rude"'), set(), id="another net"),
    ],
)
def test_cases_that_use_changed_code_are_run_again(
    tmp_path: Path, fresh: pytest.MonkeyPatch, edit: tuple[str, str, str], again: set[str]
) -> None:
    before = made(write(tmp_path / "before"), fresh)
    after = made(write(tmp_path / "after", edit), fresh)

    assert {task for task in after if after[task] != before[task]} == again


PROGRAM = """
    import sys
    from app.main import make
    report = make(repeat=2).run_sync("results")
    print(report.cases[0].answer)
"""


def run(folder: Path, *command: str, seed: str = "0") -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": "."},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines(folder: Path) -> int:
    return len((folder / "results" / "cases.jsonl").read_text().splitlines())


@pytest.mark.thorough
def test_another_process_notices_an_edited_file(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "program.py").write_text(dedent(PROGRAM))

    assert run(tmp_path, "program.py", seed="1") == "Hello Bye odd. alatein short\n"
    assert run(tmp_path, "program.py", seed="2") == "Hello Bye odd. alatein short\n"
    assert lines(tmp_path) == 8  # nothing was run again
    write(tmp_path, ("app/texts.py", '"Hello"', '"Good evening"'))
    assert run(tmp_path, "program.py", seed="3") == "Good evening Bye odd. alatein short\n"
    assert lines(tmp_path) == 16


FILE = """
    nets = ["app/states.py:answering"]
    memories = ["app.memories:short"]
    models = ["demo"]
    tools = ["app/tasks.py:in_stock"]
    tasks = ["app.tasks:CHECKED"]
"""


def test_the_command_notices_an_edited_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        ("app/tasks.py", "TASKS = [", "CHECKED = [Task(id='c', turns='?', expected=1)]\nTASKS = ["),
    )
    (tmp_path / "compare.toml").write_text(dedent(FILE))
    command = ("-m", "agent_brain", "compare", "compare.toml", "--folder", "results")

    run(tmp_path, *command, "--quiet")
    assert "1 done, 0 to run" in run(tmp_path, *command, "--plan", seed="7")
    stock = tmp_path / "app" / "tasks.py"
    stock.write_text(stock.read_text().replace('"lamp": 12', '"lamp": 13'))
    assert "0 done, 1 to run" in run(tmp_path, *command, "--plan")


UNKNOWN = """
    import importlib, os
    from os import environ
    from pathlib import Path
    from agent_brain import react

    def from_file(llm):
        return react(llm, prompt=Path("prompt.txt").read_text())

    def from_environment(llm):
        return react(llm, prompt=os.environ["PROMPT"])

    def from_imported(llm):
        return react(llm, prompt=environ["PROMPT"])

    def by_name(llm):
        return importlib.import_module("app.states").plain(llm)

    class Reader:
        def read_text(self):
            return "x"

    def known(llm):
        reader = Reader()
        return react(llm, prompt=getattr(reader, "text", "Be brief."))
"""


@pytest.mark.parametrize(
    ("net", "said"),
    [
        ("from_file", "from_file reads files"),
        ("from_environment", "from_environment reads the environment"),
        ("from_imported", "from_imported reads the environment"),
        ("by_name", "by_name imports by name"),
        ("known", None),
    ],
)
def test_the_report_says_what_is_not_noticed(
    tmp_path: Path, fresh: pytest.MonkeyPatch, net: str, said: str | None
) -> None:
    write(tmp_path)
    (tmp_path / "prompt.txt").write_text("Be brief.")
    (tmp_path / "app" / "unknown.py").write_text(dedent(UNKNOWN))
    fresh.syspath_prepend(tmp_path)
    fresh.chdir(tmp_path)
    fresh.setenv("PROMPT", "Be brief.")
    module = importlib.import_module("app.unknown")
    tasks = importlib.import_module("app.tasks").TASKS[:1]

    def report(version: str | None) -> Report:
        options = {"nets": getattr(module, net), "models": "demo", "tasks": tasks}
        return Experiment(**options, version=version).run_sync(tmp_path / "results")

    told = [one for one in report(None).warnings if "is not noticed" in one]
    assert [str(said) in one for one in told] == ([True] if said else [])
    assert not [one for one in report("1").warnings if "is not noticed" in one]
    assert load_report(tmp_path / "results").info.version == "1"
    assert "- Version: 1" in report("1").to_markdown()
    assert lines(tmp_path) == 2


def test_another_version_runs_all_cases_again(tmp_path: Path, fresh: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path)
    first, second = made(folder, fresh, version="1"), made(folder, fresh, version="2")

    assert not set(first.values()) & set(second.values())
    assert made(folder, fresh, version="1") == first
