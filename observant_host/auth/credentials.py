"""The headers that authorise requests to one HTTP server: static, from files, from a command.

Values are asked for each request, so that a rotated secret is used without a restart; they are
given to this server's own origin only, which the transports see to.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Final

from observant_host.auth.credential_command import CredentialCommand
from observant_host.auth.header_files import HeaderFiles
from observant_host.auth.header_text import problem_of, secrets_in
from observant_host.errors import HostError, TransportError
from observant_host.timing.tasks import Latch, spawn
from observant_host.transports.child import StartGate

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from observant_host.auth.header_text import Given
    from observant_host.config import HttpServer
    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.transports.base import Credentials

UNSAID_S: Final = 300.0
"""How long headers are kept whose command does not say: a 401 asks for new ones earlier."""

EARLY_S: Final = 30.0
"""New ones are asked for this long before the old ones expire (at most a tenth of their time)."""

MIN_KEPT_S: Final = 1.0
"""Even headers for one use are kept so long: a burst of calls is one use."""

AGAIN_S: Final = 5.0
"""A command is not run more often than this for a server that refuses everything, nor after it
has failed: a refusal must not become a storm of processes."""


def for_server(
    name: str,
    endpoint: HttpServer,
    *,
    masker: Masker,
    telemetry: Telemetry,
    clock: Clock,
    environment: Mapping[str, str] = os.environ,
    starts: StartGate | None = None,
) -> Credentials:
    """The credentials of one server, by its `headers` and `headers_command`.

    They outlive a transport life: keep them with the server, so that a command's answer is cached
    across reconnects. Later headers win: static, then files, then the command's.
    """
    issuer = None
    if endpoint.headers_command:
        command = CredentialCommand(
            name,
            tuple(endpoint.headers_command),
            masker=masker,
            telemetry=telemetry,
            clock=clock,
            starts=starts or StartGate(),
            environment=environment,
        )
        issuer = Issuer(name, command, masker=masker, clock=clock)
    files = HeaderFiles(name, endpoint.header_files, clock=clock)
    return ServerCredentials(name, endpoint.headers, files=files, issuer=issuer, masker=masker)


class ServerCredentials:
    """A transports.base.Credentials."""

    def __init__(
        self,
        name: str,
        static: Mapping[str, str],
        *,
        files: HeaderFiles,
        issuer: Issuer | None,
        masker: Masker,
    ) -> None:
        self._name = name
        self._static = static
        self._files = files
        self._issuer = issuer
        self._masker = masker
        self._checked: Mapping[str, str] | None = None
        self._issued: Mapping[str, str] | None = None

    async def headers(self) -> Mapping[str, str]:
        return await self._headers(now=False)

    def present(self, now: float) -> Mapping[str, str] | None:
        if now >= self._files.fresh_until:
            return None
        if self._issuer is not None and self._issuer.present(now) is not self._issued:
            return None
        return self._checked

    async def rejected(self, used: Mapping[str, str]) -> bool:
        if self._issuer is not None:
            await self._issuer.rejected(used)
        return await self._headers(now=True) != used

    async def _headers(self, *, now: bool) -> Mapping[str, str]:
        read = await self._files.headers(now=now)
        if read:
            self._masker.lend(f"{self._name} header files", secrets_in(read))
        issued = await self._issuer.headers() if self._issuer is not None else {}
        headers = {**self._static, **read, **issued} if read or issued else self._static
        if headers != self._checked:
            self._check(headers)
        self._issued = issued
        return self._checked or {}

    def _check(self, headers: Mapping[str, str]) -> None:
        problem = problem_of(headers)
        if problem is not None:
            self._checked = None
            raise TransportError(f"servers.{self._name}.headers {self._masker.text(problem)}")
        self._checked = dict(headers)


class Issuer:
    """A command's headers, kept until they expire; whoever asks meanwhile shares one run of it."""

    def __init__(
        self, name: str, command: CredentialCommand, *, masker: Masker, clock: Clock
    ) -> None:
        self._name = name
        self._command = command
        self._masker = masker
        self._clock = clock
        self._headers: Mapping[str, str] | None = None
        self._problem: str | None = None
        self._until = -1.0
        self._refused_at = -math.inf
        self._running: Latch[None] | None = None
        self._task: asyncio.Task[None] | None = None

    async def headers(self) -> Mapping[str, str]:
        """Raises TransportError while the command fails."""
        if self._clock.monotonic() >= self._until:
            await self._renew()
        if self._headers is None:
            raise TransportError(self._problem or f"servers.{self._name}.headers_command failed")
        return self._headers

    def present(self, now: float) -> Mapping[str, str] | None:
        """What is kept, and has not expired."""
        return self._headers if now < self._until else None

    async def rejected(self, used: Mapping[str, str]) -> None:
        """Have others, unless `used` are old ones already, or a refusal has just asked for some.

        Even headers that the command printed a moment ago: a helper may keep what was revoked.
        """
        present = self._headers
        if present is None or any(used.get(name) != value for name, value in present.items()):
            return
        now = self._clock.monotonic()
        if self._running is None:
            if now - self._refused_at < AGAIN_S:
                return
            self._refused_at = now
        await self._renew()

    async def _renew(self) -> None:
        """Cancelling a waiter leaves the run to the others."""
        if self._running is None:
            self._running = Latch()
            self._task = spawn(f"headers_command of {self._name}", self._run(self._running))
        await self._running.wait()

    async def _run(self, done: Latch[None]) -> None:
        try:
            self._take(await self._command.run())
        except HostError as error:
            self._headers, self._problem = None, str(error)
            self._until = self._clock.monotonic() + AGAIN_S
        finally:
            self._running = None
            done.release(None)

    def _take(self, given: Given) -> None:
        self._masker.lend(f"{self._name} command", secrets_in(given.headers))
        lasts = UNSAID_S if given.expires_in_s is None else given.expires_in_s
        self._headers, self._problem = given.headers, None
        self._until = self._clock.monotonic() + max(MIN_KEPT_S, lasts - min(EARLY_S, lasts / 10))
