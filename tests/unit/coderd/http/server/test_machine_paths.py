"""Paths of programs never answer with a page."""

from __future__ import annotations

import httpx

from coder.base.secret import Secret
from coder.domain.access.machine_paths import MACHINE_PREFIXES, NESTED
from tests.kit.server.server_in_process import World, running_coderd

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND")
KNOWN = (
    # paths with a route, for the methods that it does not have
    "/healthz",
    "/livez",
    "/readyz",
    "/latency-check",
    "/derp",
    "/derp/latency-check",
    "/bin/coder-linux-amd64",
    "/oauth2/tokens",
    "/oauth2/authorize",
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
    "/api/v2/users/first",
    "/api/v3/users",
    "/scim/v2/Users",
    "/scim/v2/Users/x",
    "/scim/v2/Groups",
    "/scim/v2/Bulk",
    "/scim/v2/Me",
)
ENDPOINTS = {"healthz", "livez", "readyz", "latency-check", "derp"}
UNKNOWN = (
    *(f"/{prefix}{rest}" for prefix in MACHINE_PREFIXES for rest in ("/nope", "/nope/deeper", "/%2e")),
    *(f"/{prefix}{slash}" for prefix in MACHINE_PREFIXES if prefix not in ENDPOINTS for slash in ("", "/")),
    *(f"/workspaces/{path}/users" for path in NESTED),
)
LISTINGS = {"/bin", "/bin/", "/swagger", "/swagger/"}
"""Pages that upstream has below these prefixes."""


async def ask(world: World, method: str, path: str) -> httpx.Response:
    world.client.cookies.clear()
    return await world.client.request(method, path, follow_redirects=False)


def is_page(response: httpx.Response) -> bool:
    return response.status_code == 200 and response.headers.get("content-type", "").startswith("text/html")


async def test_programs_get_no_page() -> None:
    wrong = []
    for key in (None, Secret("key")):
        async with running_coderd(first_user=True, scim_auth_header=key, experiments=("oauth2",)) as world:
            for path in (*KNOWN, *UNKNOWN):
                for method in METHODS:
                    response = await ask(world, method, path)
                    if path in LISTINGS and method in {"GET", "HEAD"}:
                        continue
                    if is_page(response):
                        wrong.append(f"{method} {path}: {response.status_code}")
                    elif path in UNKNOWN and response.status_code not in {401, 404, 405}:
                        wrong.append(f"{method} {path}: {response.status_code}")
                    elif path in UNKNOWN and method not in {"HEAD", "OPTIONS", "PROPFIND"}:
                        is_json = "json" in response.headers.get("content-type", "")
                        wrong += [] if is_json or not response.content else [f"{method} {path}: {response.headers}"]
    assert not wrong, "\n".join(wrong)


async def test_pages_answer_reading_methods() -> None:
    async with running_coderd(first_user=True) as world:
        for path in ("/", "/workspaces", "/@admin/w", "/apiary", "/binary", "/templates/scim"):
            assert is_page(await ask(world, "GET", path)), path
            assert (await ask(world, "HEAD", path)).status_code == 200
            for method in ("PUT", "PATCH", "DELETE"):
                response = await ask(world, method, path)
                assert (response.status_code, response.json()) == (405, {"message": "Method not allowed."}), path
        assert (await ask(world, "POST", "/")).status_code == 200, "recorded"
        assert (await ask(world, "POST", "/workspaces")).headers["allow"] == "GET, HEAD"
