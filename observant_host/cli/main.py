"""The entry of `observant-host`: finds the command, prints errors, gives exit codes.

Sub-commands are imported only when they run, so that `--help` and completion stay fast.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import traceback
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click

from observant_host.cli.output import Screen
from observant_host.errors import CallError, ConfigError, HostError, InstanceLocked, TransportError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Lazy(NamedTuple):
    """Where a command lives, and its line in the list of commands."""

    module: str
    attribute: str
    summary: str


COMMANDS = {
    "init": Lazy("init_command", "init", "Make a configuration out of an existing client file."),
    "run": Lazy("run_command", "run", "Serve until stopped."),
    "demo": Lazy("demo_command", "demo", "Show everything with servers shipped in the package."),
    "stdio": Lazy("stdio_command", "stdio", "Serve one MCP client on stdin and stdout."),
    "status": Lazy("status_command", "status", "State, era and reason of every server."),
    "probe": Lazy("probe_command", "probe", "Negotiate with servers and list what they offer."),
    "tools": Lazy("catalogue_commands", "tools", "The tools of all servers under unique names."),
    "prompts": Lazy("catalogue_commands", "prompts", "The prompts of all servers."),
    "resources": Lazy("catalogue_commands", "resources", "The resources of all servers."),
    "call": Lazy("call_command", "call", "Call one tool."),
    "explain": Lazy("explain_command", "explain", "Why a server has its era: every decision."),
    "incidents": Lazy("incidents_command", "incidents", "What went wrong, when, and why."),
    "allow": Lazy("allow_command", "allow", "Permit one server the bounded legacy handshake."),
    "reload": Lazy("reload_command", "reload", "Apply what changed in the configuration."),
    "retry": Lazy("operate_commands", "retry", "Try a server again now."),
    "restart": Lazy("operate_commands", "restart", "Give a server a new process or connection."),
    "hold": Lazy("operate_commands", "hold", "Let nothing happen to a server by itself."),
    "disable": Lazy("operate_commands", "disable", "Switch a server off."),
    "drain": Lazy("operate_commands", "drain", "Let a server's calls end, then switch it off."),
    "enable": Lazy("operate_commands", "enable", "Undo hold, disable or drain."),
    "calls": Lazy("calls_commands", "calls", "Calls on their way, and the last that ended."),
    "cancel": Lazy("calls_commands", "cancel", "End a call."),
    "log-level": Lazy("diagnose_commands", "log_level", "Log more, or less, for a time."),
    "capture": Lazy("diagnose_commands", "capture", "Write a server's frames to a file."),
    "record": Lazy("record_commands", "record", "Delete from what is recorded on disk."),
    "bundle": Lazy("bundle_command", "bundle", "Pack what somebody needs who is to help."),
    "config": Lazy("config_commands", "config", "Show or check the effective configuration."),
    "doctor": Lazy("doctor", "doctor", "Check everything that can be checked, with fixes."),
}
"""Every command, in the order in which a person meets them."""

EXIT_BY_OUTCOME = {
    "ok": 0,
    "tool_error": 1,
    "rpc_error": 1,
    "invalid": 2,
    "unavailable": 3,
    "timeout": 4,
    "cancelled": 130,
}


class LazyGroup(click.Group):
    """Lists commands from COMMANDS; imports one only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = COMMANDS.get(cmd_name)
        if lazy is None:
            return None
        module = importlib.import_module(f"observant_host.cli.{lazy.module}")
        command: click.Command = getattr(module, lazy.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            ctx.fail(f"There is no command `{args[0]}`.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Every command has examples: observant-host COMMAND --help",
)
@click.option("-v", "--verbose", count=True, help="Say more on stderr (-vv: tracebacks too).")
@click.option("-q", "--quiet", is_flag=True, help="Only the answer and errors.")
@click.version_option(package_name="observant-host", prog_name="observant-host")
@click.pass_context
def cli(ctx: click.Context, *, verbose: int, quiet: bool) -> None:
    """Run many MCP servers as one: one catalogue, every era decided on evidence."""
    screen = ctx.ensure_object(Screen)
    screen.verbosity = -1 if quiet else verbose


def exit_code_of(error: BaseException) -> int:
    """The exit code for an error that ended a command."""
    match error:
        case CallError():
            return EXIT_BY_OUTCOME[error.outcome]
        case ConfigError():
            return 2
        case InstanceLocked() | TransportError():
            return 3
        case KeyboardInterrupt():
            return 130
        case _:
            return 1


def run(argv: Sequence[str] | None = None) -> int:
    """One command from argv to exit code; errors become sentences on stderr."""
    screen = Screen()
    try:
        code = cli.main(args=argv, prog_name="observant-host", standalone_mode=False, obj=screen)
    except BrokenPipeError:
        _forget_stdout()
        return 1
    except BaseException as error:  # noqa: BLE001 -- the last place: every end becomes a sentence
        return _report(error, screen)
    return code if isinstance(code, int) else 0


def _report(error: BaseException, screen: Screen) -> int:
    if screen.verbosity > 1:
        traceback.print_exception(error, file=screen.err)
    match error:
        case click.ClickException():
            error.show(file=screen.err)
            return error.exit_code
        case KeyboardInterrupt() | click.Abort():
            screen.say("interrupted")
            return 130
        case SystemExit():
            return error.code if isinstance(error.code, int) else 1
        case ConfigError():
            for problem in error.problems:
                screen.fail(problem)
        case HostError():
            screen.fail(str(error))
        case _:
            screen.fail(_unexpected(error))
    return exit_code_of(error)


def _unexpected(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f"the system refused: {error}"
    return (
        f"{type(error).__name__}: {error} (this is a defect of observant-host; "
        "`observant-host -vv …` shows where)"
    )


def _forget_stdout() -> None:
    """The reader of our pipe went away: nothing more can be said there, at exit neither."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> NoReturn:
    """Console script."""
    sys.exit(run())
