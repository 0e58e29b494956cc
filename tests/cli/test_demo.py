"""The demo keeps its promises, and says so when one is broken."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

from observant_host.demo.story import Story, excerpt
from observant_host.demo.telling import PlainTeller


def test_demo_once_shows_everything_and_ends_with_0(tmp_path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "observant_host", "demo", "--once", "--dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    out = ended.stdout
    assert ended.returncode == 0, out + ended.stderr
    assert ended.stderr == ""
    assert "\x1b" not in out
    for said in (
        "`search` went to library",
        "`web/search` went to web",
        "archive is legacy, by a valid answer to initialize",
        "allow_legacy = true",
        "it joined late, as modern",
        "the era was dropped before the next was decided",
        "refused with was_modern",
        "observant_host_peer_era",
        "tools/call search",
    ):
        assert said in out, said
    assert "[BROKEN]" not in out


def test_a_broken_promise_is_told_and_remembered() -> None:
    lines: list[tuple[str, str]] = []
    story = Story(
        SimpleNamespace(),  # type: ignore[arg-type]  # no host is asked
        SimpleNamespace(),  # type: ignore[arg-type]
        PlainTeller(lambda text, kind: lines.append((text, kind))),
    )
    story.promise("the sky is blue", [1])
    story.promise("the sea is dry", [])
    assert story.broken == ["the sea is dry"]
    assert story.kept == 1
    assert lines == [("   [ok] the sky is blue", "kept"), ("   [BROKEN] the sea is dry", "broken")]


def test_the_excerpt_leaves_out_what_did_not_happen() -> None:
    metrics = (
        "# HELP observant_host_peer_era x\n"
        'observant_host_peer_era{era="modern",peer="a"} 1.0\n'
        'observant_host_peer_era{era="legacy",peer="a"} 0.0\n'
        "process_open_fds 3.0\n"
    )
    assert excerpt(metrics) == ['observant_host_peer_era{era="modern",peer="a"} 1.0']
