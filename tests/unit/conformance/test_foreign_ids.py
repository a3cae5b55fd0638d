"""An administrator of one organization calls every route with an id, with ids of another organization.

No response may be a success, and none may reveal more about the object than the request. The walk of
`tests/conformance` does the same as a plain member; this caller has all rights in an own organization.
"""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.conformance.world import Populated, populated
from tests.kit.api.api_description import operations
from tests.kit.api.api_fuzzer import fill
from tests.kit.api.callable_operations import SETTINGS, Described, described

OPEN = frozenset(
    {
        "GET /derp/streams/{ident}",  # authorized by the id, which cannot be guessed
        # Organization admins may see every user, to add them (recorded, as in the reference release).
        "GET /api/v2/users/{user}",
        "GET /api/v2/users/{user}/keys/tokens",
        "GET /api/v2/users/{user}/keys/tokens/tokenconfig",
        "GET /api/v2/users/{user}/organizations",
        "GET /api/v2/workspace-quota/{user}",
    }
)
OF_THE_SITE = (
    "/.well-known/",
    "/scim/",
    "/api/v2/external-auth/",
    "/external-auth/",
    "/gitauth/",
    "/api/v2/workspaceproxies/",
    "/api/v2/provisionerkeys/",
    "/api/v2/oauth2-provider/",
    "/oauth2/clients/",
    "/api/v2/workspaceagents/me/",
    "/bin/",
    "/api/v2/init-script/",
    "/swagger",
    "/icons/",
)
"""Objects of no organization, or routes with another kind of key."""


async def _administrator_elsewhere(world: Populated) -> str:
    token = await world.token("stranger")
    mine = (await world.world.get("/api/v2/users/me/organizations", token=token)).json()
    user = (await world.world.get("/api/v2/users/me", token=token)).json()
    path = f"/api/v2/organizations/{mine[0]['id']}/members/{user['id']}/roles"
    response = await world.world.put(path, {"roles": ["organization-admin"]})
    assert response.status_code == 200, response.text
    return token


async def _ask(world: Populated, item: Described, token: str) -> str:
    path = fill(item.path, {name: quote(value, safe="") for name, value in item.values.items()})
    response = await world.ask(item.method, path, token, item.body)
    values = {value for (who, _), value in world.things.items() if who in {"victim", "site"} and len(value) > 8}
    asked = path + str(item.body)
    leaks = [value for value in values if value not in asked and value in response.text]
    if response.status_code < 400:
        return f"{item.name}: {response.status_code} {response.text[:200]}"
    return f"{item.name}: {response.status_code} says {leaks}: {response.text[:200]}" if leaks else ""


@pytest.mark.soak
async def test_foreign_organization_ids_refused() -> None:
    names = {
        f"{method} {path}"
        for method, path, _ in operations()
        if "{" in path and not path.startswith(OF_THE_SITE) and f"{method} {path}" not in OPEN
    }
    wrong = []
    async with populated(**SETTINGS) as world:
        token = await _administrator_elsewhere(world)
        async for item in described(world, names.__contains__):
            result = await _ask(world, item, token)
            wrong += [result] * bool(result)
    assert not wrong, "\n".join(wrong)
