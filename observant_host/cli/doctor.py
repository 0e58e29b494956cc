"""`doctor`: everything that can be checked before something fails, each with its fix."""

from __future__ import annotations

from observant_host.cli.options import command


@command("doctor", examples=(("doctor", "Check the user's own configuration."),))
def doctor() -> None:
    """Check everything that can be checked, with fixes."""
    raise NotImplementedError
