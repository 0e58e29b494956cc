"""`config show` and `config check`: what the host would run by, and where each value came from."""

from __future__ import annotations

import click


@click.group("config")
def config() -> None:
    """Show or check the effective configuration."""
