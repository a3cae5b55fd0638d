"""Commands of a user share a mesh node: which streams are shared, with whom, and until when."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.base.secret import Secret
from coder.client import shared_link
from coder.client.link import WorkspaceLink
from coder.client.overlay_process import OverlayProcess
from coder.client.ready import Preparation
from coder.client.shared_link import SharedLink, open_link_for_command
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import workspace_world
from tests.kit.server.server_in_process import World


@dataclass
class Person:
    policy: DialPolicy
    directory: Path
    process: OverlayProcess
    workspace: str = "dev"

    def becomes(self, token: str) -> None:
        """Return another user, who does not own the workspace."""
        (self.directory / "session").write_text(token)
        self.policy, self.workspace = self.policy.with_token(Secret(token)), "admin/dev"

    @asynccontextmanager
    async def link(self, policy: DialPolicy | None = None) -> AsyncIterator[SharedLink | WorkspaceLink]:
        policy = policy or self.policy
        async with HttpClient(policy) as http:
            prepare = Preparation(http, lambda _text: None)
            target = await prepare.find(self.workspace)
            async with open_link_for_command(policy, self.directory, prepare, target, direct=True) as link:
                yield link


@asynccontextmanager
async def _person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Person, World]]:
    """User with her own session key, an overlay process and a running agent."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="ov-") as folder:
        path = Path(folder) / "overlay"
        monkeypatch.setattr(shared_link, "_socket_path", path)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(path))
        listening.listen()
        async with workspace_world() as view_context, trio.open_nursery() as nursery:
            world = view_context.world
            token = (await world.post("/api/v2/users/me/keys")).json()["key"]
            for name, text in (("url", world.url), ("session", token)):
                (tmp_path / name).write_text(text)
            policy = DialPolicy(world.url, token=Secret(token))
            process = OverlayProcess(nursery)
            listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
            nursery.start_soon(trio.serve_listeners, process.serve, [listener])
            async with running_agent(view_context, DialPolicy(world.url), tmp_path / "agent"):
                with trio.fail_after(60):
                    yield Person(policy, tmp_path, process), world
            nursery.cancel_scope.cancel()


Loss = Callable[[], Awaitable[Any]]


async def _log_out(person: Person, world: World) -> Loss:
    token = person.policy.token
    assert token is not None
    return lambda: world.post("/api/v2/users/logout", token=token.reveal())


async def _remove_role(person: Person, world: World) -> Loss:
    """User with permission because she owns the deployment."""
    user, token = await world.member("olga", roles=["owner"])
    person.becomes(token)
    return lambda: world.put(f"/api/v2/users/{user}/roles", {"roles": []})


async def _remove_share(person: Person, world: World) -> Loss:
    """User that the workspace is shared with."""
    user, token = await world.member("bob")
    person.becomes(token)
    result = (await world.get("/api/v2/users/me/workspace/dev")).json()
    acl = f"/api/v2/workspaces/{result['id']}/acl"
    assert (await world.patch(acl, {"user_roles": {user: "use"}})).status_code == 204
    return lambda: world.patch(acl, {"user_roles": {user: ""}})


@pytest.mark.parametrize("right", [_log_out, _remove_role, _remove_share])
async def test_lost_permission_cuts_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, right: Callable[[Person, World], Awaitable[Loss]]
) -> None:
    async with _person(tmp_path, monkeypatch) as (person, world):
        lose = await right(person, world)
        streams = []
        for _ in range(2):
            async with person.link() as link:
                assert isinstance(link, SharedLink)
                stream = await link.connect(1)
                assert (await stream.receive_some()).startswith(b"SSH-2.0-")
                streams.append(stream)
                result = await link.ping()
                transports, path = await link.explain(result)
                assert path["state"] in {"direct", "relay", "relayed"}
                assert transports[0].name == "api"
        assert len(person.process._nodes) == len(person.process._tunnels) == 1
        assert (await lose()).status_code in {200, 204}
        for stream in streams:
            async with stream:
                while await _continues(stream):
                    pass
        assert not person.process._tunnels


async def _continues(stream: trio.SocketStream) -> bool:
    try:
        return bool(await stream.receive_some())
    except trio.BrokenResourceError:
        return False


@pytest.mark.parametrize("secret_option", ["header", "proxy", "session"])
async def test_command_credentials_are_not_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret_option: str
) -> None:
    async with _person(tmp_path, monkeypatch) as (person, _):
        policy = {
            "header": replace(person.policy, headers=(("X-Key", "secret"),)),
            "proxy": replace(person.policy, proxies={"https": "http://me:secret@proxy.example"}),
            "session": person.policy,
        }[secret_option]
        if secret_option == "session":  # the directory has another token meanwhile
            (tmp_path / "session").write_text("another-token")
        async with person.link(policy) as link:
            assert isinstance(link, WorkspaceLink)
            await link.wait_reachable()
        assert not person.process._nodes and not person.process._tunnels
