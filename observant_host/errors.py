"""Every exception that leaves this package, as one tree.

    HostError
    ├── ConfigError            a file or a key is wrong; names file, path and fix
    │   └── NameCollision      collision_policy = "reject" found two owners at first publication
    ├── InstanceLocked         another host holds the state folder
    ├── TransportError         one transport life cannot go on
    │   ├── SpawnFailed        the child could not be started
    │   ├── TransportClosed    the life has ended; carries exit status and stderr tail
    │   ├── QueueFull          the bounded write queue has no room
    │   └── HttpFailure        one HTTP exchange gave no message; says how, and what is certain
    └── CallError              one call has no result; carries outcome, delivery, fault
        ├── RpcError           the peer answered with a JSON-RPC error
        ├── InvalidCall        unknown or withheld name, bad arguments
        ├── InvalidResult      the peer's answer breaks the protocol
        ├── Unavailable        not routable, queue full, draining, or the life ended under the call
        │   ├── NotAnswering   there but silent; one call at a time finds out whether it is back
        │   └── RateLimited    the server asked to be left alone for a while
        ├── CallTimeout        a deadline passed; names its scope
        ├── CallCancelled      an operator ended it; a caller's own cancellation is CancelledError
        └── InputRefused       input_required that nobody here can answer

Each class carries `error_type`, a low-cardinality label for spans and metrics. Causes are chained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SHOWN: Final = 256
"""Characters of a server's odd error in a sentence; all of it is in `data`."""

Delivery = Literal["not_sent", "sent_no_reply", "replied"]
Fault = Literal["none", "caller", "peer", "host", "policy"]
Outcome = Literal["ok", "tool_error", "rpc_error", "invalid", "unavailable", "timeout", "cancelled"]
DeadlineScope = Literal["queue", "connect", "probe", "attempt", "call", "list", "ack", "shutdown"]
HttpFailureKind = Literal[
    "refused",
    "reset",
    "dns",
    "tls",
    "timeout",
    "status",
    "redirect",
    "content",
    "no_response",
    "too_large",
    "encoding",
    "session_lost",
    "credentials",
]


class HostError(Exception):
    """Base of everything below; `str()` is a sentence for a person, with the next step."""

    error_type: ClassVar[str] = "host_error"


class ConfigError(HostError):
    """A configuration cannot be used.

    `problems` are complete sentences, each naming file, key path and fix; all are reported at once.
    """

    error_type = "config_invalid"

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class NameCollision(ConfigError):
    error_type = "name_collision"


class InstanceLocked(HostError):
    error_type = "instance_locked"


class TransportError(HostError):
    error_type = "transport_error"


class SpawnFailed(TransportError):
    error_type = "spawn_failed"


class TransportClosed(TransportError):
    """`exit_code` is negative for a signal (as in subprocess), None where nothing exited."""

    error_type = "transport_closed"

    def __init__(
        self, message: str, *, exit_code: int | None = None, stderr_tail: str = ""
    ) -> None:
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail
        super().__init__(message)


class QueueFull(TransportError):
    error_type = "queue_full"


class HttpFailure(TransportError):
    """One HTTP exchange ended without the message it was for; the life may go on.

    `kind`: "refused", "dns", "tls", "timeout" (all while connecting), "reset" (the connection broke
    before the answer was whole), "status" (not 2xx), "redirect" (one that is not followed),
    "content" (2xx of a type that carries no messages, or whose bytes are none), "no_response" (a
    2xx that ended without the response), "too_large", "encoding" (a Content-Encoding that is
    unknown or a lie), "session_lost" (the server no longer knows our session id), "credentials"
    (the headers that would authorise it could not be had, so nothing was asked).
    `sent` is False only if nothing can have been processed: no connection was ever made.
    `body` is what came, at most 64 KiB of it, NOT masked: mask it before anyone sees it.
    `retry_after_s` in seconds from now. `url` has no query, no fragment and no user name. `str()`
    is masked and safe to show.
    """

    error_type = "http_failure"

    def __init__(
        self,
        message: str,
        *,
        kind: HttpFailureKind,
        url: str,
        sent: bool = True,
        status: int | None = None,
        content_type: str = "",
        body: bytes = b"",
        retry_after_s: float | None = None,
        www_authenticate: str | None = None,
    ) -> None:
        self.kind: HttpFailureKind = kind
        self.url = url
        self.sent = sent
        self.status = status
        self.content_type = content_type
        self.body = body
        self.retry_after_s = retry_after_s
        self.www_authenticate = www_authenticate
        super().__init__(message)


class CallFacts(NamedTuple):
    """What is known of a call that was routed: where to, how often, how long.

    `duration_ms` is the caller's whole wait, `trace_id` 32 hex digits.
    """

    name: str
    server: str = ""
    local_name: str = ""
    attempts: int = 0
    era: str = "unknown"
    duration_ms: float = 0.0
    trace_id: str | None = None


class CallError(HostError):
    """One call ended without a result.

    `delivery` says how far it got ("not_sent", "sent_no_reply", "replied"); only "not_sent"
    proves that nothing was executed. `begun`: an earlier request of this call was answered (by a
    wish for input, or a task), so it must not begin anew. `call` is filled by the router.
    """

    error_type = "call_error"
    outcome: ClassVar[Outcome] = "unavailable"
    call: CallFacts | None = None
    begun: bool = False

    def __init__(
        self, message: str, *, delivery: Delivery = "not_sent", fault: Fault = "peer"
    ) -> None:
        self.delivery: Delivery = delivery
        self.fault: Fault = fault
        super().__init__(message)


class RpcError(CallError):
    """The peer's JSON-RPC error, as it came. `code` is 0 where the peer sent no integer; `data` is
    then the whole error object."""

    error_type = "rpc_error"
    outcome = "rpc_error"

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code = code
        self.rpc_message = message
        self.data = data
        super().__init__(
            f"the server answered with error {code}: {message or _without_message(data)}",
            delivery="replied",
            fault="caller" if code == -32602 else "peer",
        )


def _without_message(data: Any) -> str:
    shown = "" if data is None else f", only {data!r}"
    return f"it gave no message{shown[:MAX_SHOWN]}"


class InvalidCall(CallError):
    """The caller's own mistake: an unknown or withheld name, or bad arguments.

    `unknown` tells the two apart for the API (404 instead of 400).
    """

    error_type = "invalid_call"
    outcome = "invalid"

    def __init__(self, message: str, *, unknown: bool = False) -> None:
        self.unknown = unknown
        super().__init__(message, delivery="not_sent", fault="caller")


class InvalidResult(CallError):
    error_type = "invalid_result"
    outcome = "invalid"

    def __init__(self, message: str, *, delivery: Delivery = "replied") -> None:
        super().__init__(message, delivery=delivery, fault="peer")


class Unavailable(CallError):
    """`retry_after_s`: how long the server asked to be left alone, where it did."""

    error_type = "unavailable"
    outcome = "unavailable"
    retry_after_s: float | None = None


class NotAnswering(Unavailable):
    """Told at once instead of a timeout. A second try a moment later would be told the same."""


class RateLimited(Unavailable):
    """HTTP 429, or a pause that follows from one: nothing was executed. Its delivery is "replied"
    where the server refused this very call, "not_sent" where the call was held back."""

    def __init__(
        self, message: str, *, retry_after_s: float | None, delivery: Delivery = "not_sent"
    ) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message, delivery=delivery, fault="peer")


class CallTimeout(CallError):
    error_type = "timeout"
    outcome = "timeout"

    def __init__(
        self,
        message: str,
        *,
        scope: DeadlineScope,
        delivery: Delivery = "sent_no_reply",
        fault: Fault = "peer",
    ) -> None:
        self.scope: DeadlineScope = scope
        super().__init__(message, delivery=delivery, fault=fault)


class CallCancelled(CallError):
    """Somebody who operates the host ended it; `str()` says who and why."""

    error_type = "cancelled"
    outcome = "cancelled"


class InputRefused(CallError):
    """The server asked for input (`input_required`) that no handler here can give."""

    error_type = "input_refused"
    outcome = "rpc_error"
