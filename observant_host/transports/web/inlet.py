"""The way in: from bytes that may be a message to the receiver, until the life has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from observant_host.errors import HttpFailure
    from observant_host.telemetry.masking import Masker
    from observant_host.transports.base import Answering, End, NoiseKind, Receiver
    from observant_host.wire.jsonrpc import Frame

NOISE_EXCERPT_BYTES: Final = 512
MESSAGE_STARTS: Final = b"{["
_BLANK: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"


def bare(data: Frame) -> Frame:
    """Without a byte order mark and the blanks around."""
    if data[:1] in (b"{", b"[") and data[-1:] in (b"}", b"]"):
        return data
    return data.removeprefix(_BOM).strip(_BLANK)


def may_be_message(data: Frame) -> bool:
    """What begins like a JSON object or array is the receiver's to judge."""
    return bool(data) and data[0] in MESSAGE_STARTS


class Inlet:
    """In front of one receiver; silent before it is opened and after it has ended."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._receiver: Receiver | None = None

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    @property
    def is_open(self) -> bool:
        return self._receiver is not None

    def frame(self, data: Frame, answering: Answering | None = None) -> bool:
        """True if it answered the request that `answering` names."""
        message = bare(data)
        if may_be_message(message):
            return self.message(message, answering)
        self.noise("not_json", message)
        return self._receiver is None

    def message(self, data: Frame, answering: Answering | None = None) -> bool:
        """As `frame`, of what is bare and may be a message."""
        return self._receiver is None or self._receiver.frame_received(data, answering)

    def oversized(self, excerpt: bytes) -> None:
        self.noise("oversized", excerpt)

    def noise(self, kind: NoiseKind, excerpt: Frame) -> None:
        """Masked before it is cut, so that no secret is cut in two."""
        if self._receiver is not None:
            masked = self._masker.bytes(bytes(excerpt[: 4 * NOISE_EXCERPT_BYTES]))
            self._receiver.noise_received(kind, masked[:NOISE_EXCERPT_BYTES])

    def lost(self, request_id: int | None, failure: HttpFailure) -> None:
        if self._receiver is not None and request_id is not None:
            self._receiver.request_lost(request_id, failure)

    def heard(self, request_id: int) -> None:
        if self._receiver is not None:
            self._receiver.stream_heard(request_id)

    def reopened(self) -> None:
        if self._receiver is not None:
            self._receiver.stream_reopened()

    def shut(self) -> None:
        """Nothing is told any more, not even an end."""
        self._receiver = None

    def end(self, end: End) -> None:
        """The first end is told; nothing is told after it."""
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.ended(end)
