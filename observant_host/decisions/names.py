"""Who owns which bare name. Pure: the same servers, grants and time give the same names.

A grant sticks to its owner while the owner lists the name, up or down, so that a restart of the
host or the return of a slow server never re-points a name that somebody already uses. A name
changes its owner only after the owner gave it up and the grace has passed, and then as a decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from observant_host.config import CollisionPolicy

What = Literal["granted", "kept", "given_up", "moved"]

SEPARATOR: Final = "/"
"""Between server and local name. No server name contains it, so every qualified name is unique."""


class Grant(msgspec.Struct, frozen=True):
    """A bare name belongs to `owner`. `given_up_at` (epoch seconds) starts the grace; None while
    the owner holds it."""

    owner: str
    given_up_at: float | None = None


class Grants(msgspec.Struct, frozen=True):
    """Bare name to grant, tools and prompts apart."""

    tools: Mapping[str, Grant] = {}
    prompts: Mapping[str, Grant] = {}


class Claim(msgspec.Struct, frozen=True):
    """One configured server, in config order. `names` are the local names of its last listing of
    this run, None where there is none. `complete`: a name that is not in it is really gone."""

    server: str
    enabled: bool
    settled: bool
    names: Sequence[str] | None
    complete: bool = True


class NameChange(msgspec.Struct, frozen=True):
    """One decision about a bare name. `server` is the owner after it (of a name given up: before).

    "kept" is a name taken back within the grace. "moved" names the owner before in `reason`.
    """

    what: What
    name: str
    server: str
    reason: str


class Assigned(msgspec.Struct, frozen=True):
    """`granted` is the memory for the next assignment. `owners` are the names that resolve bare
    now. `listers` are the servers (two or more, config order) that list one and the same name.
    `wake_at`: time alone changes something then (epoch seconds)."""

    granted: Mapping[str, Grant]
    owners: Mapping[str, str]
    listers: Mapping[str, tuple[str, ...]]
    changes: tuple[NameChange, ...]
    wake_at: float | None


def qualified(server: str, local_name: str) -> str:
    return f"{server}{SEPARATOR}{local_name}"


def is_reserved(name: str, servers: frozenset[str] | set[str]) -> bool:
    """True where the name reads like a qualified one: it is then never granted bare."""
    head, separator, _ = name.partition(SEPARATOR)
    return bool(separator) and head in servers


def assign(
    claims: Sequence[Claim],
    *,
    policy: CollisionPolicy,
    granted: Mapping[str, Grant],
    now_s: float,
    startup_over: bool,
    grace_s: float,
) -> Assigned:
    """Names for one kind of entry. `claims` are in config order; `now_s` is epoch seconds.

    With the policy "qualified" nothing is granted and the grants rest as they are. "reject" and
    "prefix" assign alike; what becomes of the others is the caller's.
    """
    listers = _listers(claims)
    shared = {name: servers for name, servers in listers.items() if len(servers) > 1}
    if policy == "qualified":
        return Assigned(granted, {}, {}, (), None)
    raise NotImplementedError


def _listers(claims: Iterable[Claim]) -> dict[str, tuple[str, ...]]:
    raise NotImplementedError


def _unused(x: Iterator[str]) -> None: ...
