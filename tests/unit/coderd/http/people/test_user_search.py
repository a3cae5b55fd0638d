"""Every list of users has the same search and pagination, for all kinds of users."""

from __future__ import annotations

from typing import Any

import pytest

from coder.api.base.refusals import Invalid
from coder.coderd.http.people.user_search import USER_SEARCH, search_filter
from tests.kit.server.server_in_process import World, running_coderd

LISTS = {
    "/users": "users",
    "/organizations/default/paginated-members": "members",
    "/groups/{organization}/members": "users",
    "/organizations/default/groups/Everyone/members": "users",
    "/organizations/default/members/me/workspaces/available-users": "",
}
"""Path -> location of the users in the response."""
FOUND = {
    "ali": ["alice"],
    "status:suspended": ["bert"],
    "role:user-admin": ["carol"],
    "login_type:password status:active": ["admin", "alice", "carol"],
    "created_after:2099-01-01t00:00:00z": None,
    'created_after:"2099-01-01T00:00:00Z"': [],
    "service_account:true": [],
    "status:awake": None,
    "colour:red": None,
}
"""Search -> matching users; None where it is refused."""
_VALUES = {"status": "active", "login_type": "password", "service_account": "false", "github_com_user_id": "7"}


async def _names(world: World, path: str, where: str, **query: Any) -> list[str]:
    answer = await world.get(f"/api/v2{path}", params=query)
    assert answer.status_code == 200, answer.text
    people = answer.json()[where] if where else answer.json()
    if where:
        assert answer.json()["count"] >= len(people)
    return [person["username"] for person in people]


async def test_searches_and_pages() -> None:
    async with running_coderd() as world:
        await world.first_user()
        for name in ("alice", "bert", "carol"):
            user_id, _ = await world.member(name)
            if name == "bert":
                await world.put(f"/api/v2/users/{user_id}/status/suspend")
            if name == "carol":
                await world.put(f"/api/v2/users/{user_id}/roles", {"roles": ["user-admin"]})
        organization = (await world.get("/api/v2/organizations/default")).json()["id"]
        admin = (await world.get("/api/v2/users/me")).json()["id"]
        for pattern, where in LISTS.items():
            path = pattern.format(organization=organization)
            everybody = await _names(world, path, where)
            assert everybody == ["admin", "alice", "bert", "carol"], path
            assert await _names(world, path, where, limit=1, offset=1) == ["alice"]
            assert await _names(world, path, where, limit=2, after_id=admin) == ["alice", "bert"]
            for query, result in FOUND.items():
                if result is not None:
                    assert await _names(world, path, where, q=query) == result, (path, query)
                    continue
                refused = await world.get(f"/api/v2{path}", params={"q": query})
                assert refused.status_code == 400 and refused.json()["validations"], (path, query)
            refused = await world.get(f"/api/v2{path}", params={"limit": -1, "after_id": "x"})
            assert [item["field"] for item in refused.json()["validations"]] == ["after_id", "limit"]


async def test_key_without_read_sees_no_users() -> None:
    async with running_coderd() as world:
        await world.first_user()
        created = await world.post("/api/v2/users/me/keys/tokens", {"scopes": ["template:read"], "token_name": "t"})
        token = created.json()["key"]
        assert (await world.get("/api/v2/users", token=token)).json() == {"users": [], "count": 0}
        assert (await world.get("/api/v2/organizations", token=token)).json() == []
        assert (await world.get("/api/v2/users/me", token=token)).status_code == 404


@pytest.mark.parametrize("key", USER_SEARCH.keys)
def test_every_key_is_read(key: str) -> None:
    value = '"2026-01-01T00:00:00Z"' if key.endswith(("_before", "_after")) else _VALUES.get(key, "x")
    assert search_filter(f"{key}:{value}") != search_filter("")
    if key not in {"name", "role", "search"}:
        with pytest.raises(Invalid) as refused:
            search_filter(f"{key}:zzz", "said so")
        assert (str(refused.value.message), refused.value.validations[0][0]) == ("said so", key)
