"""What a caller asks for, and where that goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

import msgspec
from msgspec import Raw

from observant_host.routing.arguments import as_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from observant_host.peers.input_handlers import InputHandlers
    from observant_host.peers.peer import Terms
    from observant_host.telemetry.facade import TraceContext

    OnProgress = Callable[[float, float | None, str | None], object]


Inputs = Literal["answer", "hand_up"]


class CallOptions(TypedDict, total=False):
    """What every kind of call takes by keyword.

    `deadline_s`: seconds for everything that is done for the call; without it the server's own
    call_timeout_s, which progress and rounds of input renew up to its call_max_s. `on_progress` is
    called with (progress, total, message). `log_level` asks the server for log messages from that
    level on, where it has any. `handlers` replaces the host's own for this call. `parent` is the
    caller's trace, `principal` who asks (for the record, and for a fair turn), `meta` the caller's
    `_meta` (the protocol's keys win over it).

    `inputs="hand_up"`: where a modern server wants input first, that is the result
    (`CallResult.input_required`), and nobody is asked here. Its caller calls again with
    `input_responses`, with the server's `request_state` where it gave one, and with the number of
    the `input_round` (from 1 on). `handlers` then say what is declared; a legacy server, and a
    task, still ask them.
    """

    deadline_s: float | None
    on_progress: OnProgress | None
    log_level: str | None
    handlers: InputHandlers | None
    parent: TraceContext | None
    principal: str | None
    meta: Mapping[str, Any] | None
    inputs: Inputs
    input_responses: Raw | None
    request_state: str | None
    input_round: int


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One call as its caller put it; its fields are those of `CallOptions`."""

    name: str
    method: str
    deadline_s: float | None = None
    on_progress: Any = None
    log_level: str | None = None
    handlers: Any = None
    parent: Any = None
    principal: str | None = None
    meta: Any = None
    inputs: Inputs = "answer"
    input_responses: Raw | None = None
    request_state: str | None = None
    input_round: int = 0

    def terms(self) -> Terms:
        """What its server's peer must know of it: only what is not as usual, which is nothing for
        most calls."""
        terms: Terms = {}
        if self.on_progress is not None:
            terms["on_progress"] = self.on_progress
        if self.handlers is not None:
            terms["handlers"] = self.handlers
        if self.principal is not None:
            terms["principal"] = self.principal
        if self.log_level is not None:
            terms["log_level"] = self.log_level
        if self.inputs == "hand_up":
            terms["hand_up"] = self.input_round
        return terms

    def beside(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters, with what a further round and the caller's `_meta` add to them. Raises
        InvalidCall."""
        if not self.input_round and self.meta is None:
            return params
        members = dict(params)
        if self.input_round and self.input_responses is not None:
            members["inputResponses"] = self.input_responses
        if self.input_round and self.request_state is not None:
            members["requestState"] = self.request_state
        if self.meta is not None:
            members["_meta"] = as_object(self.meta, "_meta")
        return members


class Target(msgspec.Struct, frozen=True):
    """Where a call goes. `local_name` is what the server calls it, `uri` is set for a resource.

    `idempotent`: its annotations say so (they count only for a server that is trusted).
    `output_schema` is what the tool promised of its structured content.
    """

    server: str
    local_name: str
    uri: str | None = None
    idempotent: bool = False
    output_schema: Raw | None = None
