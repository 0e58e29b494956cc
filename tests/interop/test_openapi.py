"""The description of the JSON API, read by a validator that nobody here wrote."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from observant_host.service.api import openapi
from tests.interop import provisions

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


def judged(folder: Path, document: bytes) -> subprocess.CompletedProcess[str]:
    """By openapi-spec-validator, as OpenAPI 3.1."""
    file = folder / "openapi.json"
    file.write_bytes(document)
    python = provisions.python_with("openapi")
    command = [str(python), "-m", "openapi_spec_validator", "--schema", "3.1", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_document_is_openapi_3_1(tmp_path: Path) -> None:
    found = judged(tmp_path, openapi.document())
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_validator_would_see_what_is_wrong(tmp_path: Path) -> None:
    document = json.loads(openapi.document())
    document["paths"]["/api/v1/servers/{name}"]["get"]["parameters"] = []
    del document["paths"]["/api/v1/servers"]["get"]["responses"]["200"]["description"]
    assert judged(tmp_path, json.dumps(document).encode()).returncode != 0
