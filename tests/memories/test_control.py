"""The state of a run."""

from __future__ import annotations

from agent_brain.memories import Control, Message
from agent_brain.tools import Action

CALL = Action(name="pay", args={}, id="call_1")


def test_what_is_written_now_is_read_again() -> None:
    control = Control(subnets={"A": "B"}, hint_count=1, error="KeyError: 'x'")
    control.request_input("", "Why?")
    assert Control.model_validate_json(control.model_dump_json()) == control


def test_a_call_is_requested_begun_finished_and_closed() -> None:
    control = Control()
    control.request_calls([CALL])
    assert control.result_of(CALL, "it rained").content == "The call was not run: it rained"
    control.begin_calls([CALL])
    assert "may or may not have taken effect" in control.result_of(CALL, "it rained").content
    result = Message.tool("paid", CALL)
    control.finish_call(CALL, result)
    assert control.result_of(CALL, "it rained") is result
    control.close_calls()
    assert (control.next_actions, control.pending) == ([], {})


def test_a_forgotten_call_is_not_open_any_more_and_nobody_is_asked_about_it() -> None:
    control = Control()
    control.request_calls([CALL])
    control.begin_calls([CALL])
    control.request_approval([CALL])
    assert control.forget_calls({"call_1"})
    assert not control.forget_calls({"call_1"})
    assert (control.next_actions, control.pending) == ([], {})
    assert control.human_requests is not None
    assert not control.human_requests.waiting


def test_nothing_of_a_run_is_left_when_it_is_emptied_or_another_begins() -> None:
    for end in (Control.empty, Control.abort, lambda control: control.begin("run_2", "ONE")):
        control = Control()
        control.asked, control.output, control.hint = {"OUTER/INNER/ask": 1}, 7, "Try again."
        end(control)
        control.advance_subnet("OUTER", None, "")
        assert not control.asked
        assert not control.has_output_of("OUTER")
        assert control.hint is None
