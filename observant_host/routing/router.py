"""Calls over many servers: a lookup in the current catalogue, then one request to one peer.

Names stop here: callers say canonical or api names, peers hear their own local ones. A call costs
a lookup and one operation; a second attempt is made only where that is safe. What is the same for
every call of a tool is made once and kept as long as the catalogue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from observant_host.decisions.catalogue import PromptEntry, ToolEntry
from observant_host.decisions.routes import (
    NotListed,
    Unknown,
    find_prompt,
    find_resource,
    find_tool,
)
from observant_host.errors import CallError, InvalidCall
from observant_host.peers.ordinary import Kept
from observant_host.routing.arguments import as_object, check_deadline, check_log_level
from observant_host.routing.asked import Asked, Target
from observant_host.routing.open_calls import OpenCalls
from observant_host.routing.refusals import local_part, meant, no_route, shown, unroutable
from observant_host.routing.routed import NOTHING, Routed, told_of
from observant_host.telemetry.masking import Masker

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Unpack

    from msgspec import Raw

    from observant_host.decisions.catalogue import Catalogue, EntryKind
    from observant_host.decisions.routes import NoRoute
    from observant_host.peers.peer import Terms
    from observant_host.routing.asked import CallOptions
    from observant_host.routing.call_result import CallResult
    from observant_host.routing.catalogue_store import CatalogueStore
    from observant_host.routing.routed_peer import PeerLookup
    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.vocabulary import RoutedCall
    from observant_host.timing.clock import Clock


class _Route(NamedTuple):
    """Where one name leads, and all of a call to it that is the same for every caller who asks
    for nothing special."""

    asked: Asked
    target: Target
    terms: Terms
    fact: RoutedCall
    kept: Kept
    others: dict[str | None, _Route]
    """Of callers who ask for the same each time, by principal."""


MAX_OTHERS: Final = 64
"""Principals that are remembered of one tool; when they are more, all are forgotten."""
_REPEATED: Final = frozenset({"principal", "parent", "handlers", "inputs"})
"""Options that callers who are alike say with each call: all of them, but for their trace, again
and again."""


class Router:
    """Every method returns a coroutine that is to be awaited once. It raises CallError (see
    `errors`), and CancelledError as it comes.

    `catch_up` brings the catalogue up to date where it lags behind what a server offers, and says
    whether it did; a name that leads nowhere is then looked for again.
    """

    def __init__(
        self,
        store: CatalogueStore,
        peers: PeerLookup,
        *,
        telemetry: Telemetry,
        clock: Clock,
        masker: Masker | None = None,
        catch_up: Callable[[], bool] = bool,
    ) -> None:
        self.masker = masker or Masker()
        self.peers = peers
        self.telemetry = telemetry
        self.clock = clock
        self.calls = OpenCalls(clock=clock)
        self._store = store
        self._catch_up = catch_up
        self._routes: dict[str, _Route] = {}
        self._routes_of = store.current

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | Raw | None = None,
        **options: Unpack[CallOptions],
    ) -> Coroutine[Any, Any, CallResult]:
        """`tools/call` at the tool's owner. `name`: canonical, api or qualified."""
        if self._routes_of is not (catalogue := self._store.current):
            self._routes_of, self._routes = catalogue, {}
        route = self._routes.get(name) or self._route(name)
        if isinstance(route, CallError):
            return self._send(Asked(name=name, method="tools/call", **options), route, NOTHING)
        if options:
            usual = self._usual(route, options)
            if usual is None:
                return self._unusual(route, arguments, options)
            route = usual
        asked, target, terms, fact, kept, _ = route
        try:
            params = {"name": target.local_name, "arguments": as_object(arguments)}
        except InvalidCall:
            return self._unusual(route, arguments, options)
        parent = options.get("parent")
        return Routed(self, asked, target, params, terms, fact, parent).ordinary(target, kept)

    def _route(self, name: str) -> _Route | CallError:
        """Kept as long as the catalogue: as many as there are names in it."""
        target = self._found(lambda now: self._aim(find_tool(now, name), "tool"))
        if isinstance(target, CallError):
            return target
        asked = Asked(name=name, method="tools/call")
        route = self._routes[name] = _route_of(asked, target)
        return route

    def _found(self, aim: Callable[[Catalogue], Target | CallError]) -> Target | CallError:
        target = aim(self._store.current)
        if isinstance(target, CallError) and self._catch_up():
            return aim(self._store.current)
        return target

    def _usual(self, route: _Route, options: CallOptions) -> _Route | None:
        """The same for callers who ask as this one does, where such calls are alike."""
        if not options.keys() <= _REPEATED:
            return None
        principal, handlers = options.get("principal"), options.get("handlers")
        inputs, others = options.get("inputs", "answer"), route.others
        known = others.get(principal)
        if known is None or known.asked.handlers is not handlers or known.asked.inputs != inputs:
            if len(others) >= MAX_OTHERS:
                others.clear()
            asked = msgspec.structs.replace(
                route.asked, principal=principal, handlers=handlers, inputs=inputs
            )
            known = others[principal] = _route_of(asked, route.target)
        return known

    def _unusual(
        self, route: _Route, arguments: Mapping[str, Any] | Raw | None, options: CallOptions
    ) -> Coroutine[Any, Any, CallResult]:
        name, target = route.asked.name, route.target
        asked = Asked(name=name, method="tools/call", **options)
        return self._written(
            asked, target, lambda: {"name": target.local_name, "arguments": as_object(arguments)}
        )

    def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | Raw | None = None,
        **options: Unpack[CallOptions],
    ) -> Coroutine[Any, Any, CallResult]:
        """`prompts/get` at the prompt's owner; names as for tools."""
        asked = Asked(name=name, method="prompts/get", **options)
        target = self._found(lambda now: self._aim(find_prompt(now, name), "prompt"))
        if isinstance(target, CallError):
            return self._send(asked, target, NOTHING)
        local_name = target.local_name
        return self._written(
            asked, target, lambda: {"name": local_name, "arguments": as_object(arguments)}
        )

    def read_resource(
        self, uri: str, *, server: str | None = None, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, CallResult]:
        """`resources/read` at the URI's owner, or at `server` whether it lists the URI or not."""
        asked = Asked(name=uri, method="resources/read", **options)
        target = self._found(lambda now: self._aim_resource(uri, server, now))
        return self._send(asked, target, {"uri": uri})

    def complete(
        self,
        ref: Mapping[str, Any],
        argument: Mapping[str, Any],
        *,
        context: Mapping[str, Any] | None = None,
        server: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Coroutine[Any, Any, CallResult]:
        """`completion/complete`. `ref` is {"type": "ref/prompt", "name": canonical or api name} or
        {"type": "ref/resource", "uri": a template's}; `server` is for a URI, as in `read_resource`.
        """
        name = str(ref.get("name") or ref.get("uri") or "")
        asked = Asked(name=name, method="completion/complete", **options)
        target = self._found(lambda now: self._aim_reference(ref, server, now))
        if isinstance(target, CallError):
            return self._send(asked, target, NOTHING)
        local = {"name": target.local_name} if target.uri is None else {"uri": target.uri}

        def params() -> dict[str, Any]:
            extra = {} if context is None else {"context": as_object(context, "context")}
            return {"ref": {**ref, **local}, "argument": as_object(argument, "argument"), **extra}

        return self._written(asked, target, params)

    def _written(
        self, asked: Asked, target: Target, params: Callable[[], dict[str, Any]]
    ) -> Coroutine[Any, Any, CallResult]:
        try:
            return self._send(asked, target, params())
        except InvalidCall as error:
            wrong = meant(error, target.server, target.local_name)
            return self._send(asked, wrong, NOTHING)

    def _send(
        self, asked: Asked, target: Target | CallError, params: Mapping[str, Any]
    ) -> Coroutine[Any, Any, CallResult]:
        """The caller's own mistakes end as errors inside the call's operation, like all others."""
        if isinstance(target, Target):
            try:
                check_deadline(asked.deadline_s)
                check_log_level(asked.log_level)
                params = asked.beside(params)
            except InvalidCall as error:
                target = meant(error, target.server, target.local_name)
        fact, terms = told_of(asked, target), asked.terms()
        return Routed(self, asked, target, params, terms, fact, asked.parent).run()

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
                peer = self.peers.get(found.server)
                refused = unroutable(found.server, None if peer is None else peer.status)
                return meant(refused, found.server, local_part(found.name, found.server))
            case _:
                return no_route(found, kind, self._store.current)

    def _aim_resource(
        self, uri: str, server: str | None, catalogue: Catalogue
    ) -> Target | CallError:
        if server is not None:
            if self.peers.get(server) is None:
                return InvalidCall(f"no server {shown(server)} is configured", unknown=True)
            return Target(server, uri, uri=uri)
        found = find_resource(catalogue, uri)
        if isinstance(found, Unknown):
            return no_route(found, "resource", catalogue)
        return Target(found.server, uri, uri=uri)

    def _aim_reference(
        self, ref: Mapping[str, Any], server: str | None, catalogue: Catalogue
    ) -> Target | CallError:
        match ref:
            case {"type": "ref/prompt", "name": str(name)}:
                return self._aim(find_prompt(catalogue, name), "prompt")
            case {"type": "ref/resource", "uri": str(uri)}:
                return self._aim_template(uri, server, catalogue)
            case _:
                return InvalidCall(
                    'ref must be {"type": "ref/prompt", "name": …} or '
                    '{"type": "ref/resource", "uri": …}'
                )

    def _aim_template(
        self, uri: str, server: str | None, catalogue: Catalogue
    ) -> Target | CallError:
        """A template is named by its own text, not by a URI that fits it."""
        listed = (e for e in catalogue.resources if e.uri == uri)
        entry = next(listed, None) if server is None else None
        if entry is None:
            return self._aim_resource(uri, server, catalogue)
        return Target(entry.server, uri, uri=uri)


def _route_of(asked: Asked, target: Target) -> _Route:
    return _Route(asked, target, asked.terms(), told_of(asked, target), Kept(asked.handlers), {})
