"""The tools by which a model remembers, recalls and forgets what it knows about a user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agent_brain.common.text import count_of
from agent_brain.memories.errors import JournalError, LeaseHeldError, MemoryUseError
from agent_brain.memories.message import Message, Role
from agent_brain.memories.store.lock import Lock
from agent_brain.memories.user import erasing
from agent_brain.memories.user.checking import Batch, Cited, Draft, Refusal, checked_fact
from agent_brain.memories.user.erasing import Chosen
from agent_brain.memories.user.facts import LIVE, OWN, USER, Fact, Kind
from agent_brain.memories.user.knowing import fact_line, message_line
from agent_brain.memories.user.learning import BATCH, replaced_by
from agent_brain.memories.user.origins import has_quote, own_words
from agent_brain.tools.base import Approval, BaseTool
from agent_brain.tools.context import ToolContext
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool

if TYPE_CHECKING:
    from agent_brain.memories.user.user_memory import UserMemory

LISTED = 20  # facts that would be forgotten
REFUSED = {
    "not quoted": "the quote is not in what was said in this turn: quote the user word for word",
    "no source": "nothing in this turn says so: quote the user word for word",
    "recalled": "that is only what was recalled: quote the user word for word",
    "instruction": "instructions are kept only if the user gives them: quote the user",
}


class UserTools:
    """The functions of the tools; their names are those of the tools.

    Args:
        user: What is known.
    """

    def __init__(self, user: UserMemory) -> None:
        self._user = user
        self._order = Lock()  # of several calls at once for one slot, the last is to count

    async def remember(
        self,
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
        user = self._user
        async with self._order:
            turn = await context.memory.turn()
            sources = _sources(turn, quote, user)
            draft = Draft(text=text, sources=sources, slot=slot or None, about=about, kind=kind)
            await user.log.look()
            like = user.first_of([await user.fitting(text, BATCH, LIVE)], BATCH)
            seen = await context.memory.context()
            conversation = getattr(context.memory, "session", None)
            batch = Batch(turn, like, conversation, user.names, seen, by="model")
            fact = checked_fact(draft, batch, user.log.facts(), user.clock())
            if isinstance(fact, Refusal):
                raise ToolError(f"Not remembered: {REFUSED.get(fact.reason, fact.reason)}")
            stored = await user.store(fact)
        if stored.id != fact.id:
            return f"That is known already, as {stored.id}."
        context.memory.report(
            "learned",
            session=batch.conversation,
            added=(stored.id,),
            replaced=replaced_by(user, [stored]),
        )
        if stored.status == "claim" and stored.replaced_by:
            return f"Kept as a claim from: {stored.origin}; the user has said otherwise."
        return f"Remembered as {stored.id}" + (
            "." if stored.origin in OWN else f", as a claim from: {stored.origin}."
        )

    async def recall_user(self, query: str, context: ToolContext) -> str:
        """Look up what is known about the user, and what was said in earlier conversations.

        Args:
            query: What to look for.
            context: The call.
        """
        user = self._user
        held = {message.id for message in await context.memory.turn()}
        await user.log.look()
        facts = await user.fitting(query, 10, LIVE)
        used = held | {source.message for fact in facts for source in fact.sources}
        said = await user.messages(query, 5, used)
        lines = [*map(fact_line, facts), *map(message_line, said)]
        return "\n".join(lines) or "Nothing is known about that."

    async def forget(
        self,
        context: ToolContext,
        fact_id: str = "",
        slot: str = "",
        text: str = "",
        expect: int | None = None,
    ) -> str:
        """Forget what the user asks to forget, with the messages that say so. Give one choice.

        A slot or a text may concern much: without `expect`, nothing is forgotten, and the result
        says how much would be.

        Args:
            fact_id: The ID of a fact, as recall_user shows it.
            slot: All values of a slot, such as "home", also earlier ones.
            text: Every fact, note and message that has these words.
            expect: How much is to be forgotten, as an earlier call has said.
            context: The call.
        """
        try:
            choice = await erasing.look(
                self._user, Chosen(fact_id or None, text or None, slot or None)
            )
            if choice.fact_id is None:
                turn = {message.id for message in await context.memory.turn()}
                messages = await erasing.messages_of(self._user, choice) - turn
                if expect != len(choice.facts) + len(messages):
                    return _would_forget(choice.facts, len(messages))
            await self._user.forget(
                choice.fact_id, text=choice.text, slot=choice.slot, running=context.memory
            )
        except MemoryUseError as error:
            raise ToolError(str(error)) from error
        except JournalError as error:
            if not isinstance(error.__cause__ or error, LeaseHeldError):
                raise
            raise ToolError(f"Not forgotten yet, call it again later. {error}") from error
        return "Forgotten." + await self._left(choice.facts)

    async def _left(self, forgotten: Sequence[Fact]) -> str:
        """Return that other facts of the slots of forgotten ones are known, if there are any."""
        await self._user.log.look()
        known = {fact.value_of for fact in self._user.log.facts().values() if fact.slot}
        left = {fact.slot for fact in forgotten if fact.value_of in known and fact.about == USER}
        return "".join(f" Other values of slot {slot!r} are still known." for slot in left)

    async def edit_block(self, name: str, text: str, version: int) -> str:
        """Write a short text about the user that is always shown, such as "project".

        Args:
            name: Its name.
            text: The whole new text.
            version: The version that it replaces, as shown; 0 for a new one.
        """
        try:
            block = await self._user.edit_block(name, text, expect=version)
        except MemoryUseError as error:
            raise ToolError(str(error)) from error
        return f"Written, as version {block.version}."


TOOLS = tuple(name for name in vars(UserTools) if not name.startswith("_"))
"""The names of the tools."""


def tools_of(user: UserMemory) -> list[BaseTool]:
    """Return the tools over what is known about a user."""
    functions = UserTools(user)
    approval: dict[str, Approval] = dict.fromkeys(user.approve, True)
    if "forget" in approval:
        approval["forget"] = _erases
    return [
        tool(name=name, requires_approval=approval.get(name, False))(getattr(functions, name))
        for name in TOOLS
        if name == "recall_user" or not user.log.readonly
    ]


def _erases(arguments: dict[str, Any]) -> bool:
    """Return whether a call of ``forget`` does more than say how much it would forget."""
    return bool(arguments.get("fact_id")) or arguments.get("expect") is not None


def _would_forget(chosen: Sequence[Fact], messages: int) -> str:
    """Return what would be forgotten, without its words, which this would repeat."""
    if not chosen and not messages:
        return "Nothing is known about that, and no message says so."
    listed = ", ".join(f"{fact.id} ({fact.status})" for fact in chosen[:LISTED])
    return (
        f"Nothing was forgotten yet. This would forget {count_of(len(chosen), 'fact')}"
        f"{f': {listed}' if listed else ''}; and {count_of(messages, 'message')}. If the user "
        f"wants that, call it again with expect={len(chosen) + messages}."
    )


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
