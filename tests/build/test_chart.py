"""The Helm chart and the image: rendered by helm, checked against Kubernetes' schemas and against the program.

`scripts/chart` renders with the real tool; what it wrote lies in tests/data/chart with a hash of what it was made from.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from coder.cli.core.command_table import COMMANDS
from coder.coderd.config.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))
import deb

CHART, CASES = ROOT / "build/helm", ROOT / "tests/data/chart"
NAMES = sorted(path.name.removesuffix(".values.yaml") for path in CASES.glob("*.values.yaml"))
VERSIONS = ("1.27", "1.31", "1.36")
OUTSIDE = {"KUBE_POD_IP", "HOME", "PATH", "CODER_CONFIG_DIR", "CODER_URL"}
"Not settings of the server: the chart's own, the shell's, the command line's."


def rendered(name: str) -> list[dict[str, Any]]:
    return [found for found in yaml.safe_load_all((CASES / f"{name}.rendered.yaml").read_text()) if found]


def one(name: str, kind: str) -> dict[str, Any]:
    (found,) = [document for document in rendered(name) if document["kind"] == kind]
    return found


def container(name: str) -> dict[str, Any]:
    found: dict[str, Any] = one(name, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    return found


def environment(name: str) -> dict[str, Any]:
    return {entry["name"]: entry.get("value") for entry in container(name)["env"]}


def test_probes_survive_an_absent_database() -> None:
    """`/readyz` fails while the database is away: it may take a replica from the service, never restart the pod."""
    found = container("everything")
    assert found["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert found["livenessProbe"]["httpGet"]["path"] == "/livez"


def test_rendered_chart_is_current() -> None:
    files = [path for path in CHART.rglob("*") if path.is_file()] + list(CASES.glob("*.values.yaml"))
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n"
        for name, path in sorted((path.relative_to(ROOT).as_posix(), path) for path in files)
    ]
    now = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert (CASES / "chart.sha256").read_text().strip() == now, "run scripts/chart"


@pytest.mark.skipif(not (os.environ.get("CODER_HELM") or shutil.which("helm")), reason="helm is not installed")
def test_helm_renders_the_same_today() -> None:
    subprocess.run([ROOT / "scripts/chart", "--check"], check=True, capture_output=True)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_kubernetes_understands_every_object(name: str, version: str) -> None:
    validator = pytest.importorskip("kubernetes_validate")
    documents = rendered(name)
    assert documents
    for document in documents:
        validator.validate(document, version, strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_names_fit_together(name: str) -> None:
    """What refers to another object of the chart finds it."""
    spec = one(name, "Deployment")["spec"]
    pod = spec["template"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert len(volumes) == len(pod["volumes"])
    mounts = container(name)["volumeMounts"]
    assert {mount["name"] for mount in mounts} <= volumes
    assert len({mount["mountPath"] for mount in mounts}) == len(mounts)
    ports = {port["name"] for port in container(name)["ports"]}
    for document in rendered(name):
        if document["kind"] == "Service":
            assert document["spec"]["selector"].items() <= labels.items()
            assert {port["targetPort"] for port in document["spec"]["ports"]} <= ports
        if document["kind"] == "ServiceAccount":
            assert document["metadata"]["name"] == pod["serviceAccountName"]
        if document["kind"] == "PersistentVolumeClaim":
            claims = [v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"] if "persistentVolumeClaim" in v]
            assert claims == [document["metadata"]["name"]]
    names = [entry["name"] for entry in container(name)["env"]]
    assert len(names) == len(set(names)), "Kubernetes would take the last"


@pytest.mark.parametrize("name", NAMES)
def test_program_accepts_chart_settings(name: str) -> None:
    words = " ".join(word for word in container(name)["args"] if not word.startswith("-"))
    assert words in COMMANDS
    if words == "server":
        known = {env for option in OPTIONS for env in (option.env,)}
        assert environment(name).keys() - known - OUTSIDE == set()


def test_the_cases() -> None:
    assert environment("tls")["CODER_TLS_CERT_FILE"].split(",") == [
        "/etc/ssl/certs/coder/coder-tls/tls.crt",
        "/etc/ssl/certs/coder/apps-tls/tls.crt",
    ]
    assert environment("tls")["CODER_DERP_SERVER_RELAY_URL"] == "https://$(KUBE_POD_IP):8443"
    assert environment("volume")["CODER_ACCESS_URL"] == "http://coder.here.svc.cluster.local"
    assert one("volume", "Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    assert [rule["host"] for rule in one("ingress", "Ingress")["spec"]["rules"]] == [
        "coder.example.com",
        "*.apps.example.com",
    ]
    assert not [d for d in rendered("proxy") if d["kind"] == "Role"]
    places = [d["metadata"]["namespace"] for d in rendered("everything") if d["kind"] == "Role"]
    assert places == ["here", "dev"]
    subjects = [d["subjects"][0]["namespace"] for d in rendered("everything") if d["kind"] == "RoleBinding"]
    assert subjects == ["here", "here"]
    assert [d["metadata"]["name"] for d in rendered("everything") if d["kind"] == "ConfigMap"] == ["coder-more"]


@pytest.mark.parametrize("name", NAMES)
def test_containers_are_unprivileged_and_read_only(name: str) -> None:
    context = container(name)["securityContext"]
    assert context["runAsNonRoot"] and context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"]
    assert {"/tmp", "/home/coder/.cache", "/home/coder/.config"} <= {
        m["mountPath"] for m in container(name)["volumeMounts"]
    }


def test_chart_version_matches_release() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == deb.version()


def test_image_sets_known_variables() -> None:
    text = (ROOT / "build/docker/Dockerfile").read_text()
    names = set(re.findall(r"^(?:ENV|   ) ([A-Z_]+)=", text, re.MULTILINE))
    known = {option.env for option in OPTIONS}
    assert names and names - known - OUTSIDE == set()
    terraform = re.search(r"TERRAFORM=hashicorp/terraform:([\d.]+)", text)
    assert terraform and f"TERRAFORM_VERSION={terraform[1]}\n" in (ROOT / "scripts/environment.sh").read_text()


def test_dockerfile_passes_lint() -> None:
    linter = Path(sys.executable).parent / "hadolint"
    if not linter.exists():
        pytest.skip("hadolint is not installed")
    subprocess.run([linter, ROOT / "build/docker/Dockerfile"], check=True)


def test_compose_names_settings_and_health() -> None:
    found = yaml.safe_load((ROOT / "build/docker/compose.yaml").read_text())["services"]
    known = {option.env for option in OPTIONS}
    assert found["coder"]["environment"].keys() <= known
    assert (
        found["coder"]["depends_on"]["database"]["condition"] == "service_healthy" and found["database"]["healthcheck"]
    )


OPEN = {"coder.resources", "coder.affinity", "coder.securityContext", "coder.podSecurityContext"}
"Handed on to Kubernetes as they are."


def declared(values: dict[str, Any], before: str = "") -> Iterator[str]:
    """Every name of values.yaml, dotted; what is empty or a list is somebody's own to fill."""
    for name, value in values.items():
        path = f"{before}{name}"
        yield path
        if isinstance(value, dict) and path not in OPEN:
            yield from declared(value, f"{path}.")


def used(template: str) -> set[str]:
    """Every value a template asks for: by its whole name, or from a variable that stands for a part."""
    stands_for = dict(re.findall(r"\$(\w+) *:= *\.Values\.([\w.]+)", template))
    found = set(re.findall(r"\.Values\.([\w.]+)", template))
    for variable, path in stands_for.items():
        found |= {f"{path}.{rest}" for rest in re.findall(rf"\${variable}\.([\w.]+)", template)}
    return found


def test_values_are_declared_and_used() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    known = set(declared(values))
    asked = set().union(*(used(path.read_text()) for path in (CHART / "templates").iterdir()))
    assert asked <= known, "not in values.yaml"
    parts = {name for name in known if any(other.startswith(f"{name}.") for other in known)}
    assert known - parts == (known - parts) & asked, "nobody reads it"
