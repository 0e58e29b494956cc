"""What the record of many calls takes on disk.

{"calls": 40000, "target": [command…]}
"""

from __future__ import annotations

import asyncio
import gzip
import tempfile
from pathlib import Path

from driving import result, task

from observant_host import Host, StdioServer

AT_ONCE = 16
LEVEL = 6


async def main() -> None:
    given = task()
    with tempfile.TemporaryDirectory() as folder:
        host = Host(folder, record=True, startup_deadline_s=60)
        host.add_server("one", StdioServer(given["target"]))
        async with host:
            numbers = iter(range(given["calls"]))

            async def one_after_another() -> None:
                for number in numbers:
                    await host.call_tool("t0", {"text": "hello", "n": number})

            await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))
        plain = packed = 0
        for path in (Path(folder) / "traces").iterdir():
            data = path.read_bytes()
            text = gzip.decompress(data) if path.suffix == ".gz" else data
            plain += len(text)
            # the last file is not compressed yet: it would be, at its size
            packed += len(data) if path.suffix == ".gz" else len(gzip.compress(text, LEVEL))
    calls = given["calls"]
    result({"bytes_a_call": plain / calls, "packed_bytes_a_call": packed / calls})


if __name__ == "__main__":
    asyncio.run(main())
