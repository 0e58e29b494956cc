"""What the README's commands install is what the lock says: pip reads no uv.lock."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def constraints() -> dict[str, str]:
    lines = (ROOT / ".ci/constraints.txt").read_text().splitlines()
    pins = (line.split(" ; ")[0].split("==") for line in lines if not line.startswith("#"))
    return dict(pins)


def locked() -> dict[str, str]:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    return {p["name"]: p["version"] for p in lock["package"] if p["name"] != "observant-host"}


def test_the_constraints_are_the_lock() -> None:
    assert constraints() == locked()


def test_every_declared_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = project["dependencies"] + project["optional-dependencies"]["test"]
    names = {re.split(r"[><=!~;\[ ]", one)[0].lower().replace("_", "-") for one in declared}
    assert names <= constraints().keys()


def test_no_anyio_is_allowed_that_spins_after_a_cancellation() -> None:
    """A scope that ends in another task than it began in had its loop run hot before 4.14."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (anyio,) = (one for one in project["dependencies"] if one.startswith("anyio"))
    assert anyio.startswith("anyio>=4.14")


def test_the_lock_names_only_the_public_index() -> None:
    text = (ROOT / "uv.lock").read_text()
    hosts = set(re.findall(r"https?://([^/\"]+)/", text))
    assert hosts <= {"pypi.org", "files.pythonhosted.org"}
    assert "file://" not in text
