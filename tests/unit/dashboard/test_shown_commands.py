"""Commands that the dashboard shows: the command line accepts each, and targets name what their viewer sees."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import trio

from coder.api.base.answers import read_answer
from coder.api.workspaces.workspaces import Workspace
from coder.cli.core.command import command_name, load
from coder.cli.core.parsing import parse
from coder.client.target import choose_agent, split_target
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.dashboard.source_modules import DASHBOARD, evaluate, needs_node
from tests.kit.provisioners.scripted_provisioner import Answers, agent, ended, resource, upload, working_daemon
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, workspace_world

_SHOWN = re.compile(r"""(?:command[=:]\s*\{?\s*["'`]|<code[^>]*>\s*)((?:[A-Z_]+=\S+ )*coder [^"`\n]*?)(?=["`<\n])""")
_SINGLE = re.compile(r"""command: '(coder [^']*)'""")
_HOLE = re.compile(r"\$?\{[^{}]*\}")
_TARGET = re.compile(r"coder (?:ssh|port-forward) \$\{target\(workspace, agent, viewer\)\}")


def _sources() -> dict[str, str]:
    files = sorted((DASHBOARD / "src").rglob("*.ts*"))
    return {str(file.relative_to(DASHBOARD)): file.read_text() for file in files if ".test." not in file.name}


def _shown() -> list[str]:
    result = set[str]()
    for text in _sources().values():
        result |= {match for kind in (_SHOWN, _SINGLE) for match in kind.findall(text)}
    return sorted(result)


def _filled(command: str) -> list[str]:
    """Return the command lines with values in the holes of the template literals."""
    text = re.sub(r"\$\{suggestedHours[^}]*\}", "1", command).replace("--tcp $", "--tcp 8080 $")
    text = _HOLE.sub("x", text).replace("--tcp 8080 x", "--tcp 8080")
    return [re.sub(r"^(?:[A-Z_]+=\S+ )+", "", part.strip()) for part in text.split("&&")]


def test_collects_shown_commands() -> None:
    shown = _shown()
    assert len(shown) > 20
    assert any(command.startswith("coder ssh ") for command in shown)
    assert any(command.startswith("coder port-forward ") for command in shown)


@pytest.mark.parametrize("command", _shown())
def test_shown_command_parses(command: str) -> None:
    for line in _filled(command):
        program, *words = shlex.split(line)
        assert program == "coder"
        name = command_name(words)
        assert name is not None
        parse(load(name), words[len(name.split()) :], {})


def test_workspace_commands_use_target() -> None:
    """Only examples with a fixed name may name a workspace otherwise."""
    for file, text in _sources().items():
        for match in re.finditer(r"coder (?:ssh|port-forward) \S+", text):
            shown = text[match.start() :].partition("`")[0]
            assert _TARGET.match(shown) or "my-workspace" in match.group(), (file, match.group())


def _build(job: Any) -> dict[str, Any]:
    if job.workspace_build.metadata.workspace_transition != pb.START:
        return {"state": b"{}", "resources": []}
    names = ("help", "main", "tcp") if "several" in job.workspace_build.metadata.workspace_name else ("main",)
    agents = [agent(name=name, token=str(uuid4())) for name in names]
    return {"state": b"{}", "resources": [resource("box", agents=agents)]}


async def _template(world: World, organization: str) -> str:
    """Return the id of a template in this organization, imported."""
    file = await upload(world, {"main.tf": ""})
    body = {"storage_method": "file", "provisioner": "echo", "tags": {}, "file_id": file}
    path = f"/api/v2/organizations/{organization}"
    version = (await world.post(f"{path}/templateversions", body)).json()["id"]
    with trio.fail_after(60):
        await ended(world, f"/api/v2/templateversions/{version}")
    answer = await world.post(f"{path}/templates", {"name": "foreign", "template_version_id": version})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@pytest.fixture
async def deployment() -> AsyncIterator[tuple[World, dict[str, str]]]:
    """Workspaces of the administrator and of a member in two organizations, each name twice."""
    answers = Answers(import_=lambda job: {"start_resources": [resource("box", agents=[agent()])]}, build=_build)
    async with workspace_world(answers) as (world, _):
        elsewhere = (await world.post("/api/v2/organizations", {"name": "elsewhere"})).json()["id"]
        _, ana = await world.member("ana", organizations=[world.organization_id, elsewhere])
        admin = (await world.get("/api/v2/users/me")).json()["username"]
        async with working_daemon(world, answers, organization="elsewhere", name="elsewhere-daemon"):
            for name in ("dev", "several", "help"):
                await new_workspace(world, name)
                await new_workspace(world, name, token=ana)
            foreign = await _template(world, elsewhere)
            await new_workspace(world, "several-away", token=ana, template_id=foreign)
        yield world, {admin: world.token, "ana": ana}


@needs_node
async def test_target_names_seen_workspace(deployment: tuple[World, dict[str, str]]) -> None:
    world, tokens = deployment
    seen = 0
    for token in tokens.values():
        viewer = (await world.get("/api/v2/users/me", token=token)).json()["id"]
        workspaces = (await world.get("/api/v2/workspaces", token=token)).json()["workspaces"]
        cases = [
            (row, item)
            for row in workspaces
            for box in row["latest_build"]["resources"]
            for item in box["agents"] or []
        ]
        expression = f'argument.map(([row, item]) => module.target(row, item, "{viewer}"))'
        targets = evaluate("workspace-target.ts", expression, cases)
        for (row, item), target in zip(cases, targets, strict=True):
            owner, name, agent_name = split_target(target)
            answer = await world.get(f"/api/v2/users/{owner}/workspace/{name}", token=token)
            assert answer.json()["id"] == row["id"], target
            chosen = choose_agent(read_answer(answer.content, Workspace), agent_name)
            assert str(chosen.id) == item["id"], target
            assert ("/" in target) == (row["owner_id"] != viewer)
            assert command_name(["ssh", target]) == "ssh"
            assert parse(load("ssh"), [target], {}).args == [target]
            seen += 1
    assert seen > 20
