"""The certificate that every network listener shows, where one is configured."""

from __future__ import annotations

import ssl
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
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror or type(error).__name__
        raise ConfigError(
            [f"service.tls_cert, service.tls_key: they cannot be used together: {why}"]
        ) from error
    return context
