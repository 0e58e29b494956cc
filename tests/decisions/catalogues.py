"""Views and listings for tests of the catalogue: what a server listed, in one line."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Raw

from observant_host.decisions.catalogue import (
    Catalogue,
    Excluded,
    ListedPrompt,
    ListedResource,
    ListedTool,
    Listing,
    PeerView,
)
from observant_host.decisions.merge import Merged, merge
from observant_host.decisions.names import Grants
from observant_host.decisions.terms import Cause, ExclusionReason, PeerState


def tool(name: str, **more: Any) -> ListedTool:
    return ListedTool(name, Raw(json.dumps({"name": name, **more}).encode()))


def listing(
    server: str,
    *tools: str | ListedTool,
    prompts: tuple[str, ...] = (),
    resources: tuple[str, ...] = (),
    templates: tuple[str, ...] = (),
    denied: tuple[str, ...] = (),
    truncated: str | None = None,
    complete: bool = True,
) -> Listing:
    def raw(**members: str) -> Raw:
        return Raw(json.dumps(members).encode())

    return Listing(
        server,
        tools=tuple(tool(t) if isinstance(t, str) else t for t in tools),
        prompts=tuple(ListedPrompt(p, raw(name=p)) for p in prompts),
        resources=(
            *(ListedResource(u, raw(uri=u)) for u in resources),
            *(ListedResource(u, raw(uriTemplate=u), is_template=True) for u in templates),
        ),
        excluded=tuple(Excluded(server, d, ExclusionReason.DENIED) for d in denied),
        truncated=truncated,
        complete=complete,
    )


def up(server: str, *tools: str | ListedTool, **more: Any) -> PeerView:
    listed = listing(server, *tools, **more)
    return PeerView(server, True, PeerState.READY, None, "discover_ok", True, listed)


def down(view: PeerView) -> PeerView:
    """The same server after its life ended: the listing is kept."""
    return PeerView(view.name, True, PeerState.BACKOFF, Cause.PROCESS, "", True, view.listing)


def starting(server: str) -> PeerView:
    return PeerView(server, True, PeerState.STARTING, None, "", False, None)


def refused(server: str) -> PeerView:
    cause = Cause.POLICY
    return PeerView(server, True, PeerState.UNAVAILABLE, cause, "ambiguous_timeout", True, None)


def disabled(server: str, *tools: str | ListedTool) -> PeerView:
    listed = listing(server, *tools) if tools else None
    return PeerView(server, False, PeerState.DISABLED, None, "", False, listed)


def merged(*views: PeerView, before: Merged | None = None, **settings: Any) -> Merged:
    return merge(
        views,
        before=before,
        **{
            "policy": "prefix",
            "granted": before.grants if before is not None else Grants(),
            "now_s": 1000.0,
            "startup_over": True,
            "grace_s": 300.0,
            **settings,
        },
    )


def catalogue(*views: PeerView, **settings: Any) -> Catalogue:
    return merged(*views, **settings).catalogue
