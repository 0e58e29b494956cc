"""Texts, results, figures and sentences as the pages show them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from observant_host.errors import CallFacts, InvalidCall, RpcError
from observant_host.service.console.acting import duration_of
from observant_host.service.console.figures import figures_of
from observant_host.service.console.results import block_of, failed
from observant_host.service.console.sessions import LASTS_S, Sessions, from_here
from observant_host.service.console.text import first_sentence, visible
from observant_host.service.console.timeline import Entry, entry_of, incident_entry, paged

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode 🦀", "plain ünïcode 🦀"),
        ("a\tb\r\nc", "a\tb\nc"),
        ("\x00\x1b[0m\x7f", "␀␛[0m␡"),
        ("a\u202eb\u200b\ufeff", "a⟨U+202E⟩b⟨U+200B⟩⟨U+FEFF⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("\x85", "⟨U+0085⟩"),
    ],
)
def test_what_hides_in_a_text_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_long_text_is_cut_and_says_so() -> None:
    assert visible("x" * 10, at_most=3) == "xxx… (7 more characters)"
    assert first_sentence("One. Two.") == "One"
    assert len(first_sentence("x" * 1000)) == 160


@pytest.mark.parametrize(
    ("block", "kind", "says"),
    [
        ({"type": "text", "text": "<b>"}, "text", "<b>"),
        ({"type": "image", "mimeType": "image/png", "data": PNG}, "picture", "image/png"),
        ({"type": "image", "mimeType": "image/svg+xml", "data": PNG}, "note", "not shown"),
        ({"type": "image", "mimeType": "image/gif", "data": PNG}, "note", "no image/gif"),
        ({"type": "image", "mimeType": "image/png", "data": "%"}, "note", "no base64"),
        ({"type": "image", "mimeType": ["x"], "data": 3}, "note", "no data"),
        ({"type": "image", "mimeType": "image/png", "data": "A" * 5_000_000}, "note", "not shown"),
        ({"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}, "note", "3 bytes"),
        ({"type": "resource_link", "uri": "javascript:x", "name": "n"}, "note", "javascript:x"),
        ({"type": "resource", "resource": {"uri": "u", "text": "t"}}, "text", "t"),
        ({"type": "resource", "resource": {"uri": "u", "blob": "AA"}}, "note", "resource u"),
        ({"type": "odd"}, "note", "'odd'"),
        ({"type": "text", "text": 3}, "note", "cannot be shown"),
        ("no object", "note", "no object"),
    ],
)
def test_a_block_of_a_result_is_shown_safely_or_said_in_words(
    block: Any, kind: str, says: str
) -> None:
    shown = block_of(block)
    assert shown.kind == kind
    assert says in shown.text
    assert shown.source.startswith("data:image/") == (kind == "picture")


def test_a_servers_error_is_shown_with_its_code() -> None:
    error = RpcError(-32000, "no <b>")
    error.call = CallFacts("n", server="s")
    shown = failed(error)
    assert (shown.message, shown.server) == ("-32000: no <b>", "s")


def test_figures_are_those_of_one_server_with_units() -> None:
    exposition = """# HELP x y
observant_host_inflight_calls{peer="a"} 1.0
observant_host_inflight_calls{peer="b"} 7.0
observant_host_peer_resident_memory_bytes{peer="a"} 1572864.0
observant_host_calls_total{fault="none",outcome="ok",peer="a"} 3.0
observant_host_calls_total{fault="peer",outcome="timeout",peer="a"} 0.0
observant_host_call_duration_seconds_count{peer="a"} 3.0
observant_host_call_duration_seconds_sum{peer="a"} 0.3
"""
    found = {one.label: one.value for one in figures_of("a", exposition)}
    assert found == {
        "in flight": "1 call",
        "memory": "1.5 MiB",
        "mean duration": "100 ms",
        "ended ok": "3 calls",
    }


def decision(name: str, **attributes: object) -> dict[str, Any]:
    return {
        "time": "2026-11-30T00:00:00.000+00:00",
        "name": f"observant_host.{name}",
        "server": "a",
        "trace_id": "t",
        "span_id": "s",
        "attributes": {f"observant_host.{k.replace('__', '.')}": v for k, v in attributes.items()},
    }


@pytest.mark.parametrize(
    ("told", "weight", "title"),
    [
        (
            decision("peer.state", state__previous="ready", state__state="backoff"),
            "outage",
            "ready → backoff",
        ),
        (
            decision("peer.state", state__state="unavailable", state__cause="policy"),
            "decision",
            " → unavailable (policy)",
        ),
        (
            decision("era.decide", era__previous="modern", era__selected="legacy",
                     era__direction="downgrade", era__expected=False, era__reason="initialize_ok"),
            "decision",
            "modern → legacy: initialize_ok (downgrade, not expected)",
        ),
        (
            decision("peer.restart", restart__reason="exit", restart__exit_code=3,
                     peer__generation=1, restart__backoff_ms=1500.0),
            "outage",
            "life 1 ended: exit, exit code 3",
        ),
        (decision("config.load", config__successful=False), "decision", "configuration refused"),
        (decision("era.drop", peer__era="modern"), "", "era modern dropped"),
        (decision("watchdog.check", watchdog__verdict="ok"), "good", "watchdog: ok"),
        (decision("telemetry.lost", telemetry__spans=3), "outage", "3 spans lost"),
        (
            decision("loop.stalled", loop__lag_ms=523.6),
            "outage",
            "the event loop stood still for 524 ms",
        ),
        (
            decision("subscription.gap", subscription__gap_s=2.5),
            "",
            "a gap of 2.5 s in its stream was healed",
        ),
    ],
)  # fmt: skip
def test_a_decision_is_a_sentence(told: dict[str, Any], weight: str, title: str) -> None:
    entry = entry_of(told)
    assert entry is not None
    assert (entry.weight, entry.title) == (weight, title)


def test_what_says_nothing_to_a_person_is_no_entry() -> None:
    assert entry_of(decision("peer.start")) is None
    assert entry_of(decision("telemetry.lost", telemetry__spans=0)) is None


def test_an_incident_says_how_long_why_and_what_it_cost() -> None:
    incident: dict[str, Any] = {
        "id": "inc-1",
        "kind": "outage",
        "server": "a",
        "start": "2026-11-30T00:00:00.000Z",
        "end": None,
        "class": "unknown",
        "confidence": "low",
        "why": ["it ended"],
        "calls": {"unavailable": 2},
        "trace_ids": [],
    }
    entry = incident_entry(incident)
    assert entry.weight == "outage"
    assert entry.detail.endswith("it ended; calls meanwhile: 2 unavailable")
    assert incident_entry({**incident, "end": "2026-11-30T00:01:00.000Z"}).weight == "good"


def entries(count: int, title: str = "") -> list[Entry]:
    return [
        Entry(time=f"2026-11-30T00:{n // 60:02}:{n % 60:02}Z", kind="k", title=title or str(n))
        for n in range(count)
    ]


def test_the_timeline_is_paged_newest_first_and_later_entries_move_nothing() -> None:
    first = paged(entries(120))
    assert (first.entries[0].title, first.has_more) == ("119", True)
    later = paged(entries(130), number=2, until=first.until)
    assert later.entries[0].title == "69"
    assert not paged(entries(120), number=3, until=first.until).has_more
    assert paged([]).entries == ()


def test_what_is_said_again_and_again_is_one_entry() -> None:
    (only,) = paged(entries(5, "same")).entries
    assert (only.times, only.time) == (5, "2026-11-30T00:00:04Z")


@pytest.mark.parametrize(
    ("text", "seconds"), [("", None), ("90", 90), ("30m", 1800), (" 2 h ", 7200), ("1w", 604800)]
)
def test_a_duration_is_read_as_people_write_it(text: str, seconds: float | None) -> None:
    assert duration_of(text) == seconds


def test_what_is_no_duration_is_refused() -> None:
    with pytest.raises(InvalidCall, match="write a duration"):
        duration_of("until noon")


def test_a_session_ends_with_its_day_its_key_or_its_sign_out() -> None:
    now = [1000.0]
    sessions = Sessions(lambda: now[0])
    session = sessions.begin("ann", mark="m")
    cookie = sessions.cookie(session)
    assert sessions.read(cookie) == session
    assert sessions.fits(session, sessions.word(session))
    assert not sessions.fits(session, "\udcff")
    assert Sessions(lambda: now[0]).read(cookie) is None
    for odd in (None, "", ".", "x" * 2000, "é", cookie[:-1]):
        assert sessions.read(odd) is None
    now[0] += LASTS_S
    assert sessions.read(cookie) is None
    other = sessions.begin()
    sessions.end(other)
    assert sessions.read(sessions.cookie(other)) is None


@pytest.mark.parametrize(
    ("site", "origin", "fits"),
    [
        ("same-origin", None, True),
        ("cross-site", "http://a:1", False),
        (None, "http://a:1", True),
        (None, "https://A:1", True),
        (None, "http://b:1", False),
        (None, "null", False),
        (None, None, False),
    ],
)
def test_a_form_is_from_here_or_not(site: str | None, origin: str | None, fits: bool) -> None:
    assert from_here(site=site, origin=origin, host="a:1") is fits
