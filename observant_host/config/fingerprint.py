"""Which server an allowance was given for: a digest that a rotated secret does not change."""

from __future__ import annotations

import hashlib
from urllib.parse import urlsplit, urlunsplit

import msgspec

from observant_host.config.model import HttpServer, StdioServer


def fingerprint(launch: StdioServer | HttpServer | None) -> str:
    """`sha256:<64 hex>` over how a server is started, as it is *written* (before `${…}` expand).

    stdio: command, args, cwd and the sorted names of its environment variables (`env` and
    `env_inherit`). HTTP: the URL without user, query and fragment. None (nothing readable): the
    digest of an empty launch, which matches no other.
    """
    identity = msgspec.json.encode(_identity(launch))
    return "sha256:" + hashlib.sha256(identity).hexdigest()


def _identity(launch: StdioServer | HttpServer | None) -> list[object]:
    match launch:
        case StdioServer():
            names = sorted({*launch.env, *launch.env_inherit})
            return ["stdio", list(launch.command), launch.cwd, names]
        case HttpServer():
            return ["http", _bare(launch.url)]
        case _:
            return ["none"]


def _bare(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("?")[0]
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme.lower(), host.lower(), parts.path, "", ""))
