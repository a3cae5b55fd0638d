"""Login through an OpenID Connect provider: cases that the recordings lack, and attacks."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import httpx
import pytest
import trio
from cryptography.hazmat.primitives.asymmetric import rsa

from coder.base.secret import Secret
from coder.coderd.http.login.provider_logins import local_path
from coder.coderd.services.login import provider_tokens
from coder.coderd.services.login.oauth_exchange import TokenGrant
from coder.coderd.services.login.provider_accounts import Attempt
from coder.coderd.services.login.provider_login import sign_in as sign_in_as
from coder.coderd.services.people import git_ssh_keys
from coder.coderd.store.login import user_links
from coder.coderd.store.people import groups as group_store
from coder.coderd.store.people import system_users
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.git_ssh_keys import get_git_ssh_key
from coder.domain.login.identity import Person
from tests.kit.api.http_clients import http_client
from tests.kit.server.race_conditions import overtaken
from tests.kit.server.server_in_process import FIRST_USER, World, running_coderd
from tests.kit.stand_ins.oidc_provider import CLIENT_ID, IdentityProvider, identity_provider

ALICE = {"sub": "s-1", "email": "alice@example.com", "email_verified": True, "preferred_username": "alice"}


@asynccontextmanager
async def deployment(*, conforms: bool = False, **settings: Any) -> AsyncIterator[tuple[World, IdentityProvider]]:
    with identity_provider() as idp:
        idp.claims, idp.conforms = dict(ALICE), conforms
        options: dict[str, Any] = {
            "oidc_issuer_url": idp.url,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": Secret("sec"),
            **settings,
        }
        async with running_coderd(first_user=True, **options) as world:
            yield world, idp


async def sign_in(world: World, *, code: str = "good", query: str = "", cookies: dict[str, str] | None = None) -> Any:
    """Follow the browser's redirects and return the last response."""
    async with http_client(world.url, cookies=cookies) as browser:
        there = await browser.get("/api/v2/users/oidc/callback" + query)
        assert there.status_code == 307, there.text
        state = parse_qs(urlsplit(there.headers["location"]).query)["state"][0]
        return await browser.get("/api/v2/users/oidc/callback", params={"code": code, "state": state})


def _at_hash(access: str) -> str:
    digest = hashlib.sha256(access.encode()).digest()
    return base64.urlsafe_b64encode(digest[:16]).rstrip(b"=").decode()


def token_of(answer: httpx.Response) -> str:
    assert answer.status_code == 307, answer.text
    return str(answer.cookies["coder_session_token"])


def _foreign_key(idp: IdentityProvider) -> None:
    idp.signing_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _foreign_audience(idp: IdentityProvider) -> None:
    idp.audience = "another-client"


def _foreign_issuer(idp: IdentityProvider) -> None:
    idp.claims["iss"] = "http://elsewhere"


def _foreign_userinfo(idp: IdentityProvider) -> None:
    idp.info = {"sub": "another-user", "email": "admin@b.c"}


async def _has_account(world: World) -> bool:
    return bool((await world.get("/api/v2/users?q=alice")).json()["count"])


@pytest.mark.parametrize("forge", [_foreign_key, _foreign_audience, _foreign_issuer, _foreign_userinfo])
async def test_login_refuses_forged_id_token(forge: Callable[[IdentityProvider], None]) -> None:
    async with deployment() as (world, idp):
        forge(idp)
        assert (await sign_in(world)).status_code == 401
        assert not await _has_account(world)


async def test_provider_error_hides_secret() -> None:
    async with deployment() as (world, _):
        refused = await sign_in(world, code="bad")
        assert refused.status_code == 500 and "invalid_grant" in refused.json()["detail"] and "sec" not in refused.text
        assert not await _has_account(world)


@pytest.mark.parametrize(
    ("query", "cookie", "status"),
    [("", None, 400), ("&state=x", None, 401), ("&state=x", "y", 401)],
    ids=["without state", "without cookie", "another state"],
)
async def test_callback_requires_state_of_browser(query: str, cookie: str | None, status: int) -> None:
    async with deployment() as (world, _):
        cookies = {"oauth_state": cookie} if cookie else None
        async with http_client(world.url, cookies=cookies) as stranger:
            assert (await stranger.get("/api/v2/users/oidc/callback?code=good" + query)).status_code == status
        assert not await _has_account(world)


async def test_claims_visible_to_user() -> None:
    async with deployment() as (world, _):
        token = token_of(await sign_in(world))
        own = (await world.get("/api/v2/users/oidc-claims", token=token)).json()["claims"]
        assert own["sub"] == "s-1"
        assert (await world.get("/api/v2/debug/alice/debug-link")).json()["claims"] == own
        assert (await world.get("/api/v2/debug/alice/debug-link", token=token)).status_code in {403, 404}


BINDINGS: list[tuple[dict[str, Any], int]] = [
    ({}, 307),
    ({"nonce": None}, 401),
    ({"nonce": "of another login"}, 401),
    ({"at_hash": _at_hash("at-1")}, 307),
    ({"at_hash": _at_hash("at-2")}, 401),
]


async def test_id_token_matches_login() -> None:
    """By nonce, and by at_hash if present (OpenID Connect Core 3.1.3.7 and 3.1.3.8)."""
    async with deployment(conforms=True) as (world, idp):
        plain = dict(idp.claims)
        for told, status in BINDINGS:
            idp.granted = 0
            async with http_client(world.url) as browser:
                there = await browser.get("/api/v2/users/oidc/callback")
                asked = parse_qs(urlsplit(there.headers["location"]).query)
                claims = {**plain, "nonce": asked["nonce"][0], **told}
                idp.claims = {name: value for name, value in claims.items() if value is not None}
                answered = {"code": "good", "state": asked["state"][0]}
                back = await browser.get("/api/v2/users/oidc/callback", params=answered)
                assert back.status_code == status, f"{told}: {back.text}"


async def test_provider_key_rotation() -> None:
    async with deployment() as (world, idp):
        assert (await sign_in(world)).status_code == 307
        idp.key, idp.key_id = rsa.generate_private_key(public_exponent=65537, key_size=2048), "the next"
        world.ctx.services.api.oidc._keys_at = world.ctx.clock.now() - timedelta(minutes=2)
        assert (await sign_in(world)).status_code == 307


@pytest.mark.parametrize(
    ("settings", "visits"),
    [
        ({}, [({"email_verified": False}, 403)]),
        (
            {"oidc_ignore_email_verified": True, "oidc_email_domain": ("example.com",)},
            [({"email": "a@evil.com"}, 403), ({"email": "a@EXAMPLE.com", "email_verified": False}, 307)],
        ),
        ({"oidc_allow_signups": False}, [({}, 403)]),
        (
            {"oidc_group_field": "groups", "oidc_allowed_groups": ("b",)},
            [({"groups": ["a"]}, 403), ({"groups": ["a", "b"]}, 307)],
        ),
    ],
    ids=str,
)
async def test_login_restrictions(settings: dict[str, Any], visits: list[tuple[dict[str, Any], int]]) -> None:
    """The settings reach the rules, which tests/unit/domain/login/test_identity.py covers."""
    async with deployment(**settings) as (world, idp):
        for claims, status in visits:
            idp.claims = {**ALICE, **claims}
            assert (await sign_in(world)).status_code == status, claims


async def test_reassigned_email_keeps_account() -> None:
    async with deployment() as (world, idp):
        token_of(await sign_in(world))
        idp.claims["sub"] = "s-2"
        refused = await sign_in(world)
        assert refused.status_code == 403 and "another user" in refused.text


async def test_conversion_removes_password() -> None:
    async with deployment() as (world, idp):
        user_id, token = await world.member("bob")
        body = {"to_type": "oidc", "password": FIRST_USER["password"]}
        idp.claims["email"] = "bob@b.c"
        assert (await sign_in(world)).status_code == 403  # no conversion was requested
        begun = await world.post("/api/v2/users/me/convert-login", body, token=token)
        cookie = {"coder_oauth_convert_jwt": begun.cookies["coder_oauth_convert_jwt"]}
        query = "?oidc_merge_state=" + begun.json()["state_string"]
        world.client.cookies.clear()
        begin = "/api/v2/users/oidc/callback"
        assert (await world.get(begin + query, token="")).status_code == 401  # without the cookie
        for forged in ("oidc.mine", "convert-oidc.mine", "x%3B%20Domain%3Devil"):
            async with http_client(world.url, cookies=cookie) as browser:
                assert (await browser.get(f"{begin}?oidc_merge_state={forged}")).status_code == 401
        await world.ctx.db.run(_give_passcode, UUID(user_id))
        named = (await world.post("/api/v2/users/me/keys/tokens", {"token_name": "ci"}, token=token)).json()["key"]
        new = token_of(await sign_in(world, query=query, cookies=cookie))
        assert (await world.get("/api/v2/users/me", token=token)).status_code == 401  # opened by password
        assert (await world.get("/api/v2/users/me", token=named)).status_code == 200
        assert (await world.ctx.db.read(user_store.get_passcode, UUID(user_id)) or (None,))[0] is None
        me = (await world.get("/api/v2/users/me", token=new)).json()
        assert (me["id"], me["login_type"]) == (user_id, "oidc")
        login = {"email": "bob@b.c", "password": FIRST_USER["password"]}
        assert (await world.post("/api/v2/users/login", login, token="")).status_code == 401
        again = await sign_in(world, query=query, cookies=cookie)
        assert again.status_code == 403 and "Already changed" in again.text


async def _give_passcode(tx: Any, user_id: UUID) -> None:
    ends = datetime.now(UTC) + timedelta(hours=1)
    await user_store.update_user(tx, user_id, one_time_passcode_hash=b"x", one_time_passcode_expires_at=ends)


async def test_conversion_with_old_password_refused() -> None:
    async with deployment() as (world, idp):
        bob, token = await world.member("bob")
        idp.claims["email"] = "thief@b.c"
        body = {"to_type": "oidc", "password": FIRST_USER["password"]}
        begun = await world.post("/api/v2/users/me/convert-login", body, token=token)
        cookie = {"coder_oauth_convert_jwt": begun.cookies["coder_oauth_convert_jwt"]}
        changed = await world.put(f"/api/v2/users/{bob}/password", {"password": "An0ther-Secret!"})
        assert changed.status_code == 204
        world.client.cookies.clear()
        refused = await sign_in(world, query="?oidc_merge_state=" + begun.json()["state_string"], cookies=cookie)
        assert refused.status_code == 403 and "Password changed" in refused.text
        assert (await world.get("/api/v2/users/bob")).json()["login_type"] == "password"


async def test_user_suspended_during_login() -> None:
    async with deployment() as (world, _):
        first = token_of(await sign_in(world))
        user_id = UUID((await world.get("/api/v2/users/me", token=first)).json()["id"])

        async def suspend(tx: Any) -> None:
            await system_users.get_user(tx, user_id, lock=True)
            await user_store.update_user(tx, user_id, status="suspended")

        refused = await overtaken(world, suspend, lambda: sign_in(world))
        assert refused.status_code == 403 and "suspended" in refused.text


async def test_refused_conversion_keeps_password() -> None:
    async with deployment(oidc_group_field="groups", oidc_allowed_groups=("b",)) as (world, idp):
        bob, token = await world.member("bob")
        body = {"to_type": "oidc", "password": FIRST_USER["password"]}
        begun = await world.post("/api/v2/users/me/convert-login", body, token=token)
        cookie = {"coder_oauth_convert_jwt": begun.cookies["coder_oauth_convert_jwt"]}
        query = "?oidc_merge_state=" + begun.json()["state_string"]

        async def refused(**claims: Any) -> None:
            idp.claims |= claims
            assert (await sign_in(world, query=query, cookies=cookie)).status_code == 403
            user = (await world.get("/api/v2/users/bob")).json()
            assert (user["login_type"], user["email"]) == ("password", "bob@b.c")
            assert await world.ctx.db.read(user_links.get_link, UUID(bob), "oidc") is None

        await refused(email="bob@b.c", groups=["a"])
        await refused(email=FIRST_USER["email"], groups=["b"])
        assert (await world.put(f"/api/v2/users/{bob}/status/suspend")).status_code == 200
        await refused(email="bob@b.c")
        assert (await world.put(f"/api/v2/users/{bob}/status/activate")).status_code == 200
        login = {"email": "bob@b.c", "password": FIRST_USER["password"]}
        assert (await world.post("/api/v2/users/login", login, token="")).status_code == 201


async def test_email_of_other_user_refused() -> None:
    async with deployment() as (world, idp):
        token_of(await sign_in(world))
        idp.claims["email"] = FIRST_USER["email"]
        refused = await sign_in(world)
        assert refused.status_code == 403 and "another user" in refused.text


async def test_concurrent_first_logins() -> None:
    with identity_provider() as idp:
        options: dict[str, Any] = {
            "oidc_issuer_url": idp.url,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": Secret("sec"),
            "oidc_group_field": "groups",
            "oidc_allowed_groups": ("b",),
        }
        async with running_coderd(**options) as world:
            idp.claims = dict(ALICE)
            assert (await sign_in(world)).status_code == 403
            assert (await world.get("/api/v2/users/first", token="")).status_code == 404
            ctx = world.ctx
            tokens: list[str] = []

            async def enter(name: str) -> None:
                person = Person(f"i||{name}", f"{name}@x.y", name, "")
                granted = TokenGrant(Secret("a"), Secret(""), None, {})
                claims = {"merged_claims": {"groups": ["b"]}}
                tokens.append(await sign_in_as(ctx, Attempt("oidc", person, granted, claims, allow_signups=True)))

            async with trio.open_nursery() as nursery:
                for name in ("one", "two", "three", "four"):
                    nursery.start_soon(enter, name)
            roles = [(await world.get("/api/v2/users/me", token=token)).json()["roles"] for token in tokens]
            assert sorted(role["name"] for given in roles for role in given) == ["owner"]


async def test_concurrent_oidc_refresh_uses_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with deployment() as (world, _idp):
        token_of(await sign_in(world))
        ctx = world.ctx
        user_id = UUID((await world.get("/api/v2/users/alice")).json()["id"])
        link = await ctx.db.read(user_links.get_link, user_id, "oidc")
        assert link is not None
        past, soon = ctx.clock.now() - timedelta(hours=1), ctx.clock.now() + timedelta(hours=1)
        old = replace(link, oauth_refresh_token="rt-old", oauth_expiry=past)
        newer = replace(link, oauth_access_token="at-new", oauth_refresh_token="rt-new", oauth_expiry=soon)

        async def slow(*_: Any) -> TokenGrant:
            await ctx.db.run(user_links.put_link, newer)
            return TokenGrant(Secret("at-late"), Secret("rt-late"), None, {})

        monkeypatch.setattr(provider_tokens, "renew", slow)
        await ctx.db.run(user_links.put_link, old)
        assert await provider_tokens.oidc_token(ctx, user_id) == "at-new"
        assert await ctx.db.read(user_links.get_link, user_id, "oidc") == newer


async def test_state_has_one_purpose() -> None:
    options: dict[str, Any] = {"oauth2_github_client_id": "c", "oauth2_github_client_secret": Secret("s")}
    async with deployment(**options) as (world, _idp), http_client(world.url) as browser:
        there = await browser.get("/api/v2/users/oauth2/github/callback")
        state = parse_qs(urlsplit(there.headers["location"]).query)["state"][0]
        assert state == browser.cookies["oauth_state"]
        refused = await browser.get("/api/v2/users/oidc/callback", params={"code": "good", "state": state})
        assert refused.status_code == 401


async def test_claims_are_personal() -> None:
    async with deployment() as (world, _idp):
        token = token_of(await sign_in(world))
        assert (await world.get("/api/v2/users/oidc-claims", token=token)).status_code == 200
        body = {"scopes": ["workspace:read"], "lifetime": 3600 * 10**9}
        limited = (await world.post("/api/v2/users/me/keys/tokens", body, token=token)).json()["key"]
        assert (await world.get("/api/v2/users/oidc-claims", token=limited)).status_code == 404


async def test_claims_sync_memberships() -> None:
    settings: dict[str, Any] = {
        "oidc_group_field": "groups",
        "oidc_group_auto_create": True,
        "oidc_group_mapping": '{"there": "here"}',
        "oidc_group_regex_filter": "^(here|two)$",  # of mapped names, as upstream
        "oidc_user_role_field": "roles",
        "oidc_user_role_mapping": '{"boss": ["auditor", "user-admin"]}',
    }
    async with deployment(**settings) as (world, idp):
        idp.claims |= {"groups": ["there", "other", "two"], "roles": ["boss", "nonsense", "member"]}
        token = token_of(await sign_in(world))
        me = (await world.get("/api/v2/users/me", token=token)).json()
        assert sorted(role["name"] for role in me["roles"]) == ["auditor", "user-admin"]
        path = f"/api/v2/groups?organization={world.organization_id}&has_member=alice"
        assert sorted(group["name"] for group in (await world.get(path)).json()) == ["Everyone", "here", "two"]
        idp.claims |= {"groups": "two", "roles": []}
        token_of(await sign_in(world))
        assert sorted(group["name"] for group in (await world.get(path)).json()) == ["Everyone", "two"]
        assert (await world.get("/api/v2/users/alice")).json()["roles"] == []


async def test_login_during_group_deletion() -> None:
    async with deployment(oidc_group_field="groups") as (world, idp):
        idp.claims |= {"groups": ["ops"]}
        group = (await world.post("/api/v2/organizations/default/groups", {"name": "ops"})).json()["id"]

        async def end(tx: Any) -> None:
            await group_store.delete_group(tx, UUID(group))

        token_of(await overtaken(world, end, lambda: sign_in(world)))


async def test_claims_keep_last_owner() -> None:
    """For the first login of an empty site and later ones; of two owners, one may lose the role."""
    settings: dict[str, Any] = {"oidc_user_role_field": "roles", "oidc_user_role_mapping": '{"boss": ["owner"]}'}
    with identity_provider() as idp:
        idp.claims = {**ALICE, "roles": ["unknown"]}
        options: dict[str, Any] = {
            "oidc_issuer_url": idp.url,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": Secret("sec"),
        }
        async with running_coderd(**options, **settings) as world:

            async def roles() -> list[str]:
                token = token_of(await sign_in(world))
                me = (await world.get("/api/v2/users/me", token=token)).json()
                return [role["name"] for role in me["roles"]]

            assert await roles() == ["owner"]
            assert await roles() == ["owner"]
            idp.claims = {"sub": "s-2", "email": "b@example.com", "email_verified": True, "roles": ["boss"]}
            assert await roles() == ["owner"]
            idp.claims = {**ALICE, "roles": ["unknown"]}
            assert await roles() == []


async def test_unclaimed_organization_is_left() -> None:
    async with deployment() as (world, idp):
        organization = (await world.post("/api/v2/organizations", {"name": "science"})).json()["id"]
        sync = {"field": "orgs", "mapping": {"sci": [organization]}, "organization_assign_default": True}
        assert (await world.patch("/api/v2/settings/idpsync/organization", sync)).status_code == 200
        idp.claims |= {"orgs": ["sci"]}
        me = (await world.get("/api/v2/users/me", token=token_of(await sign_in(world)))).json()
        assert organization in me["organization_ids"]
        path = f"/api/v2/organizations/{organization}/groups"
        group = (await world.post(path, {"name": "ops"})).json()["id"]
        assert (await world.patch(f"/api/v2/groups/{group}", {"add_users": [me["id"]]})).status_code == 200
        idp.claims |= {"orgs": []}
        token_of(await sign_in(world))
        assert (await world.get("/api/v2/users/alice")).json()["organization_ids"] == [world.organization_id]
        assert (await world.get(f"/api/v2/groups/{group}")).json()["members"] == []


async def test_provider_tokens_are_encrypted() -> None:
    key = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVowMTIzNDU="
    async with deployment(external_token_encryption_keys=(key,)) as (world, idp):
        token_of(await sign_in(world))
        user_id = (await world.get("/api/v2/users/alice")).json()["id"]
        link = await world.ctx.db.read(user_links.get_link, user_id, "oidc")
        assert link is not None and link.oauth_access_token.startswith("sealed:1:")
        assert idp.asked and "at-" not in link.oauth_access_token

        assert world.ctx.services.sealer.open(link.oauth_access_token).reveal().startswith("at-")
        pair = await world.ctx.db.read(get_git_ssh_key, user_id)
        assert pair is not None and pair.private_key.startswith("sealed:1:")
        assert "OPENSSH PRIVATE KEY" in git_ssh_keys.opened(world.ctx, pair.private_key)


OCTO: dict[str, Any] = {
    "/user": {"id": 7, "login": "Octo.Cat", "name": "Octo", "avatar_url": "https://x/y.png"},
    "/user/emails": [
        {"email": "no@x.y", "primary": False, "verified": True},
        {"email": "octo@x.y", "primary": True, "verified": True},
    ],
    "/user/memberships/orgs": [{"state": "active", "organization": {"login": "Acme"}}],
    "/orgs/acme/teams/core/memberships/Octo.Cat": {"state": "active"},
}


@asynccontextmanager
async def with_github(**settings: Any) -> AsyncIterator[tuple[World, IdentityProvider]]:
    with identity_provider() as idp:
        idp.github = dict(OCTO)
        options: dict[str, Any] = {
            "oauth2_github_client_id": "c",
            "oauth2_github_client_secret": Secret("s"),
            "oauth2_github_enterprise_base_url": idp.url,
            "oauth2_github_allow_signups": True,
            "oauth2_github_allowed_orgs": ("acme",),
            **settings,
        }
        async with running_coderd(first_user=True, **options) as world:
            yield world, idp


async def by_github(world: World, code: str = "good") -> httpx.Response:
    async with http_client(world.url) as browser:
        there = await browser.get("/api/v2/users/oauth2/github/callback")
        state = parse_qs(urlsplit(there.headers["location"]).query)["state"][0]
        return await browser.get("/api/v2/users/oauth2/github/callback", params={"code": code, "state": state})


async def test_github_lets_members_in() -> None:
    async with with_github(oauth2_github_allowed_teams=("acme/core",)) as (world, idp):
        me = (await world.get("/api/v2/users/me", token=token_of(await by_github(world)))).json()
        assert (me["username"], me["email"], me["login_type"]) == ("Octo-Cat", "octo@x.y", "github")
        assert (await world.get("/api/v2/users?q=github_com_user_id:7")).json()["count"] == 1
        del idp.github["/orgs/acme/teams/core/memberships/Octo.Cat"]
        assert (await by_github(world)).status_code == 401
        idp.github["/user/memberships/orgs"] = [{"state": "active", "organization": {"login": "other"}}]
        assert (await by_github(world)).status_code == 401
        idp.github = {**OCTO, "/user/emails": [{"email": "octo@x.y", "primary": True, "verified": False}]}
        assert (await by_github(world)).status_code == 403


async def test_github_by_device() -> None:
    settings: dict[str, Any] = {"oauth2_github_allow_everyone": True, "oauth2_github_allowed_orgs": ()}
    async with with_github(oauth2_github_device_flow=True, **settings) as (world, idp):
        device = (await world.get("/api/v2/users/oauth2/github/device", token="")).json()
        idp.pending = 1
        waiting = await by_github(world, device["device_code"])
        assert (waiting.status_code, waiting.json()["detail"]) == (400, "authorization_pending")
        done = await by_github(world, device["device_code"])
        assert done.json() == {"redirect_url": "/"} and done.cookies["coder_session_token"]


@pytest.mark.parametrize(
    ("requested", "path"),
    [
        ("/templates?x=1", "/templates?x=1"),
        ("", "/"),
        ("https://evil.example/x", "/x"),
        ("//evil.example/x", "/x"),
        ("/\\evil.example", "/evil.example"),
        ("///evil.example", "/evil.example"),
        ("/a\r\nSet-Cookie: x", "/"),
        ("/a; Domain=x", "/"),
        ("http://[::1", "/"),
    ],
)
def test_login_redirect_stays_local(requested: str, path: str) -> None:
    assert local_path(requested) == path


async def test_configured_organizations_until_changed() -> None:
    settings: dict[str, Any] = {"oidc_organization_field": "orgs", "oidc_organization_assign_default": False}
    async with deployment(**settings) as (world, _idp):
        token_of(await sign_in(world))
        assert (await world.get("/api/v2/users/alice")).json()["organization_ids"] == [], "nothing is named or assigned"
        stored = {"field": "orgs", "mapping": {}, "organization_assign_default": True}
        assert (await world.patch("/api/v2/settings/idpsync/organization", stored)).status_code == 200
        token_of(await sign_in(world))
        assert (await world.get("/api/v2/users/alice")).json()["organization_ids"] == [world.organization_id]
