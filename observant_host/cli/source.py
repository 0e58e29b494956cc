"""Where a command's answer comes from: the running host's private socket, or a host of its own.

Both give the JSON documents of the API as bytes, so that `--json` prints exactly the same in both
cases and results pass through as their servers sent them.
"""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from observant_host.decisions.catalogue_json import prompts_json, resources_json, tools_json
from observant_host.errors import CallError, InvalidCall
from observant_host.routing.call_result import error_json

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from observant_host.host import Host
    from observant_host.routing.call_result import CallResult
    from observant_host.supervision.peer_state import ServerView

Listed = Literal["tools", "prompts", "resources"]


class Source(Protocol):
    """One host to ask. Every method raises HostError with a sentence."""

    async def servers(self) -> bytes:
        """`{"servers": […]}` in config order."""

    async def probe(self, name: str, *, reason: str = "") -> bytes:
        """A round of negotiation now; the server's object after it."""

    async def allow(self, name: str, *, until: float | None, reason: str) -> bytes:
        """A person's allowance (`until`: epoch seconds); the server's object after it."""

    async def catalogue(self, kind: Listed) -> bytes:
        """The catalogue's document of this kind."""

    async def call(self, name: str, arguments: bytes, *, deadline_s: float | None) -> bytes:
        """The document of `call --json`, also where the call ended without a result."""

    async def prompt(self, name: str, arguments: bytes, *, deadline_s: float | None) -> bytes:
        """As `call`, of a prompt."""

    async def resource(self, uri: str, *, server: str | None, deadline_s: float | None) -> bytes:
        """As `call`, of a resource; `server` where another than its owner is meant."""

    async def decisions(self, server: str) -> bytes:
        """The document of `explain --json`."""


def principal() -> str:
    """Who acts, as decisions record it."""
    return f"cli:{getpass.getuser()}"


async def _document(name: str, call: Awaitable[CallResult]) -> bytes:
    try:
        result = await call
    except CallError as error:
        return msgspec.json.encode(error_json(error, name=name))
    return msgspec.json.encode(result.to_json())


class OwnHost:
    """A host that this command started and will stop."""

    def __init__(self, host: Host) -> None:
        self.host = host

    async def servers(self) -> bytes:
        return msgspec.json.encode({"servers": list(self.host.servers.values())})

    async def probe(self, name: str, *, reason: str = "") -> bytes:
        self._known(name)
        done = await self.host.probe(name, principal=principal(), reason=reason)
        return msgspec.json.encode(done)

    async def allow(self, name: str, *, until: float | None, reason: str) -> bytes:
        self._known(name)
        return msgspec.json.encode(
            await self.host.allow(name, until=until, reason=reason, principal=principal())
        )

    async def catalogue(self, kind: Listed) -> bytes:
        shape = {"tools": tools_json, "prompts": prompts_json, "resources": resources_json}[kind]
        return msgspec.json.encode(shape(await self.host.fresh_catalogue()))

    async def call(self, name: str, arguments: bytes, *, deadline_s: float | None) -> bytes:
        given = msgspec.json.decode(arguments)
        return await _document(
            name,
            self.host.call_tool(name, given, deadline_s=deadline_s, principal=principal()),
        )

    async def prompt(self, name: str, arguments: bytes, *, deadline_s: float | None) -> bytes:
        given = msgspec.json.decode(arguments)
        return await _document(
            name,
            self.host.get_prompt(name, given, deadline_s=deadline_s, principal=principal()),
        )

    async def resource(self, uri: str, *, server: str | None, deadline_s: float | None) -> bytes:
        return await _document(
            uri,
            self.host.read_resource(
                uri, server=server, deadline_s=deadline_s, principal=principal()
            ),
        )

    async def decisions(self, server: str) -> bytes:
        found = await self.host.explain(server)
        return msgspec.json.encode({"server": server, "decisions": found})

    def _known(self, name: str) -> ServerView:
        if name not in self.host.servers:
            known = ", ".join(self.host.servers) or "none"
            raise InvalidCall(f"no server `{name}` is configured; there are: {known}", unknown=True)
        return self.host.servers[name]
