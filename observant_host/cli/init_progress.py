"""Who is being tried, for how long, and what came of it: live on a terminal, lines elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from observant_host.cli.output import STATE_STYLES, printable
from observant_host.decisions.words import counted
from observant_host.timing.clock import SystemClock
from observant_host.timing.tasks import OwnerTask, Signal, wait_any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from observant_host.cli.output import Screen
    from observant_host.config.suggest import Finding

REFRESH_S = 0.1
"""A person sees no difference below; a refresh costs about a millisecond."""


class Trials:
    """`async with Trials(screen, total) as trials:` while servers are tried."""

    def __init__(self, screen: Screen, total: int) -> None:
        self._screen, self._total = screen, total
        self._clock = SystemClock()
        self._since: dict[str, float] = {}
        self._done = 0
        self._task = OwnerTask("init progress", self._paint) if screen.live else None

    async def __aenter__(self) -> Self:
        if self._task is not None:
            self._task.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.stop()
            await self._task.wait()

    def began(self, name: str) -> None:
        self._since[name] = self._clock.monotonic()
        self._screen.detail(f"{name}: starting")

    def ended(self, finding: Finding) -> None:
        self._since.pop(finding.name, None)
        self._done += 1
        era = f"{finding.era} {finding.version or ''}".strip()
        said = (
            finding.detail
            if finding.era == "unknown"
            else f"{era}, {counted(finding.tools, 'tool')}"
        )
        self._screen.say(
            printable(f"{finding.name}: {said} ({finding.start_s:.1f} s)"),
            style=STATE_STYLES.get(finding.era, ""),
        )

    async def _paint(self, stop: Signal) -> None:
        from rich.live import Live

        console = self._screen.console(self._screen.err)
        with Live(console=console, transient=True, auto_refresh=False) as live:
            while not stop.is_set():
                live.update(self._table(), refresh=True)
                await wait_any(self._clock, REFRESH_S, stop)

    def _table(self) -> RenderableType:
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        now = self._clock.monotonic()
        table = Table(box=None, pad_edge=False, show_header=False)
        for name, since in self._since.items():
            table.add_row(Spinner("dots"), Text(printable(name)), Text(f"{now - since:.0f} s"))
        table.add_row("", Text(f"{self._done} of {self._total} done", style="dim"))
        return table
