"""The parts of the README that are made from the code.

python -m tests.project.readme_blocks      writes them anew
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tests.bench.running import Results

README = Path(__file__).parents[2] / "README.md"
RESULTS = Path(__file__).parents[1] / "bench/results/results.json"
BLOCK = re.compile(r"<!-- generated: (\w+) -->\n.*?<!-- end generated -->", re.DOTALL)


def era() -> str:
    from observant_host.decisions.era_diagram import diagram
    from observant_host.decisions.era_stdio import STDIO

    return f"```mermaid\n{diagram(STDIO).strip()}\n```"


def era_http() -> str:
    from observant_host.decisions.era_diagram import diagram
    from observant_host.decisions.era_http import HTTP

    return f"```mermaid\n{diagram(HTTP).strip()}\n```"


def commands() -> str:
    from observant_host.cli.main import COMMANDS, cli

    ctx = click.Context(cli)
    parts = ["| command | does |", "|---|---|"]
    parts += [f"| `{name}` | {lazy.summary} |" for name, lazy in COMMANDS.items()]
    for name in COMMANDS:
        command = cli.get_command(ctx, name)
        assert command is not None
        parts += ["", *_command(command, name)]
    return "\n".join(parts)


def _command(command: click.Command, path: str) -> list[str]:
    ctx = click.Context(command, info_name=f"observant-host {path}")
    lines = [f"#### `{' '.join(command.get_usage(ctx).removeprefix('Usage: ').split())}`", ""]
    lines += [" ".join((command.help or "").split()), ""]
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            assert inner is not None
            lines += _command(inner, f"{path} {name}")
        return lines
    for option in command.params:
        record = option.get_help_record(ctx)
        if (
            record is not None
            and record[1]
            and record[0] not in ("-v, --verbose", "-q, --quiet", "-h, --help")
        ):
            lines.append(f"- `{record[0]}`: {record[1]}")
    examples = getattr(command, "examples", ())
    if examples:
        lines += ["", "```console"]
        for example, meaning in examples:
            lines += [f"$ observant-host {example}", f"# {meaning}"]
        lines.append("```")
    return lines


def metrics() -> str:
    from observant_host.telemetry.metric_list import METRICS

    lines = ["| metric | kind | labels | means |", "|---|---|---|---|"]
    for metric in METRICS.values():
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |")
    return "\n".join(lines)


def spans() -> str:
    from observant_host.telemetry.rules import RULES

    lines = ["| span | kept in | log line | about |", "|---|---|---|---|"]
    for fact, rule in RULES.items():
        if rule.span is None:
            continue
        name = rule.span or "the method and its target, such as `tools/call search`"
        log = f"`{rule.log}`" if rule.log else "–"
        if rule.log and not rule.log_ok:
            log += " (unless ok)"
        about = _first_sentence(fact.__doc__, fact.__name__)
        shown = f"`{name}`" if rule.span else name
        lines.append(f"| {shown} | {rule.stream or '–'} | {log} | {about} |")
    return "\n".join(lines)


def record() -> str:
    from observant_host.incidents.moments import EVIDENCE
    from observant_host.telemetry.rules import ELSEWHERE, EVIDENCE_PREFIX, RULES, keys_of

    events = {
        "evidence": [EVIDENCE_PREFIX + key for key in EVIDENCE],
        "stderr_tail": ["observant_host.stderr_tail"],
        "target": ["gen_ai.tool.name", "gen_ai.prompt.name"],
    }
    lines = ["| kept in | span | its fields |", "|---|---|---|"]
    for stream in ("decisions", "traces"):
        for fact, rule in RULES.items():
            if rule.stream != stream or rule.span is None:
                continue
            fields = [
                one
                for name, key in keys_of(fact)
                for one in (events[name] if name in ELSEWHERE else [key])
            ]
            name = f"`{rule.span}`" if rule.span else f"{fact.__name__}: the method"
            shown = ", ".join(f"`{one.removeprefix('observant_host.')}`" for one in fields)
            lines.append(f"| {stream} | {name} | {shown} |")
    return "\n".join(lines)


def _first_sentence(doc: str | None, name: str) -> str:
    if not doc or doc.startswith(name + "("):  # a Struct without words of its own
        return re.sub(r"(?<!^)([A-Z])", lambda m: " " + m[1].lower(), name)
    return " ".join(doc.split()).replace("; ", ". ").split(". ")[0].rstrip(".")


def alerts() -> str:
    from tests.dashboards.alert_files import table

    return table()


def costs() -> str:
    from tests.bench import rendering
    from tests.bench.targets import GROWTH, REST

    results = _bench_results()
    if results is None:
        return "Not measured yet."
    samples = results.samples
    return "\n\n".join(
        (
            rendering.machine_lines(results.machine, results.at, samples),
            rendering.LEGEND,
            rendering.calls_table(samples),
            rendering.table(REST, samples),
            rendering.table(GROWTH, samples),
            "Curves and every figure: [results](tests/bench/results/results.md).",
        )
    )


def capacity() -> str:
    from tests.bench import capacity_table

    results = _bench_results()
    if results is None:
        return "Not measured yet."
    return f"On {results.machine.cpu}:\n\n{capacity_table.table(results.samples)}"


def _bench_results() -> Results | None:
    from tests.bench import running

    return running.read(RESULTS)


BLOCKS = {
    "alerts": alerts,
    "capacity": capacity,
    "costs": costs,
    "era": era,
    "era_http": era_http,
    "commands": commands,
    "metrics": metrics,
    "spans": spans,
    "record": record,
}


def renewed(text: str) -> str:
    """`text` with every generated block as the code says now."""
    return BLOCK.sub(
        lambda match: (
            f"<!-- generated: {match[1]} -->\n{BLOCKS[match[1]]()}\n<!-- end generated -->"
        ),
        text,
    )


if __name__ == "__main__":
    README.write_text(renewed(README.read_text()))
