"""The MCP agent host for production: every server's era decided on evidence, every decision
observed. This is the public API; everything else may move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from observant_host import errors
from observant_host.config import HttpServer, StdioServer

if TYPE_CHECKING:
    from observant_host.host import Host

__all__ = ["Host", "HttpServer", "StdioServer", "errors"]


def __getattr__(name: str) -> Any:
    """`Host` on first use: whoever needs only the types does not pay for the whole library."""
    if name == "Host":
        from observant_host.host import Host

        globals()["Host"] = Host
        return Host
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
