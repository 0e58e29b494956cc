"""A call that needs input: ask whoever can answer, send the call again, and not for ever.

Everything a round needs is collected before the call is sent again, under a new id, with the
server's `requestState` as it came and the original parameters untouched.

Source: MCP 2026-07-28 basic/patterns/mrtr › Supported Requests, Client Requirements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from observant_host.errors import InvalidResult
from observant_host.wire.messages import InputRequired, parse_input_required, peek

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from observant_host.peers.asking import Asking

    Params = Mapping[str, Any] | Raw | None
    SendAgain = Callable[[Params, int], Awaitable[Raw]]

METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The only requests that may be answered with a wish for input."""

MAX_ROUNDS: Final = 8
"""The protocol has no limit; a dialogue of more than eight forms for one call is a loop."""

FIRST_PAUSE_S: Final = 0.25
"""Before a round that asks for nothing (the server sheds load); doubles with each such round."""


class InputRounds:
    """The rounds of one call. `send` sends the call again: (params, round number) -> a result that
    is complete or wants input."""

    def __init__(self, asking: Asking, *, params: Params, send: SendAgain) -> None:
        self._asking = asking
        self._params = params
        self._send = send
        self._pause_s = FIRST_PAUSE_S
        self.rounds = 0

    async def until_complete(self, raw: Raw) -> Raw:
        """From an `input_required` result to another kind.

        Raises InputRefused where nobody can answer, InvalidResult where the server breaks the
        protocol or never ends, CallTimeout when the call's time is over meanwhile.
        """
        server = self._asking.server
        while self.rounds < MAX_ROUNDS:
            wanted = wanted_by(server, raw)
            answers = await self._answers(wanted)
            self.rounds += 1
            raw = await self._send(_again(self._params, wanted, answers), self.rounds)
            if peek(raw).result_type != "input_required":
                return raw
        raise InvalidResult(f"{server} still asks for input after {MAX_ROUNDS} rounds")

    async def _answers(self, wanted: InputRequired) -> dict[str, Any]:
        pause_s = 0.0
        if not wanted.requests:
            pause_s, self._pause_s = self._pause_s, self._pause_s * 2
        self._asking.scheduled(attempt=self.rounds + 1, delay_s=pause_s)
        await self._asking.pause(pause_s)
        return await self._asking.answers(wanted.requests)


def wanted_by(server: str, raw: Raw) -> InputRequired:
    """What an `input_required` result asks for. Raises InvalidResult where it cannot be told."""
    wanted = parse_input_required(raw)
    if isinstance(wanted, str):
        raise InvalidResult(f"{server} asked for input, but {wanted}")
    return wanted


def _again(params: Params, wanted: InputRequired, answers: Mapping[str, Any]) -> dict[str, Any]:
    """The original parameters with this round's answers and state, and nothing of older rounds."""
    again: dict[str, Any]
    match params:
        case None:
            again = {}
        case Raw():
            again = dict(msgspec.json.decode(params, type=dict[str, Raw]))
        case _:
            again = dict(params)
    if wanted.requests:
        again["inputResponses"] = answers
    if wanted.has_state:
        again["requestState"] = wanted.request_state
    return again
