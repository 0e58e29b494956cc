"""The part of the vocabulary that is about those who ask this host, not about its servers."""

from __future__ import annotations

from observant_host.telemetry.fact import Fact


class NorthboundRequest(Fact, frozen=True, kw_only=True):
    """One request of an agent to us. Span name: the method, and the tool or prompt if there is one
    (never a URI). `era` is the client's, `client_name` and `client_version` what it says it is,
    `cut` why we ended its connection ourselves.
    """

    method: str
    era: str = "unknown"
    version: str | None = None
    target: str | None = None
    request_id: str = ""
    principal: str | None = None
    client_name: str | None = None
    client_version: str | None = None
    cut: str | None = None
    rpc_code: int | None = None
    http_status: int | None = None


class HttpAnswered(Fact, frozen=True, kw_only=True):
    """A network listener of ours answered a request. `route` is a group of paths, never a path."""

    route: str
    code: str


class AuthFailed(Fact, frozen=True, kw_only=True):
    """A request was not let in. `scope` is what it would have needed, `principal` whose token it
    had, where the token was a known one; `client` is the address it came from, `detail` one word
    for what was wrong with the token."""

    reason: str
    route: str
    scope: str = ""
    principal: str = ""
    client: str = ""
    detail: str = ""
