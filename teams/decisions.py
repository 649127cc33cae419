"""Which agent of a team a person's decisions are for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent_brain.errors import ResumeError
from agent_brain.human_input import Decisions, by_question, ids_of, reasons_of, waits_for
from agent_brain.memories.runs.human_requests import HumanRequests
from agent_brain.memories.sharing.member import MemberMemory


def waiting(members: Mapping[str, MemberMemory]) -> dict[str, HumanRequests]:
    """Return what each agent that waits for a person asks."""
    return {
        name: member.control.human_requests or HumanRequests()
        for name, member in members.items()
        if asks(member)
    }


def asks(member: MemberMemory) -> bool:
    """Return whether an agent waits for a person, and not for a time or because it was paused."""
    requests = member.control.human_requests
    return member.control.status == "waiting" and requests is not None and requests.waiting


def what_waits(members: Mapping[str, MemberMemory]) -> str:
    """Return a text that says what the agents wait for."""
    found = [f"{name!r}: {waits_for(members[name].control)}" for name in waiting(members)]
    return "; ".join(found) or "nobody waits for a person"


def by_agent(decisions: Decisions, members: Mapping[str, MemberMemory]) -> dict[str, Decisions]:
    """Return the decisions for each agent that waits and is given any.

    Raises:
        ResumeError: One of them is about something that no agent waits for.
    """
    asked = waiting(members)
    owners = {id_: name for name, requests in asked.items() for id_ in requests.approvals}
    found: dict[str, dict[str, Any]] = {name: {} for name in asked}

    def of_owner(call_id: str) -> dict[str, Any]:
        if call_id not in owners:
            raise ResumeError(f"No call {call_id!r} waits for approval. {what_waits(members)}")
        return found[owners[call_id]]

    if decisions.approve is True and not owners:
        raise ResumeError(f"No call waits for approval. {what_waits(members)}")
    if decisions.approve is True:
        for name in owners.values():
            found[name]["approve"] = True
    else:
        for call_id in ids_of(decisions.approve):
            of_owner(call_id).setdefault("approve", []).append(call_id)
    for call_id, reason in reasons_of(decisions.deny).items():
        of_owner(call_id).setdefault("deny", {})[call_id] = reason
    for call_id, args in (decisions.edit or {}).items():
        of_owner(call_id).setdefault("edit", {})[call_id] = args
    for name, question, text in _answers(decisions.input, asked, members):
        found[name].setdefault("input", {})[question] = text
    return {name: Decisions(**given) for name, given in found.items() if given}


def _answers(
    given: object,
    asked: Mapping[str, HumanRequests],
    members: Mapping[str, MemberMemory],
) -> Iterable[tuple[str, str, Any]]:
    """Yield agents, IDs of their questions, and answers."""
    questions = {
        question or name: (name, question)
        for name, requests in asked.items()
        for question in requests.questions
    }
    typed = any(requests.schemas for requests in asked.values())
    answers = by_question(given, questions, lambda: what_waits(members), typed=typed)
    for key, answer in answers.items():
        yield *questions[key], answer
