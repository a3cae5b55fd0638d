"""Identity providers and git hosts that answer wrongly, without end, or with values that no answer of ours can hold."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import trio

from coder.base.secret import Secret
from coder.coderd.services.foundation import outgoing_requests
from tests.kit.api.http_clients import http_client
from tests.kit.recordings.exchange_replay import server_settings
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.stand_ins.hostile_http import BROKEN, ENDLESS, Answer, HostileProvider, hostile_provider, plain
from tests.kit.stand_ins.oidc_provider import CLIENT_ID
from tests.unit.coderd.services.login.test_external_auth import link
from tests.unit.coderd.services.login.test_provider_login import ALICE

DISCOVERY, JWKS, TOKEN, USER_INFO = "/.well-known/openid-configuration", "/jwks", "/token", "/userinfo"
VALIDATE, INSTALLATIONS, DEVICE, REVOKE = "/validate", "/api/v3/user/installations", "/device", "/revoke"
GITHUB = "/api/v3/user"
LOGINS = (DISCOVERY, JWKS, TOKEN, USER_INFO)
LINKS = (VALIDATE, INSTALLATIONS, REVOKE, DEVICE)


@asynccontextmanager
async def deployment() -> AsyncIterator[tuple[World, HostileProvider]]:
    with hostile_provider() as provider:
        provider.claims = dict(ALICE)
        config = server_settings("external_auth", provider.url)
        hosts = [
            replace(
                host,
                kind="github",
                app_installations_url=provider.url + INSTALLATIONS,
                revoke_url=provider.url + REVOKE,
                device_flow=host.id != "fake",
                device_code_url=provider.url + DEVICE,
            )
            for host in config["external_auth_providers"]
        ]
        config |= {
            "external_auth_providers": tuple(hosts),
            "oidc_issuer_url": provider.url,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": Secret("secret"),
            "oauth2_github_client_id": CLIENT_ID,
            "oauth2_github_client_secret": Secret("secret"),
            "oauth2_github_enterprise_base_url": provider.url,
            "oauth2_github_allowed_orgs": ["acme"],
            "oauth2_github_allowed_teams": ["acme/builders"],
        }
        async with running_coderd(first_user=True, **config) as world:
            yield world, provider


async def sign_in(world: World, path: str = "/api/v2/users/oidc/callback") -> httpx.Response:
    world.ctx.services.api.oidc._discovered_at = world.ctx.services.api.oidc._keys = None
    async with http_client(world.url, headers={"Accept": "application/json"}) as browser:
        there = await browser.get(path)
        if there.status_code != 307:
            return there
        (state,) = parse_qs(urlsplit(there.headers["location"]).query)["state"]
        return await browser.get(path, params={"code": "good", "state": state})


async def use_link(world: World, step: str) -> list[httpx.Response]:
    if step == REVOKE:
        return [await world.delete("/api/v2/external-auth/fake")]
    if step == DEVICE:
        ident = world.ctx.config.external_auth_providers[-1].id
        return [await world.get(f"/api/v2/external-auth/{ident}/device")]
    return [await world.get("/api/v2/external-auth/fake"), await world.get("/api/v2/external-auth")]


def judge(name: str, answers: Iterable[httpx.Response]) -> None:
    for answer in answers:
        assert "internal server error" not in answer.text, (name, answer.text)
        assert len(answer.text) < 5000, (name, len(answer.text))


@pytest.mark.parametrize(
    ("kinds", "every", "limit"),
    [
        pytest.param(BROKEN, 37, outgoing_requests._TIMEOUT, id="sample"),
        pytest.param({**BROKEN, **ENDLESS}, 1, 0.5, id="all", marks=pytest.mark.soak),
    ],
)
async def test_hostile_answers_end_one_request(
    kinds: Mapping[str, Answer], every: int, limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing_requests, "_TIMEOUT", limit)
    pairs = [(step, name) for step in (*LOGINS, GITHUB, *LINKS) for name in kinds]
    async with deployment() as (world, provider):
        for step, name in pairs[::every]:
            provider.answers.clear()
            if step in LINKS:
                await link(world)
            provider.answers[step] = kinds[name]
            if step in LINKS:
                judge(f"{step} {name}", await use_link(world, step))
            else:
                login = "oauth2/github" if step == GITHUB else "oidc"
                judge(f"{step} {name}", [await sign_in(world, f"/api/v2/users/{login}/callback")])
        assert (await world.get("/api/v2/users/me")).status_code == 200


def document(value: object) -> bytes:
    return plain(json.dumps(value).encode())


def fields(path: str, name: str, values: Iterable[object]) -> Iterable[tuple[str, str, dict[str, object]]]:
    return ((f"{name}={ascii(value)[:50]}", path, {name: value}) for value in values)


HALF = "\ud800"
URLS: tuple[object, ...] = (
    *("", "/there", "http://", "http://[::1", "http://x:99999", "http://127.0.0.1:1/\r\nX: y", "file:///etc/passwd"),
    *(
        "gopher://127.0.0.1/",
        "javascript:alert(1)",
        HALF,
        "http://\0/",
        "http://127.0.0.1:1/ö",
        "http://..",
        None,
        [],
        5,
    ),
    "http://127.0.0.1:1/" + "a" * 200_000,
)
TOKENS = ("a\nb", "a\r\nX: y", "\0", HALF, "ö", "\U0001f600", " ", "a" * 900_000)


def _jwt(head: bytes) -> str:
    return base64.urlsafe_b64encode(head).decode().rstrip("=") + ".e30.AAAA"


CONTENTS = [
    *fields(DISCOVERY, "authorization_endpoint", URLS),
    *fields(DISCOVERY, "token_endpoint", URLS),
    *fields(DISCOVERY, "jwks_uri", URLS),
    *fields(DISCOVERY, "userinfo_endpoint", URLS),
    *fields(DISCOVERY, "issuer", URLS),
    *fields(DISCOVERY, "code_challenge_methods_supported", (5, HALF, {}, [[]])),
    *fields(JWKS, "keys", (5, "x", {}, [], [1], [{"kty": ["RSA"], "alg": ["x"]}], [{"kty": "RSA", "n": 5}])),
    *fields(JWKS, "keys", ([{"kty": "RSA", "kid": "k1", "n": "A" + "_" * 700_000, "e": "AQAB"}],)),
    *fields(TOKEN, "access_token", TOKENS),
    *fields(TOKEN, "refresh_token", TOKENS),
    *fields(TOKEN, "expires_in", (1e308, "9" * 5000, -1, [], True)),
    *fields(TOKEN, "id_token", (HALF, "a.b.c", "." * 900_000, _jwt(b'{"alg":[]}'), _jwt(b"[" * 200_000))),
    *fields(TOKEN, "id_token", (_jwt(b'{"alg":"RS256","kid":"' + b"k" * 600_000 + b'"}'),)),
    *fields("claims", "nonce", (HALF, 5, [])),
    *fields("claims", "at_hash", (HALF, 5, [])),
    *fields("claims", "exp", (1e300, [], None, "x", 10**300)),
    *fields("claims", "email", (HALF + "@b.c", "a\0@b.c", "a" * 100_000 + "@b.c")),
    *fields("claims", "preferred_username", (HALF, "\0", "a" * 300_000)),
    *fields(USER_INFO, "name", (HALF, "\0", [])),
    *fields(GITHUB, "id", (0, -1, 10**400, True, HALF, None)),
    *fields(GITHUB, "login", (HALF, "\0", [], "a" * 100_000)),
    *fields(GITHUB + "/memberships/orgs", "organization", ({}, [], {"login": HALF}, {"login": []})),
    *fields(VALIDATE, "login", (HALF, "x" * 900_000, [], None)),
    *fields(VALIDATE, "id", ([], "9" * 5000, HALF, 1e300)),
    *fields(VALIDATE, "html_url", URLS),
    *fields(INSTALLATIONS, "installations", (5, [5], [{"id": 1}], [{"id": 1, "account": {"id": 1, "login": HALF}}])),
    *fields(DEVICE, "device_code", (HALF, [], "a\nb", "")),
    *fields(DEVICE, "verification_uri", URLS),
    *fields(DEVICE, "interval", ("9" * 5000, 1e300, [], None)),
]


@pytest.mark.parametrize("every", [pytest.param(9, id="sample"), pytest.param(1, id="all", marks=pytest.mark.soak)])
async def test_hostile_values_end_one_request(every: int) -> None:
    async with deployment() as (world, provider):
        provider.github = {
            "/user": {"id": 7, "login": "octo"},
            "/user/memberships/orgs": [{"state": "active", "organization": {"login": "acme"}}],
        }
        for name, path, values in CONTENTS[::every]:
            provider.answers.clear()
            if path in LINKS:
                await link(world)
                good = provider.answer(path, {})[1] | {"id": 7, "login": "octo"}
                provider.answers[path] = document({**good, **values})
                judge(name, await use_link(world, path))
            elif path.startswith(GITHUB):
                good = provider.answer(path, {})[1]
                changed: Any = {**good, **values} if isinstance(good, dict) else [{**good[0], **values}]
                provider.answers[path] = document(changed)
                judge(name, [await sign_in(world, "/api/v2/users/oauth2/github/callback")])
            elif path == "claims":
                provider.conforms = "nonce" in values
                provider.claims = {**ALICE, **values}
                judge(name, [await sign_in(world)])
                provider.claims, provider.conforms = dict(ALICE), False
            else:
                provider.answers[path] = document({**provider.answer(path, {})[1], **values})
                judge(name, [await sign_in(world)])
                if path == TOKEN:
                    linked = [await link(world)]
                    provider.answers.clear()
                    judge(name, [*linked, *await use_link(world, VALIDATE)])


async def test_token_with_line_break_is_refused() -> None:
    """Stored, it would fail every later page about the user's accounts, and git would read its second line."""
    async with deployment() as (world, provider):
        provider.answers[TOKEN] = document({**provider.answer(TOKEN, {})[1], "access_token": "a\nb"})
        assert "access token with characters" in (await link(world)).json()["detail"]
        assert (await world.get("/api/v2/external-auth")).json()["links"] == []


async def test_device_page_is_a_web_page() -> None:
    async with deployment() as (world, provider):
        good = provider.answer(DEVICE, {})[1]
        provider.answers[DEVICE] = document({**good, "verification_uri": "javascript:alert(1)"})
        (answer,) = await use_link(world, DEVICE)
        assert answer.status_code == 502 and "javascript" not in answer.text


async def test_waiting_logins_share_a_failure() -> None:
    """Logins that wait while the provider is asked do not ask it one after the other."""
    async with deployment() as (world, provider):
        oidc = world.ctx.services.api.oidc
        oidc._discovered_at = None
        provider.served.clear()
        provider.answers[DISCOVERY] = b"nothing"
        statuses = []

        async def log_in() -> None:
            statuses.append((await world.get("/api/v2/users/oidc/callback", token="")).status_code)

        async with trio.open_nursery() as nursery, oidc._lock:
            for _ in range(8):
                nursery.start_soon(log_in)
            while oidc._lock.statistics().tasks_waiting < 8:
                await trio.sleep(0.01)
        assert statuses == [502] * 8 and provider.served == [DISCOVERY]
