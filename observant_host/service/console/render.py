"""Templates and the two files beside them, read once; every value passes the masker and is bounded.

Read in a thread before the service listens, so that no page touches the disk.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
from jinja2 import DictLoader, Environment, StrictUndefined, pass_context
from markupsafe import Markup, escape

from observant_host.decisions.words import ago, counted, milliseconds
from observant_host.service.console.text import MAX_BLOCK_CHARS, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jinja2.runtime import Context

HERE: Final = Path(__file__).parent
CONTENT_TYPES: Final[Mapping[str, str]] = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


class Asset(msgspec.Struct, frozen=True):
    """A file that is served as it is; `version` changes with its bytes."""

    body: bytes
    content_type: str
    version: str


class Pages:
    """All pages. `masked` takes the configured secrets out of a text."""

    def __init__(self, masked: Callable[[str], str]) -> None:
        self._masked = masked
        self.assets = {name: _asset(name) for name in CONTENT_TYPES}
        self._env = Environment(
            loader=DictLoader(_templates()),
            autoescape=True,
            finalize=self._final,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._env.filters.update(
            when=_when,
            ms=milliseconds,
            block=self._block,
            as_typed=lambda text: Markup(escape(text)),  # noqa: S704 - escaped right here
        )
        self._env.globals.update(path=path, asset=self._asset_path, counted=counted)

    def render(self, name: str, /, **facts: Any) -> str:
        """The page of that template. Every value is escaped, masked and bounded."""
        return self._env.get_template(name).render(**facts)

    def _final(self, value: Any) -> Any:
        """What an expression of a template becomes; markup that was made here stays as it is."""
        if value is None:
            return ""
        if isinstance(value, str) and not isinstance(value, Markup):
            return visible(self._masked(str(value)))
        return value

    def _block(self, text: str) -> Markup:
        """Text that may be long, for a scrolling block."""
        shown = visible(self._masked(text), at_most=MAX_BLOCK_CHARS)
        return Markup(escape(shown))  # noqa: S704 - escaped right here

    def _asset_path(self, name: str) -> Markup:
        return path("console", "static", name, v=self.assets[name].version)


def path(*parts: str, **query: str) -> Markup:
    """A path of ours: parts and query are quoted, so that no name leads elsewhere."""
    address = "/" + "/".join(quote(part, safe="") for part in parts)
    if query:
        pairs = (f"{key}={quote(value, safe='')}" for key, value in query.items())
        address += "?" + "&".join(pairs)
    return Markup(escape(address))  # noqa: S704 - quoted and escaped right here


@pass_context
def _when(context: Context, moment: object) -> Markup | str:
    """An ISO 8601 moment, and in words how long ago that is."""
    text = str(moment)
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return text
    now_ns = int(context["now_ns"])
    shown = text.split(".")[0].removesuffix("Z").removesuffix("+00:00") + "Z"
    passed = now_ns / 1e9 - parsed.timestamp()
    words = f"{ago(text, now_ns)} ago" if passed >= 0 else f"in {_ahead(text, now_ns)}"
    return Markup('<time datetime="{}">{}</time> <span class="ago">({})</span>').format(
        text, shown, words
    )


def _ahead(text: str, now_ns: int) -> str:
    """How long until then: the same words, the other way round."""
    then = datetime.fromisoformat(text).timestamp()
    mirrored = datetime.fromtimestamp(2 * now_ns / 1e9 - then).astimezone()
    return ago(mirrored.isoformat(), now_ns)


def _templates() -> dict[str, str]:
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted((HERE / "templates").glob("*.html"))
    }


def _asset(name: str) -> Asset:
    body = (HERE / "static" / name).read_bytes()
    return Asset(body, CONTENT_TYPES[name], hashlib.sha256(body).hexdigest()[:16])
