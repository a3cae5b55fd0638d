"""Users provisioned by an identity provider."""

from __future__ import annotations

from typing import Any

import pytest

from coder.base.secret import Secret
from tests.kit.coderd import World, running_coderd

KEY = Secret("scim-key-of-the-provider")
BEARER = {"Authorization": "Bearer scim-key-of-the-provider"}
USERS = "/scim/v2/Users"
ADA: dict[str, Any] = {
    "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
    "userName": "ada.l@example.com",
    "name": {"givenName": "Ada", "familyName": "L"},
    "emails": [{"value": "other@example.com"}, {"primary": True, "value": "ada@example.com", "type": "work"}],
    "active": True,
}


async def ask(world: World, method: str, path: str = USERS, body: Any = None, headers: Any = None) -> Any:
    return await world.request(method, path, json=body, headers=BEARER if headers is None else headers, token="")


async def test_a_user_comes_and_goes_with_the_provider() -> None:
    async with running_coderd(first_user=True, scim_auth_header=KEY) as world:
        made = await ask(world, "POST", body=ADA)
        assert made.status_code == 200 and made.headers["content-type"] == "application/scim+json"
        user = (await world.get("/api/v2/users/ada-l")).json()
        assert (user["id"], user["email"], user["name"], user["login_type"], user["status"]) == (
            made.json()["id"], "ada@example.com", "Ada L", "oidc", "dormant",
        )  # fmt: skip
        assert user["organization_ids"] == [world.organization_id]
        assert (await ask(world, "POST", body=ADA)).json()["id"] == user["id"]
        path = f"{USERS}/{user['id']}"
        gone = await ask(world, "PATCH", path, {"active": False})
        assert gone.json()["status"] == "suspended"
        operations = {"Operations": [{"op": "Replace", "path": "active", "value": "True"}]}
        assert (await ask(world, "PATCH", path, operations)).json()["status"] == "dormant"
        assert (await ask(world, "PUT", path, {**ADA, "userName": "else"})).status_code == 400
        assert (await ask(world, "PUT", path, {**ADA, "userName": "ada-l", "active": False})).json()[
            "status"
        ] == "suspended"
        assert (await ask(world, "GET", path)).json()["active"] is False
        assert (await ask(world, "GET")).json()["totalResults"] == 0
        refused = await ask(world, "PATCH", f"{USERS}/{world.user_id}", {"active": False})
        assert refused.status_code == 400 and "owner" in refused.json()["detail"]


@pytest.mark.parametrize(
    "body", [{}, {"userName": "x"}, {"emails": [{"value": "nonsense"}]}, [], {"emails": 1, "active": "yes"}]
)
async def test_documents_that_make_no_user(body: Any) -> None:
    async with running_coderd(first_user=True, scim_auth_header=KEY) as world:
        refused = await ask(world, "POST", body=body)
        assert refused.status_code == 400 and refused.json()["status"] == "400"
        assert (await world.get("/api/v2/users")).json()["count"] == 1


async def test_nobody_else_comes_near() -> None:
    async with running_coderd(first_user=True, scim_auth_header=KEY) as world:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Coder-Session-Token": world.token}):
            assert (await ask(world, "GET", headers=headers)).status_code == 401
            assert (await ask(world, "POST", body=ADA, headers=headers)).status_code == 401
        assert (await ask(world, "GET", f"{USERS}/nonsense")).status_code == 404
    async with running_coderd(first_user=True) as world:
        assert (await ask(world, "GET")).status_code == 404
        assert (await ask(world, "GET", headers={"Authorization": ""})).status_code == 404
