"""A TOML file is strict: every key is known, every mistake is named with its place and its fix."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from observant_host.config import keys
from observant_host.config.keys import Open, Table, node_at
from observant_host.config.model import (
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
from observant_host.errors import ConfigError
from observant_host.wire import revisions
from tests.config.reading import problems, read, server

if TYPE_CHECKING:
    import msgspec

EVERYTHING = """
version = 1
[host]
state_dir = "state"
collision_policy = "qualified"
startup_deadline_s = "500ms"
rename_grace_s = "5m"
max_message_bytes = "1MiB"
remember_modern = false
cache_dir = "/var/cache/oh"
[service]
listen = "127.0.0.1:9000"
metrics_listen = "[::1]:9001"
admin_listen = "localhost:9002"
allowed_hosts = ["a.example"]
allowed_origins = ["https://a.example"]
ready_when = "any"
drain_delay_s = 1
drain_timeout_s = "1m"
names = "canonical"
tls_cert = "cert.pem"
tls_key = "~/key.pem"
[telemetry]
otlp_endpoint = "http://collector:4318"
sample_ratio = 0.5
record = false
decisions_max_bytes = 1000
decisions_max_days = 30
traces_max_bytes = "2GB"
traces_max_days = 1.5
log_level = "debug"
log_format = "console"
capture_errors = "code"
capture_arguments = true
audit = "metadata"
[defaults]
call_timeout_s = 90
max_in_flight = 4
[servers.files]
command = "npx"
args = ["-y", "x"]
env = { TOKEN = "abcd", LEVEL = "1" }
env_inherit = ["DISPLAY"]
cwd = "work"
enabled = false
required = true
tools = { allow = ["read_*"], deny = ["read_secret"] }
trust_annotations = true
retry_calls = "idempotent"
idempotent_tools = ["read_file"]
max_in_flight = 2
queue_max = 0
propagate = "full"
extensions = ["x"]
allow_legacy = ["2025-06-18"]
legacy_reason = "old"
legacy_owner = "me"
legacy_expires = 2027-01-31
expect_era = "legacy"
probe_timeout_s = "3s"
legacy_probe_timeout_ms = "2s"
reset_timeout_on_progress = false
restart_initial_s = "250ms"
restart_above_mb = "1GiB"
[servers.web]
url = "https://x.example/mcp"
headers = { Authorization = "Bearer abcdef" }
headers_command = ["pass", "show"]
ca_bundle = "ca.pem"
transport = "sse"
allow_legacy = true
restart_above_mb = "off"
[tokens.ci]
sha256 = "00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff"
scopes = ["mcp", "read"]
profile = "small"
rate = 2
[profiles.small]
servers = ["files"]
tools = { deny = ["write_*"] }
mode = "search"
"""


def test_every_key_of_every_table_is_read() -> None:
    config = read(EVERYTHING, variables={"HOME": "/home/x"}).config
    files = ServerConfig(
        name="files",
        launch=StdioServer(
            command=("npx", "-y", "x"),
            env={"TOKEN": "abcd", "LEVEL": "1"},
            env_inherit=("DISPLAY",),
            cwd="/etc/oh/work",
        ),
        fingerprint=server(read(EVERYTHING), "files").fingerprint,
        enabled=False,
        required=True,
        tools=ToolFilter(allow=("read_*",), deny=("read_secret",)),
        trust_annotations=True,
        retry_calls="idempotent",
        idempotent_tools=("read_file",),
        max_in_flight=2,
        queue_max=0,
        propagate="full",
        extensions=("x",),
        era=EraPolicy(
            allow_legacy=("2025-06-18",),
            legacy_reason="old",
            legacy_owner="me",
            legacy_expires=date(2027, 1, 31),
            expect_era="legacy",
        ),
        timing=Timing(
            probe_timeout_s=3.0,
            legacy_probe_timeout_ms=2000.0,
            call_timeout_s=90.0,
            reset_timeout_on_progress=False,
        ),
        restarts=RestartPolicy(restart_initial_s=0.25, restart_above_mb=1024.0),
    )
    web = ServerConfig(
        name="web",
        launch=HttpServer(
            url="https://x.example/mcp",
            headers={"Authorization": "Bearer abcdef"},
            headers_command=("pass", "show"),
            ca_bundle="/etc/oh/ca.pem",
            transport="sse",
        ),
        fingerprint=config.servers[1].fingerprint,
        max_in_flight=4,
        era=EraPolicy(allow_legacy=revisions.LEGACY),
        timing=Timing(call_timeout_s=90.0),
    )
    assert config == HostConfig(
        servers=(files, web),
        host=HostSettings(
            state_dir="/etc/oh/state",
            collision_policy="qualified",
            startup_deadline_s=0.5,
            rename_grace_s=300.0,
            max_message_bytes=1024**2,
            remember_modern=False,
            cache_dir="/var/cache/oh",
        ),
        service=ServiceSettings(
            listen="127.0.0.1:9000",
            metrics_listen="[::1]:9001",
            admin_listen="localhost:9002",
            allowed_hosts=("a.example",),
            allowed_origins=("https://a.example",),
            ready_when="any",
            drain_delay_s=1.0,
            drain_timeout_s=60.0,
            names="canonical",
            tls_cert="/etc/oh/cert.pem",
            tls_key="/home/x/key.pem",
        ),
        telemetry=TelemetrySettings(
            otlp_endpoint="http://collector:4318",
            sample_ratio=0.5,
            record=False,
            decisions_max_bytes=1000,
            decisions_max_days=30.0,
            traces_max_bytes=2 * 10**9,
            traces_max_days=1.5,
            log_level="debug",
            log_format="console",
            capture_errors="code",
            capture_arguments=True,
            audit="metadata",
        ),
        tokens={"ci": Token(sha256="00ff" * 16, scopes=("mcp", "read"), profile="small", rate=2.0)},
        profiles={
            "small": Profile(servers=("files",), tools=ToolFilter(deny=("write_*",)), mode="search")
        },
    )


def test_an_empty_file_gives_the_defaults() -> None:
    assert read("").config == HostConfig()


@pytest.mark.parametrize(
    ("table", "made", "renamed"),
    [
        (keys.HOST, HostSettings, {"import": "imports"}),
        (keys.SERVICE, ServiceSettings, {}),
        (keys.TELEMETRY, TelemetrySettings, {}),
        (keys.TOKEN, Token, {}),
        (keys.PROFILE, Profile, {}),
        (Table(keys.ERA), EraPolicy, {}),
        (Table(keys.TIMING), Timing, {}),
        (Table(keys.RESTARTS), RestartPolicy, {}),
        (Table(keys.HTTP), HttpServer, {}),
    ],
)
def test_the_keys_are_exactly_the_fields(
    table: Table, made: type[msgspec.Struct], renamed: dict[str, str]
) -> None:
    fields = set(made.__struct_fields__) - {"header_files"}  # made from `headers`
    assert {renamed.get(key, key) for key in table.keys} == fields


def test_all_mistakes_of_a_file_are_reported_at_once_with_their_lines() -> None:
    found = problems(
        '[servers.a]\ncomand = "x"\n\n[host]\nstartup_deadline_s = "soon"\n'
        "[telemetry]\nsample_ratio = 2\nrecord = 1\n[sevice]\nx = 1\n"
    )
    assert found == (
        'oh.toml:2: servers.a.comand is no key; did you mean "command"? Allowed here: '
        + ", ".join(sorted(keys.SERVER.keys)),
        (
            "oh.toml:5: host.startup_deadline_s expects seconds as a number, or a duration like "
            '"500ms", "2m", "1h"; seen: text (\'soon\')'
        ),
        "oh.toml:7: telemetry.sample_ratio expects a number from 0 to 1; seen: a number (2)",
        "oh.toml:8: telemetry.record expects true or false; seen: a number (1)",
        (
            'oh.toml:9: sevice is no key; did you mean "service"? Allowed here: '
            "defaults, host, profiles, servers, service, telemetry, tokens, version"
        ),
    )


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("host = 1", "oh.toml:1: host is a number; expected a table"),
        ("[[servers]]", "servers is a list; expected a table"),
        ("version = 2", "version expects 1; seen: a number (2)"),
        ('[servers."a b"]\ncommand = "x"', "servers.a b is no name: a name begins with"),
        ('[mcpServers.a]\ncommand = "x"', 'mcpServers is no key; did you mean "servers"?'),
        ('[servers.a]\ncommand = "x"\ndisabled = true', 'did you mean "enabled"?'),
        ('[servers.a]\ncommand = "x"\nzzz = true', "servers.a.zzz is no key. Allowed here"),
        (
            "[defaults]\nallow_legacy = true",
            "defaults.allow_legacy is a permission for exactly one server, never a wildcard",
        ),
        ("[defaults]\nlegacy_expires = 2027-01-01", "never a wildcard"),
        ('[defaults]\ncommand = "x"', "defaults.command belongs to one server"),
        ("[servers.a]\nrequired = true", "neither `command` nor `url`; give it one of them, or"),
        ('[servers.a]\ncommand = "x"\nurl = "http://x"', "has both `command` and `url`"),
        (
            '[servers.a]\ncommand = "x"\nheaders = { A = "b" }',
            "servers.a has headers, which belongs to HTTP servers",
        ),
        (
            '[servers.a]\nurl = "http://x"\nargs = []\ncwd = "x"',
            "servers.a has args, cwd, which belongs to servers with a `command`",
        ),
        ("[tokens.a]\nscopes = []", "tokens.a needs exactly one of sha256, file, env; found: none"),
        (f'[tokens.a]\nsha256 = "{"0" * 64}"\nenv = "Y"', "found: sha256, env"),
        ('[tokens.a]\nsha256 = "abc"', "tokens.a.sha256 expects 64 hexadecimal digits"),
        ("[tokens.a]", "oh.toml:1: tokens.a is empty; it needs one of sha256, file, env"),
        ('[tokens.a]\nenv = "Y"\nscopes = ["mcp", "all"]', "seen: a list ('mcp, all')"),
        ("[host]\nremember_modern = 'yes'", "expects true or false; seen: text ('yes')"),
        ("[telemetry]\naudit = true", '"off", "metadata", "arguments"; seen: true'),
        ('[tokens.a]\nenv = "Y"\nprofile = "z"', "tokens.a.profile names no [profiles.NAME] table"),
        ('[profiles.a]\nservers = ["b", "c"]', "profiles.a.servers names no server: b, c"),
        ("a = [", "oh.toml: is not TOML: "),
        ("a = 1\na = 2", "oh.toml: is not TOML: "),
        ("a = " + "[" * 5000, "oh.toml: is nested too deeply"),
    ],
)
def test_a_mistake_is_refused_with_the_place_and_the_fix(toml: str, said: str) -> None:
    assert any(said in problem for problem in problems(toml)), problems(toml)


def test_what_must_hold_among_keys_is_told_with_the_place_of_the_first() -> None:
    assert problems(
        '[servers.a]\nrequired = true\n[tokens.b]\nenv = "Y"\nprofile = "z"\n'
        '[service]\ntls_cert = "x"\n'
    ) == (
        (
            "oh.toml:2: servers.a has neither `command` nor `url`; give it one of them, or correct "
            "the name: no imported file has a server of that name"
        ),
        "oh.toml:5: tokens.b.profile names no [profiles.NAME] table; seen: 'z'",
        "oh.toml:7: service.tls_cert and service.tls_key belong together; give both or neither",
    )


def test_sse_without_an_allowance_names_both_keys() -> None:
    (said,) = problems('[servers.a]\nurl = "http://x/sse"\ntransport = "sse"')
    assert 'transport = "sse"' in said
    assert "`allow_legacy`" in said
    assert '["2024-11-05"]' in said


def test_a_file_that_is_not_utf8_is_refused() -> None:
    from observant_host.config.parse import read_toml

    with pytest.raises(ConfigError, match=r"oh\.toml: is not UTF-8 text \(byte 1\)"):
        read_toml(b"\x20\xff", name="oh.toml", folder="/")


def test_the_value_of_a_secret_key_is_never_in_a_message() -> None:
    said = "\n".join(
        problems(
            '[servers.a]\ncommand = "x"\nenv = { TOKEN = 12345678 }\nargs = ["--k", 12345678]\n'
            '[servers.b]\nurl = "ftp://user:12345678@x"\n[tokens.t]\nsha256 = [12345678]\n'
        )
    )
    assert "servers.a.env.TOKEN expects text; seen: a number" in said
    assert "12345678" not in said


def test_a_name_that_nobody_can_know_has_no_node() -> None:
    assert node_at(("servers", "x", "env", "A")) is not None
    assert node_at(("host", "import", "deeper")) is None
    assert isinstance(node_at(("servers",)), Open)
    assert node_at(("nothing", "here")) is None
