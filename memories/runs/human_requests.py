"""What a run asks a person, and what the person has decided and answered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

from pydantic import BaseModel, Field, JsonValue

from agent_brain.tools.action import Action

EDITED = "[A person changed the arguments of this call first]\n"
"""What precedes the result of a call whose arguments a person has changed."""


class Decision(BaseModel, defer_build=True):
    """What a person decided about one call.

    Attributes:
        approved: It may run.
        reason: Why not; goes to the model.
        args: Run it with these arguments instead of the model's.
    """

    approved: bool
    reason: str = ""
    args: dict[str, JsonValue] | None = None


class InnerRequest(BaseModel, defer_build=True):
    """Which branch a request comes from.

    Attributes:
        branch: The branch of the current step that waits.
        id: The ID of the request in the branch.
        wait: Identifies the wait of the branch: a decision counts for this one only.
        path: The path of the events of the net that asks.
        foreign: Whether the branch has other tools than the memory that it is a branch of.
    """

    branch: str
    id: str
    wait: str
    path: list[str] = Field(default_factory=list)
    foreign: bool = False


class OpenRequests(TypedDict, total=False):
    """What waits for a person, as a result has it."""

    approvals: Sequence[Action]
    questions: Mapping[str, str]


class HumanRequests(BaseModel, defer_build=True):
    """What a person is asked in the current step, and what they have answered so far.

    Attributes:
        approvals: IDs of calls that wait for a decision.
        questions: Questions that wait for an answer, by the ID of the call that asks; the state's
            own question has the ID ``""``, that of a state in a branch the names of the states and
            branches around it, joined by ``/``.
        decisions: Decisions by the ID of the call.
        schemas: The JSON Schemas of their answers, by the ID of the question; not of free texts.
        answers: Answers by the ID of the question.
        changed: The arguments of calls that a person is asked about with others than the model's.
        again: The calls that run again with the answers to their questions, which are kept here.
        uncertain: IDs of calls that may have taken effect before the run was interrupted, of which
            the person says whether they run again.
        calls: The calls that wait for a decision or ask a question, those of branches too. Two
            branches may ask with the same ID: one of them is then given another ID here.
        inside: Which of the requests come from branches, by their IDs here.
        wait: Identifies the wait of a branch.
    """

    approvals: list[str] = Field(default_factory=list)
    questions: dict[str, str] = Field(default_factory=dict)
    decisions: dict[str, Decision] = Field(default_factory=dict)
    schemas: dict[str, dict[str, Any]] = Field(default_factory=dict)
    answers: dict[str, JsonValue] = Field(default_factory=dict)
    changed: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    again: dict[str, list[JsonValue]] = Field(default_factory=dict)
    uncertain: list[str] = Field(default_factory=list)
    calls: list[Action] = Field(default_factory=list)
    inside: dict[str, InnerRequest] = Field(default_factory=dict)
    wait: str = ""

    @property
    def waiting(self) -> bool:
        """Whether a decision or an answer is still missing."""
        return bool(self.approvals or self.questions)

    @property
    def waits_inside(self) -> bool:
        """Whether one is missing in a branch."""
        return any(key in self.inside for key in self._waiting())

    def _waiting(self) -> Iterator[str]:
        yield from self.approvals
        yield from self.questions

    def ask_approval(
        self,
        actions: Iterable[Action],
        uncertain: Iterable[str],
        changed: Mapping[str, dict[str, JsonValue]],
    ) -> None:
        """Note that calls wait for a decision, in place of the earlier ones of this memory."""
        asked = [*actions]
        for action in asked:
            self.changed.pop(action.id, None)
        self.changed.update(changed)
        self.approvals = [a.id for a in asked] + [i for i in self.approvals if i in self.inside]
        self.uncertain = [*uncertain, *(i for i in self.uncertain if i in self.inside)]
        for call_id in self.uncertain:
            if call_id not in self.inside:
                self.decisions.pop(call_id, None)
        self._add_calls(asked)

    def ask(
        self,
        question_id: str,
        prompt: str,
        schema: dict[str, Any] | None = None,
        calls: Iterable[Action] = (),
    ) -> None:
        """Note a question, with the call that asks it, if one does."""
        self.questions[question_id] = prompt
        self.schemas.pop(question_id, None)
        if schema is not None:
            self.schemas[question_id] = schema
        self._add_calls(calls)

    def answers_for(self, call_id: str) -> list[JsonValue] | None:
        """Return the answers that a call runs again with, or None; the newest is added."""
        known = self.again.get(call_id)
        if known is not None and call_id in self.answers:
            known.append(self.answers.pop(call_id))
        return known

    def _add_calls(self, calls: Iterable[Action]) -> None:
        known = {call.id: call for call in (*self.calls, *calls)}
        waiting = {*self._waiting()}
        self.calls = [call for call in known.values() if call.id in waiting]

    def add_branch(
        self,
        branch: str,
        asked: HumanRequests,
        *,
        path: list[str],
        taken: Collection[str],
        foreign: Collection[str],
    ) -> None:
        """Note what a branch waits for. What was decided about its earlier requests is dropped.

        Args:
            branch: The branch.
            asked: Its requests.
            path: The path of its events.
            taken: IDs that its requests cannot have here.
            foreign: Names of its tools that differ from those of this memory.
        """
        calls = {call.id: call for call in asked.calls}
        for call_id in (*asked.approvals, *asked.questions):
            key = self._key_of(branch, call_id, taken)
            inner, call = asked.inside.get(call_id), calls.get(call_id)
            self.inside[key] = InnerRequest(
                branch=branch,
                id=call_id,
                wait=asked.wait,
                path=path if inner is None else inner.path,
                foreign=(inner is not None and inner.foreign)
                or (call is not None and call.name in foreign),
            )
            self.decisions.pop(key, None)
            self.answers.pop(key, None)
            if call_id in asked.questions:
                self.ask(key, asked.questions[call_id], asked.schemas.get(call_id))
            else:
                self.approvals.append(key)
            if call_id in asked.uncertain:
                self.uncertain.append(key)
            if call is not None:
                self._add_calls([call if key == call_id else _renamed(call, key)])

    def _key_of(self, branch: str, call_id: str, taken: Collection[str]) -> str:
        """Return the ID of a branch's request here, which stays the same for the whole step."""
        for key, inner in self.inside.items():
            if inner.branch == branch and inner.id == call_id:
                return key
        names = key_of_branch(branch)
        key, number = call_id or names, 1
        used = {"", *taken, *self.inside, *self._waiting(), *self.decisions, *self.answers}
        while key in used:
            again = "" if number == 1 else f"#{number}"
            key, number = f"{call_id or 'question'}@{names}{again}", number + 1
        return key

    def of_branch(self, branch: str, wait: str) -> tuple[dict[str, Decision], dict[str, JsonValue]]:
        """Return what was decided and answered for a wait of a branch, by the IDs there."""
        mine = {
            key: inner.id
            for key, inner in self.inside.items()
            if inner.branch == branch and inner.wait == wait
        }
        return (
            {mine[key]: decided for key, decided in self.decisions.items() if key in mine},
            {mine[key]: answer for key, answer in self.answers.items() if key in mine},
        )

    def record(self, decisions: Mapping[str, Decision], answers: Mapping[str, JsonValue]) -> None:
        """Record what the person decided and answered; these requests no longer wait."""
        self.decisions.update(decisions)
        self.answers.update(answers)
        self._keep_waiting(lambda key: key not in decisions and key not in answers)

    def reopen(self) -> None:
        """Drop what branches wait for: they ask again, unless it was decided."""
        self.uncertain = [i for i in self.uncertain if i not in self.inside]
        self._keep_waiting(lambda key: key not in self.inside)

    def forget(self, calls: Collection[str]) -> None:
        """Remove everything about the calls of these IDs."""
        self._keep_waiting(lambda key: key not in calls)
        self.uncertain = [call_id for call_id in self.uncertain if call_id not in calls]
        for register in (self.decisions, self.answers, self.changed, self.again, self.inside):
            for call_id in register.keys() & set(calls):
                del register[call_id]

    def _keep_waiting(self, stays: Callable[[str], bool]) -> None:
        self.approvals = [call_id for call_id in self.approvals if stays(call_id)]
        self.questions = {key: text for key, text in self.questions.items() if stays(key)}
        self.schemas = {key: schema for key, schema in self.schemas.items() if stays(key)}
        self._add_calls(())


def key_of_branch(branch: str) -> str:
    """Return the names of the states and branches around a branch, and its own, joined by ``/``."""
    return branch.rpartition("@")[0]


def _renamed(call: Action, call_id: str) -> Action:
    return call.model_copy(update={"id": call_id})


def open_requests(requests: HumanRequests | None) -> OpenRequests:
    """Return the calls and questions that wait; none without requests."""
    if requests is None:
        return {}
    approvals = [call for call in requests.calls if call.id in requests.approvals]
    return {"approvals": approvals, "questions": dict(requests.questions)}
