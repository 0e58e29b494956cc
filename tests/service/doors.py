"""A host with tokens over real sockets, and a client that says exactly what a test wants."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from observant_host.config import HostConfig, HostSettings, Profile, ServiceSettings, Token
from observant_host.service.access.tokens import digest_of
from observant_host.service.app import Service
from tests.support.hosts import PATIENCE_S, add, quick_host

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from observant_host.telemetry.facade import Finished


def token(secret: str, *scopes: str, **keys: Any) -> Token:
    return Token(sha256=digest_of(secret).hex(), scopes=scopes, **keys)  # type: ignore[arg-type]  # plain words


TOKENS = {
    "agent": token("agent-secret", "mcp"),
    "reader": token("reader-secret", "read"),
    "operator": token("operator-secret", "mcp", "read", "operate"),
    "slow": token("slow-secret", "read", rate=0.01),
    "nothing": token("nothing-secret"),
}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Doors:
    """A running service, and what its host told."""

    def __init__(self, service: Service, told: list[Finished]) -> None:
        self.service = service
        self.told = told

    def at(self, listener: str = "admin") -> tuple[str, int]:
        parts = urlsplit(self.service.addresses[listener])
        return parts.hostname or "", parts.port or 0

    async def send(self, data: bytes, *, listener: str = "admin") -> Answer:
        """Send these bytes on a connection of their own; status 0 where no answer came."""
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(*self.at(listener))
            try:
                writer.write(data)
                return _parsed(await _all_of(reader))
            finally:
                writer.close()

    async def ask(
        self,
        method: str,
        target: str,
        *,
        listener: str = "admin",
        bearer: str | None = None,
        body: bytes = b"",
        **headers: str,
    ) -> Answer:
        """One request; `headers` with `_` for `-`, "" leaves one out."""
        host, port = self.at(listener)
        told = {"Host": f"{host}:{port}", "Connection": "close"}
        if bearer is not None:
            told["Authorization"] = f"Bearer {bearer}"
        if body:
            told |= {"Content-Length": str(len(body)), "Content-Type": "application/json"}
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in told.items() if v)]
        return await self.send("\r\n".join([*lines, "", ""]).encode() + body, listener=listener)


async def _all_of(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


def _parsed(data: bytes) -> Answer:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (one.partition(":") for one in lines)
    }
    return Answer(int(first.split()[1]) if first else 0, headers, body)


@asynccontextmanager
async def doors(
    *,
    tokens: Mapping[str, Token] = TOKENS,
    profiles: Mapping[str, Profile] = {},
    settings: ServiceSettings | None = None,
    servers: Mapping[str, dict[str, Any]] = {},
    max_message_bytes: int = 1_000_000,
    **keys: Any,
) -> AsyncIterator[Doors]:
    service_settings = settings or ServiceSettings(listen="127.0.0.1:0")
    config = HostConfig(
        host=HostSettings(max_message_bytes=max_message_bytes),
        service=service_settings,
        tokens=tokens,
        profiles=profiles,
    )
    host, told = quick_host(config=config, state_dir=None)
    for name, options in servers.items():
        add(host, name, options)
    service = Service(host, **keys)
    async with host:
        await service.listen()
        try:
            yield Doors(service, told)
        finally:
            await service.close()
