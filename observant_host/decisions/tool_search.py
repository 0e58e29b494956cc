"""Which tools fit a question in words, the best first.

Ranked by BM25, of a library, over what a model is told of a tool. Names count most: they are short,
and a model that has seen one asks for it again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from observant_host.decisions.catalogue import ToolEntry

MAX_QUERY: Final = 1000
"""Characters of a question that are read: more is a document, not a question."""
MAX_TEXT: Final = 4000
"""Characters of one description that are indexed; what a tool is for stands at its beginning."""
NAME_WEIGHT: Final = 3
TITLE_WEIGHT: Final = 2

_TERMS: Final = re.compile(r"[^\W_]+")
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_COMMON: Final = frozenset(
    _TERMS.findall("a an and are as at be by for from in is it of on or that the to with")
)


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one tool in words. `name` is the one it is called by."""

    name: str
    title: str = ""
    description: str = ""
    parameters: tuple[str, ...] = ()


def words_of(entry: ToolEntry, *, name: str) -> Words:
    """Of a tool of the catalogue."""
    tool = entry.tool
    return words_in(tool.raw, name=name, title=tool.title, description=tool.description)


def words_in(
    raw: Raw | bytes, *, name: str, title: str | None = None, description: str | None = None
) -> Words:
    """Of a tool as its server listed it; parameters only where its schema can be read."""
    return Words(
        name=name,
        title=title or "",
        description=(description or "")[:MAX_TEXT],
        parameters=_parameters(raw),
    )


def terms_of(text: str) -> list[str]:
    """`getUserFiles`, `get_user_files` and "get users' file" have the same terms."""
    parts = (part for word in _TERMS.findall(text) for part in _HUMPS.split(word))
    terms = [part.lower() for part in parts]
    return [_singular(term) for term in terms if term not in _COMMON]


class Index:
    """Of tools in a given order, which decides between two that fit alike. Making one costs some
    milliseconds for a hundred tools."""

    def __init__(self, tools: Sequence[Words]) -> None:
        self._names = [tool.name for tool in tools]
        corpus = [_weighted(tool) for tool in tools]
        self._ranking = _ranking(corpus) if any(corpus) else None

    def best(self, query: str, limit: int) -> list[str]:
        """Names of those that have something to do with the question; one that is a name has that
        tool first. A question without words gives the first in order."""
        asked = query[:MAX_QUERY].strip()
        terms = list(dict.fromkeys(terms_of(asked)))
        if not terms:
            return self._names[:limit]
        scores = self._scores(terms)
        exact = [name for name in self._names if name == asked]
        order = sorted(range(len(self._names)), key=lambda at: (-scores[at], at))
        ranked = [self._names[at] for at in order if scores[at] > 0]
        return list(dict.fromkeys([*exact, *ranked]))[:limit]

    def _scores(self, terms: list[str]) -> list[float]:
        if self._ranking is None:
            return [0.0] * len(self._names)
        scores: list[float] = self._ranking.get_scores(terms).tolist()
        return scores


def _ranking(corpus: list[list[str]]) -> Any:
    import bm25s  # only where somebody searches: it brings numpy

    ranking = bm25s.BM25()
    ranking.index(corpus, show_progress=False)
    return ranking


def _weighted(tool: Words) -> list[str]:
    return [
        *terms_of(tool.name) * NAME_WEIGHT,
        *terms_of(tool.title) * TITLE_WEIGHT,
        *terms_of(tool.description),
        *terms_of(" ".join(tool.parameters)),
    ]


def _singular(term: str) -> str:
    if len(term) > 4 and term.endswith("ies"):
        return term[:-3] + "y"
    return term[:-1] if len(term) > 3 and term.endswith("s") and term[-2] != "s" else term


class _Schema(msgspec.Struct, frozen=True):
    properties: dict[str, Raw] = {}


class _Tool(msgspec.Struct, rename={"schema": "inputSchema"}):
    schema: _Schema = _Schema()


def _parameters(raw: Raw | bytes) -> tuple[str, ...]:
    try:
        return tuple(_decode(raw).schema.properties)
    except (msgspec.MsgspecError, RecursionError):
        return ()


_decode: Final = msgspec.json.Decoder(_Tool).decode
