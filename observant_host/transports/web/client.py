"""Requests to one server: its credentials, its redirects, its proxy, and never another origin.

Source: MCP 2026-07-28 basic/transports/streamable-http; RFC 9110 15.4 Redirection; RFC 9112 9.3.1
Retrying Requests.
"""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING, Final

import aiohttp
from yarl import URL

from observant_host.errors import HostError, HttpFailure, TransportError
from observant_host.transports.web.connections import PASSAGE, Connector
from observant_host.transports.web.direct import MAX_BODY, post, response
from observant_host.transports.web.failures import Failures, shown
from observant_host.transports.web.lines import READ_BYTES, watch
from observant_host.transports.web.openings import Openings, merged, written
from observant_host.transports.web.proxies import proxy_for
from observant_host.transports.web.reply import Reply
from observant_host.transports.web.tls import trust

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.transports.base import Credentials
    from observant_host.transports.web.connections import Passage
    from observant_host.transports.web.exchanges import Exchange
    from observant_host.transports.web.openings import Opening
    from observant_host.transports.web.reply import Response

CALL_CONNECTIONS: Final = 256
"""Requests at once to one origin: far above what `max_in_flight` usually lets through, and below
what a process has descriptors for."""

STREAM_CONNECTIONS: Final = 256
"""In a pool of their own, so that long streams and what must not wait (a cancellation, an answer
to the server) never stand in line with calls."""

MAX_HOPS: Final = 5
MAX_PLAIN_BODY: Final = 1 << 20
"""Larger bodies are written in pieces, so that they do not hold the loop up."""


class WebClient:
    """For one server and one transport life; made and closed on the event loop.

    `authorization` is a digest of the credentials last sent, "" before any: what was answered to
    others is not for whoever asks with these.
    """

    def __init__(
        self,
        name: str,
        url: URL,
        *,
        credentials: Credentials,
        masker: Masker,
        clock: Clock,
        proxy: URL | None,
        calls: Connector,
        streams: Connector,
    ) -> None:
        self.url = url.with_user(None)
        self.openings = Openings(url)
        self.failures = Failures(masker=masker, clock=clock)
        self._name = name
        self._credentials = credentials
        self.authorization = ""
        self._masker = masker
        self._clock = clock
        self._proxy = proxy
        self._calls = calls
        self._pools = [(each, _session(each)) for each in (calls, streams)]

    async def ask(
        self,
        verb: str,
        *,
        headers: Mapping[str, str],
        passage: Passage,
        frame: bytes | None = None,
        url: URL | None = None,
        apart: bool = False,
    ) -> Reply:
        """One request, its same-origin redirects and at most one renewal of credentials.

        The reply has any status but a redirect's, and is the caller's to read or close. `apart`
        uses the pool for streams. Raises HttpFailure (or Expired, where nothing was sent).
        """
        PASSAGE.set(passage)
        target, renewed = url or self.url, False
        for _ in range(MAX_HOPS + 1):
            if passage.line is not None and passage.opening is not None:
                target, given = passage.opening.address.url, passage.opening.given
            else:
                given = await self._authorisation(target)
            reply = await self._asked(verb, target, headers, frame, passage, apart=apart)
            if reply.status == 401 and not renewed and await self._renewed(given):
                renewed = True
            elif reply.status in (301, 302, 303, 307, 308):
                target = self._followed(reply, verb)
            else:
                return reply
            await reply.finish()
        raise self.failures.make("redirect", target, f"redirects in a circle of {MAX_HOPS} hops")

    def begin(self, exchange: Exchange, opening: Opening) -> bool:
        """Write its POST to an idle connection, and tell it what comes. False where that cannot be
        done without waiting for something; then nothing was done."""
        now, frame = self._clock.monotonic(), exchange.out.frame
        if (
            self._credentials.present(now) != opening.given
            or exchange.expires <= now
            or self._proxy is not None
            or not self.openings.apart
            or len(frame) > MAX_BODY
            or (line := self._calls.take(now)) is None
        ):
            return False
        exchange.started = exchange.connected = exchange.reused = True
        exchange.line, exchange.opening = line, opening
        line.ask(written(opening, frame), exchange)
        return True

    def reply(self, response: Response, passage: Passage, url: URL) -> Reply:
        return Reply(response, url=url, passage=passage, failures=self.failures, clock=self._clock)

    async def close(self) -> None:
        """Close every connection; open streams end."""
        for _, session in self._pools:
            await session.close()

    async def _asked(
        self,
        verb: str,
        url: URL,
        headers: Mapping[str, str],
        frame: bytes | None,
        passage: Passage,
        *,
        apart: bool,
    ) -> Reply:
        """Once more, by a new connection, where a reused one broke and twice is harmless."""
        try:
            return await self._once(verb, url, headers, frame, passage, apart=apart)
        except HttpFailure as failure:
            harmless = passage.harmless or verb != "POST"
            if failure.kind != "reset" or not (passage.reused and harmless):
                raise
        passage.fresh = True
        return await self._once(verb, url, headers, frame, passage, apart=apart)

    async def _once(
        self,
        verb: str,
        url: URL,
        headers: Mapping[str, str],
        frame: bytes | None,
        passage: Passage,
        *,
        apart: bool,
    ) -> Reply:
        connector, session = self._pools[apart]
        line, passage.line = passage.line, None
        passage.connected = line is not None
        try:
            if line is not None and passage.opening is not None:
                answer: Response = await response(line, passage.opening.address)
            elif verb == "POST" and frame and len(frame) <= MAX_BODY and self._direct:
                answer = await post(connector, self.openings.made(url, headers), frame)
            else:
                told = await session.request(
                    verb,
                    url,
                    data=_body(frame),
                    headers=merged(self.openings.standing, headers),
                    allow_redirects=False,
                    proxy=self._proxy,
                )
                watch(told.connection, told.content)
                answer = told
        except (aiohttp.ClientError, OSError) as error:
            if passage.connected and passage.reused:
                self._distrust()
            raise self.failures.of_error(error, url, passage) from error
        return self.reply(answer, passage, url)

    @property
    def _direct(self) -> bool:
        """Whether a small POST needs no session."""
        return self._proxy is None and self.openings.apart

    def _distrust(self) -> None:
        for connector, _ in self._pools:
            connector.distrust()

    async def _authorisation(self, url: URL) -> Mapping[str, str]:
        try:
            given = await self._credentials.headers()
        except HostError as error:
            what = f"was not asked: {error}"
            raise self.failures.make("credentials", url, what, sent=False) from error
        if given != self.openings.given:
            self.openings.stand(given)
            told = repr(sorted(given.items())).encode()
            self.authorization = hashlib.sha256(told).hexdigest()
        return given

    async def _renewed(self, given: Mapping[str, str]) -> bool:
        try:
            return await self._credentials.rejected(given)
        except HostError:
            return False

    def _followed(self, reply: Reply, verb: str) -> URL:
        """Where to go on. Raises HttpFailure where that is elsewhere, or no longer a POST."""
        try:
            target = reply.url.join(URL(reply.headers.get("Location", "")))
            origin = target.origin()
        except ValueError:
            raise self._redirect(reply, "to nowhere that can be read") from None
        if origin != self.url.origin():
            raise self._redirect(
                reply,
                f"to another origin, {origin}, instead of {self.url.origin()}; that is refused. "
                f"If it is right, set servers.{self._name}.url to {shown(target)}",
            )
        if verb != "GET" and reply.status not in (307, 308):
            raise self._redirect(
                reply,
                f"to {shown(target)}, which would turn the {verb} into a GET: "
                f"set servers.{self._name}.url to the address that takes it",
            )
        target = target.with_user(None).with_fragment(None)
        if reply.status == 308 and reply.url == self.url:
            self.url = target
            self.openings.forget()
        return target

    def _redirect(self, reply: Reply, where: str) -> HttpFailure:
        reply.close()
        return reply.failure("redirect", f"redirects ({reply.status}) {where}")


async def make_client(
    name: str,
    address: str,
    *,
    ca_bundle: str | None,
    credentials: Credentials,
    masker: Masker,
    telemetry: Telemetry,
    clock: Clock,
    connect_timeout_s: float,
    environment: Mapping[str, str],
    call_connections: int = CALL_CONNECTIONS,
) -> WebClient:
    """Raises TransportError for a URL, a CA bundle or a proxy that cannot be used."""
    url = usable_url(name, address)
    tls = await trust(name, ca_bundle)
    calls, streams = (
        Connector(
            limit=limit,
            connect_timeout_s=connect_timeout_s,
            tls=tls,
            peer=name,
            telemetry=telemetry,
            clock=clock,
            probed=probed,
        )
        for limit, probed in ((call_connections, False), (STREAM_CONNECTIONS, True))
    )
    return WebClient(
        name,
        url,
        credentials=credentials,
        masker=masker,
        clock=clock,
        proxy=proxy_for(url, environment),
        calls=calls,
        streams=streams,
    )


def usable_url(name: str, address: str) -> URL:
    """Raises TransportError naming the key, without showing what may be secret."""
    try:
        url = URL(address).with_fragment(None)
        if url.scheme in ("http", "https") and url.host:
            return url
    except ValueError:
        pass
    raise TransportError(f"servers.{name}.url must be http://… or https://… with a host")


def _session(connector: Connector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None),  # every wait is bounded by its own deadline
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        read_bufsize=READ_BYTES,
    )


def _body(frame: bytes | None) -> aiohttp.Payload | bytes | None:
    if frame is None or len(frame) <= MAX_PLAIN_BODY:
        return frame
    return aiohttp.BytesIOPayload(io.BytesIO(frame))
