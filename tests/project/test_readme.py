"""What the README says is what the code does."""

from __future__ import annotations

import re
import tomllib
from datetime import date

import msgspec
import pytest

from observant_host.config import keys, model
from observant_host.decisions.reload_plan import HOST_KEYS, SERVER_KEYS, Effect
from observant_host.decisions.terms import Cause, Reason
from tests.project.readme_blocks import BLOCK, BLOCKS, README, renewed

TEXT = README.read_text()

UNSAID = {"import": "imports", "file": None}


def section(title: str) -> str:
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    assert found, f"the README has no section {title}"
    return found[1]


def rows(text: str) -> dict[str, list[str]]:
    """First cell (without backticks) to the other cells, of every table row in `text`."""
    found = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found[cells[0].strip("` ")] = cells[1:]
    return found


@pytest.mark.parametrize("name", BLOCKS)
def test_generated_blocks_are_there(name: str) -> None:
    assert name in BLOCK.findall(TEXT)


def test_generated_blocks_are_current() -> None:
    assert renewed(TEXT) == TEXT, "run: python -m tests.project.readme_blocks"


def documented(table: str) -> dict[str, list[str]]:
    return rows(section(table))


TABLES = {
    "`[host]`": ("host", [model.HostSettings]),
    "`[service]`": ("service", [model.ServiceSettings]),
    "`[telemetry]`": ("telemetry", [model.TelemetrySettings]),
}


@pytest.mark.parametrize("title", TABLES)
def test_every_key_of_a_table_is_documented_with_its_default(title: str) -> None:
    name, structs = TABLES[title]
    assert documented(title).keys() == table_keys(keys.ROOT.keys[name])
    check_defaults(documented(title), structs)


def test_every_key_of_a_server_is_documented_with_its_default() -> None:
    said = documented("`[servers.NAME]`")
    assert said.keys() == table_keys(keys.SERVER)
    check_defaults(said, [model.ServerConfig, model.EraPolicy, model.Timing, model.RestartPolicy])


def test_tokens_and_profiles_are_documented() -> None:
    said = documented("`[tokens.NAME]`, `[profiles.NAME]`")
    expected = table_keys(keys.ROOT.keys["tokens"]) | table_keys(keys.ROOT.keys["profiles"])
    assert said.keys() == expected


def table_keys(node: keys.Node) -> set[str]:
    if isinstance(node, keys.Open):
        node = node.each
    assert isinstance(node, keys.Table)
    return set(node.keys)


def check_defaults(said: dict[str, list[str]], structs: list[type[msgspec.Struct]]) -> None:
    """A literal in the default column is the struct's; words ("same", "–") are for people."""
    fields = {f.encode_name: f for struct in structs for f in msgspec.structs.fields(struct)}
    for key, (default, *_rest) in said.items():
        field = fields.get({"import": "imports"}.get(key, key))
        if field is None or not default.startswith("`"):
            continue
        literal = tomllib.loads(f"x = {default.strip('`')}")["x"]
        actual = field.default
        if key == "allow_legacy":
            assert not literal
            assert not actual
        else:
            assert literal == (list(actual) if isinstance(actual, tuple) else actual), key


def test_every_reason_is_explained_and_none_is_invented() -> None:
    said = rows(section("How an era is decided"))
    assert said.keys() == {reason.value for reason in Reason}


def test_every_cause_is_named() -> None:
    for cause in Cause:
        assert f"`{cause.value}`" in section("How an era is decided")


def test_every_toml_example_is_accepted() -> None:
    from observant_host.config.parse import read_toml

    examples = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert examples
    for example in examples:
        text = example.replace("sha256:…", "sha256:" + "0" * 64)
        read_toml(text.encode(), name="README.md", folder=".")
        tomllib.loads(text)


def test_every_python_example_compiles() -> None:
    for example in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        compile(example, "README.md", "exec", flags=0x2000)  # top-level await allowed


def test_every_command_line_in_the_readme_parses() -> None:
    """Each `observant-host …` in an example names a command and options that exist."""
    import shlex

    import click

    from observant_host.cli.main import COMMANDS, cli

    lines = re.findall(
        r"^\$ observant-host (.*?)(?:\s+#.*| \| .*| > .*| < .*)?$", TEXT, re.MULTILINE
    )
    assert len(lines) > 20
    for line in lines:
        name, *argv = shlex.split(line, comments=True)
        assert name in COMMANDS, line
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        with command.make_context(name, list(argv), resilient_parsing=False):
            pass


def test_the_set_up_commands_are_what_ci_runs() -> None:
    ci = (README.parent / ".ci/run").read_text()
    assert "demo --once" in ci
    assert "pip install . && .venv/bin/observant-host demo --once" in TEXT
    assert "-c .ci/constraints.txt -e '.[test]' && .venv/bin/python -m pytest" in TEXT


def test_the_example_of_an_allowance_expires_in_time() -> None:
    example = re.search(r"legacy_expires = (\d{4}-\d\d-\d\d)", TEXT)
    assert example
    date.fromisoformat(example[1])


def test_what_a_reload_does_with_each_key_is_what_is_written() -> None:
    text = section("Changing the configuration while it runs")
    table = {
        cells.split(" | ")[1].strip(" |"): cells for cells in text.splitlines() if " | " in cells
    }
    said = {key: act for act, cells in table.items() for key in re.findall(r"`(\w+)`", cells)}
    for key, effect in SERVER_KEYS.items():
        if effect is not Effect.NOW and key not in UNWRITTEN:
            assert RELOADED[effect] in said[key], key
    for name, applied in HOST_KEYS.items():
        key = {"imports": "import"}.get(name.rpartition(".")[2], name.rpartition(".")[2])
        assert not applied or f"`{key}`" in text, name


UNWRITTEN = {"header_files", "problem", "fingerprint"}
"""What the configuration is made into; nobody writes them."""
RELOADED = {
    Effect.LIFE: "it is started again",
    Effect.ERA: "judged again",
    Effect.LISTS: "read again",
    Effect.NEXT_LIFE: "from its next start on",
    Effect.SWITCH: "started, or ended",
}
