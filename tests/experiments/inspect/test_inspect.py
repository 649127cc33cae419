"""A Brain as an agent of Inspect, and nets over its models, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.thorough,  # the program that they look at takes ten seconds
    pytest.mark.skipif(  # it takes seconds to import, which only the program does
        find_spec("inspect_ai") is None,
        reason="needs inspect-ai: pip install 'agent-brain[inspect]'",
    ),
]

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[str, Any]:
    """What evaluations came to; all run in one process, as Inspect takes seconds to load."""
    folder = tmp_path_factory.mktemp("inspect")
    command = [sys.executable, "-m", "tests.experiments.inspect.program", str(folder / "logs")]
    environment = {**os.environ, "INSPECT_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture
def answered(found) -> dict[str, Any]:
    return dict(found["answered"])


def test_the_answer_is_scored(answered):
    assert (answered["status"], answered["error"]) == ("success", None)
    assert (answered["score"], answered["answer"]) == ("C", "It is 391.")
    assert answered["metadata"]["stop_reason"] == "done"
    assert answered["metadata"]["steps"] == 4


def test_the_transcript_has_states_and_calls(answered):
    assert answered["states"] == ["REASONING", "ACTION", "REASONING", "ANSWER"]
    assert answered["calls"] == [["multiply", {"a": 17, "b": 23}, "391", False, None]]
    assert answered["model calls"] == [[2, ["multiply"], None], [4, ["multiply"], None]]


def test_the_messages_are_those_of_the_turn(answered):
    assert answered["messages"] == [
        ["user", "What is 17 times 23?"],
        ["assistant", "Let me see. "],
        ["tool", "391"],
        ["assistant", "It is 391."],
    ]


def test_what_was_said_before_is_in_the_memory(found):
    talked = found["conversation"]
    assert talked["messages"] == [
        ["system", "Answer in digits."],
        ["user", "Hello"],
        ["assistant", "Hi"],
        ["user", "What is 17 times 23?"],
        ["assistant", "391"],
    ]
    assert talked["model calls"][0][0] == 4  # the instructions are part of the prompt


def test_a_sample_without_a_message_of_a_user_is_an_error(found):
    assert "no message of a user" in found["without a goal"]["error"]


def test_a_limit_of_the_brain_ends_the_run(found):
    limited = found["own limit"]
    assert limited["error"] is None
    assert limited["metadata"]["stop_reason"] == "max_steps"
    assert limited["score"] == "I"


def test_a_limit_of_inspect_ends_the_sample(found):
    limited = found["message limit"]
    assert (limited["limit"], limited["error"]) == ("message", None)
    assert limited["score"] is not None


def test_an_error_of_the_run_is_one_of_the_sample(found):
    failed = found["failed"]
    assert "the model broke" in failed["error"]
    assert ["tool", "391"] in failed["messages"]


def test_a_call_that_fails_is_marked(found):
    ((name, _, _, failed, pending),) = found["failed call"]["calls"]
    assert (name, failed, pending) == ("multiply", True, None)


def test_a_run_that_waits_is_an_error(found):
    assert "waits for approval" in found["waits"]["error"]


def test_responses_come_from_inspects_cache(found):
    assert found["cached"]["answer"] == "391"
    assert [call[2] for call in found["cached"]["model calls"]] == ["read"]


def test_usage_and_data_of_the_provider_make_the_round(found):
    thought = found["thinking"]
    assert thought["sent back"] == {"provider_data": {"signature": "abc"}}
    (usage,) = thought["usage"].values()
    assert usage["input_tokens"] == 140
    assert usage["input_tokens_cache_read"] == 60
    assert usage["output_tokens"] == 40
    spent = thought["metadata"]["usage"]
    assert (spent["input_tokens"], spent["cached_tokens"], spent["cost"]) == (200, 60, 1.0)


def test_a_model_of_litellm_is_called(found):
    called = found["over http"]
    assert (called["error"], called["answer"], called["temperature"]) == (None, "391", 0.25)


def test_messages_keep_what_they_have(found):
    assert found["messages"] == [
        ["system", "Be brief.", [], False, 0],
        ["user", "Look", ["image/png", "audio/wav", "application/pdf"], False, 0],
        ["assistant", "Hm", [], False, 2],
        ["tool", "391", [], False, 0],
        ["tool", "It failed", [], True, 0],
    ]


def test_schemas_have_no_references(found):
    place = found["schema"]["properties"]["place"]
    assert place["properties"]["city"]["type"] == "string"
    assert place["properties"]["near"]["type"] == "array"
    assert found["schema"]["required"] == ["place"]
