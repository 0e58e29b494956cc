"""Servers declared in code have the keys, the checks and the did-you-mean of the file."""

from __future__ import annotations

from datetime import date

import pytest

from observant_host.config import HttpServer, StdioServer, ToolFilter, fingerprint
from observant_host.errors import ConfigError
from observant_host.supervision.declared import declare, secrets_of
from observant_host.wire.revisions import LEGACY

LAUNCH = StdioServer(["./archive"], env={"TOKEN": "hush-hush"})


def declared(**keys: object):  # type: ignore[no-untyped-def]  # a test's shorthand
    allow = keys.pop("allow_legacy", False)
    return declare("archive", LAUNCH, allow_legacy=allow, keys=keys)  # type: ignore[arg-type]


def test_keys_go_to_their_groups() -> None:
    server = declared(
        probe_timeout_s=5,
        restart_max_s=1,
        expect_era="legacy",
        legacy_expires=date(2030, 1, 1),
        max_in_flight=3,
        required=True,
        tools={"deny": ["rm*"]},
    )
    assert server.timing.probe_timeout_s == 5
    assert server.restarts.restart_max_s == 1
    assert (server.era.expect_era, server.era.legacy_expires) == ("legacy", date(2030, 1, 1))
    assert (server.max_in_flight, server.required) == (3, True)
    assert server.tools == ToolFilter(deny=("rm*",))
    assert declared(tools=ToolFilter(allow=("a",))).tools.allow == ("a",)
    assert (server.launch, server.fingerprint) == (LAUNCH, fingerprint(LAUNCH))


def test_values_may_be_written_as_in_the_file_and_none_is_none_given() -> None:
    server = declared(
        call_timeout_s="2m",
        restart_above_mb="1GiB",
        legacy_expires="2030-01-01",
        expect_era=None,
        tools={"allow": ["a"], "deny": None},
    )
    assert (server.timing.call_timeout_s, server.restarts.restart_above_mb) == (120.0, 1024.0)
    assert (server.era.legacy_expires, server.era.expect_era) == (date(2030, 1, 1), None)
    assert server.tools == ToolFilter(allow=("a",))


@pytest.mark.parametrize(
    ("given", "meant"), [(False, ()), (True, LEGACY), (["2025-06-18"], ("2025-06-18",))]
)
def test_allow_legacy_is_none_all_or_a_list(given: object, meant: tuple[str, ...]) -> None:
    assert declared(allow_legacy=given).era.allow_legacy == meant


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"probe_timeout": 5}, "did you mean 'probe_timeout_s'"),
        ({"zzz": 1}, "allowed: "),
        ({"allow_legacy": ["2026-07-28"]}, "no legacy revision"),
        ({"max_in_flight": "many"}, "max_in_flight expects a whole number of at least 1"),
        ({"max_in_flight": 0}, "max_in_flight expects a whole number of at least 1"),
        ({"call_timeout_s": -1}, "call_timeout_s expects seconds"),
        ({"retry_calls": "always"}, 'expects one of "not_sent"'),
        ({"legacy_fingerprint": "sha256:12"}, "64 hexadecimal digits"),
        ({"tools": ["rm*"]}, "tools is a list; expected a table"),
        ({"tools": {"dney": ["rm*"]}}, "tools.dney is no key; allowed here: allow, deny"),
    ],
)
def test_a_wrong_key_or_value_is_named(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        declared(**keys)
    assert "servers.archive" in str(refused.value)
    assert said in str(refused.value)


def test_a_name_must_fit_into_metrics_and_qualified_names() -> None:
    with pytest.raises(ConfigError, match="server name"):
        declare("a/b", LAUNCH, allow_legacy=False, keys={})


def test_a_server_behind_a_url_takes_more_calls_at_a_time() -> None:
    server = declare("web", HttpServer("http://x"), allow_legacy=False, keys={})
    assert (server.problem, server.max_in_flight) == (None, 64)
    few = declare("web", HttpServer("http://x"), allow_legacy=False, keys={"max_in_flight": 2})
    assert few.max_in_flight == 2


def test_http_sse_without_an_allowance_is_an_error_that_names_both_keys() -> None:
    with pytest.raises(ConfigError, match=r"transport = .sse.*allow_legacy"):
        declare("web", HttpServer("http://x", transport="sse"), allow_legacy=False, keys={})
    old = HttpServer("http://x", transport="sse")
    assert declare("web", old, allow_legacy=["2024-11-05"], keys={}).transport == "sse"


def test_secrets_are_the_values_of_env_and_headers() -> None:
    web = declare(
        "web", HttpServer("http://x", headers={"A": "Bearer s"}), allow_legacy=False, keys={}
    )
    assert secrets_of([declared(), web]) == ("hush-hush", "Bearer s")
