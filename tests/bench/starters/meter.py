"""What each client's process says of itself, in one line of JSON. Standard library only: it is
read by interpreters that hold nothing else."""

import asyncio
import gc
import json
import resource
import sys
import threading
import time
from pathlib import Path

TICK_S = 0.001


class Meter:
    """From `begin` to `ready`: how long it took, what CPU of this process, and for how long at a
    stretch the event loop ran nothing else (`stall_ms`; of that on the CPU: `stall_cpu_ms`)."""

    def __init__(self):
        self.stall_s = self.stall_cpu_s = 0.0
        self.threads = 0

    def begin(self):
        self._loop = asyncio.get_running_loop()
        self._began, self._cpu = time.perf_counter(), time.process_time()
        self._due, self._thread_cpu = time.perf_counter() + TICK_S, time.thread_time()
        self._timer = self._loop.call_later(TICK_S, self._tick)

    def _tick(self):
        now, cpu = time.perf_counter(), time.thread_time()
        self.stall_s = max(self.stall_s, now - self._due)
        self.stall_cpu_s = max(self.stall_cpu_s, cpu - self._thread_cpu)
        self.threads = max(self.threads, threading.active_count())
        self._due, self._thread_cpu = now + TICK_S, cpu
        self._timer = self._loop.call_later(TICK_S, self._tick)

    def ready(self, **more):
        """Print the line."""
        ready_s, cpu_s = time.perf_counter() - self._began, time.process_time() - self._cpu
        self._timer.cancel()
        gc.collect()
        print(
            json.dumps(
                {
                    "ready_s": ready_s,
                    "cpu_s": cpu_s,
                    "stall_ms": self.stall_s * 1e3,
                    "stall_cpu_ms": self.stall_cpu_s * 1e3,
                    "threads": self.threads,
                    "rss_mib": rss_mib(),
                    "modules": len(sys.modules),
                    **more,
                }
            ),
            flush=True,
        )


def rss_mib():
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024
