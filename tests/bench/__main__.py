"""What this host costs, beside a loop written by hand and the clients that others offer.

python -m tests.bench                      every row of both tables, then how cost grows; 25 minutes
python -m tests.bench --only stdio,http    some cases; the others stay as they were measured
python -m tests.bench --quick              two short rounds: does it work here?
"""

from __future__ import annotations

import json
from pathlib import Path

import click
import msgspec

from tests.bench import rendering, running
from tests.bench.cases import Cases
from tests.bench.judging import judge
from tests.bench.samples import ENOUGH_ROUNDS
from tests.bench.targets import ALL
from tests.bench.venvs import NoIndexError, pythons

QUICK_ROUNDS, QUICK_SCALE = 2, 0.25
RESULTS = "results.json"


def tell(text: str) -> None:
    click.echo(text, err=True)


@click.command(help=__doc__)
@click.option("--rounds", type=click.IntRange(1), default=ENOUGH_ROUNDS, show_default=True)
@click.option("--only", default="", help="Names of cases, with commas.")
@click.option("--quick", is_flag=True, help="Two short rounds.")
@click.option("--quiet-wait", type=float, default=5.0, show_default=True, metavar="SECONDS")
@click.option("--into", type=click.Path(path_type=Path), default=Path("bench-results"))
@click.option("--json", "as_json", is_flag=True, help="The verdicts as JSON on stdout.")
def main(rounds: int, only: str, quick: bool, quiet_wait: float, into: Path, as_json: bool) -> None:
    try:
        found = pythons(tell)
    except NoIndexError as error:
        raise click.ClickException(str(error)) from error
    cases = Cases(found, QUICK_SCALE if quick else 1.0).all()
    names = [name for name in only.split(",") if name] or list(cases)
    if unknown := set(names) - set(cases):
        raise click.UsageError(f"no case {', '.join(unknown)}; there are {', '.join(cases)}")

    def kept(now: running.Results) -> None:
        document = rendering.document(now.machine, now.at, now.samples, ())
        (into / "results.md").write_text(document)

    results = running.run(
        {name: cases[name] for name in names},
        into / RESULTS,
        rounds=QUICK_ROUNDS if quick else rounds,
        quiet_s=0.0 if quick else quiet_wait,
        tell=tell,
        kept=kept,
    )
    verdicts = [judge(target, results.samples) for target in ALL]
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(verdicts), indent=1))
    else:
        click.echo((into / "results.md").read_text())


if __name__ == "__main__":
    main()
