"""Who called what: one line for each call that somebody made through this host.

Lines are written by a thread, into files of their own with the budget of the decisions. What the
disk refuses is kept and tried again; what is lost is told in the log, for an audit with holes that
nobody knows of is none.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.telemetry.background import Background
from observant_host.telemetry.finished import Finished
from observant_host.telemetry.recorder import Stream
from observant_host.telemetry.stream_files import StreamFiles
from observant_host.telemetry.vocabulary import NorthboundRequest, RoutedCall

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from observant_host.config import TelemetrySettings
    from observant_host.telemetry.masking import Masker
    from observant_host.telemetry.propagation import TraceContext
    from observant_host.telemetry.vocabulary import Fact

FOLDER: Final = "audit"
CALLING: Final = frozenset({"tools/call", "prompts/get", "resources/read", "completion/complete"})
"""Requests of agents that are calls; asking for a list is none."""
ARGUMENT_BYTES: Final = 4096
"""Of a call's arguments; of larger ones only their size."""
OPEN_CALLS: Final = 8192
"""Calls on their way whose arguments are held, or whose line is already written: above what any
host has in flight."""
LINES_WAITING: Final = 50_000
"""For the thread; a minute of the fastest host on a disk that stands still."""
SECRET_WORDS: Final = (
    *("password", "passwd", "passphrase", "secret", "token", "apikey", "api_key", "api-key"),
    *("authorization", "credential", "private_key", "privatekey", "cookie"),
)
MASK: Final = "***"


class Audit:
    """A sink for calls. `hold` gives it a call's arguments, which no fact may have."""

    name: Final = FOLDER

    def __init__(
        self,
        state_dir: Path,
        *,
        settings: TelemetrySettings,
        masker: Masker,
        lost: Callable[[int], None] = lambda _: None,
        monotonic: Callable[[], float] = time.monotonic,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._with_arguments = settings.audit == "arguments"
        self._masker = masker
        self._lost = lost
        self._told_lost = 0
        self._rotating = False
        files = StreamFiles(
            state_dir / FOLDER,
            max_bytes=settings.decisions_max_bytes,
            max_days=settings.decisions_max_days,
            wall_ns=wall_ns,
        )
        self._stream = Stream(FOLDER, files, monotonic)
        self._thread: Background[_Line] = Background("observant-host audit", self._work)
        self._held: OrderedDict[int, object] = OrderedDict()
        self._written: OrderedDict[int, None] = OrderedDict()

    def wants(self, kind: type[Fact]) -> bool:
        return kind in (RoutedCall, NorthboundRequest)

    def hold(self, call: TraceContext, params: object) -> None:
        """What a call that has just begun was given. Taken as it is, written when it ends."""
        if self._with_arguments:
            _bounded(self._held)[call.span_id] = params

    def emit(self, done: Finished) -> None:
        match done.fact:
            case RoutedCall() as call if call.principal is not None:
                if done.parent is not None:
                    _bounded(self._written)[done.parent.span_id] = None
                params = self._held.pop(done.context.span_id, None)
                self._put(_Line(done, call.principal, call.name, call.peer, params))
            case RoutedCall():
                self._held.pop(done.context.span_id, None)
            case NorthboundRequest() as asked if asked.method in CALLING:
                # a call that reached a server has its line already
                if self._written.pop(done.context.span_id, _MISSING) is _MISSING:
                    self._put(_Line(done, asked.principal or "", asked.target or "", "", None))
            case _:
                return

    def rotate(self) -> None:
        """With the next flush, finish the file that is being written: others may change it."""
        self._rotating = True

    async def flush(self) -> None:
        await self._thread.flush()

    async def close(self) -> None:
        await self._thread.close()
        self._stream.close()
        self._tell_lost()

    def _put(self, line: _Line) -> None:
        if self._thread.waiting() >= LINES_WAITING:
            self._stream.lost += 1
        else:
            self._thread.put(line)

    def _work(self, lines: list[_Line]) -> float | None:
        for line in lines:
            self._keep(line)
        wait = self._stream.write()
        self._tell_lost()
        if self._rotating:
            self._rotating = False
            self._stream.files.close()
        return wait

    def _keep(self, line: _Line) -> None:
        try:
            self._stream.keep((msgspec.json.encode(line.document(self._masker)), b"\n"))
        except Exception:  # noqa: BLE001 - one call that cannot be told must not end the audit
            self._stream.lost += 1

    def _tell_lost(self) -> None:
        if self._stream.lost > self._told_lost:
            self._lost(self._stream.lost - self._told_lost)
            self._told_lost = self._stream.lost


class _Line(msgspec.Struct, frozen=True):
    """One call, as it goes to the thread."""

    done: Finished
    principal: str
    called: str
    server: str
    params: object

    def document(self, masker: Masker) -> dict[str, Any]:
        done = self.done
        moment = datetime.fromtimestamp(done.start_ns / 1e9, UTC)
        found = {
            "time": moment.isoformat(timespec="milliseconds"),
            "principal": masker.text(self.principal),
            "method": getattr(done.fact, "method", ""),
            "name": masker.text(self.called),
            "server": self.server,
            "outcome": done.outcome,
            "duration_ms": round(done.duration_ns / 1e6, 3),
            "trace_id": done.context.trace_hex,
        }
        if self.params is not None:
            found["arguments"] = shown_arguments(self.params, masker)
        return found


def shown_arguments(params: object, masker: Masker) -> object:
    """What a call was given, without known secrets and what is named like one, within bounds."""
    encoded = msgspec.json.encode(params)
    if len(encoded) > ARGUMENT_BYTES:
        return {"omitted_bytes": len(encoded)}
    masked = masker.bytes(msgspec.json.encode(_without_secrets(msgspec.json.decode(encoded))))
    try:
        return msgspec.json.decode(masked)
    except msgspec.DecodeError:
        return {"omitted_bytes": len(encoded)}


def _without_secrets(value: Any) -> Any:
    match value:
        case dict():
            return {
                key: MASK if _is_secret(key) else _without_secrets(one)
                for key, one in value.items()
            }
        case list():
            return [_without_secrets(one) for one in value]
        case _:
            return value


def _is_secret(key: str) -> bool:
    lower = key.lower()
    return any(word in lower for word in SECRET_WORDS)


def _bounded(calls: OrderedDict[int, Any]) -> OrderedDict[int, Any]:
    while len(calls) >= OPEN_CALLS:
        calls.popitem(last=False)
    return calls


_MISSING: Final = object()
