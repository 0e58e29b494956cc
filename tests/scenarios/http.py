"""What the stories over HTTP share: a host with scripted HTTP servers, and their logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from observant_host import Host, HttpServer
from tests.support.hosts import QUICK
from tests.support.peers import events

if TYPE_CHECKING:
    from pathlib import Path


UNTOLD = '{"tools": {}}'
"""Capabilities of a server that tells of no changes: no stream breaks when it goes away, so that
the next call is the first to notice."""

OF_URLS = ("headers", "headers_command", "transport", "ca_bundle")


def add_url(host: Host, name: str, url: str, **keys: Any) -> None:
    """Add a server behind a URL; some of the `keys` are the URL's."""
    own = {key: keys.pop(key) for key in OF_URLS if key in keys}
    host.add_server(name, HttpServer(url, **own), **{**QUICK, **keys})


def asked(log: Path, verb: str | None = None) -> list[dict[str, Any]]:
    """The HTTP requests that a scripted server recorded, oldest first."""
    requests = events(log, "request")
    return [one for one in requests if verb is None or one["verb"] == verb]
