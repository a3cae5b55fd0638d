"""The user documents on external provisioners and external workspaces and on the architecture, sentence by sentence.

Each test's id is the sentence it checks. All run on the built program (`./scripts/test --binary`); the suite runs those
marked as a sample on the sources. Sentences about pages of the dashboard are in `test_dashboard.py` and its neighbours.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from coder.domain.agents.init_scripts import PLATFORMS
from tests.kit.free_ports import free_port
from tests.kit.paths import ROOT
from tests.kit.server.document_shell import DocumentShell, open_document_shell

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(sys.platform != "linux", reason="install.sh fetches a program for Linux"),
    pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not installed"),
    pytest.mark.skipif(not shutil.which("curl"), reason="the documents use curl"),
]
EXTERNAL = "externally-managed-workspace"
BOX = 'resource "terraform_data" "box" {}\n'
CODER = 'terraform {\n  required_providers {\n    coder = { source = "coder/coder" }\n  }\n}\n'
Check = Callable[[DocumentShell], None]
_PROVISIONERS: list[tuple[str, Check, bool]] = []
_MACHINES: list[tuple[str, Check, bool]] = []


def sentence(document: list[tuple[str, Check, bool]], text: str, *, sample: bool = False) -> Callable[[Check], Check]:
    """Register the check of a document's sentence; `sample`: the suite runs it on the sources, too."""

    def add(check: Check) -> Check:
        document.append((text, check, sample))
        return check

    return add


def _chosen(document: list[tuple[str, Check, bool]]) -> list[object]:
    built = "CODER_TEST_BINARY" in os.environ
    return [pytest.param(check, id=text) for text, check, sample in document if built or sample]


@pytest.fixture(scope="module")
def provisioners() -> Iterator[DocumentShell]:
    with open_document_shell("--provisioner-daemons=0") as place:
        yield place


@pytest.fixture(scope="module")
def machines() -> Iterator[DocumentShell]:
    with open_document_shell() as place:
        template = place.server.folder / EXTERNAL
        place.run(f"coder templates init --id {EXTERNAL} {template}")
        place.run(f"coder templates push {EXTERNAL} -d {template} -y")
        place.run(f"coder external-workspaces create hello-world --template={EXTERNAL} -y")
        yield place


def _listed(place: DocumentShell) -> list[dict[str, str]]:
    rows = place.json("coder provisioner list -o json")
    return [row for row in rows if row["status"] != "offline"]


def _wait_for_workers(place: DocumentShell, count: int) -> None:
    place.wait(lambda: len(_listed(place)) == count, f"{count} provisioners")


# --- External provisioners


@sentence(_PROVISIONERS, "coder server --provisioner-daemons=0", sample=True)
def _(place: DocumentShell) -> None:
    assert _listed(place) == []


@sentence(_PROVISIONERS, "authenticated as a user with the Owner or Template Admin role")
def _(place: DocumentShell) -> None:
    refused = place.run("coder provisionerd start", token=place.member("mia"), code=1)
    assert "aren't allowed" in refused and "scope=user" in refused
    with place.running("coder provisionerd start", until="connected", token=place.member("tom", "template-admin")):
        _wait_for_workers(place, 1)


@sentence(
    _PROVISIONERS, "Generic provisioners can pick up any build job from templates without provisioner tags", sample=True
)
def _(place: DocumentShell) -> None:
    folder = place.template("generic", BOX)
    with place.running("coder provisionerd start", until="connected"):
        place.run(f"coder templates create generic -d {folder} -y")
        place.run("coder create plain --template=generic -y")
    jobs = place.json("coder provisioner jobs list -o json")
    assert {job["status"] for job in jobs} == {"succeeded"}


@sentence(
    _PROVISIONERS,
    "Tagged provisioners can be used to pick up build jobs from templates with matching tags",
    sample=True,
)
def _(place: DocumentShell) -> None:
    folder = place.template("tagged", BOX)
    start = "coder provisionerd start \\\n  --tag environment=on_prem \\\n  --tag data_center=chicago"
    with place.running(start, until="connected"):
        place.run(f"coder templates create on-prem \\\n  --provisioner-tag environment=on_prem -d {folder} -y")
        place.run(
            "coder templates create on-prem-chicago \\\n  --provisioner-tag environment=on_prem \\\n"
            f"  --provisioner-tag data_center=chicago -d {folder} -y"
        )
        place.run("coder create exact --template=on-prem-chicago -y")


@sentence(_PROVISIONERS, "tagged provisioners can also pick jobs from untagged templates")
def _(place: DocumentShell) -> None:
    folder = place.template("untagged", BOX)
    with place.running("coder provisionerd start --tag environment=on_prem", until="connected"):
        place.run(f"coder templates create untagged -d {folder} -y")


@sentence(_PROVISIONERS, "User provisioners can only pick up jobs from user-tagged templates")
def _(place: DocumentShell) -> None:
    folder = place.template("own", BOX)
    push = f"coder templates push without-tags -d {folder} -y"

    def waiting() -> list[str]:
        jobs = place.json("coder provisioner jobs list -o json")
        return [job["id"] for job in jobs if job["status"] == "pending"]

    with (
        place.running("coder provisionerd start --tag scope=user", until="connected"),
        place.running(push, role="waits"),
    ):
        place.wait(waiting, "the job of the other template")
        left = waiting()
        place.run(f"coder templates create on-user --provisioner-tag scope=user -d {folder} -y")
        assert waiting() == left, "the provisioner built the later template and left this job"


@sentence(_PROVISIONERS, "any Coder can run user provisioners")
def _(place: DocumentShell) -> None:
    token = place.member("uma")
    with place.running("coder provisionerd start --tag scope=user", until="connected", token=token):
        _wait_for_workers(place, 1)


@sentence(_PROVISIONERS, "Each provisioner can run a single concurrent workspace build")
def _(place: DocumentShell) -> None:
    """Three provisioners run three builds at the same time; the fourth build waits."""
    gate = place.server.folder / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.1; done"
    source = CODER + (
        'data "coder_workspace" "me" {}\n'
        f'resource "terraform_data" "box" {{\n  provisioner "local-exec" {{\n    command = "{wait}"\n  }}\n}}\n'
    )
    folder = place.template("slow", source)
    with (
        place.running("coder provisionerd start --name one", until="connected", role="one"),
        place.running("coder provisionerd start --name two", until="connected", role="two"),
        place.running("coder provisionerd start --name three", until="connected", role="three"),
    ):
        place.run(f"coder templates create slow -d {folder} -y")
        for number in range(4):
            place.run(f"coder create slow{number} --template=slow -y --no-wait")

        def states() -> list[str]:
            jobs = place.json("coder provisioner jobs list -o json")
            return sorted(job["status"] for job in jobs if job["metadata"].get("workspace_name", "").startswith("slow"))

        place.wait(lambda: states() == ["pending", "running", "running", "running"], "three builds at the same time")
        gate.touch()
        place.wait(lambda: states() == ["succeeded"] * 4, "the fourth build")


@sentence(_PROVISIONERS, "curl -L install.sh | sh, export CODER_URL, CODER_SESSION_TOKEN, coder provisionerd start")
def _(place: DocumentShell) -> None:
    lines = (
        f"curl -L {place.url}/install.sh | sh",
        f"export PATH=$CODER_INSTALL_PREFIX/bin:$PATH CODER_URL={place.url}",
        f"export CODER_SESSION_TOKEN={place.server.token}",
        "coder provisionerd start",
    )
    with place.running("\n".join(lines), until="connected", role="vm", token="") as log:
        assert "vm/local/bin/coder" in log.read_text() and "slim" not in log.read_text()
        _wait_for_workers(place, 1)


@sentence(
    _PROVISIONERS, "docker run --entrypoint /opt/coder -e CODER_URL=https://coder.example.com/ provisionerd start"
)
def _(place: DocumentShell) -> None:
    image = (ROOT / "build/docker/Dockerfile").read_text()
    assert "/opt/coder\n" in image and "/usr/local/bin/terraform" in image
    line = f"CODER_URL={place.url}/ coder provisionerd start"
    with place.running(line, until="connected"):
        _wait_for_workers(place, 1)


# --- Architecture


@sentence(_PROVISIONERS, "provisionerd has no database access")
def _(place: DocumentShell) -> None:
    """It needs the server's URL and a token only: nothing of the server's data directory is named to it."""
    with place.running("env -u CODER_CONFIG_DIR coder provisionerd start", until="connected", role="moon") as log:
        assert "postgres" not in log.read_text()
        assert not any((place.server.folder / "moon").rglob("PG_VERSION"))


@sentence(_PROVISIONERS, "provisioners can have different terraform versions")
def _(place: DocumentShell) -> None:
    marks = []
    for name in ("old", "new"):
        program, mark = place.server.folder / f"terraform-{name}", place.server.folder / f"ran-{name}"
        program.write_text(f'#!/bin/sh\ntouch "{mark}"\nexec terraform "$@"\n')
        program.chmod(0o755)
        folder = place.template(f"by-{name}", BOX)
        start = f"coder provisionerd start --tag version={name} --terraform-path {program}"
        with place.running(start, until="connected"):
            place.run(f"coder templates create by-{name} --provisioner-tag version={name} -d {folder} -y")
        marks.append(mark.exists())
    assert marks == [True, True]


@sentence(_PROVISIONERS, "Each resource may also be persistent or ephemeral")
def _(place: DocumentShell) -> None:
    source = CODER + (
        'data "coder_workspace" "me" {}\nresource "terraform_data" "disk" {}\n'
        'resource "terraform_data" "machine" {\n  count = data.coder_workspace.me.start_count\n}\n'
    )
    folder = place.template("both", source)
    with place.running("coder provisionerd start", until="connected"):
        place.run(f"coder templates create both -d {folder} -y")
        place.run("coder create kept --template=both -y")
        before = _resources(place, "kept")
        place.run("coder stop kept -y")
        assert before == {"disk", "machine"} and _resources(place, "kept") == {"disk"}


def _resources(place: DocumentShell, name: str) -> set[str]:
    found = place.server.request("GET", f"/api/v2/users/me/workspace/{name}", None, place.server.token)
    return {row["name"] for row in found["latest_build"]["resources"] if row["type"] == "terraform_data"}


@sentence(_MACHINES, "the Coder server runs built-in provisioner daemons, which execute terraform", sample=True)
def _(place: DocumentShell) -> None:
    assert _listed(place), "none is built in"
    folder = place.template("builtin", BOX)
    place.run(f"coder templates push builtin -d {folder} -y")


@sentence(_MACHINES, "coderd stores its state in Postgres and is bundled with provisionerd into one service")
def _(place: DocumentShell) -> None:
    assert any((place.server.folder / "srv/config").rglob("PG_VERSION"))


# --- External workspaces


@sentence(_MACHINES, "We provide an example template on how to set up external workspaces")
def _(place: DocumentShell) -> None:
    assert EXTERNAL in place.run("coder templates init --help")
    (template,) = [row for row in place.json("coder templates list -o json") if row["Template"]["name"] == EXTERNAL]
    assert template["Template"]["active_version_id"]


@sentence(_MACHINES, "Validates that the template includes a coder_external_agent resource")
def _(place: DocumentShell) -> None:
    folder = place.template("without", BOX)
    place.run(f"coder templates push without -d {folder} -y")
    refused = place.run("coder external-workspaces create other --template=without -y", code=1)
    assert "does not have an external agent" in refused


@sentence(_MACHINES, "the workspace is registered in Coder but marked as requiring an external agent")
def _(place: DocumentShell) -> None:
    place.run(f"coder external-workspaces create registered --template={EXTERNAL} -y")
    found = place.server.request("GET", "/api/v2/users/me/workspace/registered", None, place.server.token)
    assert found["latest_build"]["has_external_agent"] is True
    assert not place.is_connected("registered")


@sentence(_MACHINES, "coder external-workspaces list", sample=True)
def _(place: DocumentShell) -> None:
    head, *rows = place.run("coder external-workspaces list").splitlines()
    columns = ["WORKSPACE", "TEMPLATE", "STATUS", "HEALTHY", "LAST BUILT", "CURRENT VERSION", "OUTDATED"]
    assert re.split(r" {2,}", head.strip()) == columns
    (row,) = [row for row in rows if "hello-world" in row]
    assert EXTERNAL in row and "Started" in row and row.strip().endswith("false")


@sentence(_MACHINES, "coder external-workspaces agent-instructions hello-world", sample=True)
def _(place: DocumentShell) -> None:
    printed = place.run("coder external-workspaces agent-instructions hello-world").strip().splitlines()
    assert printed[0] == "Please run the following command to attach external agent to the workspace hello-world:"
    url = re.escape(place.url)
    wanted = rf'curl -fsSL "{url}/api/v2/init-script/linux/amd64" \| CODER_AGENT_TOKEN="[0-9a-f-]{{36}}" sh'
    assert re.fullmatch(wanted, printed[-1]), printed


@sentence(_MACHINES, "coder external-workspaces agent-instructions hello-world --output=json", sample=True)
def _(place: DocumentShell) -> None:
    printed = place.json("coder external-workspaces agent-instructions hello-world --output=json")
    assert list(printed) == ["workspace_name", "agent_name", "auth_type", "auth_token", "init_script"]
    assert (printed["workspace_name"], printed["agent_name"], printed["auth_type"]) == ("hello-world", "main", "token")
    assert printed["init_script"] == place.attach_command("hello-world")
    assert printed["auth_token"] in printed["init_script"]


@sentence(_MACHINES, "Windows: amd64 or arm64, Linux: amd64, arm64 or armv7, macOS: amd64 or arm64")
def _(place: DocumentShell) -> None:
    assert len(PLATFORMS) == 7
    for system, architecture in PLATFORMS:
        with urllib.request.urlopen(f"{place.url}/api/v2/init-script/{system}/{architecture}", timeout=60) as answer:
            assert answer.status == 200 and f"coder-{system}-{architecture}" in answer.read().decode().replace(
                "${ARCH}", architecture
            )


@sentence(_MACHINES, "the command users need to run on the external machine to start the agent", sample=True)
def _(place: DocumentShell) -> None:
    with place.running(place.attach_command("hello-world"), role="machine", token=""):
        place.wait(lambda: place.is_connected("hello-world"), "the connection")
        # The agent's services: SSH with the exit code, liveness checks.
        assert place.run("coder ssh hello-world -- 'echo here; exit 3'", code=3).splitlines()[0] == "here"
        (row,) = [row for row in place.run("coder external-workspaces list").splitlines() if "hello-world" in row]
        assert " true " in row


@sentence(_MACHINES, "An agent offers port forwarding and startup_script automation")
def _(place: DocumentShell) -> None:
    mark = place.server.folder / "script-ran"
    source = CODER + (
        'resource "coder_agent" "main" {\n  os = "linux"\n  arch = "amd64"\n'
        f'  startup_script = "touch {mark}"\n}}\n'
        'resource "coder_external_agent" "main" {\n  agent_id = coder_agent.main.id\n}\n'
    )
    folder = place.template("scripted", source)
    place.run(f"coder templates push scripted -d {folder} -y")
    place.run("coder external-workspaces create scripted --template=scripted -y")
    port = free_port()
    target = place.url.rpartition(":")[2]  # the server stands for a program on the machine
    with place.running(place.attach_command("scripted"), role="machine", token=""):
        place.wait(mark.exists, "the startup script")
        with place.running(f"coder port-forward scripted --tcp {port}:{target}", role="forward"):

            def answers() -> bool:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
                        return bool(answer.status == 200)
                except OSError:
                    return False

            place.wait(answers, "an answer through the forwarded port")


@sentence(_MACHINES, "coderd offers Dashboard, Workspace Web Applications and Agent registration")
def _(place: DocumentShell) -> None:
    app = free_port()
    source = CODER + (
        'resource "coder_agent" "main" {\n  os = "linux"\n  arch = "amd64"\n}\n'
        'resource "coder_external_agent" "main" {\n  agent_id = coder_agent.main.id\n}\n'
        'resource "coder_app" "web" {\n  agent_id = coder_agent.main.id\n  slug = "web"\n'
        f'  url = "http://localhost:{app}"\n}}\n'
    )
    folder = place.template("web", source)
    (folder / "index.html").write_text("the application")
    place.run(f"coder templates push web -d {folder} -y")
    place.run("coder external-workspaces create web --template=web -y")
    with (
        place.running(f"exec {sys.executable} -m http.server -b 127.0.0.1 -d {folder} {app}", role="app"),
        place.running(place.attach_command("web"), role="machine", token=""),
    ):
        place.wait(lambda: place.is_connected("web"), "the registration")
        request = urllib.request.Request(f"{place.url}/@admin/web/apps/web/")
        request.add_header("Coder-Session-Token", place.server.token)
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.read() == b"the application"
    with urllib.request.urlopen(place.url, timeout=60) as answer:
        assert answer.status == 200


@sentence(_MACHINES, "Deleting an external workspace removes the agent token and record, not the compute resource")
def _(place: DocumentShell) -> None:
    place.run(f"coder external-workspaces create gone --template={EXTERNAL} -y")
    token = place.json("coder external-workspaces agent-instructions gone --output=json")["auth_token"]
    with place.running(place.attach_command("gone"), role="remaining", token=""):
        place.wait(lambda: place.is_connected("gone"), "the connection")
        place.run("coder delete gone -y")
        request = urllib.request.Request(f"{place.url}/api/v2/workspaceagents/me/gitsshkey")
        request.add_header("Coder-Session-Token", token)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)
        refused.value.close()
        assert refused.value.code == 401
        assert "gone" not in place.run("coder list")
        assert (place.server.folder / "remaining").is_dir()


@sentence(_MACHINES, "A stopped external workspace stays an external workspace", sample=True)
def _(place: DocumentShell) -> None:
    place.run(f"coder external-workspaces create paused --template={EXTERNAL} -y")
    place.run("coder stop paused -y")
    (row,) = [row for row in place.run("coder external-workspaces list").splitlines() if "paused" in row]
    assert "Stopped" in row
    assert "coder start paused" in place.run("coder external-workspaces agent-instructions paused", code=1)
    place.run("coder start paused -y")
    assert json.dumps(place.url)[1:-1] in place.attach_command("paused")


@pytest.mark.parametrize("check", _chosen(_PROVISIONERS))
def test_provisioner_sentence(provisioners: DocumentShell, check: Check) -> None:
    check(provisioners)


@pytest.mark.parametrize("check", _chosen(_MACHINES))
def test_machine_sentence(machines: DocumentShell, check: Check) -> None:
    check(machines)
