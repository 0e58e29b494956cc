"""The shapes of answers that no type of ours has: for the OpenAPI document.

The documents themselves are made where their data is; a test compares the two.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from observant_host.decisions.terms import Cause, ExclusionReason, PeerState
from observant_host.routing.open_calls import CallInFlight, EndedCall
from observant_host.supervision.peer_state import ServerView


class ProblemAbout(msgspec.Struct, frozen=True):
    """`type` is of a closed list, `message` a sentence for a person with the next step."""

    type: str
    message: str
    unknown: bool = False
    problems: list[str] = []
    reason: str = ""


class Problem(msgspec.Struct, frozen=True):
    """Every error that is not the end of a call."""

    error: ProblemAbout


class Servers(msgspec.Struct, frozen=True):
    """In the order of the configuration."""

    servers: list[ServerView]


class Contender(msgspec.Struct, frozen=True):
    """Who wanted the same name."""

    server: str
    name: str


class CollisionShown(msgspec.Struct, frozen=True):
    """One name, who has it, and how the others are called."""

    name: str
    owner: str
    others: list[Contender]


class ExcludedShown(msgspec.Struct, frozen=True):
    """What a server lists and nobody gets, and why."""

    server: str
    local_name: str
    reason: ExclusionReason
    detail: str


class MissingServer(msgspec.Struct, frozen=True):
    """A server whose entries are not there, or cannot be called now."""

    server: str
    state: PeerState
    cause: Cause | None
    reason: str


class ToolShown(msgspec.Struct, frozen=True):
    """`tool` is the server's own object."""

    name: str
    api_name: str
    server: str
    local_name: str
    routable: bool
    pin: Literal["unlocked", "ok", "drifted", "new"]
    tool: dict[str, Any]


class PromptShown(msgspec.Struct, frozen=True):
    """`prompt` is the server's own object."""

    name: str
    api_name: str
    server: str
    local_name: str
    routable: bool
    prompt: dict[str, Any]


class ResourceShown(msgspec.Struct, frozen=True, omit_defaults=True):
    """The server's own object is `resource`, or `template`."""

    uri: str
    server: str
    routable: bool
    resource: dict[str, Any] | None = None
    template: dict[str, Any] | None = None


class Tools(msgspec.Struct, frozen=True):
    """The catalogue's tools under unique names."""

    version: int
    digest: str
    tools: list[ToolShown]
    collisions: list[CollisionShown]
    excluded: list[ExcludedShown]
    missing: list[MissingServer]


class Prompts(msgspec.Struct, frozen=True):
    """The catalogue's prompts under unique names."""

    version: int
    digest: str
    prompts: list[PromptShown]
    collisions: list[CollisionShown]
    excluded: list[ExcludedShown]
    missing: list[MissingServer]


class Resources(msgspec.Struct, frozen=True):
    """The catalogue's resources and resource templates."""

    version: int
    digest: str
    resources: list[ResourceShown]
    collisions: list[CollisionShown]
    excluded: list[ExcludedShown]
    missing: list[MissingServer]


class CallProblem(msgspec.Struct, frozen=True):
    """A JSON-RPC error of the server, as it came, or our own sentence with code 0."""

    code: int | None
    message: str
    data: Any = None


class Called(msgspec.Struct, frozen=True):
    """How a call ended; `result` is exactly what the server sent."""

    name: str
    server: str
    local_name: str
    outcome: Literal[
        "ok", "tool_error", "rpc_error", "invalid", "unavailable", "timeout", "cancelled"
    ]
    delivery: Literal["not_sent", "sent_no_reply", "replied"]
    fault: Literal["none", "caller", "peer", "host", "policy"]
    attempts: int
    era: str
    duration_ms: float
    trace_id: str | None
    result: dict[str, Any] | None
    error: CallProblem | None
    schema_problem: dict[str, Any] | None = None


class Calls(msgspec.Struct, frozen=True):
    """Those on their way, oldest first, and the last that ended, newest first."""

    in_flight: list[CallInFlight]
    recent: list[EndedCall]


class Decisions(msgspec.Struct, frozen=True, omit_defaults=True):
    """With `server`: its `decisions`, oldest first. Without: the `recent` ones of all."""

    server: str | None = None
    decisions: list[dict[str, Any]] | None = None
    recent: list[dict[str, Any]] | None = None


class Incidents(msgspec.Struct, frozen=True):
    """Downgrades, outages and refusals, each with its class."""

    since: str
    until: str
    incidents: list[dict[str, Any]]
    telemetry_lost: int = 0


class Reloaded(msgspec.Struct, frozen=True):
    """What a reload did, or would do; `sentences` say it for a person."""

    plan: dict[str, Any]
    applied: bool
    hash: str
    file: str
    warnings: list[str]
    sentences: list[str]


class LogLines(msgspec.Struct, frozen=True):
    """The last lines that the host wrote to stderr."""

    lines: list[str]
