"""What readers of a workspace see of values inside it, and of the owner's session token."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from coder.domain.access.build_tokens import HIDDEN
from coder.rpc.proto import agent_pb2
from tests.kit.agents.scripted_agent import connected_agent
from tests.kit.api.http_clients import event_stream
from tests.kit.provisioners.scripted_provisioner import agent, ended, new_version, resource
from tests.kit.server.elsewhere import Elsewhere, elsewhere

VARIABLES = {"CODER_SESSION_TOKEN", "PLACE"}


async def _views(result: Elsewhere, workspace: Any, token: str) -> dict[str, Any]:
    """Return every answer that includes agents of the workspace, by path."""
    job, build = workspace["id"], workspace["latest_build"]
    agent = build["resources"][0]["agents"][0]["id"]
    paths = (
        f"workspaces/{job}",
        f"users/insider/workspace/{workspace['name']}",
        "workspaces?q=owner:insider",
        f"workspaces/{job}/builds",
        f"workspacebuilds/{build['id']}",
        f"workspacebuilds/{build['id']}/resources",
        f"users/insider/workspace/{workspace['name']}/builds/1",
        f"workspaceagents/{agent}",
    )
    answers = {path: (await result.world.get(f"/api/v2/{path}", token=token)).json() for path in paths}
    answers["watch"] = json.loads(await _first_data(result, f"/api/v2/workspaces/{job}/watch", token))
    return answers


async def _first_data(result: Elsewhere, path: str, token: str) -> str:
    """Return the data of a stream's first event."""
    async with event_stream(result.world.url, path, {"Coder-Session-Token": token}) as stream:
        while (line := await stream.line()) is not None:
            if line.startswith(("data: {", "data: [")):
                return line.removeprefix("data: ")
    raise AssertionError("the stream ended")


def _environments(value: Any) -> list[dict[str, str]]:
    """Return every agent's environment inside of an answer."""
    if isinstance(value, list):
        return [found for item in value for found in _environments(item)]
    if not isinstance(value, dict):
        return []
    own = [value["environment_variables"]] if value.get("environment_variables") else []
    return own + [found for item in value.values() for found in _environments(item)]


async def test_values_for_who_may_connect() -> None:
    async with elsewhere() as result:
        world = result.world
        workspace = await result.create("insider")
        secret = result.token_of_build
        scoped = {"token_name": "reader", "scopes": ["workspace:read", "template:read"]}
        reader = await world.post("/api/v2/users/me/keys/tokens", scoped, token=result.tokens["insider"])
        shown = {"insider": result.tokens["insider"], "site owner": world.token}
        hidden = {"boss": result.tokens["boss"], "reader": reader.json()["key"]}
        for name, token in (shown | hidden).items():
            for path, answer in (await _views(result, workspace, token)).items():
                found = _environments(answer)
                assert found, (name, path, answer)
                assert all(set(item) == VARIABLES for item in found), (name, path)
                values = {value for item in found for value in item.values()}
                assert values == ({HIDDEN} if name in hidden else {secret, "here"}), (name, path)
                assert (secret in json.dumps(answer)) is (name in shown), (name, path)


async def test_tokens_masked_in_state_logs_metadata() -> None:
    async with elsewhere() as result:
        world = result.world
        workspace = await result.create("insider")
        secret, build = result.token_of_build, workspace["latest_build"]
        agent = build["resources"][0]["agents"][0]["id"]
        async with connected_agent(result.agent_of(workspace)) as link:
            source = str(workspace["latest_build"]["resources"][0]["agents"][0]["log_sources"][0]["id"])
            line = agent_pb2.Log(output=f"login {secret}", level=agent_pb2.Log.INFO)
            logs = agent_pb2.BatchCreateLogsRequest(log_source_id=UUID(source).bytes, logs=[line])
            await link.call("BatchCreateLogs", logs, agent_pb2.BatchCreateLogsResponse)
            results = agent_pb2.WorkspaceAgentMetadata.Result(value=f"login {secret}", error=secret)
            metadata = agent_pb2.BatchUpdateMetadataRequest(metadata=[agent_pb2.Metadata(key="login", result=results)])
            await link.call("BatchUpdateMetadata", metadata, agent_pb2.BatchUpdateMetadataResponse)
        texts = {}
        for path in (
            f"workspacebuilds/{build['id']}/logs",
            f"workspacebuilds/{build['id']}/resources",
            f"workspaceagents/{agent}/logs",
            f"workspacebuilds/{build['id']}/state",
        ):
            texts[path] = (await world.get(f"/api/v2/{path}", token=result.tokens["boss"])).text
        path = f"/api/v2/workspaceagents/{agent}/watch-metadata"
        texts[path] = await _first_data(result, path, result.tokens["insider"])
        for path, text in texts.items():
            assert f"login {HIDDEN}" in text and secret not in text, (path, text)
        state = await world.get(f"/api/v2/workspacebuilds/{build['id']}/state")
        assert secret in state.text  # a site owner may connect


async def test_tokens_masked_in_job_errors() -> None:
    async with elsewhere() as result:
        world, build = result.world, result.answers.build

        def failed(job: Any) -> dict[str, Any]:
            token = job.workspace_build.metadata.workspace_owner_session_token
            return {"error": f"login {token}"} if token else dict(build(job))

        result.answers.build = failed
        workspace = await result.create("insider")
        for name, token in (("owner", result.tokens["insider"]), ("boss", result.tokens["boss"])):
            answer = await world.get(f"/api/v2/workspaces/{workspace['id']}", token=token)
            assert answer.json()["latest_build"]["job"]["error"] == f"login {HIDDEN}", name
            assert result.token_of_build and result.token_of_build not in answer.text, name


async def test_planned_values_for_template_editors() -> None:
    """Values of the environment in the resources of a version: for users who may update the template."""
    async with elsewhere() as result:
        world = result.world
        planned = resource("box", agents=[agent(env={"PLACE": "secret"})])
        result.answers.import_ = lambda job: {"start_resources": [planned]}
        world.organization_id = result.organization
        version = await new_version(world, template_id=result.template["id"])
        await ended(world, f"/api/v2/templateversions/{version['id']}")
        for name, value in (("insider", HIDDEN), ("boss", "secret")):
            path = f"/api/v2/templateversions/{version['id']}/resources"
            found = _environments((await world.get(path, token=result.tokens[name])).json())
            assert found == [{"PLACE": value}], name


async def test_dry_run_values_for_who_may_connect() -> None:
    """A dry run is as private as a workspace of the user who started it."""
    async with elsewhere() as result:
        world, token = result.world, result.tokens["insider"]
        planned = resource("box", agents=[agent(env={"PLACE": "secret"})])
        result.answers.dry_run = lambda job: {"resources": [planned]}
        path = f"/api/v2/templateversions/{result.template['active_version_id']}/dry-run"
        started = await world.post(path, {"workspace_name": "dry"}, token=token)
        assert started.status_code == 201, started.text
        path = f"{path}/{started.json()['id']}"
        await ended(world, path)
        scoped = {"token_name": "reader", "scopes": ["workspace:read", "template:read"]}
        reader = (await world.post("/api/v2/users/me/keys/tokens", scoped, token=token)).json()["key"]
        for name, key, value in (
            ("insider", token, "secret"),
            ("reader", reader, HIDDEN),
            ("boss", result.tokens["boss"], HIDDEN),
        ):
            found = _environments((await world.get(f"{path}/resources", token=key)).json())
            assert found == [{"PLACE": value}], name
