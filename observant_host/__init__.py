"""The MCP agent host for production: every server's era decided on evidence, every decision
observed. This is the public API; everything else may move."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from observant_host import errors
from observant_host.config import HttpServer, StdioServer

if TYPE_CHECKING:
    from observant_host.host import Host
    from observant_host.host.agent import AgentCall, AgentEvent, AgentRun, run_agent
    from observant_host.peers.input_handlers import InputDeclined, InputHandlers, InputRequest
    from observant_host.peers.told import LogMessage

__all__ = [
    "AgentCall",
    "AgentEvent",
    "AgentRun",
    "Host",
    "HttpServer",
    "InputDeclined",
    "InputHandlers",
    "InputRequest",
    "LogMessage",
    "StdioServer",
    "errors",
    "run_agent",
]

_LATER = {
    "AgentCall": "observant_host.host.agent",
    "AgentEvent": "observant_host.host.agent",
    "AgentRun": "observant_host.host.agent",
    "Host": "observant_host.host",
    "InputDeclined": "observant_host.peers.input_handlers",
    "InputHandlers": "observant_host.peers.input_handlers",
    "InputRequest": "observant_host.peers.input_handlers",
    "LogMessage": "observant_host.peers.told",
    "run_agent": "observant_host.host.agent",
}


def __getattr__(name: str) -> Any:
    """On first use: whoever needs only the types does not pay for the whole library."""
    home = _LATER.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(home), name)
    return found
