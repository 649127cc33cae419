"""Check what runs are submitted with."""

from __future__ import annotations

from pydantic import JsonValue

from agent_brain.common.text import clean, to_json_data
from agent_brain.errors import QueueError
from agent_brain.memories.message import Message, Role, as_message

MAX_NAME = 200  # characters


def checked_name(what: str, name: object) -> str:
    """Return the name of a session, a tenant or a run.

    Raises:
        QueueError: It is not a text of 1 to 200 characters that can be stored.
    """
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or clean(name) != name:
        raise QueueError(f"{what}={name!r:.100}: give a text of 1 to {MAX_NAME} characters")
    return name


def checked_label(what: str, name: object) -> str:
    """Return a name that the database of the queue stores as it is.

    Raises:
        QueueError: It is not a text of 1 to 200 characters, or has a null character.
    """
    if "\0" in checked_name(what, name):
        raise QueueError(f"{what}={name!r:.100}: give a text without null characters")
    return str(name)


def task_data(task: str | Message) -> JsonValue:
    """Return a task as JSON.

    Raises:
        QueueError: It is empty, or neither a text nor a message of a user.
    """
    given: object = task
    if not isinstance(given, str | Message):
        raise QueueError(f"The task is a text or a Message, not {type(given).__name__}")
    goal = as_message(given)
    if goal.role is not Role.USER:
        raise QueueError(f"The task is a message of the user, not of role {goal.role.value!r}")
    if not goal.content.strip() and not goal.attachments:
        raise QueueError("The task is empty: say what is to be done")
    return clean(given) if isinstance(given, str) else to_json_data(given)
