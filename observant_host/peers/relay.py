"""Input that is not ours to give: it is asked of whoever made the call, further up.

A server is offered what this one caller declared, and nothing else; what it then asks for goes up
as its bytes, and the caller's answer comes down as its bytes.

Source: MCP 2026-07-28 basic/versioning › Capability Negotiation; client/elicitation, sampling,
roots.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4

import msgspec
from msgspec import Raw

from observant_host.peers.input_handlers import REJECTED_BY_USER, InputDeclined, InputHandlers
from observant_host.wire.envelope import encode
from observant_host.wire.tasks import EXTENSION
from observant_host.wire.values import decode_value

if TYPE_CHECKING:
    from observant_host.peers.input_handlers import InputHandler, InputRequest, Mode

PASSED_ON: Final = ("elicitation", "sampling", "roots", "experimental")
"""Client capabilities that mean the same one hop further. `tasks` of a legacy client do not: we
answer with results, never with tasks; for the same reason the extension is taken out."""


class Refused(msgspec.Struct, frozen=True):
    """No answer: the caller's own error, or the sentence why it could not be asked."""

    code: int
    message: str


class Relay(Protocol):
    """One caller that can be asked while its call is open. Calls of one `audience` (a session, a
    principal) need not be told apart: what a server asks is shown to the same person."""

    @property
    def audience(self) -> object: ...

    async def ask(self, method: str, params: Raw) -> Raw | Refused:
        """Have it answer a server's request: the bare result as its bytes. It is cancelled where
        nobody waits for the answer any more."""


def offered(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """What a server may be told of this caller, in the shape that both eras share."""
    told = {
        key: dict(capabilities[key])
        for key in PASSED_ON
        if isinstance(capabilities.get(key), Mapping)
    }
    extensions = capabilities.get("extensions")
    if isinstance(extensions, Mapping):
        passed = {key: one for key, one in extensions.items() if key != EXTENSION}
        if passed:
            told["extensions"] = passed
    return told


def relayed(capabilities: Mapping[str, Any], relay: Relay) -> InputHandlers:
    """Handlers for one call that ask its caller, and declare exactly what it declared."""
    told = offered(capabilities)
    handler = _handler(relay)
    sampling = told.get("sampling")
    return InputHandlers(
        elicitation=handler if "elicitation" in told else None,
        sampling=handler if sampling is not None else None,
        roots=handler if "roots" in told else None,
        elicitation_modes=_modes(told.get("elicitation", {})),
        sampling_tools=isinstance(sampling, dict) and "tools" in sampling,
        offered=told,
        audience=relay.audience,
    )


def _handler(relay: Relay) -> InputHandler:
    async def ask(request: InputRequest) -> Raw:
        answer = await relay.ask(request.method, request.params)
        if isinstance(answer, Refused):
            raise InputDeclined(answer.message, code=answer.code)
        return answer

    return ask


def _modes(elicitation: Mapping[str, Any]) -> tuple[Mode, ...]:
    """Source: MCP 2026-07-28 client/elicitation › Capabilities: an empty object means forms."""
    modes: tuple[Mode, ...] = ("form", "url")
    said = tuple(mode for mode in modes if mode in elicitation)
    return said or ("form",)


class Nobody:
    """A caller that is asked by an answer, never while its call is open."""

    audience = None

    async def ask(self, method: str, _params: Raw) -> Raw | Refused:
        return unanswered(method)


class InOldWords:
    """A legacy caller: an address that it is asked to open needs an id there, which a modern server
    does not give.

    Source: MCP 2025-11-25 client/elicitation › URL Mode Elicitation Requests.
    """

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    @property
    def audience(self) -> object:
        return self._relay.audience

    async def ask(self, method: str, params: Raw) -> Raw | Refused:
        if method == "elicitation/create" and b'"url"' in bytes(params):
            said = msgspec.json.decode(params, type=dict[str, Raw])
            if decode_value(said.get("mode", b"null")) == "url" and "elicitationId" not in said:
                said["elicitationId"] = Raw(encode(str(uuid4())))
                params = Raw(encode(said))
        return await self._relay.ask(method, params)


def unanswered(method: str) -> Raw | Refused:
    """What a server is told where nobody will answer: the protocol's own word, where it has one.

    Source: MCP 2025-11-25 client/elicitation › Response Actions, client/sampling › Error Handling.
    """
    if method == "elicitation/create":
        return Raw(b'{"action":"cancel"}')
    return Refused(REJECTED_BY_USER, "nobody answered")
