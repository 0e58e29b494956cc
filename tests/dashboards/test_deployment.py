"""docker-compose.yml, the Kubernetes example and what they mount fit together, and to the host.

Here without an engine: that they are what Docker and Kubernetes accept is checked against their
published schemas (tests/interop/test_deployment_schemas.py).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from observant_host.telemetry.export import GRPC_PORT
from observant_host.telemetry.rules import DECISION_SPANS
from tests.dashboards.grafana import DASHBOARDS, FILES
from tests.dashboards.prometheus import needed

if TYPE_CHECKING:
    from pathlib import Path

ROOT = DASHBOARDS.parent
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SCRAPED = yaml.safe_load((DASHBOARDS / "compose/prometheus.yml").read_text())
COLLECTOR = yaml.safe_load((DASHBOARDS / "otel-collector.yaml").read_text())
TEMPO = yaml.safe_load((DASHBOARDS / "tempo.yaml").read_text())
SOURCES = yaml.safe_load(
    (DASHBOARDS / "grafana/provisioning/datasources/observant-host.yaml").read_text()
)["datasources"]
PINNED = re.compile(r"[\w./-]+:v?\d+\.\d+\.\d+(?:-[\w-]+)?")
WITHOUT_A_SHELL = {"otel-collector", "tempo"}
"""Images that hold one program: `pipeline` asks for their health."""


def seconds(text: str) -> int:
    assert text.endswith("s")
    return int(text[:-1])


def manifests() -> dict[str, dict[str, Any]]:
    """By kind; each kind is there once."""
    found = {}
    for path in sorted((DASHBOARDS / "kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            assert document["kind"] not in found
            found[document["kind"]] = document
    return found


KUBERNETES = manifests()
POD = KUBERNETES["Deployment"]["spec"]["template"]
CONTAINER = POD["spec"]["containers"][0]
CONFIGURED = KUBERNETES["ConfigMap"]["data"]["observant-host.toml"]


# docker-compose.yml


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_is_pinned(name: str) -> None:
    assert PINNED.fullmatch(SERVICES[name]["image"])
    inline = SERVICES[name].get("build", {}).get("dockerfile_inline", "")
    for line in inline.splitlines():
        if line.startswith("FROM "):
            assert PINNED.fullmatch(line.split()[1]), line


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    for port in service.get("ports", ()):
        assert port.startswith("127.0.0.1:")


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_says_whether_it_is_healthy(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    if "test" in check:
        return
    assert check == {"disable": True}
    if name != "calls":
        assert name in WITHOUT_A_SHELL
        assert f"http://{name}:" in SERVICES["pipeline"]["healthcheck"]["test"][3]


def test_what_a_service_mounts_is_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("./"):
                assert (ROOT / source).exists(), source
                assert volume.endswith(":ro")
            else:
                assert source in COMPOSE["volumes"]
        for used in service.get("configs", ()):
            assert used["source"] in COMPOSE["configs"]
        for secret in service.get("secrets", ()):
            assert secret in COMPOSE["secrets"]
    assert (ROOT / re.sub(r"\$\{\w+:-(.*)\}", r"\1", COMPOSE["configs"]["host"]["file"])).exists()


def test_the_host_is_no_root_and_has_the_launchers_of_servers() -> None:
    recipe = SERVICES["host"]["build"]["dockerfile_inline"]
    assert "\nUSER host\n" in recipe
    for program in ("/uv", "/uvx", "bin/node", "bin/npx"):
        assert program in recipe
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", recipe, re.MULTILINE)
    for source in " ".join(copied).split():
        assert (ROOT / source).exists(), source
    assert SERVICES["host"]["init"] is True


def test_the_host_may_drain_before_it_is_killed() -> None:
    config = (DASHBOARDS / "compose/observant-host.toml").read_text()
    assert seconds(SERVICES["host"]["stop_grace_period"]) >= drain_s(config) + 5


def drain_s(toml: str) -> int:
    return sum(int(n) for n in re.findall(r"^drain_\w+_s = (\d+)", toml, re.MULTILINE))


def test_nothing_of_the_host_is_open_without_a_token() -> None:
    for service in ("host", "prometheus"):
        assert SERVICES[service]["secrets"] == ["metrics-token"]
    (job,) = SCRAPED["scrape_configs"]
    assert job["authorization"] == {"credentials_file": "/run/secrets/metrics-token"}
    assert (
        '"/run/secrets/metrics-token"' in (DASHBOARDS / "compose/observant-host.toml").read_text()
    )


def listened() -> dict[str, set[int]]:
    """The ports of each service: those it is asked for on loopback, and what its own file says."""
    found = {
        name: {int(port.rsplit(":", 1)[1]) for port in service.get("ports", ())}
        for name, service in SERVICES.items()
    }
    found["otel-collector"].add(port_of(COLLECTOR["extensions"]["health_check"]["endpoint"]))
    otlp = TEMPO["distributor"]["receivers"]["otlp"]["protocols"]
    found["tempo"] |= {port_of(one["endpoint"]) for one in otlp.values()}
    return found


def port_of(address: str) -> int:
    return int(address.rsplit(":", 1)[1].split("/")[0])


def test_whoever_is_asked_listens_there() -> None:
    asked = [
        SCRAPED["scrape_configs"][0]["static_configs"][0]["targets"][0],
        SCRAPED["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"][0],
        COLLECTOR["exporters"]["otlphttp/tempo"]["endpoint"],
        *(one["url"] for one in SOURCES),
        *re.findall(
            r"http://[\w.-]+:\d+", (DASHBOARDS / "compose/observant-host.toml").read_text()
        ),
        *re.findall(r"http://(?!127)[\w.-]+:\d+", SERVICES["pipeline"]["healthcheck"]["test"][3]),
    ]
    ports = listened()
    for address in asked:
        name, _, port = address.removeprefix("http://").partition(":")
        assert int(port) in ports[name], address
        assert int(port) != GRPC_PORT
    receiver = COLLECTOR["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    assert port_of(receiver) in ports["otel-collector"]
    assert TEMPO["server"]["http_listen_port"] in ports["tempo"]


# Grafana's provisioning


def test_a_metrics_exemplar_leads_to_its_trace() -> None:
    by_uid = {one["uid"]: one for one in SOURCES}
    (target,) = by_uid["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
    assert target == {"name": "trace_id", "datasourceUid": "tempo"}
    assert by_uid["tempo"]["type"] == "tempo"
    assert "--enable-feature=exemplar-storage" in SERVICES["prometheus"]["command"]
    interval = by_uid["prometheus"]["jsonData"]["timeInterval"]
    assert interval == SCRAPED["global"]["scrape_interval"]


def test_the_dashboards_lie_where_the_provider_looks() -> None:
    path = DASHBOARDS / "grafana/provisioning/dashboards/observant-host.yaml"
    (provider,) = yaml.safe_load(path.read_text())["providers"]
    mounted = {volume.split(":")[1] for volume in SERVICES["grafana"]["volumes"]}
    assert {f"{provider['options']['path']}/{name}.json" for name in FILES} <= mounted
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home in mounted


# The Collector and Tempo: key by key, since neither is here to read its file

COLLECTOR_KEYS: dict[str, set[str]] = {
    "otlp": {"protocols"},
    "memory_limiter": {"check_interval", "limit_mib", "spike_limit_mib"},
    "tail_sampling": {"decision_wait", "num_traces", "decision_cache", "policies"},
    "batch": {"timeout"},
    "otlphttp": {"endpoint", "sending_queue", "retry_on_failure"},
    "file": {"path", "format", "rotation"},
    "health_check": {"endpoint"},
}
"""As documented with each component, of those used here."""

POLICY_KEYS = {
    "ottl_condition": {"error_mode", "span"},
    "status_code": {"status_codes"},
    "latency": {"threshold_ms"},
    "probabilistic": {"sampling_percentage"},
}


def test_the_collector_has_what_its_pipeline_uses_and_nothing_else() -> None:
    service = COLLECTOR["service"]
    (pipeline,) = service["pipelines"].values()
    for kind, used in {**pipeline, "extensions": service["extensions"]}.items():
        assert set(used) == COLLECTOR[kind].keys()
        for name, keys in COLLECTOR[kind].items():
            assert keys.keys() <= COLLECTOR_KEYS[name.split("/")[0]], name
    # https://github.com/open-telemetry/opentelemetry-collector/tree/main/processor
    assert pipeline["processors"][0] == "memory_limiter"
    assert pipeline["processors"][-1] == "batch"


def test_the_collector_keeps_every_decision() -> None:
    policies = COLLECTOR["processors"]["tail_sampling"]["policies"]
    for policy in policies:
        assert policy.keys() == {"name", "type", policy["type"]}
        assert policy[policy["type"]].keys() == POLICY_KEYS[policy["type"]]
    kept = policies[0]["ottl_condition"]["span"]
    assert kept == [f'name == "{span}"' for span in sorted(DECISION_SPANS)]


def test_tempo_has_the_keys_of_its_reference() -> None:
    # https://grafana.com/docs/tempo/v2.8.x/configuration/
    assert TEMPO.keys() == {
        *("server", "distributor", "ingester", "compactor", "storage", "usage_report")
    }
    assert TEMPO["storage"]["trace"].keys() == {"backend", "wal", "local"}
    mounted = [volume.split(":")[1] for volume in SERVICES["tempo"]["volumes"]]
    for part in ("wal", "local"):
        path = TEMPO["storage"]["trace"][part]["path"]
        assert any(path.startswith(f"{folder}/") for folder in mounted)


# Kubernetes


def test_what_kubernetes_selects_is_there() -> None:
    labels = POD["metadata"]["labels"]
    service, monitor = KUBERNETES["Service"], KUBERNETES["ServiceMonitor"]
    assert KUBERNETES["Deployment"]["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert service["spec"]["selector"].items() <= labels.items()
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    (port,) = service["spec"]["ports"]
    assert endpoint["port"] == port["name"]
    assert port["targetPort"] in {one["name"] for one in CONTAINER["ports"]}
    job = service["metadata"]["labels"][monitor["spec"]["jobLabel"]]
    assert job == SCRAPED["scrape_configs"][0]["job_name"]


def test_the_pod_mounts_what_it_has() -> None:
    volumes = {one["name"]: one for one in POD["spec"]["volumes"]}
    assert {one["name"] for one in CONTAINER["volumeMounts"]} == volumes.keys()
    assert volumes["config"]["configMap"]["name"] == KUBERNETES["ConfigMap"]["metadata"]["name"]
    claim = KUBERNETES["PersistentVolumeClaim"]["metadata"]["name"]
    assert volumes["state"]["persistentVolumeClaim"]["claimName"] == claim
    secret = KUBERNETES["ServiceMonitor"]["spec"]["endpoints"][0]["authorization"]["credentials"]
    assert volumes["token"]["secret"]["secretName"] == secret["name"]
    mounts = {one["name"]: one["mountPath"] for one in CONTAINER["volumeMounts"]}
    assert f'file = "{mounts["token"]}/{secret["key"]}"' in CONFIGURED
    assert f'state_dir = "{mounts["state"]}"' in CONFIGURED
    assert CONTAINER["args"][2].startswith(mounts["config"])


def test_the_pod_may_drain_before_it_is_killed() -> None:
    assert POD["spec"]["terminationGracePeriodSeconds"] > drain_s(CONFIGURED) + 5
    assert "drain_delay_s" in CONFIGURED  # what a preStop hook would be for
    assert KUBERNETES["Deployment"]["spec"]["strategy"]["type"] == "Recreate"


def test_the_pod_is_confined_and_probed() -> None:
    assert POD["spec"]["securityContext"]["runAsNonRoot"]
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert CONTAINER["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert CONTAINER["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_the_rules_of_kubernetes_are_ours() -> None:
    ours = [
        group
        for name in ("rules", "alerts")
        for group in yaml.safe_load((DASHBOARDS / f"prometheus/{name}.yaml").read_text())["groups"]
    ]
    assert KUBERNETES["PrometheusRule"]["spec"]["groups"] == ours


# What the host itself says to its files


@pytest.mark.parametrize("which", ["compose", "kubernetes"])
def test_the_host_accepts_its_configuration(which: str, tmp_path: Path) -> None:
    file = tmp_path / "observant-host.toml"
    compose = (DASHBOARDS / "compose/observant-host.toml").read_text()
    file.write_text(compose if which == "compose" else CONFIGURED)
    done = subprocess.run(
        [*(sys.executable, "-m", "observant_host", "config", "check", "--json"), "-c", str(file)],
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert json.loads(done.stdout)


# What Prometheus itself says to its file


@pytest.mark.prometheus
def test_prometheus_accepts_its_configuration(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    for name in ("rules.yaml", "alerts.yaml"):
        (tmp_path / name).write_text((DASHBOARDS / f"prometheus/{name}").read_text())
    file = tmp_path / "prometheus.yml"
    text = (DASHBOARDS / "compose/prometheus.yml").read_text()
    file.write_text(text.replace("/run/secrets/metrics-token", str(token)))
    done = subprocess.run(
        [needed("promtool"), "check", "config", "--lint=all", "--lint-fatal", str(file)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
