"""Setting the passwords of other users: a change without the old password takes the account over."""

from __future__ import annotations

import pytest

from tests.kit.server.server_in_process import FIRST_USER, running_coderd

NEW = "An0ther-Secret!"
OLD = FIRST_USER["password"]
READ, PERSONAL = "user:read", "user:update_personal"


@pytest.mark.parametrize(
    ("role", "scopes", "old", "status"),
    [
        ("owner", ["coder:all"], "", 204),
        ("owner", ["user:*"], "", 204),
        ("owner", [READ, PERSONAL], "", 403),
        ("owner", [READ, PERSONAL], OLD, 204),
        ("owner", [READ, PERSONAL], "wrong", 400),
        ("owner", [READ], OLD, 403),
        ("user-admin", ["coder:all"], "", 204),
        ("user-admin", [READ, PERSONAL], "", 403),
        ("user-admin", [READ, PERSONAL], OLD, 204),
    ],
)
async def test_narrow_keys_need_old_password(role: str, scopes: list[str], old: str, status: int) -> None:
    async with running_coderd(first_user=True) as world:
        await world.member("alice")
        _, login = await world.member("boss", roles=[role])
        made = await world.post("/api/v2/users/me/keys/tokens", {"token_name": "t", "scopes": scopes}, token=login)
        assert made.status_code == 201, made.text
        body = {"password": NEW, "old_password": old}
        answer = await world.put("/api/v2/users/alice/password", body, token=made.json()["key"])
        assert answer.status_code == status, answer.text
        current = NEW if status == 204 else OLD
        assert await world.login("alice@b.c", current)
