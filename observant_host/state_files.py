"""Small private files that survive a restart: atomic, versioned, never fatal when broken.

What is kept here only refuses, alerts and keeps names stable. An era is never taken from it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec

from observant_host.decisions.acts import Ruling
from observant_host.decisions.names import Grant, Grants
from observant_host.errors import ConfigError, InstanceLocked

if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")

SCHEMA_VERSION: Final = 1
PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
MAX_PROVEN: Final = 4096
"""Fingerprints remembered as modern, the latest kept: each edited command line makes a new one."""


class ProvenModern(msgspec.Struct, frozen=True):
    """This fingerprint once showed modern evidence. `time` is epoch seconds."""

    server: str
    version: str | None
    time: float


class LastEra(msgspec.Struct, frozen=True, gc=False):
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
    """What is remembered. `modern` is by fingerprint; `eras`, `allowances`, `moments` and
    `acts` (a person's, that stand) by server; `tools_off` by "server/tool".

    Mutable on purpose: one host owns it and hands it to `MemoryFile`. `document` is the file as
    read, so that fields of a newer version are kept.
    """

    grants: Grants = Grants()
    modern: dict[str, ProvenModern] = {}
    eras: dict[str, LastEra] = {}
    allowances: dict[str, Allowance] = {}
    moments: dict[str, Moments] = {}
    acts: dict[str, Ruling] = {}
    tools_off: dict[str, Ruling] = {}
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
        self.path = path

    def load(self) -> Loaded:
        """An absent file is an empty memory. A corrupt one is renamed aside, never fatal.

        One record that cannot be read is left out; the others, and everything unknown, are kept.
        """
        try:
            document = msgspec.json.decode(self.path.read_bytes())
        except FileNotFoundError:
            return Loaded(Memory())
        except OSError as error:
            return Loaded(Memory(), f"{self.path} cannot be read ({error}); starting without it")
        except (ValueError, RecursionError) as error:
            return Loaded(Memory(), self._set_aside(f"is not valid JSON ({error})"))
        if not isinstance(document, dict):
            return Loaded(Memory(), self._set_aside("holds no JSON object"))
        return Loaded(_memory(document))

    def encode(self, memory: Memory) -> bytes:
        """What is known over what was read: unknown members stay, at the top and in each record."""
        was = memory.document
        version = was.get("version")
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        grants = {"tools": memory.grants.tools, "prompts": memory.grants.prompts}
        document = {
            **was,
            "version": version if newer else SCHEMA_VERSION,
            "grants": {
                **_section(was, "grants"),
                **{k: _over(_section(was, "grants").get(k), v) for k, v in grants.items()},
            },
            "modern": _over(was.get("modern"), _latest(memory.modern)),
            "eras": _over(was.get("eras"), memory.eras),
            "allowances": _over(was.get("allowances"), memory.allowances),
            "moments": _over(was.get("moments"), memory.moments),
            "acts": _over(was.get("acts"), memory.acts),
            "tools_off": _over(was.get("tools_off"), memory.tools_off),
        }
        return msgspec.json.format(msgspec.json.encode(document), indent=1)

    def write(self, data: bytes) -> None:
        """Atomically: temporary file, fsync, rename, fsync of the folder. Raises OSError."""
        private_folder(self.path.parent)
        write_atomically(self.path, data)

    def save(self, memory: Memory) -> None:
        self.write(self.encode(memory))

    def _set_aside(self, problem: str) -> str:
        aside = self.path.with_name(f"{self.path.name}.corrupt")
        with suppress(OSError):
            self.path.replace(aside)
        return f"{self.path} {problem}; set aside as {aside.name}, starting without it"


class InstanceLock:
    """One host per state folder. A context manager; the kernel lets go when the process ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    @classmethod
    def of(cls, folder: Path) -> InstanceLock:
        """The acquired lock of a folder, which is made where there is none."""
        lock = cls(folder)
        lock.acquire()
        return lock

    def acquire(self) -> None:
        """Raises InstanceLocked naming the folder and the holder's pid, ConfigError where the
        folder is of no use. Idempotent."""
        if self._descriptor is not None:
            return
        descriptor = self._opened()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise InstanceLocked(
                f"another host (pid {holder or 'unknown'}) uses {self._folder}; stop it, "
                "or give this one a state_dir of its own"
            ) from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def _opened(self) -> int:
        try:
            private_folder(self._folder)
            path = self._folder / "instance.lock"
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        except OSError as error:
            problem = (
                f"host.state_dir: {self._folder} cannot be used: {error.strerror}; name a folder "
                "that this user can make and write to"
            )
            raise ConfigError([problem]) from error

    def release(self) -> None:
        """Idempotent. The file stays: removing it would let two hosts lock two files."""
        if self._descriptor is not None:
            # a child between its fork and its exec has the descriptor too: closing is not enough
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def private_folder(folder: Path) -> None:
    """Made, with what is above it; the folder itself is the user's alone. Raises OSError."""
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(PRIVATE_FOLDER)


def write_atomically(path: Path, data: bytes) -> None:
    """Readers see the old or the new file, whole; after a power cut too. Raises OSError."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # is 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _memory(document: Mapping[str, Any]) -> Memory:
    grants = _section(document, "grants")
    return Memory(
        grants=Grants(_records(grants, "tools", Grant), _records(grants, "prompts", Grant)),
        modern=_records(document, "modern", ProvenModern),
        eras=_records(document, "eras", LastEra),
        allowances=_records(document, "allowances", Allowance),
        moments=_records(document, "moments", Moments),
        acts=_records(document, "acts", Ruling),
        tools_off=_records(document, "tools_off", Ruling),
        document=document,
    )


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = document.get(name)
    return section if isinstance(section, dict) else {}


def _records(document: Mapping[str, Any], name: str, kind: type[T]) -> dict[str, T]:
    records: dict[str, T] = {}
    for key, value in _section(document, name).items():
        with suppress(msgspec.ValidationError):
            records[key] = msgspec.convert(value, kind)
    return records


def _over(was: object, now: Mapping[str, msgspec.Struct]) -> dict[str, Any]:
    """Each record's known fields over its unknown ones; records that are gone are gone."""
    before = was if isinstance(was, dict) else {}
    return {key: {**_section(before, key), **msgspec.to_builtins(v)} for key, v in now.items()}


def _latest(modern: Mapping[str, ProvenModern]) -> dict[str, ProvenModern]:
    if len(modern) <= MAX_PROVEN:
        return dict(modern)
    return dict(sorted(modern.items(), key=lambda item: item[1].time)[-MAX_PROVEN:])
