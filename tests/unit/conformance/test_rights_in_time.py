"""What was prepared with a right is useless once the right is lost: generated over rights, ways and objects.

Streams and connections that run are in `test_attacks_on_open_streams.py` and `test_attacks_on_open_visits.py`, with the
same table of losses. Here a user prepares something with each right, loses the right, and only then uses it: at once,
at another replica, and after a restart.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

import pytest
import trio

from coder.coderd.services.access import recheck_rights, rights_changes, session_revocation
from coder.coderd.services.workspaces.prebuild_reconciliation import reconcile
from coder.net.dial import DialPolicy
from coder.net.errors import HttpError
from coder.net.websocket import connect_websocket
from tests.kit.agents.scripted_agent import eventually
from tests.kit.provisioners.scripted_provisioner import FakeDaemon, connected_daemon, tar
from tests.kit.server.race_conditions import filled
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import make_ready, prebuilt, without_daemon, workspace_world, world_with_preset
from tests.unit.coderd.app.test_replicas import replica_of
from tests.unit.coderd.rpc_endpoints.test_coordination import coordinating
from tests.unit.conformance.test_attacks_on_open_streams import (
    LOSSES,
    WITH_APPLICATIONS,
    dry_run,
    let_in,
    share,
    shared_objects,
)

REFUSED = {401, 403, 404}
TAILNET = "/api/v2/tailnet?version=2.0"
OUTSIDE = {"leaves the organization", "is suspended"}
"""Losses after which a user's workspaces do not get the user's identity."""
ENDS_TOKENS = {"the application is deleted"}
"""Losses after which the builds that an application requested get no session token."""
KEEPS_WORKSPACES = {"is deleted"}
"""Losses that are refused while the user has workspaces."""
UNSHARED = "shared no longer"
Use = Callable[[], Awaitable[int]]
"""Uses what was prepared; returns the status, 101 for an accepted stream."""


class Preparations:
    """Everything that one user prepares while the right lasts. Each method returns a way to use it later."""

    def __init__(self, world: World, token: str, places: dict[str, str]) -> None:
        self._world, self._token, self._places = world, token, places

    async def queued_dry_run(self) -> Use:
        job = await dry_run(self._world, self._token, self._places["done"])
        return self._get(f"/api/v2/templateversions/{self._places['done']}/dry-run/{job}")

    async def queued_import(self) -> Use:
        """A version whose import waits, with the name of the file that the user uploaded."""
        version = await self._import(await self._upload())
        return self._get(f"/api/v2/templateversions/{version.json()['id']}")

    async def uploaded_file(self) -> Use:
        file_id = await self._upload()

        async def use() -> int:
            return int((await self._import(file_id)).status_code)

        return use

    async def terminal_ticket(self) -> Use:
        agent = self._places["agent"]
        path = f"/api/v2/workspaceagents/{agent}/pty"
        body = {"url": self._world.url.replace("http", "ws") + path, "agentID": agent}
        made = await self._world.post("/api/v2/applications/reconnecting-pty-signed-token", body, token=self._token)
        assert made.status_code == 200, made.text
        ticket = {"coder_signed_app_token_23db1dde": made.json()["signed_token"]}
        query = urlencode({"reconnect": str(uuid4()), "width": 80, "height": 24, **ticket})

        async def use() -> int:
            return await _handshake(DialPolicy(self._world.url), f"{path}?{query}")

        return use

    async def resume_token(self) -> Use:
        agent_id = UUID(self._places["agent"])
        async with coordinating(self._world, TAILNET, self._token) as first:
            await first.tell(first.key)
            await first.ask(agent_id)
            resume = await first.resume_token()

        async def use() -> int:
            try:
                async with coordinating(self._world, TAILNET, self._token, resume=resume) as again:
                    await again.tell(first.key, first.disco)
                    await again.ask(agent_id)
                    with trio.fail_after(60):
                        return 403 if "unauthorized" in await again.refusal() else 500
            except HttpError as error:
                return error.status

        return use

    async def known_ids(self) -> Use:
        return self._get(f"/api/v2/workspaces/{self._places['workspace']}")

    async def all(self, how: dict[str, Any]) -> dict[str, Use]:
        """Return all ways by name that a user with this access has."""
        makers = [self.queued_dry_run, self.known_ids, self.queued_import, self.uploaded_file]
        if "organization_roles" not in how:  # an administrator of an organization enters no workspace of others
            makers += [self.terminal_ticket, self.resume_token]
        return {make.__name__: await make() for make in makers}

    def _get(self, path: str) -> Use:
        async def use() -> int:
            return (await self._world.get(path, token=self._token)).status_code

        return use

    async def _upload(self) -> str:
        content, headers = tar({"main.tf": f"# {uuid4()}"}), {"Content-Type": "application/x-tar"}
        made = await self._world.request("POST", "/api/v2/files", token=self._token, content=content, headers=headers)
        assert made.status_code in {200, 201}, made.text
        return str(made.json()["hash"])

    async def _import(self, file_id: str) -> Any:
        body = {"storage_method": "file", "provisioner": "echo", "tags": {}, "file_id": file_id}
        path = f"/api/v2/organizations/{self._world.organization_id}/templateversions"
        return await self._world.post(path, body | {"template_id": self._places["template"]}, token=self._token)


async def _handshake(policy: DialPolicy, path: str) -> int:
    try:
        stream = await connect_websocket(policy, path, carry=False)
    except HttpError as error:
        return error.status
    await trio.aclose_forcefully(stream)
    return 101


async def _own_build(world: World, token: str, name: str, template: str) -> str:
    """Queue the first build of a workspace of the user; return the workspace's id."""
    body = {"name": name, "template_id": template}
    made = await world.post("/api/v2/users/me/workspaces", body, token=token)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def _delivered(daemon: FakeDaemon, builds: set[str]) -> dict[str, tuple[bool, bool]]:
    """Take all waiting jobs; return whether each of these workspaces' builds got its owner's session token and private
    key.
    """
    result: dict[str, tuple[bool, bool]] = {}
    while builds - result.keys():
        job = await daemon.acquire()
        metadata = job.workspace_build.metadata
        if metadata.workspace_id in builds:
            token, key = metadata.workspace_owner_session_token, metadata.workspace_owner_ssh_private_key
            result[metadata.workspace_id] = bool(token), bool(key)
        await daemon.fail(job, "the test ends here")
    return result


async def test_prepared_work_ends_with_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (recheck_rights, rights_changes, session_revocation):
        monkeypatch.setattr(module, "PAUSE", 0.0)
    wrong, builds, keys = [], {}, {}
    losses: dict[str, Any] = {**LOSSES, UNSHARED: ({"user": True}, ("", "", None))}
    async with workspace_world(**WITH_APPLICATIONS) as (world, _), AsyncExitStack() as stack:
        helper, _ = await world.member("helper")
        places = await shared_objects(world, helper)
        other = await stack.enter_async_context(replica_of(world))
        path = f"/api/v2/workspaces/{places['workspace']}"
        for number, (loss, (how, (method, where, body))) in enumerate(losses.items()):
            names, token = await let_in(world, places, f"guest{number}", how)
            uses = await Preparations(world, token, places).all(how)
            before = {way: await use() for way, use in uses.items() if way != "resume_token"}  # it ends only by refusal
            wrong += [f"before {loss}: {way}: {status}" for way, status in before.items() if status in REFUSED]
            assert (await other.get(path, token=token)).status_code == 200, loss
            if loss not in KEEPS_WORKSPACES:
                builds[loss] = await _own_build(world, token, f"own{number}", places["template"])
            if loss == UNSHARED:
                await share(world, places, names["guest"], away=True)
            else:
                taken = await world.request(method, where.format(**names), json=filled(body, names))
                assert taken.status_code in {200, 204}, f"{loss}: {taken.text}"
            for way, use in uses.items():
                if (status := await use()) not in REFUSED:
                    wrong.append(f"after {loss}: {way}: {status}")

            async def is_refused(token: str = token) -> bool:
                return (await other.get(path, token=token)).status_code in REFUSED

            await eventually(is_refused)
            keys[loss] = token
        async with replica_of(world) as restarted:
            for loss, token in keys.items():
                if (status := (await restarted.get(path, token=token)).status_code) not in REFUSED:
                    wrong.append(f"{loss}: a server that starts later answers {status}")
        async with connected_daemon(world, name="late") as daemon:
            delivered = await _delivered(daemon, set(builds.values()))
        for loss, workspace in builds.items():
            if delivered[workspace] != (loss not in OUTSIDE | ENDS_TOKENS, loss not in OUTSIDE):
                wrong.append(f"after {loss}: the queued build's identity: {delivered[workspace]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("loss", sorted(OUTSIDE))
async def test_queued_claim_ends_with_rights(loss: str) -> None:
    """A prebuilt workspace is claimed, and its new owner loses the right before the build of the claim runs."""
    _, (method, where, body) = LOSSES[loss]
    async with world_with_preset() as (world, _, preset):
        await reconcile(world.ctx)
        (ahead,) = await eventually(lambda: prebuilt(world))
        await make_ready(world, ahead)
        await without_daemon(world)
        user, token = await world.member("claimer")
        claim = {"name": "mine", "template_id": world.extra["template"]["id"], "template_version_preset_id": preset}
        made = await world.post("/api/v2/users/me/workspaces", claim, token=token)
        assert made.status_code == 201 and made.json()["id"] == str(ahead), made.text
        taken = await world.request(method, where.format(guest=user), json=body)
        assert taken.status_code in {200, 204}, taken.text
        async with connected_daemon(world, name="late") as daemon:
            assert await _delivered(daemon, {str(ahead)}) == {str(ahead): (False, False)}
