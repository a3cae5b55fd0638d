"""External authentication: settings, the browser's flow, tokens refreshed and given to agents, the device flow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import httpx
import pytest
import trio

from coder.api.base.refusals import Refusal, Unauthenticated
from coder.base.clock import FakeClock
from coder.base.secret import Secret
from coder.coderd.services.login import external_auth, provider_tokens
from coder.coderd.services.login.oauth_exchange import ExchangeRefused, TokenGrant, challenge_of
from coder.coderd.store.login import external_auth as store
from tests.kit.agents.scripted_agent import eventually
from tests.kit.api.http_clients import http_client
from tests.kit.recordings.exchange_replay import server_settings
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.stand_ins.oidc_provider import IdentityProvider, identity_provider

ME = "/api/v2/external-auth"


@asynccontextmanager
async def deployment(**settings: Any) -> AsyncIterator[tuple[World, IdentityProvider]]:
    with identity_provider() as idp:
        config = {**server_settings("external_auth", idp.url), **settings}
        async with running_coderd(first_user=True, **config) as world:
            yield world, idp


async def link(world: World, provider: str = "fake", code: str = "good") -> httpx.Response:
    async with http_client(world.url) as browser:
        browser.cookies.set("coder_session_token", world.token)
        there = await browser.get(f"/external-auth/{provider}/callback?redirect=/workspaces")
        asked = parse_qs(urlsplit(there.headers["location"]).query)
        assert asked["code_challenge"] == [challenge_of(browser.cookies["oauth_pkce_verifier"])]
        return await browser.get(
            f"/external-auth/{provider}/callback", params={"code": code, "state": asked["state"][0]}
        )


async def authenticated(world: World, provider: str = "fake") -> bool:
    result: bool = (await world.get(f"{ME}/{provider}")).json()["authenticated"]
    return result


async def test_link_lifecycle() -> None:
    async with deployment() as (world, idp):
        assert not await authenticated(world)
        refused = await link(world, code="bad")
        assert refused.status_code == 500 and refused.json()["detail"].startswith('oauth2: "invalid_grant"')
        done = await link(world)
        assert done.status_code == 307 and done.headers["location"] == "/workspaces"
        assert idp.asked[-1]["code_verifier"]
        assert await authenticated(world)
        _, other = await world.member()
        assert (await world.get(f"{ME}/fake", token=other)).json()["authenticated"] is False
        (view,) = (await world.get(ME)).json()["links"]
        assert view["authenticated"] and "at-" not in str(view)
        idp.valid = False
        assert not await authenticated(world)
        assert (await world.delete(f"{ME}/fake")).json() == {"token_revoked": False}
        assert (await world.delete(f"{ME}/fake")).status_code == 404
        assert (await world.get(f"{ME}/unknown")).status_code == 404


INSTALLED = {
    "installations": [
        {"id": 5, "account": {"id": 7, "login": "octo-org"}, "html_url": "https://x/5"},
        {"id": 10**30, "account": {"id": 8, "login": "b"}},
    ]
}


@pytest.mark.parametrize(
    ("said", "installable", "logins"),
    [
        (INSTALLED, True, ["octo-org", "b"]),
        ({"installations": []}, True, []),
        (None, False, []),
        ([], False, []),
        ({"installations": [{"id": 5, "account": None}]}, False, []),
    ],
)
async def test_application_installations(said: Any, installable: bool, logins: list[str]) -> None:
    async with deployment() as (world, idp):
        provider = external_auth.find_provider(world.ctx, "fake")
        changed = replace(provider, app_installations_url=f"{idp.url}/api/v3/user/installations")
        others = [item for item in world.ctx.config.external_auth_providers if item.id != "fake"]
        world.ctx.config = replace(world.ctx.config, external_auth_providers=(*others, changed))
        idp.github = {"/user/installations": said}
        unlinked = (await world.get(f"{ME}/fake")).json()
        assert (unlinked["app_installable"], unlinked["installations"]) == (False, [])
        await link(world)
        view = (await world.get(f"{ME}/fake")).json()
        assert (view["authenticated"], view["app_installable"]) == (True, installable)
        assert [item["account"]["login"] for item in view["installations"]] == logins
        if logins:
            assert [(item["id"], item["configure_url"]) for item in view["installations"]] == [
                (5, "https://x/5"),
                (0, ""),
            ]
        idp.valid = False  # an invalid token is not used for further requests
        assert not (await world.get(f"{ME}/fake")).json()["app_installable"]


async def test_expired_token_is_refreshed_once() -> None:
    async with deployment() as (world, idp):
        clock = FakeClock(world.ctx.clock.now())
        world.ctx.clock = clock
        await link(world)
        asked = len(idp.asked)
        clock.advance(timedelta(hours=2).total_seconds())
        assert await authenticated(world) and await authenticated(world)
        assert [form["grant_type"] for form in idp.asked[asked:]] == ["refresh_token"]
        clock.advance(timedelta(hours=2).total_seconds())
        idp.refuse_refresh = True
        (view,) = (await world.get(ME)).json()["links"]
        assert not view["authenticated"] and "invalid_grant" in view["validate_error"]
        asked = len(idp.asked)
        assert not await authenticated(world)
        assert len(idp.asked) == asked


async def test_concurrent_refresh_uses_stored_token(monkeypatch: pytest.MonkeyPatch) -> None:
    async with deployment() as (world, _idp):
        clock = FakeClock(world.ctx.clock.now())
        world.ctx.clock = clock
        await link(world)
        clock.advance(timedelta(hours=2).total_seconds())
        owner = UUID((await world.get("/api/v2/users/me")).json()["id"])
        provider = external_auth.find_provider(world.ctx, "fake")
        row = await world.ctx.db.read(store.get_link, "fake", owner)
        assert row is not None
        newer = replace(row, access_token="at-new", refresh_token="rt-new", expires_at=clock.now() + timedelta(hours=1))
        answers = iter([ExchangeRefused("no", "used already", error="invalid_grant"), None])

        async def slow(*_: Any) -> TokenGrant:
            await world.ctx.db.run(store.put_link, newer)
            refused = next(answers)
            if refused:
                raise refused
            return TokenGrant(Secret("at-late"), Secret("rt-late"), None, {})

        monkeypatch.setattr(external_auth, "renew", slow)
        for _ in range(2):
            checked = await external_auth.check(world.ctx, provider, row)
            assert checked.valid and checked.token.reveal() == "at-new"
            kept = await world.ctx.db.read(store.get_link, "fake", owner)
            assert kept is not None and kept.refresh_token == "rt-new"


async def test_limited_key_cannot_access_links() -> None:
    async with deployment() as (world, _idp):
        body = {"scopes": ["workspace:read"], "lifetime": 3600 * 10**9}
        limited = (await world.post("/api/v2/users/me/keys/tokens", body)).json()["key"]
        for path in (ME, f"{ME}/fake", f"{ME}/dev/device"):
            assert (await world.get(path, token=limited)).status_code == 404
        assert (await world.delete(f"{ME}/fake", token=limited)).status_code == 404
        assert (await world.post(f"{ME}/dev/device", {"device_code": "x"}, token=limited)).status_code == 404


async def test_callback_requires_verifier() -> None:
    async with deployment() as (world, idp), http_client(world.url) as browser:
        browser.cookies.set("coder_session_token", world.token)
        there = await browser.get("/external-auth/fake/callback")
        state = parse_qs(urlsplit(there.headers["location"]).query)["state"][0]
        browser.cookies.delete("oauth_pkce_verifier")
        asked = len(idp.asked)
        refused = await browser.get("/external-auth/fake/callback", params={"code": "good", "state": state})
        assert refused.status_code == 401 and len(idp.asked) == asked


async def test_git_gets_token_or_url() -> None:
    async with deployment() as (world, _idp):
        provider = provider_tokens.provider(world.ctx, "", "https://git.example.com/x/y.git")
        assert provider is not None and provider.id == "fake"
        assert provider_tokens.provider(world.ctx, "", "https://elsewhere.example.com/x") is None
        owner = (await world.get("/api/v2/users/me")).json()["id"]
        before = await provider_tokens.for_agent(world.ctx, provider, owner)
        assert (before.access_token, before.url) == ("", f"{world.url}/external-auth/fake")
        await link(world)
        after = await provider_tokens.for_agent(world.ctx, provider, owner)
        assert after.access_token.startswith("at-") and after.username == after.access_token and after.url == ""
        tokens = await provider_tokens.external_tokens(world.ctx, owner, ["fake", "dev", "gone"])
        assert [ident for ident, _ in tokens] == ["fake"]


class Waiting:
    """An agent that waits for its owner's account; each poll checks its right."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.polls = 0
        self.is_gone = False
        self.heard: list[Any] = []

    async def require_right(self) -> None:
        self.polls += 1
        if self.is_gone:
            raise Unauthenticated("gone")

    async def wait(self) -> None:
        provider = external_auth.find_provider(self.world.ctx, "fake")
        owner = UUID((await self.world.get("/api/v2/users/me")).json()["id"])
        waiter = provider_tokens.Waiter(UUID(int=1), self.require_right)
        try:
            self.heard.append(await provider_tokens.for_agent(self.world.ctx, provider, owner, waiter))
        except Refusal as refusal:
            self.heard.append(refusal.kind)

    async def has_heard(self) -> bool:
        return bool(self.heard)

    async def wait_for_poll(self, times: int = 1) -> None:
        async def has_polled() -> bool:
            return self.polls >= times

        await eventually(has_polled)


async def test_waiting_agent_gets_new_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_tokens, "LINK_POLL_INTERVAL", 1000.0)
    async with deployment() as (world, _idp):
        agent = Waiting(world)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.wait)
            await agent.wait_for_poll()
            await link(world)
        assert agent.heard[0].access_token.startswith("at-")
        assert agent.polls < 5, "by the notice, not by polling"


async def test_waiting_agent_ignores_other_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_tokens, "LINK_POLL_INTERVAL", 1000.0)
    async with deployment() as (world, _idp):
        admin, mine, looks = world.token, Waiting(world), 0
        others = [((await world.member(name))[1], Waiting(world)) for name in ("first", "second")]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(mine.wait)
            await mine.wait_for_poll()
            for token, theirs in others:
                looks = mine.polls
                world.token = token
                nursery.start_soon(theirs.wait)
                await theirs.wait_for_poll()
                await link(world)
                await eventually(theirs.has_heard)
            assert mine.polls == looks, "more than the first poll, when the server began to listen"
            world.token = admin
            await link(world)
        assert mine.heard[0].access_token.startswith("at-")
        assert len(world.ctx.services.api.link_waits._next) == 0, "no call waits any more"


@pytest.mark.parametrize(("how", "heard"), [("right", "unauthenticated"), ("time", "too_slow"), ("stop", "")])
async def test_agent_wait_has_limits(how: str, heard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_tokens, "LINK_POLL_INTERVAL", 0.01)
    if how == "time":
        monkeypatch.setattr(provider_tokens, "MAX_WAIT", 0.1)
    async with deployment() as (world, _idp):
        agent = Waiting(world)
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(agent.wait)
                await agent.wait_for_poll()
                agent.is_gone = how == "right"
                if how == "stop":
                    world.ctx.stopping.set()
        assert [getattr(item, "access_token", item) for item in agent.heard] == [heard]


async def test_waiting_calls_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_tokens, "MAX_WAITING", 2)
    monkeypatch.setattr(provider_tokens, "LINK_POLL_INTERVAL", 3600.0)
    async with deployment() as (world, _idp):
        agent = Waiting(world)

        def waiting() -> dict[UUID, int]:
            return world.ctx.services.api.link_waits._waiting

        async def both_wait() -> bool:
            return list(waiting().values()) == [2]

        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.wait)
            nursery.start_soon(agent.wait)
            # two polls may be of one call, which polls again when the server begins to listen
            await eventually(both_wait)
            await agent.wait()
            assert agent.heard == ["conflict"]
            nursery.cancel_scope.cancel()
        assert waiting() == {}


async def test_invalid_link_is_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_tokens, "LINK_POLL_INTERVAL", 0.01)
    async with deployment() as (world, idp):
        await link(world)
        idp.valid = False
        asked: list[Any] = []
        check = external_auth.check

        async def counted(*args: Any) -> Any:
            asked.append(args)
            return await check(*args)

        monkeypatch.setattr(external_auth, "check", counted)
        agent = Waiting(world)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.wait)
            await agent.wait_for_poll(10)
            nursery.cancel_scope.cancel()
        assert len(asked) == 2, "once for the route, once while waiting"


async def test_the_device_flow() -> None:
    async with deployment() as (world, idp):
        idp.pending = 1
        begun = (await world.get(f"{ME}/dev/device")).json()
        assert begun["user_code"] == "ABCD-EFGH"
        body = {"device_code": begun["device_code"]}
        waiting = await world.post(f"{ME}/dev/device", body)
        assert (waiting.status_code, waiting.json()["detail"]) == (400, "authorization_pending")
        assert (await world.post(f"{ME}/dev/device", body)).status_code == 204
        assert await authenticated(world, "dev")
        assert (await world.get(f"{ME}/fake/device")).status_code == 400


async def test_callback_requires_own_state() -> None:
    async with deployment() as (world, _idp), http_client(world.url) as browser:
        path = "/external-auth/fake/callback?code=good&state=x"
        assert (await browser.get(path)).headers["location"].startswith("/login?message=")
        browser.cookies.set("coder_session_token", world.token)
        assert (await browser.get(path)).status_code == 401
        browser.cookies.set("oauth_state", "y")
        assert (await browser.get(path)).status_code == 401
        page = await browser.get("/external-auth/nothing/callback")  # the dashboard shows that the page does not exist
        assert page.headers["content-type"].startswith("text/html") and "set-cookie" not in page.headers
