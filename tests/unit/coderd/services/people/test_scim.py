"""Users provisioned by an identity provider."""

from __future__ import annotations

from typing import Any

import pytest

from coder.base.secret import Secret
from tests.kit.server.server_in_process import World, running_coderd

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


async def test_provisioned_user_lifecycle() -> None:
    async with running_coderd(first_user=True, scim_auth_header=KEY) as world:
        created = await ask(world, "POST", body=ADA)
        assert created.status_code == 200 and created.headers["content-type"] == "application/scim+json"
        user = (await world.get("/api/v2/users/ada-l")).json()
        assert (user["id"], user["email"], user["name"], user["login_type"], user["status"]) == (
            created.json()["id"],
            "ada@example.com",
            "Ada L",
            "oidc",
            "dormant",
        )
        assert user["organization_ids"] == [world.organization_id]
        assert (await ask(world, "POST", body=ADA)).json()["id"] == user["id"]
        path = f"{USERS}/{user['id']}"
        deleted = await ask(world, "PATCH", path, {"active": False})
        assert deleted.json()["status"] == "suspended"
        operations = {"Operations": [{"op": "Replace", "path": "active", "value": "True"}]}
        assert (await ask(world, "PATCH", path, operations)).json()["status"] == "dormant"
        assert (await ask(world, "PUT", path, {**ADA, "userName": "else"})).status_code == 400
        assert (await ask(world, "PUT", path, {**ADA, "userName": "ada-l", "active": False})).json()[
            "status"
        ] == "suspended"
        assert (await ask(world, "GET", path)).json()["active"] is False
        assert {item["userName"] for item in (await ask(world, "GET")).json()["Resources"]} == {"ada-l", "admin"}
        refused = await ask(world, "PATCH", f"{USERS}/{world.user_id}", {"active": False})
        assert refused.status_code == 400 and "owner" in refused.json()["detail"]


NO_USERS: list[Any] = [{}, {"userName": "x"}, {"emails": [{"value": "nonsense"}]}, [], {"emails": 1, "active": "yes"}]


async def test_invalid_scim_documents() -> None:
    async with running_coderd(first_user=True, scim_auth_header=KEY) as world:
        for body in NO_USERS:
            refused = await ask(world, "POST", body=body)
            assert refused.status_code == 400 and refused.json()["status"] == "400", body
        assert (await world.get("/api/v2/users")).json()["count"] == 1


async def test_provider_token_is_required() -> None:
    async with running_coderd(first_user=True, scim_auth_header=KEY) as world:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Coder-Session-Token": world.token}):
            assert (await ask(world, "GET", headers=headers)).status_code == 401
            assert (await ask(world, "POST", body=ADA, headers=headers)).status_code == 401
        assert (await ask(world, "GET", f"{USERS}/nonsense")).status_code == 404
    async with running_coderd(first_user=True) as world:
        assert (await ask(world, "GET")).status_code == 404
        assert (await ask(world, "GET", headers={"Authorization": ""})).status_code == 404


_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:User"
_OPERATION: dict[str, Any] = {"op": "replace", "path": "active", "value": False}
ENDS: tuple[dict[str, Any], ...] = (
    # every form in which a provider deactivates a user
    {"active": False},
    {"Active": False},
    {"ACTIVE": False},
    {f"{_SCHEMA}:active": False},
    {"active": "False"},
    {_SCHEMA: {"active": False}},
    {"operations": [_OPERATION]},
    {"OPERATIONS": [{"OP": "Replace", "PATH": "active", "Value": False}]},
    *[
        {"Operations": [{**_OPERATION, **more}]}
        for more in (
            {},
            {"op": "Replace"},
            {"op": "ADD"},
            {"value": "False"},
            {"value": "false"},
            {"path": "Active"},
            {"path": f"{_SCHEMA}:active"},
            {"path": f"{_SCHEMA.upper()}:Active"},
            {"path": "", "value": {"active": False}},
            {"path": None, "value": {"Active": "False"}},
            {"path": None, "value": {f"{_SCHEMA}:active": False}},
        )
    ],
    {"Operations": [{"op": "replace", "path": "displayName", "value": "x"}, _OPERATION]},
    {"Operations": [{**_OPERATION, "value": True}, _OPERATION]},
)
_NEITHER: tuple[Any, ...] = ("no", "", 0, [], {}, "False ", [False])
NONSENSE: tuple[Any, ...] = (
    # malformed values of `active`: refused, not ignored
    {"active": "no"},
    {"active": 0},
    {"active": []},
    {"active": {}},
    [],
    "x",
    1,
    None,
    [{"active": False}],
    {"active": True, "Active": False},
    {"operations": [{**_OPERATION, "value": 1}]},
    *[{"Operations": [{**_OPERATION, "value": value}]} for value in (*_NEITHER, None)],
    *[
        {"Operations": [{**_OPERATION, **more}]}
        for more in (
            {"op": "remove"},
            {"op": "Remove", "path": f"{_SCHEMA}:active"},
            {"op": "move"},
            {"op": ""},
            {"op": "remove", "path": None},
            {"path": 'active[value eq "' + "(" * 5000},
        )
    ],
)
IGNORED: tuple[dict[str, Any], ...] = (
    # patches that change nothing: names, addresses, login types, roles
    {},
    {"userName": "admin"},
    {"emails": [{"value": "a@b.c", "primary": True}]},
    {"id": "x"},
    {"roles": ["owner"]},
    {"login_type": "none"},
    {"password": "SomeSecure123!"},
    {"groups": [{"value": "owner"}]},
    {"deleted": True},
    {"Operations": 1},
    {"Operations": []},
    {"Operations": [1, None, "x", []]},
    {"Operations": [{}]},
    *[
        {"Operations": [{"op": op, "path": path, "value": value}]}
        for op, path, value in (
            ("replace", "userName", "admin"),
            ("replace", "USERNAME", "admin"),
            ("add", "emails", [{"value": "a@b.c"}]),
            ("replace", 'emails[type eq "work"].value', "a@b.c"),
            ("replace", "roles", ["owner"]),
            ("remove", "emails", 1),
            ("replace", "password", "SomeSecure123!"),
            ("move", "emails", 1),
            ("replace", {"active": 1}, False),
            ("replace", ["active"], False),
            ("replace", "x" * 9000, False),
            ("replace", 'emails[value eq "' + "(" * 5000, False),
            ("add", "groups", [{"value": "owner"}]),
        )
    ],
)
FILTERS = ('userName sw "admin"', 'roles eq "x"', "(" * 3000, '" or 1 eq 1', "\x00", "x" * 9000, "id pr", "é" * 500)


async def test_patch_applies_or_is_refused() -> None:
    wrong: list[str] = []
    async with running_coderd(first_user=True, scim_auth_header=KEY) as world:
        created = (await ask(world, "POST", body=ADA)).json()["id"]
        local, _ = await world.member("local")
        for ident, every in ((created, 1), (local, 4)):
            path, view = f"{USERS}/{ident}", f"/api/v2/users/{ident}"
            for body in ENDS[::every]:
                assert (await ask(world, "PATCH", path, {"active": True})).status_code == 200
                answer = await ask(world, "PATCH", path, body)
                status = (await world.get(view)).json()["status"]
                if (answer.status_code, status) != (200, "suspended"):
                    wrong.append(f"{body}: {answer.status_code}, {status}")
            assert (await ask(world, "PATCH", path, {"active": True})).status_code == 200
            before = _lasting((await world.get(view)).json())
            for body in (*NONSENSE, *IGNORED)[::every]:
                answer = await ask(world, "PATCH", path, body)
                if answer.status_code != (400 if any(body is item for item in NONSENSE) else 200):
                    wrong.append(f"{str(body)[:200]}: {answer.status_code} {answer.text[:200]}")
                if (after := _lasting((await world.get(view)).json())) != before:
                    wrong.append(f"{str(body)[:200]}: {before} became {after}")
            taken = await ask(world, "PUT", path, {**ADA, "userName": "admin"})
            assert taken.status_code == 400, taken.text
        for text in FILTERS:
            answer = await world.request("GET", USERS, params={"filter": text}, headers=BEARER, token="")
            if answer.status_code != 400 or answer.json()["scimType"] != "invalidFilter":
                wrong.append(f"{text[:50]!r}: {answer.status_code}")
    assert not wrong, "\n".join(wrong)


def _lasting(user: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in user.items() if name not in {"updated_at", "last_seen_at"}}


@pytest.mark.parametrize(
    "change",
    [{"Active": False}, {"active": "False"}, {_SCHEMA: {"Active": "false"}}, {f"{_SCHEMA.upper()}:active": False}],
)
async def test_provisioning_inactive_user(change: dict[str, Any]) -> None:
    """Creating a user also compares names case-insensitively."""
    sent = {name.upper(): value for name, value in ADA.items() if name != "active"}
    async with running_coderd(first_user=True, scim_auth_header=KEY) as world:
        created = await ask(world, "POST", body={**sent, **change})
        assert created.status_code == 200, created.text
        assert (created.json()["active"], created.json()["userName"]) == (False, "ada-l")
        assert len({name.lower() for name in created.json()}) == len(created.json()), "names are unique"
        user = (await world.get("/api/v2/users/ada-l")).json()
        assert (user["status"], user["name"], user["email"]) == ("suspended", "Ada L", "ada@example.com")
        path = f"{USERS}/{user['id']}"
        same = await ask(world, "PUT", path, {**sent, "USERNAME": "ADA-L", "ACTIVE": "True"})
        assert (same.status_code, same.json()["status"]) == (200, "dormant")
        assert (await ask(world, "PUT", path, {"username": "else", "active": False})).status_code == 400


async def test_deleted_user_is_not_found() -> None:
    async with running_coderd(first_user=True, scim_auth_header=KEY) as world:
        created = (await ask(world, "POST", body=ADA)).json()["id"]
        path = f"{USERS}/{created}"
        assert (await world.delete(f"/api/v2/users/{created}")).status_code == 200
        for method, body in (("GET", None), ("PATCH", {"active": True}), ("PUT", {"active": False}), ("DELETE", None)):
            assert (await ask(world, method, path, body)).status_code == 404, method
