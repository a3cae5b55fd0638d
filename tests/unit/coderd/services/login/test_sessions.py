"""First user, login, current user, members."""

from __future__ import annotations

import base64
import hashlib
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
import trio

from coder.base.clock import FakeClock
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.audit import request_events
from coder.coderd.services.login import passcodes
from coder.coderd.services.notifications.notifications import site_of
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.access import system_keys
from coder.coderd.store.people import system_users
from coder.coderd.store.people import users as user_store
from coder.domain.access.user_agents import LONGEST
from tests.kit.agents.scripted_agent import eventually
from tests.kit.server.race_conditions import overtaken
from tests.kit.server.server_in_process import FIRST_USER, running_coderd


async def test_first_user_and_member() -> None:
    async with running_coderd() as world:
        assert (await world.get("/api/v2/users/first")).status_code == 404
        await world.first_user()
        me = (await world.get("/api/v2/users/me")).json()
        assert me["roles"] == [{"name": "owner", "display_name": "Owner"}]
        member_id, token = await world.member("alice")
        seen = await world.get(f"/api/v2/users/{member_id}", token=token)
        assert seen.json()["status"] == "active"
        hidden = await world.get("/api/v2/users/admin", token=token)
        assert hidden.status_code == 404
        signed_out = await world.get("/api/v2/users/me", token="")
        assert signed_out.status_code == 401
        assert "must be provided" in signed_out.json()["detail"]


async def test_concurrent_first_users() -> None:
    async with running_coderd() as world:
        statuses: list[int] = []

        async def create(name: str) -> None:
            body = {**FIRST_USER, "username": name, "email": f"{name}@b.c"}
            statuses.append((await world.post("/api/v2/users/first", body)).status_code)

        async with trio.open_nursery() as nursery:
            for name in ("one", "two", "three"):
                nursery.start_soon(create, name)
        assert sorted(statuses) == [201, 409, 409]


async def test_cross_site_websocket_is_refused() -> None:
    async with running_coderd(first_user=True) as world:
        handshake = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        }
        for path in ("/api/v2/derp-map", "/api/v2/tailnet"):
            answer = await world.get(path, headers={**handshake, "Origin": "http://evil.example"})
            assert answer.status_code == 403, path


async def test_session_slides_until_expired() -> None:
    clock = FakeClock()
    async with running_coderd(first_user=True, clock=clock) as world:
        clock.advance(23 * 3600)
        assert (await world.get("/api/v2/users/me")).status_code == 200
        clock.advance(23 * 3600)
        assert (await world.get("/api/v2/users/me")).status_code == 200
        clock.advance(25 * 3600)
        answer = await world.get("/api/v2/users/me")
        assert answer.status_code == 401
        assert answer.json()["detail"].startswith('API key expired at "')


async def test_passcode_changes_password_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inbox announces a passcode without its text. A second request within a minute changes nothing."""
    sent: list[str] = []
    send = passcodes._send

    async def noted(tx: Any, user_id: Any, passcode: str, *rest: Any) -> None:
        sent.append(passcode)
        await send(tx, user_id, passcode, *rest)

    monkeypatch.setattr(passcodes, "_send", noted)
    async with running_coderd(first_user=True) as world:
        for email in ("a@b.c", "unknown@b.c", "a@b.c"):
            assert (await world.post("/api/v2/users/otp/request", {"email": email})).status_code == 204

        async def arrived() -> Any:
            return (await world.get("/api/v2/notifications/inbox")).json()["notifications"]

        (told,) = await eventually(arrived)
        assert told["actions"] == [] and sent[0] not in str(told)
        body = {"email": "a@b.c", "password": "An0ther-Secret!", "one_time_passcode": sent[0]}
        wrong = await world.post("/api/v2/users/otp/change-password", {**body, "one_time_passcode": "x"})
        assert wrong.status_code == 400
        heard: list[tuple[int, str]] = []

        async def change(password: str) -> None:
            answer = await world.post("/api/v2/users/otp/change-password", {**body, "password": password})
            heard.append((answer.status_code, password))

        async with trio.open_nursery() as nursery:  # of concurrent uses, only one succeeds
            for number in range(4):
                nursery.start_soon(change, f"An0ther-Secret!{number}")
        assert sorted(status for status, _ in heard) == [204, 400, 400, 400]
        assert (await world.post("/api/v2/users/otp/change-password", body)).status_code == 400
        assert await world.login("a@b.c", next(password for status, password in heard if status == 204))


async def test_failed_login_answers_before_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded only for an email address that belongs to a user."""
    goes_on, record, written = trio.Event(), request_events.record_event, []

    async def recorded(ctx: Any, event: Any) -> None:
        await goes_on.wait()
        written.append((event.action, event.status_code))
        await record(ctx, event)

    async with running_coderd(first_user=True) as world:
        monkeypatch.setattr(request_events, "record_event", recorded)
        change = {"password": "An0ther-Secret!", "one_time_passcode": "x"}
        for path, body, status in (
            ("login", {"password": "x"}, 401),
            ("otp/request", {}, 204),
            ("otp/change-password", change, 400),
        ):
            with trio.fail_after(60):
                asked = await world.post(f"/api/v2/users/{path}", {"email": "a@b.c", **body}, token="")
            assert asked.status_code == status, asked.text
        assert not written
        goes_on.set()
        await world.ctx.services.deferred_work.wait_until_done()
        assert written == [("login", 401), ("request_password_reset", 204), ("write", 400)]


async def test_concurrent_passcode_requests() -> None:
    """The second request waits for the first and sees its passcode."""
    async with running_coderd(first_user=True) as world:
        user = await world.ctx.db.read(system_users.get_user_by_email, "a@b.c")
        assert user is not None
        site, now = site_of(world.ctx), world.ctx.clock.now()

        async def first(tx: Any) -> None:
            await passcodes._send(tx, user.id, "first", site, now)

        asked = await overtaken(world, first, lambda: world.post("/api/v2/users/otp/request", {"email": "a@b.c"}))
        assert asked.status_code == 204
        hashed, _ = await world.ctx.db.read(user_store.get_passcode, user.id)
        assert hashed == hash_secret("first")

        async def arrived() -> Any:
            return (await world.get("/api/v2/notifications/inbox")).json()["notifications"]

        assert len(await eventually(arrived)) == 1


async def test_cookie_requires_csrf_token() -> None:
    async with running_coderd(first_user=True) as world:
        cookie = f"coder_session_token={world.token}"
        refused = await world.post("/api/v2/users/me/keys", token="", headers={"Cookie": cookie})
        assert refused.status_code == 400
        assert "CSRF" in refused.text
        for path in ("?coder_session_token=", "?coder_session_token=x"):
            forged = await world.post(f"/api/v2/users/me/keys{path}", token="", headers={"Cookie": cookie})
            assert forged.status_code == 400, path
        known = {"Cookie": cookie, "Coder-Session-Token": world.token}
        assert (await world.post("/api/v2/users/me/keys", token="", headers=known)).status_code == 201
        seen = await world.get("/api/v2/users/me", token="", headers={"Cookie": cookie})
        csrf = seen.headers["set-cookie"].split("csrf_token=")[1].split(";")[0]
        headers = {"Cookie": f"{cookie}; csrf_token={csrf}", "X-CSRF-TOKEN": csrf}
        assert (await world.post("/api/v2/users/me/keys", token="", headers=headers)).status_code == 201


async def test_owner_tokens_expire_earlier() -> None:
    async with running_coderd(first_user=True, max_admin_token_lifetime=timedelta(hours=1)) as world:
        _, token = await world.member("bob")
        tokens = "/api/v2/users/me/keys/tokens"
        for hours, by_owner, by_member in ((1, 201, 201), (2, 400, 201), (0, 201, 201)):
            body = {"lifetime": hours * 3600 * 10**9}
            assert (await world.post(tokens, body)).status_code == by_owner, hours
            assert (await world.post(tokens, body, token=token)).status_code == by_member, hours
        # bob owns his tokens, independent of their creator
        assert (await world.post("/api/v2/users/bob/keys/tokens", {"lifetime": 2 * 3600 * 10**9})).status_code == 201
        key = (await world.post("/api/v2/users/me/keys")).json()["key"]
        result = (await world.get(f"/api/v2/users/me/keys/{key.partition('-')[0]}")).json()
        assert result["lifetime_seconds"] == 3600


async def test_revoking_one_session() -> None:
    """The list hides tokens and ended sessions. A user sees only own sessions, and ends one of them."""
    async with running_coderd(first_user=True) as world:
        await world.post("/api/v2/users/me/keys/tokens", {"token_name": "ci", "lifetime": 3600 * 10**9})
        laptop = (await world.post("/api/v2/users/me/keys", {})).json()["key"]
        listed = (await world.get("/api/v2/users/me/sessions")).json()
        assert [item["current"] for item in listed].count(True) == 1
        lost = next(item for item in listed if laptop.startswith(f"{item['id']}-"))
        assert (lost["current"], lost["login_type"], lost["ip_address"]) == (False, "password", "127.0.0.1")
        assert (await world.delete(f"/api/v2/users/me/keys/{lost['id']}")).status_code == 204
        assert (await world.get("/api/v2/users/me", token=laptop)).status_code == 401
        left = (await world.get("/api/v2/users/me/sessions")).json()
        assert [item["id"] for item in left] == [item["id"] for item in listed if item != lost]

        member_id, token = await world.member("alice")
        assert (await world.get("/api/v2/users/admin/sessions", token=token)).status_code == 404
        own = (await world.get("/api/v2/users/me/sessions", token=token)).json()
        assert own
        assert not {item["id"] for item in own} & {item["id"] for item in left}
        seen = (await world.get(f"/api/v2/users/{member_id}/sessions")).json()
        assert [item["id"] for item in seen] == [item["id"] for item in own]
        assert not any(item["current"] for item in seen)


async def test_session_shows_user_agent() -> None:
    """From the login on; a session handed to the CLI gets the CLI's from its first use."""
    firefox, endless = {"User-Agent": "Mozilla/5.0 Firefox/140.0"}, {"User-Agent": "x" * 5000}
    body = {"email": FIRST_USER["email"], "password": FIRST_USER["password"]}
    async with running_coderd(first_user=True) as world:
        view = (await world.post("/api/v2/users/login", body, token="", headers=firefox)).json()["session_token"]

        async def known(key: str) -> str:
            row = await world.ctx.db.read(system_keys.get_key, key.partition("-")[0])
            assert row is not None
            return row.user_agent

        assert await known(view) == firefox["User-Agent"]
        world.client.cookies.clear()  # otherwise it would send the session it was just given
        handed = (await world.post("/api/v2/users/me/keys", {}, headers=firefox)).json()["key"]
        assert await known(handed) == ""
        await world.get("/api/v2/users/me", token=handed, headers=endless)
        assert await known(handed) == "x" * LONGEST
        listed = {item["id"]: item["user_agent"] for item in (await world.get("/api/v2/users/me/sessions")).json()}
        assert listed[view.partition("-")[0]] == firefox["User-Agent"]


@pytest.mark.parametrize("change", [{"status": "suspended"}, {"login_type": "oidc"}], ids=str)
async def test_password_login_refused_after_change(change: Any) -> None:
    async with running_coderd(first_user=True) as world:
        alice, _ = await world.member("alice")

        async def end(tx: Any) -> None:
            await system_users.get_user(tx, UUID(alice), lock=True)
            await user_store.update_user(tx, UUID(alice), **change)

        login = {"email": "alice@b.c", "password": FIRST_USER["password"]}
        answer = await overtaken(world, end, lambda: world.post("/api/v2/users/login", login, token=""))
        assert answer.status_code == 401


@pytest.mark.parametrize("change", [{"hashed_password": "x"}, {"login_type": "oidc", "hashed_password": ""}], ids=str)
async def test_old_password_cannot_change_new(change: Any) -> None:
    async with running_coderd(first_user=True) as world:
        alice, token = await world.member("alice")

        async def end(tx: Any) -> None:
            await system_users.get_user(tx, UUID(alice), lock=True)
            await user_store.update_user(tx, UUID(alice), **change)

        body = {"old_password": FIRST_USER["password"], "password": "An0ther-Secret!"}
        path = "/api/v2/users/me/password"
        assert (await overtaken(world, end, lambda: world.put(path, body, token=token))).status_code == 400
        result = await world.ctx.db.read(system_users.get_user, UUID(alice))
        assert result is not None and result.hashed_password == change["hashed_password"]


_WILDCARD, _APPLICATION = "*.apps.test", "a--b--c--d.apps.test"
_KEYS = {
    "login": ("POST", "/api/v2/users/login", {"email": "alice@b.c", "password": FIRST_USER["password"]}),
    "session": ("POST", "/api/v2/users/me/keys", None),
    "token": ("POST", "/api/v2/users/me/keys/tokens", {"token_name": "late"}),
    "application": ("GET", f"/api/v2/applications/auth-redirect?redirect_uri=http://{_APPLICATION}/", None),
}


@pytest.mark.parametrize("kind", list(_KEYS))
@pytest.mark.parametrize("change", ["password", "deletion"])
async def test_no_key_survives_revocation(kind: str, change: str) -> None:
    """Requests with the old password or an old session may be in progress when everything is revoked."""
    method, path, body = _KEYS[kind]
    async with running_coderd(first_user=True, wildcard_access_url=_WILDCARD) as world:
        alice, token = await world.member("alice")
        assert (await world.get("/api/v2/users/me", token=token)).status_code == 200  # records the user's activity

        async def end(tx: Any) -> None:
            await system_users.get_user(tx, UUID(alice), lock=True)
            values: Any = {"hashed_password": "x"} if change == "password" else {"deleted": True}
            await user_store.update_user(tx, UUID(alice), **values)
            await key_store.delete_keys_of(tx, UUID(alice))

        async def request() -> httpx.Response:
            return await world.request(method, path, json=body, token="" if kind == "login" else token)

        assert (await overtaken(world, end, request)).status_code == 401


async def test_application_key_ends_with_session() -> None:
    """Logging out ends the keys of applications, also one that is being handed over."""
    method, path, _ = _KEYS["application"]
    async with running_coderd(first_user=True, wildcard_access_url=_WILDCARD) as world:
        alice, token = await world.member("alice")
        assert (await world.request(method, path, token=token)).status_code == 307

        async def sign_out(tx: Any) -> None:
            await key_store.delete_key(tx, token.partition("-")[0])
            await key_store.delete_keys_of(tx, UUID(alice), scope="coder:application_connect")

        answer = await overtaken(world, sign_out, lambda: world.request(method, path, token=token))
        assert answer.status_code == 401


async def test_login_renews_original_hash() -> None:
    async with running_coderd(first_user=True) as world:
        salt, password = b"0123456789abcdef", str(FIRST_USER["password"])
        key = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 1000, 64)
        parts = [base64.b64encode(part).decode().rstrip("=") for part in (salt, key)]
        user = await world.ctx.db.read(system_users.get_user_by_email, str(FIRST_USER["email"]))
        assert user is not None
        await world.ctx.db.run(
            user_store.update_user, user.id, hashed_password=f"$pbkdf2-sha256$1000${parts[0]}${parts[1]}"
        )
        for _ in range(2):
            world.client.cookies.clear()
            body = {"email": FIRST_USER["email"], "password": password}
            answer = await world.post("/api/v2/users/login", body, token="")
            assert answer.status_code == 201, answer.text
            stored = await world.ctx.db.read(system_users.get_user_by_email, str(FIRST_USER["email"]))
            assert stored is not None and stored.hashed_password.startswith("$argon2id$")
