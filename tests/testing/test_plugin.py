"""The pytest plugin, in test suites of its own."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import anyio.pytest_plugin
import pytest

import agent_brain.experiments
import agent_brain.testing.plugin

# pytester forgets every module that a suite has loaded: what the suites share is loaded before.
for package in (agent_brain.testing, agent_brain.experiments):
    for name in dir(package):
        getattr(package, name)

pytest_plugins = ["pytester"]

CASSETTE = """
    import pytest
    from agent_brain import Message
    from agent_brain.testing import CassetteLLM, ScriptedLLM

    @pytest.mark.anyio
    async def test_talk(cassette):
        llm = CassetteLLM(ScriptedLLM(["real"]))
        assert [p async for p in llm.stream([Message.user("Hi")])] == ["real"]
"""
REAL = """
    import pytest
    from agent_brain.states.models.interception import about_to_call

    def test_unmarked():
        about_to_call("openai/gpt")

    @pytest.mark.real_models
    def test_marked():
        about_to_call("openai/gpt")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty test suite, in which no plugin is loaded because it is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\naddopts = -W error --strict-markers")
    return pytester


def run(suite: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run the suite with this plugin and anyio's."""
    plugins = [agent_brain.testing.plugin, anyio.pytest_plugin]
    return suite.runpytest_inprocess(*options, plugins=plugins)


def test_fixtures_make_models_and_memories(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest
        from agent_brain import react
        from agent_brain.testing import run_net

        @pytest.mark.anyio
        async def test_a_net(scripted_llm, fake_memory):
            memory = fake_memory("What is it?")
            run = await run_net(react(scripted_llm([["It ", "is."]])), memory)
            assert run.text == "It is."
            assert [type(m).__name__ for m in (memory,)] == ["FakeMemory"]
        """
    )
    run(suite).assert_outcomes(passed=2)


def test_unused_turns_fail_a_passed_test(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        def test_too_many(scripted_llm):
            scripted_llm(["never asked"])

        def test_meant(scripted_llm):
            scripted_llm(["never asked"], complete=False)

        def test_failed_already(scripted_llm):
            scripted_llm(["never asked"])
            assert False
        """
    )
    result = run(suite)
    result.assert_outcomes(passed=2, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*ScriptError: The script has 1 turns*called only*0 times*"])


# --- cassettes ---


def test_a_missing_cassette_says_how_to_record_it(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=CASSETTE)
    result = run(suite)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        [
            "There is no cassette cassettes?test_it.test_talk.json: record it with 'pytest --cassette=record*"
        ]
    )


def test_a_cassette_is_recorded_beside_the_test_and_then_replayed(suite: pytest.Pytester) -> None:
    suite.makepyfile(**{"deep/test_it": CASSETTE})
    run(suite, "--cassette=record", "-k", "asyncio").assert_outcomes(passed=1, deselected=1)
    path = suite.path / "deep" / "cassettes" / "test_it.test_talk.json"
    data = json.loads(path.read_text())
    data["calls"][0]["response"] = [{"text": "replayed"}]
    path.write_text(json.dumps(data))
    test = suite.path / "deep" / "test_it.py"
    test.write_text(test.read_text().replace('== ["real"]', '== ["replayed"]'))
    run(suite).assert_outcomes(passed=2)
    run(suite, "--cassette=auto").assert_outcomes(passed=2)
    run(suite, "--cassette=record").assert_outcomes(failed=2)


def test_each_test_has_a_file_of_its_own(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_it="""
        import pytest

        class TestThem:
            @pytest.mark.parametrize("x", ["a/b", "c"])
            def test_one(self, cassette, x):
                assert cassette.mode == "record"

        @pytest.mark.cassette(name="shared.json", match="request", scrub=["x"])
        def test_two(cassette):
            assert cassette.path.name == "shared.json"
        """
    )
    run(suite, "--cassette=record").assert_outcomes(passed=3)
    assert names(suite) == [
        "shared.json",
        "test_it.TestThem.test_one[a_b].json",
        "test_it.TestThem.test_one[c].json",
    ]


def names(suite: pytest.Pytester) -> list[str]:
    return sorted(path.name for path in Path(suite.path, "cassettes").iterdir())


def test_a_test_that_fails_records_nothing(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_it(cassette): assert False")
    run(suite, "--cassette=record").assert_outcomes(failed=1)
    assert not (suite.path / "cassettes").exists()


def test_recorded_calls_that_are_not_made_fail_the_test(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=CASSETTE)
    run(suite, "--cassette=record").assert_outcomes(passed=2)
    suite.makepyfile(test_it="def test_talk(cassette): pass")
    result = run(suite)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*1 of them were not made:", "*user: Hi"])


# --- real models ---


def test_nothing_is_forbidden_unless_asked_for(suite: pytest.Pytester) -> None:
    suite.makepyfile(REAL)
    run(suite).assert_outcomes(passed=2)
    result = run(suite, "--setup-plan")
    assert "agent_brain" not in result.stdout.str()


def test_the_switch_forbids_real_models_but_in_marked_tests(suite: pytest.Pytester) -> None:
    suite.makepyfile(REAL)
    result = run(suite, "--real-models=forbid")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*RealModelError: The real model 'openai/gpt'*"])


def test_a_project_may_forbid_and_a_command_allow(suite: pytest.Pytester) -> None:
    suite.makepyfile(REAL)
    forbid = ("-o", "agent_brain_real_models=forbid")
    run(suite, *forbid).assert_outcomes(passed=1, failed=1)
    run(suite, *forbid, "--real-models=allow").assert_outcomes(passed=2)


def test_a_wrong_setting_is_explained(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_it(): pass")
    result = run(suite, "-o", "agent_brain_real_models=never")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*agent_brain_real_models = 'never'*'forbid' or 'allow'*"])


def test_fixtures_of_a_test_are_forbidden_real_models_too(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest
        from agent_brain.states.models.interception import about_to_call

        @pytest.fixture
        def early():
            about_to_call("openai/gpt")

        def test_it(early): pass
        """
    )
    run(suite, "--real-models=forbid").assert_outcomes(errors=1)


def test_real_models_are_allowed_while_recording(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=CASSETTE)
    run(suite, "--real-models=forbid", "--cassette=record").assert_outcomes(passed=2)
    run(suite, "--real-models=forbid").assert_outcomes(passed=2)


# --- in suites that have nothing to do with it ---


def test_it_does_not_affect_other_suites(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import sys

        def test_nothing_was_imported():
            loaded = [name for name in sys.modules if name.startswith("agent_brain.")]
            lazy = ["agent_brain.common", "agent_brain.common.lazy_exports"]
            assert sorted(loaded) == [*lazy, "agent_brain.testing", "agent_brain.testing.plugin"]
            assert "pydantic" not in sys.modules
        """
    )
    suite.makefile(".txt", test_doc=">>> 1 + 1\n2\n")
    suite.plugins = ["agent_brain.testing.plugin"]
    result = suite.runpytest_subprocess("--real-models=allow", "--doctest-glob=*.txt")
    result.assert_outcomes(passed=2)


def test_its_options_are_documented(suite: pytest.Pytester) -> None:
    result = run(suite, "--help")
    result.stdout.fnmatch_lines(["Agent Brain:", "*--cassette=*", "*--real-models=*"])
    run(suite, "--markers").stdout.fnmatch_lines(["*real_models: this test may call*"])


# --- experiments ---

EXPERIMENT = """
    import pytest
    from agent_brain.experiments import Task

    TASKS = [Task(id="sum", turns="What is 17 + 25?", expected=42)]

    @pytest.mark.anyio
    async def test_sums(experiment):
        report = await experiment(nets="react", models="rule-based", tasks=TASKS)
        assert report.cell("react", "messages").passed.low > {least}
        assert (experiment.folder / "1" / "report.html").is_file()

    def test_sums_without_a_loop(experiment):
        for number in (1, 2):
            report = experiment.run_sync(nets="react", models="rule-based", tasks=TASKS)
            assert report.folder == experiment.folder / str(number)
        assert experiment.reports[-1] is report
"""


def test_experiments_run_in_the_folder_of_the_test(suite: pytest.Pytester) -> None:
    suite.makepyfile(EXPERIMENT.format(least=0.1))
    result = run(suite)
    result.assert_outcomes(passed=3)
    assert "1/1" not in result.stdout.str()


def test_a_failed_test_shows_the_reports_of_its_experiments(suite: pytest.Pytester) -> None:
    suite.makepyfile(EXPERIMENT.format(least=0.99))
    result = run(suite, "-k", "asyncio")
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(
        ["*- experiment experiment -*", "*| 1/1 |*", "*experiments/1/report.html"]
    )


def test_experiments_are_kept_and_continued_in_a_folder(
    suite: pytest.Pytester, tmp_path: Path
) -> None:
    suite.makepyfile(test_it=EXPERIMENT.format(least=0.1))
    kept = ("--experiment-folder", str(tmp_path / "kept"), "-k", "asyncio")
    run(suite, *kept).assert_outcomes(passed=1, deselected=2)
    cases = tmp_path / "kept" / "test_it.test_sums[asyncio]" / "1" / "cases.jsonl"
    before = cases.read_bytes()
    run(suite, *kept).assert_outcomes(passed=1, deselected=2)
    assert cases.read_bytes() == before


def test_a_kept_experiment_is_run_again_after_its_code_has_changed(
    suite: pytest.Pytester, tmp_path: Path
) -> None:
    code = """
        from agent_brain import Memory, Message, Net, State
        from enum import Enum

        class Step(Enum):
            SAY = 1

        class Say(State):
            async def run(self, memory: Memory):
                yield "{said}"
                await memory.update([Message.assistant("{said}")])

            async def next_state(self, memory: Memory) -> None:
                return None

        def saying(llm):
            return Net({{Step.SAY: Say()}})
    """
    test = """
        from agent_brain.experiments import Task
        from states_of_mine import saying

        def test_it(experiment):
            task = Task(id="t", turns="?", expected="right")
            assert experiment.run_sync(nets=saying, models="demo", tasks=task).cases[0].passed
    """
    suite.makepyfile(test_it=test)
    kept = ("--experiment-folder", str(tmp_path / "kept"))
    for said, outcome in (("right", "passed"), ("something else", "failed")):
        suite.makepyfile(states_of_mine=code.format(said=said))
        run(suite, *kept).assert_outcomes(**{outcome: 1})


def test_each_test_keeps_its_experiments_in_a_folder_of_its_own(
    suite: pytest.Pytester, tmp_path: Path
) -> None:
    test = """
        import pytest
        from agent_brain.experiments import Task

        @pytest.mark.parametrize("word", ["a|b", "a_b", "long" * 70])
        def test_it(experiment, word):
            task = Task(id="sum", turns="What is 17 + 25?", expected=42)
            experiment.run_sync(nets="react", models="rule-based", tasks=[task])
    """
    for folder in ("one", "two"):
        suite.mkpydir(folder)
        (suite.path / folder / "test_same.py").write_text(dedent(test))
    kept = tmp_path / "kept"
    run(suite, "--experiment-folder", str(kept)).assert_outcomes(passed=6)

    assert len([*kept.rglob("cases.jsonl")]) == 6
    assert (kept / "one" / "test_same.test_it[a_b]" / "1" / "report.md").is_file()
