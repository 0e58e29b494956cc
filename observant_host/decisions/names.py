"""What a bare name is, who may own one, and what is decided about it.

Who owns which is decided in decisions/assignment.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final, Literal

import msgspec

What = Literal["granted", "kept", "given_up", "moved"]

SEPARATOR: Final = "/"
"""Between server and local name. No server name contains it, so every qualified name is unique."""


class Grant(msgspec.Struct, frozen=True, gc=False):
    """A bare name belongs to `owner`. `given_up_at` (epoch seconds) starts the grace; None while
    the owner holds it."""

    owner: str
    given_up_at: float | None = None


class Grants(msgspec.Struct, frozen=True):
    """Bare name to grant, tools and prompts apart."""

    tools: Mapping[str, Grant] = {}
    prompts: Mapping[str, Grant] = {}


class Claim(msgspec.Struct, frozen=True, gc=False):
    """One configured server, in config order. `names` are the local names of its last listing of
    this run, None where there is none. `complete`: a name that is not in it is really gone."""

    server: str
    enabled: bool
    settled: bool
    names: Sequence[str] | None
    complete: bool = True

    @property
    def shown(self) -> Sequence[str]:
        """The names that it claims now: none while it is disabled."""
        return self.names if self.enabled and self.names is not None else ()


class NameChange(msgspec.Struct, frozen=True, gc=False):
    """One decision about a bare name. `server` is the owner after it (of a name given up: before).

    "kept" is a name taken back within the grace. "moved" names the owner before in `reason`.
    """

    what: What
    name: str
    server: str
    reason: str


def qualified(server: str, local_name: str) -> str:
    return f"{server}{SEPARATOR}{local_name}"


def is_reserved(name: str, servers: Container[str]) -> bool:
    """True where the name reads like a qualified one: it is then never granted bare."""
    return SEPARATOR in name and name.partition(SEPARATOR)[0] in servers


def in_grace(grant: Grant, *, now_s: float, grace_s: float) -> bool:
    """True while a name that was given up is nobody's. A clock set back never stretches it."""
    if grant.given_up_at is None:
        return False
    return now_s - min(grant.given_up_at, now_s) < grace_s
