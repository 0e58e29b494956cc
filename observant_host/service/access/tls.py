"""The certificate that every network listener shows, where one is configured."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from observant_host.errors import ConfigError

if TYPE_CHECKING:
    from observant_host.config import ServiceSettings


def tls_context(settings: ServiceSettings) -> ssl.SSLContext | None:
    """Reads the files, so in a thread. Raises ConfigError."""
    if settings.tls_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    for key in ("tls_cert", "tls_key"):
        _must_be_readable(key, getattr(settings, key) or "")
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror or type(error).__name__
        raise ConfigError(
            [f"service.tls_cert, service.tls_key: they cannot be used together: {why}"]
        ) from error
    return context


def _must_be_readable(key: str, path: str) -> None:
    """What cannot be read is named; the error of `load_cert_chain` does not say which it was."""
    try:
        with Path(path).open("rb"):
            return
    except OSError as error:
        raise ConfigError([f"service.{key}: {path} cannot be read: {error.strerror}"]) from error
