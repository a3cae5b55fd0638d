"""What TAB offers: commands, flags, choices, and the names the deployment knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit.cli import run_cli
from tests.kit.odd_server import odd_server, reply

AGENT = "5d0a4f6e-8a35-4f7c-9a44-6a3c0f6f8f10"
WORKSPACE = {
    "id": AGENT,
    "latest_build": {"id": AGENT, "resources": [{"id": AGENT, "agents": [{"id": AGENT}]}]},
}
ANSWERS = {
    "/api/v2/workspaces?q=owner%3Ame": {"workspaces": [{"name": "web"}, {"name": "worker"}, {"name": "api"}]},
    "/api/v2/templates": [{"name": "docker"}, {"name": "scratch"}],
    "/api/v2/users": {"users": [{"username": "alice"}, {"username": "bob"}]},
    "/api/v2/users/me/organizations": [{"name": "coder"}],
    "/api/v2/users/me/workspace/web": WORKSPACE,
    f"/api/v2/workspaceagents/{AGENT}/listening-ports": {"ports": [{"port": 3000}, {"port": 8080}]},
}


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (["templates", "pu"], ["pull", "push"]), (["list", "--sea"], ["--search"]), (["list", "-o", ""],
         ["table", "json"]),
        (["ssh", "w"], ["web", "worker"]), (["start", ""], ["api", "web", "worker"]), (["ssh", "web", ""], []),
        (["create", "-t", "d"], ["docker"]), (["templates", "edit", ""], ["docker", "scratch"]),
        (["users", "suspend", "a"], ["alice"]), (["groups", "list", "--org", ""], ["coder"]),
        (["port-forward", "web", "--tcp", "8"], ["8080"]),
    ],
)  # fmt: skip
async def test_offers(line: list[str], offered: list[str], tmp_path: Path) -> None:
    with odd_server() as server:
        server.answer = lambda _method, path: reply(json.dumps(ANSWERS[path]))
        env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x", "COMPLETION_MODE": "1"}
        result = await run_cli(line, home=tmp_path, env=env)
        assert result.stdout.split() == offered
        assert server.failed is None


@pytest.mark.parametrize("body", ["null", "{}", "[{}]", "<html>", '{"workspaces": 7}'])
async def test_a_tab_never_fails(body: str, tmp_path: Path) -> None:
    with odd_server() as server:
        server.answer = lambda _method, _path: reply(body)
        env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x", "COMPLETION_MODE": "1"}
        result = await run_cli(["ssh", ""], home=tmp_path, env=env)
        assert (result.code, result.stdout, result.stderr) == (0, "", "")


async def test_without_a_session_nothing_is_offered(tmp_path: Path) -> None:
    result = await run_cli(["ssh", ""], home=tmp_path, env={"COMPLETION_MODE": "1"})
    assert (result.code, result.stdout, result.stderr) == (0, "", "")
