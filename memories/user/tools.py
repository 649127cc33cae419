"""The tools by which a model remembers, recalls and forgets what it knows about a user."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_brain.memories.errors import JournalError, LeaseHeldError, MemoryUseError
from agent_brain.memories.message import Message, Role
from agent_brain.memories.user.checking import Batch, Cited, Draft, Refusal, checked_fact
from agent_brain.memories.user.facts import OWN, Kind
from agent_brain.memories.user.origins import has_quote, own_words
from agent_brain.memories.user.rendering import fact_line, message_line
from agent_brain.tools.base import BaseTool
from agent_brain.tools.context import ToolContext
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool

if TYPE_CHECKING:
    from agent_brain.memories.user.user_memory import UserMemory

REFUSED = {
    "not quoted": "the quote is not in what was said in this turn: quote the user word for word",
    "no source": "nothing in this turn says so: quote the user word for word",
    "recalled": "that was recalled, and is known already",
    "instruction": "instructions are kept only if the user gives them: quote the user",
    "known": "that is known already",
}


def tools_of(user: UserMemory) -> list[BaseTool]:
    """Return the tools over what is known about a user."""

    async def remember(
        text: str,
        context: ToolContext,
        quote: str = "",
        slot: str = "",
        about: str = "user",
        kind: Kind = "preference",
    ) -> str:
        """Remember a fact about the user for later conversations.

        Args:
            text: The fact, as a short sentence.
            quote: The words of the user that say so, copied exactly.
            slot: What it is the one value of, such as "home" or "job"; empty if there may be many.
            about: "user", or the name of another person.
            kind: What kind of fact it is.
            context: The call.
        """
        turn = await context.memory.turn()
        sources = _sources(turn, quote, user)
        draft = Draft(text=text, sources=sources, slot=slot or None, about=about, kind=kind)
        like = await user.like([text], 20)
        seen = await context.memory.context()
        conversation = getattr(context.memory, "session", None)
        batch = Batch(turn, like, conversation, user.names, seen, strict=True)
        fact = checked_fact(draft, batch, user.log.facts(), user.clock())
        if isinstance(fact, Refusal):
            raise ToolError(f"Not remembered: {REFUSED.get(fact.reason, fact.reason)}")
        stored = await user.store(fact)
        context.memory.report("learned", added=(stored.id,), session=batch.conversation)
        if stored.status == "claim":
            return f"Kept as a claim from: {stored.origin}; the user has said otherwise."
        return f"Remembered as {stored.id}" + (
            "." if stored.origin in OWN else f", as a claim from: {stored.origin}."
        )

    async def recall_user(query: str, context: ToolContext) -> str:
        """Look up what is known about the user, and what was said in earlier conversations.

        Args:
            query: What to look for.
            context: The call.
        """
        held = {message.id for message in await context.memory.turn()}
        facts = await user.fitting(query, 10)
        used = held | {source.message for fact in facts for source in fact.sources}
        used |= user.outdated()
        said = await user.messages(query, 5, used)
        lines = [*map(fact_line, facts), *map(message_line, said)]
        return "\n".join(lines) or "Nothing is known about that."

    async def forget(fact_id: str, context: ToolContext) -> str:
        """Forget a fact about the user, because the user asks for it, with what the user said.

        Args:
            fact_id: The ID of the fact, as recall_user shows it.
            context: The call.
        """
        try:
            await user.forget(fact_id, running=context.memory)
        except MemoryUseError as error:
            raise ToolError(str(error)) from error
        except JournalError as error:
            if not isinstance(error.__cause__ or error, LeaseHeldError):
                raise
            raise ToolError(f"Not forgotten yet, call it again later. {error}") from error
        return "Forgotten."

    async def edit_block(name: str, text: str, version: int) -> str:
        """Write a short text about the user that is always shown, such as "project".

        Args:
            name: Its name.
            text: The whole new text.
            version: The version that it replaces, as shown; 0 for a new one.
        """
        try:
            block = await user.edit_block(name, text, expect=version)
        except MemoryUseError as error:
            raise ToolError(str(error)) from error
        return f"Written, as version {block.version}."

    made: list[Callable[..., Any]] = [remember, recall_user, forget, edit_block]
    if user.log.readonly:
        made = [recall_user]
    return [
        tool(name=each.__name__, requires_approval=each.__name__ in user.approve)(each)
        for each in made
    ]


def _sources(turn: list[Message], quote: str, user: UserMemory) -> tuple[Cited, ...]:
    """Return what a fact that a model remembers rests on.

    Without a quote, it is what the user has said in this turn, unless tools have returned
    something: then the model may have it from there.
    """
    if quote.strip():
        found = [m for m in turn if has_quote(m.content, quote)]
        found.sort(key=lambda m: not has_quote(own_words(m, user.names), quote))
        return tuple(Cited(message=m.id, quote=quote) for m in found[:1])
    results = [m for m in turn if m.role is Role.TOOL and m.content.strip()]
    said = [m for m in turn if own_words(m, user.names)]
    return tuple(Cited(message=m.id, quote=m.content) for m in [*results, *said[:1]][:20])
