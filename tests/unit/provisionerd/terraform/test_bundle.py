"""Bundles for machines without network: required providers, their collection, cleanup."""

from __future__ import annotations

import json
import platform
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from coder.base.errors import CoderError
from coder.cli.provisioning.bundle import _bundled
from coder.provisionerd.terraform import bundle
from coder.provisionerd.terraform.bundle import configuration_text, required_providers
from coder.provisionerd.terraform.provider.provider import platform_name
from tests.kit.programs.command_line import run_cli
from tests.kit.provisioners.terraform_recordings import TERRAFORM

NULL = "registry.terraform.io/hashicorp/null"


def test_required_providers(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text(
        'terraform {\n required_providers {\n  coder = { source = "coder/coder", version = "2.0.0" }\n'
        '  docker = { source = "kreuzwerker/docker", version = "~> 3.0" }\n  old = "1.2.3"\n }\n}\n'
        'resource "docker_image" "x" {}\nresource "random_id" "y" {}\ndata "coder_workspace" "me" {}\n'
        'resource "terraform_data" "z" {}\nprovider "aws" {}\n'
    )
    module = tmp_path / "box"
    module.mkdir()
    (module / "a.tf.json").write_text(
        json.dumps({"terraform": {"required_providers": {"d": {"source": "kreuzwerker/docker", "version": ">= 3.1"}}}})
    )
    (tmp_path / ".terraform/modules/far").mkdir(parents=True)
    (tmp_path / ".terraform/modules/far/x.tf").write_text('resource "nobody_asked" "x" {}')
    assert required_providers(tmp_path) == {
        "hashicorp/aws": "",
        "hashicorp/old": "1.2.3",
        "hashicorp/random": "",
        "kreuzwerker/docker": "~> 3.0, >= 3.1",
    }
    (tmp_path / "broken.tf").write_text("resource {{{")
    with pytest.raises(CoderError, match=r"broken\.tf cannot be read"):
        required_providers(tmp_path)


def test_bundled_examples_parse() -> None:
    found = {source for folder in _bundled() for source in required_providers(folder)}
    assert {"kreuzwerker/docker", "hashicorp/aws", "hashicorp/kubernetes", "hashicorp/google"} <= found
    assert not any("coder" in source for source in found)


FAKE = """#!{python}
import json, pathlib, sys
if sys.argv[1:3] != ["providers", "mirror"]: sys.exit("what?")
wanted = json.loads(pathlib.Path("main.tf.json").read_text())["terraform"]["required_providers"]
locked = pathlib.Path(".terraform.lock.hcl")
for entry in wanted.values():
    if entry["source"] == "no/body": sys.exit("Error: no such provider")
    version = locked.read_text() if locked.exists() else "9.9.9"
    for word in sys.argv[3:-1]:
        name = entry["source"].rpartition("/")[2]
        place = pathlib.Path(sys.argv[-1], "registry.terraform.io", entry["source"])
        place.mkdir(parents=True, exist_ok=True)
        (place / f"terraform-provider-{name}_{version}_{word.removeprefix('-platform=')}.zip").touch()
"""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A release site with a program that behaves like terraform's `providers mirror`."""
    asked: list[str] = []

    async def fetch(url: str, version: str, wanted: str, program: Path) -> None:
        asked.append(f"{url} {wanted}")
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(FAKE.replace("{python}", sys.executable))
        program.chmod(0o755)

    monkeypatch.setattr(bundle, "fetch_program", fetch)
    return asked


def _template(folder: Path, source: str, lock: str = "") -> Path:
    folder.mkdir()
    (folder / "main.tf").write_text(f'terraform {{\n required_providers {{\n  x = {{ source = "{source}" }}\n }}\n}}\n')
    if lock:
        (folder / ".terraform.lock.hcl").write_text(lock)
    return folder


async def test_bundle_command(tmp_path: Path, fake: list[str]) -> None:
    one = _template(tmp_path / "one", "hashicorp/null")
    two = _template(tmp_path / "two", "hashicorp/null", lock="3.2.1")
    target = tmp_path / "out"
    words = ["bundle", "-o", str(target), "--platform", "linux_arm64,windows_amd64", "--installed-at", "/opt/b/"]
    done = await run_cli([*words, str(one), str(two)], home=tmp_path)
    assert done.code == 0, done.stderr
    assert f"{NULL} 3.2.1\n{NULL} 9.9.9\n" in done.stdout
    assert "TF_CLI_CONFIG_FILE=/opt/b/terraform.rc" in done.stdout
    # This machine's own program collected them, and is removed when its platform was not requested.
    assert [line.split()[1] for line in fake] == list(dict.fromkeys((platform_name(), "linux_arm64", "windows_amd64")))
    programs = sorted(path.relative_to(target / "terraform").as_posix() for path in target.glob("terraform/*/*"))
    assert programs == ["linux_arm64/terraform", "windows_amd64/terraform.exe"]
    assert len(list(target.glob(f"providers/{NULL}/*.zip"))) == 4
    assert '"/opt/b/providers"' in (target / "terraform.rc").read_text()
    refused = await run_cli([*words, str(_template(tmp_path / "three", "no/body"))], home=tmp_path)
    assert refused.code == 1 and "no such provider" in refused.stderr
    assert (await run_cli(["bundle", str(tmp_path / "nowhere")], home=tmp_path)).code == 1


def _provider(mirror: Path) -> None:
    """Create a packed mirror with one provider whose program does nothing."""
    place = mirror / NULL
    place.mkdir(parents=True)
    name = f"terraform-provider-null_3.2.1_{platform_name()}.zip"
    with zipfile.ZipFile(place / name, "w") as packed:
        info = zipfile.ZipInfo("terraform-provider-null_v3.2.1")
        info.external_attr = (stat.S_IFREG | 0o755) << 16
        packed.writestr(info, "#!/bin/sh\nexit 1\n")
    (place / "index.json").write_text('{"versions": {"3.2.1": {}}}')
    archives = {platform_name(): {"url": name}}
    (place / "3.2.1.json").write_text(json.dumps({"archives": archives}))


@pytest.mark.skipif(platform.system() != "Linux", reason="names this platform's archive")
def test_mirror_is_the_only_source(tmp_path: Path) -> None:
    """A proxy without a listener stands for the network: every request to it fails."""
    _provider(tmp_path / "bundle/providers")
    rc = tmp_path / "terraform.rc"
    rc.write_text(configuration_text(str(tmp_path / "bundle/providers")))
    env: dict[str, Any] = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TF_CLI_CONFIG_FILE": str(rc)}
    env |= {"CHECKPOINT_DISABLE": "1", "HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}

    def init(folder: Path) -> subprocess.CompletedProcess[str]:
        command = [TERRAFORM, "init", "-input=false", "-no-color"]
        return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)

    done = init(_template(tmp_path / "has", "hashicorp/null"))
    assert done.returncode == 0, done.stderr
    assert "Installed hashicorp/null v3.2.1" in done.stdout
    failed = init(_template(tmp_path / "lacks", "hashicorp/other"))
    assert failed.returncode != 0 and "127.0.0.1:9" not in failed.stderr, "the registry was asked"
