"""Many listings, one catalogue: a pure function of what each server last listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from observant_host.decisions.catalogue import Catalogue, EntryKind, PeerView
from observant_host.decisions.names import Grants, NameChange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from observant_host.config import CollisionPolicy


class Clash(msgspec.Struct, frozen=True):
    """Policy "reject": `newcomer` lists a name that `owner` lists too."""

    kind: EntryKind
    name: str
    owner: str
    newcomer: str


class Merged(msgspec.Struct, frozen=True):
    """`catalogue` is `previous` itself where nothing changed. `decisions` are those about tool and
    prompt names. `clashes` are filled by the policy "reject" only: the caller refuses to start by
    them at first publication. `wake_at` (epoch seconds): merge again then, a grace ends."""

    catalogue: Catalogue
    grants: Grants
    decisions: tuple[NameChange, ...]
    clashes: tuple[Clash, ...]
    wake_at: float | None


def merge(
    order: Sequence[PeerView],
    *,
    policy: CollisionPolicy,
    granted: Grants,
    now_s: float,
    startup_over: bool,
    grace_s: float,
    previous: Catalogue | None = None,
) -> Merged:
    """`order` is config order, disabled servers included. `now_s` is epoch seconds."""
    raise NotImplementedError


def empty() -> Catalogue:
    """The catalogue before anything was listed: version 0."""
    raise NotImplementedError
