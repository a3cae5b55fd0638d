"""The image's Dockerfile, read without building it; tests/system/test_container_image.py builds and runs the image."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.kit.programs.image_facts import dockerfile_facts

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE, SCRIPT = ROOT / "build/docker/Dockerfile", ROOT / "scripts/image"


def test_dockerfile_facts() -> None:
    facts = dockerfile_facts(DOCKERFILE)
    assert (facts["Entrypoint"], facts["Cmd"]) == (["/opt/coder"], ["server"])
    assert (facts["User"], facts["WorkingDir"]) == ("1000:1000", "/home/coder")
    assert facts["ExposedPorts"] == {"3000/tcp": {}} and facts["Volumes"] == {"/home/coder/.config": {}}
    assert {name.partition("=")[0] for name in facts["Env"]} >= {"HOME", "PATH", "CODER_CONFIG_DIR"}
    assert facts["Labels"].keys() == {
        f"org.opencontainers.image.{name}" for name in ("title", "description", "licenses", "version")
    }


def test_script_states_no_fact_again() -> None:
    """The script takes packages, users and settings from the Dockerfile, and gives every argument that it has."""
    text, script = DOCKERFILE.read_text(), SCRIPT.read_text()
    assert not re.search(r"openssh-client|useradd|ENTRYPOINT|CODER_HTTP_ADDRESS", script)
    given = set(re.findall(r'--build-arg "(\w+)=', script)) | set(re.findall(r'"(BASE|TERRAFORM)=', script))
    assert set(re.findall(r"^ARG (\w+)", text, re.MULTILINE)) - {"PACKAGES"} == given
    epochs = re.findall(r"EPOCH=(\d+)", text + script)
    assert len(epochs) == 2 and len(set(epochs)) == 1


def test_largest_layer_changes_least() -> None:
    """The program is copied last: an upgrade transfers one layer."""
    stage = re.split(r"^FROM ", DOCKERFILE.read_text(), flags=re.MULTILINE)[-1]
    steps = [line.split()[0] for line in stage.splitlines() if line.startswith(("RUN ", "COPY "))]
    assert steps == ["RUN", "RUN", "COPY", "COPY"] and "/opt/coder\n" in stage.split("COPY ")[-1]


def test_script_rejects_bad_arguments(tmp_path: Path) -> None:
    cases = {("--out",): "needs a value", ("--what",): "unknown argument", ("--program", "none"): "is missing"}
    for words, reason in cases.items():
        done = subprocess.run([SCRIPT, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and reason in done.stderr, words
