"""`init`: from somebody's existing client file to a working host in minutes."""

from __future__ import annotations

from observant_host.cli.options import command


@command("init", examples=(("init --from .mcp.json", "Read one client's file."),))
def init() -> None:
    """Make a configuration out of an existing client file."""
    raise NotImplementedError
