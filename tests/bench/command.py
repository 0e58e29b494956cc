"""The command line of the benchmark."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from tests.bench import capacity, growth, rendering, running
from tests.bench.cases import Cases, ProgramError, program
from tests.bench.charts import charts
from tests.bench.judging import judge
from tests.bench.samples import ENOUGH_ROUNDS
from tests.bench.targets import ALL
from tests.bench.venvs import NoIndexError, pythons

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.bench.cases import Case
    from tests.bench.running import Results

HELP = """What this host costs, beside a loop written by hand and the clients that others offer.

\b
python -m tests.bench                      both tables, how cost grows, capacity: 25 minutes
python -m tests.bench tables               both tables: 12 minutes; also: growth, capacity
python -m tests.bench --only stdio,http    some cases; the others stay as they were measured
python -m tests.bench --quick              two short rounds: does it work here?

Writes results.json, results.md and plots into a folder. Needs a package index the first time;
leave the machine alone meanwhile.
"""
QUICK_ROUNDS, QUICK_SCALE = 2, 0.25
PARTS = ("tables", "growth", "capacity")


def tell(text: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {text}", err=True)


@click.command(help=HELP)
@click.argument("parts", nargs=-1, type=click.Choice(PARTS), metavar="[tables|growth|capacity]…")
@click.option("--rounds", type=click.IntRange(1), default=ENOUGH_ROUNDS, show_default=True)
@click.option("--only", default="", metavar="CASE,…", help="These cases, of any part.")
@click.option("--resume", is_flag=True, help="Leave out what the folder has whole.")
@click.option("--quick", is_flag=True, help="Two short rounds, whatever else runs.")
@click.option(
    "--quiet-wait",
    type=float,
    default=3.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait so long, before each run, for others to be quiet.",
)
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    default=Path("bench-results"),
    show_default=True,
    metavar="FOLDER",
    help="Results; those of other cases that are there stay.",
)
@click.option("--json", "as_json", is_flag=True, help="The verdicts as JSON on stdout.")
def main(
    *,
    parts: tuple[str, ...],
    rounds: int,
    only: str,
    resume: bool,
    quick: bool,
    quiet_wait: float,
    into: Path,
    as_json: bool,
) -> None:
    try:
        found = pythons(tell)
    except NoIndexError as error:
        raise click.ClickException(str(error)) from error
    cases = chosen(Cases(found, QUICK_SCALE if quick else 1.0), parts or PARTS, only)

    def kept(now: Results) -> None:
        names = [f"{name}.svg" for name in drawn(now, into, found["plot"])]
        (into / "results.md").write_text(
            rendering.document(now.machine, now.at, now.samples, names), encoding="utf-8"
        )

    results = running.run(
        cases,
        into / "results.json",
        rounds=QUICK_ROUNDS if quick else rounds,
        quiet_s=0.0 if quick else quiet_wait,
        tell=tell,
        kept=kept,
        resume=resume,
    )
    if as_json:
        verdicts = [judge(target, results.samples) for target in ALL]
        click.echo(json.dumps(msgspec.to_builtins(verdicts), indent=1))
    else:
        click.echo((into / "results.md").read_text())


def chosen(own: Cases, parts: tuple[str, ...], only: str) -> Mapping[str, Case]:
    """Raises UsageError naming the cases that there are."""
    every = {"tables": own.all(), "growth": growth.cases(own), "capacity": capacity.cases(own)}
    known = {name: case for part in every.values() for name, case in part.items()}
    names = [name for name in only.split(",") if name]
    if unknown := sorted(set(names) - set(known)):
        raise click.UsageError(f"no case {', '.join(unknown)}; there are {', '.join(known)}")
    names = names or [name for part in PARTS if part in parts for name in every[part]]
    return {name: known[name] for name in names}


def drawn(results: Results, folder: Path, python: str) -> list[str]:
    """The names of the plots drawn."""
    made = charts(results.samples)
    if made:
        given = {"folder": str(folder.absolute()), "charts": msgspec.to_builtins(made)}
        try:
            program(python, "drawing", given)
        except ProgramError as error:
            tell(f"no plots: {error}")
            return []
    return [chart.name for chart in made]
