"""One running host with given servers behind it, for whoever speaks MCP to its endpoint."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.interop.command_line import Person

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

HEAD = """version = 1
[host]
state_dir = "{state}"
[service]
names = "{names}"
"""


def configuration(
    folder: Path, servers: Mapping[str, Mapping[str, Any]], *, names: str = "canonical"
) -> Path:
    """A file that has these tables of servers, whose names are their own unless asked otherwise."""
    text = HEAD.format(state=folder / "state", names=names)
    for name, keys in servers.items():
        text += f"[servers.{name}]\n"
        text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    path = folder / "observant-host.toml"
    path.write_text(text)
    return path


@contextmanager
def endpoint(
    folder: Path, servers: Mapping[str, Mapping[str, Any]], *, names: str = "canonical"
) -> Iterator[str]:
    """URL of the MCP endpoint of a host in a process of its own, until the block ends. It is by
    name: some insist on `localhost`."""
    folder.mkdir(parents=True, exist_ok=True)
    person = Person(folder, {})
    with person.running(configuration(folder, servers, names=names)):
        address = _listening(folder / "run.log")
        yield f"http://localhost:{address.rpartition(':')[2]}/mcp"


def _listening(log: Path) -> str:
    """The address that its log tells; it was published before."""
    for line in log.read_text().splitlines():
        told = json.loads(line)
        if told.get("event") == "host_lifecycle" and told.get("what") == "listening":
            return str(told["detail"]).split("http://")[1].split(",")[0]
    raise AssertionError(log.read_text()[-2000:])
