"""Requests answered without Quart: the same responses as with it, and no stale cache."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import h11
import pytest
import trio

from coder.appproxy.http.hypercorn_fixes import _expects_body
from coder.base.clock import FakeClock
from coder.coderd.http.server.fast_path import FastPath
from coder.coderd.store.engine.database import Tx, open_database
from coder.coderd.store.people import users as user_store
from tests.kit.server.server_in_process import World, running_coderd

ME = "/api/v2/users/me"
CHANGING = {"x-coder-request-id", "date", "set-cookie", "x-ratelimit-remaining"}


async def test_the_fast_path() -> None:
    async with running_coderd(first_user=True, dangerous_disable_rate_limits=False) as world:
        await _both_lanes_say_the_same(world)
        await _what_can_be_no_key_is_counted(world)
        await _changes_count_from_the_next_request_on(world)
        await _ended_keys_are_not_remembered(world)
        await _other_writers_are_heard(world)


async def _both_lanes_say_the_same(world: World) -> None:
    """Check equal responses on both lanes. A path with a trailing slash uses the slow one."""
    limited = (await world.post(f"{ME}/keys/tokens", {"scopes": ["template:read"]})).json()["key"]
    for token, status in ((world.token, 200), ("", 401), ("x-y", 401), (world.token + "x", 401), (limited, 404)):
        world.client.cookies.clear()
        fast, slow = await world.get(ME, token=token), await world.get(f"{ME}/", token=token)
        assert fast.status_code == slow.status_code == status, token
        assert fast.json() == slow.json()
        named = [
            sorted((name, value) for name, value in item.headers.items() if name not in CHANGING)
            for item in (fast, slow)
        ]
        assert named[0] == named[1]
        left = "x-ratelimit-remaining"
        assert (left in fast.headers) == (left in slow.headers)
    world.client.cookies.clear()
    by_cookie = {"Cookie": f"coder_session_token={world.token}"}
    assert (await world.get(ME, token="", headers=by_cookie)).status_code == 200
    bypass = {"X-Coder-Bypass-Ratelimit": "true"}
    assert (await world.get(ME, headers=bypass)).status_code == 200
    _, other = await world.member()
    for path in (ME, f"{ME}/"):
        assert (await world.get(path, token=other, headers=bypass)).status_code == 428


async def _what_can_be_no_key_is_counted(world: World) -> None:
    """Check that an invalid key is counted under the address, without an error: a database could not be queried for
    it."""
    world.client.cookies.clear()
    for path in (ME, f"{ME}/"):
        for sign in ("\0", "é", " "):
            odd = {"coder_session_token": f"{sign * 10}-{'b' * 22}"}
            answer = await world.get(path, token="", params=odd)
            assert (answer.status_code, answer.json()["detail"]) == (401, "API key is invalid."), path
            assert "x-ratelimit-remaining" in answer.headers


async def _answer(world: World, token: str) -> tuple[int, list[str], int]:
    """Return (status, site roles, visible templates) through the fast path."""
    world.client.cookies.clear()
    me = await world.get(ME, token=token)
    if me.status_code != 200:
        return me.status_code, [], 0
    return 200, sorted(role["name"] for role in me.json()["roles"]), len(me.json()["organization_ids"])


async def _changes_count_from_the_next_request_on(world: World) -> None:
    bob, token = await world.member("bob")
    user = f"/api/v2/users/{bob}"
    organization = f"/api/v2/organizations/{world.organization_id}/members/{bob}"
    steps: list[tuple[Callable[[], Awaitable[Any]], tuple[int, list[str], int]]] = [
        (lambda: world.put(f"{user}/roles", {"roles": ["auditor"]}), (200, ["auditor"], 1)),
        (lambda: world.put(f"{user}/roles", {"roles": []}), (200, [], 1)),
        (lambda: world.delete(organization), (200, [], 0)),
        (lambda: world.post(organization), (200, [], 1)),
        (lambda: world.put(f"{user}/status/suspend"), (401, [], 0)),
        (lambda: world.put(f"{user}/status/activate"), (200, [], 1)),
        (lambda: world.delete(user), (401, [], 0)),
    ]
    assert await _answer(world, token) == (200, [], 1)
    for number, (step, expected) in enumerate(steps):
        assert (await step()).status_code < 300, number
        assert await _answer(world, token) == expected, number


async def _ended_keys_are_not_remembered(world: World) -> None:
    _, first = await world.member("carl")
    second = (await world.post(f"{ME}/keys", token=first)).json()["key"]
    third = (await world.post(f"{ME}/keys", token=first)).json()["key"]
    for token in (first, second, third):
        assert (await _answer(world, token))[0] == 200
    assert (await world.delete(f"{ME}/keys/{second.partition('-')[0]}", token=first)).status_code == 204
    assert (await world.put(f"{ME}/keys/{third.partition('-')[0]}/expire", token=first)).status_code == 204
    assert [(await _answer(world, token))[0] for token in (first, second, third)] == [200, 401, 401]
    assert (await world.post("/api/v2/users/logout", token=first)).status_code == 200
    assert (await _answer(world, first))[0] == 401


async def _other_writers_are_heard(world: World) -> None:
    """Check writes of another replica, or of an administrator with psql: our code does not see the statement, but its
    notice arrives."""
    dora, token = await world.member("dora")
    db, known = world.ctx.db, world.ctx.services.auth_cache
    with trio.fail_after(60):
        while token.partition("-")[0] not in known._kept:
            assert await _answer(world, token) == (200, [], 1)

    async def write(tx: Tx) -> None:
        await user_store.update_user(tx, UUID(dora), rbac_roles=["auditor"])

    before = db.identity_generation
    async with open_database(world.ctx.config.postgres_url.reveal()) as other_database:
        await other_database.run(write)
    with trio.fail_after(60):
        while db.identity_generation == before:
            await trio.sleep(0.001)
    assert await _answer(world, token) == (200, ["auditor"], 1)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    (root / "assets/deep").mkdir(parents=True)
    (root / "index.html").write_text("<html></html>")
    (tmp_path / "secret.txt").write_text("outside")
    (root / "assets/link").symlink_to(tmp_path / "secret.txt")
    (root / "assets/a b.js").write_text("let a = 1")
    (root / "assets/deep/c.css").write_text("b {}")
    return root


async def test_public_lanes_answer_alike(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same requests with the fast path and without: status, headers and body are equal."""
    names = ("a b.js", "a%20b.js", "deep/c.css", "deep", "", "none.js", "link", "%2e%2e/%2e%2e/secret.txt", "a%00")
    paths = [
        "/healthz",
        "/healthz?x=1",
        "/livez",
        "/readyz",
        "/api/v2/buildinfo",
        "/api/v2/buildinfo?x=1",
        "/assets//a.js",
    ]
    requests: list[tuple[str, dict[str, str]]] = [(path, {}) for path in [*paths, *(f"/assets/{n}" for n in names)]]
    requests += [("/api/v2/buildinfo", {"X-Coder-Bypass-Ratelimit": "true"})]
    settings: dict[str, Any] = {"site_dir": str(site), "strict_transport_security": 5}
    async with running_coderd(first_user=True, dangerous_disable_rate_limits=False, **settings) as world:
        world.client.cookies.clear()
        tag = (await world.get("/assets/a b.js", token="")).headers["etag"]
        requests += [("/assets/a b.js", {"If-None-Match": tag}), ("/assets/a b.js", {"If-None-Match": "other"})]
        answers = []
        for fast in (True, False):
            if not fast:
                monkeypatch.setattr(FastPath, "_public", _nothing)
            for path, headers in requests:
                answer = await world.get(path, token=world.token if "X-Coder" in str(headers) else "", headers=headers)
                shown = sorted((name, value) for name, value in answer.headers.items() if name not in CHANGING)
                answers.append((answer.status_code, shown, answer.content))
        half = len(requests)
        for request, first, second in zip(requests, answers[:half], answers[half:], strict=True):
            assert first == second, request
        assert [status for status, _, _ in answers[:2]] == [200, 200] and answers[half - 2][0] == 304
        assert answers[7][2] == b"let a = 1" and all(b"outside" not in body for _, _, body in answers)


async def _nothing(_self: FastPath, _scope: Any) -> None:
    return None


async def test_outage_shows_in_fast_health(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_coderd(first_user=True) as world:
        assert ((await world.get("/healthz")).status_code, (await world.get("/healthz")).text) == (200, "OK")
        monkeypatch.setattr(world.ctx.db.availability, "away_for", lambda: 1e9)
        answer = await world.get("/healthz")
        assert (answer.status_code, answer.text) == (503, "the database does not answer")


async def test_public_requests_count_by_address() -> None:
    settings: dict[str, Any] = {"dangerous_disable_rate_limits": False, "api_rate_limit": 3}
    async with running_coderd(first_user=True, clock=FakeClock(), **settings) as world:
        statuses = [(await world.get("/api/v2/buildinfo", token="")).status_code for _ in range(6)]
        assert statuses[-1] == 429 and statuses == sorted(statuses)
        assert (await world.get("/healthz", token="")).status_code == 200


async def test_both_lanes_share_a_budget() -> None:
    settings: dict[str, Any] = {"dangerous_disable_rate_limits": False, "api_rate_limit": 4}
    async with running_coderd(first_user=True, clock=FakeClock(), **settings) as world:
        before = int((await world.get(ME)).headers["x-ratelimit-remaining"])
        assert [(await world.get(path)).status_code for path in (ME, f"{ME}/") * 3][:before] == [200] * before
        assert (await world.get(ME)).status_code == (await world.get(f"{ME}/")).status_code == 429
        statuses = [(await world.get(f"/api/v2/nothing/{number}")).status_code for number in range(5)]
        assert statuses == [404] * 4 + [429], "what is no route is one"


@pytest.mark.parametrize(
    ("headers", "more"),
    [
        ({}, False),
        ({"Content-Length": "0"}, False),
        ({"Content-Length": "1"}, True),
        ({"Transfer-Encoding": "chunked"}, True),
        ({"Upgrade": "websocket"}, True),
        ({"Upgrade": "websocket", "Content-Length": "0"}, True),
    ],
)
def test_bodyless_get_is_answered_after_head(headers: dict[str, str], more: bool) -> None:
    """Some clients declare that a GET has no body."""
    request = h11.Request(method="GET", target=ME, headers=[("Host", "x"), *headers.items()])
    assert _expects_body(request) is more


async def test_empty_body_counts_as_none() -> None:
    async with running_coderd(first_user=True) as world:
        for _ in range(3):  # on one connection
            for length in ("0", None):
                headers = {"Content-Length": length} if length else {}
                assert (await world.get(ME, headers=headers)).json()["username"] == "admin"
        answer = await world.client.request("GET", ME, content=b"12", headers={"Coder-Session-Token": world.token})
        assert answer.status_code == 200
