"""A call that one old revision refuses until a person has opened an address.

The addresses are shown, and the call is sent again. Whether the person has finished there, only
the server knows: it may refuse again, and then it is asked again after a pause, without showing
the same address twice.

Source: MCP 2025-11-25 client/elicitation › URL Elicitation Required Error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from observant_host.errors import InputRefused, RpcError
from observant_host.peers.input_rounds import MAX_ROUNDS
from observant_host.wire.envelope import encode
from observant_host.wire.messages import EmbeddedRequest
from observant_host.wire.values import decode_value

if TYPE_CHECKING:
    from observant_host.peers.asking import Asking
    from observant_host.peers.input_rounds import Params, SendAgain

URL_REQUIRED: Final = -32042
"""In no other revision does this code mean anything."""
REVISION: Final = "2025-11-25"

FIRST_PAUSE_S: Final = 1.0
"""Before asking whether the person has finished; doubles each time."""


def addresses(error: RpcError) -> dict[str, EmbeddedRequest]:
    """The elicitations of the error by their ids; {} where it has none that can be read."""
    data = error.data
    listed = data.get("elicitations") if isinstance(data, dict) else None
    found: dict[str, EmbeddedRequest] = {}
    for one in listed if isinstance(listed, list) else ():
        known = one.get("elicitationId") if isinstance(one, dict) else None
        if isinstance(known, str) and one.get("mode") == "url":
            found[known] = EmbeddedRequest("elicitation/create", Raw(encode(one)))
    return found


def _accepts(answer: Mapping[str, Any] | Raw) -> bool:
    said = decode_value(answer) if isinstance(answer, Raw) else answer
    return isinstance(said, Mapping) and said.get("action") == "accept"


class UrlRounds:
    """Of one call; `send` as for InputRounds, `error` is what its first sending got."""

    def __init__(self, asking: Asking, *, params: Params, send: SendAgain) -> None:
        self._asking = asking
        self._params = params
        self._send = send
        self._shown: set[str] = set()
        self._pause_s = FIRST_PAUSE_S

    async def until_answered(self, error: RpcError) -> Raw:
        """The call's result. Raises the last error where it still is refused after all rounds,
        InputRefused where nobody opens an address, CallTimeout."""
        for number in range(1, MAX_ROUNDS + 1):
            wanted = addresses(error)
            if not wanted:
                raise error
            await self._show(wanted, number, error)
            try:
                return await self._send(self._params, number)
            except RpcError as again:
                if again.code != URL_REQUIRED:
                    raise
                error = again
        raise error

    async def _show(self, wanted: dict[str, EmbeddedRequest], number: int, error: RpcError) -> None:
        new = {known: one for known, one in wanted.items() if known not in self._shown}
        pause_s = 0.0
        if not new:
            pause_s, self._pause_s = self._pause_s, self._pause_s * 2
        self._asking.scheduled(attempt=number, delay_s=pause_s)
        await self._asking.pause(pause_s)
        answers: dict[str, Any] = await self._asking.answers(new)
        if not all(_accepts(answer) for answer in answers.values()):
            raise InputRefused(
                f"{self._asking.server} needs a person to open an address, and that was refused",
                delivery="replied",
                fault="caller",
            ) from error
        self._shown |= new.keys()
