"""Following resources through a host: wishes that outlive their server's restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.decisions.routes import Unknown, find_resource
from observant_host.decisions.subscription import announces
from observant_host.errors import InvalidCall, Unavailable
from observant_host.host.calls import Calls
from observant_host.routing.refusals import no_route

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.peers.told import LogMessage
    from observant_host.supervision.supervisor import PeerSupervisor

    OnUpdated = Callable[[str], object]
    OnUnmet = Callable[[str, str], object]


class Following(Calls):
    """The half of a Host that hears of changed resources."""

    async def subscribe_resource(
        self,
        uri: str,
        callback: OnUpdated,
        *,
        server: str | None = None,
        on_unmet: OnUnmet | None = None,
    ) -> None:
        """Have `callback(uri)` called whenever the resource, or a part of it, changed: its owner's
        (who lists it, or a template that it fits) or `server`'s.

        It gets the URI that changed; also where a change may have gone untold, after a restart or
        a lost stream. A coroutine that it returns is run. The wish is kept until it is taken back,
        over all restarts of the server. Where the server does not fulfil it, that is in the log
        and in the server's `detail`, and `on_unmet(uri, why)` is called, once for each reason:
        nobody tells of changes then, and whoever needs them has to read. Raises InvalidCall where
        nobody has the resource or it cannot be followed, Unavailable where the host does not run.
        """
        peer = self._followed(uri, server)
        life = peer.peer.life
        if life is not None and not announces(life.capabilities, "resources", "subscribe"):
            raise InvalidCall(
                f"{peer.server.name} does not let its resources be followed: it announces no "
                f"resources.subscribe"
            )
        peer.peer.wishes.add(uri, callback, on_unmet)

    async def unsubscribe_resource(
        self, uri: str, callback: OnUpdated | None = None, *, server: str | None = None
    ) -> None:
        """Take a wish back: this callback's, or all of the URI's. Where there is none, nothing."""
        self._followed(uri, server).peer.wishes.remove(uri, callback)

    def follow_logs(self, told: Callable[[LogMessage], object]) -> Callable[[], None]:
        """Have `told` called for each log message of a server that is told further; it must neither
        block nor raise. Returns what ends that. Raises Unavailable where the host does not run."""
        return self._running().logs.add(told)

    def follow_announced(
        self, told: Callable[[tuple[str, frozenset[str]]], object]
    ) -> Callable[[], None]:
        """Have `told((server, kinds))` called once lists are merged of which a server said that
        they changed ("tools", "prompts", "resources"), also where they turned out to be the same.
        As `follow_logs` otherwise."""
        return self._running().announced.add(told)

    def _followed(self, uri: str, server: str | None) -> PeerSupervisor:
        core = self._core
        if core is None or not core.opened.is_set() or core.over.is_set():
            raise Unavailable("the host does not run; use it inside `async with`", fault="host")
        catalogue = core.store.current
        if server is None:
            found = find_resource(catalogue, uri)
            if isinstance(found, Unknown):
                raise no_route(found, "resource", catalogue)
            server = found.server
        peer = core.fleet.get(server)
        if peer is None:
            raise InvalidCall(f"no server {server!r} is configured", unknown=True)
        return peer
