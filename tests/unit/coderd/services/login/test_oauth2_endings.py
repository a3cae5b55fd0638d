"""Revocation and expiry of OAuth2 tokens: connections and derived keys end, and rows are deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import httpx
import pytest
import trio
from sqlalchemy import func, select, text, update

from coder.base.clock import FakeClock
from coder.base.secret import Secret
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.apps import app_tokens
from coder.coderd.services.login import oauth2_client_authentication, oauth2_grants
from coder.coderd.services.login.oauth2_grants import _renew as _grant_anew
from coder.coderd.services.site.retention import purge_due
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.login import oauth2 as store
from coder.coderd.store.people import system_users
from coder.coderd.store.people import users as user_store
from coder.coderd.store.tables.oauth2 import (
    oauth2_provider_app_codes,
    oauth2_provider_app_tokens,
    oauth2_provider_app_used_refresh_tokens,
    oauth2_provider_apps,
)
from coder.domain.login.oauth2 import split_secret
from coder.net.dial import DialPolicy
from coder.net.websocket import connect_websocket
from tests.kit.server.race_conditions import overtaken
from tests.unit.coderd.services.login.test_oauth2_provider import CALLBACK, Client, client, refusal

INBOX = "/api/v2/notifications/inbox/watch"
PATIENCE = 60.0
Tokens = dict[str, Any]


async def _renew(it: Client, tokens: Tokens) -> None:
    assert (await it.ask(grant_type="refresh_token", refresh_token=tokens["refresh_token"])).status_code == 200


async def _revoke(it: Client, token: str) -> None:
    form = {"client_id": it.app_id, "client_secret": it.secret, "token": token}
    assert (await it.world.request("POST", "/oauth2/revoke", data=form, token="")).status_code == 200


async def _revoke_access(it: Client, tokens: Tokens) -> None:
    await _revoke(it, tokens["access_token"])


async def _revoke_refresh(it: Client, tokens: Tokens) -> None:
    await _revoke(it, tokens["refresh_token"])


async def _reuse_code(it: Client, tokens: Tokens) -> None:
    assert refusal(await it.exchange(tokens["code"])) == (400, "invalid_grant")


async def _reuse_refresh_token(it: Client, tokens: Tokens) -> None:
    assert refusal(await it.ask(grant_type="refresh_token", refresh_token=tokens["used"])) == (400, "invalid_grant")


async def _authorize_again(it: Client, tokens: Tokens) -> None:
    assert (await it.exchange(await it.code())).status_code == 200


async def _revoke_application(it: Client, tokens: Tokens) -> None:
    deleted = await it.world.delete(f"/oauth2/tokens?client_id={it.app_id}", token=it.user_token)
    assert deleted.status_code == 204


async def _delete_app(it: Client, tokens: Tokens) -> None:
    assert (await it.world.delete(f"/api/v2/oauth2-provider/apps/{it.app_id}")).status_code == 204


async def _delete_secret(it: Client, tokens: Tokens) -> None:
    path = f"/api/v2/oauth2-provider/apps/{it.app_id}/secrets"
    (secret,) = (await it.world.get(path)).json()
    assert (await it.world.delete(f"{path}/{secret['id']}")).status_code == 204


ENDS: tuple[Callable[[Client, Tokens], Awaitable[None]], ...] = (
    _renew,
    _revoke_access,
    _revoke_refresh,
    _reuse_code,
    _reuse_refresh_token,
    _authorize_again,
    _revoke_application,
    _delete_app,
    _delete_secret,
)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
async def test_connections_end_with_access_token(end: Callable[..., Awaitable[None]]) -> None:
    async with client() as it:
        code = await it.code()
        first = (await it.exchange(code)).json()
        tokens = (await it.ask(grant_type="refresh_token", refresh_token=first["refresh_token"])).json()
        tokens |= {"code": code, "used": first["refresh_token"]}
        stream = await connect_websocket(DialPolicy(it.world.url, token=Secret(tokens["access_token"])), INBOX)
        try:
            await end(it, tokens)
            assert await it.me(tokens["access_token"]) == 401
            with trio.fail_after(PATIENCE):
                try:
                    while await stream.receive_some():
                        pass
                except trio.BrokenResourceError:
                    pass
            assert stream.close_code == 1008
        finally:
            await trio.aclose_forcefully(stream)


async def _use_the_refresh_token_twice(it: Client, tokens: Tokens) -> None:
    again = await it.ask(grant_type="refresh_token", refresh_token=tokens["refresh_token"])
    assert refusal(again) == (400, "invalid_grant")


async def _change_the_password(it: Client, tokens: Tokens) -> None:
    changed = await it.world.put("/api/v2/users/alice/password", {"password": "another-password-1!"})
    assert changed.status_code == 204, changed.text


async def _delete_the_user(it: Client, tokens: Tokens) -> None:
    assert (await it.world.delete("/api/v2/users/alice")).status_code == 200


OVERTAKEN = (
    *(end for end in ENDS if end is not _renew),
    _use_the_refresh_token_twice,
    _change_the_password,
    _delete_the_user,
)


@pytest.mark.parametrize("end", OVERTAKEN, ids=lambda end: end.__name__)
async def test_revocation_during_refresh(end: Callable[..., Awaitable[None]]) -> None:
    async with client() as it:
        code, given = await it.code(), []
        first = (await it.exchange(code)).json()
        tokens = (await it.ask(grant_type="refresh_token", refresh_token=first["refresh_token"])).json()
        tokens |= {"code": code, "used": first["refresh_token"]}
        proven = await oauth2_client_authentication.authenticate_client(it.world.ctx, it.app_id, it.secret)
        prefix, secret = split_secret(tokens["refresh_token"]) or ("", "")

        async def renewal(tx: Any) -> None:
            given.append(await _grant_anew(tx, it.world.ctx, proven, prefix, hash_secret(secret), "127.0.0.1"))

        async def ending() -> None:
            await end(it, tokens)

        await overtaken(it.world, renewal, ending)
        new = given[-1]
        assert isinstance(new, oauth2_grants.Tokens)
        assert await it.me(new.access) == 401
        again = await it.ask(grant_type="refresh_token", refresh_token=new.refresh)
        assert again.status_code in {400, 401}


async def _delete_app_in(it: Client, tx: Any, user_id: UUID) -> None:
    await store.delete_app(tx, UUID(it.app_id))


async def _delete_secret_in(it: Client, tx: Any, user_id: UUID) -> None:
    (secret,) = await store.list_secrets(tx, UUID(it.app_id))
    assert await store.delete_secret(tx, UUID(it.app_id), secret.id)


async def _delete_tokens_in(it: Client, tx: Any, user_id: UUID) -> None:
    await store.delete_tokens_of(tx, UUID(it.app_id), user_id)


async def _delete_keys_in(it: Client, tx: Any, user_id: UUID) -> None:
    await system_users.get_user(tx, user_id, lock=True)
    await key_store.delete_keys_of(tx, user_id)


async def _delete_user_in(it: Client, tx: Any, user_id: UUID) -> None:
    await system_users.get_user(tx, user_id, lock=True)
    await user_store.update_user(tx, user_id, deleted=True)
    await key_store.delete_keys_of(tx, user_id)


MEETS = [
    (giver, end)
    for giver in ("renewal", "exchange")
    for end in (_delete_app_in, _delete_secret_in, _delete_tokens_in, _delete_keys_in, _delete_user_in)
]


@pytest.mark.parametrize(("giver", "end"), MEETS)
async def test_exchange_during_revocation_is_refused(giver: str, end: Callable[..., Awaitable[None]]) -> None:
    async with client() as it:
        user_id = UUID((await it.world.get("/api/v2/users/alice")).json()["id"])
        tokens = (await it.exchange(await it.code())).json()
        code = await it.code()

        async def ending(tx: Any) -> None:
            await end(it, tx, user_id)

        async def gift() -> httpx.Response:
            if giver == "exchange":
                return await it.exchange(code)
            return await it.ask(grant_type="refresh_token", refresh_token=tokens["refresh_token"])

        answer = await overtaken(it.world, ending, gift)
        assert answer.status_code in {400, 401}, answer.text


def _key_of(it: Client) -> str:
    return it.user_token.partition("-")[0]


async def _sign_out(it: Client) -> None:
    assert (await it.world.post("/api/v2/users/logout", token=it.user_token)).status_code == 200


async def _delete_the_session(it: Client) -> None:
    deleted = await it.world.delete(f"/api/v2/users/alice/keys/{_key_of(it)}")
    assert deleted.status_code == 204, deleted.text


async def _expire_the_session(it: Client) -> None:
    over = await it.world.put(f"/api/v2/users/alice/keys/{_key_of(it)}/expire")
    assert over.status_code == 204, over.text


async def _new_password(it: Client) -> None:
    await _change_the_password(it, {})


async def _suspend(it: Client) -> None:
    assert (await it.world.put("/api/v2/users/alice/status/suspend")).status_code == 200


@pytest.mark.parametrize(
    "end",
    (_sign_out, _delete_the_session, _expire_the_session, _new_password, _suspend),
    ids=lambda end: end.__name__,
)
async def test_code_ends_with_consenting_session(end: Callable[[Client], Awaitable[None]]) -> None:
    """A code lives ten minutes. After a user has ended a foreign session, its code must not admit an application."""
    async with client() as it:
        code = await it.code()
        await end(it)
        assert refusal(await it.exchange(code)) == (400, "invalid_grant")


async def _another(it: Client) -> Client:
    created = await it.world.post("/api/v2/oauth2-provider/apps", {"name": "other", "callback_url": CALLBACK})
    secret = await it.world.post(f"/api/v2/oauth2-provider/apps/{created.json()['id']}/secrets")
    return Client(it.world, created.json()["id"], secret.json()["client_secret_full"], it.user_token)


RENEWALS = (_renew, _authorize_again)


@pytest.mark.parametrize("end", RENEWALS, ids=lambda end: end.__name__)
async def test_code_survives_other_refreshes(end: Callable[..., Awaitable[None]]) -> None:
    async with client() as it:
        other = await _another(it)
        tokens = (await other.exchange(await other.code())).json()
        code = await it.code()
        await end(other, tokens)
        assert (await it.exchange(code)).status_code == 200


async def test_application_cannot_consent() -> None:
    """Neither can derived keys. The other application's tokens would outlive the consent."""
    async with client() as it:
        other = await _another(it)
        access = (await other.exchange(await other.code())).json()["access_token"]
        created = await it.world.post("/api/v2/users/me/keys/tokens", {}, token=access)
        own = await it.world.post("/api/v2/users/me/keys/tokens", {}, token=it.user_token)
        for key in (access, created.json()["key"]):
            assert refusal(await it.world.post(it.query(), token=key)) == (400, "access_denied")
        for key in (it.user_token, own.json()["key"]):
            assert (await it.world.post(it.query(), token=key)).status_code == 302


async def _derived_keys(it: Client, access: str, other: str) -> dict[str, str]:
    """Return keys derived in every way, for the user and, by an owner, for another user."""
    created: dict[str, str] = {}
    for name, by, path, body in (
        ("a token", access, "/api/v2/users/me/keys/tokens", {}),
        ("a session", access, "/api/v2/users/me/keys", None),
        ("a token's token", "a token", "/api/v2/users/me/keys/tokens", {}),
        ("a session's session", "a session", "/api/v2/users/me/keys", None),
        ("another's token", access, f"/api/v2/users/{other}/keys/tokens", {}),
        ("another's token's token", "another's token", "/api/v2/users/me/keys/tokens", {}),
    ):
        answer = await it.world.post(path, body, token=created.get(by, by))
        assert answer.status_code == 201, (name, answer.text)
        created[name] = answer.json()["key"]
    there = await it.world.get(
        "/api/v2/applications/auth-redirect?redirect_uri=http://x--main--w--u.apps.test/", token=access
    )
    assert there.status_code == 307, there.text
    ((sealed,),) = parse_qs(urlsplit(there.headers["location"]).query).values()
    key = await app_tokens.open_key_untrusted(it.world.ctx, sealed)
    assert key
    created["an application's of a workspace"] = key
    return created


async def _person(it: Client, name: str) -> Client:
    """Return an owner with an application of their own."""
    app = await it.world.post("/api/v2/oauth2-provider/apps", {"name": name, "callback_url": CALLBACK})
    secret = await it.world.post(f"/api/v2/oauth2-provider/apps/{app.json()['id']}/secrets")
    _, token = await it.world.member(name, ["owner"])
    return Client(it.world, app.json()["id"], secret.json()["client_secret_full"], token)


async def _alive(it: Client, keys: dict[str, str]) -> list[str]:
    asked = "/api/v2/users/me/keys/tokens/tokenconfig"
    answers = {name: (await it.world.get(asked, token=key)).status_code for name, key in keys.items()}
    return [name for name, status in answers.items() if status != 401]


async def _delete_the_access_token(it: Client, tokens: Tokens) -> None:
    deleted = await it.world.delete(
        f"/api/v2/users/me/keys/{tokens['access_token'].partition('-')[0]}", token=it.user_token
    )
    assert deleted.status_code == 204, deleted.text


async def test_derived_keys_end_with_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys created by a user stay, and refreshing tokens ends nothing."""
    wrong = []
    monkeypatch.setattr(key_store, "_MOST_NAMED", 1)
    async with client(wildcard_access_url="*.apps.test") as root:
        bystander, _ = await root.world.member("bystander")
        for number, end in enumerate((*ENDS, _delete_the_access_token)):
            it = await _person(root, f"person{number}")
            code = await it.code()
            first = (await it.exchange(code)).json()
            tokens = (await it.ask(grant_type="refresh_token", refresh_token=first["refresh_token"])).json()
            tokens |= {"code": code, "used": first["refresh_token"]}
            created = await _derived_keys(it, tokens["access_token"], bystander)
            mine = await it.world.post("/api/v2/users/me/keys/tokens", {}, token=it.user_token)
            own = {"the session": it.user_token, "an own token": mine.json()["key"]}
            assert await _alive(it, created) == list(created)
            await end(it, tokens)
            left = await _alive(it, created)
            if left != (list(created) if end is _renew else []):
                wrong.append(f"{end.__name__}: {left}")
            if await _alive(it, own) != list(own):
                wrong.append(f"{end.__name__} ended what the person made")
    assert not wrong, "\n".join(wrong)


async def test_derived_keys_end_with_refusal() -> None:
    """The refusal uses up the refresh token. Derived keys are found only by its access token."""
    async with client() as it:
        tokens = (await it.exchange(await it.code())).json()
        created = (await it.world.post("/api/v2/users/me/keys/tokens", {}, token=tokens["access_token"])).json()["key"]
        assert await it.me(created) == 200
        await it.world.put("/api/v2/users/alice/status/suspend")
        renewed = await it.ask(grant_type="refresh_token", refresh_token=tokens["refresh_token"])
        assert refusal(renewed) == (400, "invalid_grant")
        await it.world.put("/api/v2/users/alice/status/activate")
        assert (await it.me(it.user_token), await it.me(created)) == (200, 401)


async def test_key_without_consent_is_limited() -> None:
    async with client() as it:
        tokens = (await it.exchange(await it.code())).json()
        created = (await it.world.post("/api/v2/users/me/keys/tokens", {}, token=tokens["access_token"])).json()["key"]

        async def forget(tx: Any) -> None:
            await tx.execute(text("DELETE FROM oauth2_provider_app_tokens"))

        await it.world.ctx.db.run(forget)
        assert await it.me(created) == 200
        assert (await it.world.post("/api/v2/users/me/keys/tokens", {}, token=created)).status_code == 401
        assert refusal(await it.world.post(it.query(), token=created)) == (400, "access_denied")
        deleted = await it.world.delete(f"/oauth2/tokens?client_id={it.app_id}", token=it.user_token)
        assert (deleted.status_code, await it.me(created)) == (204, 401)


async def test_derived_key_expires_with_consent() -> None:
    clock, day = FakeClock(), timedelta(days=1).total_seconds()
    async with client(clock=clock, default_oauth_refresh_lifetime=timedelta(days=30)) as it:
        access = (await it.exchange(await it.code())).json()["access_token"]
        expected, began = {"lifetime": 100 * 24 * 3600 * 10**9}, clock.now()
        keys = [
            (await it.world.post("/api/v2/users/me/keys/tokens", expected, token=by)).json()["key"]
            for by in (access, it.user_token)
        ]
        for _ in range(60):
            clock.advance(day / 2)
            assert await it.me(access) == 200
            if clock.now() - began < timedelta(days=29):
                assert [await it.me(key) for key in keys] == [200, 200]
        clock.advance(day / 2)
        assert [await it.me(key) for key in (access, *keys)] == [200, 401, 200]
        late = await it.world.post("/api/v2/users/me/keys/tokens", expected, token=access)
        assert late.status_code == 401, "instead of an expired key"


@pytest.mark.parametrize(
    "end", (_delete_app_in, _delete_tokens_in, _delete_keys_in, "the key"), ids=lambda end: str(end)[:20]
)
async def test_ending_key_creates_no_key(end: Any) -> None:
    async with client() as it:
        user_id = UUID((await it.world.get("/api/v2/users/alice")).json()["id"])
        access = (await it.exchange(await it.code())).json()["access_token"]

        async def making() -> httpx.Response:
            return await it.world.post("/api/v2/users/me/keys/tokens", {}, token=access)

        assert (await making()).status_code == 201

        async def ending(tx: Any) -> None:
            if end == "the key":
                await key_store.delete_key(tx, access.partition("-")[0])
            else:
                await end(it, tx, user_id)

        answer = await overtaken(it.world, ending, making)
        assert answer.status_code == 401, answer.text
        listed = (await it.world.get("/api/v2/users/alice/keys/tokens")).json()
        assert not listed


async def _end_another_session(it: Client, key: str) -> None:
    assert (await it.world.delete(f"/api/v2/users/alice/keys/{key.partition('-')[0]}")).status_code == 204


async def _expire_another_session(it: Client, key: str) -> None:
    assert (await it.world.put(f"/api/v2/users/alice/keys/{key.partition('-')[0]}/expire")).status_code == 204


async def _start_a_workspace(it: Client, _key: str) -> None:
    """Start a workspace, whose session token ends with each build."""
    user_id = UUID((await it.world.get("/api/v2/users/alice")).json()["id"])
    await it.world.ctx.db.run(key_store.replace_token, user_id, "ws_session")


@pytest.mark.parametrize("names_its_key", (True, False))
@pytest.mark.parametrize(
    "end", (_end_another_session, _expire_another_session, _start_a_workspace), ids=lambda end: end.__name__
)
async def test_code_survives_other_keys(end: Callable[[Client, str], Awaitable[None]], names_its_key: bool) -> None:
    """A code from before migration 0032 names no key, so any key may be the consenting one."""
    async with client() as it:
        body = {"token_name": "ws_session"}
        other = await it.world.post("/api/v2/users/me/keys/tokens", body, token=it.user_token)
        code = await it.code()
        if not names_its_key:
            await it.world.ctx.db.run(_forget_keys)
        await end(it, other.json()["key"])
        answer = await it.exchange(code)
        if names_its_key:
            assert answer.status_code == 200, answer.text
        else:
            assert refusal(answer) == (400, "invalid_grant")


async def _forget_keys(tx: Any) -> None:
    await tx.execute(update(oauth2_provider_app_codes).values(api_key_id=None))


@pytest.mark.parametrize(
    "end", (_delete_keys_in, _delete_user_in, "the key"), ids=lambda end: getattr(end, "__name__", end)
)
async def test_ending_key_gets_no_code(end: Any) -> None:
    async with client() as it:
        user_id = UUID((await it.world.get("/api/v2/users/alice")).json()["id"])

        async def ending(tx: Any) -> None:
            if end == "the key":
                await key_store.delete_key(tx, _key_of(it))
            else:
                await end(it, tx, user_id)

        async def consent() -> httpx.Response:
            return await it.world.post(it.query(), token=it.user_token)

        answer = await overtaken(it.world, ending, consent)
        assert (answer.status_code, answer.headers.get("location")) == (401, None), answer.text


async def test_deleted_application_gets_no_code() -> None:
    async with client() as it:

        async def deletion(tx: Any) -> None:
            await store.delete_app(tx, UUID(it.app_id))

        async def consent() -> httpx.Response:
            return await it.world.post(it.query(), token=it.user_token)

        assert refusal(await overtaken(it.world, deletion, consent)) == (401, "invalid_client")


async def test_unattributed_tokens_end_with_secret() -> None:
    async with client() as it:
        path = f"/api/v2/oauth2-provider/apps/{it.app_id}/secrets"
        assert (await it.world.post(path)).status_code == 201

        async def age(tx: Any, public: bool) -> None:
            await tx.execute(update(oauth2_provider_app_tokens).values(app_secret_id=None))
            await tx.execute(update(oauth2_provider_apps).values(public_client=public))

        for public in (False, True):
            tokens = (await it.exchange(await it.code())).json()
            await it.world.ctx.db.run(age, public)
            other = (await it.world.get(path)).json()[-1]
            assert (await it.world.delete(f"{path}/{other['id']}")).status_code == 204
            assert await it.me(tokens["access_token"]) == (200 if public else 401)


async def test_deleted_secret_ends_its_tokens() -> None:
    async with client() as it:
        path = f"/api/v2/oauth2-provider/apps/{it.app_id}/secrets"
        (leaked,) = (await it.world.get(path)).json()
        old = (await it.exchange(await it.code())).json()
        _, bob = await it.world.member("bob")
        second = Client(it.world, it.app_id, (await it.world.post(path)).json()["client_secret_full"], bob)
        kept = (await second.exchange(await second.code())).json()
        assert (await it.world.delete(f"{path}/{leaked['id']}")).status_code == 204
        assert await it.me(old["access_token"]) == 401
        again = await second.ask(grant_type="refresh_token", refresh_token=old["refresh_token"])
        assert refusal(again) == (400, "invalid_grant")
        assert await it.me(kept["access_token"]) == 200
        renewed = await second.ask(grant_type="refresh_token", refresh_token=kept["refresh_token"])
        assert renewed.status_code == 200
        assert (await it.world.delete(f"{path}/{leaked['id']}")).status_code == 404


async def test_refresh_token_lifetime() -> None:
    """Refresh tokens live for a month, while expired keys, such as its access token, are purged after days."""
    clock, day = FakeClock(), timedelta(days=1).total_seconds()
    settings: dict[str, Any] = {"default_oauth_refresh_lifetime": timedelta(days=30), "session_duration": timedelta(1)}
    async with client(clock=clock, **settings) as it:

        async def count() -> list[int]:
            async def counted(tx: Any) -> list[int]:
                tables = (
                    oauth2_provider_app_codes,
                    oauth2_provider_app_tokens,
                    oauth2_provider_app_used_refresh_tokens,
                )
                return [(await tx.execute(select(func.count()).select_from(table))).scalar_one() for table in tables]

            return await it.world.ctx.db.read(counted)

        first = (await it.exchange(await it.code())).json()
        second = (await it.ask(grant_type="refresh_token", refresh_token=first["refresh_token"])).json()
        assert await count() == [1, 1, 1]
        clock.advance(29 * day)
        await purge_due(it.world.ctx)
        assert await count() == [0, 1, 1], "a code expires after minutes"
        third = await it.ask(grant_type="refresh_token", refresh_token=second["refresh_token"])
        assert third.status_code == 200, third.text
        assert await count() == [0, 1, 2]
        clock.advance(3 * day)
        await purge_due(it.world.ctx)
        assert await count() == [0, 1, 0], "used tokens are deleted when they would have expired"
        clock.advance(40 * day)
        await purge_due(it.world.ctx)
        assert await count() == [0, 0, 0]
