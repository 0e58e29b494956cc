"""The catalogue as the JSON that scripts read: `tools`, `prompts`, `resources` with `--json`.

Each server's own object goes out as its bytes came in (`msgspec.Raw`): encode with msgspec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from observant_host.decisions.catalogue import Catalogue, Collision, EntryKind
    from observant_host.decisions.entries import Named

UNLOCKED: Final = "unlocked"
"""The pin of a tool where no lock file pins anything."""


def tools_json(catalogue: Catalogue) -> dict[str, Any]:
    """{"version", "digest", "tools", "collisions", "excluded", "missing"}"""
    tools = [
        {**_named(e), "routable": e.routable, "pin": UNLOCKED, "tool": e.tool.raw}
        for e in catalogue.tools
    ]
    return _document(catalogue, "tools", tools, kind="tool", collisions=catalogue.collisions)


def prompts_json(catalogue: Catalogue) -> dict[str, Any]:
    """As `tools_json`; each entry's own object is `prompt`."""
    prompts = [
        {**_named(e), "routable": e.routable, "prompt": e.prompt.raw} for e in catalogue.prompts
    ]
    collisions = catalogue.prompt_collisions
    return _document(catalogue, "prompts", prompts, kind="prompt", collisions=collisions)


def resources_json(catalogue: Catalogue) -> dict[str, Any]:
    """As `tools_json`; an entry has a `uri` and its own object as `resource`, or as `template`."""
    resources = [
        {
            "uri": e.uri,
            "server": e.server,
            "routable": e.routable,
            "template" if e.resource.is_template else "resource": e.resource.raw,
        }
        for e in catalogue.resources
    ]
    return _document(catalogue, "resources", resources, kind="resource", collisions=())


def _named(entry: Named) -> dict[str, Any]:
    return {
        "name": entry.name,
        "api_name": entry.api_name,
        "server": entry.server,
        "local_name": entry.local_name,
    }


def _document(
    catalogue: Catalogue,
    member: str,
    offered: list[dict[str, Any]],
    *,
    kind: EntryKind,
    collisions: Iterable[Collision],
) -> dict[str, Any]:
    return {
        "version": catalogue.version,
        "digest": catalogue.digest,
        member: offered,
        "collisions": [_collision(collision) for collision in collisions],
        "excluded": [
            {
                "server": lost.server,
                "local_name": lost.local_name,
                "reason": lost.reason,
                "detail": lost.detail,
            }
            for lost in catalogue.excluded
            if lost.kind == kind
        ],
        "missing": [
            {"server": m.server, "state": m.state, "cause": m.cause, "reason": m.reason}
            for m in catalogue.missing
        ],
    }


def _collision(collision: Collision) -> dict[str, Any]:
    others = [{"server": server, "name": name} for server, name in collision.others]
    return {"name": collision.name, "owner": collision.owner, "others": others}
