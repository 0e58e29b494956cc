"""Which fault raises which alerts, and which of them are held back as said by another.

Two instances, `a` and `b`. What is not in the table must not reach Alertmanager.
"""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """One alert as Alertmanager holds it; "" for a label that it does not carry."""

    alert: str
    instance: str = ""
    peer: str = ""


class Fault(NamedTuple):
    """`raises` must reach Alertmanager, `held_back` too, but inhibited. `may` are consequences that
    depend on the moment."""

    name: str
    raises: tuple[Key, ...] = ()
    held_back: tuple[Key, ...] = ()
    may: tuple[Key, ...] = ()


LOST = ("lost1", "lost2", "lost3", "lost4")
"""With `shared` they are more than half of the servers of `a`."""

FAULTS = (
    Fault("a server is down on one host", (Key("PeerDown", "b", "down"),)),
    Fault(
        "a server is lost again and again, on both hosts",
        (Key("PeerFlapping", "b", "flapping"),),
        held_back=(Key("PeerFlapping", "a", "flapping"),),
        may=(Key("RestartLoop", "a", "flapping"), Key("RestartLoop", "b", "flapping")),
    ),
    Fault(
        "one host loses most of its servers",
        (Key("HostLosingPeers", "a"),),
        held_back=tuple(Key("PeerDown", "a", name) for name in LOST),
    ),
    Fault(
        "one server is down on both hosts",
        (Key("PeerDownEverywhere", "", "shared"),),
        held_back=(Key("PeerDown", "a", "shared"), Key("PeerDown", "b", "shared")),
    ),
    Fault("a downgrade that a person allowed"),
    Fault(
        "an unexpected downgrade before the first scrape",
        (
            Key("UnexpectedDowngrade", "b", "rolled_back"),
            Key("RunningLegacyUnexpectedly", "b", "rolled_back"),
        ),
    ),
    Fault("an old server that nobody allowed", (Key("LegacyRefused", "b", "old"),)),
    Fault("one false timeout: the answer comes late"),
    Fault(
        "false timeouts in each life of a modern server",
        (Key("ProbeTimeouts", "b", "sluggish"),),
        may=(Key("PeerFlapping", "b", "sluggish"),),
    ),
    Fault("the stream of changes is lost for good", (Key("ListenDown", "b", "deaf"),)),
    Fault(
        "calls to a required server run out of time",
        (Key("DeadlineBurn", "b", "works"), Key("ErrorBudgetBurn")),
    ),
    Fault(
        "a server's token is rotated (401)",
        (Key("AuthRequired", "b", "rotated"),),
        may=(Key("ProbeTimeouts", "b", "rotated"),),  # it is a new process, which has to start
    ),
    Fault("the agents' token is rotated (401)", (Key("AuthFailureBurst", "a"),)),
    Fault("a server uses 2.4 GiB", (Key("ChildMemory", "b", "grown"),)),
    Fault("nobody takes the exported traces", (Key("TelemetryDropping", "a"),)),
    Fault("the disk of the record is full", (Key("RecordNotWritten", "b"),)),
    Fault("a configuration that cannot be used is reloaded", (Key("ConfigReloadFailed", "a"),)),
)
GONE = Fault("a host is killed", (Key("InstanceUnreachable", "b"),))
"""At the end: it holds back what was last known of that instance."""

OF_THE_MACHINE = {"EventLoopLag"}
"""It may be true of the machine that runs this: it is told, and not judged."""


def must() -> set[Key]:
    return {key for fault in FAULTS for key in (*fault.raises, *fault.held_back)}


def inhibited() -> set[Key]:
    return {key for fault in FAULTS for key in fault.held_back}


def may() -> set[Key]:
    return {key for fault in (*FAULTS, GONE) for key in (*fault.raises, *fault.may)} | must()
