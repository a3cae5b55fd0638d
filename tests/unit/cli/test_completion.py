"""Shell completion of commands, flags, choices, and the deployment's names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit.programs.command_line import run_cli
from tests.kit.stand_ins.scripted_http_servers import odd_server, reply

AGENT = "5d0a4f6e-8a35-4f7c-9a44-6a3c0f6f8f10"
AGENT_OF_IT = {"id": AGENT, "name": "main", "apps": [{"id": AGENT, "slug": "code"}]}
WORKSPACE = {
    "id": AGENT,
    "latest_build": {"id": AGENT, "resources": [{"id": AGENT, "agents": [AGENT_OF_IT]}]},
}
ANSWERS = {
    "/api/v2/workspaces?q=owner%3Ame": {"workspaces": [{"name": "web"}, {"name": "worker"}, {"name": "api"}]},
    "/api/v2/templates": [{"name": "docker"}, {"name": "scratch"}],
    "/api/v2/users": {"users": [{"username": "alice"}, {"username": "bob"}]},
    "/api/v2/groups": [{"name": "staff"}],
    "/api/v2/tasks?q=owner%3Ame": {"tasks": [{"name": "nightly"}]},
    "/api/v2/users/me/secrets": [{"name": "key"}],
    "/api/v2/users/me/keys/tokens": [{"token_name": "ci"}, {"token_name": ""}],
    "/api/v2/workspaceproxies": {"regions": [{"name": "tokyo"}]},
    "/api/v2/users/me/organizations": [{"name": "coder"}],
    "/api/v2/users/me/workspace/web": WORKSPACE,
    f"/api/v2/workspaceagents/{AGENT}/listening-ports": {"ports": [{"port": 3000}, {"port": 8080}]},
}


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (["templates", "pu"], ["pull", "push"]),
        (["list", "--sea"], ["--search"]),
        (
            ["list", "-o", ""],
            ["table", "json"],
        ),
        (["ssh", "w"], ["web", "worker"]),
        (["start", ""], ["api", "web", "worker"]),
        (["ssh", "web", ""], []),
        (["create", "-t", "d"], ["docker"]),
        (["templates", "edit", ""], ["docker", "scratch"]),
        (["users", "suspend", "a"], ["alice"]),
        (["groups", "list", "--org", ""], ["coder"]),
        (["port-forward", "web", "--tcp", "8"], ["8080"]),
        (["port-forward", "web", "--udp", "3"], ["3000"]),
        (["schedule", "show", "w"], ["web", "worker"]),
        (["support", "bundle", "a"], ["api"]),
        (["external-workspaces", "health", "a"], ["api"]),
        (["users", "show", "b"], ["bob"]),
        (["organizations", "members", "add", "a"], ["alice"]),
        (["reset-password", "a"], ["alice"]),
        (["templates", "pull", "s"], ["scratch"]),
        (["templates", "pull", "scratch", ""], []),
        (["templates", "delete", "docker", "s"], ["scratch"]),
        (["templates", "versions", "archive", "d"], ["docker"]),
        (["create", "new", "--copy-parameters-from", "w"], ["web", "worker"]),
        (["create", ""], []),
        (["ssh", "-A", "w"], ["web", "worker"]),
        (["ssh", "--wait", "no", "a"], ["api"]),
        (["ssh", "--wait=no", "a"], ["api"]),
        (["--url", "", "-v", "list", "-o", "j"], ["json"]),
        (["tokens", "create", "--user=a"], ["--user=alice"]),
        (["list", "--output="], ["--output=table", "--output=json"]),
        (["list", "--output", "="], ["table", "json"]),
        (["list", "--output", "=", "j"], ["json"]),
        (["ssh", "--wait", "=", "no", "a"], ["api"]),
        (["list", "-c", "status,heal"], ["status,healthy"]),
        (["ssh", "web", "ls", "--"], []),
        (["ssh", "--", "w"], ["web", "worker"]),
        (
            ["autoupdate", "web", ""],
            ["always", "never"],
        ),
        (["open", "app", "web", ""], ["code"]),
        (["support", "bundle", "web", ""], ["main"]),
        (["groups", "edit", ""], ["staff"]),
        (["nonsense", ""], []),
        (["task", "delete", "nightly", ""], ["nightly"]),
        (["secret", "delete", ""], ["key"]),
        (["tokens", "remove", ""], ["ci"]),
        (["workspace-proxy", "edit", ""], ["tokyo"]),
        (
            ["exp", "sync", "--socket-path", "x", "li"],
            ["list"],
        ),
        (["templates", "--no-such"], []),
    ],
)
async def test_offers(line: list[str], offered: list[str], tmp_path: Path) -> None:
    with odd_server() as server:
        server.answer = lambda _method, path: reply(json.dumps(ANSWERS[path]))
        env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x", "COMPLETION_MODE": "1"}
        result = await run_cli(line, home=tmp_path, env=env)
        assert result.stdout.split() == offered, result.stderr
        assert server.failed is None


@pytest.mark.parametrize("body", ["null", "{}", "[{}]", "<html>", '{"workspaces": 7}'])
async def test_completion_never_fails(body: str, tmp_path: Path) -> None:
    with odd_server() as server:
        server.answer = lambda _method, _path: reply(body)
        env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x", "COMPLETION_MODE": "1"}
        result = await run_cli(["ssh", ""], home=tmp_path, env=env)
        assert (result.code, result.stdout, result.stderr) == (0, "", "")


async def test_no_session_offers_nothing(tmp_path: Path) -> None:
    result = await run_cli(["ssh", ""], home=tmp_path, env={"COMPLETION_MODE": "1"})
    assert (result.code, result.stdout, result.stderr) == (0, "", "")


async def test_uses_deployment_of_line(tmp_path: Path) -> None:
    with odd_server() as server:
        server.answer = lambda _method, path: reply(json.dumps(ANSWERS[path]))
        env = {"CODER_SESSION_TOKEN": "x", "COMPLETION_MODE": "1"}
        result = await run_cli(["--url", server.url, "templates", "edit", "d"], home=tmp_path, env=env)
        assert (result.stdout, len(server.asked)) == ("docker\n", 1)


@pytest.mark.parametrize("answer", ["", "Documents/PowerShell/Microsoft.PowerShell_profile.ps1", "no path"])
async def test_powershell_profile_path(answer: str, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    if answer:
        profile = f"{tmp_path}/{answer}" if "/" in answer else answer
        (tools / "pwsh").write_text(f'#!/bin/sh\ntest "$4" = \'$PROFILE\' && echo "{profile}"\n')
        (tools / "pwsh").chmod(0o755)
    path = tmp_path / (answer if "/" in answer else ".config/powershell/Microsoft.PowerShell_profile.ps1")
    for _ in range(2):  # a second time replaces the first
        result = await run_cli(["completion", "-s", "powershell"], home=tmp_path, env={"PATH": str(tools)})
        assert result.code == 0, result.stderr
        assert str(path) in result.stderr
        assert path.read_text().count("Register-ArgumentCompleter") == 1


async def test_other_lines_are_unchanged(tmp_path: Path) -> None:
    own = b"# caf\xe9\r\nalias x=y\r\n\techo\x0c"
    rc = tmp_path / ".bashrc"
    rc.write_bytes(own)
    for _ in range(2):
        result = await run_cli(["completion", "-s", "bash"], home=tmp_path)
        assert result.code == 0, result.stderr
        assert rc.read_bytes().startswith(own.rstrip() + b"\n# ---") and rc.read_bytes().count(b"START-CODER") == 1
    rc.write_bytes("# from Windows\n".encode("utf-16"))
    result = await run_cli(["completion", "-s", "bash"], home=tmp_path)
    assert result.code == 1 and "is not encoded in UTF-8" in result.stderr
    assert rc.read_bytes() == "# from Windows\n".encode("utf-16")


async def test_names_that_shells_would_run_are_withheld(tmp_path: Path) -> None:
    names = ["$(touch x)", "a;b", "`x`", "a b", "--yes", "a\nb", "fine-1.x", "grün"]

    def answer(_method: str, _path: str) -> bytes:
        return reply(json.dumps([{"name": name} for name in names]))

    with odd_server() as server:
        server.answer = answer
        env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x"}
        result = await run_cli(["completion", "words", "--", "templates", "edit", ""], home=tmp_path, env=env)
    assert result.stdout.splitlines() == ["fine-1.x", "grün"]
