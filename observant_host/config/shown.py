"""What of a value may be shown: secrets are masked before anyone else sees them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MASK: Final = "***"
SHORTEST_SECRET: Final = 4
"""A shorter value hides nothing, and masking it everywhere would make every text unreadable."""

COMMON_WORDS: Final = frozenset(
    {"true", "false", "none", "null", "info", "debug", "warn", "error", "warning", "stdio", "http"}
    | {"production", "development", "test", "localhost", "utf-8", "node", "auto"}
)
"""Values of `env` that are no secrets although they stand where secrets stand."""

_SENSITIVE: Final = re.compile(
    r"token|secret|passw|api[-_]?key|apikey|access[-_]?key|private[-_]?key|credential|authorization"
    r"|bearer|(?:^|[-_])(?:key|auth|pat|pwd)(?:$|[-_=])",
    re.IGNORECASE,
)
_REFERENCE: Final = re.compile(r"^\$\{(?:env:)?[A-Za-z_][A-Za-z0-9_]*\}$")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")
_DEFAULT: Final = re.compile(r"(\$\{[^{}:]*:-)[^{}]*\}")


def is_reference(text: str) -> bool:
    """True for a value that is nothing but `${VAR}`: its name tells no secret."""
    return bool(_REFERENCE.match(text))


def shown_secret(text: str) -> str:
    """A secret's place: a bare reference as written, anything else masked."""
    return text if is_reference(text) or not text else MASK


def shown_url(url: str) -> str:
    """User and password, and the values of the query, masked; the fragment dropped."""
    scheme, sep, rest = url.partition("://")
    if not sep:
        return url
    rest = rest.partition("#")[0]
    place, asked, query = rest.partition("?")
    authority, slash, path = place.partition("/")
    user, at, host = authority.rpartition("@")
    masked = f"{MASK}@{host}" if at else user + host
    pairs = [f"{pair.partition('=')[0]}={MASK}" for pair in query.split("&")] if query else []
    return f"{scheme}://{masked}{slash}{path}" + asked + "&".join(pairs)


def shown_text(text: str) -> str:
    """Text that may hold URLs and references: both without what they hide."""
    text = _DEFAULT.sub(rf"\1{MASK}}}", text)
    return _URL.sub(lambda match: shown_url(match[0]), text)


def shown_argv(words: Sequence[str]) -> list[str]:
    """Arguments with the values of telling options masked: `--token X`, `--api-key=X`, `K: X`."""
    out: list[str] = []
    follows = False
    for word in words:
        name, sep, value = _split_option(word)
        if follows:
            out.append(shown_secret(word))
            follows = False
        elif sep and _SENSITIVE.search(name):
            out.append(name + sep + shown_secret(value))
        elif _tells(word):
            out.append(MASK)
        else:
            out.append(shown_text(word))
            follows = _is_option(word)
    return out


def argv_secrets(words: Sequence[str]) -> list[str]:
    """The values that `shown_argv` masks, for the masker."""
    out: list[str] = []
    follows = False
    for word in words:
        name, sep, value = _split_option(word)
        if follows:
            out.append(word)
        elif sep and _SENSITIVE.search(name):
            out += [value, value.rpartition(" ")[2]]
        elif _tells(word):
            out.append(word)
        else:
            out += [secret for match in _URL.finditer(word) for secret in url_secrets(match[0])]
        follows = not follows and not sep and _is_option(word)
    return out


def _split_option(word: str) -> tuple[str, str, str]:
    """`--api-key=X` and `Authorization: X` as name, separator, value; else no separator."""
    if match := re.match(r"^([A-Za-z0-9_.-]+)(\s*[=:]\s*)(?!//)(.+)$", word, re.DOTALL):
        return match[1], match[2], match[3]
    return word, "", ""


def _is_option(word: str) -> bool:
    return word.startswith("-") and bool(_SENSITIVE.search(word))


_TOKEN_SHAPES: Final = re.compile(
    r"^(?:gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|AKIA|AIza|ntn_|eyJ[A-Za-z0-9_-]{10,}\.)"
)


def _tells(word: str) -> bool:
    """True for a word that is itself of the shape of a well-known token, or JSON with one in it."""
    if word.lstrip().startswith(("{", "[")):
        return bool(_SENSITIVE.search(word))
    return bool(_TOKEN_SHAPES.match(word)) or word.lower().startswith("bearer ")


def url_secrets(url: str) -> list[str]:
    """User, password and query values of a URL, as written and decoded."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return [url]
    found = [parts.username or "", parts.password or ""]
    found += [value for _, value in parse_qsl(parts.query)]
    found += [pair.partition("=")[2] for pair in parts.query.split("&")]
    return found + [unquote(secret) for secret in found if "%" in secret]


def worth_masking(secrets: Iterable[str]) -> tuple[str, ...]:
    """Secrets without duplicates, short ones and common words, longest first."""
    kept = {
        secret
        for secret in secrets
        if len(secret) >= SHORTEST_SECRET and secret.lower() not in COMMON_WORDS
    }
    return tuple(sorted(kept, key=lambda secret: (-len(secret), secret)))
