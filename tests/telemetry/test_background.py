"""The thread behind a slow end: few large works instead of many small ones, nobody kept waiting."""

from __future__ import annotations

import asyncio
import threading

from observant_host.telemetry.background import Background

LONG_S = 3600.0


class Slow:
    """Work that lasts until it is let go."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.entered = threading.Event()
        self.release = threading.Event()

    def work(self, items: list[int]) -> None:
        if items:
            self.batches.append(items)
        self.entered.set()
        self.release.wait(30)


async def test_what_comes_during_a_work_waits_and_is_handled_together() -> None:
    slow = Slow()
    thread = Background("slow", slow.work, delay_s=LONG_S, batch=100, enough=3)
    for item in range(3):
        thread.put(item)
    assert await asyncio.to_thread(slow.entered.wait, 10)
    thread.put(3)
    thread.put(4)
    slow.release.set()
    await thread.flush()
    await thread.close()
    assert slow.batches == [[0, 1, 2], [3, 4]]


async def test_a_flush_waits_for_no_delay_and_urgent_ones_come_first() -> None:
    slow = Slow()
    slow.release.set()
    thread = Background("slow", slow.work, delay_s=LONG_S, batch=2)
    thread.put(1)
    await thread.flush()
    assert slow.batches == [[1]]
    slow.release.clear()
    slow.entered.clear()
    thread.put(2, urgent=True)
    assert await asyncio.to_thread(slow.entered.wait, 10)
    for item in (3, 4, 5):
        thread.put(item)
    thread.put(6, urgent=True)
    slow.release.set()
    await thread.flush()
    await thread.close()
    assert slow.batches[1:] == [[2], [6, 3], [4, 5]] or slow.batches[1:] == [[2], [6], [3, 4], [5]]
