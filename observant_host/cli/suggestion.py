"""The lines that a person adds to the configuration so that an old server is served."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from observant_host.supervision.examine import Suggestion


def toml_lines(suggestion: Suggestion) -> str:
    """A `[servers.NAME]` table, ready to be pasted."""
    head = f"[servers.{toml_key(suggestion.server)}]"
    return "\n".join([head, *(_line(k, v) for k, v in suggestion.keys.items())])


def toml_key(name: str) -> str:
    """A bare key where TOML allows one, else a quoted one (server names may hold dots)."""
    return name if name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)


def _line(key: str, value: Any) -> str:
    # An ISO date of a suggestion is a TOML date here, and only here: revisions look like dates too.
    return f"{key} = {value if key == 'legacy_expires' else toml_value(value)}"


def toml_value(value: Any) -> str:
    """Strings, numbers, booleans and lists of them: JSON spells these as TOML does."""
    return json.dumps(value)
