"""How a request can end badly, in words for a person, with what is certain about its delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from observant_host.errors import QueueFull, RpcError, Unavailable
from observant_host.wire.values import decode_value

if TYPE_CHECKING:
    from observant_host.errors import Delivery, Fault, TransportError
    from observant_host.telemetry.masking import Masker
    from observant_host.transports.base import End
    from observant_host.wire.jsonrpc import Error

TAIL_CHARS: Final = 500
"""Of a dead server's stderr shown in one error: its last words, not its log."""


def not_open(server: str, end: End | None) -> Unavailable:
    if end is not None:
        return Unavailable(f"{server} is not running: {last_words(end)}", delivery="not_sent")
    return Unavailable(f"{server} has no era yet, so nothing can be asked", delivery="not_sent")


def not_sent(server: str, error: TransportError) -> Unavailable:
    fault: Fault = "host" if isinstance(error, QueueFull) else "peer"
    return Unavailable(f"{server} could not be sent the call: {error}", fault=fault)


def lost(server: str, error: Exception, delivery: Delivery) -> Unavailable:
    return Unavailable(f"{server} can no longer answer the call: {error}", delivery=delivery)


def life_ended(server: str, end: End, delivery: Delivery) -> Unavailable:
    how_far = "was open" if delivery != "not_sent" else "still waited to be sent"
    return Unavailable(
        f"{server} ended while the call {how_far}: {last_words(end)}",
        delivery=delivery,
        fault="host" if end.kind == "closed" else "peer",
    )


def last_words(end: End) -> str:
    """How it ended, its exit status, and the end of what it wrote to stderr."""
    said = end.detail
    if end.exit_code is not None and str(abs(end.exit_code)) not in said:
        how = "signal" if end.exit_code < 0 else "exit status"
        said += f" ({how} {abs(end.exit_code)})"
    tail = end.stderr_tail.strip()[-TAIL_CHARS:]
    return f"{said}; stderr ends with: {tail}" if tail and tail not in said else said


def rpc_error(error: Error, masker: Masker) -> RpcError:
    """The server's error, with the configured secrets it may have echoed masked."""
    data: Any = None
    if error.data is not None:
        try:
            data = decode_value(masker.bytes(bytes(error.data)))
        except (ValueError, RecursionError):
            data = None
    return RpcError(error.code, masker.text(error.message), data)
