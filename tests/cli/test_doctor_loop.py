"""`doctor` about the event loop of the running host, and what would keep it from serving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from observant_host.cli.doctor_loop import STALLED, Lag, judge_lag, lag_of
from observant_host.cli.doctor_serving import serving_problems
from observant_host.config import HostConfig, ServiceSettings, Token

if TYPE_CHECKING:
    from pathlib import Path


def shown(**counts: int) -> bytes:
    """A histogram with these cumulative counts: `at_25=3` is the bound 0.25."""
    lines = [
        f'observant_host_event_loop_lag_seconds_bucket{{le="{bound}"}} {count}.0'
        for bound, count in (
            (name.removeprefix("at_") if name == "at_+Inf" else f"0.{name[3:]}", count)
            for name, count in counts.items()
        )
    ]
    return "\n".join(lines).encode()


def stalled(lag_ms: float, stalls: int, time: str) -> dict[str, Any]:
    return {
        "name": STALLED,
        "time": time,
        "attributes": {
            "observant_host.loop.lag_ms": lag_ms,
            "observant_host.loop.stalls": stalls,
        },
    }


def test_a_histogram_says_how_late_nearly_all_turns_were() -> None:
    histogram = shown(at_01=900, at_25=990, at_5=1000, **{"at_+Inf": 1000})
    other = {"name": "observant_host.host.lifecycle", "time": "", "attributes": {}}
    stalls = [stalled(600.0, 1, "2026-11-29T10:00:00Z"), stalled(900.0, 2, "2026-11-29T11:00:00Z")]
    assert lag_of(histogram, [other, *stalls]) == Lag(
        *(1000, 10, 0.25), stalls=3, longest_ms=900.0, last="2026-11-29T11:00:00Z"
    )
    assert lag_of(b"", []) is None
    beyond = lag_of(shown(at_25=1, **{"at_+Inf": 1000}), [])
    assert beyond == Lag(1000, 999, None)


@pytest.mark.parametrize(
    ("lag", "result", "said"),
    [
        (Lag(1000, 0, 0.005), "ok", "99 of 100 turns came at most 5 ms late"),
        (Lag(1000, 10, 0.25), "ok", "at most 250 ms late"),
        (Lag(1000, 11, 0.5), "warning", "time-outs look like faults of servers"),
        (Lag(1000, 900, None), "warning", "more than 2.5 s late"),
        (Lag(20, 3, 0.5), "ok", "at most 500 ms late"),
        (
            Lag(1000, 1, 0.01, stalls=2, longest_ms=1200.0, last="2026-11-29T11:00:00Z"),
            "hint",
            "2 stalls of half a second and more, the longest 1.2 s, the last 2026-11-29 11:00:00Z",
        ),
    ],
)
def test_a_loop_is_judged_by_the_share_of_late_turns(lag: Lag, result: str, said: str) -> None:
    check = judge_lag(lag)
    assert (check.result, check.check) == (result, "event loop")
    assert said in check.finding
    assert bool(check.fix) == (result != "ok")


def test_everything_that_would_keep_a_host_from_serving_is_named_at_once(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    service = ServiceSettings(
        listen="0.0.0.0:8700", tls_cert=nowhere, tls_key=nowhere, state_key_file=nowhere
    )
    found = list(serving_problems(HostConfig(service=service)))
    assert [text.partition(":")[0] for text in found] == [
        *("service", "service.tls_cert", "service.state_key_file"),
    ]
    tokens = {"a": Token(file=nowhere), "b": Token(env="NOT_SET_ANYWHERE"), "c": Token(env="PATH")}
    found = list(serving_problems(HostConfig(tokens=tokens)))
    assert [text.partition(":")[0] for text in found] == ["tokens.a.file", "tokens.b.env"]
    assert list(serving_problems(HostConfig())) == []
