"""Who is starting, how, and for how long: live on a terminal, one line a change elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.cli.output import STATE_STYLES, printable
from observant_host.timing.clock import SystemClock
from observant_host.timing.tasks import Latch, OwnerTask, Signal, wait_any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import RenderableType
    from rich.live import Live

    from observant_host.cli.output import Screen
    from observant_host.supervision.peer_state import ServerView

    Views = Callable[[], Mapping[str, ServerView]]

REFRESH_S = 0.1
"""A person sees no difference below; a refresh costs about a millisecond."""

PASSING = ("starting", "backoff")
UNTOLD = ("starting", "stopped")


def sentence(view: ServerView) -> str:
    """What has become of one server, in one line."""
    era = f"{view.era} {view.version}" if view.version else str(view.era)
    match view.state:
        case "ready" | "degraded":
            tools = f"{view.tools} tool{'' if view.tools == 1 else 's'}"
            return f"{view.name}: {view.state}, {era} ({view.reason}), {tools}"
        case "starting":
            return f"{view.name}: starting"
        case "unavailable":
            return f"{view.name}: unavailable ({view.cause}: {view.reason})"
        case "backoff":
            return f"{view.name}: {view.detail}"
        case _:
            return f"{view.name}: {view.detail or view.state}"


class Progress:
    """Shows servers from `start` on; after `settled` only changes; `wait` after `stop`.

    What `settled` is given is called once the live table is gone, so that nothing overwrites it.
    """

    def __init__(self, screen: Screen, views: Views) -> None:
        self._screen = screen
        self._views = views
        self._said: dict[str, str] = {}
        self._clock = SystemClock()
        self._began = self._clock.monotonic()
        self._settled: Latch[Callable[[], None]] = Latch()
        self._task = OwnerTask("progress", self._follow)
        self.start = self._task.start
        self.settled = self._settled.release
        self.stop = self._task.stop
        self.wait = self._task.wait

    async def _follow(self, stop: Signal) -> None:
        if self._screen.live:
            await self._paint(stop)
        self._tell_changes()
        if self._settled.value is not None:
            self._settled.value()
        while not stop.is_set():
            self._tell_changes()
            await wait_any(self._clock, REFRESH_S, stop)
        self._tell_changes()

    async def _paint(self, stop: Signal) -> None:
        """A live table until the start is over; nothing of it stays."""
        from rich.live import Live

        console = self._screen.console(self._screen.err)
        with Live(console=console, transient=True, auto_refresh=False) as live:
            while not (stop.is_set() or self._settled.is_set()):
                self._show(live)
                await wait_any(self._clock, REFRESH_S, stop, self._settled)

    def _show(self, live: Live) -> None:
        live.update(self._table(), refresh=True)

    def _table(self) -> RenderableType:
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        elapsed = self._clock.monotonic() - self._began
        table = Table(box=None, pad_edge=False, show_header=False)
        for view in self._views().values():
            passing = view.state in PASSING
            mark: RenderableType = Spinner("dots") if passing else Text("·")
            era = f"{view.era} {view.version or ''}" if view.era != "unknown" else view.reason
            table.add_row(
                mark,
                Text(printable(view.name)),
                Text(view.state, style=STATE_STYLES.get(view.state, "")),
                Text(printable(era), style="dim"),
                Text(f"{elapsed:.0f} s" if passing else "", style="dim"),
            )
        return table

    def _tell_changes(self) -> None:
        for name, view in self._views().items():
            text = sentence(view)
            if view.state in UNTOLD or self._said.get(name) == text:
                continue
            self._said[name] = text
            self._screen.say(printable(text), style=STATE_STYLES.get(view.state, ""))
