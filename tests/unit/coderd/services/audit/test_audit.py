"""The audit log and the connection log: entries, hidden values, read permission."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import trio
from google.protobuf.timestamp_pb2 import Timestamp

from coder.coderd.http.server.audit_rules import LOGIN
from coder.coderd.http.server.quart_fixes import BoundedHTTPConnection
from coder.coderd.services.audit import audit_snapshots, request_events
from coder.coderd.services.workspaces.autobuilds import take_due_steps
from coder.coderd.store.audit.audit import NAMED, TRACKED
from coder.coderd.store.engine.availability import DatabaseAwayError
from coder.coderd.store.engine.database import Database
from coder.rpc.errors import UNAVAILABLE, RpcError
from coder.rpc.proto import agent_pb2
from tests.kit.agents.scripted_agent import connected_agent
from tests.kit.agents.scripted_agent import workspace_world as agent_world
from tests.kit.api.api_description import check
from tests.kit.api.costly_requests import routes
from tests.kit.paths import DATA
from tests.kit.provisioners.scripted_provisioner import FakeDaemon
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import build, new_workspace, workspace_world

OPERATIONS = DATA / "api" / "operations.tsv"
ROUTES = OPERATIONS.with_name("routes.tsv")


async def entries(world: World, query: str = "", **rest: Any) -> list[dict[str, Any]]:
    answer = await world.get("/api/v2/audit", params={"q": query, "limit": 100}, **rest)
    assert answer.status_code == 200, answer.text
    check("AuditLogResponse", answer.json())
    result: list[dict[str, Any]] = answer.json()["audit_logs"]
    assert answer.json()["count"] == len(result)
    return result


_BY_VIEW = {"convert_login"}
"Kinds whose name only the view knows; it sets the name by `about`."


def test_every_audited_kind_has_name() -> None:
    """An entry of a deletion needs a name: every kind has a source for it."""
    nameless = []
    for path, said in routes():
        how = said.audit
        if how is None or how is LOGIN or how.action in {"logout", "login"}:
            continue  # the name of a login is its user
        if how.settings is not None or how.organization_settings is not None:
            continue  # settings have no name
        named = how.kind in TRACKED or how.kind in NAMED or how.kind == "notification_template"
        if not (named or (how.kind in _BY_VIEW and how.key == "view")) or how.key == "me":
            nameless.append((path, how))
    assert nameless == []


async def test_deletion_entry_has_name() -> None:
    """The response to a deletion has no name, and the name is gone afterwards."""
    async with running_coderd(first_user=True, experiments=("oauth2",)) as world:
        created = await world.post("/api/v2/users/me/keys/tokens", {"token_name": "ci"})
        token = created.json()["key"].partition("-")[0]
        session = (await world.login("a@b.c", "SomeSecure123!")).partition("-")[0]
        app = {"name": "wiki", "callback_url": "https://wiki.example.com/callback"}
        apps = "/api/v2/oauth2-provider/apps"
        client = (await world.post(apps, app)).json()["id"]
        secret = (await world.post(f"{apps}/{client}/secrets")).json()
        proxy = await world.post("/api/v2/workspaceproxies", {"name": "far", "display_name": "", "icon": ""})
        deleted = {
            "ci": f"/api/v2/users/me/keys/{token}",
            session: f"/api/v2/users/me/keys/{session}",
            secret["client_secret_full"][-6:]: f"{apps}/{client}/secrets/{secret['id']}",
            "wiki": f"{apps}/{client}",
            "far": f"/api/v2/workspaceproxies/{proxy.json()['proxy']['id']}",
        }
        for path in deleted.values():
            answer = await world.delete(path)
            assert answer.status_code < 300, (path, answer.text)
        targets = [entry["resource_target"] for entry in reversed(await entries(world, "action:delete"))]
        assert [target[-len(name) :] for target, name in zip(targets, deleted, strict=True)] == list(deleted)
        template = "/api/v2/notifications/templates/281fdf73-c6d6-4cbb-8ff5-888baf8a2fff/method"
        assert (await world.put(template, {"method": "smtp"})).status_code == 200
        (entry,) = await entries(world, "resource_type:notification_template")
        assert entry["resource_target"] == "Workspace Created"


@pytest.mark.parametrize("how", ["DELETE", "PUT", "PUT without its end"])
async def test_entry_after_client_disconnected(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a change and its entry. A request whose body never arrives ends."""
    leave, gone, ended = trio.Event(), trio.Event(), trio.Event()
    plain_record, plain_messages = request_events.record_event, BoundedHTTPConnection.handle_messages
    plain_request = BoundedHTTPConnection.handle_request

    async def record_event(ctx: Any, event: Any) -> None:
        leave.set()
        await gone.wait()
        await plain_record(ctx, event)

    async def handle_messages(connection: Any, nursery: Any, request: Any, receive: Any) -> None:
        async def noted() -> Any:
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            elif how == "PUT without its end":
                leave.set()
            return message

        await plain_messages(connection, nursery, request, noted)

    async def handle_request(connection: Any, nursery: Any, request: Any, send: Any) -> None:
        try:
            await plain_request(connection, nursery, request, send)
        finally:
            if gone.is_set():
                ended.set()

    async with running_coderd(first_user=True) as world:
        created = await world.post("/api/v2/users/me/keys/tokens", {"token_name": "ci"})
        path, body = f"/api/v2/users/me/keys/{created.json()['key'].partition('-')[0]}", b""
        if how != "DELETE":
            path, body = "/api/v2/users/me/profile", b'{"username": "renamed", "name": "Renamed"}'
        head = f"{how.partition(' ')[0]} {path} HTTP/1.1\r\nHost: x\r\nCoder-Session-Token: {world.token}\r\n"
        if body:
            head += f"Content-Length: {len(body) + (how == 'PUT without its end')}\r\n"
        monkeypatch.setattr(request_events, "record_event", record_event)
        monkeypatch.setattr(BoundedHTTPConnection, "handle_messages", handle_messages)
        monkeypatch.setattr(BoundedHTTPConnection, "handle_request", handle_request)
        address = urlsplit(world.url)
        async with await trio.open_tcp_stream(address.hostname or "", address.port or 0) as client:
            await client.send_all(head.encode() + b"\r\n" + body)
            with trio.fail_after(60):
                await leave.wait()
        with trio.fail_after(60):
            await ended.wait()
        monkeypatch.undo()
        found = [entry["action"] for entry in await entries(world) if entry["action"] in {"delete", "write"}]
        assert found == {"DELETE": ["delete"], "PUT": ["write"], "PUT without its end": []}[how]


async def test_password_change_hides_secrets() -> None:
    async with running_coderd(first_user=True) as world:
        user_id, token = await world.member("maria")
        assert (await world.put(f"/api/v2/users/{user_id}/roles", {"roles": ["auditor"]})).status_code == 200
        body = {"password": "AnotherSecure1!", "old_password": ""}
        assert (await world.put(f"/api/v2/users/{user_id}/password", body)).status_code == 204
        refused = await world.put("/api/v2/users/me/profile", {"username": "x y", "name": ""})
        assert refused.status_code == 400
        hidden = await world.put(f"/api/v2/users/{uuid4()}/status/suspend")
        assert hidden.status_code == 404
        failed = await world.post("/api/v2/users/login", {"email": "maria@b.c", "password": "no"}, token="")
        assert failed.status_code == 401
        await world.ctx.services.deferred_work.wait_until_done()
        log = await entries(world)
        assert [(entry["resource_type"], entry["action"], entry["status_code"]) for entry in log] == [
            ("api_key", "login", 401),
            ("user", "write", 400),
            ("user", "write", 204),
            ("user", "write", 200),
            ("api_key", "login", 201),
            ("user", "create", 201),
            ("api_key", "login", 201),
        ]
        _, wrong, password, roles, _, created, _ = log
        assert wrong["diff"] == {} and wrong["description"] == "{user} unsuccessfully attempted to write user {target}"
        assert password["diff"]["hashed_password"] == {"secret": True}
        assert roles["diff"]["rbac_roles"] == {"old": [], "new": ["auditor"], "secret": False}
        assert created["diff"]["username"] == {"old": "", "new": "maria", "secret": False}
        assert created["resource_target"] == "maria" and created["resource_link"] == "/users?filter=maria"
        assert created["user"]["username"] == "admin" and created["ip"] == "127.0.0.1"
        text = json.dumps(log)
        assert "AnotherSecure1!" not in text and "$" not in text, "no password, no hash"
        # read permission, and results of queries
        token = await world.login("maria@b.c", "AnotherSecure1!")
        assert len(await entries(world, "action:create", token=token)) == 1
        assert len(await entries(world, "username:maria action:login", token=token)) == 3
        _, other = await world.member()
        assert (await world.get("/api/v2/audit", token=other)).status_code == 403
        wrong_query = await world.get("/api/v2/audit", params={"q": "colour:red date_from:soon"})
        assert {item["field"] for item in wrong_query.json()["validations"]} == {"colour", "date_from"}
        deleted = await world.delete(f"/api/v2/users/{user_id}")
        assert deleted.status_code == 200
        gone = (await entries(world, f"resource_id:{user_id} action:delete"))[0]
        assert (gone["is_deleted"] and gone["diff"]["username"] == {"old": "maria", "new": "", "secret": False}) or gone


async def test_secret_import_writes_entries() -> None:
    async with running_coderd(first_user=True) as world:
        path = "/api/v2/users/me/secrets/batch"
        created = await world.post(path, {"format": "env", "content": "ONE=1st-value\nTWO=2nd-value\n"})
        assert created.status_code == 201, created.text
        log = await entries(world, "resource_type:user_secret")
        assert [(entry["resource_target"], entry["resource_id"], entry["status_code"]) for entry in reversed(log)] == [
            (secret["name"], secret["id"], 201) for secret in created.json()
        ]
        for entry, name in zip(reversed(log), ("ONE", "TWO"), strict=True):
            assert entry["diff"]["name"] == {"old": "", "new": name, "secret": False}
            assert entry["diff"]["env_name"]["new"] == name
        assert "-value" not in json.dumps(log)
        assert (await world.post(path, {"format": "env", "content": "TWO=x\n"})).status_code == 409
        assert len(await entries(world, "resource_type:user_secret")) == 2, "a refused import creates nothing"


async def test_settings_diff() -> None:
    async with running_coderd(first_user=True) as world:
        _, member = await world.member()
        groups = "/api/v2/organizations/default/settings/idpsync/groups"
        health = "/api/v2/debug/health/settings"
        assert (await world.put(health, {"dismissed_healthchecks": ["DERP"]})).status_code == 200
        assert (await world.put("/api/v2/notifications/settings", {"notifier_paused": True})).status_code == 200
        assert (await world.put("/api/v2/prebuilds/settings", {"reconciliation_paused": True})).status_code == 200
        assert (await world.patch(groups, {"field": "teams", "mapping": {}})).status_code == 200
        assert (await world.patch(f"{groups}/config", {"field": "units"})).status_code == 200
        organization = "/api/v2/settings/idpsync/organization"
        assert (await world.patch(organization, {"field": "orgs", "assign_default": True})).status_code == 200
        refused = await world.put(health, {"dismissed_healthchecks": []}, token=member)
        assert refused.status_code == 403
        log = await entries(world, "action:write")
        diffs = {
            entry["resource_type"]: {key: (item.get("old"), item.get("new")) for key, item in entry["diff"].items()}
            for entry in reversed(log)
            if entry["resource_type"] != "user"
        }
        assert diffs == {
            "health_settings": {"dismissed_healthchecks": (None, ["DERP"])},
            "notifications_settings": {"notifier_paused": (False, True)},
            "prebuilds_settings": {"reconciliation_paused": (False, True)},
            "idp_sync_settings_group": {"field": ("teams", "units")},
            "idp_sync_settings_organization": {"field": ("", "orgs"), "assign_default": (True, False)},
        }


async def test_workspaces_templates_and_builds() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, ttl_ms=3_600_000)
        path = f"/api/v2/workspaces/{workspace['id']}"
        assert (await world.put(f"{path}/ttl", {"ttl_ms": 7_200_000})).status_code == 204
        assert (await world.put(f"{path}/ttl", {"ttl_ms": 7_200_000})).status_code == 204
        template = f"/api/v2/templates/{world.extra['template']['id']}"
        assert (await world.patch(template, {"description": "words"})).status_code == 200
        await build(world, workspace["id"], "delete", reason="cli")
        await take_due_steps(world.ctx)
        log = [entry for entry in await entries(world) if entry["resource_type"] not in {"api_key", "template_version"}]
        assert [(entry["resource_type"], entry["action"]) for entry in log] == [
            ("workspace_build", "delete"),
            ("template", "write"),
            ("workspace", "write"),
            ("workspace", "write"),
            ("workspace_build", "start"),
            ("workspace", "create"),
            ("template", "create"),
        ]
        deleted, words, same, longer, started, created, _ = log
        assert deleted["additional_fields"]["build_reason"] == "cli"
        assert started["resource_link"] == "/@admin/ws/builds/1"
        assert started["description"] == "{user} started workspace {target}"
        assert words["diff"]["description"]["new"] == "words"
        assert longer["diff"]["ttl_ms"] == {"old": 3_600_000, "new": 7_200_000, "secret": False} and same["diff"] == {}
        assert created["organization"]["name"] == "coder" and created["is_deleted"]
        assert len(await entries(world, "build_reason:cli")) == 1


async def test_build_end_in_doubt_has_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon repeats its report, and the job has ended already."""
    lost, refused, repeated = list[str](), list[str](), trio.Event()
    plain_run, plain_call = Database.run, FakeDaemon.call

    async def run(database: Database, fn: Any, *arguments: Any, **named: Any) -> Any:
        result = await plain_run(database, fn, *arguments, **named)
        if fn.__name__ == "_complete" and not lost:
            lost.append(fn.__module__)
            raise DatabaseAwayError(ConnectionResetError(), in_doubt=True)
        return result

    async def call(daemon: FakeDaemon, name: str, request: Any, *rest: Any) -> Any:
        try:
            return await plain_call(daemon, name, request, *rest)
        except RpcError as error:
            assert error.number == UNAVAILABLE
        with pytest.raises(RpcError) as caught:
            await plain_call(daemon, name, request, *rest)
        refused.append(caught.value.text)
        repeated.set()
        return None

    async with workspace_world() as (world, _):
        monkeypatch.setattr(Database, "run", run)
        monkeypatch.setattr(FakeDaemon, "call", call)
        await new_workspace(world)
        with trio.fail_after(60):
            await repeated.wait()
        assert len(lost) == 1 and refused == ["job already completed"]
        found = [entry["action"] for entry in await entries(world, "resource_type:workspace_build")]
        assert found == ["start"]


async def test_entry_follows_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database does not answer while the changed object is read, and while the entry is written."""
    failed: list[str] = []
    plain_run, plain_take = Database.run, audit_snapshots.take_snapshot

    async def run(database: Database, fn: Any, *arguments: Any, **named: Any) -> Any:
        if fn.__name__ == "_record_event" and "entry" not in failed:
            failed.append("entry")
            raise DatabaseAwayError(ConnectionRefusedError())
        return await plain_run(database, fn, *arguments, **named)

    async def take_snapshot(*arguments: Any) -> Any:
        snapshot = await plain_take(*arguments)
        if snapshot is not None and snapshot.state.get("name") == "Renamed" and "object" not in failed:
            failed.append("object")
            raise DatabaseAwayError(ConnectionRefusedError())
        return snapshot

    async with running_coderd(first_user=True) as world:
        monkeypatch.setattr(Database, "run", run)
        monkeypatch.setattr(audit_snapshots, "take_snapshot", take_snapshot)
        answer = await world.put("/api/v2/users/me/profile", {"username": "renamed", "name": "Renamed"})
        assert answer.status_code == 200
        await world.ctx.services.deferred_work.wait_until_done()
        (entry,) = await entries(world, "resource_type:user action:write")
        assert entry["diff"]["name"]["new"] == "Renamed"
    assert failed == ["object", "entry"]


async def test_connections_of_an_agent() -> None:
    async with agent_world() as view_context, connected_agent(view_context) as agent:
        world, ident = view_context.world, uuid4()

        async def report(action: Any, **rest: Any) -> None:
            at = Timestamp(seconds=1_767_000_000 + action)
            connection = agent_pb2.Connection(
                id=ident.bytes, action=action, type=agent_pb2.Connection.SSH, timestamp=at, ip="192.0.2.7", **rest
            )
            request = agent_pb2.ReportConnectionRequest(connection=connection)
            await agent.call("ReportConnection", request, agent_pb2.Empty if hasattr(agent_pb2, "Empty") else _empty())

        await report(1)
        await report(1)
        result = (await world.get("/api/v2/connectionlog", params={"q": "status:ongoing type:ssh"})).json()
        check("ConnectionLogResponse", result)
        assert result["count"] == 1
        assert result["connection_logs"][0]["ssh_info"] == {"connection_id": str(ident)}
        assert result["connection_logs"][0]["ip"] == "192.0.2.7"
        await report(2, status_code=3, reason="bye")
        result = (await world.get("/api/v2/connectionlog", params={"q": "workspace_owner:me status:completed"})).json()
        info = result["connection_logs"][0]["ssh_info"]
        assert (info["exit_code"], info["disconnect_reason"]) == (3, "bye")
        _, token = await world.member()
        assert (await world.get("/api/v2/connectionlog", token=token)).status_code == 403
        assert (await world.get("/api/v2/connectionlog", params={"q": "type:carrier-pigeon"})).status_code == 400


def _empty() -> Any:
    from google.protobuf.empty_pb2 import Empty

    return Empty
