"""Web terminal and support bundle, from separate processes."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import trio

from coder.base.child_env import child_env
from coder.net.policy import DialPolicy
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import workspace_world
from tests.kit.paths import ROOT


async def test_a_terminal_and_a_bundle(tmp_path: Path) -> None:
    async with workspace_world(agent_fields={"env": {"STAGE": "do not tell"}}) as view_context:
        world = view_context.world
        env = child_env(
            {
                "CODER_URL": world.url,
                "CODER_SESSION_TOKEN": world.token,
                "HOME": str(tmp_path),
                "CODER_CONFIG_DIR": str(tmp_path / "config"),
            }
        )

        async def coder(*words: str, stdin: bytes = b"", code: int = 0) -> str:
            with trio.fail_after(60):
                done = await trio.run_process(
                    [sys.executable, "-m", "coder", *words],
                    cwd=ROOT,
                    env=env,
                    stdin=stdin,
                    check=False,
                    capture_stdout=True,
                    stderr=subprocess.STDOUT,
                )
            output: str = done.stdout.decode()
            assert done.returncode == code, output
            return output

        async with running_agent(view_context, DialPolicy(world.url), tmp_path / "agent"):
            output = await coder("exp", "rpty", "dev", "--", "echo", "sum=$((40+2))")
            assert "sum=42" in output
            assert "--reconnect" in output
            assert "not a UUID" in await coder("exp", "rpty", "-r", "mine", "dev", code=1)
            await coder("support", "bundle", "dev", "-y", "-O", str(tmp_path / "bundle.zip"))
        assert "answer it with --yes" in await coder("support", "bundle", code=1)
    assert stat.S_IMODE((tmp_path / "bundle.zip").stat().st_mode) == 0o600
    with zipfile.ZipFile(tmp_path / "bundle.zip") as bundle:
        names = set(bundle.namelist())
        everything = "".join(bundle.read(name).decode(errors="replace") for name in names)
        agent = json.loads(bundle.read("agent/main/agent.json"))
    expected = {"deployment/buildinfo.json", "deployment/config.json", "deployment/health.json", "manifest.json"}
    assert names >= expected | {"workspace/workspace.json", "workspace/build_logs.json", "cli_logs.txt"}
    assert agent["environment_variables"] == {"STAGE": "***"}
    for secret in (world.token, view_context.token, "do not tell"):
        assert secret not in everything
