"""A host to be killed: guardian, ten children of the worst kinds, and more being started.

`python guarded_host.py MARKER`: every process below it has MARKER in its arguments. Writes one line
"ready" when the ten have answered, then goes on starting and closing children until it is killed.
"""

from __future__ import annotations

import asyncio
import sys

from observant_host.config import StdioServer
from observant_host.supervision.guardian import Guardian
from observant_host.telemetry.masking import Masker
from observant_host.telemetry.setup import silent
from observant_host.timing.clock import SystemClock
from observant_host.transports.child import StartGate
from observant_host.transports.stdio import StdioTransport
from tests.support.peers import program
from tests.support.receivers import Recorder
from tests.transports.suite import FAR, request

STUBBORN = ("--ignore-eof", "--ignore-term")
KINDS: tuple[tuple[tuple[str, ...], str | None], ...] = (
    ((), None),
    (("--ignore-eof",), None),
    (("--ignore-term",), None),
    (STUBBORN, None),
    (("--launcher", "--ignore-eof"), None),
    (("--launcher", *STUBBORN), None),
    (STUBBORN, "plain"),
    ((), "holds_stdout"),
    ((), "own_session"),
    (STUBBORN, "no_environment"),
)


async def main(marker: str) -> None:
    clock, telemetry, starts = SystemClock(), silent(), StartGate()
    guardian = Guardian(telemetry=telemetry, clock=clock)
    await guardian.start()

    def make(*options: str) -> StdioTransport:
        return StdioTransport(
            "sample",
            StdioServer(program("plain.py", "--marker", marker, *options)),
            max_message_bytes=1 << 20,
            shutdown_timeout_s=1,
            masker=Masker(),
            guardian=guardian,
            starts=starts,
            telemetry=telemetry,
            clock=clock,
        )

    async def start(options: tuple[str, ...], grandchild: str | None) -> None:
        recorder, transport = Recorder(), make(*options)
        await transport.open(recorder)
        if grandchild:
            transport.send(request(1, "child", mode=grandchild), expires=FAR)
        else:
            transport.send(request(1, "echo"), expires=FAR)
        await recorder.answer_to(1)

    await asyncio.gather(*(start(*kind) for kind in KINDS))
    print("ready", flush=True)
    while True:
        transports = [make(*STUBBORN) for _ in range(4)]
        await asyncio.gather(*(transport.open(Recorder()) for transport in transports))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
