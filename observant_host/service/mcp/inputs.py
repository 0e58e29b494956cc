"""Input through two hops: what a server wants first goes to the caller, whose answers go back.

A modern caller is asked by an answer (`input_required`) and comes back with a new request, maybe at
another replica: all that is needed then is sealed into its `requestState`, the server's own
included. A legacy caller is asked on its session while its call waits (`Relay`). A server is told
of exactly what this caller declared.

Source: MCP 2026-07-28 basic/patterns/mrtr; basic/versioning › Capability Negotiation.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from observant_host.decisions.northbound import Refusal, at_the_door
from observant_host.errors import InvalidCall, InvalidResult, Unavailable
from observant_host.peers.input_handlers import InputHandlers
from observant_host.peers.input_rounds import MAX_ROUNDS
from observant_host.peers.relay import InOldWords, Nobody, offered, relayed
from observant_host.service.mcp import sealing
from observant_host.service.mcp.outlet import encode, error_of, result_of
from observant_host.service.mcp.parking import PARK_S, ParkedCall, Parking
from observant_host.service.mcp.sealing import Round, Sealer
from observant_host.wire.revisions import INVALID_PARAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from observant_host.decisions.northbound import Question
    from observant_host.peers.relay import Relay
    from observant_host.routing.asked import CallOptions
    from observant_host.routing.call_result import CallResult
    from observant_host.service.callers import Caller
    from observant_host.service.mcp.outlet import Response
    from observant_host.service.served import Served
    from observant_host.telemetry.facade import Operation
    from observant_host.timing.clock import Clock

    Call = Callable[[CallOptions], Coroutine[Any, Any, CallResult]]

NOBODY: Final = Nobody()
NOTHING: Final = InputHandlers(offered={})
"""For a legacy caller that cannot be asked."""


class Inputs:
    """Of one desk. `instance` names this run among those with the same keys."""

    def __init__(self, host: Served, *, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        self._sealer = Sealer(sealing.random_keys())
        self.instance = secrets.token_hex(8)
        self.parking = Parking(telemetry=lambda: host.telemetry, clock=clock)

    def use_keys(self, keys: Sequence[bytes]) -> None:
        """Those of a file, so that replicas open each other's. Raises ValueError."""
        self._sealer = Sealer(keys)

    async def through(
        self,
        question: Question,
        caller: Caller,
        op: Operation,
        *,
        server: str,
        options: CallOptions,
        call: Call,
        relay: Relay | None = None,
    ) -> CallResult | Response:
        """Make the call that the question is, or go on with the one it belongs to. A Response is
        what its caller must be told instead of a result. Raises CallError."""
        if relay is not None or question.era == "legacy":
            capabilities = question.meta.capabilities
            options["handlers"] = (
                NOTHING if relay is None else relayed(capabilities, InOldWords(relay))
            )
            return await call(options)
        carried = self._carried(question, caller, server)
        if isinstance(carried, Refusal):
            op.end_as("rpc_error", "request_state")
            return error_of(question.id, carried)
        if carried.number:
            op.event("input_round", round=carried.number, began_in=carried.trace or "")
        if carried.parked is not None:
            return await self._unparked(question, carried, op, options)
        return await self._called(question, carried, op, options, call)

    def asked(
        self, question: Question, caller: Caller, op: Operation, result: CallResult
    ) -> CallResult | Response:
        """What is answered where a plain call's server wants input first."""
        return self._answered(question, self._begun(question, caller, result.server), result, op)

    def close(self) -> None:
        """Nobody can come back any more. Idempotent."""
        self.parking.close()

    def _carried(self, question: Question, caller: Caller, server: str) -> Round | Refusal:
        """What the caller brought of earlier rounds: number 0 where it begins."""
        responses = question.params.get("inputResponses")
        if _members(responses) is None:
            return _refusal("`inputResponses` must be a JSON object")
        new = self._begun(question, caller, server, number=0 if responses is None else 1)
        if _absent(question.params.get("requestState")):
            return new
        return self._opened(question, question.text("requestState"), new)

    @staticmethod
    def _begun(question: Question, caller: Caller, server: str, *, number: int = 0) -> Round:
        return Round(
            principal=caller.principal,
            server=server,
            method=question.method,
            digest=b"",  # it is only looked at where there is something to compare it with
            number=number,
            expires=0,
        )

    def _opened(self, question: Question, text: str | None, new: Round) -> Round | Refusal:
        found = None if text is None else self._sealer.open(text)
        if found is None:
            return _refusal("it was changed, or it is not from here: begin the call anew")
        flaw = sealing.flaw(
            found,
            principal=new.principal,
            method=new.method,
            server=new.server,
            digest=_digest(question),
            now=self._clock.wall_ns() / 1e9,
        )
        return found if flaw is None else _refusal(flaw)

    async def _called(
        self, question: Question, carried: Round, op: Operation, options: CallOptions, call: Call
    ) -> CallResult | Response:
        """To a modern server it is one request for each round."""
        options["inputs"] = "hand_up"
        if carried.number:
            options["input_round"] = carried.number
            options["input_responses"] = question.params.get("inputResponses")
            options["request_state"] = carried.state
        capabilities = question.meta.capabilities
        if not self._may_park(question, carried.server):
            options["handlers"] = relayed(capabilities, NOBODY) if capabilities else NOTHING
            return self._answered(question, carried, await call(options), op)
        parked = ParkedCall(
            self.parking,
            server=carried.server,
            method=question.method,
            audience=carried.principal,
        )
        options["handlers"] = relayed(capabilities, parked)
        parked.tell = options.get("on_progress")
        options["on_progress"] = parked.told
        parked.begin(call(options))
        return await self._attended(question, carried, op, parked)

    def _may_park(self, question: Question, server: str) -> bool:
        """Whether its server may ask while the call is open: not a modern one, but for tasks."""
        if not offered(question.meta.capabilities):
            return False
        return self._host.may_ask_during_calls(server)

    async def _unparked(
        self, question: Question, carried: Round, op: Operation, options: CallOptions
    ) -> CallResult | Response:
        if carried.instance != self.instance:
            raise _gone("it waits at another instance of this host, or that one has been restarted")
        parked = self.parking.find(carried.parked or "")
        if parked is None:
            raise _gone(f"it was ended, since it had not been answered within {PARK_S:.0f} s")
        if parked.number != carried.number:
            return error_of(question.id, _refusal("it was answered already"))
        parked.tell = options.get("on_progress")
        parked.answered(_members(question.params.get("inputResponses")) or {})
        return await self._attended(question, carried, op, parked)

    async def _attended(
        self, question: Question, carried: Round, op: Operation, parked: ParkedCall
    ) -> CallResult | Response:
        result = await parked.attend()
        if result is not None:
            return self._answered(question, carried, result, op)
        if parked.number > MAX_ROUNDS or not parked.park():
            parked.give_up()
            raise InvalidResult(
                f"{parked.server} asked for input too often, or too many calls wait for their "
                "callers; the call was ended"
            )
        requests = {key: _Asked(ask.method, ask.params) for key, ask in parked.asks.items()}
        again = msgspec.structs.replace(
            carried, number=parked.number, parked=parked.key, instance=self.instance
        )
        return self._wanted(question, again, op, encode(requests))

    def _answered(
        self, question: Question, carried: Round, result: CallResult, op: Operation
    ) -> CallResult | Response:
        wanted = result.input_required
        if wanted is None:
            return result
        number = carried.number + 1
        if number > MAX_ROUNDS:
            raise InvalidResult(f"{result.server} still asks for input after {MAX_ROUNDS} rounds")
        if len(wanted.request_state or "") > sealing.MAX_STATE:
            raise InvalidResult(
                f"{result.server} gave a requestState of more than {sealing.MAX_STATE} characters"
            )
        again = msgspec.structs.replace(
            carried, number=number, state=wanted.request_state, parked=None, instance=None
        )
        requests = wanted.raw_requests if wanted.requests else None
        return self._wanted(question, again, op, requests)

    def _wanted(
        self, question: Question, again: Round, op: Operation, requests: Raw | bytes | None
    ) -> Response:
        """The answer that asks. The server's requests are in it as they came."""
        now = int(self._clock.wall_ns() / 1e9)
        trace = again.trace or op.context.traceparent()
        sealed = self._sealer.seal(
            msgspec.structs.replace(
                again,
                digest=again.digest or _digest(question),
                expires=now + sealing.LIFETIME_S,
                trace=trace,
            )
        )
        op.event("input_required", round=again.number)
        asked = () if requests is None else (b'"inputRequests":', memoryview(requests), b",")
        head = b'{"resultType":"input_required",'
        return result_of(question.id, (head, *asked, b'"requestState":%b}' % encode(sealed)))


def is_plain(question: Question, relay: Relay | None) -> bool:
    """Whether it is a call and nothing else: of a modern caller that offers no input, brings none,
    and reads no logs along."""
    meta, params = question.meta, question.params
    return (
        relay is None
        and question.era == "modern"
        and not meta.capabilities
        and meta.log_level is None
        and "inputResponses" not in params
        and "requestState" not in params
    )


class _Asked(msgspec.Struct):
    method: str
    params: Raw


def _digest(question: Question) -> bytes:
    try:
        return sealing.digest_of(question.params)
    except (ValueError, RecursionError) as error:
        raise InvalidCall(
            "the parameters cannot be decoded, which a further round needs"
        ) from error


def _gone(why: str) -> Unavailable:
    return Unavailable(
        f"the call that this answers cannot be gone on with: {why}; it may have been executed, "
        "and nothing was sent now",
        delivery="sent_no_reply",
        fault="host",
    )


def _refusal(why: str) -> Refusal:
    return at_the_door(INVALID_PARAMS, f"`requestState` is refused: {why}")


def _absent(raw: Raw | None) -> bool:
    return raw is None or bytes(raw) == b"null"


def _members(raw: Raw | None) -> Mapping[str, Raw] | None:
    try:
        members: dict[str, Raw] | None = {} if raw is None else _decode_members(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return members


_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
