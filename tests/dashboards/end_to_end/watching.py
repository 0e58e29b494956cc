"""What reaches Alertmanager, when, and whether it is what the table says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from tests.dashboards.alert_files import PREFIX
from tests.dashboards.end_to_end.table import FAULTS, GONE, OF_THE_MACHINE, Key, may, must
from tests.dashboards.end_to_end.table import inhibited as held_back

if TYPE_CHECKING:
    from tests.dashboards.alertmanager import Alertmanager

POLL_S = 0.5


class Found(NamedTuple):
    """`seconds` from the injection of its fault until Alertmanager had it."""

    seconds: dict[Key, float]
    inhibited: set[Key]
    problems: list[str]

    def text(self) -> str:
        lines = [f"{'fault':52} {'alert':44} seconds"]
        for fault in (*FAULTS, GONE):
            keys = (*fault.raises, *fault.held_back, *(k for k in fault.may if k in self.seconds))
            for key in keys or (Key("(none)"),):
                took = self.seconds.get(key)
                name = " ".join(filter(None, (key.alert, key.instance, key.peer)))
                held = " (inhibited)" if key in self.inhibited else ""
                shown = "" if took is None else f"{took:7.1f}"
                lines.append(f"{fault.name:52} {name:44} {shown}{held}")
        told = [key for key in self.seconds if key.alert in OF_THE_MACHINE]
        return "\n".join((*lines, *(f"of this machine: {key}" for key in told), *self.problems))


def held_by(manager: Alertmanager) -> dict[Key, bool]:
    """The alerts that Alertmanager holds, and whether each is inhibited."""
    found: dict[Key, bool] = {}
    for one in manager.alerts():
        labels = one["labels"]
        name = labels["alertname"].removeprefix(PREFIX)
        key = Key(name, labels.get("instance", ""), labels.get("peer", ""))
        found[key] = bool(one["status"]["inhibitedBy"]) and found.get(key, True)
    return found


def watch(manager: Alertmanager, *, within_s: float, gone: bool = False) -> Found:
    """Until every alert is there, and what is to be inhibited is."""
    wanted = {*GONE.raises} if gone else must()
    begun = time.monotonic()
    seconds: dict[Key, float] = {}
    now: dict[Key, bool] = {}
    while time.monotonic() < begun + within_s:
        now = held_by(manager)
        for key in now:
            seconds.setdefault(key, time.monotonic() - begun)
        held = {key for key, quiet in now.items() if quiet}
        if wanted <= seconds.keys() and (gone or held_back() <= held):
            break
        time.sleep(POLL_S)
    held = {key for key, quiet in now.items() if quiet}
    return Found(seconds, held, judged(seconds, held, wanted=wanted, gone=gone))


def judged(seconds: dict[Key, float], held: set[Key], *, wanted: set[Key], gone: bool) -> list[str]:
    """What is not as the table says, in sentences."""
    extra = {key for key in seconds if key not in may() and key.alert not in OF_THE_MACHINE}
    loud = set() if gone else held_back() - held
    silent = set() if gone else {key for key in held if key not in held_back() and key in must()}
    return [
        *(f"did not reach Alertmanager: {key}" for key in sorted(wanted - seconds.keys())),
        *(f"is not in the table: {key}" for key in sorted(extra)),
        *(f"should be inhibited: {key}" for key in sorted(loud & seconds.keys())),
        *(f"should not be inhibited: {key}" for key in sorted(silent)),
    ]
