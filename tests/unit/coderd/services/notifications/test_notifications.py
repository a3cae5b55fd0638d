"""Notifications, with a real mail server and a real web server on loopback."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, cast
from uuid import UUID

import pytest
import trio
from sqlalchemy import text

from coder.base.clock import FakeClock
from coder.base.config import Inputs
from coder.base.secret import Secret
from coder.coderd.config.reading import server_config
from coder.coderd.services.notifications.mail_connection import MailConnection
from coder.coderd.services.notifications.notification_delivery import _connect, deliver_due
from coder.coderd.store.engine.pubsub import notify
from coder.coderd.store.notifications import inbox as inbox_store
from coder.coderd.store.notifications import notifications as store
from coder.coderd.store.notifications.notifications import MessagePayload, MessageRow
from coder.domain.notifications.notification_templates import CUSTOM, ONE_TIME_PASSCODE, TEMPLATES, TEST
from coder.domain.notifications.own_templates import OWN
from tests.kit.agents.scripted_agent import dial_link, eventually
from tests.kit.api.api_description import check_list
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import create, settled, workspace_world
from tests.kit.stand_ins.certificates import Authority
from tests.kit.stand_ins.notification_receivers import Mailbox, mail_server

_UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@contextmanager
def web_server(status: int = 200) -> Iterator[tuple[list[tuple[dict[str, str], Any]], str]]:
    seen: list[tuple[dict[str, str], Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((dict(self.headers), json.loads(body)))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield seen, f"http://127.0.0.1:{server.server_address[1]}/hook?key=1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def inbox(world: World, count: int, **rest: Any) -> list[dict[str, Any]]:
    """Return the inbox, once it has that many messages."""

    async def look() -> Any:
        result = (await world.get("/api/v2/notifications/inbox", **rest)).json()["notifications"]
        return result if len(result) >= count else None

    return cast("list[dict[str, Any]]", await eventually(look))


async def test_preferences_of_other_users() -> None:
    """Only site owners read and change them: user administrators manage users, not their preferences."""
    async with running_coderd(first_user=True) as world:
        user, own = await world.member("alice")
        path = f"/api/v2/users/{user}/notifications/preferences"
        body: dict[str, Any] = {"template_disabled_map": {}}
        for role, expected in (("user-admin", 403), ("auditor", 403), ("member", 404), ("owner", 200)):
            _, token = await world.member(f"a-{role}", [] if role == "member" else [role])
            got = (
                (await world.get(path, token=token)).status_code,
                (await world.put(path, body, token=token)).status_code,
            )
            assert got == (expected, expected), role
        assert (await world.get(path, token=own)).status_code == 200


async def test_refused_mail_is_retried() -> None:
    clock = FakeClock()
    with mail_server() as (box, address):
        box.refuse = 1
        async with running_coderd(
            first_user=True, clock=clock, email_smarthost=address, email_from="Coder <coder@example.com>"
        ) as world:
            assert (await world.post("/api/v2/notifications/test")).status_code == 204
            await inbox(world, 1)
            await eventually(lambda: _refused_once(world))
            assert box.mails == []
            clock.advance(timedelta(minutes=6).total_seconds())
            await deliver_due(world.ctx)
            await eventually(lambda: _arrived(box, 1))
        sender, receivers, mail = box.mails[0]
        assert (sender, receivers) == ("coder@example.com", ["a@b.c"])
        assert mail["Subject"] == "A test notification"
        text, page = (part.get_content() for part in mail.iter_parts())
        assert "Hi admin," in text and f"{world.ctx.access_url}/deployment/notifications?tab=settings" in text
        assert "<h1>A test notification</h1>" in page


@pytest.mark.parametrize(
    ("options", "method", "reached"),
    [
        ({}, "", False),
        ({}, "webhook", False),
        ({"email_smarthost": "127.0.0.1:9"}, "", True),
        ({"email_smarthost": "127.0.0.1:9"}, "webhook", False),
        ({"notifications_webhook_endpoint": "http://127.0.0.1:9/"}, "", False),
        ({"notifications_webhook_endpoint": "http://127.0.0.1:9/"}, "webhook", True),
    ],
    ids=str,
)
async def test_passcode_availability(options: dict[str, str], method: str, reached: bool) -> None:
    """The inbox alone is unavailable without a password."""
    async with running_coderd(first_user=True, **options) as world:  # type: ignore[arg-type]
        if method:
            path = f"/api/v2/notifications/templates/{ONE_TIME_PASSCODE}/method"
            assert (await world.put(path, {"method": method})).status_code == 200
        answer = await world.get("/api/v2/notifications/passcodes", token="")
        assert answer.json() == {"available": reached}


@pytest.mark.parametrize(
    ("options", "methods"),
    [
        ({}, ["inbox"]),
        ({"email_smarthost": "127.0.0.1:9"}, ["inbox", "smtp"]),
        ({"notifications_webhook_endpoint": "http://127.0.0.1:9", "notifications_inbox_enabled": False}, ["webhook"]),
    ],
)
async def test_delivery_methods_are_listed(options: dict[str, object], methods: list[str]) -> None:
    async with running_coderd(first_user=True, **options) as world:  # type: ignore[arg-type]
        assert (await world.get("/api/v2/notifications/delivery")).json() == {"methods": methods}


async def test_mail_tls_server_name(tmp_path: Path) -> None:
    """The server is dialled by address and presents a certificate for its name. It requires a client certificate."""
    authority = Authority(tmp_path)
    tls = authority.server_context("mail.example.com")
    tls.load_verify_locations(authority.file)
    tls.verify_mode = ssl.CERT_REQUIRED
    ours, key = authority.issue("coder.example.com")
    with mail_server(tls) as (box, address):
        env = {
            "CODER_EMAIL_SMARTHOST": address,
            "CODER_EMAIL_FROM": "coder@example.com",
            "CODER_EMAIL_TLS_STARTTLS": "true",
            "CODER_EMAIL_TLS_CACERTFILE": authority.file,
            "CODER_EMAIL_TLS_SERVERNAME": "mail.example.com",
            "CODER_EMAIL_TLS_CERTFILE": ours,
            "CODER_EMAIL_TLS_CERTKEYFILE": key,
        }
        config = server_config(Inputs(env=env), tmp_path)
        held, refused = MailConnection(), MailConnection()
        with contextlib.closing(_connect(config, held)) as server:
            assert server.noop()[0] == 250
        with pytest.raises(ssl.SSLCertVerificationError):
            _connect(replace(config, email_tls_server_name=""), refused)
        held.end()
        refused.end()
    assert box.mails == []


async def _refused_once(world: World) -> bool:
    """Compare with the reason: the retry is due after the end of the attempt, which comes after the mail server's
    reply.
    """
    return any(row[2].endswith(" refused: 451 later") for row in await world.ctx.db.read(_states))


async def _arrived(box: Mailbox, count: int) -> bool:
    return len(box.mails) >= count


async def test_webhook_envelope() -> None:
    with web_server() as (seen, url):
        settings: dict[str, Any] = {"notifications_method": "webhook", "notifications_webhook_endpoint": url}
        async with running_coderd(first_user=True, **settings) as world:
            user_id, _ = await world.member("maria")
            await inbox(world, 1)

            async def told() -> bool:
                return bool(seen)

            await eventually(told)
    headers, body = seen[0]
    assert headers["X-Message-Id"] == body["msg_id"]
    assert body["_version"] == "1.1" and body["payload"]["_version"] == "1.2"
    assert body["title"] == body["title_markdown"] == 'User account "maria" created'
    assert "**maria**" in body["body_markdown"] and "**" not in body["body"].split("\n")[0]
    assert body["payload"]["notification_name"] == "User account created"
    assert body["payload"]["targets"] == [user_id]
    assert body["payload"]["labels"]["created_account_name"] == "maria"


async def test_undeliverable_message_fails() -> None:
    clock = FakeClock()
    with web_server(500) as (seen, url):
        settings: dict[str, Any] = {"notifications_method": "webhook", "notifications_webhook_endpoint": url}
        settings |= {"notifications_max_send_attempts": 2, "notifications_inbox_enabled": False}
        async with running_coderd(first_user=True, clock=clock, **settings) as world:
            assert (await world.post("/api/v2/notifications/test")).status_code == 204

            async def states() -> list[tuple[int, str]]:
                return [(row[0], row[1]) for row in await world.ctx.db.read(_states)]

            async def tried_once() -> bool:
                # Compare with the reason: the attempt is counted at its begin, the retry is due after its end.
                return [row[2] for row in await world.ctx.db.read(_states)] == ["the webhook answered 500"]

            async def has_failed() -> bool:
                return await states() == [(2, "failed")]

            await eventually(tried_once)
            clock.advance(timedelta(minutes=6).total_seconds())
            await deliver_due(world.ctx)
            # The loop may have taken the message first. Time must not pass during an attempt, whose lease would expire
            # and cause another one.
            await eventually(has_failed)
            for _ in range(2):
                clock.advance(timedelta(minutes=6).total_seconds())
                await deliver_due(world.ctx)
    assert len(seen) == 2


async def test_unbuildable_mail_fails() -> None:
    """The email package raises AttributeError, IndexError and others for odd addresses."""
    clock = FakeClock()
    with mail_server() as (box, address):
        settings: dict[str, Any] = {"notifications_max_send_attempts": 2, "notifications_inbox_enabled": False}
        settings |= {"email_smarthost": address, "email_from": "a@[."}
        async with running_coderd(first_user=True, clock=clock, **settings) as world:
            assert (await world.post("/api/v2/notifications/test")).status_code == 204

            async def has_failed() -> bool:
                await deliver_due(world.ctx)
                ((attempts, status, reason),) = await world.ctx.db.read(_states)
                if (attempts, status) == (1, "pending") and reason:
                    # Not during an attempt of the server's own loop: its lease would expire.
                    clock.advance(timedelta(minutes=6).total_seconds())
                return (attempts, status) == (2, "failed")

            await eventually(has_failed)
        assert box.mails == []


async def _states(tx: Any) -> list[Any]:
    return list(await tx.execute(text("SELECT attempts, status, status_reason FROM notification_messages")))


async def test_expired_lease_is_ignored() -> None:
    """Each message has its own lease, so one message's time does not count against the next."""
    now, soon = datetime(2100, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, 0, 1, tzinfo=UTC)  # not due for any loop
    async with running_coderd(first_user=True, notifications_inbox_enabled=False) as world:
        db = world.ctx.db
        for number in range(2):
            row = MessageRow(UUID(int=number), TEST, UUID(world.user_id), "webhook", {}, (), 0, now)
            await db.run(store.insert_message, row)
        first = await db.run(store.lease, now, soon, {"webhook"})
        second = await db.run(store.lease, now, soon, {"webhook"})
        assert first and second and (first.id.int, second.id.int) == (0, 1)
        assert await db.run(store.lease, now, soon, {"webhook"}) is None
        again = await db.run(store.lease, soon, soon + timedelta(minutes=1), {"webhook"})
        assert again and (again.id, again.attempts) == (first.id, 2)
        await db.run(store.settle, first, "failed", "too late", soon)
        assert (await db.read(_states)).count((2, "pending", "")) == 1
        await db.run(store.settle, again, "sent", "", soon)
        assert (await db.read(_states)).count((2, "sent", "")) == 1


async def test_pages_with_equal_times() -> None:
    """Messages about several objects have the same time."""
    now, many = datetime(2100, 1, 1, tzinfo=UTC), inbox_store.PAGE + 2
    async with running_coderd(first_user=True) as world:
        payload: MessagePayload = {"title": "t", "body": "b", "icon": "", "actions": []}
        for number in range(many):
            row = MessageRow(UUID(int=number + 1), TEST, UUID(world.user_id), "inbox", payload, (), 0, now)
            await world.ctx.db.run(store.insert_inbox, row)
        path, result = "/api/v2/notifications/inbox", list[str]()
        while page := (await world.get(path, params={"starting_before": result[-1]} if result else {})).json()[
            "notifications"
        ]:
            result += [item["id"] for item in page]
    assert result == [str(UUID(int=number)) for number in range(many, 0, -1)]


async def test_paused_and_disabled_messages() -> None:
    async with running_coderd(first_user=True) as world:
        custom = {"content": {"title": "One", "message": "**1**"}}
        assert (await world.put("/api/v2/notifications/settings", {"notifier_paused": True})).status_code == 200
        assert (await world.put("/api/v2/notifications/settings", {"notifier_paused": True})).status_code == 304
        assert (await world.post("/api/v2/notifications/custom", custom)).status_code == 204
        assert await deliver_due(world.ctx) == []
        assert (await world.get("/api/v2/notifications/inbox")).json()["notifications"] == []
        async with await dial_link(world, "/api/v2/notifications/inbox/watch", token=world.token) as watch:
            assert (await world.put("/api/v2/notifications/settings", {"notifier_paused": False})).status_code == 200
            with trio.fail_after(60):
                told = json.loads(await watch.receive_message() or "")
        assert told["unread_count"] == 1 and told["notification"]["title"] == "One"
        assert (await inbox(world, 1))[0]["targets"] is None
        created = next(template for template in TEMPLATES if template.name == "User account created")
        mine = "/api/v2/users/me/notifications/preferences"
        assert (await world.get(mine)).json() is None
        chosen = await world.put(mine, {"template_disabled_map": {str(created.id): True}})
        assert [(item["id"], item["disabled"]) for item in chosen.json()] == [(str(created.id), True)]
        await world.member()
        assert (await world.post("/api/v2/notifications/test")).status_code == 204
        assert [item["title"] for item in await inbox(world, 2)] == ["A test notification", "One"]


async def test_watch_sends_every_match() -> None:
    watch, marked = "/api/v2/notifications/inbox/watch", "**Bold** [place](http://x.example)"
    async with running_coderd(first_user=True) as world:
        custom, test = str(CUSTOM), str(TEST)
        view: dict[str, list[str]] = {}

        async def follow(query: str, expected: int, task_status: trio.TaskStatus[None]) -> None:
            async with await dial_link(world, watch + query, token=world.token) as stream:
                task_status.started()
                told = [json.loads(await stream.receive_message() or "")["notification"] for _ in range(expected)]
            view[query] = [item["content"] for item in told if item["template_id"] == custom] or [told[0]["title"]]

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for query, expected in (
                    ("", 4),
                    (f"?templates={custom}", 3),
                    (f"?templates={custom}&format=plaintext", 3),
                    (f"?templates={custom}&format=markdown&read_status=unread", 3),
                    (f"?templates={test}", 1),
                ):
                    await nursery.start(follow, query, expected)
                me = (await world.get("/api/v2/users/me")).json()["id"]
                # as a replica of an older version notifies: the stream must go on
                await world.ctx.db.run(notify, "inbox", me)
                for text in (marked, "two", "three"):
                    sent = {"content": {"title": "T", "message": text}}
                    assert (await world.post("/api/v2/notifications/custom", sent)).status_code == 204
                assert (await world.post("/api/v2/notifications/test")).status_code == 204
        title = view.pop(f"?templates={test}")
        assert title == ["A test notification"]
        plain = view.pop(f"?templates={custom}&format=plaintext")
        assert sorted(plain) == sorted(["Bold place (http://x.example)", "two", "three"])
        assert all(sorted(texts) == sorted([marked, "two", "three"]) for texts in view.values()) and len(view) == 3
        for query in ("?read_status=zzz", "?templates=x", "?targets=x", "?x=1", "?starting_before=x"):
            refused = await world.get(watch + query, headers=_UPGRADE)
            assert refused.status_code == 400, (query, refused.text)


async def test_recipients_of_account_events() -> None:
    async with workspace_world() as (world, _):
        user_id, token = await world.member("maria")
        created = await create(world, "hers", token=token)
        await settled(world, created.json()["id"])
        path = f"/api/v2/workspaces/{created.json()['id']}"
        answer = await world.post(f"{path}/builds", {"transition": "delete"})
        assert answer.status_code == 201
        await settled(world, created.json()["id"])
        assert [item["title"] for item in await inbox(world, 1, token=token)] == ['Workspace "hers" deleted']
        assert (await world.put(f"/api/v2/users/{user_id}/status/suspend")).status_code == 200
        assert (await world.put(f"/api/v2/users/{user_id}/status/activate")).status_code == 200
        titles = {item["title"] for item in await inbox(world, 3)}
        assert titles == {f'User account "maria" {what}' for what in ("created", "suspended", "activated")}

        async def all_hers() -> bool:
            return len(await world.ctx.db.read(inbox_store.list_inbox, UUID(user_id))) == 3

        await eventually(all_hers)


async def test_template_settings_permissions() -> None:
    async with running_coderd(first_user=True) as world:
        result = (await world.get("/api/v2/notifications/templates/system")).json()
        check_list("NotificationTemplate", result)
        assert len(result) == len(TEMPLATES) - 1 - len(OWN)
        _, token = await world.member()
        path = f"/api/v2/notifications/templates/{result[0]['id']}/method"
        assert (await world.put(path, {"method": "webhook"}, token=token)).status_code == 404
        assert (await world.put(path, {"method": "pigeon"})).status_code == 400
        assert (await world.put(path, {"method": "webhook"})).status_code == 200
        assert (await world.put(path, {"method": "webhook"})).status_code == 304
        assert (await world.get("/api/v2/notifications/templates/system")).json()[0]["method"] == "webhook"
        for refused in ("settings", "test"):
            method = "PUT" if refused == "settings" else "POST"
            answer = await world.request(
                method, f"/api/v2/notifications/{refused}", token=token, json={"notifier_paused": True}
            )
            assert answer.status_code == 403


def test_mail_secrets_are_hidden() -> None:
    assert "hunter2" not in repr(Secret("hunter2"))


@pytest.mark.parametrize("name", ["", "Ana Santos"])
async def test_initiator_is_full_name(name: str) -> None:
    async with running_coderd(first_user=True) as world:
        me = (await world.get("/api/v2/users/me")).json()
        answer = await world.put("/api/v2/users/me/profile", {"username": me["username"], "name": name})
        assert answer.status_code == 200, answer.text
        await world.member("maria")
        [told] = await inbox(world, 1)
        assert f"by **{name}**" in told["content"]
