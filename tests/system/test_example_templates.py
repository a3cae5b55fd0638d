"""`terraform validate` of the bundled templates: those whose providers are at hand.

Ours is always there, served in process. A folder with others is named by TERRAFORM_PROVIDER_MIRROR, in the layout of
`terraform providers mirror`; docs/guides/templates.md says which templates were validated with which.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import trio

from coder.base.child_env import child_env
from coder.provisionerd.terraform.bundle import required_providers
from coder.provisionerd.terraform.provider.serving import serve_provider
from tests.kit.server.server_process import ROOT

pytestmark = [pytest.mark.system, pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not here")]

EXAMPLES = ROOT / "coder" / "coderd" / "examples"
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
