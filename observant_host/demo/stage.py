"""The demo's configuration: real processes of the sample servers, in a folder of its own."""

from __future__ import annotations

import json
import secrets
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import date

SERVERS = Path(__file__).parent / "servers"

SLOW_S = 2.5
"""How late the slow server's first answer is: after PROBE_TIMEOUT_S, so that it joins late."""

PROBE_TIMEOUT_S = 1.0
"""How long that answer is waited for; the other servers may take as long as a busy machine makes
them."""

STARTUP_S = 15.0
"""Only a machine that is too busy for the demo waits it out."""

CONFIGURATION = """\
# Written by `observant-host demo`. Seven servers, all shipped with observant_host.
version = 1

[host]
state_dir = {state}
startup_deadline_s = {startup}

[service]
listen = {listen}

[defaults]
restart_initial_s = 0.5
reprobe_max_s = 5

[servers.library]           # modern; offers `search`
command = {modern}
args = [{modern_script}, "library", "--log", {library_log}]

[servers.web]               # modern; offers `search` too
command = {modern}
args = [{modern_script}, "web"]

[servers.archive]           # old, and allowed
command = {modern}
args = [{legacy_script}, "archive"]
allow_legacy = ["2025-06-18"]
legacy_reason = "the archive's software is from 2025 and will be replaced"
legacy_owner = "records team"
legacy_expires = {expires}

[servers.attic]             # old, and nobody allowed it
command = {modern}
args = [{legacy_script}, "attic", "--log", {attic_log}]

[servers.forecast]          # modern, and slow to start
command = {modern}
args = [{modern_script}, "forecast", "--slow", "{slow}", "--log", {forecast_log}]
probe_timeout_s = {probe}       # short, so that it really is late

[servers.billing]           # modern; the allowance is left over from before its update
command = {modern}
args = [{modern_script}, "billing", "--rolled-back-by", {rollback}, "--log", {billing_log}]
allow_legacy = true
legacy_reason = "left over from before the update"
legacy_expires = {expires}

[servers.ferries]           # modern, behind a URL: a process of its own, not the host's child
url = {ferries_url}
headers = {{ Authorization = "Bearer ${{file:{ferries_token}}}" }}   # read again when it changes
"""


class Stage(NamedTuple):
    """Where the demo plays. `logs` is what each server itself says it was asked."""

    folder: Path
    config: Path
    state_dir: Path
    rollback: Path
    token: Path

    def log(self, server: str) -> Path:
        return self.folder / f"{server}.log"

    def record(self) -> bytes:
        """All that is in the state folder's files."""
        return b"".join(path.read_bytes() for path in self.state_dir.rglob("*") if path.is_file())

    def new_token(self) -> str:
        """Let ferries want another secret from now on, as a vault's agent does."""
        secret = secrets.token_urlsafe(24)
        fresh = self.token.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(secret)
        fresh.replace(self.token)
        return secret

    def asked(self, server: str) -> list[str]:
        """The methods that `server` received so far, by its own log."""
        log = self.log(server)
        return log.read_text().split() if log.exists() else []


def clear(folder: Path) -> Stage:
    """An empty stage in `folder`: without what another telling left, except its record."""
    folder.mkdir(parents=True, exist_ok=True)
    stage = Stage(
        folder,
        folder / "observant-host.toml",
        folder / "state",
        folder / "billing-rolled-back",
        folder / "ferries.token",
    )
    for leftover in (stage.rollback, *folder.glob("*.log")):
        leftover.unlink(missing_ok=True)
    stage.new_token()
    return stage


def configure(stage: Stage, *, today: date, listen: str, ferries_url: str) -> None:
    """Write the configuration file."""

    def quoted(value: object) -> str:
        return json.dumps(str(value))  # a JSON string is a TOML basic string

    text = CONFIGURATION.format(
        state=quoted(stage.state_dir),
        startup=STARTUP_S,
        listen=quoted(listen),
        probe=PROBE_TIMEOUT_S,
        slow=SLOW_S,
        expires=(today + timedelta(days=180)).isoformat(),
        modern=quoted(sys.executable),
        modern_script=quoted(SERVERS / "modern_server.py"),
        legacy_script=quoted(SERVERS / "legacy_server.py"),
        rollback=quoted(stage.rollback),
        ferries_url=quoted(ferries_url),
        ferries_token=quoted(stage.token)[1:-1],
        **{
            f"{name}_log": quoted(stage.log(name))
            for name in ("library", "attic", "forecast", "billing")
        },
    )
    stage.config.write_text(text)
