"""The leases of a journal in PostgreSQL: they are in the rows of the sessions."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from agent_brain.memories.journal.lease import Holder, Lease
from agent_brain.memories.journal.postgres.layout import Layout
from agent_brain.memories.journal.postgres.sessions import NOW, Key, claim

if TYPE_CHECKING:
    from agent_brain.memories.journal.postgres.connections import Transaction


def take_lease(
    tx: Transaction, layout: Layout, key: Key, lease: Lease, over: str | None
) -> Holder | None:
    """Store a lease; see :meth:`Journal._take_lease`."""
    holder = claim(tx, layout, key).leased
    if holder is not None and holder.token not in (over, lease.token):
        return holder
    tx.execute(
        f"UPDATE {layout.sessions} SET lease = %s, owner = %s, "
        f"ends = {NOW} + {round(lease.seconds * 1000)} WHERE id = '{key.id}'",
        [lease.token, lease.owner.to_text()],
    )
    return None


def release_lease(tx: Transaction, layout: Layout, key: Key, lease: Lease) -> None:
    """Remove a lease, unless it was taken over."""
    where = f"WHERE id = '{key.id}' AND lease = %s"
    tx.execute(f"DELETE FROM {layout.sessions} {where} AND last = 0", [lease.token])
    tx.execute(
        f"UPDATE {layout.sessions} SET lease = NULL, owner = NULL, ends = NULL {where}",
        [lease.token],
    )


def renew_leases(
    tx: Transaction, layout: Layout, place: str, leases: Collection[Lease]
) -> set[str]:
    """Renew leases; return the tokens of those that were lost.

    A session that is being written to is left out: its writer renews the lease.
    """
    ids = [Key(lease.session, place).id for lease in leases]
    tokens = [lease.token for lease in leases]
    lasts = [round(lease.seconds * 1000) for lease in leases]
    tx.execute(
        f"WITH free AS (SELECT id FROM {layout.sessions} WHERE id = ANY(%s::uuid[]) "
        "FOR UPDATE SKIP LOCKED) "
        f"UPDATE {layout.sessions} AS session SET ends = {NOW} + lease.lasts "
        "FROM free, unnest(%s::uuid[], %s::text[], %s::bigint[]) AS lease (id, token, lasts) "
        "WHERE session.id = free.id AND session.id = lease.id AND session.lease = lease.token",
        [ids, ids, tokens, lasts],
    )
    kept = tx.execute(
        f"SELECT lease FROM {layout.sessions} WHERE id = ANY(%s::uuid[])", [ids]
    ).fetchall()
    return {*tokens}.difference(token for (token,) in kept)
