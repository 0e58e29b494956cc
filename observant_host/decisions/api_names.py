"""Canonical names made fit for model APIs, which accept `^[a-zA-Z0-9_-]{1,64}$` and nothing else.

A name that fits is left alone. Any other is cleaned and gets a hash of the whole canonical name:
cleaning loses information (`a.b`, `a/b` and `a b` look alike), the hash gives it back, and depends
on nothing but the name itself, so other servers coming and going change nothing.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

MAX_CHARS: Final = 64
HASH_CHARS: Final = 8
"""32 bits: a meeting needs the same cleaned name too, and is settled below all the same."""

_FITS: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_HASHED: Final = re.compile(rf"[a-zA-Z0-9_-]+_[0-9a-f]{{{HASH_CHARS}}}")
_UNFIT: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_WITHOUT_LETTERS: Final = "name"


def fits(name: str) -> bool:
    return _FITS.fullmatch(name) is not None


@lru_cache(maxsize=65_536)  # one full catalogue: a re-merge then hashes nothing
def cleaned(name: str, salt: int = 0) -> str:
    """The api form of a name that does not fit. `salt` > 0 only where the one before was taken."""
    seed = name if salt == 0 else f"{name}\0{salt}"
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_CHARS]
    base = _UNFIT.sub("_", name).strip("_") or _WITHOUT_LETTERS
    return f"{base[: MAX_CHARS - HASH_CHARS - 1]}_{digest}"


def is_hashed(name: str) -> bool:
    """True where the name looks like one that `cleaned` made."""
    return len(name) <= MAX_CHARS and _HASHED.fullmatch(name) is not None


def plain(name: str) -> str:
    """The api name where nothing else is spelled like it."""
    return name if _FITS.fullmatch(name) is not None else cleaned(name)


def assign_api_names(names: Iterable[str], *, taken: Collection[str] = ()) -> dict[str, str]:
    """Canonical name to api name, no two alike. `taken` are further names that must stay free.

    Names that fit keep themselves even against a hash that looks the same; the hashed one yields.
    """
    every = tuple(names)
    api = {name: name for name in every if fits(name)}
    used = {*api, *taken}
    for name in sorted(name for name in every if name not in api):
        api[name] = next(form for salt in count() if (form := cleaned(name, salt)) not in used)
        used.add(api[name])
    return api
