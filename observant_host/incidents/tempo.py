"""The record as a Tempo has it: decisions by search and trace id, calls by search alone.

Source: Grafana Tempo HTTP API (`GET /api/search` with TraceQL, `GET /api/traces/<id>`). Everything
here blocks: call it in a thread. What a Tempo was never sent (sampled calls) it cannot give.
"""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from observant_host.errors import HostError
from observant_host.incidents.index import Call
from observant_host.incidents.otlp import spans_or_none

if TYPE_CHECKING:
    from collections.abc import Iterator

    from observant_host.incidents.otlp import RecordedSpan

SECOND: Final = 1_000_000_000
TIMEOUT_S: Final = 30.0
"""For one answer: a search over a day of a busy fleet."""
ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Of one answer: the largest trace that a Tempo keeps by default, with room."""
LIMIT: Final = 500
"""Traces that one search may find; where it finds so many, its time is halved and asked again."""
SPANS: Final = 100
"""Spans of one trace that a search lists."""
SLICE_S: Final = 86_400
"""A Tempo searches a week at most by default; a day is quick."""
SHORTEST_S: Final = 60
MAX_TRACES: Final = 5_000
"""Traces that are read whole: more than a person can look at, some minutes of asking."""

DECISIONS: Final = (
    '{ name =~ "observant_host[.](era|peer|host|config|loop|telemetry)[.].*"'
    ' || name = "observant_host.operator" }'
)
CALLS: Final = (
    '{{ name = "observant_host.call" && span.observant_host.peer.name = "{peer}" }}'
    " | select(span.observant_host.outcome, span.observant_host.peer.era,"
    " resource.service.instance.id)"
)


class _Set(msgspec.Struct, rename="camel"):
    spans: list[dict[str, Any]] = []


class _Found(msgspec.Struct):
    trace_id: str = msgspec.field(name="traceID", default="")
    sets: list[_Set] = msgspec.field(name="spanSets", default=[])
    one: _Set | None = msgspec.field(name="spanSet", default=None)


class _Search(msgspec.Struct):
    traces: list[_Found] | None = None


class Tempo:
    """One Tempo by its URL. `cut` is True once something was left out for its bounds."""

    def __init__(self, url: str) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise HostError(
                f"--tempo {url}: give the URL of a Tempo, such as http://127.0.0.1:3200"
            )
        self._url = url.rstrip("/")
        self.cut = False

    def decisions(self, *, since_ns: int, until_ns: int) -> Iterator[RecordedSpan]:
        """Every span of each trace that holds a decision of that time. Raises HostError."""
        ids = dict.fromkeys(
            found.trace_id
            for found in self._search(DECISIONS, since_ns // SECOND, until_ns // SECOND + 1)
        )
        self.cut = self.cut or len(ids) > MAX_TRACES
        for trace_id in list(ids)[:MAX_TRACES]:
            body = self._get(f"/api/traces/{quote(trace_id, safe='')}")
            yield from spans_or_none(body or b"{}") or ()

    def calls(self, peer: str, since_ns: int, until_ns: int) -> list[Call]:
        """Calls of this server that ended in that time. Raises HostError."""
        query = CALLS.format(peer=re.sub(r'["\\]', "", peer))
        found = self._search(query, since_ns // SECOND, until_ns // SECOND + 1)
        calls = {
            str(span.get("spanID", "")): _call(one.trace_id, span)
            for one in found
            for part in (*one.sets, *([one.one] if one.one is not None else []))
            for span in part.spans
        }
        return [call for call in calls.values() if since_ns <= call.at_ns <= until_ns]

    def _search(self, query: str, since_s: int, until_s: int) -> Iterator[_Found]:
        start = since_s
        while start < until_s:
            end = min(start + SLICE_S, until_s)
            yield from self._slice(query, start, end)
            start = end

    def _slice(self, query: str, start: int, end: int) -> list[_Found]:
        asked = urlencode({"q": query, "start": start, "end": end, "limit": LIMIT, "spss": SPANS})
        body = self._get(f"/api/search?{asked}") or b"{}"
        try:
            found = msgspec.json.decode(body, type=_Search).traces or []
        except msgspec.DecodeError as error:
            raise HostError(f"{self._url} gave no answer of a Tempo: {error}") from None
        if len(found) < LIMIT:
            return found
        if end - start <= SHORTEST_S:
            self.cut = True
            return found
        middle = (start + end) // 2
        return [*self._slice(query, start, middle), *self._slice(query, middle, end)]

    def _get(self, path: str) -> bytes | None:
        """The answer's body; None where there is nothing of that name."""
        request = urllib.request.Request(  # noqa: S310 - only http and https, checked above
            self._url + path, headers={"Accept": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310 - as above
                body: bytes = answer.read(ANSWER_BYTES + 1)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:
                    return None
                said = error.read(200).decode(errors="replace").strip()
            raise HostError(f"{self._url} answered HTTP {error.code}: {said}") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", None) or error
            why = getattr(why, "strerror", None) or why
            raise HostError(f"--tempo {self._url} cannot be asked: {why}") from None
        if len(body) > ANSWER_BYTES:
            self.cut = True
            return None
        return body


def _call(trace_id: str, span: dict[str, Any]) -> Call:
    attributes = {
        str(pair.get("key", "")).removeprefix("span.").removeprefix("resource."): str(
            next(iter((pair.get("value") or {}).values()), "")
        )
        for pair in span.get("attributes") or ()
    }
    outcome = attributes.get("observant_host.outcome", "unknown")
    at_ns = int(span.get("startTimeUnixNano") or 0) + int(span.get("durationNanos") or 0)
    return Call(
        host=attributes.get("service.instance.id", ""),
        era=attributes.get("observant_host.peer.era", "unknown"),
        outcome=outcome,
        at_ns=at_ns,
        trace_id="" if outcome == "ok" else trace_id.rjust(32, "0"),
    )
