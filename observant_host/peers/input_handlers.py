"""Who answers when a server asks for something, and what we may therefore declare.

A capability is declared exactly where a handler exists, so a server that keeps to the protocol
never asks for what nobody here can give.

Source: MCP 2026-07-28 client/elicitation, client/sampling, client/roots.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw

from observant_host.wire.values import decode_value

InputKind = Literal["elicitation", "sampling", "roots"]

KINDS: Final[Mapping[str, InputKind]] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""The methods a server may ask for, embedded (modern) or as a request (legacy)."""

_DECLARED: Final[Mapping[InputKind, Mapping[str, Any]]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}


class InputRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a server asks for: `params` are its bytes, to be shown as coming from `server`."""

    server: str
    kind: InputKind
    method: str
    params: Raw

    def decoded(self) -> dict[str, Any]:
        """`params` as an object; {} where the server sent none.

        Raises ValueError where they are nested too deeply to be decoded here.
        """
        try:
            value = decode_value(self.params)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
        return value if isinstance(value, dict) else {}


InputHandler = Callable[[InputRequest], Awaitable[Mapping[str, Any] | Raw]]
"""Answers with the bare result object (ElicitResult, CreateMessageResult, ListRootsResult).

Raise `InputDeclined` where a person refuses and the protocol has no word for it.
"""


class InputDeclined(Exception):
    """A handler's way to refuse sampling or roots."""


class InputHandlers(msgspec.Struct, frozen=True):
    """The handlers of one host, or of one call; None: that capability is not declared."""

    elicitation: InputHandler | None = None
    sampling: InputHandler | None = None
    roots: InputHandler | None = None

    def of(self, kind: InputKind) -> InputHandler | None:
        match kind:
            case "elicitation":
                return self.elicitation
            case "sampling":
                return self.sampling
            case "roots":
                return self.roots

    def capabilities(self) -> dict[str, Any]:
        """Client capabilities to declare, in the shape both eras share."""
        return {kind: dict(what) for kind, what in _DECLARED.items() if self.of(kind) is not None}


NO_HANDLERS: Final = InputHandlers()


def forbidden(request: InputRequest) -> str | None:
    """Why this request is unusable or breaks what we declared (a sentence), or None.

    Source: MCP 2026-07-28 client/elicitation › Safe URL Handling, client/sampling › Capabilities.
    """
    try:
        params = request.decoded()
    except ValueError as error:
        return f"what it asked cannot be decoded ({error})"
    if request.kind == "sampling" and ("tools" in params or "toolChoice" in params):
        return "it asked for sampling with tools, which was not declared"
    if request.kind == "elicitation":
        return _forbidden_elicitation(params)
    return None


def _forbidden_elicitation(params: Mapping[str, Any]) -> str | None:
    mode = params.get("mode", "form")
    if mode not in ("form", "url"):
        return f"it asked for the unknown elicitation mode {mode!r}"
    if mode == "url":
        url = params.get("url")
        if not isinstance(url, str) or not url.lower().startswith(("https://", "http://")):
            return "it asked to open an address that is not http or https"
    return None
