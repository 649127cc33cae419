"""Reads what an AG-UI client sends: messages, answers and tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ag_ui import core

from agent_brain.common.secrets import scrub
from agent_brain.common.text import to_text
from agent_brain.errors import BrainUseError
from agent_brain.memories.message import (
    PARTIAL,
    Attachment,
    Message,
    empty_file,
    in_order,
    is_empty_url,
)
from agent_brain.serving.pending import Pending
from agent_brain.serving.web.chat.threads import Answers, Said, call_key, read_call, read_wait_id
from agent_brain.serving.web.chat.translator import NOT_RUN
from agent_brain.tools.action import Action
from agent_brain.tools.answers import fields_of, read_answer

PARTS: dict[str, type[core.ImagePart | core.AudioPart | core.VideoPart]] = {
    "image": core.ImagePart,
    "audio": core.AudioPart,
    "video": core.VideoPart,
}
NO_ANSWER = "The user did not answer"


def content_of(message: Message) -> str | list[core.ContentPart]:
    """Return the content of a message for AG-UI."""
    if not message.attachments:
        return message.content
    parts = message.parts()
    return [core.TextPart(text=part) if isinstance(part, str) else _part(part) for part in parts]


def _part(attachment: Attachment) -> core.ContentPart:
    kind = attachment.media_type.split("/", 1)[0]
    source: core.UrlSource | core.DataSource
    if attachment.data is None:
        source = core.UrlSource(value=attachment.url or "", mime_type=attachment.media_type)
    else:
        source = core.DataSource(value=attachment.data, mime_type=attachment.media_type)
    part: core.ContentPart = PARTS.get(kind, core.DocumentPart)(source=source)
    return part


def read_content(content: str | Iterable[core.ContentPart]) -> tuple[str, tuple[Attachment, ...]]:
    """Return the text and the attachments of a message of AG-UI.

    Raises:
        ValueError: A part cannot be passed to a model.
    """
    if isinstance(content, str):
        return content, ()
    return in_order(p.text if isinstance(p, core.TextPart) else _attachment(p) for p in content)


def _attachment(
    part: core.ImagePart | core.AudioPart | core.VideoPart | core.DocumentPart,
) -> Attachment:
    source = part.source
    if isinstance(source, core.DataSource | core.UrlSource) and is_empty_url(source.value):
        raise ValueError(empty_file(None))
    if isinstance(source, core.DataSource):
        return Attachment(media_type=source.mime_type, data=source.value)
    if isinstance(source, core.UrlSource):
        default = "application/octet-stream" if part.type == "document" else f"{part.type}/*"
        return Attachment(media_type=source.mime_type or default, url=source.value)
    raise ValueError("A file of a provider cannot be read here: send its data or a URL")


def read_said(body: core.RunAgentInput) -> Said:
    """Return the conversation.

    Left out are messages that the user should not write (system, developer), the calls of subagents
    with their results, reasoning and activities.

    Raises:
        BrainUseError: It does not end with a message of the user, or a part cannot be read.
    """
    own = [each for each in body.messages if _is_part_of_it(each)]
    first_new = _first_new(own)
    if first_new == len(own):
        raise BrainUseError("The last message must be the user's, or answer what a run waits for")
    task, given = own[-1], body.model_dump(mode="json", by_alias=True)
    metadata = {key: given[key] for key in ("state", "context", "forwardedProps") if given.get(key)}
    news = [_user_message(each) for each in own[first_new:-1] if isinstance(each, core.UserMessage)]
    assert isinstance(task, core.UserMessage)
    task_message = _user_message(task, {"ag_ui": metadata} if metadata else {})
    return Said([*_history(own[:first_new])], [*news, task_message])


def read_news(body: core.RunAgentInput) -> list[Message]:
    """Return the messages of the user at the end of the conversation, if there are any."""
    own = [each for each in body.messages if _is_part_of_it(each)]
    return [
        _user_message(each) for each in own[_first_new(own) :] if isinstance(each, core.UserMessage)
    ]


def _first_new(messages: Sequence[core.Message]) -> int:
    first_new = len(messages)
    while first_new and isinstance(messages[first_new - 1], core.UserMessage):
        first_new -= 1
    return first_new


def check_ids(body: core.RunAgentInput) -> None:
    """Refuse messages and calls without an ID, by which a conversation is known.

    Raises:
        BrainUseError: A message or a call has no ID.
    """
    for index, message in enumerate(body.messages):
        calls = message.tool_calls or () if isinstance(message, core.AssistantMessage) else ()
        if not message.id or not all(call.id for call in calls):
            raise BrainUseError(f"messages.{index}: give the message, and each of its calls, an ID")


def _is_part_of_it(message: core.Message) -> bool:
    if message.subagent_run_id is not None:
        return isinstance(message, core.AssistantMessage)
    return isinstance(message, core.UserMessage | core.AssistantMessage | core.ToolMessage)


def _user_message(message: core.UserMessage, metadata: dict[str, Any] | None = None) -> Message:
    text, attachments = _content(message)
    return Message.user(text, id=message.id, attachments=attachments, metadata=metadata or {})


def _content(message: core.UserMessage | core.ToolMessage) -> tuple[str, Any]:
    try:
        return read_content(message.content)
    except ValueError as error:
        raise BrainUseError(f"The message {message.id!r} cannot be read: {error}") from None


def _history(messages: Iterable[core.Message]) -> Iterator[Message]:
    """Yield messages with a result for each call, and a call for each result."""
    messages = list(messages)
    results = {each.tool_call_id: each for each in messages if isinstance(each, core.ToolMessage)}
    for message in messages:
        if isinstance(message, core.UserMessage):
            yield _user_message(message)
        elif isinstance(message, core.AssistantMessage):
            told = () if message.subagent_run_id else message.tool_calls or ()
            calls = [(_call(call), results.get(call.id)) for call in told]
            if message.content or calls:
                cut_off = (message.metadata or {}).get(PARTIAL) is True
                yield Message.assistant(
                    message.content or "",
                    [call for call, _ in calls],
                    id=message.id,
                    metadata={PARTIAL: True} if cut_off else {},
                )
            for call, result in calls:
                yield _result(call, result)


def _call(call: core.ToolCall) -> Action:
    return read_call(call.function.name, call.function.arguments, call_key(call.id))


def _result(call: Action, result: core.ToolMessage | None) -> Message:
    if result is None:
        return Message.tool(NOT_RUN, call, is_error=True)
    text, attachments = _content(result)
    if result.error:
        return Message.tool(result.error, call, is_error=True)
    return Message.tool(text, call, id=result.id, attachments=attachments)


def answered_session(body: core.RunAgentInput) -> str | None:
    """Return the session whose run the request continues; None if it starts a new run.

    Raises:
        BrainUseError: The request answers the runs of several sessions.
    """
    ids = [entry.interrupt_id for entry in body.resume or ()]
    ids += [message.tool_call_id for message in _last_results(body)]
    found = [read_wait_id(each) for each in ids]
    sessions = {each[0] if each else None for each in found}
    if not sessions or (sessions == {None} and not body.resume):
        return None
    session = sessions.pop()
    if sessions or session is None:
        raise BrainUseError("The answers do not belong to one run that waits")
    return session


def _last_results(body: core.RunAgentInput) -> list[core.ToolMessage]:
    """Return the results at the end of the conversation: those of the client's own tools."""
    found: list[core.ToolMessage] = []
    for message in reversed(body.messages):
        if not isinstance(message, core.ToolMessage):
            break
        found.insert(0, message)
    return [each for each in found if read_wait_id(each.tool_call_id)]


def own_results(body: core.RunAgentInput) -> set[str]:
    """Return the IDs of the calls whose results the client sends."""
    return {call_key(message.tool_call_id) for message in _last_results(body)}


def read_answers(body: core.RunAgentInput, session: str, pending: Pending | None) -> Answers:
    """Return the answers to everything that the run of the session waits for.

    Raises:
        BrainUseError: It does not wait for one of them, or for something else too.
    """
    if pending is None:
        raise BrainUseError("The run does not wait any more")
    answers = Answers(session)
    calls = {call.id for call in pending.calls}
    for entry in body.resume or ():
        found = read_wait_id(entry.interrupt_id)
        key = found[1] if found else ""
        if key in calls:
            _decide(answers, key, entry)
        elif key in pending.questions:
            answers.input[key] = _answer(entry, pending.schemas.get(key))
        else:
            raise BrainUseError(f"The run does not wait for {entry.interrupt_id!r}")
    for result in _last_results(body):
        key = call_key(result.tool_call_id)
        if key in pending.questions:
            answers.input[key] = result.error or _content(result)[0]
    missing = (calls | {*pending.questions}) - answers.keys
    if missing:
        raise BrainUseError(f"The run waits for more: answer {', '.join(sorted(missing))} too")
    return answers


def _decide(answers: Answers, call_id: str, entry: core.ResumeEntry) -> None:
    payload = entry.payload
    if entry.status == "cancelled":
        answers.deny[call_id] = NO_ANSWER
        return
    decision = {"approved": payload} if isinstance(payload, bool) else payload
    if not isinstance(decision, dict) or not isinstance(decision.get("approved"), bool):
        raise BrainUseError(f'The payload for {entry.interrupt_id!r} must be {{"approved": …}}')
    edited = decision.get("editedArgs")
    if not decision["approved"]:
        answers.deny[call_id] = to_text(decision.get("reason") or "")
    elif edited is None:
        answers.approve.append(call_id)
    elif isinstance(edited, dict):
        answers.edit[call_id] = edited
    else:
        raise BrainUseError(f"editedArgs for {entry.interrupt_id!r} must be a JSON object")


def _answer(entry: core.ResumeEntry, schema: dict[str, Any] | None) -> Any:
    """Return an answer; of a question that was cancelled, what leaves it open."""
    if entry.status == "cancelled" and schema is None:
        return NO_ANSWER
    payload = None if entry.status == "cancelled" else entry.payload
    is_form = schema is not None and fields_of(schema) is not None
    if isinstance(payload, dict) and payload.keys() == {"answer"} and not is_form:
        payload = payload["answer"]
    if schema is None:
        return to_text(payload)
    try:
        return read_answer(schema, payload)
    except ValueError as error:
        raise BrainUseError(
            f"The answer to {entry.interrupt_id!r} does not fit: {scrub(str(error))}"
        ) from None
