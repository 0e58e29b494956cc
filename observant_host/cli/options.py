"""Options that mean the same in every command, and commands that show examples in their help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from observant_host.cli.output import Screen, screen_of

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

Example = tuple[str, str]
"""(command line after `observant-host`, what it does)."""


class ExampleCommand(click.Command):
    """A command whose help ends with examples that can be copied as they stand."""

    examples: tuple[Example, ...] = ()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for line, meaning in self.examples:
                formatter.write_text(f"observant-host {line}")
                with formatter.indentation():
                    formatter.write_text(meaning)


def command(name: str, *, examples: tuple[Example, ...]) -> Callable[[F], ExampleCommand]:
    """`click.command` with examples, and -v and -q accepted after the command's name too."""

    def decorate(function: F) -> ExampleCommand:
        made = click.command(name, cls=ExampleCommand)(_verbosity(function))
        made.examples = examples
        return made

    return decorate


def _louder(ctx: click.Context, _param: click.Parameter, value: int) -> None:
    screen_of(ctx).verbosity += value


def _silent(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        screen_of(ctx).verbosity = -1


def _verbosity(function: F) -> F:
    for option in (
        click.option(
            "-q",
            "--quiet",
            is_flag=True,
            expose_value=False,
            callback=_silent,
            help="Only the answer and errors.",
        ),
        click.option(
            "-v",
            "--verbose",
            count=True,
            expose_value=False,
            callback=_louder,
            help="Say more on stderr (-vv: tracebacks too).",
        ),
    ):
        function = option(function)
    return function


config_option = click.option(
    "-c",
    "--config",
    "config",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="OBSERVANT_HOST_CONFIG",
    help="Configuration file (TOML, or a desktop client's JSON). Default: the user's folder.",
)
"""`config: Path | None`; also read from OBSERVANT_HOST_CONFIG."""

json_option = click.option(
    "--json", "as_json", is_flag=True, help="One JSON document on stdout, for a machine."
)
"""`as_json: bool`."""

standalone_option = click.option(
    "--standalone",
    is_flag=True,
    help="Start copies of the servers instead of asking the running host.",
)
"""`standalone: bool`."""

deadline_option = click.option(
    "--deadline",
    "deadline_s",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds for the whole call.",
)
"""`deadline_s: float | None`."""


def server_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Configured servers, for the shell to complete."""
    from observant_host.cli.session import Session

    names = Session(Screen(), ctx.params.get("config")).server_names()
    return [name for name in names if name.startswith(incomplete)]


def required(value: str | None, usage: str) -> str:
    """An argument that a verb needs. Raises UsageError."""
    if value is None:
        raise click.UsageError(f"observant-host {usage}: say which one")
    return value


pass_screen = click.make_pass_decorator(Screen, ensure=True)
"""Gives the command its Screen as the first argument."""
