"""``agent-brain compare``: what it runs, keeps, prints and answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_brain.memories.errors import JournalError
from tests.cli.comparing import LEAST, MODELS, TASKS, calls, compare
from tests.cli.support import run


def test_it_prints_a_table_and_writes_the_reports_beside_the_file(folder: Path) -> None:
    done = compare(folder)

    assert done.exit_code == 0
    results = folder / "compare-results"
    assert "1/2" in done.stdout
    assert done.stdout.endswith(f"{results / 'report.md'}\n{results / 'report.html'}\n")
    assert "| react |" in (results / "report.md").read_text()
    assert "<html" in (results / "report.html").read_text()
    assert done.stderr.splitlines()[0].startswith("0 of 2 cases, 0 of 1 cell complete, 0 passed")
    assert done.stderr.splitlines()[-1].startswith("2 of 2 cases, 1 of 1 cell complete, 1 passed")


def test_json_has_the_figures_and_quiet_shows_no_progress(folder: Path) -> None:
    done = compare(folder, "--json", "--quiet", "--folder", str(folder / "kept" / "here"))

    found = json.loads(done.stdout)
    assert done.stderr == ""
    assert (found["name"], found["tasks"], found["missing"]) == ("compare", 2, 0)
    assert found["folder"] == str(folder / "kept" / "here")
    [cell] = found["cells"]
    assert (cell["cell"], cell["passed"], cell["cases"]) == ("react/messages/parrot", 1, 2)
    assert cell["outcomes"] == {"passed": 1, "wrong": 1}
    assert (folder / "kept" / "here" / "cases.jsonl").is_file()


def test_json_has_the_comparisons(folder: Path) -> None:
    both = LEAST.replace('nets = "react"', 'nets = ["react", "self_consistency"]')
    done = compare(folder, "--json", "--quiet", text=both)

    [found] = json.loads(done.stdout)["comparisons"]
    assert (found["a"], found["b"]) == ("self_consistency/messages/parrot", "react/messages/parrot")
    assert found["significant"] is False
    assert "passed 1 of 2" in found["sentence"]


def test_a_plan_runs_and_writes_nothing(folder: Path) -> None:
    before = sorted(folder.iterdir())
    done = compare(folder, "--plan", text=f"repeat = 2\n{LEAST}")

    assert done.exit_code == 0
    assert "react/messages/parrot  4 cases\n4 cases: 0 done, 4 to run\nAt most $0.00" in done.stdout
    assert [path for path in sorted(folder.iterdir()) if path.name != "__pycache__"] == before
    assert calls(folder) == []


def test_a_file_may_begin_with_a_byte_order_mark(folder: Path) -> None:
    (folder / "tasks.json").write_text(
        '[{"id": "sum", "turns": "17 + 25?", "expected": 42}]', "utf-8-sig"
    )
    done = compare(folder, "--plan", text="\ufeff" + LEAST.replace(TASKS, 'tasks = "tasks.json"'))

    assert done.exit_code == 0
    assert "1 case: 0 done" in done.stdout


def test_a_plan_counts_what_is_kept(folder: Path) -> None:
    compare(folder)

    assert (
        "4 cases: 2 done, 2 to run" in compare(folder, "--plan", text=f"repeat = 2\n{LEAST}").stdout
    )


def test_a_plan_is_of_the_chosen_cells(folder: Path) -> None:
    both = LEAST.replace('"react"', '["react", "self_consistency"]')
    compare(folder, "--only", "react", text=both)

    def planned(*options: str) -> str:
        return compare(folder, "--plan", *options, text=both).stdout

    assert "\n4 cases: 2 done, 2 to run" in planned()
    assert "\n4 cases: 0 done, 4 to run" in planned("--fresh")
    assert "\n2 cases: 0 done, 2 to run" in planned("--fresh", "--only", "react")
    only = planned("--only", "self_*")
    assert "\n2 cases: 0 done, 2 to run" in only
    assert "react" not in only
    assert compare(folder, "--plan", "--only", "raect").exit_code == 2
    assert json.loads(planned("--json")) == {
        "cells": ["react/messages/parrot", "self_consistency/messages/parrot"],
        "cases": 4,
        "done": 2,
        "max_cost": 0.0,
        "unpriced": [],
    }


def test_what_is_kept_is_not_run_again_unless_asked_for(folder: Path) -> None:
    assert compare(folder).exit_code == 0
    assert len(calls(folder)) == 2
    assert "1/2" in compare(folder).stdout
    assert len(calls(folder)) == 2
    assert compare(folder, "--fresh").exit_code == 0
    assert len(calls(folder)) == 4


def test_cases_that_ended_in_some_way_are_done_again(folder: Path) -> None:
    assert compare(folder).exit_code == 0
    assert "1 done, 1 to run" in compare(folder, "--plan", "--again", "wrong").stdout
    assert compare(folder, "--again", "wrong", "--again", "rate-limited").exit_code == 0
    assert len(calls(folder)) == 3
    refused = compare(folder, "--again", "lost")
    assert (refused.exit_code, len(calls(folder))) == (2, 3)
    assert "--again 'lost': the outcomes are passed, wrong, " in refused.stderr


def test_only_the_chosen_cells_are_run(folder: Path) -> None:
    both = LEAST.replace('"react"', '["react", "self_consistency"]')
    done = compare(folder, "--only", "react/*", text=both)

    assert done.exit_code == 0
    assert len(calls(folder)) == 2
    assert "not run" in done.stdout
    assert compare(folder, "--only", "raect").exit_code == 2


@pytest.mark.parametrize(
    ("least", "code", "said"),
    [
        ("react/messages=0.5", 0, ""),
        ("0.5", 0, ""),
        ("react/messages=0.8", 1, "react/messages/parrot passed 1 of 2: 0.5 is below 0.8"),
        ("1", 1, "react/messages/parrot passed 1 of 2: 0.5 is below 1"),
        ("react/vector=0.5", 2, "no cell is 'react/vector'"),
        ("react", 2, "write CELL=RATE"),
        ("react/messages=80", 2, "write CELL=RATE"),
        ("react/messages=nan", 2, "write CELL=RATE"),
    ],
)
def test_a_rate_may_be_asked_for(folder: Path, least: str, code: int, said: str) -> None:
    done = compare(folder, "--quiet", "--fail-under", least)

    assert done.exit_code == code
    assert said in done.stderr
    assert bool(calls(folder)) == (code != 2), "mistakes are found before anything is run"


def test_a_rate_of_cases_that_were_not_run_is_not_reached(folder: Path) -> None:
    both = LEAST.replace('"react"', '["react", "self_consistency"]')
    done = compare(folder, "--only", "react", "--fail-under", "self_consistency=0", text=both)

    assert done.exit_code == 1
    assert "self_consistency/messages/parrot did 0 of 2 cases" in done.stderr


def test_a_budget_that_is_used_up_is_told(folder: Path) -> None:
    done = compare(folder, text=f"max_seconds = 1e-9\n{LEAST}")

    assert done.exit_code == 3
    assert "Stopped: 2 cases not run" in done.stderr
    assert compare(folder, text=LEAST).exit_code == 0


def test_a_budget_that_is_used_up_before_the_chosen_cells_are_done_is_told(folder: Path) -> None:
    both = LEAST.replace('"react"', '["react", "self_consistency"]')
    done = compare(folder, "--only", "react", text=f"max_seconds = 1e-9\n{both}")

    assert done.exit_code == 3
    assert "Stopped: 2 cases not run" in done.stderr
    assert compare(folder, "--only", "react", text=both).exit_code == 0


def test_the_first_crash_is_told_at_once(folder: Path) -> None:
    text = LEAST.replace('models = "models.py:parrot"\n', "")
    done = compare(folder, text=f"{text}\n[models.bad]\nmodel = 'models.py:Parrot'\nname = 'fail'")

    assert done.exit_code == 0
    notes = [line for line in done.stderr.splitlines() if line.startswith("Note: ")]
    assert len(notes) == 1
    assert notes[0].endswith("ValueError: no parrot")


def test_paths_and_modules_are_found_from_the_folder_of_the_file(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "own").mkdir()
    (folder / "own" / "net.toml").write_text('net = "react"\n')
    (folder / "own" / "tasks.jsonl").write_text('{"id": "a", "turns": "hi", "expected": "hi"}\n')
    (folder / "parrots.py").write_text(MODELS)
    text = """
        nets = "own/net.toml"
        tools = ["models.py:number_of_letters"]
        [memories.short]
        memory = "windowed"
        max_messages = 4
        [models.rules]
        model = "rule-based"
        slip = 0.0
        [models.own]
        model = "parrots:Parrot"
        name = "Polly"
        [tasks.own]
        set = "own/tasks.jsonl"
        [tasks.more]
        set = "models.py:my_tasks"
        n = 2
    """
    done = compare(folder, "--json", text=text)

    assert done.exit_code == 0
    cells = json.loads(done.stdout)["cells"]
    assert [cell["cell"] for cell in cells] == ["net/short/rules", "net/short/own"]
    assert (cells[1]["passed"], cells[1]["cases"]) == (3, 3)


def test_a_set_of_tasks_has_options(folder: Path) -> None:
    text = 'nets = "react"\nmodels = "rule-based"\n[tasks.basics]\nn = 1\nseed = 5'
    done = compare(folder, "--json", "--quiet", text=text)

    assert [cell["passed"] for cell in json.loads(done.stdout)["cells"]] == [1]


NAMED = 'models = "demo"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nets = 'raect'\n" + TASKS, "  - nets['raect']: There is no net named 'raect'"),
        ("nets = 'missing.toml'\n" + TASKS, "there is no file"),
        (
            "nets = 'models.py:my_task'\n" + TASKS,
            "there is no 'my_task' in it. Did you mean 'my_tasks'?",
        ),
        ("nets = 'missing.py:net'\n" + TASKS, "there is no file"),
        ("nets = 'missing_module:net'\n" + TASKS, "No module named 'missing_module'"),
        (
            TASKS + "[nets.react]\nmax_step = 3",
            "  - nets['react']: Net 'react': there is no option",
        ),
        (TASKS + "[nets.reflexion]\nattempts = 0", "nets['reflexion']: "),
        (
            "nets = 'models.py:number_of_letters'\n" + TASKS,
            "nets['number_of_letters']: TypeError: ",
        ),
        (
            "nets = 'react'\n" + TASKS + "[models.rule-based]\nslip = 'x'",
            "models['rule-based']: RuleBasedLLM(slip=",
        ),
        ("nets = 'react'\nmemories = 'vectr'\n" + TASKS, "Did you mean 'vector'?"),
        (
            "nets = 'react'\n" + TASKS + "[memories.windowed]\nmax_mesages = 3",
            "Did you mean 'max_messages'?",
        ),
        (
            "nets = 'react'\n" + TASKS + "[memories.windowed]\nmax_messages = -3",
            "memories['windowed']: ",
        ),
        (
            "nets = 'react'\n" + TASKS + "[memories.messages]\njournal = 'x'",
            "leave journal to the experiment",
        ),
        ("nets = 'react'\nmodels = ''\n" + TASKS, "models: '' is not a name"),
        (
            "nets = 'react'\n" + TASKS + "[models.demo]\nslip = 1",
            "models['demo']: there is no option 'slip'",
        ),
        (
            "nets = 'react'\n" + TASKS + "[models.rule-based]\nslip = 2",
            "models['rule-based']: RuleBasedLLM(slip=2)",
        ),
        (
            "nets = 'react'\n" + TASKS + "[models.mini]\nmodel = 'openai/x'\nretries = -1",
            "models['mini']: ",
        ),
        (
            "nets = 'react'\n" + TASKS + "[models.mini]\nmodel = 'openai/x'\ntemperatur = 0",
            "models['mini']: there is no option 'temperatur'. Did you mean 'temperature'?",
        ),
        ("nets = 'react'\nmodels = 'models.py:my_tasks'\n" + TASKS, "which is not a model"),
        (
            "nets = 'react'\nmodels = 'models.py:number_of_letters'\n" + TASKS,
            "models['number_of_letters']: TypeError: ",
        ),
        ("nets = 'react'\ntasks = 'basic'", "tasks: 'basic' names no tasks"),
        ("nets = 'react'\ntasks = 'missing.jsonl'", "missing.jsonl cannot be read"),
        ("nets = 'react'\n[tasks.basics]\nsize = 3", "tasks.basics: "),
        ("nets = 'react'\n[tasks.basics]\nn = 0", "tasks.basics: "),
        ("nets = 'react'\ntasks = ['basics', 'models.py:number_of_letters']", "tasks: "),
        ("nets = 'react'\n[[tasks]]\nid = 'a'\nturn = 'b'", "task 1"),
        ("nets = 'react'\ntools = ['models.py:parrot']\n" + TASKS, "tools: "),
        ("nets = 'react'\nbase = ''\n" + TASKS, "base='': no cell is ''"),
        ("nets = 'react'\nbase = 3\n" + TASKS, "base=3: 3 is not a cell: give a text"),
        ("nets = 'react'\nbase = 'react/vector'\n" + TASKS, "no cell is 'react/vector'"),
        ("nets = 'react'\nmodel_at_once = { x = 1 }\n" + TASKS, "model_at_once has 'x'"),
        (
            "nets = 'react'\ntasks = ['models.py:my_tasks', 'models:my_tasks']",
            "two are named 'my_tasks'",
        ),
        (
            "nets = 'react'\n[tasks.a]\nset='models.py:my_tasks'\n[tasks.b]\nset='models.py:my_tasks'",
            "two of the ID",
        ),
    ],
)
def test_what_a_file_names_must_be_there(folder: Path, text: str, message: str) -> None:
    done = compare(folder, text=text)

    assert done.exit_code == 2
    assert f"{folder / 'compare.toml'} is not an experiment:\n  - " in done.stderr
    assert message in done.stderr
    assert not (folder / "compare-results").exists()


def test_everything_that_is_not_there_is_listed_at_once(folder: Path) -> None:
    text = """
repeat = 0
seeds = 3
nets = ["raect", "react"]
memories = "vectr"
models = ["models.py:x", "gpt5-mini", "opanai/gpt-5"]
tasks = "basic"
"""
    said = compare(folder, text=text).stderr.splitlines()

    assert [line.split(":")[0] for line in said if line.startswith("  - ")] == [
        "  - repeat=0",
        "  - seeds",
        "  - nets['raect']",
        "  - memories['vectr']",
        "  - models['x']",
        "  - models['gpt5-mini']",
        "  - models['opanai/gpt-5']",
        "  - tasks",
    ]


def test_a_folder_that_cannot_be_used_is_a_mistake(folder: Path) -> None:
    (folder / "compare-results").write_text("a file")

    done = compare(folder)
    assert done.exit_code == 2
    assert "compare-results" in done.stderr


def test_a_full_disk_is_no_mistake_of_the_user(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(store: object, *_: object) -> None:
        raise JournalError("The journal has no room")

    monkeypatch.setattr("agent_brain.experiments.store.Store.keep", full)
    done = compare(folder)

    assert done.exit_code == 1
    assert done.stderr.endswith("Error: The journal has no room\n")


def test_a_damaged_line_is_named(folder: Path) -> None:
    compare(folder)
    kept = folder / "compare-results" / "cases.jsonl"
    lines = kept.read_text().splitlines()
    kept.write_text(f"{lines[0][:40]}\n{lines[1]}\n")

    done = compare(folder)
    assert done.exit_code == 2
    assert "line 1 is damaged" in done.stderr
    assert compare(folder, "--fresh").exit_code == 0


def test_the_command_runs_as_a_process_and_keeps_stdout_clean(folder: Path) -> None:
    done = run("compare", "compare.toml", "--json", cwd=folder)

    assert done.returncode == 0
    assert json.loads(done.stdout)["cells"][0]["passed"] == 1
