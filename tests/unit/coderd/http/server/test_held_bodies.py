"""Requests whose body arrives after their caller has lost the right: the wait for a body may take minutes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio

from coder.coderd.services.access import authentication
from tests.kit.provisioners.scripted_provisioner import tar
from tests.kit.server.server_in_process import World, running_coderd

PATIENCE = 60.0
REQUESTS: dict[str, tuple[str, str, bytes, str]] = {
    "own roles": ("PUT", "users/boss/roles", json.dumps({"roles": ["owner"]}).encode(), "application/json"),
    "another's roles": ("PUT", "users/alice/roles", json.dumps({"roles": ["owner"]}).encode(), "application/json"),
    "own token": ("POST", "users/me/keys/tokens", json.dumps({"token_name": "late"}).encode(), "application/json"),
    "a check before the body": (
        "PATCH",
        "organizations/default/settings/workspace-sharing",
        json.dumps({"sharing_disabled": True}).encode(),
        "application/json",
    ),
    "a file": ("POST", "files", tar({"main.tf": "# late"}), "application/x-tar"),
}
Loss = Callable[[World, str], Awaitable[Any]]


async def _suspend(world: World) -> Any:
    assert (await world.put("/api/v2/users/boss/roles", {"roles": []})).status_code == 200
    return await world.put("/api/v2/users/boss/status/suspend")


LOSSES: dict[str, tuple[Loss, int]] = {
    "signs out": (lambda world, token: world.post("/api/v2/users/logout", token=token), 401),
    "is suspended": (lambda world, _: _suspend(world), 401),
    "loses the role": (lambda world, _: world.put("/api/v2/users/boss/roles", {"roles": []}), 409),
    "leaves the organization": (lambda world, _: world.delete("/api/v2/organizations/default/members/boss"), 409),
}


@pytest.mark.parametrize("loss", LOSSES)
async def test_held_request_loses_rights(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: list[str] = []
    for name in REQUESTS:
        async with running_coderd(first_user=True) as world:
            lose, expected = LOSSES[loss]
            status = await _held(world, name, lose, monkeypatch)
            if status != expected:
                wrong.append(f"{name}: {status}")
            roles = {user["username"]: user["roles"] for user in (await world.get("/api/v2/users")).json()["users"]}
            if roles["alice"]:
                wrong.append(f"{name}: alice has {roles['alice']}")
    assert not wrong, "\n".join(wrong)


async def test_held_request_survives_other_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_coderd(first_user=True) as world:

        async def change(world: World, _: str) -> Any:
            return await world.put("/api/v2/users/alice/status/suspend")

        assert await _held(world, "own token", change, monkeypatch) == 201


async def _held(world: World, name: str, lose: Loss, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the status of a request of an owner, `boss`, whose body is complete only after the loss."""
    await world.member("alice")
    _, token = await world.member("boss", roles=["owner"])
    method, path, body, kind = REQUESTS[name]
    original, recognized = authentication.authenticate, trio.Event()

    async def noticed(ctx: Any, credentials: Any) -> authentication.Caller:
        caller = await original(ctx, credentials)
        if caller.user.username == "boss":
            recognized.set()
        return caller

    with monkeypatch.context() as patch, trio.fail_after(PATIENCE):
        patch.setattr(authentication, "authenticate", noticed)
        where = urlsplit(world.url)
        async with await trio.open_tcp_stream(str(where.hostname), where.port or 80) as stream:
            head = f"{method} /api/v2/{path} HTTP/1.1\r\nHost: {where.netloc}\r\nCoder-Session-Token: {token}\r\n"
            head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            await stream.send_all(head.encode() + body[:-1])
            await recognized.wait()
            taken = await lose(world, token)
            assert taken.status_code in {200, 204}, taken.text
            await stream.send_all(body[-1:])
            answer = b""
            while piece := await stream.receive_some():
                answer += piece
    return int(answer.split(b" ", 2)[1])
