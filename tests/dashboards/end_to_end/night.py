"""All faults at once on two hosts, with a real Prometheus and a real Alertmanager.

python -m tests.dashboards.end_to_end.night [FACTOR]     60: an hour of the rules is a minute
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.dashboards.alert_files import ALERTS, RULES, shortened
from tests.dashboards.alertmanager import alertmanager
from tests.dashboards.end_to_end.hosts import HostProcess, table
from tests.dashboards.end_to_end.table import GONE, LOST
from tests.dashboards.end_to_end.watching import Found, watch
from tests.dashboards.faults import collector
from tests.dashboards.prometheus import free_port, prometheus, until
from tests.support.peers import program, scripted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.dashboards.alertmanager import Alertmanager
    from tests.dashboards.prometheus import Prometheus

FACTOR = 40.0
"""An hour is a minute and a half: with fewer seconds a late scrape starts every `for` anew."""
SCRAPED = "1500ms"
MODERN = {"era": "modern", "max_life": 3600}
GROWN = str(Path(__file__).with_name("grown.py"))


class Behind:
    """A server behind a URL whose token can be rotated."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def want(self, token: str) -> None:
        self.end()
        options = {"port": self.port, "token": token, "tools": "guarded", **MODERN}
        argv = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        argv = [word.replace("max_life", "max-life") for word in argv]
        self._process = subprocess.Popen(program("http_scripted.py", *argv), stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()


def _shell(words: tuple[str, ...]) -> str:
    return " ".join(f"'{word}'" for word in words)


def _unless(flag: Path, argv: tuple[str, ...]) -> tuple[str, ...]:
    """It does not start any more once `flag` is there."""
    return ("sh", "-c", f"test -e '{flag}' && exit 3; exec {_shell(argv)}")


def _rolled_back(flag: Path, tool: str) -> tuple[str, ...]:
    """Modern in its first life, which ends by a call, and legacy from then on."""
    first = _shell(scripted(tools=f"{tool},die", **MODERN))
    second = _shell(scripted(tools=tool, era="legacy", max_life=3600))
    return ("sh", "-c", f"test -e '{flag}' && exec {second}; touch '{flag}'; exec {first}")


class Night:
    """`scale` stretches the lives of servers that die with the windows."""

    def __init__(self, folder: Path, factor: float) -> None:
        self.folder = folder
        self.factor = factor
        self.scale = 60 / factor
        self.down = folder / "down"
        self.a = HostProcess(folder / "a", "a")
        self.b = HostProcess(folder / "b", "b")
        self.behind = Behind()

    def _dying(self, name: str) -> str:
        return table(name, _unless(self.down, scripted(tools=f"{name},die", **MODERN)))

    def _flapping(self) -> str:
        return table("flapping", scripted(tools="once", die_after=2.8 * self.scale, **MODERN))

    def servers_of_a(self) -> list[str]:
        works = table("works", scripted(tools="echo,slow", **MODERN))
        return [works, self._flapping(), *map(self._dying, (*LOST, "shared"))]

    def servers_of_b(self) -> list[str]:
        allowed = {"allow_legacy": True, "legacy_reason": "a test"}
        late = {"start_delay": 2.5, **MODERN}
        sluggish = scripted(start_delay=2, die_after=5 * self.scale, tools="lag", **MODERN)
        unexpected = _rolled_back(self.folder / "unexpected", "pay")
        decided = _rolled_back(self.folder / "decided", "decide")
        grown = (sys.executable, "-I", "-S", GROWN, "8", "300", *scripted(tools="grow", **MODERN))
        return [
            table("works", scripted(tools="echo,mute", **MODERN), required=True),
            *map(self._dying, ("down", "shared")),
            self._flapping(),
            table("rolled_back", unexpected, **allowed),
            table("decided", decided),
            table("old", scripted(era="legacy", tools="old", max_life=3600)),
            table("late", scripted(tools="late", **late)),
            table("sluggish", sluggish),
            table("deaf", scripted(tools="heard", listen="cancelled:1", **MODERN)),
            table("grown", grown),
            self._behind_url(),
        ]

    def _behind_url(self) -> str:
        url = json.dumps(f"http://127.0.0.1:{self.behind.port}/mcp")
        return f'[servers.rotated]\nurl = {url}\nheaders = {{ Authorization = "Bearer first" }}\n'

    @contextmanager
    def running(self) -> Iterator[tuple[Prometheus, Alertmanager]]:
        """Both hosts, what became of eras before the first scrape, then the two that watch."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.behind.end)
            self.behind.want("first")
            dead = f"http://127.0.0.1:{free_port()}"
            self.a.configure(self.servers_of_a(), collector=dead)
            taking = stack.enter_context(collector())
            self.b.configure(self.servers_of_b(), collector=taking)
            self.b.small_disk(8)
            for host in (self.a, self.b):
                host.calls = [("works/echo", {"text": "x"}, 3.0)]
                stack.enter_context(host.running())
                stack.enter_context(host.called())
            manager = stack.enter_context(alertmanager(self.folder / "alertmanager"))
            self._before_the_first_scrape()
            found = stack.enter_context(self._prometheus(manager))
            yield found, manager

    def _before_the_first_scrape(self) -> None:
        def era(server: str, wanted: str) -> bool | None:
            return self.b.view(server).get("era") == wanted or None

        def refused() -> bool | None:
            return self.b.view("decided").get("state") == "unavailable" or None

        until("one is modern", lambda: era("rolled_back", "modern"))
        until("the other is modern", lambda: era("decided", "modern"))
        self.b.once(*((f"{server}/die", {}, 1.0) for server in ("rolled_back", "decided")))
        until("the server was rolled back", lambda: era("rolled_back", "legacy"))
        until("the downgrade was refused", refused)
        self.b.allow("decided")
        until("the downgrade was allowed", lambda: era("decided", "legacy"))

    @contextmanager
    def _prometheus(self, manager: Alertmanager) -> Iterator[Prometheus]:
        """The rules come once both are scraped: five seconds pass before it looks for targets."""
        folder = self.folder / "prometheus"
        targets = [
            {"targets": [f"127.0.0.1:{one.port}"], "labels": {"instance": one.instance}}
            for one in (self.a, self.b)
        ]
        config = {
            "global": {"scrape_interval": SCRAPED, "evaluation_interval": SCRAPED},
            "rule_files": [str(folder / "rules*.yaml"), str(folder / "alerts*.yaml")],
            "alerting": {
                "alertmanagers": [
                    {"static_configs": [{"targets": [manager.url.removeprefix("http://")]}]}
                ]
            },
            "scrape_configs": [
                {
                    "job_name": "observant-host",
                    "static_configs": targets,
                    "authorization": {"credentials_file": str(self.a.folder / "reader.token")},
                }
            ],
        }
        flags = ("--web.enable-lifecycle", "--rules.alert.resend-delay=2s")
        with prometheus(folder, json.dumps(config), *flags) as found:
            up = "sum(up == 1)"
            until(
                "both are scraped",
                lambda: [v for v in found.query(up) if v["value"][1] == "2"] or None,
            )
            for file in (RULES, ALERTS):
                (folder / file.name).write_text(shortened(file.read_text(), self.factor))
            found.reload()
            yield found

    def inject(self) -> None:
        """What begins now; the faults that are there from the start count from now too."""
        self.down.touch()
        self.a.once(*((f"{name}/die", {}, 1.0) for name in (*LOST, "shared")))
        self.b.once(*((f"{name}/die", {}, 1.0) for name in ("down", "shared")))
        self.b.calls = [*self.b.calls, ("works/mute", {}, 0.3)]
        self.behind.want("second")
        self.b.once(("rotated/guarded", {}, 2.0))
        self.b.fill_disk()
        self.a.config.write_text(self.a.config.read_text() + "\n[servers.works]\n")
        self.a.reload()
        self.a.agents_token = "the-token-of-before-it-was-rotated"


def night_of(folder: Path, factor: float, *, within_s: float = 100.0) -> Found:
    """The whole of it."""
    night = Night(folder, factor)
    with night.running() as (_, manager):
        night.inject()
        found = watch(manager, within_s=within_s * night.scale)
        late = night.b.view("late")
        problems = list(found.problems)
        if (late.get("state"), late.get("era")) != ("ready", "modern"):
            problems.append(f"the late answer did not count: {late.get('state')}")
        assert night.b.process is not None
        night.b.process.kill()
        after = watch(manager, within_s=40 * night.scale, gone=True)
    seconds = {**found.seconds, **{key: after.seconds.get(key, 0.0) for key in GONE.raises}}
    return Found(seconds, found.inhibited, [*problems, *after.problems])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        whole = night_of(Path(place), float(sys.argv[1]) if sys.argv[1:] else FACTOR)
    print(whole.text())
    sys.exit(bool(whole.problems))
