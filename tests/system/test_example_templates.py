"""`terraform validate` of the bundled templates, and of a composed one: those whose providers are at hand.

Ours is always there, served in process. A folder with others is named by TERRAFORM_PROVIDER_MIRROR, in the layout of
`terraform providers mirror`; docs/guides/templates.md says which templates were validated with which.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import trio

from coder.base.child_env import child_env
from coder.coderd.services.templates.builder.catalogue import BuilderModule, bases, modules
from coder.coderd.services.templates.builder.composition import Chosen, compose
from coder.coderd.services.templates.builder.values import literal
from coder.provisionerd.terraform.bundle import required_providers
from coder.provisionerd.terraform.provider.serving import serve_provider
from tests.kit.server.server_process import ROOT

pytestmark = [pytest.mark.system, pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not here")]

EXAMPLES = ROOT / "coder" / "coderd" / "examples"
HOSTILE = 'a"b\'c ${x} %{y} \\\\n\n}\nEOT\n\tresource "x" "y" {'
FIXED = {("web-app", "share"): "owner", ("environment-variable", "name"): "NAME"}
"""Values of variables that have rules of their own."""
MIRROR = Path(os.environ.get("TERRAFORM_PROVIDER_MIRROR", "/nonexistent"))


def at_hand() -> list[str]:
    """Names of the examples all of whose providers can be had."""
    return [
        folder.name
        for folder in sorted(EXAMPLES.iterdir())
        if all((MIRROR / "registry.terraform.io" / source).is_dir() for source in required_providers(folder))
    ]


def test_some_need_no_other_provider() -> None:
    assert {"externally-managed-workspace", "local-process", "scratch"} <= set(at_hand())


@pytest.mark.parametrize("name", at_hand())
async def test_it_is_valid(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    await validate(folder)


async def validate(folder: Path) -> None:
    """Require that `terraform validate` accepts a template without a deprecation."""
    plugins = [f"-plugin-dir={MIRROR}"] if MIRROR.is_dir() else []
    said = ""
    async with serve_provider() as provider:
        env = child_env({"TF_REATTACH_PROVIDERS": provider.reattach})
        for arguments in (["init", "-no-color", "-backend=false", *plugins], ["validate", "-no-color"]):
            done = await trio.run_process(
                ["terraform", *arguments], cwd=folder, env=env, capture_stdout=True, capture_stderr=True, check=False
            )
            said = (done.stdout + done.stderr).decode()
            assert done.returncode == 0, said
    assert "Success! The configuration is valid." in said and "deprecated" not in said, said


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def filled(module: BuilderModule) -> Chosen:
    """Return a module with a hostile text for each of its texts, and other values where only some are allowed."""
    values = {item.name: HOSTILE for item in module.variables if item.type == "string"}
    values |= {item.name: "true" for item in module.variables if item.type == "bool"}
    values |= (
        {"port": str(9000 + list(modules()).index(module.id))} if "port" in {v.name for v in module.variables} else {}
    )
    return Chosen(module, {name: FIXED.get((module.id, name), value) for name, value in values.items()})


async def test_every_module_is_valid(tmp_path: Path) -> None:
    """All modules at once, on the base that needs no other provider; takes two seconds."""
    chosen = [filled(module) for module in modules().values() if module.id != "vscode-web"]
    await validate(write(tmp_path, compose(bases()["scratch"], {}, chosen)))
    await validate(write(tmp_path / "web", compose(bases()["scratch"], {}, [filled(modules()["vscode-web"])])))


def test_compositions_are_formatted(tmp_path: Path) -> None:
    for base in bases().values():
        values = {item.name: {"bool": "true"}.get(item.type, HOSTILE) for item in base.variables}
        fitting = [filled(module) for module in modules().values() if base.os in module.compatible_os]
        chosen = [item for item in fitting if item.module.id != "vscode-web"]
        write(tmp_path / base.id, compose(base, values, chosen))
    command = ["terraform", "fmt", "-check", "-recursive", "-diff", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_terraform_reads_literals_as_text(tmp_path: Path) -> None:
    """Literals of hostile texts mean these texts to Terraform itself."""
    texts = [
        HOSTILE,
        HOSTILE + "\n",
        *("${x}", "$${x}", "$$${x}", "%%{if}", "\n", "\t\n\n", "EOT\n EOT_\n", "\r\n", "é\x7f\x01"),
    ]
    lines = "".join(f"  t{number} = {literal(text)}\n" for number, text in enumerate(texts))
    (tmp_path / "main.tf").write_text(f"locals {{\n{lines}}}\n")
    question = "base64encode(jsonencode([" + ", ".join(f"local.t{number}" for number in range(len(texts))) + "]))\n"
    done = subprocess.run(
        ["terraform", "console"], cwd=tmp_path, input=question, capture_output=True, text=True, check=True
    )
    assert json.loads(base64.b64decode(done.stdout.strip().strip('"'))) == texts
