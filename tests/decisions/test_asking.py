"""Nothing unannounced is asked for, and nothing in words that a revision does not know."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from observant_host.decisions.asking import in_revision, not_announced

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


@pytest.mark.parametrize("version", REVISIONS)
@pytest.mark.parametrize(
    ("method", "capability"),
    [("resources/read", "resources"), ("logging/setLevel", "logging")],
)
def test_a_method_needs_its_capability_in_every_revision(
    version: str, method: str, capability: str
) -> None:
    assert not_announced(method, {"tools": {}}, version=version) == capability
    assert not_announced(method, {capability: {}}, version=version) is None


@pytest.mark.parametrize("version", REVISIONS)
def test_completion_needs_its_capability_where_there_is_one(version: str) -> None:
    method = "completion/complete"
    assert not_announced(method, {"completions": {}}, version=version) is None
    assert not_announced(method, {}, version=version) == "completions"
    with_prompts = not_announced(method, {"prompts": {}}, version=version)
    assert with_prompts == (None if version == "2024-11-05" else "completions")


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "tasks/get"])
def test_what_is_only_called_as_listed_needs_no_second_look(method: str) -> None:
    assert not_announced(method, {}, version="2026-07-28") is None


@pytest.mark.parametrize("version", REVISIONS)
@pytest.mark.parametrize("raw", [True, False])
def test_the_context_of_a_completion_goes_out_only_where_it_is_known(
    version: str, raw: bool
) -> None:
    params: dict[str, Any] = {"ref": {}, "argument": {}, "context": {"arguments": {}}}
    given = Raw(msgspec.json.encode(params)) if raw else params
    sent = msgspec.json.decode(
        msgspec.json.encode(in_revision("completion/complete", given, version=version))
    )
    assert ("context" in sent) == (version >= "2025-06-18")
    assert {"ref", "argument"} <= sent.keys()


def test_other_methods_and_empty_parameters_pass_as_they_are() -> None:
    params = {"name": "t", "context": 1}
    assert in_revision("tools/call", params, version="2024-11-05") is params
    assert in_revision("completion/complete", None, version="2024-11-05") is None
