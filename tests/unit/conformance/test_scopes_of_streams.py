"""Every stream and RPC endpoint with keys of every scope, and with keys that list other objects.

Other routes are in `tests/unit/coderd/http/server/test_declarations.py`. A refusal is meaningful only where a key with
all scopes is accepted for the same path, which is checked first.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlencode
from uuid import UUID, uuid4

import pytest

from coder.appproxy.upgrades.raw_links import EndpointTable
from coder.base.secret import Secret
from coder.coderd.app import ENDPOINTS
from coder.domain.access import scopes
from coder.domain.access.policy import key_reaches
from coder.domain.access.resources import ACTIONS
from coder.domain.access.route_scopes import PROVISIONER, Scope, named
from coder.net.dial import DialPolicy
from coder.net.errors import HttpError
from coder.net.websocket import connect_websocket
from coder.rpc.proto import tailnet_pb2
from coder.rpc.session import Session
from tests.kit.api.api_description import application
from tests.kit.server.two_organizations import ForeignWorld, foreign_world
from tests.kit.server.workspaces import settled
from tests.unit.coderd.rpc_endpoints.test_coordination import coordinating
from tests.unit.conformance.test_attacks_on_open_streams import dry_run, event_streams
from tests.unit.conformance.test_foreign_ids_in_websockets import PARAMETERS, QUERIES

LEAVES = {"/api/v2/workspaceagents/{agent}/containers/watch", "/api/v2/workspaceagents/{agent}/pty"}
"""Routes that dial the agent first, which is not connected here: they fail with another 4xx or 5xx."""
OWNERS = {"/api/v2/debug/ws"}
"""Routes that an owner's session opens."""
DRY_RUN = "/api/v2/templateversions/{version}/dry-run/{job}/logs"
"""Its job is a dry run, that of other routes an import."""

_ASK_LATER = {
    "/api/v2/tailnet",  # asks for each tunnel, see below
    "/api/experimental/watch-all-workspacebuilds",  # asks for each update, see below
}
"""Routes about no single object, which ask for the objects of each message."""


def scoped_streams() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return (pattern, sufficient scopes) of all upgrades with a session's key."""
    app = application()
    for rule in app.url_map.iter_rules():
        declared = getattr(app.view_functions[rule.endpoint], "route", None)
        if declared is not None and declared.websocket:
            yield re.sub(r"<(?:[^:<>]*:)?([^<>]*)>", r"{\1}", rule.rule), named(declared.scope)
    table = EndpointTable()
    for module in ENDPOINTS:
        module.register(table)
    for endpoint in table.endpoints:
        yield endpoint.pattern, _accepts_sessions(endpoint.scope)


def _accepts_sessions(scope: Scope) -> tuple[str, ...]:
    """Whether a daemon may authenticate with its user's session instead of a key."""
    return ("provisioner_daemon:create",) if scope is PROVISIONER else named(scope)


async def _status(scene: ForeignWorld, token: str, pattern: str) -> int:
    """Return 101, or the status of the refusal."""
    own = scene.mine | ({"job": scene.mine["dry_run"]} if pattern == DRY_RUN else {})
    path = re.sub(r"\{([^}]*)\}", lambda match: own[PARAMETERS[match[1]][0]], pattern)
    query = QUERIES.get(pattern, "") or urlencode({"version": "2.0"} if pattern == "/api/v2/tailnet" else {})
    try:
        socket = await connect_websocket(
            DialPolicy(scene.world.url, token=Secret(token)), f"{path}?{query}", carry=False
        )
    except HttpError as error:
        return error.status
    async with socket:
        return 101


@asynccontextmanager
async def _scene() -> AsyncIterator[ForeignWorld]:
    async with foreign_world(experiments=("workspace-build-updates",)) as scene:
        scene.mine["dry_run"] = await dry_run(scene.world, scene.token, scene.mine["version"])
        yield scene


async def _wrong(scene: ForeignWorld, asked: Sequence[str]) -> list[str]:
    world, wrong = scene.world, []
    streams = [(pattern, expected) for pattern, expected in scoped_streams() if expected]
    for pattern, _ in streams:
        status = await _status(scene, world.token if pattern in OWNERS else scene.token, pattern)
        if status != 101 and pattern not in LEAVES:
            wrong.append(f"a session: {pattern}: {status}")
    for scope in asked:
        keys = {}
        for who in (scene.token, world.token):
            created = await world.post("/api/v2/users/me/keys/tokens", {"scopes": [scope]}, token=who)
            assert created.status_code == 201, created.text
            keys[who] = created.json()["key"]
        key = scopes.combined([scope])
        for pattern, expected in streams:
            status = await _status(scene, keys[world.token if pattern in OWNERS else scene.token], pattern)
            reaches = any(key_reaches(key, item) for item in expected)
            if not reaches and status not in {401, 403, 404}:
                wrong.append(f"{scope}: {pattern}: {status}")
    return wrong


async def test_narrow_keys_open_no_stream() -> None:
    assert sum(bool(expected) for _, expected in scoped_streams()) > 12
    async with _scene() as scene:
        wrong = await _wrong(scene, ("coder:application_connect", "template:read", "workspace:read", "user:read"))
    assert not wrong, "\n".join(wrong)


@pytest.mark.soak
async def test_every_stream_with_every_scope() -> None:
    async with _scene() as scene:
        wrong = await _wrong(scene, [scope for scope in scopes.external() if scope != "coder:all"])
    assert not wrong, "\n".join(wrong)


async def test_unlisted_objects_open_no_stream() -> None:
    """Keys with all scopes that list every kind of object, but of one kind only an object that does not exist."""
    async with _scene() as scene:
        wrong, keys = [], {}
        for pattern, expected in [*scoped_streams(), *((rule, ("workspace:read",)) for rule in event_streams())]:
            who = scene.world.token if pattern in OWNERS else scene.token
            for kind in {scope.partition(":")[0] for scope in expected}:
                if (who, kind) not in keys:
                    keys[who, kind] = await _narrow_key(scene, who, kind)
                status = await _status(scene, keys[who, kind], pattern)
                if status not in {401, 403, 404} and pattern not in _ASK_LATER:
                    wrong.append(f"{pattern} without {kind}: {status}")
        await _ask_tunnels(scene, keys[scene.token, "workspace"], keys[scene.token, "template"])
    assert not wrong, "\n".join(wrong)
    assert len(keys) > 4


async def _ask_tunnels(scene: ForeignWorld, narrow_key: str, other_key: str) -> None:
    """Ask for workspaces and a tunnel with a key that lists another workspace, and one that lists another template."""
    agent_id, path = UUID(scene.mine["agent"]), "/api/v2/tailnet?version=2.0"
    async with coordinating(scene.world, path, narrow_key) as narrow:
        assert await _workspaces(scene, narrow.session) == []
        await narrow.tell(narrow.key)
        await narrow.ask(agent_id)
        assert "unauthorized" in await narrow.refusal()
    async with coordinating(scene.world, path, other_key) as whole:
        assert scene.mine["workspace"] in await _workspaces(scene, whole.session)
        await whole.tell(whole.key)
        await whole.ask(agent_id)
        assert await whole.resume_token(), "another kind does not matter"


async def _workspaces(scene: ForeignWorld, session: Session) -> list[str]:
    """Return the ids of the caller's workspaces that the first update contains."""
    request = tailnet_pb2.WorkspaceUpdatesRequest(workspace_owner_id=UUID(scene.mine["user"]).bytes)
    name = "/coder.tailnet.v2.Tailnet/WorkspaceUpdates"
    async with session.open_stream(name, type(request), tailnet_pb2.WorkspaceUpdate) as stream:
        await stream.send(request)
        update = await stream.receive()
    return [str(UUID(bytes=item.id)) for item in update.upserted_workspaces]


async def test_unlisted_builds_not_in_updates() -> None:
    """The first update that a key gets is that of its listed workspace, though another one changed before."""
    async with _scene() as scene:
        listed = scene.strangers["workspace"]
        key = await _narrow_key(scene, scene.token, "workspace", listed)
        policy = DialPolicy(scene.world.url, token=Secret(key))
        async with await connect_websocket(
            policy, "/api/experimental/watch-all-workspacebuilds", carry=False
        ) as updates:
            for workspace in (scene.mine["workspace"], listed):
                path = f"/api/v2/workspaces/{workspace}/builds"
                built = await scene.world.post(path, {"transition": "stop"}, token=scene.token)
                assert built.status_code == 201, built.text
                await settled(scene.world, workspace)
            first = json.loads(await updates.receive_message() or "")
        assert first["workspace_id"] == listed


async def _narrow_key(scene: ForeignWorld, token: str, kind: str, listed: str = "") -> str:
    whole = [f"{name}:*" for name in ACTIONS if name not in {kind, "workspace_dormant", "prebuilt_workspace"}]
    body = {"allow_list": [*whole, f"{kind}:{listed or uuid4()}"]}
    created = await scene.world.post("/api/v2/users/me/keys/tokens", body, token=token)
    assert created.status_code == 201, created.text
    return str(created.json()["key"])
