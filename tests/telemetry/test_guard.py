"""A sink that fails never breaks a call, waits, and comes back."""

from __future__ import annotations

import itertools
from typing import Any

from observant_host.telemetry.facade import Finished, Telemetry, TraceContext
from observant_host.telemetry.guard import Guarded
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.vocabulary import HostLifecycle, Request, RoutedCall


class Broken:
    name = "log"

    def __init__(self) -> None:
        self.broken = True
        self.asked = 0

    def wants(self, kind: object) -> bool:
        return True

    def emit(self, done: object) -> None:
        self.asked += 1
        if self.broken:
            raise OSError("disk on fire")


def make() -> tuple[Telemetry, Broken, Guarded, list[float], list[tuple[str, bool]]]:
    now = [0.0]
    changes: list[tuple[str, bool]] = []

    def changed(name: str, up: bool, error: Any) -> None:
        changes.append((name, up))

    sink = Broken()
    guard = Guarded(sink, changed=changed, monotonic=lambda: now[0])
    return Telemetry(starter=OwnIds(), sinks=[guard]), sink, guard, now, changes


def tell(telemetry: Telemetry) -> None:
    with telemetry.operation(HostLifecycle(what="x")):
        pass


def test_a_failing_sink_breaks_no_call_and_is_left_alone_for_a_second() -> None:
    telemetry, sink, guard, now, changes = make()
    tell(telemetry)
    now[0] = 0.9
    tell(telemetry)
    assert sink.asked == 1
    assert not guard.up
    assert guard.skipped == 2
    assert changes == [("log", False)]


def test_waits_double_up_to_a_minute_and_never_end() -> None:
    telemetry, sink, _, now, _ = make()
    attempts = []
    for second in range(400):
        now[0] = float(second)
        before = sink.asked
        tell(telemetry)
        if sink.asked > before:
            attempts.append(second)
    waits = [later - earlier for earlier, later in itertools.pairwise(attempts)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]


def test_a_sink_that_works_again_is_up_again() -> None:
    telemetry, sink, guard, now, changes = make()
    tell(telemetry)
    sink.broken = False
    now[0] = 1.0
    tell(telemetry)
    tell(telemetry)
    assert guard.up
    assert sink.asked == 3
    assert changes == [("log", False), ("log", True)]


class Measuring(Broken):
    """Is given work as it stands, as metrics are."""

    name = "metric"

    def meter(self, kind: object) -> Any:
        return self.emit


def test_a_sink_that_measures_is_guarded_in_the_same_way() -> None:
    now = [0.0]
    changes: list[tuple[str, bool]] = []
    sink = Measuring()
    guard = Guarded(
        sink, changed=lambda name, up, _: changes.append((name, up)), monotonic=lambda: now[0]
    )
    telemetry = Telemetry(starter=OwnIds(), sinks=[guard])
    tell(telemetry)
    tell(telemetry)
    assert (sink.asked, guard.skipped) == (1, 2)
    sink.broken = False
    now[0] = 1.5
    tell(telemetry)
    tell(telemetry)
    assert (sink.asked, guard.up) == (3, True)
    assert changes == [("metric", False), ("metric", True)]


def test_a_sink_that_fails_at_the_first_of_many_calls_that_are_alike_breaks_none() -> None:
    class Hasty(Broken):
        def alike(self, _call: object, _request: object) -> None:
            raise OSError("no form for it")

    guard = Guarded(Hasty())
    telemetry = Telemetry(starter=OwnIds(), sinks=[guard])
    call = Finished(RoutedCall(name="x", method="tools/call"), TraceContext(1, 1))
    request = Finished(Request(peer="a", method="tools/call", era="modern"), TraceContext(1, 1))
    assert telemetry.alike(call, request) is None, "each of them is told by itself"
    assert not guard.up
