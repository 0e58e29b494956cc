"""What peers listed, and the one immutable value that callers look names up in."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import Raw

from observant_host.decisions import texts
from observant_host.decisions.names import Grant
from observant_host.decisions.terms import Cause, ExclusionReason, PeerState
from observant_host.wire.messages import CacheScope
from observant_host.wire.mirrored_headers import Mirrored

EntryKind = Literal["tool", "prompt", "resource"]


class ListedTool(msgspec.Struct, frozen=True, gc=False):
    """One tool as its server sent it. `raw` is the server's object, byte for byte: its texts are
    read from there by whoever wants them, for ten thousand copies of them would lie idle.

    `mirrored` are the arguments that go out as headers too, where the transport has headers.
    `output_schema` is its `outputSchema` as it came, None where it has none.
    """

    name: str
    raw: Raw
    read_only: bool | None = None
    idempotent: bool | None = None
    task_required: bool = False
    mirrored: tuple[Mirrored, ...] = ()
    output_schema: Raw | None = None

    @property
    def title(self) -> str | None:
        """Its own, else that of its annotations."""
        return texts.title(self.raw)

    @property
    def description(self) -> str | None:
        return texts.description(self.raw)


class ListedPrompt(msgspec.Struct, frozen=True, gc=False):
    name: str
    raw: Raw


class ListedResource(msgspec.Struct, frozen=True, gc=False):
    """A resource (`uri`) or, with `is_template`, a template (`uri` is its uriTemplate)."""

    uri: str
    raw: Raw
    is_template: bool = False


class Excluded(msgspec.Struct, frozen=True, gc=False):
    """An entry that is not offered, and why. `local_name` is a URI for a resource, and "" where
    the entry had no usable name; `detail` is a sentence for a person."""

    server: str
    local_name: str
    reason: ExclusionReason
    detail: str = ""
    kind: EntryKind = "tool"


class Listing(msgspec.Struct, frozen=True, gc=False):
    """Everything one life of one server listed.

    `truncated` names the bound or trap that ended a list early (a sentence), else None.
    `complete` is False where a list failed and the last good one is kept. It was read at `read_s`
    and is fresh until then by its server's own hint (both monotonic seconds); `scope` says whether
    everybody may be given what is kept of it. `digest` is over the bytes of every entry, each with
    its length, so that no two lists look alike: made here, once, unless it is given.
    """

    server: str
    tools: tuple[ListedTool, ...] = ()
    prompts: tuple[ListedPrompt, ...] = ()
    resources: tuple[ListedResource, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    truncated: str | None = None
    complete: bool = True
    read_s: float = -math.inf
    fresh_until_s: float = math.inf
    scope: CacheScope = "private"
    digest: str = ""

    def __post_init__(self) -> None:
        if not self.digest:
            msgspec.structs.force_setattr(self, "digest", self._digest())

    def _digest(self) -> str:
        parts: list[bytes | Raw] = []
        for group in (self.tools, self.prompts, self.resources):
            parts.append(b"%d;" % len(group))
            for entry in group:
                raw = entry.raw
                parts += (b"%d:" % len(raw), raw)
        return hashlib.sha256(b"".join(parts)).hexdigest()


class PeerView(msgspec.Struct, frozen=True, gc=False):
    """What the catalogue needs to know of one configured server at one moment.

    `listing` is its last good listing of this run, or None. `settled`: listed, refused or failed
    at least once in this run. `answers`: not known to be silent, though it is there.
    """

    name: str
    enabled: bool
    state: PeerState
    cause: Cause | None
    reason: str
    settled: bool
    listing: Listing | None
    answers: bool = True


class ToolEntry(msgspec.Struct, frozen=True, gc=False):
    """One offered name. `name` is canonical, `local_name` what the owner calls it."""

    name: str
    api_name: str
    server: str
    local_name: str
    routable: bool
    tool: ListedTool


class PromptEntry(msgspec.Struct, frozen=True, gc=False):
    name: str
    api_name: str
    server: str
    local_name: str
    routable: bool
    prompt: ListedPrompt


class ResourceEntry(msgspec.Struct, frozen=True, gc=False):
    uri: str
    server: str
    routable: bool
    resource: ListedResource


class Collision(msgspec.Struct, frozen=True, gc=False):
    """`others` are (server, canonical name) of those that got a qualified name instead."""

    name: str
    owner: str
    others: tuple[tuple[str, str], ...]


class Missing(msgspec.Struct, frozen=True, gc=False):
    server: str
    state: PeerState
    cause: Cause | None
    reason: str


class Catalogue(msgspec.Struct, frozen=True):
    """One immutable view. `lookup` maps every accepted spelling of a tool name to its entry:
    canonical, api and qualified names. `version` grows by one with each published change.

    `digest` ("sha256:…") is over what is offered under which name, not over who is up: two hosts
    with one configuration agree on it. `idle_tools` and `idle_prompts` are bare names that nobody
    serves now: their owner has not listed in this run, or gave them up and the grace runs.
    `configured` holds every configured server, disabled ones too.
    """

    version: int
    digest: str
    tools: tuple[ToolEntry, ...]
    prompts: tuple[PromptEntry, ...]
    resources: tuple[ResourceEntry, ...]
    collisions: tuple[Collision, ...]
    excluded: tuple[Excluded, ...]
    missing: tuple[Missing, ...]
    lookup: Mapping[str, ToolEntry]
    prompt_lookup: Mapping[str, PromptEntry]
    resource_lookup: Mapping[str, ResourceEntry]
    prompt_collisions: tuple[Collision, ...] = ()
    idle_tools: Mapping[str, Grant] = {}
    idle_prompts: Mapping[str, Grant] = {}
    configured: frozenset[str] = frozenset()
    listings: Mapping[str, Listing] = {}
