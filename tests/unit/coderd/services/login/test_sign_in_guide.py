"""The settings and claims of docs/guides/sign-in.md, signed in with.

Each provider's section has settings (ini), claims (json) and the resulting user; a stand-in provider sends the claims.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from coder.base.config import Inputs
from coder.coderd.config.reading import server_config
from coder.coderd.config.settings import ATTRIBUTES
from tests.kit.api.http_clients import http_client
from tests.kit.paths import ROOT
from tests.kit.server.server_in_process import running_coderd
from tests.kit.stand_ins.oidc_provider import CLIENT_ID, identity_provider

GUIDE = ROOT / "docs/guides/sign-in.md"
_SECTION = re.compile(r"^###? (?P<name>[^\n]+)\n(?P<body>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"```(ini|json)\n(.*?)```", re.DOTALL)
_RESULT = re.compile(r"^Result: user `([^`]+)`, `([^`]+)`, groups (.*?), roles (.*?)\.$", re.MULTILINE)
GITHUB = {
    "/user": {"id": 7, "login": "octo", "name": "Octo Cat", "avatar_url": ""},
    "/user/emails": [{"email": "octo@example.com", "primary": True, "verified": True}],
    "/user/memberships/orgs": [{"state": "active", "organization": {"login": "acme"}}],
    "/orgs/acme/teams/core/memberships/octo": {"state": "active"},
}


@dataclass(frozen=True)
class Shape:
    """A provider of the guide: settings of the server, claims of a user, and the account they make."""

    settings: dict[str, str]
    claims: dict[str, Any]
    result: tuple[str, str, set[str], set[str]]


def _environment(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if line)


def _shapes() -> dict[str, Shape]:
    shapes = {}
    for section in _SECTION.finditer(GUIDE.read_text()):
        blocks = dict(_BLOCK.findall(section["body"]))
        result = _RESULT.search(section["body"])
        if result and "json" in blocks:
            groups, roles = ({*re.findall("`([^`]+)`", text)} for text in (result[3], result[4]))
            account = (result[1], result[2], groups, roles)
            shapes[section["name"]] = Shape(_environment(blocks["ini"]), json.loads(blocks["json"]), account)
    return shapes


SHAPES = _shapes()


def _options(environment: dict[str, str]) -> dict[str, Any]:
    """Return the attributes of the configuration that a server reads from the environment."""
    config = server_config(Inputs(env=environment), Path("/nonexistent"))
    assert config.resolved is not None
    return {name: getattr(config, name) for name in ATTRIBUTES if config.resolved.sources[name] == "env"}


async def _account(settings: dict[str, str], path: str, issuer: str) -> tuple[Any, ...]:
    """Sign in with a server of these settings and return name, address, groups and roles."""
    async with running_coderd(first_user=True, **_options(settings)) as world, http_client(world.url) as browser:
        there = await browser.get(path)
        query = parse_qs(urlsplit(there.headers["location"]).query)
        assert there.headers["location"].startswith(issuer), there.headers["location"]
        answer = await browser.get(path, params={"code": "good", "state": query["state"][0]})
        assert answer.status_code == 307, answer.text
        me = (await world.get("/api/v2/users/me", token=answer.cookies["coder_session_token"])).json()
        groups = (await world.get(f"/api/v2/groups?has_member={me['id']}")).json()
        names = {group["name"] for group in groups} - {"Everyone"}
        return me["username"], me["email"], names, {role["name"] for role in me["roles"]}


def test_guide_has_every_provider() -> None:
    assert set(SHAPES) == {"Keycloak", "Okta", "Entra ID", "Google"}


@pytest.mark.parametrize("name", SHAPES)
async def test_oidc_settings_of_guide(name: str) -> None:
    shape = SHAPES[name]
    with identity_provider() as idp:
        idp.claims = dict(shape.claims)
        own = {"CODER_OIDC_ISSUER_URL": idp.url, "CODER_OIDC_CLIENT_ID": CLIENT_ID}
        assert set(own) <= set(shape.settings)
        account = await _account(shape.settings | own, "/api/v2/users/oidc/callback", idp.url)
    assert account == shape.result


async def test_github_settings_of_guide() -> None:
    section = next(item for item in _SECTION.finditer(GUIDE.read_text()) if item["name"] == "GitHub")
    settings = _environment(dict(_BLOCK.findall(section["body"]))["ini"])
    with identity_provider() as idp:
        idp.github = dict(GITHUB)
        settings |= {"CODER_OAUTH2_GITHUB_ENTERPRISE_BASE_URL": idp.url}
        path = "/api/v2/users/oauth2/github/callback"
        name, email, groups, roles = await _account(settings, path, idp.url)
    assert (name, email, groups, roles) == ("octo", "octo@example.com", set(), set())
