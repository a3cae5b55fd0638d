"""`coder config-ssh`: what is written, what is remembered, what goes to which stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.cli import Result, run_cli
from tests.kit.odd_server import OddServer, odd_server, reply

SERVER = {"hostname_prefix": "coder.", "hostname_suffix": "coder", "ssh_config_options": {}}
IDS = [f"6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a1{number}" for number in range(3)]
AGENTS = [{"id": IDS[0], "name": "main"}, {"id": IDS[1], "name": "gpu"}]


def workspace(number: int, name: str, resources: list[dict[str, Any]] | None) -> dict[str, Any]:
    return {"id": IDS[number], "name": name, "latest_build": {"id": IDS[number], "resources": resources}}


WORKSPACES = {
    "workspaces": [
        workspace(0, "one", [{"id": IDS[0], "agents": AGENTS[:1]}]),
        workspace(1, "two", [{"id": IDS[0], "agents": AGENTS}]),
        workspace(2, "bare", None),
    ]
}


def answer(_method: str, path: str) -> bytes:
    return reply(json.dumps(SERVER if path.endswith("/deployment/ssh") else WORKSPACES))


@pytest.fixture
def server() -> Iterator[OddServer]:
    with odd_server() as server:
        server.answer = answer
        yield server


async def config_ssh(server: OddServer, home: Path, *words: str) -> Result:
    env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x"}
    return await run_cli(["config-ssh", "--ssh-config-file", str(home / "config"), *words], home=home, env=env)


async def test_previous_options_are_all_kept(server: OddServer, tmp_path: Path) -> None:
    given = ["--ssh-host-prefix", "my.", "--hostname-suffix", "mine", "--wait", "no", "--disable-autostart"]
    given += ["-o", "ForwardAgent yes", "-o", "Compression=yes"]
    assert (await config_ssh(server, tmp_path, "-y", *given)).code == 0
    written = (tmp_path / "config").read_text()
    assert "ssh --stdio --wait=no --disable-autostart=true --ssh-host-prefix my. %h" in written
    assert "Host *.mine" in written

    again = await config_ssh(server, tmp_path, "-y", "--use-previous-options")
    assert "No changes" in again.stderr
    assert (tmp_path / "config").read_text() == written


async def test_a_dry_run_has_the_difference_alone_on_stdout(server: OddServer, tmp_path: Path) -> None:
    result = await config_ssh(server, tmp_path, "--dry-run")
    assert result.code == 0
    assert result.stdout.startswith(f"--- {tmp_path}/config\n+++ ")
    assert "+Host coder.*\n" in result.stdout
    assert "would be made" in result.stderr
    assert not (tmp_path / "config").exists()


async def test_without_wildcard_each_workspace_has_its_hosts(server: OddServer, tmp_path: Path) -> None:
    assert (await config_ssh(server, tmp_path, "-y", "--no-wildcard")).code == 0
    written = (tmp_path / "config").read_text()
    assert "Host coder.bare coder.one coder.two coder.two.gpu coder.two.main\n" in written
    assert "Host bare.coder one.coder two.coder gpu.two.coder main.two.coder\n" in written
    assert "*" not in written.replace("/*", "")
    assert "# :no-wildcard=true\n" in written
