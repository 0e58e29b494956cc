"""A changed configuration on a running host: planned, applied, told; one at a time.

What did not change is not touched, its calls in flight included. A configuration that cannot be
used changes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions import reload_plan
from observant_host.decisions.reload_plan import Act, Plan, ServerPlan
from observant_host.errors import ConfigError, Unavailable
from observant_host.host.following import Following
from observant_host.host.loudness import Loudness
from observant_host.supervision.declared import secrets_of
from observant_host.telemetry.vocabulary import ConfigLoaded, OperatorAct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from observant_host.config import HostConfig, ServerConfig
    from observant_host.config_files import Loaded
    from observant_host.host.core import Core
    from observant_host.telemetry.masking import Masker

    Source = Callable[[], Loaded]

HASH_CHARS: Final = 16


class Reload(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one request: `applied` is False for a dry run. `file` is what was read, "" for
    a configuration that was handed over; `hash` is over masked values. `warnings` are sentences
    about what was read."""

    plan: Plan
    applied: bool
    hash: str
    file: str = ""
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The document of `reload --json`."""
        built: dict[str, Any] = msgspec.to_builtins(self)
        return {**built, "sentences": self.plan.sentences()}


class Reloading(Following):
    """The part of a Host that takes a changed configuration."""

    config: HostConfig
    _servers: dict[str, ServerConfig]
    _masker: Masker

    def __init__(self) -> None:
        super().__init__()
        self._source: Source | None = None
        self._one_reload = asyncio.Lock()
        self._loudness = Loudness()
        self._hash = ""
        self._last_failed = False
        self._files: Mapping[Path, str] = {}

    def reload_from(self, source: Source, *, now: Loaded | None = None) -> None:
        """Where `reload()` reads the configuration; it is called in a thread and raises
        ConfigError. `now` is what it gave for the configuration in force."""
        self._source = source
        if now is not None:
            self._files = now.digests
            self._hash = hash_of(now)

    async def reload(
        self,
        config: HostConfig | None = None,
        *,
        dry_run: bool = False,
        only_changes: bool = False,
        principal: str = "library",
        reason: str = "",
    ) -> Reload:
        """Bring the host to `config`, or (None) to what its file says by now.

        It returns once the plan is in force; servers that begin anew may still be finishing calls
        (at most drain_timeout_s) or starting: `wait_for` waits. Servers of `add_server` stay. Of
        several requests each plans when its turn comes. Raises ConfigError, and then nothing
        changed. `only_changes`: where nothing changed nothing is told.
        """
        async with self._one_reload:
            core = self._opened()
            try:
                loaded = await self._read() if config is None else None
                new = loaded.config if loaded is not None else config or self.config
                plan = self._planned(new, loaded)
            except ConfigError as error:
                if not dry_run:
                    self._tell_failure(core, error)
                raise
            digest = self._hash_of(new, loaded)
            file = str(loaded.path) if loaded is not None else ""
            warnings = loaded.assembled.warnings if loaded is not None else ()
            found = Reload(
                plan=plan, applied=not dry_run, hash=digest, file=file, warnings=warnings
            )
            if dry_run:
                return found
            quiet = only_changes and not (plan.changes_something or self._last_failed)
            if not quiet:
                self._tell(core, found, new, principal=principal, reason=reason)
            self._apply(core, plan, new)
            return found

    @property
    def files(self) -> Mapping[Path, str]:
        """Every file that the configuration was last read from, successfully or not, with a digest
        of its content."""
        return self._files

    async def _read(self) -> Loaded:
        if self._source is None:
            raise ConfigError(["this host was given its configuration by a program, not by a file"])
        loaded = await asyncio.to_thread(self._source)
        self._files = loaded.digests
        return loaded

    def _planned(self, new: HostConfig, loaded: Loaded | None) -> Plan:
        self._masker.learn((*(loaded.secrets if loaded is not None else ()), *secrets_of(new)))
        own = {server.name for server in self.config.servers}
        taken = [one.name for one in new.servers if one.name in self._servers.keys() - own]
        if taken:
            raise ConfigError(
                [
                    f"servers.{name}: a server of this name was added by the program that runs the "
                    "host; names are unique"
                    for name in taken
                ]
            )
        here = tuple(server for server in self.config.servers if server.name in self._servers)
        now = msgspec.structs.replace(self.config, servers=here)
        return reload_plan.plan(now, new, clean=self._masker.text)

    def _hash_of(self, new: HostConfig, loaded: Loaded | None) -> str:
        if loaded is not None:
            return hash_of(loaded)
        shown = [(one.name, repr(reload_plan.leaves(one))) for one in new.servers]
        return _digest(self._masker.text(repr(shown)))

    # Telling

    def _tell(
        self, core: Core, found: Reload, new: HostConfig, *, principal: str, reason: str
    ) -> None:
        core.telemetry.count(
            OperatorAct(
                verb="reload",
                peer="",
                principal=principal,
                reason=reason,
                detail=found.plan.summary(),
            )
        )
        core.telemetry.count(
            ConfigLoaded(
                hash=found.hash,
                successful=True,
                problems=sum(server.problem is not None for server in new.servers),
                detail=f"{found.file or 'given by the program'}: {found.plan.summary()}",
            )
        )
        self._hash, self._last_failed = found.hash, False

    def _tell_failure(self, core: Core, error: ConfigError) -> None:
        self._last_failed = True
        core.telemetry.count(
            ConfigLoaded(
                hash=self._hash,
                successful=False,
                problems=len(error.problems),
                detail="nothing was changed: " + " | ".join(error.problems),
            )
        )

    # Applying

    def _apply(self, core: Core, plan: Plan, new: HostConfig) -> None:
        """At once, without a wait in it: nobody sees half of it."""
        added = {
            name: server
            for name, server in self._servers.items()
            if all(name != one.name for one in self.config.servers)
        }
        self.config = reload_plan.in_force(self.config, new)
        core.configure(self.config)
        self._loudness.follow(core)
        wanted = {server.name: server for server in new.servers}
        for server in plan.servers:
            self._act_on(core, server, wanted.get(server.name))
        self._servers.clear()
        self._servers.update({**wanted, **added})
        core.fleet.reorder(tuple(wanted))
        core.dirty.set()

    def _act_on(self, core: Core, plan: ServerPlan, server: ServerConfig | None) -> None:
        drain_s = self.config.service.drain_timeout_s
        if server is None:
            core.fleet.retire(plan.name, drain_s=drain_s)
        elif plan.act is Act.ADD:
            core.fleet.add(server)
        elif plan.act in (Act.ENABLE, Act.DISABLE):
            core.fleet.switch(server, drain_s=drain_s)
        elif (peer := core.fleet.get(plan.name)) is not None:
            if plan.act is Act.RESTART:
                peer.begin_anew(server, drain_s=drain_s)
            elif plan.act is Act.UPDATE:
                peer.adopt(server, plan.effects, drain_s=drain_s)
        if plan.act is not Act.KEEP:
            core.changed(plan.name)

    def _opened(self) -> Core:
        core = self._core
        if core is None or not core.opened.is_set() or core.over.is_set():
            raise Unavailable("the host does not run; use it inside `async with`", fault="host")
        if self._leaving:
            raise Unavailable("the host is draining: nothing is reloaded any more", fault="host")
        return core


def hash_of(loaded: Loaded) -> str:
    """Of a configuration that was read, over masked values."""
    lines = (
        f"{'.'.join(path)}={entry.value!r}" for path, entry in loaded.assembled.entries.items()
    )
    return _digest("\n".join(lines))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARS]
