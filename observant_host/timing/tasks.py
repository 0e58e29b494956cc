"""Every task has an owner and a name, and a failed one is never lost.

Tasks start in an empty context: a long-lived reader would otherwise carry the trace, and every
other context variable, of whoever happened to start it, for ever.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import anyio
import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator

    from observant_host.timing.clock import Clock

T = TypeVar("T")
_Waiters: TypeAlias = "asyncio.Future[None] | set[asyncio.Future[None]] | None"

IN_ONE_TURN = 16
"""Things that take some tenths of a millisecond each, so that nobody waits long for a turn."""


class EndlessTaskReturned(RuntimeError):
    """A task that was to run until it is stopped came to its end by itself: a bug of ours."""


def spawn(
    name: str,
    coro: Coroutine[Any, Any, T],
    *,
    on_error: Callable[[str, BaseException], None] | None = None,
) -> asyncio.Task[T]:
    """Start a task in an empty context; the caller keeps the reference.

    on_error(name, exception) is called once if it fails; without it, the loop's exception
    handler is. A cancellation is not a failure.
    """
    return spawn_owned(name, coro, ended=partial(_report, name, on_error))


def spawn_owned(
    name: str, coro: Coroutine[Any, Any, T], *, ended: Callable[[asyncio.Task[T]], None]
) -> asyncio.Task[T]:
    """As `spawn`, for what is begun often: `ended` is called once, however the task ended, and has
    to look at its exception itself."""
    context = contextvars.Context()
    task = asyncio.get_running_loop().create_task(coro, name=name, context=context)
    task.add_done_callback(ended, context=context)
    return task


def begin(name: str, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """As `spawn`, for what is begun often and tells of its own end. Where Python can, it runs until
    it first waits before this returns, without a turn of the loop in between."""
    loop, context = asyncio.get_running_loop(), contextvars.Context()
    if sys.version_info >= (3, 12):
        return asyncio.Task(coro, loop=loop, name=name, context=context, eager_start=True)
    return asyncio.Task(coro, loop=loop, name=name, context=context)


def _report(
    name: str, on_error: Callable[[str, BaseException], None] | None, task: asyncio.Task[Any]
) -> None:
    if task.cancelled() or (error := task.exception()) is None:
        return
    if on_error is not None:
        on_error(name, error)
        return
    task.get_loop().call_exception_handler(
        {"message": f"task {name} failed", "exception": error, "task": task}
    )


class OwnerTask:
    """A task that owns something until it is told to stop.

    `run(stop)` must return soon after `stop` is set; returning earlier is an error. `stop()` only
    signals, `wait()` only waits, from any task and any number of times.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[Signal], Awaitable[None]],
        *,
        on_error: Callable[[str, BaseException], None] | None = None,
    ) -> None:
        self._name = name
        self._run = run
        self._on_error = on_error
        self._stop = Signal()
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def started(self) -> bool:
        return self._task is not None

    @property
    def done(self) -> bool:
        return self._task is not None and self._task.done()

    def start(self) -> None:
        """Once in a life; a second time is a RuntimeError."""
        if self._task is not None:
            raise RuntimeError(f"task {self._name} was started already")
        self._task = spawn(self._name, self._guarded(), on_error=self._on_error)

    def stop(self) -> None:
        """Ask it to end. Idempotent, also before the start."""
        self._stop.set()

    def cancel(self) -> None:
        """End it now, where it no longer listens."""
        self._stop.set()
        if self._task is not None:
            self._task.cancel()

    async def wait(self) -> None:
        """Until it has ended; raises what it failed with. Cancelling the waiter leaves it alone."""
        if self._task is None:
            return
        done, _ = await asyncio.wait({self._task})
        for task in done:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _guarded(self) -> None:
        await self._run(self._stop)
        if not self._stop.is_set():
            raise EndlessTaskReturned(f"task {self._name} returned without being asked to stop")


class Signal(msgspec.Struct, eq=False, gc=False):
    """Something to wake up for; stays set until cleared. For one loop, like asyncio.Event.

    `raised` is what `is_set` says, to be read only: for where even that call is too much. A host
    has dozens of signals for each server, most with one waiter or none: a set is for more. They
    refer to nothing but who waits now, which is no cycle that outlasts the wait: the garbage
    collector need not look through them.
    """

    raised: bool = False
    _waiters: _Waiters = None

    def is_set(self) -> bool:
        return self.raised

    def set(self) -> None:
        self.raised = True
        waiters = self._waiters
        if isinstance(waiters, set):
            for waiter in waiters:
                _resolve(waiter)
        elif waiters is not None:
            _resolve(waiters)

    def clear(self) -> None:
        self.raised = False

    async def wait(self) -> None:
        if not self.raised:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.watch(waiter)
            try:
                await waiter
            finally:
                self.unwatch(waiter)

    def watch(self, waiter: asyncio.Future[None]) -> None:
        """Resolve `waiter` at the next set; `unwatch` it when you no longer wait."""
        waiters = self._waiters
        if waiters is None:
            self._waiters = waiter
        elif isinstance(waiters, set):
            waiters.add(waiter)
        else:
            self._waiters = {waiters, waiter}

    def unwatch(self, waiter: asyncio.Future[None]) -> None:
        waiters = self._waiters
        if waiters is waiter:
            self._waiters = None
        elif isinstance(waiters, set):
            waiters.discard(waiter)
            self._waiters = waiters or None


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Latch(Signal, Generic[T], eq=False, gc=True):
    """Set once, with a value, for ever: how something ended."""

    _value: T | None = None

    @property
    def value(self) -> T | None:
        """What it was released with; None before."""
        return self._value

    def release(self, value: T) -> bool:
        """True the first time; later values are ignored."""
        if self.raised:
            return False
        self._value = value
        self.set()
        return True

    def clear(self) -> None:
        raise RuntimeError("a latch is never cleared")


async def in_turns(items: Iterable[T], do: Callable[[T], object]) -> None:
    """`do` each; what waits in the loop has its turn between every few of them."""
    for number, item in enumerate(items, 1):
        do(item)
        if number % IN_ONE_TURN == 0:
            await asyncio.sleep(0)


async def cancel_on(signal: Signal, scope: anyio.CancelScope) -> None:
    """For a task beside the work in a scope: end it as soon as `signal` is set."""
    await signal.wait()
    scope.cancel()


@contextmanager
def ended_by(*signals: Signal) -> Iterator[anyio.CancelScope]:
    """A scope that is cancelled as soon as one of the signals is set; no task waits for that."""
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    with anyio.CancelScope() as scope:
        waiter.add_done_callback(lambda _: scope.cancel() if not waiter.cancelled() else None)
        for signal in signals:
            signal.watch(waiter)
        if any(signal.is_set() for signal in signals):
            scope.cancel()
        try:
            yield scope
        finally:
            for signal in signals:
                signal.unwatch(waiter)
            waiter.cancel()


async def wait_any(clock: Clock, seconds: float | None, *signals: Signal) -> Signal | None:
    """The first of `signals` (in their order) that is set, or None after `seconds`.

    Waits without a task and without a scope; `seconds` None waits for ever, 0 does not wait.
    """
    for signal in signals:
        if signal.is_set():
            return signal
    if seconds is not None and seconds <= 0:
        return None
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = None
    if seconds is not None:
        timer = clock.call_at(clock.monotonic() + seconds, partial(_resolve, waiter))
    for signal in signals:
        signal.watch(waiter)
    try:
        await waiter
    finally:
        if timer is not None:
            timer.cancel()
        for signal in signals:
            signal.unwatch(waiter)
    return next((signal for signal in signals if signal.is_set()), None)
