"""The version that the package knows is the one that was installed."""

from __future__ import annotations

from importlib.metadata import version

from observant_host.version import VERSION


def test_the_package_knows_its_own_version() -> None:
    assert version("observant-host") == VERSION
