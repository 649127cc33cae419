"""No test calls a real model by accident."""

from __future__ import annotations

import anyio.to_thread
import pytest

from agent_brain.states.models.interception import about_to_call, before_real_calls
from agent_brain.testing import RealModelError, no_real_models


def test_a_real_model_is_refused_by_its_name():
    with no_real_models(), pytest.raises(RealModelError, match=r"'openai/gpt-4\.1'"):
        about_to_call("openai/gpt-4.1")


def test_outside_nothing_is_refused():
    with no_real_models():
        pass
    about_to_call("openai/gpt-4.1")


def test_it_ends_with_an_error_too():
    with pytest.raises(OSError, match="x"), no_real_models():
        raise OSError("x")
    about_to_call("openai/gpt-4.1")


def test_it_may_be_nested():
    with no_real_models():
        with no_real_models():
            pass
        with pytest.raises(RealModelError):
            about_to_call("openai/gpt-4.1")


def test_a_check_inside_does_not_lift_the_one_outside():
    asked: list[str] = []
    with no_real_models(), before_real_calls(asked.append), pytest.raises(RealModelError):
        about_to_call("openai/gpt-4.1")


@pytest.fixture
def guarded():
    with no_real_models():
        yield


@pytest.mark.anyio
@pytest.mark.usefixtures("guarded")
async def test_entered_in_a_fixture_it_holds_in_the_test():
    with pytest.raises(RealModelError):
        about_to_call("openai/gpt-4.1")


@pytest.mark.anyio
async def test_it_holds_in_worker_threads_and_in_tasks_that_were_there_before():
    entered, refused = anyio.Event(), []

    async def earlier() -> None:
        await entered.wait()
        for call in (about_to_call, lambda model: anyio.to_thread.run_sync(about_to_call, model)):
            try:
                waiting = call("m")
                if waiting is not None:
                    await waiting
            except RealModelError:
                refused.append(True)

    async with anyio.create_task_group() as group:
        group.start_soon(earlier)
        await anyio.lowlevel.checkpoint()
        with no_real_models():
            entered.set()
            while len(refused) < 2:
                await anyio.lowlevel.checkpoint()

    assert refused == [True, True]
