"""The version of this package, known without reading the metadata of what is installed."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
"""As in pyproject.toml; a test compares them."""
