"""One server at its desk whose era is negotiated."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from observant_host.config import EraPolicy, ServerConfig, Timing
from observant_host.decisions.era import Permission
from observant_host.decisions.terms import Era, Trigger
from observant_host.peers.negotiation import Round, negotiate
from tests.peers.desk import META, MODERN, Desk, server

if TYPE_CHECKING:
    from observant_host.peers.life import Life

NONE, GRANTED = Permission.NONE, Permission.GRANTED
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [MODERN, "2025-11-25"],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": {META + "serverInfo": {"name": "s", "version": "1"}},
}
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "s", "version": "1"},
}


def config(**era: Any) -> ServerConfig:
    return server(
        timing=Timing(probe_timeout_s=30, legacy_probe_timeout_ms=5000),
        era=EraPolicy(allow_legacy=LEGACY, **era),
    )


class Table:
    """One server at its desk, a second desk for its fresh process, and rounds between them."""

    def __init__(self, settings: ServerConfig | None = None) -> None:
        self.desk = Desk(settings or config())
        self.fresh = Desk(settings or config(), clock=self.desk.clock)
        self.spawn_error: Exception | None = None

    async def respawn(self) -> Life:
        if self.spawn_error is not None:
            raise self.spawn_error
        await self.fresh.life.open()
        return self.fresh.life

    async def round(self, permission: Permission, **options: Any) -> asyncio.Task[Round]:
        if self.desk.transport._loop is None:
            await self.desk.life.open()
        options = {
            "proven": False,
            "trigger": Trigger.BOOT,
            "previous_era": Era.UNKNOWN,
            **options,
        }
        task = asyncio.create_task(
            negotiate(self.desk.life, permission=permission, respawn=self.respawn, **options)
        )
        await self.desk.settle()
        return task


def initializes(desk: Desk) -> int:
    return desk.methods().count("initialize")


async def initializing(table: Table, **options: Any) -> asyncio.Task[Round]:
    task = await table.round(GRANTED, **options)
    table.desk.error(table.desk.sent[0], -32601)
    await table.desk.settle()
    return task
