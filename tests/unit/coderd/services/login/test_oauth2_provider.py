"""The OAuth2 provider as clients see it: consent, exchange, refresh, revocation, registration, refusals."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import UUID

import httpx
import pytest
import trio

from coder.appproxy.http.rate_limits import RateLimits
from coder.coderd.services.access import new_keys
from coder.coderd.services.login.oauth2_client_authentication import GrantError
from coder.coderd.services.login.oauth2_clients import _accepted
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.login import oauth2 as oauth2_store
from coder.domain.access.rate_budgets import REGISTRATION
from tests.kit.api.http_clients import http_client
from tests.kit.api.security_probes import forged as forge
from tests.kit.server.race_conditions import overtaken
from tests.kit.server.server_in_process import World, running_coderd

CALLBACK = "http://localhost:19190/cb"
VERIFIER = "v" * 60
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()


@dataclass
class Client:
    """An application of the provider and the user who uses it."""

    world: World
    app_id: str
    secret: str
    user_token: str

    def query(self, **more: str) -> str:
        asked = {"client_id": self.app_id, "response_type": "code", "redirect_uri": CALLBACK, "state": "s t&"}
        asked |= {"code_challenge": CHALLENGE, "code_challenge_method": "S256", **more}
        return "/oauth2/authorize?" + urlencode({name: value for name, value in asked.items() if value})

    async def code(self, **more: str) -> str:
        answer = await self.world.post(self.query(**more), token=self.user_token)
        assert answer.status_code == 302, answer.text
        result = parse_qs(urlsplit(answer.headers["location"]).query)
        assert result["state"] == ["s t&"]
        return result["code"][0]

    async def ask(self, **fields: str) -> httpx.Response:
        form = {"client_id": self.app_id, "client_secret": self.secret, "code_verifier": VERIFIER, **fields}
        return await self.world.request("POST", "/oauth2/tokens", data=form, token="")

    async def exchange(self, code: str, **fields: str) -> httpx.Response:
        fields = {"redirect_uri": CALLBACK, **fields}
        return await self.ask(grant_type="authorization_code", code=code, **fields)

    async def me(self, access: str) -> int:
        return (await self.world.get("/api/v2/users/me", token=access)).status_code


@asynccontextmanager
async def client(**settings: Any) -> AsyncIterator[Client]:
    async with running_coderd(first_user=True, experiments=("oauth2",), **settings) as world:
        app = await world.post("/api/v2/oauth2-provider/apps", {"name": "app-1", "callback_url": CALLBACK})
        path = f"/api/v2/oauth2-provider/apps/{app.json()['id']}/secrets"
        secret = (await world.post(path)).json()["client_secret_full"]
        _, token = await world.member("alice")
        yield Client(world, app.json()["id"], secret, token)


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


async def test_code_is_single_use() -> None:
    async with client() as it:
        for wrong in (
            {"code_verifier": "w" * 60},
            {"redirect_uri": CALLBACK + "/other"},
            {"redirect_uri": ""},
            {"client_secret": it.secret[:-1] + "!"},
        ):
            status, error = refusal(await it.exchange(await it.code(), **wrong))
            assert (status, error) in {(400, "invalid_grant"), (401, "invalid_client")}, wrong
        code = await it.code()
        tokens = await it.exchange(code, redirect_uri=CALLBACK)
        assert tokens.status_code == 200, tokens.text
        assert tokens.headers["cache-control"] == "no-store"
        assert await it.me(tokens.json()["access_token"]) == 200
        assert refusal(await it.exchange(code)) == (400, "invalid_grant")
        assert await it.me(tokens.json()["access_token"]) == 401, "the tokens of a code end with its second use"
        other = await it.world.post("/api/v2/oauth2-provider/apps", {"name": "other", "callback_url": CALLBACK})
        created = await it.world.post(f"/api/v2/oauth2-provider/apps/{other.json()['id']}/secrets")
        stranger = {"client_id": other.json()["id"], "client_secret": created.json()["client_secret_full"]}
        assert refusal(await it.exchange(await it.code(), **stranger)) == (400, "invalid_grant")
        assert refusal(await it.ask(grant_type="password")) == (400, "unsupported_grant_type")
        assert refusal(await it.ask(grant_type="authorization_code")) == (400, "invalid_request")
        assert refusal(await it.exchange("coder_x_y")) == (400, "invalid_grant")


async def test_application_scope_within_key() -> None:
    async with client() as it:
        names = ["oauth2_app_code_token:create", "workspace:read"]
        user_id = UUID((await it.world.get("/api/v2/users/alice")).json()["id"])
        row, key = new_keys.new_key(user_id, "token", timedelta(hours=1), it.world.ctx.clock.now(), scopes=names)
        await it.world.ctx.db.run(key_store.insert_key, row)
        for scope in ("", "coder:all", "workspace:read workspace:ssh"):
            refused = await it.world.post(it.query(scope=scope), token=key)
            assert refusal(refused) == (400, "invalid_scope")
        assert (await it.world.post(it.query(scope="workspace:read"), token=key)).status_code == 302


async def test_refresh_and_revocation() -> None:
    async with client() as it:
        first = (await it.exchange(await it.code())).json()
        renewed = (await it.ask(grant_type="refresh_token", refresh_token=first["refresh_token"])).json()
        assert await it.me(first["access_token"]) == 401
        assert await it.me(renewed["access_token"]) == 200
        again = await it.ask(grant_type="refresh_token", refresh_token=first["refresh_token"])
        assert refusal(again) == (400, "invalid_grant")
        basic = {"Authorization": "Basic " + base64.b64encode(f"{it.app_id}:{it.secret}".encode()).decode()}
        revoked = await it.world.request(
            "POST", "/oauth2/revoke", data={"token": renewed["access_token"]}, headers=basic, token=""
        )
        assert revoked.status_code == 200 and revoked.content == b""
        assert await it.me(renewed["access_token"]) == 401
        for token in ("", "nonsense", renewed["access_token"]):
            answer = await it.world.request("POST", "/oauth2/revoke", data={"token": token}, headers=basic, token="")
            assert answer.status_code == (200 if token else 400)


async def test_reused_refresh_token_revokes_all() -> None:
    async with client() as it:
        first = (await it.exchange(await it.code())).json()
        second = (await it.ask(grant_type="refresh_token", refresh_token=first["refresh_token"])).json()
        third = (await it.ask(grant_type="refresh_token", refresh_token=second["refresh_token"])).json()
        assert await it.me(third["access_token"]) == 200
        stolen = await it.ask(grant_type="refresh_token", refresh_token=first["refresh_token"])
        assert refusal(stolen) == (400, "invalid_grant")
        assert await it.me(third["access_token"]) == 401, "either client may have stolen it"
        again = await it.ask(grant_type="refresh_token", refresh_token=third["refresh_token"])
        assert refusal(again) == (400, "invalid_grant")
        # Neither a later consent nor a guessed secret is affected.
        later = (await it.exchange(await it.code())).json()
        for old in (first, second, third):
            for token in (old["refresh_token"], forge(later["refresh_token"])):
                assert refusal(await it.ask(grant_type="refresh_token", refresh_token=token)) == (400, "invalid_grant")
        assert await it.me(later["access_token"]) == 200


@pytest.mark.parametrize("kind", ["authorization_code", "refresh_token"])
async def test_concurrent_reuse_revokes_all(kind: str) -> None:
    """One of the two stole it: the first one gets tokens, the second one revokes them, in any order."""
    async with client() as it:
        for _ in range(5):
            code = await it.code()
            fields = {"grant_type": kind, "code": code, "redirect_uri": CALLBACK}
            if kind == "refresh_token":
                token = (await it.exchange(code)).json()["refresh_token"]
                fields = {"grant_type": kind, "refresh_token": token}
            answers: list[httpx.Response] = []

            async def ask(fields: dict[str, str] = fields, answers: list[httpx.Response] = answers) -> None:
                answers.append(await it.ask(**fields))

            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(ask)
            given = [answer.json()["access_token"] for answer in answers if answer.status_code == 200]
            assert len(given) == 1, [answer.text for answer in answers]
            assert await it.me(given[0]) == 401


async def test_user_revokes_application() -> None:
    async with client() as it:
        tokens = (await it.exchange(await it.code())).json()
        mine = (
            "/api/v2/oauth2-provider/apps?user_id="
            + (await it.world.get("/api/v2/users/me", token=it.user_token)).json()["id"]
        )
        (app,) = (await it.world.get(mine, token=it.user_token)).json()
        assert (app["id"], datetime.fromisoformat(app["last_used"]).tzinfo) == (it.app_id, UTC)
        (listed,) = (await it.world.get("/api/v2/oauth2-provider/apps")).json()
        assert "last_used" not in listed, "it is of one user"
        taken = await it.world.delete(f"/oauth2/tokens?client_id={it.app_id}", token=it.user_token)
        assert taken.status_code == 204
        assert await it.me(tokens["access_token"]) == 401
        assert refusal(await it.ask(grant_type="refresh_token", refresh_token=tokens["refresh_token"]))[0] == 400
        assert (await it.world.get(mine, token=it.user_token)).json() == []


async def test_consent_page_resists_forgery() -> None:
    async with client() as it, http_client(it.world.url) as browser:
        browser.cookies.set("coder_session_token", it.user_token)
        page = await browser.get(it.query())
        assert page.status_code == 200 and "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert "app-1" in page.text and "full access to your alice account" in page.text
        assert page.headers["referrer-policy"] == "same-origin", "without a referrer browsers hide a form's origin"
        token = re.search(r"name='csrf_token' value='([^']+)'", page.text)
        assert token is not None
        assert (await browser.post(it.query(), data={"csrf_token": "forged"})).status_code == 400
        allowed = await browser.post(it.query(), data={"csrf_token": token[1]})
        assert allowed.status_code == 302 and allowed.headers["location"].startswith(CALLBACK + "?code=coder_")


async def test_application_gets_requested_scope() -> None:
    async with client() as it:
        tokens = (await it.exchange(await it.code(scope="openid template:read"))).json()
        assert tokens["scope"] == "template:read"
        me = f"/api/v2/oauth2-provider/apps/{it.app_id}/secrets"
        assert (await it.world.get(me, token=tokens["access_token"])).status_code in {403, 404}
        assert (await it.world.get("/api/v2/templates", token=tokens["access_token"])).status_code == 200


async def test_suspension_ends_refresh() -> None:
    async with client() as it:
        tokens = (await it.exchange(await it.code())).json()
        await it.world.put("/api/v2/users/alice/status/suspend")
        again = await it.ask(grant_type="refresh_token", refresh_token=tokens["refresh_token"])
        assert refusal(again) == (400, "invalid_grant")


async def test_public_client_requires_pkce() -> None:
    async with client() as it:
        path = "/api/v2/oauth2-provider/settings"
        await it.world.put(path, {"dynamic_client_registration_enabled": True})
        asked = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none", "client_name": "ide"}
        created: Any = (await it.world.post("/oauth2/register", asked, token="")).json()
        public = Client(it.world, created["client_id"], "", it.user_token)
        refused = await it.world.post(public.query(code_challenge=""), token=it.user_token)
        assert refusal(refused) == (400, "invalid_request")
        assert (await public.exchange(await public.code())).status_code == 200
        assert refusal(await public.exchange(await public.code(), code_verifier=""))[1] == "invalid_grant"
        listed = await it.world.get("/.well-known/oauth-authorization-server", token="")
        assert listed.json()["registration_endpoint"].endswith("/oauth2/register")
        wrong = {"Authorization": "Bearer " + it.secret}
        path = urlsplit(created["registration_client_uri"]).path
        assert (await it.world.request("GET", path, headers=wrong, token="")).status_code == 401


async def test_experiment_is_required() -> None:
    async with running_coderd(first_user=True) as world:
        for path in ("/.well-known/oauth-authorization-server", "/oauth2/authorize", "/api/v2/oauth2-provider/apps"):
            assert (await world.get(path)).status_code == 403, path


@pytest.mark.parametrize(
    "wrong",
    [
        {"grant_types": 5},
        {"grant_types": [["authorization_code"]]},
        {"client_name": {"a": 1}},
        {"client_name": "a\x00b"},
        {"client_name": "x" * 5000},
        {"contacts": ["c"] * 1000},
        {"redirect_uris": ["https://a.b/c", 5]},
        {"jwks": "x"},
        {"scope": 1},
    ],
)
def test_invalid_metadata_is_refused(wrong: dict[str, Any]) -> None:
    """Any client may register, so errors of the server and long texts must be impossible."""
    with pytest.raises(GrantError) as refused:
        _accepted({"redirect_uris": ["https://a.b/c"], **wrong})
    assert refused.value.error == "invalid_client_metadata"


UNBOUND = [
    {"code_challenge": ""},
    {"code_challenge": "short"},
    {"code_challenge_method": "plain"},
    {"code_challenge": "v" * 60},
]


async def test_every_client_binds_its_codes() -> None:
    """PKCE by S256 (RFC 7636): without it, there is no consent page and no code."""
    async with client() as it:
        for more, method in itertools.product(UNBOUND, ("GET", "POST")):
            answer = await it.world.request(method, it.query(**more), token=it.user_token)
            assert answer.status_code == 400, f"{more}: {answer.text}"


async def test_registrations_are_rate_limited() -> None:
    async with client(dangerous_disable_rate_limits=False) as it:
        await it.world.put("/api/v2/oauth2-provider/settings", {"dynamic_client_registration_enabled": True})
        seen = {
            (await it.world.post("/oauth2/register", {"redirect_uris": [CALLBACK]}, token="")).status_code
            for _ in range(REGISTRATION.limit + 1)
        }
        assert seen == {201, 429}


async def test_only_legacy_client_skips_challenge() -> None:
    async with client() as it:
        mark = f"/api/v2/oauth2-provider/apps/{it.app_id}/legacy"
        bare = {"code_challenge": "", "code_challenge_method": ""}
        assert (await it.world.get(mark)).json() == {"legacy": False}
        _, admin = await it.world.member("helper", ["user-admin"])
        for token in (it.user_token, admin):
            assert (await it.world.put(mark, {"legacy": True}, token=token)).status_code in {403, 404}
        assert refusal(await it.world.post(it.query(**bare), token=it.user_token)) == (400, "invalid_request")
        marked = await it.world.put(mark, {"legacy": True})
        assert marked.json() == {"legacy": True} and await it.world.left_an_entry(marked)
        assert (await it.exchange(await it.code(**bare), code_verifier="")).status_code == 200
        # A challenge must be met, and only S256 is supported.
        assert refusal(await it.exchange(await it.code(), code_verifier=""))[1] == "invalid_grant"
        assert refusal(await it.exchange(await it.code(**bare), code_verifier="v" * 60))[1] == "invalid_grant"
        asked = it.query(code_challenge="v" * 43, code_challenge_method="plain")
        plain = await it.world.post(asked, token=it.user_token)
        assert refusal(plain) == (400, "invalid_request")
        code = await it.code(**bare)
        await it.world.put(mark, {"legacy": False})
        assert refusal(await it.exchange(code, code_verifier=""))[1] == "invalid_grant"


async def test_public_client_cannot_be_legacy() -> None:
    async with client() as it:
        await it.world.put("/api/v2/oauth2-provider/settings", {"dynamic_client_registration_enabled": True})
        asked = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none", "client_name": "ide"}
        created = (await it.world.post("/oauth2/register", asked, token="")).json()
        refused = await it.world.put(f"/api/v2/oauth2-provider/apps/{created['client_id']}/legacy", {"legacy": True})
        assert refused.status_code == 400, refused.text


async def _registered(it: Client, method: str) -> tuple[str, dict[str, Any], dict[str, str]]:
    """Return (client id, metadata, the header that manages the registration)."""
    await it.world.put("/api/v2/oauth2-provider/settings", {"dynamic_client_registration_enabled": True})
    asked = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": method, "client_name": "ide"}
    created = (await it.world.post("/oauth2/register", asked, token="")).json()
    return created["client_id"], asked, {"Authorization": f"Bearer {created['registration_access_token']}"}


async def test_client_becoming_public_loses_legacy() -> None:
    async with client() as it:
        app_id, asked, headers = await _registered(it, "client_secret_basic")
        mark = f"/api/v2/oauth2-provider/apps/{app_id}/legacy"
        assert (await it.world.put(mark, {"legacy": True})).json() == {"legacy": True}
        bare = {"client_id": app_id, "code_challenge": "", "code_challenge_method": ""}
        code = await it.code(**bare)
        for method in ("none", "client_secret_basic"):
            expected = {**asked, "token_endpoint_auth_method": method}
            changed = await it.world.put(f"/oauth2/clients/{app_id}", expected, token="", headers=headers)
            assert changed.status_code == 200, changed.text
            assert (await it.world.get(mark)).json() == {"legacy": False}
            assert refusal(await it.world.post(it.query(**bare), token=it.user_token)) == (400, "invalid_request")
            if method == "none":
                sent = {"client_id": app_id, "client_secret": "", "code_verifier": ""}
                assert refusal(await it.exchange(code, **sent))[1] == "invalid_grant"


async def test_client_change_keeps_concurrent_change() -> None:
    async with client() as it:
        app_id, asked, headers = await _registered(it, "client_secret_basic")
        mark = f"/api/v2/oauth2-provider/apps/{app_id}"
        other = {"name": "other", "callback_url": CALLBACK}
        for change in ("client", "app"):
            assert (await it.world.put(f"{mark}/legacy", {"legacy": True})).status_code == 200

            async def request(change: str = change) -> httpx.Response:
                if change == "client":
                    return await it.world.put(f"/oauth2/clients/{app_id}", asked, token="", headers=headers)
                return await it.world.put(mark, other)

            async def withdraw(tx: Any) -> None:
                await oauth2_store.lock_app(tx, UUID(app_id))
                await oauth2_store.update_app(tx, UUID(app_id), legacy=False)

            assert (await overtaken(it.world, withdraw, request)).status_code == 200
            assert (await it.world.get(f"{mark}/legacy")).json() == {"legacy": False}, change


async def test_concurrent_legacy_and_public() -> None:
    async with client() as it:
        app_id, _, _ = await _registered(it, "client_secret_basic")

        async def go_public(tx: Any) -> None:
            await oauth2_store.lock_app(tx, UUID(app_id))
            await oauth2_store.update_app(tx, UUID(app_id), public_client=True)

        async def request() -> httpx.Response:
            return await it.world.put(f"/api/v2/oauth2-provider/apps/{app_id}/legacy", {"legacy": True})

        assert (await overtaken(it.world, go_public, request)).status_code == 400


async def test_large_form_gets_protocol_error() -> None:
    async with client() as it:
        fields = {f"f{number}": "x" for number in range(60)}
        for path in ("/oauth2/tokens", "/oauth2/revoke"):
            answer = await it.world.request("POST", path, data=fields, token="")
            assert refusal(answer) == (400, "invalid_request"), path


@pytest.mark.parametrize("method", ["none", "client_secret_basic"])
async def test_failed_requests_spare_valid_clients(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret identifies the application; a code or a refresh token alone identifies the user who granted it."""
    async with client(dangerous_disable_rate_limits=False) as it:
        app_id, _, _ = await _registered(it, method)
        secret = ""
        if method != "none":
            secret = (await it.world.post(f"/api/v2/oauth2-provider/apps/{app_id}/secrets")).json()[
                "client_secret_full"
            ]
        mine = Client(it.world, app_id, secret, it.user_token)
        codes = [await mine.code(), await mine.code()]
        assert (await mine.exchange(codes[0])).status_code == 400, "only the newest consent counts"
        monkeypatch.setattr(RateLimits, "limit_of", lambda limits, item: 0 if item.unlimited_because else 3)
        stranger = Client(it.world, app_id, "wrong", "")
        for path in ("/oauth2/tokens", "/oauth2/revoke"):
            form = {"client_id": app_id, "client_secret": "wrong", "token": "x", "grant_type": "refresh_token"}
            asked = [it.world.request("POST", path, data={**form, "refresh_token": "x"}, token="") for _ in range(5)]
            assert [(await item).status_code for item in asked][-1] == 429
        assert (await stranger.exchange(codes[1])).status_code == 429
        given = await mine.exchange(codes[1])
        assert given.status_code == 200, given.text
        renewed = await mine.ask(grant_type="refresh_token", refresh_token=given.json()["refresh_token"])
        assert renewed.status_code == 200, renewed.text
        form = {"client_id": app_id, "client_secret": secret, "token": renewed.json()["refresh_token"]}
        assert (await it.world.request("POST", "/oauth2/revoke", data=form, token="")).status_code == 200
        # A client with a valid secret is limited, too.
        more = [await mine.ask(grant_type="refresh_token", refresh_token=given.json()["refresh_token"]) for _ in "123"]
        assert more[-1].status_code == 429


async def test_disabled_routes_are_rate_limited() -> None:
    async with running_coderd(first_user=True, dangerous_disable_rate_limits=False, api_rate_limit=3) as world:
        for path in ("/oauth2/tokens", "/oauth2/revoke"):
            answers = [await world.request("POST", path, data={}, token="") for _ in range(4)]
            assert [answer.status_code for answer in answers] == [403] * 3 + [429]
