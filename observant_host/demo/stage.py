"""The demo's configuration: real child processes of the sample servers, in a folder of its own."""

from __future__ import annotations

import json
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

CONFIGURATION = """\
# Written by `observant-host demo`. Six servers, all shipped with observant_host.
version = 1

[host]
state_dir = {state}
startup_deadline_s = {startup}

[service]
listen = {listen}

[defaults]
probe_timeout_s = {probe}   # short, so that the slow server really is late
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

[servers.billing]           # modern; the allowance is left over from before its update
command = {modern}
args = [{modern_script}, "billing", "--rolled-back-by", {rollback}, "--log", {billing_log}]
allow_legacy = true
legacy_reason = "left over from before the update"
legacy_expires = {expires}
"""


class Stage(NamedTuple):
    """Where the demo plays. `logs` is what each server itself says it was asked."""

    folder: Path
    config: Path
    state_dir: Path
    rollback: Path

    def asked(self, server: str) -> list[str]:
        """The methods that `server` received so far, by its own log."""
        log = self.folder / f"{server}.log"
        return log.read_text().split() if log.exists() else []


def build(folder: Path, *, today: date, listen: str) -> Stage:
    """Write the configuration into `folder` and say where everything is."""
    folder.mkdir(parents=True, exist_ok=True)
    stage = Stage(
        folder, folder / "observant-host.toml", folder / "state", folder / "billing-rolled-back"
    )
    for leftover in (stage.rollback, *folder.glob("*.log")):
        leftover.unlink(missing_ok=True)
    stage.config.write_text(_configuration(stage, today, listen))
    return stage


def _configuration(stage: Stage, today: date, listen: str) -> str:
    def quoted(value: object) -> str:
        return json.dumps(str(value))  # a JSON string is a TOML basic string

    return CONFIGURATION.format(
        state=quoted(stage.state_dir),
        startup=SLOW_S - 0.5,
        listen=quoted(listen),
        probe=PROBE_TIMEOUT_S,
        slow=SLOW_S,
        expires=(today + timedelta(days=180)).isoformat(),
        modern=quoted(sys.executable),
        modern_script=quoted(SERVERS / "modern_server.py"),
        legacy_script=quoted(SERVERS / "legacy_server.py"),
        rollback=quoted(stage.rollback),
        **{
            f"{name}_log": quoted(stage.folder / f"{name}.log")
            for name in ("library", "attic", "forecast", "billing")
        },
    )
