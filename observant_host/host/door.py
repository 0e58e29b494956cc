"""The library's front door. Entered and left from any task: it signals the core and waits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio
import msgspec

from observant_host.config import HostConfig, HttpServer, StdioServer
from observant_host.config.given import read_given
from observant_host.config.keys import HOST
from observant_host.decisions.merge import EMPTY
from observant_host.errors import ConfigError, Unavailable
from observant_host.host.core import Core, Plan
from observant_host.host.operating import Operating
from observant_host.host.transports import prepare
from observant_host.peers.input_handlers import InputHandlers, modes_of
from observant_host.routing.arguments import check_log_level
from observant_host.supervision.declared import declare, secrets_of
from observant_host.supervision.peer_state import ServerView, unstarted
from observant_host.telemetry.masking import Masker
from observant_host.timing.clock import Clock, SystemClock
from observant_host.timing.tasks import OwnerTask, Signal, spawn, wait_any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
    from os import PathLike

    from observant_host.decisions.catalogue import Catalogue, Listing
    from observant_host.peers.input_handlers import InputHandler, Mode
    from observant_host.peers.told import OnLog
    from observant_host.telemetry.facade import Telemetry


class Host(Operating):
    """Many MCP servers as one catalogue. An async context manager; closable from any task, twice.

    `state_dir` None keeps nothing on disk; with it names and allowances survive, and `record`
    writes decisions and traces below it. `on_elicitation`, `on_sampling`, `on_roots` answer what
    servers ask for; without a handler the capability is not declared. `elicitation_modes` is what
    the first can do: fill in a "form", have a person open a "url". `log_level` asks servers for log
    messages from that level on, `on_log` gets them, a few a second. `config` is a configuration
    already read (its `state_dir` and `record` do not count here: `from_config` follows them).
    `settings` are keys of the `[host]` table, e.g. collision_policy="reject".

    `recall_from` reads the memory of another host's state folder without writing to it.
    `secrets` are masked everywhere, besides the values of each server's `env` and `headers`.
    `relay_input`: calls will bring handlers of their own callers, so older servers are told of all.
    `partial`: more servers are configured than this host has: it keeps and recalls no names.
    `child_nofile` is the soft limit of open files for servers, where this process raised its own.
    """

    def __init__(
        self,
        state_dir: str | PathLike[str] | None = None,
        record: bool = False,
        *,
        config: HostConfig | None = None,
        on_elicitation: InputHandler | None = None,
        on_sampling: InputHandler | None = None,
        on_roots: InputHandler | None = None,
        elicitation_modes: Sequence[Mode] = ("form",),
        relay_input: bool = False,
        log_level: str | None = None,
        on_log: OnLog | None = None,
        telemetry: Telemetry | None = None,
        clock: Clock | None = None,
        recall_from: str | PathLike[str] | None = None,
        secrets: Sequence[str] = (),
        configure_sdk: bool = False,
        partial: bool = False,
        child_nofile: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        check_log_level(log_level)
        given = config or HostConfig()
        self.config = msgspec.structs.replace(given, host=_settings(given, settings))
        self._servers = {server.name: server for server in self.config.servers}
        prepare(self._servers.values())
        self._masker = Masker((*secrets, *secrets_of(self.config)))
        self._plan = Plan(
            config=self.config,
            servers=self._servers.values(),
            state_dir=Path(state_dir) if state_dir is not None else None,
            recall_from=Path(recall_from) if recall_from is not None else None,
            record=record,
            configure_sdk=configure_sdk,
            partial=partial,
            child_nofile=child_nofile,
            handlers=InputHandlers(
                on_elicitation,
                on_sampling,
                on_roots,
                elicitation_modes=modes_of(elicitation_modes),
                relays=relay_input,
            ),
            log_level=log_level,
            on_log=on_log,
            masker=self._masker,
            telemetry=telemetry,
            clock=clock or SystemClock(),
        )
        self._owner: OwnerTask | None = None

    @classmethod
    def from_config(cls, path: str | PathLike[str] | None = None, **keys: Any) -> Self:
        """A host by a configuration file (None: found as the command line finds it).

        Reads files; `keys` as for `Host(...)`. Raises ConfigError with every problem at once.
        """
        from observant_host import config_files

        def source() -> config_files.Loaded:
            return config_files.load(Path(path) if path is not None else None)

        loaded = source()
        folder = loaded.config.host.state_dir
        host = cls(
            **{
                "state_dir": folder,
                "record": loaded.config.telemetry.record,
                "config": loaded.config,
                "secrets": loaded.secrets,
                **keys,
            }
        )
        host.reload_from(source, now=loaded)
        return host

    # Servers

    def add_server(
        self,
        name: str,
        launch: StdioServer | HttpServer,
        *,
        allow_legacy: bool | Sequence[str] = False,
        **keys: Any,
    ) -> None:
        """Add a server, before or after start; it does not wait for it.

        `allow_legacy` True means every legacy revision we support, a list only those. `keys` are
        those of a `[servers.NAME]` table. Raises ConfigError.
        """
        server = declare(name, launch, allow_legacy=allow_legacy, keys=keys)
        if name in self._servers:
            raise ConfigError([f"there is already a server named {name!r}; names are unique"])
        self._masker.learn(secrets_of([server]))
        prepare([server])
        self._servers[name] = server
        if self._core is not None and self._core.opened.is_set():
            self._core.fleet.add(server)
            self._core.changed(name)

    def remove_server(self, name: str) -> Awaitable[None]:
        """Forget a server at once; awaiting the answer waits until its process is gone.

        Raises InvalidCall where there is no such server.
        """
        self._known(name)
        del self._servers[name]
        if self._core is None or not self._core.opened.is_set():
            return _Gone()
        supervisor = self._core.fleet.remove(name)
        self._core.changed(name)
        return spawn(f"removal of {name}", supervisor.ended())

    @property
    def servers(self) -> Mapping[str, ServerView]:
        """A frozen view of every server at this moment, in config order."""
        core = self._core
        if core is None or not core.opened.is_set():
            return {name: unstarted(server) for name, server in self._servers.items()}
        return {peer.server.name: peer.record.view() for peer in core.fleet}

    # Life

    async def open(self) -> None:
        """Start, and return as soon as the servers are being started. Raises InstanceLocked."""
        if self._owner is not None:
            raise RuntimeError("a Host is entered once; make a new one")
        self._core = core = Core(self._plan)
        self._owner = OwnerTask("host", core.run, on_error=_raised_to_whoever_waits)
        self._owner.start()
        await self._until(core.opened)
        self._begin_operating(core)

    async def settled(self) -> None:
        """Until every enabled server is settled, or startup_deadline_s is over.

        Raises NameCollision by collision_policy = "reject".
        """
        await self._until(self.core.ready)

    async def _until(self, signal: Signal) -> None:
        core, owner = self._core, self._owner
        if core is None or owner is None:
            raise RuntimeError("the host was not opened")
        try:
            await wait_any(core.plan.clock, None, signal, core.over)
            if not signal.is_set():
                await owner.wait()
        except BaseException:
            with anyio.CancelScope(shield=True):
                owner.stop()
                await core.over.wait()
            raise

    async def __aenter__(self) -> Self:
        await self.open()
        await self.settled()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all servers, side by side, each within its shutdown_timeout_s. Idempotent.

        Calls that are still open end as unavailable. Cancelling a closer does not cancel the
        closing.
        """
        if self._owner is not None:
            await self._end_operating()
            self._owner.stop()
            await self._owner.wait()

    def hurry(self) -> None:
        """For somebody who has waited enough: what still lives while the host closes is killed at
        once, without its shutdown_timeout_s."""
        if self._core is not None:
            self._core.hurry.set()

    async def drain(self, timeout_s: float | None = None) -> bool:
        """Refuse new calls and wait for the open ones, at most `timeout_s` (None: the config's
        drain_timeout_s). True if all ended in time."""
        core = self._running()
        self.refuse_calls()
        limit = self.config.service.drain_timeout_s if timeout_s is None else timeout_s
        await wait_any(core.plan.clock, limit, self._idle, core.over)
        return not self.open_calls

    @property
    def ready(self) -> Signal:
        """Set once start-up is over."""
        return self.core.ready

    @property
    def over(self) -> Signal:
        """Set once everything is ended, for whatever reason."""
        return self.core.over

    @property
    def published(self) -> bool:
        """True from the end of start-up until the end of the host."""
        core = self._core
        return core is not None and core.ready.is_set() and not core.over.is_set()

    @property
    def core(self) -> Core:
        """What runs; raises Unavailable before the start."""
        return self._running()

    @property
    def telemetry(self) -> Telemetry:
        return self._running().telemetry

    @property
    def catalogue(self) -> Catalogue:
        """The one immutable view of this moment.

        A look at it has lists read anew, behind its back, whose servers said how long they are
        fresh, once that is over.
        """
        core = self._core
        if core is None or not core.opened.raised:
            return EMPTY
        core.catch_up()
        core.looked_at()
        return core.store.current

    async def fresh_catalogue(self, *, within_s: float = 5.0) -> Catalogue:
        """The catalogue after lists were read anew whose servers' own hints have run out; the old
        one where that fails or takes longer than `within_s`."""
        core = self._core
        if core is None or not core.opened.is_set():
            return EMPTY
        await core.fresh(within_s)
        return core.store.current

    def follow_catalogue(self, told: Callable[[Catalogue], object]) -> Callable[[], None]:
        """Have `told(catalogue)` called, on the loop, after each change; it must neither block nor
        raise. Returns what ends that. Raises Unavailable where the host does not run."""
        return self._running().catalogues.add(told)

    @property
    def listings(self) -> Mapping[str, Listing | None]:
        """What each enabled server listed last in this run, None where it has not."""
        core = self._core
        if core is None or not core.opened.is_set():
            return {}
        return {one.server.name: one.record.offered for one in core.fleet if one.server.enabled}

    # Looking

    async def metrics(self, accept: str | None = None) -> tuple[bytes, str]:
        """(body, content type) of `/metrics`, with fresh figures of the children."""
        if self._core is None or not self._core.opened.is_set():
            return b"", "text/plain; version=0.0.4; charset=utf-8"
        await self._core.sampler.refresh()
        return await self._core.telemetry.render(accept)

    async def wait_for(self, name: str, *states: str) -> ServerView:
        """Until the server is in one of these states and the catalogue shows it.

        Unbounded: put a deadline around it. Raises InvalidCall for an unknown server, Unavailable
        where the host ends first.
        """
        core = self._running()
        while True:
            record = self._known_peer(name).record
            if record.status.state in states and not core.dirty.is_set():
                return record.view()
            if core.over.is_set():
                raise Unavailable(f"the host ended before {name} was {' or '.join(states)}")
            core.refreshed.clear()
            await wait_any(core.plan.clock, None, core.refreshed, core.over)


class _Gone:
    """Awaitable that is done: nothing ran yet, so nothing has to end."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


def _settings(config: HostConfig, changes: Mapping[str, Any]) -> Any:
    unknown = sorted(set(changes) - set(config.host.__struct_fields__))
    if unknown:
        allowed = ", ".join(config.host.__struct_fields__)
        raise TypeError(f"unknown host settings {', '.join(unknown)}; allowed: {allowed}")
    problems: list[str] = []
    read = {
        key: read_given(f"host.{key}", HOST.keys.get(key), value, problems)
        for key, value in changes.items()
        if value is not None
    }
    if problems:
        raise ConfigError(problems)
    return msgspec.structs.replace(config.host, **read)


def _raised_to_whoever_waits(_name: str, _error: BaseException) -> None:
    """Whoever enters or closes the host gets it."""
