"""A configuration full of planted secrets, to be looked for in everything that leaves the host.

Write it with `plant(folder)`, run what is to be tested with `environment(folder)`, and hand every
output to `assert_silent`.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pathlib import Path

SECRETS = {
    "env literal": "cnry-env-literal-8d1f",
    "env variable": "cnry-env-variable-77aa",
    "env file": "cnry-env-file-51c2",
    "env default": "cnry-env-default-0b0e",
    "imported env": "cnry-imported-env-e4d9",
    "dotenv": "cnry-dotenv-92bd",
    "header": "cnry-header-6f3a",
    "imported header": "cnry-imported-header-aa19",
    "url password": "cnry-url-password-40cc",
    "url query": "cnry-url-query/7+e1",
    "argument": "cnry-argument-3c77",
    "argument variable": "cnry-argument-variable-d2",
    "argument url": "cnry-argument-url-1f1f",
    "argument header": "cnry-argument-header-9e",
    "token": "e100fbce008c04ec40637af0af91fb2f05aeedc23f856a2d3c0b1580625d755e",
    "token file": "cnry-token-file-name-c3",
    "broken key": "cnry-broken-value-5e5e",
    "other broken key": "cnry-other-broken-77",
}
"""Each planted secret by the place it is planted in; but for a digest all begin with `cnry-`."""

VARIABLES = {
    "CANARY_VARIABLE": SECRETS["env variable"],
    "CANARY_ARGUMENT": SECRETS["argument variable"],
    "CANARY_HEADER": f"Bearer {SECRETS['header']}",
}


def plant(folder: Path, *, command: list[str] | None = None) -> Path:
    """Write the configuration, its import and its secret files; returns the TOML's path.

    `command` is what the stdio servers start (default: a Python that waits for its stdin to end).
    """
    program = command or [sys.executable, "-c", "import sys; sys.stdin.read()"]
    (folder / "secret.txt").write_text(SECRETS["env file"] + "\n")
    (folder / ".env").write_text(f"DOTENV_KEY={SECRETS['dotenv']}\n")
    (folder / "client.json").write_text(json.dumps({"mcpServers": _imported(program)}))
    path = folder / "observant-host.toml"
    path.write_text(_toml(program))
    return path


def plant_broken(folder: Path) -> Path:
    """A configuration that must be refused, with secrets in the values that are wrong."""
    path = folder / "broken.toml"
    path.write_text(
        f'[servers.a]\ncommand = "x"\nenv = {{ A = ["{SECRETS["broken key"]}"] }}\n'
        f'pasword = "{SECRETS["other broken key"]}"\n'
        f'[servers.b]\nurl = "ftp://u:{SECRETS["url password"]}@x"\n'
        f'args = [1, "{SECRETS["argument"]}"]\n'
    )
    return path


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Variables for a child that uses the planted configuration, and no file of the user's."""
    own = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), **VARIABLES, **more}
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    return {**kept, "XDG_CONFIG_HOME": str(folder / "config"), **own}


def found_in(text: str) -> list[str]:
    """Places whose secrets are in `text`, plainly or as JSON, a URL or base64 would write them."""
    return [place for place, secret in SECRETS.items() if any(f in text for f in _forms(secret))]


def assert_silent(*texts: str | bytes) -> None:
    """Fails naming the places (never the values) whose secrets are in one of the texts."""
    for text in texts:
        plain = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        assert not found_in(plain), f"secrets shown: {found_in(plain)}"


def _forms(secret: str) -> set[str]:
    encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
    return {secret, json.dumps(secret)[1:-1], quote(secret, safe=""), encoded[:-1]}


def _imported(program: list[str]) -> dict[str, object]:
    return {
        "imported": {
            "command": program[0],
            "args": program[1:],
            "env": {"API_KEY": SECRETS["imported env"], "V": "${CANARY_VARIABLE}"},
            "envFile": "${workspaceFolder}/.env",
        },
        "imported-web": {
            "type": "http",
            "url": f"http://127.0.0.1:9/mcp?key={quote(SECRETS['url query'], safe='')}",
            "headers": {"Authorization": f"Bearer {SECRETS['imported header']}"},
        },
        "imported-broken": {
            "command": 5,
            "env": {"A": SECRETS["broken key"]},
            "apiKye": SECRETS["other broken key"],
            "oauth": {"clientSecret": SECRETS["other broken key"]},
        },
    }


def _toml(program: list[str]) -> str:
    words = json.dumps(program[1:])[1:-1]
    return f"""
version = 1
[host]
import = ["client.json"]
state_dir = "state"
[servers.env]
command = {json.dumps(program[0])}
args = [{words}]
[servers.env.env]
LITERAL = "{SECRETS["env literal"]}"
VARIABLE = "${{CANARY_VARIABLE}}"
FILE = "${{file:secret.txt}}"
DEFAULT = "${{CANARY_UNSET:-{SECRETS["env default"]}}}"
[servers.arguments]
command = {json.dumps(program[0])}
args = [
  {words}, "--token", "{SECRETS["argument"]}", "${{CANARY_ARGUMENT}}",
  "--dsn=postgres://u:{SECRETS["argument url"]}@h/db",
  "--header", "Authorization: Bearer {SECRETS["argument header"]}",
]
[servers.web]
url = "http://u:{SECRETS["url password"]}@127.0.0.1:9/mcp"
headers = {{ Authorization = "${{CANARY_HEADER}}" }}
[servers.off]
command = "x"
env = {{ A = "{SECRETS["env literal"]}", B = "${{CANARY_NOWHERE}}" }}
[tokens.ci]
sha256 = "{SECRETS["token"]}"
[tokens.file]
file = "{SECRETS["token file"]}"
scopes = ["read"]
"""
