"""Requests of identity providers and of SCIM testers, in the order in which they send them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from coder.base.secret import Secret
from tests.kit.server.server_in_process import World, running_coderd

KEY = "scim-key-of-the-provider"
BASE = "/scim/v2"
CORE = "urn:ietf:params:scim:schemas:core:2.0"
PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
SCIM = "application/scim+json"


async def ask(world: World, method: str, path: str, body: Any = None, **query: Any) -> Any:
    headers = {"Authorization": f"Bearer {KEY}", "Accept": SCIM}
    return await world.request(method, BASE + path, json=body, params=query, headers=headers, token="")


async def status_of(world: World, name: str) -> str:
    return str((await world.get(f"/api/v2/users/{name}")).json()["status"])


def server() -> Any:
    return running_coderd(first_user=True, scim_auth_header=Secret(KEY))


async def test_okta_life_cycle() -> None:
    async with server() as world:
        assert (await ask(world, "GET", "/Users", startIndex=1, count=1)).json()["itemsPerPage"] == 1
        found = await ask(world, "GET", "/Users", filter='userName eq "ada.l@example.com"', startIndex=1, count=100)
        assert (found.status_code, found.json()["totalResults"]) == (200, 0)
        user = {
            "schemas": [f"{CORE}:User"],
            "userName": "ada.l@example.com",
            "name": {"givenName": "Ada", "familyName": "L"},
            "emails": [{"primary": True, "value": "ada.l@example.com", "type": "work"}],
            "displayName": "Ada L",
            "locale": "en-US",
            "externalId": "00ujl29u0le5T6Aj10h7",
            "groups": [],
            "password": "1mz050nq",
            "active": True,
        }
        ident = (await ask(world, "POST", "/Users", user)).json()["id"]
        again = await ask(world, "GET", "/Users", filter='userName eq "ada.l@example.com"', startIndex=1, count=100)
        assert [item["id"] for item in again.json()["Resources"]] == [ident]
        changed = await ask(world, "PUT", f"/Users/{ident}", {**user, "id": ident, "active": False})
        assert (changed.status_code, changed.json()["active"]) == (200, False), "its own userName is no change"
        assert await status_of(world, "ada-l") == "suspended"
        operation = {"op": "replace", "value": {"active": True}}
        patched = await ask(world, "PATCH", f"/Users/{ident}", {"schemas": [PATCH_OP], "Operations": [operation]})
        assert patched.json()["active"] is True and patched.headers["content-type"] == SCIM
        groups = await ask(world, "GET", "/Groups", startIndex=1, count=100)
        assert (groups.status_code, groups.json()["Resources"]) == (200, [])
        pushed = await ask(world, "POST", "/Groups", {"schemas": [f"{CORE}:Group"], "displayName": "devs"})
        assert (pushed.status_code, pushed.headers["allow"]) == (405, "GET")


async def test_entra_life_cycle() -> None:
    async with server() as world:
        probe = await ask(world, "GET", "/Users", filter=f'userName eq "{uuid4()}"')
        assert (probe.status_code, probe.json()["totalResults"]) == (200, 0), "the connection test"
        user = {
            "schemas": [f"{CORE}:User", "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
            "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
            "userName": "bob@example.com",
            "active": True,
            "emails": [{"primary": True, "type": "work", "value": "bob@example.com"}],
            "meta": {"resourceType": "User"},
            "name": {"formatted": "Bob B", "familyName": "B", "givenName": "Bob"},
            "roles": [],
        }
        ident = (await ask(world, "POST", "/Users", user)).json()["id"]
        read = await ask(world, "GET", f"/Users/{ident}")
        assert (read.json()["emails"][0]["value"], read.json()["meta"]["resourceType"]) == ("bob@example.com", "User")
        operations = [
            {"op": "Replace", "path": "displayName", "value": "Robert"},
            {"op": "Replace", "path": "active", "value": "False"},
        ]
        body = {"schemas": [PATCH_OP], "Operations": operations}
        assert (await ask(world, "PATCH", f"/Users/{ident}", body)).json()["active"] is False
        for _ in range(2):
            gone = await ask(world, "DELETE", f"/Users/{ident}")
            assert (gone.status_code, gone.content) == (204, b"")
        assert await status_of(world, "bob") == "suspended"
        query = {"excludedAttributes": "members", "filter": 'displayName eq "devs"'}
        assert (await ask(world, "GET", "/Groups", **query)).json()["totalResults"] == 0
        assert (await ask(world, "PATCH", f"/Groups/{uuid4()}", body)).status_code == 404


async def test_discovery_describes_resources() -> None:
    async with server() as world:
        config = (await ask(world, "GET", "/ServiceProviderConfig")).json()
        assert (config["filter"]["supported"], config["bulk"]["supported"]) == (True, False)
        types = (await ask(world, "GET", "/ResourceTypes")).json()
        assert [(item["id"], item["endpoint"]) for item in types["Resources"]] == [("User", "/Users")]
        schemas = (await ask(world, "GET", "/Schemas")).json()
        assert [item["id"] for item in schemas["Resources"]] == [types["Resources"][0]["schema"]]
        for listed in (types, schemas):
            for item in listed["Resources"]:
                path = item["meta"]["location"].partition(BASE)[2]
                assert (await ask(world, "GET", path)).json() == item
        names = {item["name"]: item for item in schemas["Resources"][0]["attributes"]}
        read = (await ask(world, "GET", f"/Users/{world.user_id}")).json()
        assert set(names) <= set(read), "every described attribute is returned"
        assert {part["name"] for part in names["name"]["subAttributes"]} == set(read["name"])
        for path in ("/ResourceTypes/Group", "/Schemas/urn:none", "/ResourceTypes/User/x"):
            refused = await ask(world, "GET", path)
            assert (refused.status_code, refused.json()["status"]) == (404, "404")
        assert (await ask(world, "GET", "/Schemas", filter='id eq "x"')).status_code == 403


async def test_lists_have_pages_and_filters() -> None:
    async with server() as world:
        for number in range(3):
            await world.member(f"user{number}")
        assert (await ask(world, "GET", "/Users")).json()["totalResults"] == 4
        pages = [(await ask(world, "GET", "/Users", startIndex=index, count=2)).json() for index in (1, 3, 5)]
        assert [(page["totalResults"], page["startIndex"], page["itemsPerPage"]) for page in pages] == [
            (4, 1, 2),
            (4, 3, 2),
            (4, 5, 0),
        ]
        names = [item["userName"] for page in pages for item in page["Resources"]]
        assert names == ["admin", "user0", "user1", "user2"]
        assert (await ask(world, "GET", "/Users", count=0)).json()["itemsPerPage"] == 0
        ident = pages[1]["Resources"][0]["id"]
        assert (await ask(world, "DELETE", f"/Users/{ident}")).status_code == 204
        for text, expected in {
            "active eq false": ["user1"],
            f'id eq "{ident}"': ["user1"],
            f'id eq "{ident}" and active eq true': [],
            'id eq "none"': [],
            'emails.value eq "A@B.C"': ["admin"],
            'externalId eq "x"': [],
            'userName eq "prebuilds"': [],
            "active eq true and active eq false": [],
        }.items():
            found = (await ask(world, "GET", "/Users", filter=text)).json()
            assert [item["userName"] for item in found["Resources"]] == expected, text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "", 404),
        ("GET", "/", 404),
        ("GET", "/Me", 404),
        ("POST", "/Bulk", 404),
        ("POST", "/.search", 404),
        ("GET", "/Groups/x", 404),
        ("POST", "/Groups", 405),
        ("DELETE", "/Groups", 405),
        ("POST", "/Users/.search", 405),
        ("DELETE", "/Users", 405),
        ("POST", "/Users/x", 405),
        ("PUT", "/ServiceProviderConfig", 405),
        ("POST", "/Schemas", 405),
        ("DELETE", "/ResourceTypes/User", 405),
        ("DELETE", "/Users/x", 404),
    ],
)
async def test_other_requests_are_refused(method: str, path: str, status: int) -> None:
    async with server() as world:
        refused = await ask(world, method, path, {} if method != "GET" else None)
        assert (refused.status_code, refused.json()["status"]) == (status, str(status))
        assert refused.headers["content-type"] == SCIM
        assert (await world.request(method, BASE + path, token="")).status_code == 401


async def test_owner_cannot_be_deleted() -> None:
    async with server() as world:
        refused = await ask(world, "DELETE", f"/Users/{world.user_id}")
        assert refused.status_code == 400 and "owner" in refused.json()["detail"]
