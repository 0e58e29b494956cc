"""The catalogue as the JSON that scripts read: `tools`, `prompts`, `resources` with `--json`.

Each server's own object goes out as its bytes came in (`msgspec.Raw`): encode with msgspec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from observant_host.decisions.catalogue import Catalogue


def tools_json(catalogue: Catalogue) -> dict[str, Any]:
    raise NotImplementedError


def prompts_json(catalogue: Catalogue) -> dict[str, Any]:
    raise NotImplementedError


def resources_json(catalogue: Catalogue) -> dict[str, Any]:
    raise NotImplementedError
