"""Memories: everything a run knows, and the part of it that a model sees.

Names are imported at first use, so a program loads only the memories that it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.memories.auto import AutoMemory as AutoMemory
    from agent_brain.memories.base import Memory as Memory
    from agent_brain.memories.control import Control as Control
    from agent_brain.memories.durable import DurableMemory as DurableMemory
    from agent_brain.memories.errors import EmbedderMismatchError as EmbedderMismatchError
    from agent_brain.memories.errors import JournalConflictError as JournalConflictError
    from agent_brain.memories.errors import JournalDamagedError as JournalDamagedError
    from agent_brain.memories.errors import JournalError as JournalError
    from agent_brain.memories.errors import LeaseHeldError as LeaseHeldError
    from agent_brain.memories.errors import LeaseLostError as LeaseLostError
    from agent_brain.memories.errors import MemoryBusyError as MemoryBusyError
    from agent_brain.memories.errors import MemoryDefinitionError as MemoryDefinitionError
    from agent_brain.memories.errors import MemoryUseError as MemoryUseError
    from agent_brain.memories.errors import ReadOnlyMemoryError as ReadOnlyMemoryError
    from agent_brain.memories.errors import ScratchError as ScratchError
    from agent_brain.memories.errors import SessionConflictError as SessionConflictError
    from agent_brain.memories.errors import SnapshotError as SnapshotError
    from agent_brain.memories.errors import VectorStoreError as VectorStoreError
    from agent_brain.memories.journal.base import Journal as Journal
    from agent_brain.memories.journal.entry import Entry as Entry
    from agent_brain.memories.journal.postgres.journal import PostgresJournal as PostgresJournal
    from agent_brain.memories.journal.ram import RamJournal as RamJournal
    from agent_brain.memories.journal.redis.journal import RedisJournal as RedisJournal
    from agent_brain.memories.journal.sqlite.journal import SQLiteJournal as SQLiteJournal
    from agent_brain.memories.layered import LayeredMemory as LayeredMemory
    from agent_brain.memories.message import Attachment as Attachment
    from agent_brain.memories.message import Message as Message
    from agent_brain.memories.message import Role as Role
    from agent_brain.memories.message import is_partial as is_partial
    from agent_brain.memories.messages import MessagesMemory as MessagesMemory
    from agent_brain.memories.recall.results import Recalled as Recalled
    from agent_brain.memories.recall.results import RecalledItem as RecalledItem
    from agent_brain.memories.registry import create_memory as create_memory
    from agent_brain.memories.registry import memory_names as memory_names
    from agent_brain.memories.registry import register_memory as register_memory
    from agent_brain.memories.runs.calls import Call as Call
    from agent_brain.memories.runs.counts import Spent as Spent
    from agent_brain.memories.runs.turns import StoredResult as StoredResult
    from agent_brain.memories.runs.turns import TurnRecord as TurnRecord
    from agent_brain.memories.schemas import register_schema as register_schema
    from agent_brain.memories.sessions.forgetting import forget_in_sessions as forget_in_sessions
    from agent_brain.memories.sessions.listing import SessionInfo as SessionInfo
    from agent_brain.memories.sessions.listing import delete_session as delete_session
    from agent_brain.memories.sessions.listing import list_sessions as list_sessions
    from agent_brain.memories.sessions.timeline import SavedStep as SavedStep
    from agent_brain.memories.sharing.flow import flow_diagram as flow_diagram
    from agent_brain.memories.sharing.inbox import MessageQueue as MessageQueue
    from agent_brain.memories.sharing.member import MemberMemory as MemberMemory
    from agent_brain.memories.sharing.shared import SharedMemory as SharedMemory
    from agent_brain.memories.store.filters import Query as Query
    from agent_brain.memories.store.session import read_session_key as read_session_key
    from agent_brain.memories.store.session import session_key as session_key
    from agent_brain.memories.store.snapshot import Snapshot as Snapshot
    from agent_brain.memories.stored import StoredMemory as StoredMemory
    from agent_brain.memories.summary import SummaryMemory as SummaryMemory
    from agent_brain.memories.todo import Todo as Todo
    from agent_brain.memories.todo import TodoMemory as TodoMemory
    from agent_brain.memories.tool_search import ToolSearch as ToolSearch
    from agent_brain.memories.trace.recorded_call import RecordedCall as RecordedCall
    from agent_brain.memories.user.checking import Batch as Batch
    from agent_brain.memories.user.checking import Cited as Cited
    from agent_brain.memories.user.checking import Draft as Draft
    from agent_brain.memories.user.checking import Refusal as Refusal
    from agent_brain.memories.user.facts import Fact as Fact
    from agent_brain.memories.user.facts import Origin as Origin
    from agent_brain.memories.user.facts import Source as Source
    from agent_brain.memories.user.knowing import UserAwareMemory as UserAwareMemory
    from agent_brain.memories.user.known import Block as Block
    from agent_brain.memories.user.learning import Learned as Learned
    from agent_brain.memories.user.user_memory import UserMemory as UserMemory
    from agent_brain.memories.vector import VectorMemory as VectorMemory
    from agent_brain.memories.views.base import View as View
    from agent_brain.memories.views.recent import Recent as Recent
    from agent_brain.memories.windowed import WindowedMemory as WindowedMemory
    from agent_brain.memories.wrapper import WrappingMemory as WrappingMemory
