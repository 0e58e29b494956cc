"""Who owns which bare name. Pure: the same servers, grants and time give the same names.

A grant sticks to its owner while the owner lists the name, up or down, so that a restart of the
host or the return of a slow server never re-points a name that somebody already uses. A name
changes its owner only after the owner gave it up and the grace has passed, and then as a decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
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
    now. `listers` are the servers (two or more, config order) that list one and the same name
    which may be granted bare.
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
    shared = _shared(claims, listers)
    if policy == "qualified":
        return Assigned(granted, {}, shared, (), None)
    review = _Review(claims, now_s=now_s, grace_s=grace_s)
    standing = review.all(granted)
    fresh = _first_grants(claims, listers, standing=standing, startup_over=startup_over)
    after = {**standing, **fresh}
    return Assigned(
        granted=after,
        owners={name: grant.owner for name, grant in after.items() if grant.given_up_at is None},
        listers=shared,
        changes=(*review.changes, *_granted_changes(fresh, review.ended)),
        wake_at=_wake_at(after, grace_s),
    )


def in_grace(grant: Grant, *, now_s: float, grace_s: float) -> bool:
    """True while a name that was given up is nobody's. A clock set back never stretches it."""
    if grant.given_up_at is None:
        return False
    return now_s - min(grant.given_up_at, now_s) < grace_s


class _Review:
    """Goes over the grants of before: which stand, which are given up, which have ended.

    `ended` is name to former owner of those whose grace has passed: they are free again.
    """

    def __init__(self, claims: Sequence[Claim], *, now_s: float, grace_s: float) -> None:
        self.changes: list[NameChange] = []
        self.ended: dict[str, str] = {}
        self._now = now_s
        self._grace = grace_s
        self._servers = frozenset(claim.server for claim in claims)
        self._enabled = frozenset(claim.server for claim in claims if claim.enabled)
        self._listed = {c.server: frozenset(c.names) for c in claims if c.names is not None}
        self._complete = frozenset(claim.server for claim in claims if claim.complete)

    def all(self, granted: Mapping[str, Grant]) -> dict[str, Grant]:
        reviewed = ((name, self._one(name, grant)) for name, grant in granted.items())
        return {name: grant for name, grant in reviewed if grant is not None}

    def _one(self, name: str, grant: Grant) -> Grant | None:
        if is_reserved(name, self._servers):
            self.changes.append(NameChange("given_up", name, grant.owner, "reserved"))
            return None
        if self._is_over(grant):
            self.ended[name] = grant.owner
            return None
        if name in self._listed.get(grant.owner, ()) and grant.owner in self._enabled:
            return self._keep(name, grant)
        return self._hold(name, grant)

    def _is_over(self, grant: Grant) -> bool:
        given_up = grant.given_up_at is not None
        return given_up and not in_grace(grant, now_s=self._now, grace_s=self._grace)

    def _keep(self, name: str, grant: Grant) -> Grant:
        if grant.given_up_at is None:
            return grant
        self.changes.append(NameChange("kept", name, grant.owner, "taken_back"))
        return Grant(grant.owner)

    def _hold(self, name: str, grant: Grant) -> Grant | None:
        """Not listed now: given up by a word of the owner or of a person, held otherwise."""
        if grant.given_up_at is not None:
            return Grant(grant.owner, min(grant.given_up_at, self._now))
        reason = self._why_gone(grant.owner)
        if reason is None:
            return grant
        self.changes.append(NameChange("given_up", name, grant.owner, reason))
        given_up = Grant(grant.owner, self._now)
        if not self._is_over(given_up):
            return given_up
        self.ended[name] = grant.owner
        return None

    def _why_gone(self, owner: str) -> str | None:
        if owner not in self._servers:
            return "left_config"
        if owner not in self._enabled:
            return "disabled"
        listed_without = owner in self._listed and owner in self._complete
        return "not_listed" if listed_without else None


def _listers(claims: Sequence[Claim]) -> dict[str, tuple[str, ...]]:
    """Local name to the enabled servers that list it, in config order."""
    listers: dict[str, tuple[str, ...]] = {}
    for claim in claims:
        if claim.enabled and claim.names is not None:
            for name in claim.names:
                listers[name] = (*listers.get(name, ()), claim.server)
    return listers


def _shared(
    claims: Sequence[Claim], listers: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    servers = frozenset(claim.server for claim in claims)
    return {
        name: several
        for name, several in listers.items()
        if len(several) > 1 and not is_reserved(name, servers)
    }


def _first_grants(
    claims: Sequence[Claim],
    listers: Mapping[str, tuple[str, ...]],
    *,
    standing: Mapping[str, Grant],
    startup_over: bool,
) -> dict[str, Grant]:
    """Free names, each to the first in config order, once nobody before it can still come."""
    servers = frozenset(claim.server for claim in claims)
    ready = _may_be_granted(claims, startup_over=startup_over)
    return {
        name: Grant(first)
        for name, (first, *_) in listers.items()
        if first in ready and name not in standing and not is_reserved(name, servers)
    }


def _may_be_granted(claims: Sequence[Claim], *, startup_over: bool) -> frozenset[str]:
    """Servers before which every enabled one is settled."""
    ready: list[str] = []
    for claim in claims:
        ready.append(claim.server)
        if claim.enabled and not claim.settled and not startup_over:
            break
    return frozenset(ready)


def _granted_changes(
    fresh: Mapping[str, Grant], ended: Mapping[str, str]
) -> tuple[NameChange, ...]:
    return tuple(
        NameChange("moved", name, grant.owner, f"from {ended[name]}")
        if ended.get(name, grant.owner) != grant.owner
        else NameChange("granted", name, grant.owner, "first_in_order")
        for name, grant in fresh.items()
    )


def _wake_at(granted: Mapping[str, Grant], grace_s: float) -> float | None:
    ends = (g.given_up_at + grace_s for g in granted.values() if g.given_up_at is not None)
    return min(ends, default=None)
