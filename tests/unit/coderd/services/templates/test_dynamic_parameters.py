"""The form of a template version: recorded conversations, permissions, versions that cannot be rendered."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coder.base.secret import Secret
from coder.coderd.services.foundation import sandbox
from coder.coderd.services.templates import sandbox_worker
from coder.coderd.services.templates.template_sources import unpack_untrusted
from coder.coderd.services.workspaces.autobuilds import take_due_steps
from coder.coderd.store.workspaces import builds as build_store
from coder.net.dial import DialPolicy
from coder.net.websocket import WebSocketStream, connect_websocket
from coder.rpc.proto import provisioner_pb2
from tests.kit.api.api_description import check
from tests.kit.paths import DATA
from tests.kit.provisioners.scripted_provisioner import connected_daemon, ended, new_version, tar, upload
from tests.kit.server.server_in_process import World, running_coderd

CASES = DATA / "terraform" / "parameters"
_RECORDINGS = {"inputs.json", "expected.json", "websocket.json"}
RECORDED = sorted(path.parent.name for path in CASES.glob("*/websocket.json"))
CITY = 'data "coder_parameter" "city" {\n  name = "city"\n  default = "%s"\n}\n'


def files_of(case: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(case)): path.read_bytes()
        for path in case.rglob("*")
        if path.is_file() and path.name not in _RECORDINGS
    }


async def imported(
    world: World, files: dict[str, bytes], variables: Sequence[Any] = (), parameters: Sequence[Any] = (), **result: Any
) -> str:
    """Create a version of these files and complete its import; return its id."""
    version = await new_version(world, file_id=await upload(world, files), user_variable_values=list(parameters))
    async with connected_daemon(world) as daemon:
        job = await daemon.acquire()
        await daemon.update(job, template_variables=variables)
        await daemon.complete_import(job, **{"plan": b"{}", **result})
    await ended(world, f"/api/v2/templateversions/{version['id']}")
    return str(version["id"])


@asynccontextmanager
async def open_form(world: World, version: str, token: str = "", query: str = "") -> AsyncIterator[WebSocketStream]:
    policy = DialPolicy(world.url, token=Secret(token or world.token))
    socket = await connect_websocket(policy, f"/api/v2/templateversions/{version}/dynamic-parameters{query}")
    try:
        yield socket
    finally:
        await socket.aclose()


async def receive(socket: WebSocketStream) -> Any:
    message = await socket.receive_message()
    return None if message is None else json.loads(message)


_VARIABLES = [
    provisioner_pb2.TemplateVariable(name=name, type=kind, default_value=default, required=not default)
    for name, kind, default in (
        ("city", "string", "from-default"),
        ("country", "string", "from-default"),
        ("count_of", "number", "2"),
        ("unset", "string", ""),
    )
]


async def test_recorded_conversations() -> None:
    async with running_coderd(first_user=True) as world:
        for name in RECORDED:
            case = CASES / name
            variables = _VARIABLES if name == "variables" else ()
            version = await imported(world, files_of(case), variables, [{"name": "unset", "value": "now-set"}])
            async with open_form(world, version) as socket:
                for step in json.loads((case / "websocket.json").read_text())["messages"]:
                    if "send" in step:
                        await socket.send_message(json.dumps(step["send"]))
                    else:
                        assert await receive(socket) == step["receive"], name


async def test_form_for_other_owners() -> None:
    files = {
        "main.tf": b'data "coder_workspace_owner" "me" {}\n' + (CITY % "${data.coder_workspace_owner.me.name}").encode()
    }
    async with running_coderd(first_user=True) as world:
        version = await imported(world, files)
        body = {"name": "tpl", "template_version_id": version}
        workspace = await world.post(f"/api/v2/organizations/{world.organization_id}/templates", body)
        assert workspace.status_code == 201
        alice, token = await world.member("alice")
        async with open_form(world, version, token) as socket:
            assert (await receive(socket))["parameters"][0]["value"]["value"] == "alice"
            await socket.send_message(json.dumps({"id": 1, "inputs": {}, "owner_id": world.user_id}))
            assert (await receive(socket))["parameters"][0]["value"]["value"] == "admin"
            await socket.send_message(json.dumps({"id": 2, "inputs": {"city": "x"}}))
            answer = await receive(socket)
            assert (answer["id"], answer["parameters"][0]["default_value"]["value"]) == (2, "admin")
        async with open_form(world, version, query=f"?user_id={alice}") as socket:
            assert (await receive(socket))["parameters"][0]["value"]["value"] == "alice"


async def test_form_for_unlisted_owner() -> None:
    """A key that lists single users, or members, gets the forms of those owners and of its own user."""
    async with running_coderd(first_user=True) as world:
        version = await imported(world, {"main.tf": (CITY % "graz").encode()})
        path = f"/api/v2/templateversions/{version}/dynamic-parameters/evaluate"
        listed, _ = await world.member("listed")
        other, _ = await world.member("other")
        for kind in ("user", "organization_member"):
            made = await world.post("/api/v2/users/me/keys/tokens", {"allow_list": ["template:*", f"{kind}:{listed}"]})
            key = made.json()["key"]
            for owner, code in ((listed, None), (world.user_id, None), (other, "owner_not_found")):
                answer = await world.post(path, {"id": 1, "inputs": {}, "owner_id": owner}, token=key)
                codes = [item.get("extra", {}).get("code") for item in answer.json()["diagnostics"]]
                assert (code in codes) if code else not codes, (kind, owner, answer.text)


async def test_evaluating_once() -> None:
    async with running_coderd(first_user=True) as world:
        version = await imported(world, {"main.tf": (CITY % "graz").encode()})
        path = f"/api/v2/templateversions/{version}/dynamic-parameters/evaluate"
        answer = (await world.post(path, {"id": 7, "inputs": {"city": "x"}, "owner_id": world.user_id})).json()
        check("DynamicParametersResponse", answer)
        assert (answer["id"], answer["parameters"][0]["value"]["value"]) == (0, "x")
        unknown = (await world.post(path, {"id": 7, "inputs": {}})).json()
        assert (unknown["parameters"], unknown["diagnostics"][0]["extra"]["code"]) == (None, "owner_not_found")
        assert (await world.post(path, {"inputs": {"a": 1}})).status_code == 400
        assert (await world.post(path, {"inputs": {}}, token="")).status_code == 401
        unknown = path.replace(version, "11111111-1111-4111-8111-111111111111")
        assert (await world.post(unknown, {"inputs": {}})).status_code == 404
        assert (await world.get(path.removesuffix("/evaluate"))).status_code == 426


NO_REQUESTS = ['"nonsense"', "{", '{"id": 1, "inputs": {"a": 1}}']


async def test_malformed_request_closes_form() -> None:
    async with running_coderd(first_user=True) as world:
        version = await imported(world, {"main.tf": (CITY % "graz").encode()})
        for message in NO_REQUESTS:
            async with open_form(world, version) as socket:
                assert (await receive(socket))["id"] == -1
                await socket.send_message(message)
                assert await receive(socket) is None, message
                assert socket.close_code == 1001, message


async def test_unrenderable_versions() -> None:
    async with running_coderd(first_user=True) as world:
        row = provisioner_pb2.RichParameter(name="cpu", type="number", default_value="2", validation_max=4)
        version = await imported(world, {"main.tf": b""}, plan=b"", rich_parameters=[row])
        async with open_form(world, version) as socket:
            first = await receive(socket)
            check("DynamicParametersResponse", first)
            assert first["diagnostics"][0]["summary"].startswith("This template version is missing required metadata")
            assert first["parameters"][0]["value"] == {"value": "2", "valid": True}
            await socket.send_message(json.dumps({"id": 1, "inputs": {"cpu": "9"}}))
            assert (await receive(socket))["parameters"][0]["diagnostics"][0]["severity"] == "error"
        waiting = await new_version(world)
        path = f"/api/v2/templateversions/{waiting['id']}/dynamic-parameters/evaluate"
        assert (await world.post(path, {"inputs": {}})).status_code == 425


async def test_stored_modules_are_rendered() -> None:
    source = b'module "city" {\n  source = "registry.example.com/city"\n}\n'
    index = json.dumps({"Modules": [{"Key": "city", "Dir": ".terraform/modules/city"}]})
    modules = {".terraform/modules/modules.json": index, ".terraform/modules/city/main.tf": CITY % "linz"}
    async with running_coderd(first_user=True) as world:
        version = await imported(world, {"main.tf": source}, module_files=tar(modules))
        async with open_form(world, version) as socket:
            answer = await receive(socket)
            assert [parameter["value"]["value"] for parameter in answer["parameters"]] == ["linz"]
            assert answer["diagnostics"] == []


def test_cache_stays_within_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sandbox_worker, "MAX_CACHED", 5000)
    worker = sandbox_worker.SandboxWorker()
    values: sandbox_worker.CallValues = {"inputs": {}, "owner": {}, "variables": {}, "number": 1}
    for number in range(5):
        call: sandbox_worker.Frame = {"call": "form", "documents": f"city{number}", "values": values}
        assert worker.answer(call) == {"missing": True}
        archive = tmp_path / str(number)
        archive.write_bytes(tar({"main.tf": CITY % f"city{number}"}))
        assert worker.answer({"load": f"city{number}", "files": [str(archive)]}) == {"value": None}
        form: Any = worker.answer(call)["value"]
        assert [parameter["value"]["value"] for parameter in form["parameters"]] == [f"city{number}"]
    assert 0 < len(worker._cache) < 5
    assert worker._size == sum(cost for _, cost in worker._cache.values()) <= 5000


async def test_expensive_template_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A form has a diagnostic, a new version a failed import, a build an error; the server keeps serving."""
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 1)
    greedy = CITY.replace('"%s"', 'tostring(length(yamldecode(file("large.yaml"))))')
    large = "\n".join(f"key{number}: [1, two, {{three: 4}}]" for number in range(25_000))
    async with running_coderd(first_user=True) as world:
        version = await new_version(world, file_id=await upload(world, {"main.tf": greedy, "large.yaml": large}))
        assert version["job"]["status"] == "failed"
        assert "more computing time than is allowed" in version["job"]["error"]
        good = await imported(world, {"main.tf": (CITY % "graz").encode()})
        async with open_form(world, good) as socket:
            assert (await receive(socket))["parameters"][0]["value"]["value"] == "graz"


def test_malformed_archive_yields_beginning() -> None:
    assert unpack_untrusted(io.BytesIO()) == {}
    good = tar({"main.tf": "x", "../evil.tf": "y"})
    assert unpack_untrusted(io.BytesIO(good)) == {"main.tf": b"x"}
    assert unpack_untrusted(io.BytesIO(tar({"main.tf": "x" * 5000})[:2000])) == {}


# ---- versions and builds


TAGS = 'data "coder_workspace_tags" "t" {\n  tags = {\n    zone = %s\n  }\n}\n'
SWAP = (
    'data "coder_parameter" "more" {\n  name = "more"\n  type = "bool"\n  default = "false"\n  mutable = true\n}\n'
    'data "coder_parameter" "swap" {\n  count = data.coder_parameter.more.value == "true" ? 1 : 0\n'
    '  name = "swap"\n  type = "number"\n  default = "1"\n  mutable = true\n  validation {\n    max = 4\n  }\n}\n'
    'data "coder_parameter" "once" {\n  count = data.coder_parameter.more.value == "true" ? 1 : 0\n'
    '  name = "once"\n  type = "number"\n  default = "0"\n  mutable = true\n  ephemeral = true\n}\n'
)


async def test_template_tags_select_daemons() -> None:
    async with running_coderd(first_user=True) as world:
        file_id = await upload(world, {"main.tf": CITY % "linz" + TAGS % "data.coder_parameter.city.value"})
        version = await new_version(world, file_id=file_id)
        assert version["job"]["tags"] == {"owner": "", "scope": "organization", "zone": "linz"}
        tagged = await new_version(world, file_id=file_id, tags={"zone": "mine"})
        assert tagged["job"]["tags"]["zone"] == "mine"
        unclear = await upload(world, {"main.tf": 'variable "z" {}\n' + TAGS % "var.z"})
        body: dict[str, Any] = {"storage_method": "file", "provisioner": "echo", "tags": {}, "file_id": unclear}
        answer = await world.post(f"/api/v2/organizations/{world.organization_id}/templateversions", body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["message"] == "Unable to parse workspace tags"
        body["user_variable_values"] = [{"name": "z", "value": "seven"}]
        answer = await world.post(f"/api/v2/organizations/{world.organization_id}/templateversions", body)
        assert answer.json()["job"]["tags"]["zone"] == "seven"


async def test_invalid_prebuild_preset_rejected() -> None:
    preset = 'data "coder_workspace_preset" "p" {\n  name = "p"\n  parameters = { nope = "1" }\n%s}\n'
    async with running_coderd(first_user=True) as world:
        path = f"/api/v2/organizations/{world.organization_id}/templateversions"
        body = {"storage_method": "file", "provisioner": "echo", "tags": {}}
        for blocks, status in (("", 201), ("  prebuilds {\n    instances = 1\n  }\n", 400)):
            file_id = await upload(world, {"main.tf": preset % blocks})
            answer = await world.post(path, {**body, "file_id": file_id})
            assert answer.status_code == status, answer.text
        assert answer.json()["validations"][0]["field"] == "p"  # type: ignore[possibly-undefined]


async def test_build_uses_form_values() -> None:
    async with running_coderd(first_user=True) as world:
        version = await imported(world, {"main.tf": SWAP.encode()})
        body = {"name": "tpl", "template_version_id": version}
        template = (await world.post(f"/api/v2/organizations/{world.organization_id}/templates", body)).json()

        async def values(build: Any) -> dict[str, str]:
            rows = (await world.get(f"/api/v2/workspacebuilds/{build['id']}/parameters")).json()
            return {row["name"]: row["value"] for row in rows}

        async def finish() -> Any:
            async with connected_daemon(world) as daemon:
                job = await daemon.acquire()
                await daemon.complete_build(job, state=b"{}")
                return job

        def given(**request: str) -> list[dict[str, str]]:
            return [{"name": name, "value": value} for name, value in request.items()]

        request = {"name": "ws", "template_id": template["id"], "rich_parameter_values": given(more="true", swap="9")}
        answer = await world.post("/api/v2/users/me/workspaces", request)
        assert answer.status_code == 400
        assert answer.json()["message"] == "Unable to validate parameters"
        assert answer.json()["validations"][0]["field"] == "swap"
        request["rich_parameter_values"] = given(more="true", swap="3", ghost="1")
        workspace = (await world.post("/api/v2/users/me/workspaces", request)).json()
        assert await values(workspace["latest_build"]) == {"more": "true", "swap": "3", "once": "0"}
        job = await finish()
        assert {item.name: item.value for item in job.workspace_build.rich_parameter_values}["swap"] == "3"
        builds = f"/api/v2/workspaces/{workspace['id']}/builds"
        stopped = (await world.post(builds, {"transition": "stop"})).json()
        assert await values(stopped) == {"more": "true", "swap": "3"}
        await finish()
        started = (await world.post(builds, {"transition": "start"})).json()
        assert await values(started) == {"more": "true", "swap": "3", "once": "0"}
        await finish()
        off = (await world.post(builds, {"transition": "start", "rich_parameter_values": given(more="false")})).json()
        assert await values(off) == {"more": "false"}
        await finish()

        # The parameter counts for this build, although the import with its defaults never had it.
        once = {"transition": "start", "rich_parameter_values": given(more="true", swap="2", once="7")}
        assert await values((await world.post(builds, once)).json()) == {"more": "true", "swap": "2", "once": "7"}
        await finish()
        for transition in ("stop", "delete"):
            ended_by = (await world.post(builds, {"transition": transition})).json()
            assert await values(ended_by) == {"more": "true", "swap": "2"}, transition
            await finish()


async def test_automatic_builds_drop_ephemeral_values() -> None:
    async with running_coderd(first_user=True) as world:
        version = await imported(world, {"main.tf": SWAP.encode()})
        body = {"name": "tpl", "template_version_id": version}
        template = (await world.post(f"/api/v2/organizations/{world.organization_id}/templates", body)).json()
        values = [{"name": name, "value": value} for name, value in {"more": "true", "swap": "2", "once": "7"}.items()]
        request = {"name": "ws", "template_id": template["id"], "rich_parameter_values": values, "ttl_ms": 60_000}
        answer = (await world.post("/api/v2/users/me/workspaces", request)).json()
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            assert {item.name: item.value for item in job.workspace_build.rich_parameter_values}["once"] == "7"
            await daemon.complete_build(job, state=b"{}")
            long_ago = datetime(2020, 1, 1, tzinfo=UTC)
            await world.ctx.db.run(build_store.update_build, UUID(answer["latest_build"]["id"]), deadline=long_ago)
            assert [taken.step.reason for taken in await take_due_steps(world.ctx)] == ["autostop"]
            job = await daemon.acquire()
            assert {item.name for item in job.workspace_build.rich_parameter_values} == {"more", "swap"}


async def test_stop_uses_tags_of_start() -> None:
    expression = '"${data.coder_parameter.city.value}-x"'
    async with running_coderd(first_user=True) as world, connected_daemon(world, tags={"zone": "linz-x"}) as daemon:
        version = await new_version(world, file_id=await upload(world, {"main.tf": CITY % "linz" + TAGS % expression}))
        job = await daemon.acquire()
        nulls = {"a": "null", "b": " null ", "c": '"${null}"', "d": '"${ null }"'}
        await daemon.update(job, workspace_tags={"zone": expression, "e": '"null"', **nulls})
        await daemon.complete_import(job, plan=b"{}")
        body = {"name": "tpl", "template_version_id": version["id"]}
        template = (await world.post(f"/api/v2/organizations/{world.organization_id}/templates", body)).json()
        answer = (await world.post("/api/v2/users/me/workspaces", {"name": "ws", "template_id": template["id"]})).json()
        await daemon.complete_build(await daemon.acquire(), state=b"{}")
        stopped = await world.post(f"/api/v2/workspaces/{answer['id']}/builds", {"transition": "stop"})
        tags = {"owner": "", "scope": "organization", "zone": "linz-x", "e": "null"}
        assert stopped.json()["job"]["tags"] == tags, "a tag that is null is none"
