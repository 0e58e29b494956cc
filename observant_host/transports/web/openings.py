"""How POSTs to one server begin: what is the same for many is made once.

Source: RFC 9112 3 Request Line, 5 Field Syntax.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import aiohttp

from observant_host.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiohttp.client_reqrep import ConnectionKey
    from yarl import URL

MAX_OPENINGS: Final = 256
"""Of POSTs that are remembered: one for each tool that is called. Beyond it all are made anew."""
MAX_OPENING_BYTES: Final = 4096

USER_AGENT: Final = f"observant-host/{VERSION}"

_CONTROL: Final = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Besides line breaks, which are counted; a tab is allowed (RFC 9110 5.5 Field Values)."""


class Address(aiohttp.ClientRequest):
    """Where to connect, as the library's connector wants it: a request that is never sent, kept for
    all that go to the same place."""

    @cached_property
    def connection_key(self) -> ConnectionKey:
        """Asked for by each call, and always the same."""
        return super().connection_key

    def opening(self, standing: Mapping[str, str]) -> str:
        """The request line, and the fields that every POST to here has. Raises ValueError."""
        fields = dict(standing)
        if not any(name.lower() == "host" for name in fields):
            fields = {"Host": self.headers["Host"], **fields}
        return f"POST {self.url.raw_path_qs} HTTP/1.1\r\n{_lines(fields)}"


class Opening(NamedTuple):
    """How a POST begins, up to its length: where it goes, and by which credentials."""

    address: Address
    given: Mapping[str, str]
    head: bytes


class Openings:
    """By the credentials that the server is given at present, and what its URL says."""

    def __init__(self, url: URL) -> None:
        self._from_url = {"User-Agent": USER_AGENT, **_basic(url)}
        self._kept: dict[object, Opening] = {}
        self.find: Callable[[object], Opening | None] = self._kept.get
        """What was kept under a key."""
        self.stand({})

    def stand(self, given: Mapping[str, str]) -> None:
        """These go with every request from now on, but for what one says itself.

        `apart`: they are none of what one may say itself, so need not be compared with it.
        """
        self.given: Mapping[str, str] = dict(given)
        self.standing = merged(self._from_url, given)
        self.apart = not any(_is_said(name.lower()) for name in self.standing)
        self.forget()

    def forget(self) -> None:
        """The next request goes elsewhere, or with something else."""
        self._opened: tuple[Address, str] | None = None
        self._kept.clear()

    def made(self, url: URL, headers: Mapping[str, str]) -> Opening:
        """Of a POST to this URL, with its own headers. Raises ValueError where one would be two."""
        if self._opened is None or self._opened[0].url is not url:
            address = Address("POST", url, loop=asyncio.get_running_loop())
            self._opened = address, address.opening(self.standing)
        address, begins = self._opened
        head = f"{begins}{_lines(headers)}Content-Length: ".encode()
        return Opening(address, self.given, head)

    def keep(self, key: object, url: URL, headers: Mapping[str, str]) -> Opening | None:
        """As `made`, for all that have this key; None where it cannot be one."""
        try:
            opening = self.made(url, headers)
        except ValueError:
            return None
        if len(self._kept) >= MAX_OPENINGS:
            self._kept.clear()
        if len(opening.head) <= MAX_OPENING_BYTES:
            self._kept[key] = opening
        return opening


def written(opening: Opening, frame: bytes) -> bytes:
    return b"%b%d\r\n\r\n%b" % (opening.head, len(frame), frame)


def _lines(fields: Mapping[str, str]) -> str:
    """Raises ValueError where a value would begin another field, or is none."""
    lines = [f"{name}: {value}\r\n" for name, value in fields.items()]
    text = "".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines) or _CONTROL.search(text):
        raise ValueError("a header field holds a line break or another control character")
    return text


def _basic(url: URL) -> dict[str, str]:
    """The user and password that a URL may carry, as the header that they become."""
    if url.user is None and url.password is None:
        return {}
    pair = f"{url.user or ''}:{url.password or ''}".encode()
    return {"Authorization": f"Basic {b64encode(pair).decode()}"}


_SAID: Final = frozenset(
    {"accept", "accept-encoding", "content-length", "content-type", "last-event-id"}
    | {"transfer-encoding"}
)


def _is_said(name: str) -> bool:
    """Whether one request may say this itself. Credentials are not allowed to (auth.header_text),
    so nearly always none of what stands is."""
    return name in _SAID or name.startswith("mcp-")


def merged(*layers: Mapping[str, str]) -> dict[str, str]:
    """Later ones win, in whatever case they write a name."""
    named = {name.lower(): (name, value) for layer in layers for name, value in layer.items()}
    return dict(named.values())
