"""Summaries of conversations, written by a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing

from pydantic import BaseModel

from agent_brain.memories.message import Message
from agent_brain.states.model_call import ModelCall, is_said
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.prompts import as_text
from agent_brain.tools.text import to_compact_json

SUMMARY = """\
You keep the running summary of a conversation, which will stand in for the messages you are given.
Write the new summary: everything of the summary so far that still matters, brought up to date with
the messages. Keep what the user wants, decisions, facts, names, numbers, open questions, what was
tried and what came of it. Write dates in full instead of "yesterday". Leave out small talk. At most
{max_words} words; only the summary, in the language of the conversation.

The summary so far:
{previous}"""


FORM = """

Write it as one JSON object that fits this JSON Schema, and nothing else:
{schema}"""


def model_summarizer(
    llm: LLM | str,
    *,
    max_words: int = 300,
    prompt: str = SUMMARY,
    form: type[BaseModel] | None = None,
) -> Callable[[str, list[Message]], Awaitable[str]]:
    """Return a summariser for :class:`agent_brain.memories.SummaryMemory` that calls a model.

    Args:
        llm: The model; one call for each summary.
        max_words: Maximum length that the model is asked for.
        prompt: The system prompt; ``{previous}`` and ``{max_words}`` are filled in.
        form: Request JSON that fits this pydantic model, for ``SummaryMemory(form=…)``.

    Returns:
        An async function of the summary so far and the messages to add to it. It raises what the
        model raises.
    """
    model = as_llm(llm)

    async def summarize(previous_summary: str, messages: list[Message]) -> str:
        told = prompt.replace("{max_words}", str(max_words))
        told = told.replace("{previous}", previous_summary or "(none yet)")
        if form is not None:
            told += FORM.replace("{schema}", to_compact_json(form.model_json_schema()))
        request = [
            Message.system(told),
            *as_text(messages),
            Message.user("Write the new summary now."),
        ]
        call = ModelCall(model, request, words="hidden", check=is_said)
        async with aclosing(call.events()) as events:
            async for _ in events:
                pass
        return call.text.strip()

    return summarize
