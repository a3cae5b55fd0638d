"""Attacks by a plain member who creates many small objects: each kind is limited, also for concurrent requests.

The limits are low here; the real ones are defined with the limits. Bodies and messages are in `test_bounded_work.py`
and `test_request_limits.py`, requests a minute in `test_every_budget.py`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from uuid import UUID

import httpx
import pytest
import trio
from sqlalchemy import func, select, text

from coder.base.clock import FakeClock, SystemClock
from coder.coderd.services.access import new_keys
from coder.coderd.services.foundation import object_limits
from coder.coderd.services.foundation.object_limits import LIMITS, ObjectLimit
from coder.coderd.services.notifications.notification_delivery import METHODS, deliver_due
from coder.coderd.services.templates import files
from coder.coderd.services.workspaces import port_shares
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.notifications import notifications as message_store
from coder.coderd.store.people import object_counts
from coder.coderd.store.provisioning import provisioners as daemon_store
from coder.coderd.store.tables.notifications import inbox_notifications
from coder.coderd.store.tables.people import api_keys
from coder.net.errors import HttpError
from tests.kit.agents.scripted_agent import workspace_world
from tests.kit.provisioners.scripted_provisioner import connected_daemon, new_template, new_version, resource, tar
from tests.kit.server.server_in_process import FIRST_USER, World, running_coderd

FEW = 4
KINDS: tuple[tuple[str, str, Callable[[int], Any], str], ...] = (
    # (kind of the limit, path to create, body, path to delete)
    ("tokens", "users/me/keys/tokens", lambda n: {"token_name": f"t{n}"}, "users/me/keys/{id}"),
    (
        "secrets",
        "users/me/secrets",
        lambda n: {"name": f"s{n}", "value": "v", "env_name": f"S{n}"},
        "users/me/secrets/s{number}",
    ),
    (
        "secrets",
        "users/me/secrets/batch",
        lambda n: {"format": "env", "content": f"A{n}=1"},
        "users/me/secrets/A{number}",
    ),
    (
        "skills",
        "users/me/skills",
        lambda n: {"content": f"---\nname: s{n}\ndescription: d\n---\n"},
        "users/me/skills/s{number}",
    ),
)


def _path_of(kind: str, path: str) -> str:
    return f"/api/{'experimental' if kind == 'skills' else 'v2'}/{path}"


OTHERS = {"unfinished dry runs", "unfinished imports", "provisioners"}
"""Kinds created differently, or that end on their own: each has its own test below."""


def test_every_kind_has_case() -> None:
    assert {kind for kind, *_ in KINDS} | OTHERS == set(LIMITS) == set(object_counts._KINDS)


async def _flood(count: int, ask: Callable[[int], Any]) -> list[httpx.Response]:
    responses: list[httpx.Response] = []

    async def one(number: int) -> None:
        responses.append(await ask(number))

    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(one, number)
    return responses


async def test_object_limits_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_limits, "LIMITS", dict.fromkeys(LIMITS, ObjectLimit(FEW)))
    async with running_coderd(first_user=True) as world:
        for kind, path, body, item in KINDS:
            _, token = await world.member()
            _, other = await world.member()
            url = _path_of(kind, path)

            def make(n: int, url: str = url, body: Any = body, token: str = token) -> Any:
                return world.post(url, body(n), token=token)

            responses = await _flood(FEW * 3, make)
            created = [response for response in responses if response.status_code in {200, 201}]
            assert len(created) == FEW, f"{kind}: {[response.text for response in responses]}"
            assert {response.status_code for response in responses if response not in created} == {409}, kind
            assert (await world.post(url, body(99), token=other)).is_success, f"{kind}: of another user"
            known = created[0].json()
            key = known.get("key", "").partition("-")[0] if isinstance(known, dict) else ""
            asked = created[0].request.content.decode()
            marks = ("s{}\\n", '"s{}"', "A{}=")
            number = next((n for n in range(FEW * 3) if any(mark.format(n) in asked for mark in marks)), 0)
            deleted = await world.delete(_path_of(kind, item.format(id=key, number=number)), token=token)
            assert deleted.status_code == 204, deleted.text
            assert (await world.post(url, body(98), token=token)).is_success, f"{kind}: after one was deleted"


async def test_existing_excess_may_shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    skill = "---\nname: {}\ndescription: d\n---\n"
    things: dict[str, tuple[str, Callable[[str], Any], dict[str, Any], dict[str, Any]]] = {
        "secrets": (
            "/api/v2/users/me/secrets",
            lambda name: {"name": name, "value": "v" * 200, "env_name": name},
            {"value": "v" * 100},
            {"value": "v" * 300},
        ),
        "skills": (
            "/api/experimental/users/me/skills",
            lambda name: {"content": skill.format(name) + "x" * 200},
            {"content": skill.format("a") + "x" * 100},
            {"content": skill.format("a") + "x" * 300},
        ),
    }
    assert set(things) == {kind for kind, limit in LIMITS.items() if limit.max_bytes}
    async with running_coderd(first_user=True) as world:
        for path, body, less, more in things.values():
            for name in "abc":
                assert (await world.post(path, body(name))).status_code == 201
            for limit in (ObjectLimit(1, 1 << 20), ObjectLimit(100, 10)):
                with monkeypatch.context() as later:
                    later.setattr(object_limits, "LIMITS", dict.fromkeys(LIMITS, limit))
                    assert (await world.patch(f"{path}/a", less)).status_code == 200
                    assert (await world.patch(f"{path}/a", more)).status_code == (409 if limit.max_count > 1 else 200)
                    assert (await world.post(path, body("d"))).status_code == 409


async def test_login_ends_oldest_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of login ends the session used longest ago, also with concurrent logins. Tokens and other users'
    sessions stay.
    """
    monkeypatch.setattr(object_limits, "MAX_SESSIONS", FEW)
    clock = FakeClock()
    async with running_coderd(first_user=True, clock=clock) as world:
        _, other = await world.member()
        _, token = await world.member("busy")
        # A client that keeps a session's cookie would need a CSRF token for its next login.
        world.client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        created = await world.post("/api/v2/users/me/keys/tokens", {}, token=token)
        kept = created.json()["key"]

        async def key(_: int) -> httpx.Response:
            return await world.post("/api/v2/users/me/keys", token=kept)

        async def sign_in(_: int) -> httpx.Response:
            body = {"email": "busy@b.c", "password": FIRST_USER["password"]}
            return await world.post("/api/v2/users/login", body, token="")

        async def sessions() -> set[str]:
            return {item["id"] for item in (await world.get("/api/v2/users/me/sessions", token=kept)).json()}

        for make in (key, sign_in):
            clock.advance(60)
            before = await sessions()
            (last,) = await _flood(1, make)
            assert last.status_code == 201 and len(await sessions()) <= FEW
            clock.advance(60)
            responses = await _flood(FEW * 3, make)
            world.client.cookies.clear()
            assert [response.status_code for response in responses] == [201] * len(responses), responses[0].text
            left = await sessions()
            assert len(left) == FEW and not left & before
        assert (await world.get("/api/v2/users/me", token=other)).status_code == 200


async def test_expired_sessions_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expired sessions are kept for a week. A CLI session, which lives longer, must not be ended for them."""
    monkeypatch.setattr(object_limits, "MAX_SESSIONS", FEW)
    clock = FakeClock()
    async with running_coderd(first_user=True, clock=clock) as world:
        _, token = await world.member("busy")
        command_line = (await world.post("/api/v2/users/me/keys", token=token)).json()["key"]

        async def sign_in() -> None:
            clock.advance(60)
            body = {"email": "busy@b.c", "password": FIRST_USER["password"]}
            assert (await world.post("/api/v2/users/login", body, token="")).status_code == 201
            world.client.cookies.clear()

        for _ in range(FEW - 2):
            await sign_in()
        clock.advance(25 * 3600)
        for _ in range(FEW - 1):
            await sign_in()
        assert (await world.get("/api/v2/users/me", token=command_line)).status_code == 200
        assert len((await world.get("/api/v2/users/me/sessions", token=command_line)).json()) == FEW


async def test_login_ends_sessions_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of sessions may predate the limit: each login ends a batch of them, with one notice."""
    monkeypatch.setattr(object_limits, "MAX_SESSIONS", FEW)
    monkeypatch.setattr(key_store, "MAX_SESSIONS_REVOKED", 40)
    now = SystemClock().now()
    async with running_coderd(first_user=True) as world:
        user_id, _ = await world.member("busy")
        rows = [new_keys.new_key(UUID(user_id), "password", timedelta(1), now)[0] for _ in range(100)]

        async def fill(tx: Any) -> None:
            for row in rows:
                await key_store.insert_key(tx, row)

        async def count(tx: Any) -> int:
            which = select(func.count()).select_from(api_keys).where(api_keys.c.user_id == UUID(user_id))
            return int((await tx.execute(which)).scalar_one())

        await world.ctx.db.run(fill)
        heard: list[str] = []
        async with world.ctx.db.listen(key_store.ENDED) as notices:
            left = []
            for _ in range(3):
                await world.login("busy@b.c", FIRST_USER["password"])
                left.append(await world.ctx.db.read(count))
            await world.ctx.db.run(key_store.notify_sharing_revoked)
            async for _channel, payload in notices:
                if payload == "sharing":
                    break
                heard.append(payload)
    assert left == [62, 23, FEW]
    assert [item for item in heard if item.startswith("user")] == [f"user {user_id}"] * 2
    assert len(heard) == 2 + min(24 - FEW, key_store.MOST_NOTICES)


async def test_expired_tokens_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that creates a token for each run has many expired ones, which are listed for a week."""
    monkeypatch.setattr(object_limits, "LIMITS", dict.fromkeys(LIMITS, ObjectLimit(FEW)))
    path = "/api/v2/users/me/keys/tokens"
    async with running_coderd(first_user=True) as world:
        created = [(await world.post(path, {})).json()["key"].partition("-")[0] for _ in range(FEW)]
        assert (await world.post(path, {})).status_code == 409
        for key in created[1:]:
            assert (await world.put(f"/api/v2/users/me/keys/{key}/expire")).status_code == 204
        tokens = (await world.get(path, params={"include_expired": "true"})).json()
        assert len(tokens) == FEW
        assert (await world.post(path, {})).status_code == 201
        tokens = (await world.get(path, params={"include_expired": "true"})).json()
        assert len(tokens) == 2 and created[0] in {item["id"] for item in tokens}


async def test_queue_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that no daemon accepts: the refusal names a remedy, and the remedy works."""
    monkeypatch.setattr(object_limits, "LIMITS", dict.fromkeys(LIMITS, ObjectLimit(FEW)))
    async with running_coderd(first_user=True) as world:
        versions = f"/api/v2/organizations/{world.organization_id}/templateversions"
        async with connected_daemon(world) as daemon:
            template = await new_template(world)
            await daemon.complete_import(await daemon.acquire(), start_resources=[resource("box")])
        _, author = await world.member("author", ["template-admin"])
        _, token = await world.member()
        _, other = await world.member()
        import_of = {"storage_method": "file", "provisioner": "echo", "tags": {}, "example_id": "scratch"}
        dry_runs = f"/api/v2/templateversions/{template['active_version_id']}/dry-run"
        for kind, path, body, who, another, cancel in (
            ("dry runs", dry_runs, {"workspace_name": "w"}, token, other, f"{dry_runs}/{{id}}/cancel"),
            ("imports", versions, import_of, author, world.token, "/api/v2/templateversions/{id}/cancel"),
        ):

            def make(n: int, path: str = path, body: Any = body, who: str = who) -> Any:
                return world.post(path, body, token=who)

            responses = await _flood(FEW * 3, make)
            created = [response.json()["id"] for response in responses if response.status_code == 201]
            assert len(created) == FEW, f"{kind}: {[response.text for response in responses]}"
            assert {response.status_code for response in responses} == {201, 409}, kind
            assert (await world.post(path, body, token=another)).status_code == 201, f"{kind}: of another user"
            assert (await world.patch(cancel.format(id=created[0]), token=who)).status_code == 200
            assert (await make(0)).status_code == 201, f"{kind}: after one was canceled"
            assert (await make(0)).status_code == 409


@pytest.mark.parametrize("kind", ["unfinished dry runs", "unfinished imports"])
def test_full_queue_names_remedy(kind: str) -> None:
    assert "Wait" in LIMITS[kind].remedy and "cancel" in LIMITS[kind].remedy


async def test_provisioners_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each daemon is considered for every job of the organization. Disconnected daemons do not count, nor do those with
    a key.
    """
    monkeypatch.setattr(object_limits, "LIMITS", dict.fromkeys(LIMITS, ObjectLimit(2)))
    async with running_coderd(first_user=True) as world, AsyncExitStack() as open_ones:
        _, token = await world.member()
        mine: dict[str, Any] = {"token": token, "tags": {"scope": "user"}}
        for name in "ab":
            await open_ones.enter_async_context(connected_daemon(world, name=name, **mine))
        with pytest.raises(HttpError) as refused:
            async with connected_daemon(world, name="c", **mine):
                pass
        assert refused.value.status == 409
        async with connected_daemon(world, name="the owner's"):
            pass
        await open_ones.aclose()
        await _all_disconnected(world)
        async with connected_daemon(world, name="c", **mine):
            (here,) = (await world.get("/api/v2/organizations/default/provisionerdaemons")).json()
            assert here["name"] == "c"


async def _all_disconnected(world: World) -> None:
    with trio.fail_after(60):
        while (await world.get("/api/v2/organizations/default/provisionerdaemons")).json():
            await trio.sleep(0.02)


@pytest.mark.parametrize("forget", ["another that comes", "a week"])
async def test_provisioner_with_job_is_kept(monkeypatch: pytest.MonkeyPatch, forget: str) -> None:
    """A daemon keeps its name for reconnecting, however long it was away, and its job counts."""
    monkeypatch.setattr(object_limits, "LIMITS", {**LIMITS, "provisioners": ObjectLimit(1)})
    async with running_coderd(first_user=True) as world:
        version = await new_version(world)
        async with connected_daemon(world, name="busy", token=world.token) as daemon:
            job = await daemon.acquire()
        await _all_disconnected(world)
        if forget == "a week":
            assert await world.ctx.db.run(daemon_store.forget_daemons, world.ctx.clock.now()) == 0
        else:
            with pytest.raises(HttpError) as refused:
                async with connected_daemon(world, name="other", token=world.token):
                    pass
            assert refused.value.status == 409
        async with connected_daemon(world, name="busy", token=world.token) as daemon:
            await daemon.complete_import(job)
        done = (await world.get(f"/api/v2/templateversions/{version['id']}")).json()["job"]
        assert done["status"] == "succeeded"
        await _all_disconnected(world)
        async with connected_daemon(world, name="other", token=world.token):  # its job has ended
            pass


async def test_oversized_names_are_refused() -> None:
    """Random names, which the database cannot compress."""
    async with running_coderd(first_user=True) as world:
        name = secrets.token_hex(8000)
        for path, body in (
            ("/api/v2/users/me/secrets", {"name": name, "value": "v", "env_name": "A"}),
            ("/api/v2/users/me/secrets", {"name": "a", "value": "v", "env_name": f"A{name}"}),
            ("/api/v2/users/me/secrets", {"name": "a", "value": "v", "file_path": f"/{name}"}),
            ("/api/v2/users/me/keys/tokens", {"token_name": name}),
        ):
            response = await world.post(path, body)
            assert response.status_code == 400, (path, response.text)


async def test_object_sizes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither when created nor when changed."""
    limits = {kind: ObjectLimit(100, 5000 if item.max_bytes else 0) for kind, item in LIMITS.items()}
    monkeypatch.setattr(object_limits, "LIMITS", limits)
    async with running_coderd(first_user=True) as world:
        _, token = await world.member()
        secret = {"name": "a", "value": "v" * 2000, "env_name": "A"}
        assert (await world.post("/api/v2/users/me/secrets", secret, token=token)).status_code == 201
        more = {"format": "env", "content": f"B={'v' * 2000}\nC={'v' * 2000}"}
        head = "---\nname: s\ndescription: d\n---\n"
        skills = "/api/experimental/users/me/skills"
        assert (await world.post(skills, {"content": head}, token=token)).status_code == 201
        for method, path, body in (
            ("POST", "/api/v2/users/me/secrets", {"name": "b", "value": "v" * 6000, "env_name": "B"}),
            ("POST", "/api/v2/users/me/secrets/batch", more),
            ("PATCH", "/api/v2/users/me/secrets/a", {"value": "v" * 6000}),
            (
                "POST",
                "/api/v2/users/me/secrets",
                {"name": "b", "value": "v", "env_name": "B", "description": "d" * 6000},
            ),
            ("PATCH", "/api/v2/users/me/secrets/a", {"description": "d" * 6000}),
            ("POST", skills, {"content": head.replace("name: s", "name: t") + "x" * 6000}),
            ("PATCH", f"{skills}/s", {"content": head + "x" * 6000}),
        ):
            response = await world.request(method, path, json=body, token=token)
            assert response.status_code == 409, f"{method} {path}: {response.status_code} {response.text}"
        assert len((await world.get("/api/v2/users/me/secrets", token=token)).json()) == 1


async def _upload(world: World, name: str, token: str) -> httpx.Response:
    content, kind = tar({name: "x" * 3000}), {"Content-Type": "application/x-tar"}
    return await world.request("POST", "/api/v2/files", content=content, headers=kind, token=token)


@pytest.mark.parametrize(("most", "size"), [(FEW, 1 << 30), (1000, FEW * 10_240 + 1)])
async def test_uploads_that_nothing_was_made_of_make_room(
    monkeypatch: pytest.MonkeyPatch, most: int, size: int
) -> None:
    monkeypatch.setattr(files, "MAX_UNUSED", most)
    monkeypatch.setattr(files, "MAX_UNUSED_BYTES", size)
    async with running_coderd(first_user=True) as world, connected_daemon(world) as daemon:
        assert len(tar({"a": "x" * 3000})) == 10_240
        user_id, token = await world.member("author", ["template-admin"])
        responses = await _flood(FEW * 3, lambda n: _upload(world, str(n), token))
        statuses = sorted(response.status_code for response in responses)
        assert statuses == [201] * FEW + [409] * FEW * 2
        used = next(response.json()["hash"] for response in responses if response.status_code == 201)
        body = {"storage_method": "file", "provisioner": "echo", "tags": {}, "file_id": used}
        path = f"/api/v2/organizations/{world.organization_id}/templateversions"
        assert (await world.post(path, body, token=token)).status_code == 201
        await daemon.complete_import(await daemon.acquire(), start_resources=[resource("box")])
        assert (await _upload(world, "one more", token)).status_code == 201, "uploads in use do not count"
        assert (await _upload(world, "and more", token)).status_code == 409
        await _two_hours_later(world, UUID(user_id))
        assert (await _upload(world, "later", token)).status_code == 201
        assert (await world.get(f"/api/v2/files/{used}", token=token)).status_code == 200, "uploads in use stay"


async def _two_hours_later(world: World, user_id: UUID) -> None:
    statement = text("UPDATE files SET created_at = created_at - interval '2 hours' WHERE created_by = :user")

    async def write(tx: Any) -> None:
        await tx.execute(statement, {"user": user_id})

    await world.ctx.db.run(write)


async def test_inbox_drops_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_store, "MAX_INBOX_MESSAGES", FEW)
    async with running_coderd(first_user=True) as world:
        user_id, token = await world.member()
        await _send(world, token, "mine", 1)
        await _send(world, world.token, "n", FEW * 3)

        async def count(tx: Any) -> list[tuple[UUID, int]]:
            table = inbox_notifications
            statement = select(table.c.user_id, func.count()).group_by(table.c.user_id)
            return [(row[0], row[1]) for row in await tx.execute(statement)]

        async def delivered() -> bool:
            # The server's own loop may be delivering an older message.
            await deliver_due(world.ctx)
            return await world.ctx.db.read(message_store.next_due, METHODS) is None

        with trio.fail_after(60):
            while not await delivered():
                await trio.sleep(0.02)
        assert dict(await world.ctx.db.read(count)) == {UUID(world.user_id): FEW, UUID(user_id): 1}
        newest = (await world.get("/api/v2/notifications/inbox")).json()["notifications"]
        assert [item["title"] for item in newest] == [f"n{FEW * 3 - 1 - number}" for number in range(FEW)]


async def _send(world: World, token: str, title: str, count: int) -> None:
    for number in range(count):
        body = {"content": {"title": f"{title}{number}", "message": "x"}}
        sent = await world.post("/api/v2/notifications/custom", body, token=token)
        assert sent.status_code == 204, sent.text


async def test_own_messages_are_rate_limited() -> None:
    async with running_coderd(first_user=True, dangerous_disable_rate_limits=False) as world:
        body = {"content": {"title": "a", "message": "b"}}
        statuses = [(await world.post("/api/v2/notifications/custom", body)).status_code for _ in range(40)]
        assert 0 < statuses.count(429) < 20, statuses


async def test_shared_ports_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_shares, "MAX_SHARED_PORTS", FEW)
    async with workspace_world() as it:
        path = f"/api/v2/workspaces/{it.workspace['id']}/port-share"
        template = it.workspace["template_id"]
        await it.world.patch(f"/api/v2/templates/{template}", {"max_port_share_level": "public"})

        def share(number: int) -> Any:
            body = {"agent_name": "main", "port": 8000 + number, "share_level": "public", "protocol": "http"}
            return it.world.post(path, body)

        responses = await _flood(FEW * 3, share)
        assert sorted(response.status_code for response in responses) == [200] * FEW + [400] * FEW * 2
        kept = (await it.world.get(path)).json()["shares"]
        assert len(kept) == FEW
        monkeypatch.setattr(port_shares, "MAX_SHARED_PORTS", FEW - 2)
        assert (await share(kept[0]["port"] - 8000)).status_code == 200, "a shared port may be shared at another level"
        assert (await share(FEW * 4)).status_code == 400
