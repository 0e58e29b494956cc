"""Who answers when a server asks for something, and what we may therefore declare.

A capability is declared exactly where a handler exists, so a server that keeps to the protocol
never asks for what nobody here can give.

Source: MCP 2026-07-28 client/elicitation, client/sampling, client/roots.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw

from observant_host.wire.values import decode_value

InputKind = Literal["elicitation", "sampling", "roots"]
Mode = Literal["form", "url"]

KINDS: Final[Mapping[str, InputKind]] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""The methods a server may ask for, embedded (modern) or as a request (legacy)."""


RELAYED: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}
"""What callers may have. Tools in sampling are left out: few have them, and a server that may use
them asks for nothing less."""


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


REJECTED_BY_USER: Final = -1
"""Source: MCP 2025-11-25 client/sampling › Error Handling."""


class InputDeclined(Exception):
    """A handler's way to refuse sampling or roots. `code` and the text are what a legacy server is
    told; a modern one is told nothing."""

    def __init__(self, message: str = "the user declined", *, code: int = REJECTED_BY_USER) -> None:
        super().__init__(message)
        self.code = code


class InputHandlers(msgspec.Struct, frozen=True):
    """The handlers of one host, or of one call; None: that capability is not declared.

    `elicitation_modes` is what the elicitation handler can do: fill in forms, have a person open
    an address; `sampling_tools` that the sampling handler takes tools. `extensions` are ids of
    protocol extensions that are declared beside.

    `offered` is what the caller of this one call declared itself: it is declared in place of what
    the handlers say, and its answers go out as they came (`audience`: see `peers.relay`). `relays`
    of a host's own: calls will bring such handlers, so a legacy server, which is told only once
    what there is, is told of all kinds.
    """

    elicitation: InputHandler | None = None
    sampling: InputHandler | None = None
    roots: InputHandler | None = None
    elicitation_modes: tuple[Mode, ...] = ("form",)
    extensions: tuple[str, ...] = ()
    sampling_tools: bool = False
    offered: Mapping[str, Any] | None = None
    audience: Any = None
    relays: bool = False

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
        if self.offered is not None:
            return self._offered(self.offered)
        declared: dict[str, Any] = {}
        if self.elicitation is not None:
            declared["elicitation"] = {mode: {} for mode in self.elicitation_modes}
        if self.sampling is not None:
            declared["sampling"] = {}
        if self.roots is not None:
            declared["roots"] = {}
        if self.extensions:
            declared["extensions"] = {one: {} for one in self.extensions}
        return declared

    def initial(self) -> dict[str, Any]:
        """Client capabilities of an `initialize`, which hold for whoever calls later."""
        declared = self.capabilities()
        return {**RELAYED, **declared} if self.relays else declared

    def _offered(self, offered: Mapping[str, Any]) -> dict[str, Any]:
        if not self.extensions:
            return dict(offered)
        ours: dict[str, Any] = {one: {} for one in self.extensions}
        return {**offered, "extensions": {**offered.get("extensions", {}), **ours}}


NO_HANDLERS: Final = InputHandlers()


def modes_of(given: Sequence[str]) -> tuple[Mode, ...]:
    """The modes that an elicitation handler can do. Raises ValueError for others, and for none."""
    modes: tuple[Mode, ...] = tuple(mode for mode in get_args(Mode) if mode in set(given))
    if not modes or set(given) - set(modes):
        raise ValueError(f"elicitation_modes: {list(given)} is none or not only of form, url")
    return modes


def forbidden(request: InputRequest, handlers: InputHandlers) -> str | None:
    """Why this request is unusable or breaks what we declared (a sentence), or None.

    Source: MCP 2026-07-28 client/elicitation › Safe URL Handling, client/sampling › Capabilities.
    """
    try:
        params = request.decoded()
    except ValueError as error:
        return f"what it asked cannot be decoded ({error})"
    asks_tools = "tools" in params or "toolChoice" in params
    if request.kind == "sampling" and asks_tools and not handlers.sampling_tools:
        return "it asked for sampling with tools, which was not declared"
    if request.kind == "elicitation":
        return _forbidden_elicitation(params, handlers.elicitation_modes)
    return None


def _forbidden_elicitation(params: Mapping[str, Any], modes: tuple[Mode, ...]) -> str | None:
    mode = params.get("mode", "form")
    if mode not in ("form", "url"):
        return f"it asked for the unknown elicitation mode {str(mode)[:64]!r}"
    if mode not in modes:
        return f"it asked for the elicitation mode {mode!r}, which was not declared"
    return _forbidden_address(params.get("url")) if mode == "url" else None


def _forbidden_address(url: Any) -> str | None:
    """Only what a browser shows as what it is: no other scheme, no user name that looks like a
    host, no character that a terminal or a shell reads in its own way."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        named = parts is not None and bool(parts.hostname)
    except ValueError:
        return "it asked to open an address that cannot be read"
    if parts is None or parts.scheme not in ("http", "https") or not named:
        return "it asked to open an address that is not http or https"
    if "@" in parts.netloc or not url.isprintable() or " " in url:
        return "it asked to open an address with a user name or unprintable characters in it"
    return None
