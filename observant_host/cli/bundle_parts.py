"""What goes into a bundle. Every part is masked here, whatever it was masked before."""

from __future__ import annotations

import asyncio
import platform
import time
from collections import deque
from importlib import metadata
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.errors import ConfigError, HostError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from pathlib import Path

    from observant_host.cli.session import Session
    from observant_host.config_files import Loaded
    from observant_host.service.client import HostClient
    from observant_host.telemetry.masking import Masker

DECISIONS_BYTES: Final = 64 << 20
"""Decisions of a week of a busy fleet; of more the newest are packed."""
FILES_BYTES: Final = 1 << 20
"""Of each file that a crash left."""
PACKAGES: Final = (
    *("observant-host", "aiohttp", "anyio", "click", "msgspec", "structlog"),
    *("prometheus-client", "opentelemetry-api", "opentelemetry-sdk"),
    "opentelemetry-exporter-otlp-proto-http",
)
NOT_RUNNING: Final = "not there: no host is running"


class Part(msgspec.Struct, frozen=True):
    """One file of the archive; `text` empty: not there, and `about` says why."""

    name: str
    about: str
    text: bytes = b""


async def gather(session: Session, *, given: Path | None, days: float, now_ns: int) -> list[Part]:
    """Everything that can be had; what cannot says so. Raises nothing that has to do with it."""
    from observant_host.telemetry.masking import Masker

    loaded, problems = _configuration(session)
    masker = Masker(loaded.secrets if loaded is not None else ())
    parts = [_config(loaded, problems), await _doctor(given)]
    try:
        state_dir: Path | None = session.state_dir
    except ConfigError:
        state_dir = None
    parts += await _of_host(session, state_dir)
    if state_dir is None:
        parts.append(Part("decisions.jsonl", "not there: the state folder is not known"))
    else:
        since_ns = now_ns - int(days * 86_400 * 10**9)
        parts.append(await asyncio.to_thread(_decisions, state_dir, since_ns, days))
        parts += await asyncio.to_thread(lambda: list(_left_behind(state_dir)))
    parts.append(_versions())
    masked = [_masked(part, masker) for part in parts]
    return [*masked, Part("README.txt", "this list", _listing(masked, now_ns))]


def stamp_of(now_ns: int) -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now_ns / 1e9))


def _configuration(session: Session) -> tuple[Loaded | None, tuple[str, ...]]:
    try:
        return session.loaded, ()
    except ConfigError as error:
        return None, tuple(error.problems)


def _config(loaded: Loaded | None, problems: tuple[str, ...]) -> Part:
    from observant_host.cli.config_commands import show_lines

    if loaded is None:
        about = "what is wrong with the configuration"
        return Part("config-problems.txt", about, _lines(problems))
    about = "the effective configuration, with where each value came from"
    return Part("config.toml", about, _lines(show_lines(loaded, origin=True)))


async def _doctor(given: Path | None) -> Part:
    from observant_host.cli.doctor import examine_machine

    checks = await asyncio.to_thread(examine_machine, given)
    return Part("doctor.json", "every check of doctor", msgspec.json.encode(checks))


async def _of_host(session: Session, state_dir: Path | None) -> list[Part]:
    from observant_host.service.client import HostClient

    client = None if state_dir is None else await HostClient.connect(state_dir)
    if client is None:
        names = ("servers.json", "recent.json", "log.jsonl", "metrics.txt")
        return [Part(name, NOT_RUNNING) for name in names]
    try:
        return [
            await _asked("servers.json", "state of every server", client.servers),
            await _asked("recent.json", "the last decisions, from memory", client.recent),
            await _asked("log.jsonl", "the last lines of the log", lambda: _log(client)),
            await _asked("metrics.txt", "what /metrics shows now", client.metrics),
        ]
    finally:
        await client.close()


async def _log(client: HostClient) -> bytes:
    return _lines(msgspec.json.decode(await client.log())["lines"])


async def _asked(name: str, about: str, ask: Callable[[], Awaitable[bytes]]) -> Part:
    try:
        return Part(name, about, await ask())
    except HostError as error:
        return Part(name, f"not there: {error}")


def _decisions(state_dir: Path, since_ns: int, days: float) -> Part:
    """Of the record, as OTLP JSON lines: `incidents --from` reads them."""
    from observant_host.incidents.record import decision_lines

    kept: deque[bytes] = deque()
    size = 0
    for line in decision_lines(state_dir, since_ns=since_ns):
        kept.append(line)
        size += len(line)
        while size > DECISIONS_BYTES:
            size -= len(kept.popleft())
    about = f"the record's decisions of {days:g} days, OTLP JSON lines"
    if not kept:
        return Part("decisions.jsonl", f"not there: none recorded in {days:g} days")
    return Part("decisions.jsonl", about, b"".join(kept))


def _left_behind(state_dir: Path) -> Iterator[Part]:
    """What a crash, or SIGUSR1, left in the state folder."""
    for pattern in ("crash-*.log", "flight-recorder-*.jsonl"):
        for path in sorted(state_dir.glob(pattern)):
            try:
                with path.open("rb") as file:
                    text = file.read(FILES_BYTES)
            except OSError as error:
                yield Part(path.name, f"not there: {error.strerror}")
            else:
                yield Part(path.name, "left by a crash, or asked for", text)


def _versions() -> Part:
    found = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
    }
    return Part("versions.json", "of this host and what it runs on", msgspec.json.encode(found))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _masked(part: Part, masker: Masker) -> Part:
    text = masker.text(part.text.decode("utf-8", "replace")).encode()
    return Part(part.name, masker.text(part.about), text)


def _listing(parts: list[Part], now_ns: int) -> bytes:
    head = f"observant-host bundle of {stamp_of(now_ns)}. Configured secrets are masked as ***."
    return _lines([head, "", *(f"{part.name:<20} {part.about}" for part in parts)])


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
