"""Calls over many servers: a lookup in the current catalogue, then one request to one peer.

Names stop here: callers say canonical or api names, peers hear their own local ones. A call costs
a lookup and one operation; a second attempt is made only where that is safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from observant_host.decisions.catalogue import PromptEntry, ToolEntry
from observant_host.decisions.routes import (
    NotListed,
    Unknown,
    find_prompt,
    find_resource,
    find_tool,
)
from observant_host.errors import CallError, InvalidCall
from observant_host.routing.arguments import as_object, check_deadline, check_log_level
from observant_host.routing.asked import Asked, Target
from observant_host.routing.open_calls import OpenCalls
from observant_host.routing.refusals import no_route, shown, unroutable
from observant_host.routing.routed import Routed
from observant_host.telemetry.masking import Masker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from msgspec import Raw

    from observant_host.decisions.catalogue import EntryKind
    from observant_host.decisions.routes import NoRoute
    from observant_host.routing.asked import CallOptions
    from observant_host.routing.call_result import CallResult
    from observant_host.routing.catalogue_store import CatalogueStore
    from observant_host.routing.routed_peer import PeerLookup
    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock


class Router:
    """Every method raises CallError (see `errors`), and CancelledError as it comes."""

    def __init__(
        self,
        store: CatalogueStore,
        peers: PeerLookup,
        *,
        telemetry: Telemetry,
        clock: Clock,
        masker: Masker | None = None,
    ) -> None:
        self._masker = masker or Masker()
        self._store = store
        self._peers = peers
        self._telemetry = telemetry
        self._clock = clock
        self.calls = OpenCalls(clock=clock)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | Raw | None = None,
        **options: Unpack[CallOptions],
    ) -> CallResult:
        """`tools/call` at the tool's owner. `name`: canonical, api or qualified."""
        asked = Asked(name=name, method="tools/call", **options)
        target = self._aim(find_tool(self._store.current, name), "tool")
        return await self._send(asked, target, lambda to: _by_name(to, arguments))

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | Raw | None = None,
        **options: Unpack[CallOptions],
    ) -> CallResult:
        """`prompts/get` at the prompt's owner; names as for tools."""
        asked = Asked(name=name, method="prompts/get", **options)
        target = self._aim(find_prompt(self._store.current, name), "prompt")
        return await self._send(asked, target, lambda to: _by_name(to, arguments))

    async def read_resource(
        self, uri: str, *, server: str | None = None, **options: Unpack[CallOptions]
    ) -> CallResult:
        """`resources/read` at the URI's owner, or at `server` whether it lists the URI or not."""
        asked = Asked(name=uri, method="resources/read", **options)
        return await self._send(asked, self._aim_resource(uri, server), lambda _to: {"uri": uri})

    async def complete(
        self,
        ref: Mapping[str, Any],
        argument: Mapping[str, Any],
        *,
        context: Mapping[str, Any] | None = None,
        server: str | None = None,
        **options: Unpack[CallOptions],
    ) -> CallResult:
        """`completion/complete`. `ref` is {"type": "ref/prompt", "name": canonical or api name} or
        {"type": "ref/resource", "uri": a template's}; `server` is for a URI, as in `read_resource`.
        """
        name = str(ref.get("name") or ref.get("uri") or "")
        asked = Asked(name=name, method="completion/complete", **options)

        def params(to: Target) -> dict[str, Any]:
            local = {"name": to.local_name} if to.uri is None else {"uri": to.uri}
            extra = {} if context is None else {"context": as_object(context, "context")}
            return {"ref": {**ref, **local}, "argument": as_object(argument, "argument"), **extra}

        return await self._send(asked, self._aim_reference(ref, server), params)

    async def _send(
        self,
        asked: Asked,
        target: Target | CallError,
        params: Callable[[Target], dict[str, Any]],
    ) -> CallResult:
        """The caller's own mistakes end as errors inside the call's operation, like all others."""
        written: dict[str, Any] = {}
        if isinstance(target, Target):
            try:
                check_deadline(asked.deadline_s)
                check_log_level(asked.log_level)
                written = params(target)
                if asked.input_round:
                    written |= asked.again()
                if asked.meta is not None:
                    written["_meta"] = as_object(asked.meta, "_meta")
            except InvalidCall as error:
                target = error
        routed = Routed(asked, telemetry=self._telemetry, clock=self._clock)
        key = self.calls.began(routed)
        try:
            return await routed.run(target, self._peers, written)
        except CallError as error:
            error.args = (self._masker.text(str(error)),)  # it may repeat what a server said
            raise
        finally:
            self.calls.ended(key)

    def _aim(self, found: ToolEntry | PromptEntry | NoRoute, kind: EntryKind) -> Target | CallError:
        match found:
            case ToolEntry():
                idempotent = bool(found.tool.idempotent or found.tool.read_only)
                return Target(
                    found.server,
                    found.local_name,
                    idempotent=idempotent,
                    output_schema=found.tool.output_schema,
                )
            case PromptEntry():
                return Target(found.server, found.local_name)
            case NotListed():
                peer = self._peers.get(found.server)
                return unroutable(found.server, None if peer is None else peer.status)
            case _:
                return no_route(found, kind, self._store.current)

    def _aim_resource(self, uri: str, server: str | None) -> Target | CallError:
        if server is not None:
            if self._peers.get(server) is None:
                return InvalidCall(f"no server {shown(server)} is configured", unknown=True)
            return Target(server, uri, uri=uri)
        catalogue = self._store.current
        found = find_resource(catalogue, uri)
        if isinstance(found, Unknown):
            return no_route(found, "resource", catalogue)
        return Target(found.server, uri, uri=uri)

    def _aim_reference(self, ref: Mapping[str, Any], server: str | None) -> Target | CallError:
        match ref:
            case {"type": "ref/prompt", "name": str(name)}:
                return self._aim(find_prompt(self._store.current, name), "prompt")
            case {"type": "ref/resource", "uri": str(uri)}:
                return self._aim_template(uri, server)
            case _:
                return InvalidCall(
                    'ref must be {"type": "ref/prompt", "name": …} or '
                    '{"type": "ref/resource", "uri": …}'
                )

    def _aim_template(self, uri: str, server: str | None) -> Target | CallError:
        """A template is named by its own text, not by a URI that fits it."""
        listed = (e for e in self._store.current.resources if e.uri == uri)
        entry = next(listed, None) if server is None else None
        if entry is None:
            return self._aim_resource(uri, server)
        return Target(entry.server, uri, uri=uri)


def _by_name(to: Target, arguments: Mapping[str, Any] | Raw | None) -> dict[str, Any]:
    return {"name": to.local_name, "arguments": as_object(arguments)}
