"""Small private files that survive a restart: atomic, versioned, never fatal when broken.

What is kept here only refuses, alerts and keeps names stable. An era is never taken from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from observant_host.decisions.names import Grants

SCHEMA_VERSION: Final = 1


class ProvenModern(msgspec.Struct, frozen=True):
    """This fingerprint once showed modern evidence. `time` is epoch seconds."""

    server: str
    version: str | None
    time: float


class LastEra(msgspec.Struct, frozen=True):
    """The era last chosen for a server: the "from" of the next decision, never a choice."""

    era: str
    version: str | None
    time: float


class Allowance(msgspec.Struct, frozen=True):
    """Given by a person with `allow NAME`, for one fingerprint. `until`, `time`: epoch seconds."""

    fingerprint: str
    until: float
    reason: str
    principal: str
    time: float


class Moments(msgspec.Struct, frozen=True):
    """Epoch seconds, None for never."""

    last_ready: float | None = None
    last_downgrade: float | None = None
    last_refused: float | None = None


class Memory(msgspec.Struct):
    """What is remembered. `modern` is by fingerprint; `eras`, `allowances`, `moments` by server.

    Mutable on purpose: one host owns it and hands it to `MemoryFile`. `document` is the file as
    read, so that fields of a newer version are kept.
    """

    grants: Grants = Grants()
    modern: dict[str, ProvenModern] = {}
    eras: dict[str, LastEra] = {}
    allowances: dict[str, Allowance] = {}
    moments: dict[str, Moments] = {}
    document: Mapping[str, Any] = {}


class Loaded(msgspec.Struct, frozen=True):
    """`warning` is a sentence where the file was unreadable and set aside, else None."""

    memory: Memory
    warning: str | None = None


class MemoryFile:
    """`memory.json` (0600) in a private folder (0700). All methods block: short, but use a thread.

    `encode` on the event loop (one consistent moment), `write` off it.
    """

    def __init__(self, path: Path) -> None:
        raise NotImplementedError

    def load(self) -> Loaded:
        """An absent file is an empty memory. A corrupt one is renamed aside, never fatal."""
        raise NotImplementedError

    def encode(self, memory: Memory) -> bytes:
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        """Atomically: temporary file, fsync, rename, fsync of the folder. Raises OSError."""
        raise NotImplementedError

    def save(self, memory: Memory) -> None:
        self.write(self.encode(memory))


class InstanceLock:
    """One host per state folder. A context manager; the kernel lets go when the process ends."""

    def __init__(self, folder: Path) -> None:
        raise NotImplementedError

    def acquire(self) -> None:
        """Raises InstanceLocked naming the folder and the holder's pid."""
        raise NotImplementedError

    def release(self) -> None:
        raise NotImplementedError
