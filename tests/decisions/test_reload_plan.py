"""What a changed configuration comes to: every key of every table, and the words for a person."""

from __future__ import annotations

from datetime import date

import msgspec
import pytest

from observant_host.config import (
    EraPolicy,
    HostConfig,
    HostSettings,
    HttpServer,
    Profile,
    RestartPolicy,
    ServerConfig,
    ServiceSettings,
    StdioServer,
    TelemetrySettings,
    Timing,
    Token,
    ToolFilter,
)
from observant_host.decisions.reload_plan import (
    HOST_KEYS,
    SERVER_KEYS,
    Act,
    Effect,
    in_force,
    leaves,
    plan,
)

STDIO = StdioServer(command=("prog", "--token", "s3cr3t"), env={"KEY": "one"}, cwd="/a")
HTTP = HttpServer(url="https://user:pw@host/mcp?key=1", headers={"Authorization": "Bearer one"})

OTHER = {
    "command": ("prog", "--token", "other"),
    "env": {"KEY": "two"},
    "env_inherit": ("HOME",),
    "cwd": "/b",
    "url": "https://host/other",
    "headers": {"Authorization": "Bearer two"},
    "headers_command": ("login",),
    "ca_bundle": "/ca.pem",
    "transport": "sse",
    "header_files": {"X": ("", "/secret")},
    "extensions": ("x",),
    "propagate": "none",
    "problem": "servers.a.env.KEY cannot be used",
    "allow_legacy": ("2025-11-25",),
    "legacy_expires": date(2030, 1, 1),
    "legacy_fingerprint": "sha256:1",
    "expect_era": "modern",
    "fingerprint": "sha256:2",
    "tools": ToolFilter(deny=("x",)),
    "required": True,
    "trust_annotations": True,
    "retry_calls": "never",
    "idempotent_tools": ("x",),
    "legacy_reason": "why",
    "legacy_owner": "who",
    "reset_timeout_on_progress": False,
    "enabled": False,
}
"""Another value of each key that is no number."""


def server(name: str = "a", launch: StdioServer | HttpServer = STDIO, **keys) -> ServerConfig:
    return ServerConfig(name=name, launch=launch, fingerprint="sha256:0", **keys)


def config(*servers: ServerConfig, **tables) -> HostConfig:
    return HostConfig(servers=servers, **tables)


def changed(one: ServerConfig, key: str) -> ServerConfig:
    """The same with another value of one key, wherever that key stands."""
    for field in ("era", "timing", "restarts", "launch"):
        part = getattr(one, field)
        if key in part.__struct_fields__:
            value = OTHER.get(key, 7.5)
            return msgspec.structs.replace(
                one, **{field: msgspec.structs.replace(part, **{key: value})}
            )
    return msgspec.structs.replace(one, **{key: OTHER.get(key, 7)})


def test_every_key_of_a_server_stands_in_the_table_and_nothing_else_does() -> None:
    structs = (ServerConfig, EraPolicy, Timing, RestartPolicy, StdioServer, HttpServer)
    fields = {key for struct in structs for key in struct.__struct_fields__}
    assert set(SERVER_KEYS) == fields - {"name", "launch", "era", "timing", "restarts"}


def test_every_key_of_the_host_stands_in_the_table_and_nothing_else_does() -> None:
    tables = {"host": HostSettings, "service": ServiceSettings, "telemetry": TelemetrySettings}
    fields = {f"{name}.{key}" for name, one in tables.items() for key in one.__struct_fields__}
    others = set(HostConfig.__struct_fields__) - {"servers", *tables}
    assert set(HOST_KEYS) == fields | others


@pytest.mark.parametrize("key", sorted(SERVER_KEYS))
def test_a_changed_key_is_named_with_its_effect_and_no_other_key_is(key: str) -> None:
    http = key in HttpServer.__struct_fields__
    one = server(launch=HTTP if http else STDIO)
    (found,) = plan(config(one), config(changed(one, key))).servers
    assert {change.key.partition(".")[0] for change in found.changes} == {key}
    assert found.effects == {SERVER_KEYS[key]}
    expected = {
        Effect.LIFE: Act.RESTART,
        Effect.SWITCH: Act.DISABLE,
    }.get(SERVER_KEYS[key], Act.UPDATE)
    assert found.act is expected


@pytest.mark.parametrize("key", sorted(HOST_KEYS))
def test_a_key_of_the_host_is_applied_or_waits_for_a_restart_of_the_host(key: str) -> None:
    table, _, name = key.partition(".")
    new = {"tokens": {"t": Token(sha256="x")}, "profiles": {"p": Profile()}}.get(key)
    if new is None:
        values = {"host": HostSettings, "service": ServiceSettings, "telemetry": TelemetrySettings}
        new = msgspec.structs.replace(values[table](), **{name: "other"})
    old, changed_config = config(), config(**{table: new})
    found = plan(old, changed_config)
    assert [change.key for change in (found.host if HOST_KEYS[key] else found.waiting)] == [key]
    assert len(found.host) + len(found.waiting) == 1
    assert found.changes_something is HOST_KEYS[key]
    assert in_force(old, changed_config) == (changed_config if HOST_KEYS[key] else old)


def test_equal_configurations_change_nothing() -> None:
    one = config(server("a"), server("b", HTTP))
    found = plan(one, config(server("a"), server("b", HTTP)))
    assert not found.changes_something
    assert found.named(Act.KEEP) == ("a", "b")
    assert found.sentences() == ("2 servers are not touched: a, b",)
    assert found.summary() == "keep 2"


def test_servers_are_added_and_removed_by_name_in_the_new_order() -> None:
    found = plan(config(server("a"), server("b")), config(server("c"), server("b")))
    assert [(one.name, one.act) for one in found.servers] == [
        ("c", Act.ADD),
        ("b", Act.KEEP),
        ("a", Act.REMOVE),
    ]
    assert not found.order_changed
    assert found.summary() == "add c; remove a; keep 1"


def test_an_order_of_servers_that_stay_is_a_change_since_it_decides_names() -> None:
    found = plan(config(server("a"), server("b")), config(server("b"), server("a")))
    assert found.order_changed
    assert found.changes_something
    assert found.named(Act.KEEP) == ("b", "a")
    assert "order" in found.summary()
    assert "order" in found.sentences()[0]


def test_a_server_that_is_switched_off_is_only_updated_whatever_changes() -> None:
    off = server(enabled=False)
    (found,) = plan(config(off), config(changed(off, "command"))).servers
    assert found.act is Act.UPDATE


def test_switching_on_wins_over_every_other_change() -> None:
    (found,) = plan(config(server(enabled=False)), config(changed(server(), "command"))).servers
    assert found.act is Act.ENABLE


def test_a_header_that_a_file_gives_is_no_change_when_only_the_file_changed() -> None:
    """It is read again by itself, and rotates by the hour."""
    files = {"Authorization": ("Bearer ", "/token")}
    one = msgspec.structs.replace(HTTP, header_files=files)
    other = msgspec.structs.replace(one, headers={"Authorization": "Bearer rotated"})
    (found,) = plan(config(server(launch=one)), config(server(launch=other))).servers
    assert found.act is Act.KEEP


def test_of_several_variables_only_the_one_that_changed_is_named() -> None:
    one = server(launch=msgspec.structs.replace(STDIO, env={"SAME": "x", "KEY": "one"}))
    other = server(launch=msgspec.structs.replace(STDIO, env={"SAME": "x", "KEY": "two"}))
    (found,) = plan(config(one), config(other)).servers
    assert [change.key for change in found.changes] == ["env.KEY"]


def test_another_transport_is_told_by_the_keys_that_are_set() -> None:
    (found,) = plan(config(server()), config(server(launch=HTTP))).servers
    keys = {change.key for change in found.changes}
    assert keys == {"command", "env.KEY", "cwd", "url", "headers.Authorization", "transport"}
    assert found.act is Act.RESTART


def test_a_server_whose_launch_could_not_be_read_begins_when_it_can() -> None:
    broken = msgspec.structs.replace(server(), launch=None, problem="no command")
    (found,) = plan(config(broken), config(server())).servers
    assert found.act is Act.RESTART


def test_no_secret_is_in_a_plan() -> None:
    old = config(server("a"), server("b", HTTP))
    new = config(
        changed(changed(server("a"), "command"), "env"),
        changed(changed(server("b", HTTP), "url"), "headers"),
    )
    found = plan(old, new)
    said = repr((found.to_dict(), found.sentences(), found.summary()))
    for secret in ("s3cr3t", "other'", "one", "two", "pw", "key=1"):
        assert secret not in said.replace("host/other", ""), secret
    assert "env.KEY" in said


def test_what_only_the_masker_knows_is_cleaned_at_any_depth() -> None:
    old, new = server(), changed(server(), "tools")
    new = msgspec.structs.replace(
        new, tools=ToolFilter(allow=("hunter2",)), idempotent_tools=("hunter2",), propagate="full"
    )
    found = plan(
        config(old), config(new), clean=lambda text: text.replace("hunter2", "***")
    ).to_dict()
    assert "hunter2" not in repr(found)


def test_a_person_reads_what_happens_and_why() -> None:
    one = server()
    new = changed(changed(changed(one, "allow_legacy"), "tools"), "shutdown_timeout_s")
    settings = ServiceSettings(listen="127.0.0.1:1", drain_delay_s=5)
    found = plan(
        config(one, server("b"), server("gone")),
        config(new, changed(server("b"), "cwd"), server("new"), service=settings),
    )
    assert found.sentences() == (
        "a goes on with new values",
        '  tools: {"allow":[],"deny":[]} -> {"allow":[],"deny":["x"]} (its lists are read again)',
        '  allow_legacy: [] -> ["2025-11-25"] (what is allowed is judged again)',
        "  shutdown_timeout_s: 5.0 -> 7.5 (from its next start on)",
        "b is started again; its open calls may end first",
        '  cwd: "/a" -> "/b"',
        "new is added",
        "gone is removed; its open calls may end",
        "service.drain_delay_s: 0.0 -> 5",
        "0 servers are not touched",
        (
            'service.listen: "127.0.0.1:8700" -> "127.0.0.1:1" '
            "(not applied: needs a restart of the host)"
        ),
    )
    assert found.summary() == (
        "add new; remove gone; restart b (cwd); update a (tools, allow_legacy, shutdown_timeout_s);"
        " set service.drain_delay_s; keep 0; needs a restart of the host: service.listen"
    )


def test_one_server_that_stays_is_told_in_the_singular() -> None:
    assert plan(config(server()), config(server())).sentences() == ("1 server is not touched: a",)


def test_leaves_are_every_key_of_the_table_that_the_server_has() -> None:
    assert set(leaves(server())) | set(leaves(server(launch=HTTP))) == set(SERVER_KEYS)
