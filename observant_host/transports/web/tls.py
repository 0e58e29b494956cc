"""What certificates are trusted: the system's, or for one server those of its `ca_bundle`."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from observant_host.errors import TransportError


async def trust(name: str, ca_bundle: str | None) -> ssl.SSLContext | bool:
    """For a connector; True means the system's. Reads files in a thread.

    `ca_bundle` replaces the system's certificates: a PEM file, or a folder as OpenSSL wants it.
    Raises TransportError naming server, key and file.
    """
    if ca_bundle is None:
        return True
    try:
        return await asyncio.to_thread(_context, ca_bundle)
    except (OSError, ValueError) as error:
        raise TransportError(
            f"servers.{name}.ca_bundle: {ca_bundle} cannot be used as trusted certificates: "
            f"{_reason(error)}; it must be a PEM file"
        ) from error


def _context(ca_bundle: str) -> ssl.SSLContext:
    path = Path(ca_bundle).expanduser()
    if path.is_dir():
        return ssl.create_default_context(capath=str(path))
    return ssl.create_default_context(cafile=str(path))


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "no certificate in it can be read"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
