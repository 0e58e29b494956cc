"""The console of a host with real servers on a real socket, and a reader of its pages."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import aiohttp

from observant_host.config import HostConfig, ServiceSettings
from observant_host.service.app import Service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from observant_host import Host

VOID = frozenset({"meta", "link", "input", "img", "br", "hr"})


def configured(**changes: Any) -> HostConfig:
    """A configuration that listens on any free port of this machine."""
    return HostConfig(service=ServiceSettings(listen="127.0.0.1:0"), **changes)


@asynccontextmanager
async def console_of(host: Host) -> AsyncIterator[str]:
    """Its address, while the host runs; its configuration is `configured`."""
    service = Service(host)
    await service.listen()
    try:
        yield service.addresses["admin"]
    finally:
        await service.close()


class Page(HTMLParser):
    """What a page consists of. `problems` are what is wrong with its structure."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = text
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.problems: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.problems += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.elements.append((tag, found))
        if tag not in VOID:
            self._open.append(tag)
        self.problems += [f"<{tag} {name}>" for name in found if name.startswith("on")]
        if "style" in found or tag in ("style", "iframe", "object", "embed", "base"):
            self.problems.append(f"<{tag}> with style or frames")

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script" and data.strip():
            self.problems.append("a script in the page")
        self.words.append(data)

    @property
    def text(self) -> str:
        """What is read, with single spaces."""
        return re.sub(r"\s+", " ", "".join(self.words))

    def all(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            have for name, have in self.elements if name == tag and wanted.items() <= have.items()
        ]

    @property
    def word(self) -> str:
        """What its forms carry."""
        return self.all("input", name="word")[0]["value"]


class Browser:
    """A client that keeps cookies, and says what a browser says."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self.session = session
        self.base = base

    async def get(self, path: str, **headers: str) -> tuple[int, Page]:
        sent = {"Sec-Fetch-Site": "none", **{k.replace("_", "-"): v for k, v in headers.items()}}
        async with self.session.get(self.base + path, headers=sent) as answer:
            return answer.status, Page(await answer.text())

    async def post(
        self, path: str, fields: Mapping[str, str], *, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Page, str]:
        """(status, page, where it leads)"""
        said = (
            {"Sec-Fetch-Site": "same-origin", "Origin": self.base} if headers is None else headers
        )
        async with self.session.post(
            self.base + path, data=fields, headers=said, allow_redirects=False
        ) as answer:
            return answer.status, Page(await answer.text()), answer.headers.get("Location", "")


@asynccontextmanager
async def browser(base: str) -> AsyncIterator[Browser]:
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        yield Browser(session, base)


async def event_about(base: str, kind: str, about: str, *, trigger: Any) -> str:
    """Open the stream, run `trigger()`, and return the first event of that kind with `about` in it:
    the host has others to tell of meanwhile."""
    async with aiohttp.ClientSession() as session, session.get(f"{base}/console/events") as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        await answer.content.readline()
        await trigger()
        async with asyncio.timeout(30):
            async for line in answer.content:
                if line.startswith(f"event: {kind}".encode()):
                    said = (await answer.content.readline()).decode()
                    if about in said:
                        return said
    raise AssertionError(f"no {kind} event about {about}")
