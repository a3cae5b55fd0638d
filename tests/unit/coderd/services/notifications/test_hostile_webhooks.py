"""Webhook receivers that answer wrongly, without end, or never: one attempt ends, and its reason fits in a line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
import trio

from coder.coderd.config.settings import ServerConfig
from coder.coderd.services.notifications import notification_delivery as delivery
from coder.coderd.store.engine.availability import DatabaseAwayError
from coder.coderd.store.notifications import notifications as store
from coder.coderd.store.notifications.notifications import MessagePayload, MessageRow
from coder.coderd.store.people.users import UserRow
from coder.domain.notifications.notification_texts import BY_ID
from tests.kit.server.server_in_process import running_coderd
from tests.kit.stand_ins.hostile_http import BROKEN, ENDLESS, Answer, hostile_provider, plain

PAYLOAD: MessagePayload = {"title": "Hello", "body": "There.", "actions": [], "labels": {}}
MESSAGE = MessageRow(
    UUID(int=1), next(iter(BY_ID)), UUID(int=3), "webhook", PAYLOAD, (), 0, datetime(2026, 1, 1, tzinfo=UTC)
)
CARLA = cast("UserRow", SimpleNamespace(id=UUID(int=3), name="Carla", username="carla", email="carla@b.c"))
REPLIES: Mapping[str, Answer] = {
    "envelope with control characters": plain(b'{"message": "\\u001b[2J\\ud800", "detail": "\\u0000"}', "400 x"),
    "envelope of long texts": plain(b'{"message": "' + b"m" * 500_000 + b'"}', "418 x"),
    "envelope of objects": plain(b'{"message": {}, "validations": [[], {"field": {}}]}', "422 x"),
}


async def post(url: str) -> str:
    """Return the reason of a failed attempt, empty for a delivered message."""
    values: dict[str, Any] = {"notifications_webhook_endpoint": url}
    try:
        await delivery._post(ServerConfig(**values), MESSAGE, CARLA)
    except delivery.UndeliveredError as error:
        return error.message
    return ""


@pytest.mark.parametrize("every", [pytest.param(4, id="sample"), pytest.param(1, id="all", marks=pytest.mark.soak)])
async def test_hostile_answers_end_an_attempt(every: int) -> None:
    with hostile_provider() as receiver:
        for name, answer in list({**BROKEN, **REPLIES}.items())[::every]:
            receiver.answers["/hook"] = answer
            reason = await post(receiver.url + "/hook?a=b")
            assert len(reason) <= 500 and reason.isprintable(), (name, reason)
        assert set(receiver.served) == {"/hook"}, "no redirect is followed"


@pytest.mark.parametrize(
    "every", [pytest.param(len(ENDLESS), id="sample"), pytest.param(1, id="all", marks=pytest.mark.soak)]
)
async def test_endless_answers_end_with_their_attempt(every: int) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with hostile_provider() as receiver:
        for answer in list(ENDLESS.values())[::every]:
            receiver.answers["/hook"] = answer
            with trio.move_on_after(0.5):
                await post(receiver.url + "/hook")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_outage_after_delivery_sends_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    with hostile_provider() as receiver:
        receiver.answers["/hook"] = plain(b"")
        settings: dict[str, Any] = {
            "notifications_method": "webhook",
            "notifications_webhook_endpoint": receiver.url + "/hook",
        }
        async with running_coderd(first_user=True, **settings) as world:
            run, settled = world.ctx.db.run, trio.Event()
            outages = [DatabaseAwayError(ConnectionResetError()), DatabaseAwayError(OSError(), in_doubt=True)]

            async def interrupted(fn: Any, *args: Any, **kwargs: Any) -> Any:
                is_awaited = fn is store.settle and args[0].method == "webhook"
                if is_awaited and outages:
                    raise outages.pop()
                result = await run(fn, *args, **kwargs)
                if is_awaited:
                    settled.set()
                return result

            monkeypatch.setattr(world.ctx.db, "run", interrupted)
            assert (await world.post("/api/v2/notifications/test")).status_code == 204
            await settled.wait()
            assert not outages and receiver.served == ["/hook"]
            assert await world.ctx.db.read(store.next_due, ["webhook"]) is None
