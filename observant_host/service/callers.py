"""Who asks: what every door of the service tells about the one who came through it."""

from __future__ import annotations

from typing import Final

import msgspec

from observant_host.decisions.slices import ALL, Slice


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """`principal` is a token's name or a JWT's subject, "local" on loopback without tokens,
    "socket" on the private socket. `scopes` of "mcp", "read", "operate". `slice` is the part of the
    catalogue that exists for this caller."""

    principal: str
    scopes: frozenset[str]
    slice: Slice = ALL


LOCAL: Final = Caller(principal="local", scopes=frozenset({"mcp", "read", "operate"}))
"""Whoever can reach a loopback address where no token is configured."""
