"""One child process and its three pipes, as a transport life.

Reading, writing and ending share no lock: bytes move in callbacks of the loop, and one task per
child waits for its end and carries it out. So a peer that is stuck in any of the three delays
neither the others nor any other peer.

Source: MCP 2026-07-28 basic/transports/stdio.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Final, Literal

from observant_host.errors import TransportClosed
from observant_host.timing.tasks import Latch, Signal, spawn, wait_any
from observant_host.transports.base import End
from observant_host.transports.child import start_child
from observant_host.transports.endings import end_detail
from observant_host.transports.environment import base_environment
from observant_host.transports.oom import was_killed
from observant_host.transports.outbox import Outbox
from observant_host.transports.pipes import WritePipe, add_reader, drained, read_chunk
from observant_host.transports.shutdown import end_group
from observant_host.transports.stderr_tail import StderrTail
from observant_host.wire.ndjson import LineSplitter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.config import StdioServer
    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.transports.base import EndKind, GroupKeeper, Outbound, Receiver, Sent
    from observant_host.transports.child import Child, StartGate
    from observant_host.wire.jsonrpc import Frame

EXIT_GRACE_S: Final = 0.5
"""Between the end of a pipe and the exit it usually announces: an exit has a status to tell."""

QUEUE_MESSAGES: Final = 2
"""Of the largest size, may wait to be written: the memory that one stuck peer can hold."""

NOISE_EXCERPT_BYTES: Final = 512
MESSAGE_STARTS: Final = b"{["


class StdioTransport:
    """A server started as a child process.

    `max_message_bytes` bounds one inbound line; `shutdown_timeout_s` bounds `close()` as a whole.
    Once `hurry` is set, closing takes no time: what still lives is killed.
    """

    kind: Literal["stdio"] = "stdio"

    def __init__(
        self,
        name: str,
        launch: StdioServer,
        *,
        max_message_bytes: int,
        shutdown_timeout_s: float,
        masker: Masker,
        guardian: GroupKeeper | None,
        starts: StartGate,
        telemetry: Telemetry,
        clock: Clock,
        hurry: Signal | None = None,
        host_environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._name = name
        self._launch = launch
        self._max_message_bytes = max_message_bytes
        self._shutdown_timeout_s = shutdown_timeout_s
        self._masker = masker
        self._guardian = guardian
        self._starts = starts
        self._telemetry = telemetry
        self._clock = clock
        self._hurry = hurry or Signal()
        self._host_environment = host_environment
        self._lines = LineSplitter(max_message_bytes)
        self._tail = StderrTail(masker)
        self._child: Child | None = None
        self._outbox: Outbox | None = None
        self._receiver: Receiver | None = None
        self._opened = False
        self._closing = Signal()
        self._stdout_ended = Signal()
        self._stdin_lost = Signal()
        self._finished: Latch[End] = Latch()
        self._end: End | None = None
        self._killed = ""
        self._owner: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Of the direct child while it lives; also its process group and session."""
        return self._child.pid if self._child is not None else None

    @property
    def ending(self) -> bool:
        return self._stdout_ended.is_set() or self._stdin_lost.is_set()

    @property
    def stderr_tail(self) -> str:
        return self._tail.text()

    async def open(self, receiver: Receiver) -> None:
        if self._opened or self._closing.is_set():
            raise TransportClosed(f'server "{self._name}": this life was already used')
        self._opened = True
        try:
            if not self._starts.oom_kills.began:
                await asyncio.to_thread(self._starts.oom_kills.begin)
            child = await start_child(
                self._name,
                tuple(self._launch.command),
                cwd=self._launch.cwd,
                environment=self._environment(),
                gate=self._starts,
            )
        except BaseException:
            self._finished.release(self._never_ran())
            raise
        self._began(child, receiver)

    def send(self, out: Outbound, expires: float) -> Sent:
        outbox = self._outbox
        if outbox is None:
            raise self._closed_error()
        try:
            return outbox.put(out.frame, expires)
        except OSError as error:
            self._lose_stdin()
            raise self._closed_error() from error

    def cancel(self, request_id: int) -> bool:
        """Always False: on stdio cancellation is a notification."""
        return False

    def listen(self) -> None:
        """Nothing to open: the server speaks on the same pipe."""

    def forget_session(self) -> None:
        """Nothing to forget: the process is the session."""

    async def taken(self, *, expires: float) -> None:
        """A pipe keeps the order."""

    async def close(self) -> End:
        self._closing.set()
        self._drop_outbox()
        if not self._opened:
            self._opened = True
            self._finished.release(self._never_ran())
        await self._finished.wait()
        return self._finished.value or self._never_ran()

    # beginning

    def _environment(self) -> dict[str, str]:
        launch = self._launch
        own = base_environment(self._host_environment, launch.env_inherit, launch.env)
        return own | dict(self._guardian.environment if self._guardian else {})

    def _began(self, child: Child, receiver: Receiver) -> None:
        self._child, self._receiver = child, receiver
        if self._guardian is not None:
            self._guardian.watch(child.pid)
        add_reader(child.stdout, self._read_stdout)
        add_reader(child.stderr, self._read_stderr)
        if not self._closing.is_set():
            self._outbox = Outbox(
                WritePipe(child.stdin, self._flush),
                now=self._clock.monotonic,
                max_bytes=QUEUE_MESSAGES * self._max_message_bytes,
            )
        self._owner = spawn(f"stdio {self._name}", self._live(child))

    # bytes

    def _read_stdout(self) -> None:
        child = self._child
        if child is None or (data := read_chunk(child.stdout)) is None:
            return
        if data:
            self._take(data)
        else:
            child.close("stdout")
            self._stdout_ended.set()

    def _take(self, data: bytes) -> None:
        receiver = self._receiver
        if receiver is None:
            return  # the end was reported: a grandchild still writes
        for line in self._lines.feed(data):
            if line[0] in MESSAGE_STARTS:
                receiver.frame_received(line)
            else:
                self._odd_line(receiver, line)
        if self._lines.oversized:
            for excerpt in self._lines.take_oversized():
                receiver.noise_received("oversized", self._masker.bytes(excerpt))

    def _odd_line(self, receiver: Receiver, line: Frame) -> None:
        stripped = line.strip()
        if not stripped:
            return
        if stripped[0] in MESSAGE_STARTS:
            receiver.frame_received(stripped)
        else:
            receiver.noise_received("not_json", self._excerpt(line))

    def _excerpt(self, line: Frame) -> bytes:
        """Masked before it is cut, so that no secret is cut in two."""
        return self._masker.bytes(bytes(line[: 4 * NOISE_EXCERPT_BYTES]))[:NOISE_EXCERPT_BYTES]

    def _read_stderr(self) -> None:
        child = self._child
        if child is None or (data := read_chunk(child.stderr)) is None:
            return
        if data:
            self._tail.add(data)
        else:
            child.close("stderr")

    def _flush(self) -> None:
        if self._outbox is not None:
            try:
                self._outbox.flush()
            except OSError:
                self._lose_stdin()

    def _lose_stdin(self) -> None:
        self._drop_outbox()
        self._stdin_lost.set()

    def _drop_outbox(self) -> None:
        if self._outbox is not None:
            self._outbox.clear()
            self._outbox = None

    # the end

    async def _live(self, child: Child) -> None:
        try:
            kind = await self._first_end(child)
            if kind == "exit" and was_killed(child.exited.value):
                self._killed = await asyncio.to_thread(self._starts.oom_kills.explain)
            if kind != "closed":
                self._report(kind, child)
            self._drop_outbox()
            await self._end_group(child)
        finally:
            child.signal_group(signal.SIGKILL)
            if self._end is None:
                self._report("closed", child)
            self._release(child)

    async def _first_end(self, child: Child) -> EndKind:
        woken = await wait_any(
            self._clock, None, child.exited, self._closing, self._stdout_ended, self._stdin_lost
        )
        if woken is self._closing:
            return "closed"
        await wait_any(self._clock, EXIT_GRACE_S, child.exited, self._closing)
        if child.exited.is_set():
            return "exit"
        return "eof" if self._stdout_ended.is_set() else "lost"

    async def _end_group(self, child: Child) -> None:
        await end_group(
            child,
            stdout_ended=self._stdout_ended,
            budget_s=self._shutdown_timeout_s,
            peer=self._name,
            telemetry=self._telemetry,
            clock=self._clock,
            hurry=self._hurry,
        )

    def _report(self, kind: EndKind, child: Child) -> None:
        """Deliver what is still in the pipes, then the end, then nothing more."""
        for data in drained(child.stdout):
            self._take(data)
        for data in drained(child.stderr):
            self._tail.add(data)
        receiver = self._receiver
        if receiver is not None and (rest := self._lines.end()):
            receiver.noise_received("unterminated", self._excerpt(rest))
        self._receiver = None
        self._drop_outbox()
        self._end = self._describe(kind, child)
        if receiver is not None:
            receiver.ended(self._end)

    def _describe(self, kind: EndKind, child: Child) -> End:
        tail, code = self.stderr_tail, child.exited.value
        exited = child.exited.is_set()
        detail = end_detail(
            self._name,
            kind,
            exit_code=code,
            exited=exited,
            stderr_tail=tail,
            killed=self._killed,
        )
        return End(kind=kind, detail=detail, exit_code=code, stderr_tail=tail)

    def _release(self, child: Child) -> None:
        if self._guardian is not None and child.exited.is_set():
            self._guardian.forget(child.pid)
        child.reap()
        self._child = None
        self._finished.release(self._end or self._never_ran())

    def _never_ran(self) -> End:
        return End(kind="closed", detail=f'server "{self._name}" was closed before it ran')

    def _closed_error(self) -> TransportClosed:
        if self._end is not None:
            return TransportClosed(
                self._end.detail,
                exit_code=self._end.exit_code,
                stderr_tail=self._end.stderr_tail,
            )
        if self._stdin_lost.is_set():
            return TransportClosed(f'server "{self._name}" has closed its stdin')
        if self._closing.is_set():
            return TransportClosed(f'server "{self._name}" is being closed')
        return TransportClosed(f'server "{self._name}" is not started')
