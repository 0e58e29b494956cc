"""A person's own command that prints headers: run as a child, bounded in time and output.

It gets the host's whole environment, as a credential helper needs (agents, profiles, caches), and
nothing on stdin. Only the end of its stderr is ever shown, masked; its stdout never.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

from observant_host.auth.header_text import Given, read_output
from observant_host.errors import SpawnFailed, TransportError
from observant_host.timing.deadline import DeadlinePassed, deadline
from observant_host.timing.tasks import Signal, wait_any
from observant_host.transports.child import start_child
from observant_host.transports.pipes import add_reader, drained, read_chunk
from observant_host.transports.stderr_tail import StderrTail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.transports.child import Child, StartGate

TIMEOUT_S: Final = 30.0
"""Long enough for a token service in another country, and for a touch on a key."""

MAX_OUTPUT_BYTES: Final = 256 * 1024
SHOWN_CHARS: Final = 200


class CredentialCommand:
    """`argv` is run at each `run`; who wants a cache keeps one."""

    def __init__(
        self,
        server: str,
        argv: tuple[str, ...],
        *,
        masker: Masker,
        telemetry: Telemetry,
        clock: Clock,
        starts: StartGate,
        environment: Mapping[str, str],
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._server = server
        self._argv = argv
        self._masker = masker
        self._telemetry = telemetry
        self._clock = clock
        self._starts = starts
        self._environment = environment
        self._timeout_s = timeout_s

    async def run(self) -> Given:
        """Raises TransportError naming the key and what to do."""
        try:
            async with deadline(
                self._timeout_s,
                scope="connect",
                peer=self._server,
                telemetry=self._telemetry,
                method="headers_command",
                clock=self._clock,
            ):
                output, code, said = await self._run()
        except DeadlinePassed:
            raise self._error(f"gave nothing within {self._timeout_s:g} s") from None
        except SpawnFailed as error:
            raise self._error(f"cannot be started: {error}") from error
        if code != 0:
            raise self._error(f"ended with {code}" + (f": {said}" if said else ""))
        if len(output) > MAX_OUTPUT_BYTES:
            raise self._error(f"printed more than {MAX_OUTPUT_BYTES} bytes")
        given = read_output(output)
        if isinstance(given, str):
            raise self._error(given)
        return given

    async def _run(self) -> tuple[bytes, int | None, str]:
        child = await start_child(
            self._server, self._argv, cwd=None, environment=self._environment, gate=self._starts
        )
        try:
            child.close("stdin")
            output = _Output(child)
            tail = StderrTail(self._masker)
            add_reader(child.stderr, lambda: _keep(child, tail))
            await wait_any(self._clock, None, output.ended, child.exited)
            output.drain()  # a daemon that it started may hold the pipe for ever
            await child.exited.wait()
            for data in drained(child.stderr):
                tail.add(data)
            said = " ".join(tail.text()[-SHOWN_CHARS:].split())
            return bytes(output.data), child.exited.value, said
        finally:
            child.signal_group(signal.SIGKILL)
            child.reap()

    def _error(self, what: str) -> TransportError:
        return TransportError(f"servers.{self._server}.headers_command {self._masker.text(what)}")


class _Output:
    """stdout until its end, or until it is too much."""

    def __init__(self, child: Child) -> None:
        self.data = bytearray()
        self.ended = Signal()
        self._child = child
        add_reader(child.stdout, self._read)

    def _read(self) -> None:
        data = read_chunk(self._child.stdout)
        if data is None:
            return
        self._take(data)

    def drain(self) -> None:
        """What is in the pipe now, and nothing after it."""
        for data in drained(self._child.stdout):
            self._take(data)
        self._child.close("stdout")

    def _take(self, data: bytes) -> None:
        self.data += data
        if not data or len(self.data) > MAX_OUTPUT_BYTES:
            self._child.close("stdout")
            self.ended.set()


def _keep(child: Child, tail: StderrTail) -> None:
    data = read_chunk(child.stderr)
    if data is None:
        return
    if data:
        tail.add(data)
    else:
        child.close("stderr")
