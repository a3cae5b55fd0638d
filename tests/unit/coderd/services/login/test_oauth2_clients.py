"""Clients of the OAuth2 provider that exceed their grant: redirect URIs, scopes, registrations of others."""

from __future__ import annotations

from tests.unit.coderd.services.login.test_oauth2_provider import CALLBACK, client, refusal
from tests.unit.conformance.test_attacks_on_logins import REDIRECTS


async def test_code_requires_same_redirect_uri() -> None:
    """The token endpoint compares the exact text. A request without a redirect URI uses the only registered one."""
    async with client() as it:
        wrong = []
        for named in (CALLBACK, ""):
            for uri in (*REDIRECTS[::2], "", CALLBACK + "\t", CALLBACK + CALLBACK, f"{CALLBACK},{CALLBACK}"):
                answer = await it.exchange(await it.code(redirect_uri=named), redirect_uri=uri)
                if uri != named and refusal(answer) != (400, "invalid_grant"):
                    wrong.append(f"{named!r} {uri!r}: {answer.status_code} {answer.text[:200]}")
        assert not wrong, "\n".join(wrong)


async def test_refresh_keeps_scope() -> None:
    """The scope of a refresh request is ignored (RFC 6749 section 6)."""
    async with client() as it:
        tokens = (await it.exchange(await it.code(scope="workspace:read"))).json()
        for scope in ("coder:all", "", "workspace:read coder:all", "api_key:create", "user:read", "*", "x" * 3000):
            tokens = (
                await it.ask(grant_type="refresh_token", refresh_token=tokens["refresh_token"], scope=scope)
            ).json()
            access = tokens["access_token"]
            assert (await it.world.get("/api/v2/workspaces", token=access)).status_code == 200, scope
            created = await it.world.post("/api/v2/users/me/keys/tokens", {}, token=access)
            assert created.status_code in {403, 404}, scope
            wider = await it.world.post(it.query(scope="coder:all"), token=access)
            assert wider.status_code >= 400 and "code=" not in wider.headers.get("location", ""), scope


async def test_registration_token_is_bound() -> None:
    async with client() as it:
        await it.world.put("/api/v2/oauth2-provider/settings", {"dynamic_client_registration_enabled": True})
        created = (await it.world.post("/oauth2/register", {"redirect_uris": [CALLBACK]}, token="")).json()
        token, own = created["registration_access_token"], f"/oauth2/clients/{created['client_id']}"
        bearer = {"Authorization": f"Bearer {token}"}
        for method, path, headers, view in (
            ("GET", "/api/v2/users/me", bearer, ""),
            ("GET", "/api/v2/users/me", {}, token),
            ("GET", f"/api/v2/oauth2-provider/apps/{created['client_id']}", bearer, ""),
            ("POST", f"/api/v2/oauth2-provider/apps/{created['client_id']}/secrets", bearer, ""),
            ("PUT", f"/api/v2/oauth2-provider/apps/{created['client_id']}/legacy", bearer, ""),
            ("GET", f"/oauth2/clients/{it.app_id}", bearer, ""),
            ("DELETE", f"/oauth2/clients/{it.app_id}", bearer, ""),
            ("GET", own, {"Authorization": f"Basic {token}"}, ""),
            ("GET", own, {}, token),
            ("GET", own, {}, ""),
            ("GET", own, {"Authorization": f"Bearer {token}x"}, ""),
            ("GET", own, {"Authorization": token}, ""),
            ("GET", f"{own}?access_token={token}", {}, ""),
            ("GET", own, {"Authorization": f"Bearer {it.user_token}"}, ""),
        ):
            answer = await it.world.request(method, path, headers=headers, token=view)
            assert answer.status_code in {401, 404}, (method, path, headers, answer.text)
        form = {
            "grant_type": "authorization_code",
            "client_id": created["client_id"],
            "client_secret": token,
            "code": "x",
        }
        assert refusal(await it.world.request("POST", "/oauth2/tokens", data=form, token="")) == (401, "invalid_client")
        assert (await it.world.delete(own, headers=bearer, token="")).status_code == 204
        for method in ("GET", "PUT", "DELETE"):
            deleted = await it.world.request(method, own, headers=bearer, json={"redirect_uris": [CALLBACK]}, token="")
            assert deleted.status_code == 401, method
