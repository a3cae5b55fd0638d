"""How tokens of OAuth2 applications end: what was opened with one ends with it, and the database forgets the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
import trio
from sqlalchemy import func, select

from coder.base.clock import FakeClock
from coder.base.secret import Secret
from coder.coderd.services.site.retention import purge_due
from coder.coderd.store.tables.oauth2 import (
    oauth2_provider_app_codes,
    oauth2_provider_app_tokens,
    oauth2_provider_app_used_refresh_tokens,
)
from coder.net.dial import DialPolicy
from coder.net.websocket import connect_websocket
from tests.unit.coderd.services.login.test_oauth2_provider import Client, client, refusal

INBOX = "/api/v2/notifications/inbox/watch"
PATIENCE = 10.0
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


async def _use_the_code_again(it: Client, tokens: Tokens) -> None:
    assert refusal(await it.exchange(tokens["code"])) == (400, "invalid_grant")


async def _use_a_refresh_token_again(it: Client, tokens: Tokens) -> None:
    assert refusal(await it.ask(grant_type="refresh_token", refresh_token=tokens["used"])) == (400, "invalid_grant")


async def _let_in_anew(it: Client, tokens: Tokens) -> None:
    assert (await it.exchange(await it.code())).status_code == 200


async def _lock_out(it: Client, tokens: Tokens) -> None:
    gone = await it.world.delete(f"/oauth2/tokens?client_id={it.app_id}", token=it.user_token)
    assert gone.status_code == 204


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
    _use_the_code_again,
    _use_a_refresh_token_again,
    _let_in_anew,
    _lock_out,
    _delete_app,
    _delete_secret,
)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
async def test_what_an_application_holds_open_ends_with_its_token(end: Callable[..., Awaitable[None]]) -> None:
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


async def test_a_secret_that_is_taken_away_ends_what_was_given_for_it_alone() -> None:
    async with client() as it:
        path = f"/api/v2/oauth2-provider/apps/{it.app_id}/secrets"
        (leaked,) = (await it.world.get(path)).json()
        old = (await it.exchange(await it.code())).json()
        _, bob = await it.world.member("bob")
        anew = Client(it.world, it.app_id, (await it.world.post(path)).json()["client_secret_full"], bob)
        kept = (await anew.exchange(await anew.code())).json()
        assert (await it.world.delete(f"{path}/{leaked['id']}")).status_code == 204
        assert await it.me(old["access_token"]) == 401
        again = await anew.ask(grant_type="refresh_token", refresh_token=old["refresh_token"])
        assert refusal(again) == (400, "invalid_grant")
        assert await it.me(kept["access_token"]) == 200
        renewed = await anew.ask(grant_type="refresh_token", refresh_token=kept["refresh_token"])
        assert renewed.status_code == 200
        assert (await it.world.delete(f"{path}/{leaked['id']}")).status_code == 404


async def test_a_refresh_token_lives_as_long_as_the_setting_says_and_is_forgotten_then() -> None:
    """However long its access token is over: keys that ended are purged after days, refresh tokens live a month."""
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
        assert await count() == [0, 1, 1], "a code is over after minutes"
        third = await it.ask(grant_type="refresh_token", refresh_token=second["refresh_token"])
        assert third.status_code == 200, third.text
        assert await count() == [0, 1, 2]
        clock.advance(3 * day)
        await purge_due(it.world.ctx)
        assert await count() == [0, 1, 0], "used tokens go when they would have ended"
        clock.advance(40 * day)
        await purge_due(it.world.ctx)
        assert await count() == [0, 0, 0]
