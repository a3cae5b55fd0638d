"""Algorithm of sealed keys: each workspace proxy gets what all its processes read, the server's own hosts `dir`."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest

from coder.api.proxies.sealed_keys import HEADER, READ
from coder.appproxy.apps.app_tickets import DIRECT, WRAPPED
from coder.coderd.services.apps import app_tokens
from coder.domain.apps.app_headers import API_KEY_QUERY
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspace_proxy import PROXIES

PATH_APP = "https://proxy.test:8443/@admin/dev/apps/web/"
HOST_APP = "https://web--main--dev--admin.apps.proxy.test:8443/"
ORIGINAL = {"User-Agent": "Go-http-client/1.1"}
FORMER = {"User-Agent": "coder/v2.34.0"}
"Workspace proxy of version 2.34.0 of this project."
CURRENT = {"User-Agent": "coder/v2.34.0", HEADER: READ}
REGISTRATIONS: dict[str, tuple[list[dict[str, str]], str]] = {
    "original": ([ORIGINAL], WRAPPED),
    "former": ([FORMER], DIRECT),
    "current": ([CURRENT], WRAPPED),
    "upgrade of one process": ([FORMER, CURRENT], DIRECT),
    "current and original": ([ORIGINAL, CURRENT], WRAPPED),
    "none": ([], WRAPPED),
}


async def _register(world: World, token: str, headers: dict[str, str]) -> None:
    body: dict[str, Any] = {
        "access_url": "https://proxy.test:8443",
        "wildcard_hostname": "*.apps.proxy.test:8443",
        "derp_enabled": False,
        "derp_only": False,
        "replica_id": str(uuid4()),
        "replica_hostname": "box",
        "replica_error": "",
        "replica_relay_address": "",
        "version": "v2.34.0",
    }
    sent = {"Coder-External-Proxy-Token": token, **headers}
    answer = await world.request("POST", f"{PROXIES}/me/register", token="", headers=sent, json=body)
    assert answer.status_code == 201, answer.text


async def _algorithm(world: World, address: str) -> str:
    """Return the algorithm of the key that a visitor of that address gets."""
    answer = await world.get("/api/v2/applications/auth-redirect", params={"redirect_uri": address})
    assert answer.status_code in {303, 307}, answer.text
    sealed = parse_qs(urlsplit(answer.headers["location"]).query)[API_KEY_QUERY][0]
    assert await app_tokens.open_key_untrusted(world.ctx, sealed)
    head = sealed.split(".")[0]
    return str(json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))["alg"])


@pytest.mark.parametrize("name", REGISTRATIONS)
async def test_every_proxy_gets_what_it_reads(name: str) -> None:
    registrations, algorithm = REGISTRATIONS[name]
    async with running_coderd(first_user=True) as world:
        made = await world.post(PROXIES, {"name": "sydney", "display_name": "", "icon": ""})
        await _register(world, made.json()["proxy_token"], CURRENT)
        await world.ctx.db.run(_forget_processes)
        for headers in registrations:
            await _register(world, made.json()["proxy_token"], headers)
        for address in (PATH_APP, HOST_APP):
            assert await _algorithm(world, address) == algorithm, address
        shown = (await world.get(f"{PROXIES}/sydney")).json()
        assert shown["version"] == "v2.34.0"


async def test_own_hosts_suit_former_replicas() -> None:
    async with running_coderd(
        first_user=True, access_url="https://coder.test", wildcard_access_url="*.apps.test"
    ) as world:
        assert await _algorithm(world, "https://web--main--dev--admin.apps.test/") == DIRECT


async def _forget_processes(tx: Any) -> None:
    from sqlalchemy import delete

    from coder.coderd.store.tables.proxies import workspace_proxy_replicas

    await tx.execute(delete(workspace_proxy_replicas))
