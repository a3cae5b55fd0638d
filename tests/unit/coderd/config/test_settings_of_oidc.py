"""Settings of OpenID Connect, one by one, by admitted users and their redirects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from coder.base.secret import Secret
from tests.kit.api.http_clients import http_client
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.stand_ins.oidc_provider import CLIENT_ID, IdentityProvider, identity_provider

CALLBACK = "/api/v2/users/oidc/callback"
ELSEWHERE = "https://coder.example/oidc"
_numbers = count(1)


@dataclass
class Site:
    world: World
    idp: IdentityProvider
    second: str = ""
    """Id of an organization besides the default one."""


Observation = Callable[[Site], Awaitable[Any]]


async def redirect_query(site: Site) -> dict[str, list[str]]:
    async with http_client(site.world.url) as browser:
        return parse_qs(urlsplit((await browser.get(CALLBACK)).headers["location"]).query)


async def sign_in(site: Site) -> httpx.Response:
    """Sign in as a new user."""
    number = next(_numbers)
    site.idp.claims = {
        "sub": f"s-{number}",
        "email": f"p{number}@example.com",
        "email_verified": True,
        "name": "Carla",
        "preferred_username": f"p{number}",
        "mail": f"other{number}@example.com",
        "nick": f"nick{number}",
        "full": "Carla Full",
        "orgs": ["word"],
        "roles": [],
    }
    site.idp.info = {"name": "Carla of the user info"}
    site.idp.access_claims = {"sub": f"s-{number}", "name": "Carla of the access token"}
    async with http_client(site.world.url) as browser:
        there = await browser.get(CALLBACK)
        state = parse_qs(urlsplit(there.headers["location"]).query)["state"][0]
        return await browser.get(CALLBACK, params={"code": "good", "state": state})


def new_user(*names: str) -> Observation:
    """Return a fact about a new user, without the numbers that distinguish users."""

    async def observe(site: Site) -> Any:
        answer = await sign_in(site)
        assert answer.status_code == 307, answer.text
        result = (await site.world.get("/api/v2/users/me", token=answer.cookies["coder_session_token"])).json()
        for name in names:
            result = result[name]
        return result.rstrip("0123456789") if isinstance(result, str) else result

    return observe


async def email_of_new_user(site: Site) -> str:
    return str(await new_user("email")(site)).startswith("other") * "other"


async def site_roles(site: Site) -> list[str]:
    return [role["name"] for role in await new_user("roles")(site)]


async def is_in_second_organization(site: Site) -> bool:
    return site.second in await new_user("organization_ids")(site)


async def refusal(site: Site) -> bool:
    return "Ask Carla." in (await sign_in(site)).text


async def foreign_issuer(site: Site) -> int:
    site.idp.url, before = "http://elsewhere", site.idp.url
    try:
        return (await sign_in(site)).status_code
    finally:
        site.idp.url = before


def button(name: str) -> Observation:
    """Return a button of the login page."""

    async def observe(site: Site) -> str:
        return str((await site.world.get("/api/v2/users/authmethods")).json()["oidc"][name])

    return observe


def parameter(name: str) -> Observation:
    async def observe(site: Site) -> Any:
        return (await redirect_query(site)).get(name)

    return observe


@dataclass(frozen=True)
class Case:
    value: Any
    observe: Observation
    seen: Any
    dependencies: dict[str, Any] = field(default_factory=dict)
    """Other settings that the setting depends on."""


OBSERVED: dict[str, Case] = {
    "oidc_email_field": Case("mail", email_of_new_user, "other"),
    "oidc_username_field": Case("nick", new_user("username"), "nick"),
    "oidc_name_field": Case("full", new_user("name"), "Carla Full", {"oidc_ignore_userinfo": True}),
    "oidc_ignore_userinfo": Case(True, new_user("name"), "Carla"),
    "oidc_access_token_claims": Case(True, new_user("name"), "Carla of the access token"),
    "oidc_auth_url_params": Case('{"prompt": "login"}', parameter("prompt"), ["login"]),
    "oidc_redirect_url": Case(ELSEWHERE, parameter("redirect_uri"), [ELSEWHERE]),
    "oidc_icon_url": Case("/icon/carla.svg", button("iconUrl"), "/icon/carla.svg"),
    "oidc_sign_in_text": Case("Carla's", button("signInText"), "Carla's"),
    "oidc_scopes": Case(("openid", "groups"), parameter("scope"), ["openid groups"]),
    "oidc_signups_disabled_text": Case("Ask Carla.", refusal, True, {"oidc_allow_signups": False}),
    "oidc_user_role_default": Case(("auditor",), site_roles, ["auditor"], {"oidc_user_role_field": "roles"}),
    "oidc_organization_mapping": Case("", is_in_second_organization, True, {"oidc_organization_field": "orgs"}),
    "dangerous_oidc_skip_issuer_checks": Case(True, foreign_issuer, 307),
}


async def test_every_oidc_setting_has_its_effect() -> None:
    with identity_provider() as idp:
        options: dict[str, Any] = {
            "oidc_issuer_url": idp.url,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": Secret("sec"),
        }
        async with running_coderd(first_user=True, **options) as world:
            made = await world.post("/api/v2/organizations", {"name": "second"})
            site = Site(world, idp, made.json()["id"])
            default = world.ctx.config
            for name, case in OBSERVED.items():
                changed: dict[str, Any] = {name: case.value or {"word": [site.second]}}
                world.ctx.config = replace(default, **case.dependencies)
                before = await case.observe(site)
                world.ctx.config = replace(default, **case.dependencies, **changed)
                seen = await case.observe(site)
                assert seen == case.seen != before, name
