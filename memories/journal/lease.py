"""Leases: one runner a session, in all processes that use a journal."""

from __future__ import annotations

import json
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agent_brain.common.ids import new_id
from agent_brain.common.secrets import get_logger

log = get_logger(__name__)
BEATS = 3  # renewals in the time that a lease lasts


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, as others are told about it.

    Attributes:
        host: The name of its machine.
        pid: Its number there.
        machine: Identifies the running machine, and the container on it.
        started: Identifies the process among all that have had its number; empty if unknown.
    """

    host: str
    pid: int
    machine: str = ""
    started: str = ""

    @classmethod
    def here(cls) -> Owner:
        """Return this process."""
        return _here(os.getpid())

    @classmethod
    def from_text(cls, text: str) -> Owner:
        """Read what :meth:`to_text` returned; what cannot be read is an unknown process."""
        try:
            host, pid, machine, started = json.loads(text)
            return cls(str(host), int(pid), str(machine), str(started))
        except (TypeError, ValueError):
            return cls("an unknown machine", 0)

    def to_text(self) -> str:
        """Return it as text."""
        return json.dumps([self.host, self.pid, self.machine, self.started])

    @property
    def boot(self) -> str:
        """What identifies the boot of its machine; empty if unknown."""
        return self.machine.partition(" ")[0]

    @property
    def is_dead(self) -> bool:
        """Whether it is known to have ended: it ran on this machine and is not there any more."""
        if not (self.machine and self.started) or self.machine != _machine():
            return False
        return _started(self.pid) != self.started

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@cache
def _here(pid: int) -> Owner:
    return Owner(socket.gethostname(), pid, _machine(), _started(pid))


@cache
def _machine() -> str:
    """Return what identifies the boot of this machine and its namespace of processes."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # not Linux
        return ""


def _started(pid: int) -> str:
    """Return when a process started, in ticks since the boot; empty if there is none."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = status.rpartition(")")[2].split()  # the name before it may contain anything
    return "" if fields[0] in ("Z", "X") else fields[19]


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a session, for a time.

    Attributes:
        session: The session's key.
        owner: Who has it.
        seconds: How long it lasts after a renewal; of another runner's, how long it still lasts.
        token: A new, unguessable text for each lease.
    """

    session: str
    owner: Owner
    seconds: float
    token: str

    @classmethod
    def new(cls, session: str, seconds: float) -> Lease:
        """Return a lease of this process."""
        return cls(session, Owner.here(), seconds, new_id("lease"))

    @property
    def is_gone(self) -> bool:
        """Whether nobody uses it: its process has ended, or is this one and has done so."""
        return self.token in _abandoned or self.owner.is_dead


_abandoned: set[str] = set()  # tokens


def abandon(lease: Lease) -> None:
    """Note that a lease of this process is not used any more, though it could not be given back."""
    _abandoned.add(lease.token)


class Heartbeat:
    """Renews leases from a thread, so that a busy event loop does not lose them.

    The thread runs while there are leases.

    Args:
        renew: Renews leases; returns the tokens of those that were lost. Called from the thread.
    """

    def __init__(self, renew: Callable[[Collection[Lease]], Collection[str]]) -> None:
        self._renew = renew
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._leases: dict[str, Lease] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._due = math.inf

    def _locked(self) -> threading.Condition:
        if self._pid != os.getpid():  # a forked process has neither the thread nor the leases
            self._reset()
        return self._changed

    def add(self, lease: Lease) -> None:
        """Renew a lease from now on."""
        with self._locked():
            self._leases[lease.token] = lease
            self._due = min(self._due, time.monotonic() + lease.seconds / BEATS)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="agent-brain-leases", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def remove(self, lease: Lease) -> None:
        """Do not renew a lease any more."""
        with self._locked():
            self._leases.pop(lease.token, None)
            if not self._leases:
                self._changed.notify()

    def stop(self) -> None:
        """Renew nothing any more, and wait for the end of the thread."""
        with self._locked():
            self._leases.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while (leases := self._wait()) is not None:
            try:
                lost = self._renew(leases)
            except Exception as error:  # the next beat tries again, before the leases have ended
                log.warning("Leases could not be renewed: %s", error)
                continue
            with self._changed:
                for token in lost:
                    self._leases.pop(token, None)

    def _wait(self) -> list[Lease] | None:
        """Wait for the next beat; return the leases to renew, or None if there are none left."""
        with self._changed:
            while self._leases and (left := self._due - time.monotonic()) > 0:
                self._changed.wait(left)
            if not self._leases:
                self._thread, self._due = None, math.inf
                return None
            beat = min(lease.seconds for lease in self._leases.values()) / BEATS
            self._due = time.monotonic() + beat
            return [*self._leases.values()]
