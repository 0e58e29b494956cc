"""What a caller gets: the server's bytes, and a view of them that is decoded on first use.

A struct, since each call makes one: a class with the same slots takes four times as long to make.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec
from msgspec import Raw

from observant_host.errors import CallFacts, Delivery, Fault, InvalidResult, RpcError
from observant_host.schema_check import OutputProblem
from observant_host.wire.messages import InputRequired
from observant_host.wire.values import decode_value

if TYPE_CHECKING:
    from observant_host.errors import CallError, Outcome


class Settled(Protocol):
    """A call that has ended."""

    def facts(self) -> CallFacts: ...


class CallResult(msgspec.Struct, eq=False):
    """One answered call. `raw` is the result object as the server sent it.

    `outcome` is "ok" or "tool_error" (`is_error`). `call` has what is known of the call itself;
    its fields are here too. `schema_problem` says why `structuredContent` is not known to fit what
    the tool promised (its outputSchema); the content is there all the same. `input_required` is
    what the server wants first, where the call was to hand that up: then it is no result yet.
    `typed`: it is known to have a `resultType`, which a large one need not be searched for again.
    """

    raw_view: Raw
    """The same bytes as `raw`, to be put into a larger document as they are."""
    _call: CallFacts | Settled
    is_error: bool = False
    schema_problem: OutputProblem | None = None
    input_required: InputRequired | None = None
    typed: bool = False
    _data: dict[str, Any] | None = None

    delivery: ClassVar[Delivery] = "replied"
    fault: ClassVar[Fault] = "none"

    @property
    def call(self) -> CallFacts:
        """What is known of the call itself; put together when somebody asks."""
        if not isinstance(self._call, CallFacts):
            self._call = self._call.facts()
        return self._call

    @property
    def outcome(self) -> Outcome:
        return "tool_error" if self.is_error else "ok"

    @property
    def name(self) -> str:
        """The name that was called."""
        return self.call.name

    @property
    def server(self) -> str:
        return self.call.server

    @property
    def local_name(self) -> str:
        """What the server calls it; a resource's URI."""
        return self.call.local_name

    @property
    def attempts(self) -> int:
        return self.call.attempts

    @property
    def era(self) -> str:
        return self.call.era

    @property
    def duration_ms(self) -> float:
        return self.call.duration_ms

    @property
    def trace_id(self) -> str | None:
        return self.call.trace_id

    @property
    def raw(self) -> bytes:
        return bytes(self.raw_view)

    @property
    def data(self) -> dict[str, Any]:
        """The whole result object, decoded once. Do not change it.

        A number beyond the range of floats comes as a Decimal. Raises InvalidResult where the
        result is nested too deeply to be decoded here (`raw` has it all the same); so do the views
        below.
        """
        if self._data is None:
            self._data = self._decoded()
        return self._data

    def _decoded(self) -> dict[str, Any]:
        try:
            value = decode_value(self.raw_view)
        except (ValueError, RecursionError) as error:
            raise InvalidResult(
                f"the result of {self.name} cannot be decoded ({error}); `raw` holds its bytes"
            ) from error
        if not isinstance(value, dict):
            raise InvalidResult(f"the result of {self.name} is no JSON object")
        return value

    @property
    def content(self) -> list[Any]:
        """The `content` blocks as they came, odd ones too; [] where there is no list."""
        content = self.data.get("content")
        return content if isinstance(content, list) else []

    @property
    def text(self) -> str:
        """The text blocks of `content`, joined by newlines."""
        texts = [
            block.get("text")
            for block in self.content
            if isinstance(block, dict) and block.get("type") == "text"
        ]
        return "\n".join(text for text in texts if isinstance(text, str))

    @property
    def has_structured_content(self) -> bool:
        """Tells a `structuredContent` of null from none."""
        return "structuredContent" in self.data

    @property
    def structured_content(self) -> Any:
        """`structuredContent`, any JSON value; None where it is null or absent."""
        return self.data.get("structuredContent")

    def to_json(self) -> dict[str, Any]:
        """The object of `call --json`; encode with msgspec, the result goes out untouched."""
        return _document(
            self.call,
            outcome=self.outcome,
            delivery=self.delivery,
            fault=self.fault,
            result=self.raw_view,
            schema_problem=self.schema_problem,
        )

    def __repr__(self) -> str:
        return f"<CallResult {self.name!r} {self.outcome} {len(self.raw_view)} bytes>"


def error_json(error: CallError, *, name: str) -> dict[str, Any]:
    """The object of `call --json` for a call that raised.

    `error` is the server's own where it sent one; else its `code` is null and `data` names the
    `error_type`.
    """
    if isinstance(error, RpcError):
        said = {"code": error.code, "message": error.rpc_message, "data": error.data}
    else:
        said = {"code": None, "message": str(error), "data": {"error_type": error.error_type}}
    return _document(
        error.call or CallFacts(name),
        outcome=error.outcome,
        delivery=error.delivery,
        fault=error.fault,
        error=said,
    )


def cancelled_json(*, name: str, delivery: Delivery = "sent_no_reply") -> dict[str, Any]:
    """The object of `call --json` for a call that its caller cancelled."""
    said = {"code": None, "message": "the call was cancelled", "data": None}
    return _document(
        CallFacts(name), outcome="cancelled", delivery=delivery, fault="caller", error=said
    )


def _document(
    call: CallFacts,
    *,
    outcome: Outcome,
    delivery: Delivery,
    fault: Fault,
    result: Raw | None = None,
    schema_problem: OutputProblem | None = None,
    error: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "name": call.name,
        "server": call.server,
        "local_name": call.local_name,
        "outcome": outcome,
        "delivery": delivery,
        "fault": fault,
        "attempts": call.attempts,
        "era": call.era,
        "duration_ms": round(call.duration_ms, 3),
        "trace_id": call.trace_id,
        "result": result,
        "schema_problem": schema_problem,
        "error": error,
    }
