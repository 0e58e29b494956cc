"""What a host costs while nobody calls: CPU a second and memory, with so many servers.

{"servers": 50, "target": [command…], "seconds": 4}
"""

from __future__ import annotations

import asyncio
import gc
import time

from driving import memory_mib, result, task

from observant_host import Host, StdioServer


async def main() -> None:
    given = task()
    host = Host(startup_deadline_s=120)
    for number in range(given["servers"]):
        host.add_server(f"s{number:04}", StdioServer(given["target"]))
    before, _ = memory_mib()
    async with host:
        gc.collect()
        cpu = time.process_time()
        await asyncio.sleep(given["seconds"])
        cpu = time.process_time() - cpu
        memory, _ = memory_mib()
    each = (memory - before) * 1024 / given["servers"]
    idle = cpu * 1e3 / given["seconds"]
    result({"idle_cpu_ms_s": idle, "memory_mib": memory, "kib_each": each})


if __name__ == "__main__":
    from resource import RLIMIT_NOFILE, getrlimit, setrlimit

    hard = getrlimit(RLIMIT_NOFILE)[1]
    setrlimit(RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main())
