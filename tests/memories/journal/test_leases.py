"""Leases are renewed as long as there are any, whatever becomes of a single renewal."""

from __future__ import annotations

import threading
from collections.abc import Collection

from agent_brain.memories.journal.lease import Heartbeat, Lease


def test_leases_are_renewed_again_after_a_renewal_has_failed() -> None:
    renewed, tries = threading.Event(), 0

    def renew(leases: Collection[Lease]) -> Collection[str]:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OSError("the server is down")
        renewed.set()
        return ()

    heartbeat = Heartbeat(renew)
    heartbeat.add(Lease.new("s", 0.03))
    assert renewed.wait(60)
    heartbeat.stop()
