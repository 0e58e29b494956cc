"""docker-compose.yml and the Kubernetes example against the schemas that their owners publish.

The compose specification's schema comes with check-jsonschema, those of Kubernetes with
kubernetes-validate (unknown keys are errors in both), those of the Prometheus Operator with
kubernetes-models. No engine and no cluster is needed.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.interop.provisions import HERE, node_folder, python_with

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.interop

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"
MANIFESTS = sorted((ROOT / "dashboards/kubernetes").glob("*.yaml"))
OF_OPERATOR = "monitoring.coreos.com/v1"
KUBERNETES = ("1.31", "1.37")
"""A version that many still run, and the newest that there are schemas for."""


def documents(*, of_operator: bool) -> list[dict[str, Any]]:
    found = [one for path in MANIFESTS for one in yaml.safe_load_all(path.read_text())]
    return [one for one in found if (one["apiVersion"] == OF_OPERATOR) is of_operator]


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def tools() -> Path:
    """The folder of the programs that check."""
    return python_with("deployment_schemas").parent


def compose_says(tools: Path, file: Path) -> subprocess.CompletedProcess[str]:
    program = str(tools / "check-jsonschema")
    return run(program, "--builtin-schema", "vendor.compose-spec", str(file))


def kubernetes_says(tools: Path, file: Path) -> subprocess.CompletedProcess[str]:
    versions = [word for version in KUBERNETES for word in ("-k", version)]
    return run(str(tools / "kubernetes-validate"), "--strict", *versions, str(file))


def operator_says(folder: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    return run("node", str(folder / "check.mjs"), *(str(file) for file in files))


def test_the_compose_file_is_one(tools: Path) -> None:
    done = compose_says(tools, COMPOSE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_kubernetes_accepts_its_manifests(tools: Path, tmp_path: Path) -> None:
    written = documents(of_operator=False)
    assert {one["kind"] for one in written} >= {"Deployment", "Service", "ConfigMap"}
    for one in written:
        file = tmp_path / f"{one['kind']}.yaml"
        file.write_text(yaml.safe_dump(one))
        done = kubernetes_says(tools, file)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_operator_accepts_its_manifests(tmp_path: Path) -> None:
    files = []
    for one in documents(of_operator=True):
        files.append(tmp_path / f"{one['kind']}.json")
        files[-1].write_text(json.dumps(one))
    done = operator_says(node_folder(HERE / "operator_schemas"), *files)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == ["PrometheusRule: ok", "ServiceMonitor: ok"]


def spoilt(text: str, old: str, new: str, to: Path) -> Path:
    assert old in text
    to.write_text(text.replace(old, new))
    return to


@pytest.mark.parametrize(
    ("says", "source", "old", "new"),
    [
        (compose_says, COMPOSE, "healthcheck:", "healthchek:"),
        (kubernetes_says, ROOT / "dashboards/kubernetes/service.yaml", "selector:", "selektor:"),
    ],
)
def test_a_mistake_would_be_noticed(
    says: Callable[..., subprocess.CompletedProcess[str]],
    source: Path,
    old: str,
    new: str,
    tools: Path,
    tmp_path: Path,
) -> None:
    file = spoilt(source.read_text(), old, new, tmp_path / "spoilt.yaml")
    assert says(tools, file).returncode != 0
