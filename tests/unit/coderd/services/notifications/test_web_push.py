"""Web Push: the encryption against the RFC's own example, and subscribing, receiving and deleting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import jwt
import pytest
import trio
from cryptography.hazmat.primitives.asymmetric import ec

from coder.base.secret import Secret
from coder.coderd.services.notifications import push_services, web_push
from coder.coderd.services.notifications.notification_delivery import deliver_due
from coder.coderd.store.site import site_settings
from coder.domain.network.public_addresses import is_public
from coder.domain.notifications import web_push as law
from tests.kit.server.postgres_server import fresh_database
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.stand_ins.notification_receivers import push_service

URL = "/api/v2/users/me/webpush/subscription"
KEYS = ("QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI=",)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:4700::1111", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fd00::1", False),
        ("fe80::1%eth0", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("2002:7f00:1::", False),
        ("::ffff:93.184.216.34", True),
    ],
)
def test_only_public_addresses(address: str, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
async def test_private_push_service_refused(host: str) -> None:
    """By default; the other tests permit their own push service on loopback."""
    with pytest.raises(push_services.PushRefused, match="not on the public Internet"):
        await push_services.PushServices(cast("Any", None)).post(f"https://{host}/x", [], b"")


async def test_subscription_lifecycle(tmp_path: Path) -> None:
    async with running_coderd(first_user=True) as world, push_service(world, tmp_path) as service:
        browser = service.browser()
        assert (await world.post(URL, browser.subscription())).status_code == 204
        assert json.loads(browser.read(service.taken[0]))["title"]
        _check_headers(world, service.url, service.taken[0].headers, await _site_key(world))

        assert (await world.post("/api/v2/users/me/webpush/test")).status_code == 204
        assert len(service.taken) == 2

        custom = {"content": {"title": "Tea", "message": "is **ready**"}}
        assert (await world.post("/api/v2/notifications/custom", custom)).status_code == 204
        await deliver_due(world.ctx)
        await service.wait_for(3)
        result = json.loads(browser.read(service.taken[2]))
        assert (result["title"], result["body"]) == ("Tea", "is ready")

        service.status = 503
        assert (await world.post("/api/v2/users/me/webpush/test")).status_code == 502
        service.status = 410
        assert (await world.post("/api/v2/users/me/webpush/test")).status_code == 204
        again = await world.request("DELETE", URL, json={"endpoint": browser.endpoint})
        assert again.status_code == 404, "the service reported it as gone"


def _check_headers(world: World, origin: str, headers: dict[str, str], public: str) -> None:
    assert headers["content-encoding"] == "aes128gcm"
    scheme, token, key = headers["authorization"].replace(",", "").split(" ")
    assert (scheme, key) == ("vapid", f"k={public}")
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), law.decode_key_untrusted(public, 65))
    claims = jwt.decode(token.removeprefix("t="), point, algorithms=["ES256"], audience=origin)
    assert claims["sub"].startswith(("mailto:", "https:"))


async def _site_key(world: World) -> str:
    return str((await world.get("/api/v2/buildinfo")).json()["webpush_public_key"])


async def test_invalid_subscriptions(tmp_path: Path) -> None:
    async with running_coderd(first_user=True) as world:
        good: dict[str, Any] = {"endpoint": "https://push.invalid/x"}
        async with push_service(world, tmp_path) as service:
            browser = service.browser()
            good = browser.subscription()
        for change, field in (
            ({"endpoint": "http://push.example/x"}, "endpoint"),
            ({"endpoint": "https://user@push.example/x"}, "endpoint"),
            ({"endpoint": "https://push.example:99999/"}, "endpoint"),
            ({"auth_key": "YQ"}, "auth_key"),
            ({"p256dh_key": law.base64url(bytes(65))}, "p256dh_key"),
            ({"p256dh_key": "%"}, "p256dh_key"),
        ):
            answer = await world.post(URL, {**good, **change})
            assert answer.status_code == 400, change
            assert [item["field"] for item in answer.json()["validations"]] == [field], change
        world.ctx.services.api.push_services.permits = is_public
        for host in ("127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1"):
            answer = await world.post(URL, {**good, "endpoint": f"https://{host}:1/x"})
            assert answer.status_code == 400
            assert "public Internet" in answer.json()["detail"]


async def test_subscription_permissions(tmp_path: Path) -> None:
    async with running_coderd(first_user=True) as world, push_service(world, tmp_path) as service:
        _, token = await world.member("alice")
        subscription = service.browser("alice").subscription()
        theirs = "/api/v2/users/alice/webpush/subscription"
        assert (await world.post(theirs, subscription, token="")).status_code == 401
        _, stranger = await world.member("bob")
        assert (await world.post(theirs, subscription, token=stranger)).status_code in {403, 404}
        assert (await world.post(theirs, subscription, token=token)).status_code == 204
        deleted = await world.request("DELETE", theirs, json={"endpoint": subscription["endpoint"]}, token=stranger)
        assert deleted.status_code in {403, 404}
        deleted = await world.request("DELETE", theirs, json={"endpoint": subscription["endpoint"]}, token=token)
        assert deleted.status_code == 204


async def test_suspended_user_gets_no_push(tmp_path: Path) -> None:
    async with running_coderd(first_user=True) as world, push_service(world, tmp_path) as service:

        async def told(user_id: str) -> int:
            return (await web_push.push(world.ctx, UUID(user_id), web_push.message_of({"title": "x"})))[0]

        for name, method, path in (
            ("alice", "PUT", "/api/v2/users/{}/status/suspend"),
            ("bob", "DELETE", "/api/v2/users/{}"),
        ):
            user_id, token = await world.member(name)
            theirs = f"/api/v2/users/{name}/webpush/subscription"
            created = await world.post(theirs, service.browser(name).subscription(), token=token)
            assert created.status_code == 204, created.text
            assert await told(user_id) == 1
            assert (await world.request(method, path.format(user_id))).status_code == 200
            assert await told(user_id) == 0, name
            if method == "PUT":
                assert (await world.put(f"/api/v2/users/{user_id}/status/activate")).status_code == 200
                assert await told(user_id) == 1


async def test_private_key_gets_encrypted() -> None:
    async with fresh_database() as url:
        plain = await _stored_keys(url, ())
        sealed = await _stored_keys(url, KEYS)
    assert plain["public"] == sealed["public"]
    assert not plain["private"].startswith("sealed:")
    assert sealed["private"].startswith("sealed:")


async def _stored_keys(url: str, keys: tuple[str, ...]) -> dict[str, str]:
    async with running_coderd(postgres_url=Secret(url), external_token_encryption_keys=keys) as world:
        stored = await world.ctx.db.read(site_settings.get_config, "vapid_keys")
    assert stored is not None
    result: dict[str, str] = json.loads(stored)
    return result


async def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch, autojump_clock: Any) -> None:
    now = most = 0

    async def post(*_: Any) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await trio.sleep(1)
        now -= 1
        return 201

    ctx: Any = None
    services = push_services.PushServices(ctx)
    monkeypatch.setattr(services, "_post", post)
    async with trio.open_nursery() as nursery:
        for _number in range(200):
            nursery.start_soon(services.post, "https://push.test/x", [], b"")
    assert most == push_services.MAX_CONNECTIONS
