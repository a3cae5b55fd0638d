"""Requests of commands for their flags, and the output of the answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coder.base.json_types import Json
from coder.cli.core.failures import error_text
from coder.cli.core.parsing import parse
from coder.cli.declarations.network.ssh import SSH
from coder.cli.network.ssh_session import _needs_own_node
from coder.cli.people.users import next_step_of_refusal
from coder.net.errors import HttpError
from tests.kit.api.api_description import described
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.stand_ins.scripted_http_servers import OddServer, odd_server, reply

ID = "6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"
OTHER = "0c6b0a8e-71c6-4f41-8f0e-3a1a5f0f2b22"
MINE = "/api/v2/users/me/workspace/"


def plain(method: str, path: str) -> Any:
    """Return the reference's answer, from a deployment of one organization."""
    if path.partition("?")[0] == "/api/v2/users/me/organizations":
        return [{"id": ID, "name": "coder", "is_default": True}]
    return described(method, path)


@pytest.fixture
def server() -> Iterator[OddServer]:
    with odd_server(patience=10**9) as server:
        server.answer = lambda method, path: reply(json.dumps(plain(method, path)))
        yield server
        assert server.failed is None


async def run(line: str, server: OddServer, home: Path) -> Result:
    env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "AAAAAAAAAA-BBBBBBBBBBBBBBBBBBBBBB", "CODER_NO_OPEN": "true"}
    return await run_cli(line.split(), home=home, env={**env, "PATH": "/nonexistent"})


def builds(server: OddServer) -> list[Any]:
    """Return the requests."""
    return [body for body in map(json.loads, server.bodies) if "transition" in body]


def workspace(server: OddServer, transition: str, **more: Any) -> None:
    """Give workspaces a build of this transition, and let builds end immediately."""
    status = {"start": "running", "stop": "stopped"}[transition]

    def answer(method: str, path: str) -> bytes:
        server.upgrades = "/logs" in path  # a build's log is a stream, which ends
        result = plain(method, path)
        if path.startswith(MINE):
            if path == f"{MINE}new":
                return reply('{"message": "Resource not found"}', status="404 Not Found")
            result = {
                **result,
                **more,
                "latest_build": {**result["latest_build"], "transition": transition, "status": status},
            }
        if path.endswith("/builds") and method == "POST":
            return reply(json.dumps(result), status="201 Created")
        if "/logs" in path or path.startswith("/api/v2/workspaces/offered-versions"):
            return reply("[]")
        if path == f"/api/v2/workspacebuilds/{ID}":
            result = {**result, "job": {**result["job"], "status": "succeeded"}}
        return reply(
            json.dumps(result), status="201 Created" if method == "POST" and "/workspaces" in path else "200 OK"
        )

    server.answer = answer


@pytest.mark.parametrize(
    ("line", "before", "expected"),
    [
        ("start w -y --no-wait --reason vscode_connection", "stop", "vscode_connection"),
        ("start w -y --no-wait", "stop", "cli"),
        ("stop w -y --reason dashboard", "start", "dashboard"),
        ("restart w -y --reason jetbrains_connection", "start", "jetbrains_connection"),
        ("update w --reason ssh_connection", "stop", "ssh_connection"),
    ],
)
async def test_reason_reaches_build(line: str, before: str, expected: str, server: OddServer, tmp_path: Path) -> None:
    workspace(server, before, outdated=True)
    done = await run(line, server, tmp_path)
    assert done.code == 0, done.stderr
    result = builds(server)
    assert result and {body["reason"] for body in result} == {expected}
    assert all("log_level" not in body for body in result)


@pytest.mark.parametrize(("verb", "before"), [("start", "stop"), ("stop", "start"), ("delete", "start")])
async def test_requests_terraform_debug_logs(verb: str, before: str, server: OddServer, tmp_path: Path) -> None:
    workspace(server, before)
    done = await run(f"{verb} w -y --provisioner-log-debug", server, tmp_path)
    assert done.code == 0, done.stderr
    (body,) = builds(server)
    assert (body["transition"], body["log_level"]) == (verb, "debug")


async def test_copy_uses_template_and_values(server: OddServer, tmp_path: Path) -> None:
    workspace(server, "start", template_id=OTHER, template_name="docker")
    answer = server.answer

    def with_values(method: str, path: str) -> bytes:
        if path.endswith("/parameters") and method == "GET":
            return reply('[{"name": "x", "value": "kept"}]')
        if path.endswith("/evaluate"):
            found = plain(method, path)
            return reply(json.dumps({**found, "parameters": [{**found["parameters"][0], "ephemeral": False}]}))
        return answer(method, path)

    server.answer = with_values
    result = await run("create new --copy-parameters-from w -y --no-wait", server, tmp_path)
    assert result.code == 0, result.stderr
    assert ("GET", f"/api/v2/templates/{OTHER}") in server.asked
    body = json.loads(server.bodies[-1])
    assert (body["name"], body["template_version_id"]) == ("new", ID)
    assert body["rich_parameter_values"] == [{"name": "x", "value": "kept"}]
    refused = await run("create new --copy-parameters-from w -t other -y", server, tmp_path)
    assert refused.code == 1 and 'w was created from template "docker", not from "other"' in refused.stderr


@pytest.mark.parametrize("line", ["organizations create other", "autoupdate w always"])
async def test_no_prompt_without_terminal(line: str, server: OddServer, tmp_path: Path) -> None:
    answer = server.answer
    server.answer = lambda method, path: answer(method, path).replace(
        b"200 OK", b"201 Created" if method == "POST" else b"200 OK", 1
    )
    result = await run(line, server, tmp_path)  # its input is empty
    assert result.code == 0, result.stderr
    assert not result.stdout.startswith(">")


async def test_open_prints_only_url(server: OddServer, tmp_path: Path) -> None:
    result = await run("open vscode w", server, tmp_path)
    assert result.code == 0, result.stderr
    (line,) = result.stdout.splitlines()
    assert line.startswith("vscode://coder.coder-remote/open?owner=")


async def test_groups_list_json(server: OddServer, tmp_path: Path) -> None:
    (group,) = json.loads((await run("groups list -o json", server, tmp_path)).stdout)
    assert group == plain("GET", f"/api/v2/organizations/{ID}/groups")[0]


@pytest.mark.parametrize(
    ("flags", "query"), [("", "q=owner%3Ame"), ("--all", "q="), ("-a", "q="), ("--search owner:x", "q=owner%3Ax")]
)
async def test_schedules_of_search(flags: str, query: str, server: OddServer, tmp_path: Path) -> None:
    result = await run(f"schedule show {flags}", server, tmp_path)
    assert result.code == 0, result.stderr
    assert result.stdout.splitlines()[1].startswith("x/x ")
    assert server.asked == [("GET", f"/api/v2/workspaces?{query}")]


async def test_archive_without_versions(server: OddServer, tmp_path: Path) -> None:
    answer, nothing = server.answer, reply(f'{{"template_id": "{ID}", "archived_ids": null}}')
    server.answer = lambda method, path: nothing if path.endswith("/versions/archive") else answer(method, path)
    result = await run("templates archive x -y", server, tmp_path)
    assert result.code == 0, result.stderr
    assert result.stdout.startswith("Archived 0 versions from x at ")


async def test_short_extension_fails(server: OddServer, tmp_path: Path) -> None:
    for text in ("5m", "28", "28m59s"):
        result = await run(f"schedule extend w {text}", server, tmp_path)
        assert (result.code, result.stdout) == (1, "")
        assert result.stderr.endswith("error: Please specify a duration of at least 30 minutes.\n")
    assert not server.asked


def test_separate_tunnel_option() -> None:
    assert not _needs_own_node(parse(SSH, ["w"], {}))
    for flags in (["--force-new-tunnel"], ["--log-dir", "x"], ["--network-info-dir", "x"]):
        assert _needs_own_node(parse(SSH, [*flags, "w"], {}))


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("templates presets list x", 0, "No presets found for template x"),
        ("create new --template x -y --no-wait", 0, ""),
        ("create new --template x -y --no-wait --preset p", 1, 'preset "p" not found'),
        ("task create --template x --preset p do", 1, 'preset "p" not found'),
    ],
)
async def test_presets_may_be_null(line: str, code: int, says: str, server: OddServer, tmp_path: Path) -> None:
    """The original answers null for a version without presets."""
    workspace(server, "start")
    answer = server.answer
    server.answer = lambda method, path: reply("null") if path.endswith("/presets") else answer(method, path)
    result = await run(line, server, tmp_path)
    assert result.code == code, result.stderr
    assert says in result.stdout + result.stderr
    assert any(path.endswith("/presets") for _, path in server.asked)


@pytest.mark.parametrize("flags", ["", "-v "])
async def test_ssh_logs_to_directory(flags: str, server: OddServer, tmp_path: Path) -> None:
    """With `-v`, too, the session's requests are in the file only: editors show what a ProxyCommand writes."""
    server.answer = lambda *_: reply('{"message": "Resource not found"}', status="404 Not Found")
    result = await run(f"ssh {flags}--log-dir {tmp_path / 'logs'} w true", server, tmp_path)
    assert (result.code, result.stdout) == (1, "")
    (path,) = (tmp_path / "logs").iterdir()
    request = f"GET {server.url}{MINE}w 404"
    assert request in path.read_text() and request not in result.stderr


@pytest.mark.parametrize(
    ("status", "validations", "step"),
    [
        (409, [], "Choose another --username and --email"),
        (400, [{"field": "email", "detail": "Validation failed"}], "with --email, such as ana@example.com"),
        (400, [{"field": "username", "detail": "Validation failed"}], ""),
        (403, [], ""),
    ],
)
def test_refused_user_has_next_step(status: int, validations: list[dict[str, Json]], step: str) -> None:
    with pytest.raises(HttpError) as refused, next_step_of_refusal():
        raise HttpError(status, "refused", validations=validations)
    text = error_text(refused.value, is_terminal=True)
    assert step in text and ("--email" in text) is bool(step)
