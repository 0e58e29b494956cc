"""Real child processes and connections for the transport tests; none outlives its test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import blockbuster_ctx

from observant_host.config import StdioServer
from observant_host.telemetry.masking import Masker
from observant_host.telemetry.setup import capturing
from observant_host.transports.child import StartGate
from observant_host.transports.stdio import StdioTransport
from tests.support.peers import program
from tests.support.processes import eventually, group_members, living, open_fds, state_of
from tests.transports.http_subjects import Making
from tests.transports.suite import SkippingClock, stuck

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class StdioSubject:
    """Makes transports with defaults that suit tests; each can be overridden."""

    def __init__(self) -> None:
        self.clock = SkippingClock()
        self.telemetry, self.told = capturing()
        self.starts = StartGate()
        self.made: list[StdioTransport] = []

    stuck = staticmethod(stuck)

    def make(self, *options: str, **changes: Any) -> StdioTransport:
        return self.run(program("plain.py", *options), **changes)

    def run(self, command: tuple[str, ...], **changes: Any) -> StdioTransport:
        launch = StdioServer(
            command,
            env=changes.pop("env", {}),
            env_inherit=changes.pop("env_inherit", ()),
            cwd=changes.pop("cwd", None),
        )
        wanted: dict[str, Any] = {
            "max_message_bytes": 16 << 20,
            "shutdown_timeout_s": 0.5,
            "masker": Masker(changes.pop("secrets", ())),
            "guardian": None,
            "starts": self.starts,
            "telemetry": self.telemetry,
            "clock": self.clock,
        }
        transport = StdioTransport("sample", launch, **(wanted | changes))
        self.made.append(transport)
        return transport


@pytest.fixture
async def subject() -> AsyncIterator[StdioSubject]:
    before = open_fds()
    subject = StdioSubject()
    with blockbuster_ctx("observant_host"):
        yield subject
    groups = [transport.pid for transport in subject.made if transport.pid]
    for transport in subject.made:
        await transport.close()
    assert [state_of(pid) for pid in groups] == ["" for _ in groups]  # reaped, no zombie
    await eventually(lambda: not any(living(group_members(pgid)) for pgid in groups))
    assert open_fds() - before == set()


@pytest.fixture
async def making() -> AsyncIterator[Making]:
    """Of HTTP transports, closed with the test."""
    making = Making()
    with blockbuster_ctx("observant_host"):
        yield making
        for transport in making.made:
            await transport.close()


@pytest.fixture(scope="session")
def certificate() -> Path:
    """A key and its own certificate for 127.0.0.1, in one PEM file; good for nothing else."""
    return Path(__file__).parents[1] / "support" / "tls" / "loopback.pem"
