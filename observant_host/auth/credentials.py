"""The headers that authorise requests to one HTTP server: static, from files, from a command.

Values are asked for each request, so that a rotated secret is used without a restart; they are
given to this server's own origin only, which the transports see to.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.config import HttpServer
    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.transports.base import Credentials


def for_server(
    name: str,
    endpoint: HttpServer,
    *,
    masker: Masker,
    telemetry: Telemetry,
    clock: Clock,
    environment: Mapping[str, str] = os.environ,
) -> Credentials:
    """The credentials of one server, by its `headers` and `headers_command`.

    They outlive a transport life: keep them with the server, so that a command's answer is cached
    across reconnects.
    """
    raise NotImplementedError
