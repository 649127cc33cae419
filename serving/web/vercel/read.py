"""Reads what a client of the AI SDK sends: messages and answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from agent_brain.common.text import to_text
from agent_brain.errors import BrainUseError
from agent_brain.memories.message import (
    PARTIAL,
    Attachment,
    Message,
    Role,
    empty_file,
    is_empty_url,
)
from agent_brain.serving.web.chat.threads import Answers, Said, read_wait_id
from agent_brain.serving.web.chat.translator import NOT_RUN
from agent_brain.tools.action import Action


class Approval(BaseModel):
    """Whether a person approves of a call."""

    id: str
    approved: bool | None = None
    reason: str | None = None


class Part(BaseModel):
    """A part of a UI message, with the fields of all its types."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    type: str
    id: str | None = None
    text: str = ""
    url: str | None = None
    media_type: str = Field("application/octet-stream", alias="mediaType")
    filename: str | None = None
    state: str | None = None
    tool_name: str = Field("", alias="toolName")
    call_id: str = Field("", alias="toolCallId")
    metadata: dict[str, JsonValue] | None = Field(None, alias="toolMetadata")
    input: JsonValue = None
    output: JsonValue = None
    error: str = Field("", alias="errorText")
    approval: Approval | None = None
    parts: list[Part] = []

    @property
    def tool(self) -> str | None:
        """The name of the tool that is called; None for other parts, and calls of inner nets."""
        if self.metadata and "path" in self.metadata:
            return None
        if self.type == "dynamic-tool":
            return self.tool_name or None
        return self.type.removeprefix("tool-") if self.type.startswith("tool-") else None


class UIMessage(BaseModel):
    """A message of the AI SDK."""

    id: str = Field(min_length=1)
    role: Literal["system", "user", "assistant"]
    parts: list[Part]
    metadata: JsonValue = None


class ChatRequest(BaseModel):
    """The body of ``POST /ai-sdk/chat``, as ``DefaultChatTransport`` sends it."""

    model_config = ConfigDict(extra="allow")

    id: str = Field(min_length=1)
    messages: list[UIMessage] = Field(min_length=1)
    trigger: str | None = None
    messageId: str | None = None  # noqa: N815 - its name in the protocol


def read_said(body: ChatRequest) -> Said:
    """Return the conversation, without system messages, which the user should not write.

    Raises:
        BrainUseError: It does not end with a message of the user, or a part cannot be read.
    """
    own = [each for each in body.messages if each.role != "system"]
    first_new = len(own)
    while first_new and own[first_new - 1].role == "user":
        first_new -= 1
    if first_new == len(own):
        raise BrainUseError("The last message must be the user's, or answer what a run waits for")
    about = {**(body.model_extra or {}), "metadata": own[-1].metadata}
    metadata = {"ai_sdk": {key: value for key, value in about.items() if value is not None}}
    news = [_user_message(each) for each in own[first_new:-1]]
    task = _user_message(own[-1], metadata if metadata["ai_sdk"] else {})
    return Said([*_history(own[:first_new])], [*news, task])


def _user_message(message: UIMessage, metadata: dict[str, Any] | None = None) -> Message:
    return Message.user([*_parts(message)], id=message.id, metadata=metadata or {})


def _text(parts: Iterable[Part]) -> str:
    return "\n".join(part.text for part in parts if part.type == "text")


def _parts(message: UIMessage) -> Iterator[str | Attachment]:
    try:
        for part in message.parts:
            if part.type == "text":
                yield part.text
            elif part.type == "file":
                if is_empty_url(part.url):
                    raise ValueError(empty_file(part.filename))
                yield Attachment(media_type=part.media_type, url=part.url, name=part.filename)
    except ValueError as error:
        raise BrainUseError(f"A file in the message {message.id!r}: {error}") from None


def _history(messages: Iterable[UIMessage]) -> Iterator[Message]:
    messages = list(messages)
    # A call that waited for a message of the user is in two messages, the second with its result.
    newest = {part.call_id: part for each in messages for part in each.parts if part.tool}
    for message in messages:
        if message.role == "user":
            yield _user_message(message)
        else:
            said = [*_assistant_messages(message, newest)]
            about = message.metadata if isinstance(message.metadata, dict) else {}
            if about.get(PARTIAL) is True and said and said[-1].role is Role.ASSISTANT:
                said[-1] = said[-1].model_copy(update={"metadata": {PARTIAL: True}})
            yield from said


def _assistant_messages(message: UIMessage, newest: Mapping[str, Part]) -> Iterator[Message]:
    """Yield the messages of each step: the assistant's with its calls, then their results."""
    step: list[Part] = []
    for part in [*message.parts, Part.model_validate({"type": "step-start"})]:
        if part.type not in ("step-start", "steering-message"):
            step.append(part)
            continue
        calls = [
            (_action(each, each.tool), each)
            for each in step
            if each.tool and newest[each.call_id] is each
        ]
        text = _text(step)
        if text or calls:
            yield Message.assistant(text, [action for action, _ in calls])
        for action, each in calls:
            yield _result(action, each)
        step = []
        if part.type == "steering-message":
            yield Message.user(_text(part.parts))


def _action(part: Part, name: str | None) -> Action:
    arguments = part.input if isinstance(part.input, dict) else {}
    return Action(id=part.call_id or "call", name=name or "", args=arguments)


def _result(action: Action, part: Part) -> Message:
    if part.state == "output-available":
        return Message.tool(to_text(part.output), action)
    return Message.tool(part.error or NOT_RUN, action, is_error=True)


def read_answers(body: ChatRequest) -> Answers | None:
    """Return the answers to a run that waits, if the request has any.

    They are approvals, and the outputs of calls that ask, in the last message if it is the
    assistant's; or a message of the user that follows questions, which answers the first of them
    that waits (:func:`still_waiting`).

    Raises:
        BrainUseError: They belong to the runs of several sessions.
    """
    last = body.messages[-1]
    asked = last if last.role == "assistant" else None
    if last.role == "user" and len(body.messages) > 1:
        asked = body.messages[-2]
    if asked is None or asked.role != "assistant":
        return None
    found = [*(_decisions(asked) if asked is last else ()), *_replies(asked, last)]
    answers: Answers | None = None
    for session, key, reply in found:
        answers = answers or Answers(session)
        if answers.session != session:
            raise BrainUseError("The answers do not belong to one run that waits")
        _add(answers, key, reply)
    return answers


def _decisions(message: UIMessage) -> Iterator[tuple[str, str, Approval]]:
    for part in message.parts:
        if part.state == "approval-responded" and part.approval is not None:
            wait = read_wait_id(part.approval.id)
            if wait is not None and part.approval.approved is not None:
                yield (*wait, part.approval)


def _replies(message: UIMessage, last: UIMessage) -> Iterator[tuple[str, str, str]]:
    questions = [part for part in message.parts if part.type == "data-question" and part.id]
    outputs = {
        part.call_id: part.error or to_text(part.output)
        for part in message.parts
        if part.call_id and part.state in ("output-available", "output-error")
    }
    for part in questions:
        wait = read_wait_id(part.id or "")
        if wait is None:
            continue
        if message is not last:
            yield (*wait, _text(last.parts))
        elif wait[1] in outputs:
            yield (*wait, outputs[wait[1]])


def _add(answers: Answers, key: str, reply: Approval | str) -> None:
    if isinstance(reply, str):
        answers.input[key] = reply
    elif reply.approved:
        answers.approve.append(key)
    else:
        answers.deny[key] = reply.reason or ""


def still_waiting(answers: Answers, waiting: Iterable[str], *, one: bool) -> Answers:
    """Return those of the answers that the run waits for; a message shows earlier ones too.

    Args:
        answers: What the client sends.
        waiting: What the run waits for, in order.
        one: Whether it is a message of the user, which answers the first question.
    """
    keys = [*waiting]
    given = [key for key in keys if key in answers.input]
    return Answers(
        answers.session,
        [key for key in answers.approve if key in keys],
        {key: reason for key, reason in answers.deny.items() if key in keys},
        {},
        {key: answers.input[key] for key in (given[:1] if one else given)},
    )
