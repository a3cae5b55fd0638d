"""Visitors without a valid ticket: their queries are bounded, per minute by address, by concurrency for known users.

For both authorizers, the server's and a workspace proxy's, and for each query of `AppAuthorizer`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import httpx
import pytest
import trio
import trio.testing

from coder.api.base.refusals import RateLimited
from coder.appproxy.apps import app_tickets
from coder.appproxy.apps.app_refusals import AppRefusedError
from coder.appproxy.apps.app_tickets import Ticket
from coder.appproxy.apps.app_visitor import Visitor
from coder.appproxy.apps.authorizer import AppAuthorizer, KnownVisitors
from coder.appproxy.http import listener
from coder.appproxy.http.rate_limits import RateLimits
from coder.appproxy.http.request_bounds import MAX_PARAMETERS
from coder.base.clock import FakeClock
from coder.coderd.config.settings import ServerConfig
from coder.coderd.services.apps import app_access
from coder.coderd.services.apps.app_usage import LOG_INTERVAL, AppUsage
from coder.coderd.services.apps.local_authorizer import LocalAppAuthorizer
from coder.coderd.store.audit import connection_log
from coder.domain.access.credentials import Credentials
from coder.domain.access.policy import NIL
from coder.domain.apps.app_addresses import AppRequest
from coder.net.errors import HttpError
from coder.wsproxy import authorizer as remote
from coder.wsproxy.authorizer import RemoteAppAuthorizer
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspace_proxy import new_proxy, running_proxy

LIMIT = 3
"Admissions a minute, in this file."
NOW = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = AppRequest("subdomain", "/", "admin", "dev", "main", "web", "")
USER_ID = UUID(int=7)
SETTINGS: dict[str, Any] = {"dangerous_disable_rate_limits": False, "wildcard_access_url": "*.apps.test"}
APP_HOST = {"Host": "web--dev--admin.apps.test"}
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "eA=="}

Ask = Callable[[AppAuthorizer, Credentials], Awaitable[object]]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RateLimits, "limit_of", lambda limits, _one: LIMIT if limits.enabled else 0)


def _ticket(user_id: UUID = NIL) -> Ticket:
    return Ticket(REQUEST, UUID(int=8), UUID(int=9), "http://localhost:1", user_id, "simple")


QUESTIONS: dict[str, Ask] = {
    "admit": lambda item, shown: item.admit(REQUEST, shown, ""),
    "look_again": lambda item, shown: item.recheck_access(_ticket(), Visitor(shown)),
    "cors_of": lambda item, shown: item.cors_of(REQUEST, shown.remote_ip),
}


async def _answers(authorizer: AppAuthorizer, make_query: Ask, *received: Credentials) -> list[str]:
    """Return the result of each query."""
    ends = []
    for item in received:
        try:
            await make_query(authorizer, item)
            ends.append("answered")
        except (AppRefusedError, RateLimited) as error:
            ends.append("limited" if isinstance(error, RateLimited) else "refused")
    return ends


def _from(number: int, token: str = "") -> Credentials:
    return Credentials(token, False, f"192.0.2.{number}")


@pytest.mark.parametrize("make_query", QUESTIONS.values(), ids=QUESTIONS)
async def test_address_queries_are_limited(make_query: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    find = app_access._find_workspace

    async def count_query(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        return await find(*arguments)

    monkeypatch.setattr(app_access, "_find_workspace", count_query)
    async with running_coderd(first_user=True, clock=FakeClock(), **SETTINGS) as world:
        authorizer = LocalAppAuthorizer(world.ctx)
        ends = await _answers(authorizer, make_query, *[_from(1, "wrong")] * 2, *[_from(1)] * 4)
        assert "limited" not in ends[:LIMIT] and ends[LIMIT:] == ["limited"] * 3 and asked == LIMIT
        assert "limited" not in await _answers(authorizer, make_query, _from(2))


class FakePrimary:
    """Admits tokens that begin with `good`, and visitors without one."""

    url = "https://coder.test"

    def __init__(self) -> None:
        self.asked = 0

    async def issue_ticket(self, said: Any) -> str:
        self.asked += 1
        if said.session_token and not said.session_token.startswith("good"):
            raise HttpError(401, "You are signed out")
        return str(said.session_token)


def _remote(monkeypatch: pytest.MonkeyPatch) -> tuple[RemoteAppAuthorizer, FakePrimary]:
    async def read(_keys: Any, _now: Any, token: str) -> tuple[Ticket, float]:
        return _ticket(USER_ID if token else NIL), (NOW + timedelta(minutes=1)).timestamp()

    monkeypatch.setattr(app_tickets, "read_ticket_untrusted", read)
    config, clock, primary = ServerConfig(), FakeClock(), FakePrimary()
    limited: Any = SimpleNamespace(config=config, clock=clock)
    settings = SimpleNamespace(own_url="", wildcard="")
    world: Any = SimpleNamespace(
        settings=settings, stopping=None, pool=None, clock=clock, keys=None, limits=RateLimits(limited), primary=primary
    )
    return RemoteAppAuthorizer(world), primary


@pytest.mark.parametrize("make_query", QUESTIONS.values(), ids=QUESTIONS)
async def test_proxy_address_queries_are_limited(make_query: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger must not use up the capacity of the proxy's other visitors."""
    authorizer, primary = _remote(monkeypatch)
    ends = await _answers(
        authorizer, make_query, *[_from(1, f"wrong-{number}") for number in range(2)], *[_from(1)] * 4
    )
    assert "limited" not in ends[:LIMIT] and ends[LIMIT:] == ["limited"] * 3 and primary.asked == LIMIT
    assert "limited" not in await _answers(authorizer, make_query, _from(2), _from(3, "wrong"))


async def test_proxy_ignores_known_users(monkeypatch: pytest.MonkeyPatch) -> None:
    authorizer, _ = _remote(monkeypatch)
    admit, people = QUESTIONS["admit"], [_from(1, f"good-{number}") for number in range(2)]
    assert await _answers(authorizer, admit, *people) == ["answered"] * 2
    assert await _answers(authorizer, admit, *[_from(1)] * 3) == ["answered", "limited", "limited"]
    for item in people:
        assert await _answers(authorizer, admit, *[item] * 4 * LIMIT) == ["answered"] * 4 * LIMIT
    assert await _answers(authorizer, admit, _from(1, "good-9")) == ["limited"], "the visitor is still unknown"


async def test_token_program_is_never_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_coderd(first_user=True, clock=FakeClock(), **SETTINGS) as world:
        authorizer = LocalAppAuthorizer(world.ctx)
        for make_query in (
            QUESTIONS["admit"],
            lambda item, received: item.recheck_access(_ticket(USER_ID), Visitor(received)),
        ):
            assert "limited" not in await _answers(authorizer, make_query, *[_from(1, world.token)] * 4 * LIMIT)
        assert authorizer._known._turns == {}


async def test_visitor_concurrency_is_limited(autojump_clock: trio.testing.MockClock) -> None:
    known, now, maximum, order = KnownVisitors(2), 0, 0, []

    async def make_query(number: int) -> None:
        nonlocal now, maximum
        async with known.turn("ana"):
            now += 1
            maximum = max(maximum, now)
            await trio.sleep(1)
            now -= 1
            order.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(make_query, number)
            await trio.lowlevel.checkpoint()
        async with known.turn("ben"):
            assert order == [], "no request waits for the second visitor"
        with trio.move_on_after(0.1):
            async with known.turn("ana"):
                pass
    assert maximum == 2 and sorted(order) == list(range(6)) and trio.current_time() >= 3
    async with known.turn("ana"), known.turn("ana"):
        with pytest.raises(RateLimited):
            async with known.turn("ana"):
                pass
    assert known._turns == {}


async def test_proxy_token_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    authorizer, _ = _remote(monkeypatch)
    monkeypatch.setattr(remote, "MAX_KNOWN_TOKENS", 2)
    admit = QUESTIONS["admit"]
    await _answers(authorizer, admit, *[_from(number, f"good-{number}") for number in range(5)])
    assert list(authorizer._known) == [remote._digest("good-3"), remote._digest("good-4")]
    monkeypatch.setattr(FakePrimary, "issue_ticket", _refused)
    assert await _answers(authorizer, admit, _from(4, "good-4")) == ["refused"]
    assert list(authorizer._known) == [remote._digest("good-3")]


async def _refused(*_arguments: Any) -> str:
    raise HttpError(401, "You are signed out")


async def test_open_streams_are_always_rechecked(monkeypatch: pytest.MonkeyPatch) -> None:
    authorizer, primary = _remote(monkeypatch)
    with authorizer.watched(Visitor(_from(1, "good")), _ticket(USER_ID)) as scope:
        for _ in range(2 * LIMIT):
            await authorizer.judge()
        assert primary.asked == 2 * LIMIT and not scope.cancel_called


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/@admin/dev/apps/web/", {}),
        ("GET", "/@admin/dev.main/apps/web/x", {"Coder-Session-Token": "aaaaaaaaaa-bbbbbbbbbbbbbbbbbbbbbb"}),
        ("GET", "/", APP_HOST),
        ("POST", "/", {**APP_HOST, "Cookie": "coder_signed_app_token=wrong"}),
        ("GET", "/", {**APP_HOST, **UPGRADE}),
        ("OPTIONS", "/", {**APP_HOST, "Origin": "https://other.test", "Access-Control-Request-Method": "PUT"}),
    ],
)
async def test_limited_stranger_blocks_no_others(method: str, path: str, headers: dict[str, str]) -> None:
    async with running_coderd(first_user=True, clock=FakeClock(), **SETTINGS) as world:

        async def make_query(token: str = "") -> httpx.Response:
            world.client.cookies.clear()
            mine = {"Coder-Session-Token": token} if token else {}
            return await world.request(method, path, headers={**headers, **mine}, token="")

        statuses = [(await make_query()).status_code for _ in range(LIMIT)]
        assert len(set(statuses)) == 1 and statuses[0] != 429
        refused = await make_query()
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 0
        assert "rate limited" in refused.text
        if method != "OPTIONS":  # browsers send no credentials there
            assert (await make_query(world.token)).status_code in {400, 404}


@pytest.mark.parametrize("headers", [{}, APP_HOST, APP_HOST | UPGRADE])
async def test_too_many_parameters_match_no_application(
    headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsing it would block other requests. A refusal, at a proxy as well, does not delay connections."""
    monkeypatch.setattr(listener, "SHUTDOWN_GRACE", 3600.0)
    query = "?" + "&" * MAX_PARAMETERS
    with trio.fail_after(60):
        async with running_coderd(first_user=True, **SETTINGS) as world:
            token = await new_proxy(world)
            async with running_proxy(world, token) as proxy:
                for url in (world.url, proxy.urls[0]):
                    answer = await world.client.get(f"{url}/@admin/dev/apps/web/{query}", headers=headers)
                    if url != world.url and "Upgrade" in headers:  # a proxy has no such WebSocket
                        assert answer.status_code == 403
                        continue
                    assert answer.status_code == 414, url
                    assert answer.json()["message"] == "The address has too many parameters."


async def test_visitor_is_logged_hourly(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[Any] = []

    async def put(_tx: Any, row: Any) -> None:
        lines.append(row)

    monkeypatch.setattr(connection_log, "put_connection", put)
    async with running_coderd(first_user=True, clock=FakeClock()) as world:
        usage = AppUsage(world.ctx)
        for number in range(20):
            await _visit(usage, f"2001:db8::{number:x}", f"browser {number}")
        assert [row.user_agent for row in lines] == ["browser 0"]
        await _visit(usage, "2001:db8:0:1::1", "browser 0")
        assert len(lines) == 2
        _advance(world, LOG_INTERVAL)
        await _visit(usage, "2001:db8::1", "browser 1")
        assert len(lines) == 3


async def _visit(usage: AppUsage, ip: str, user_agent: str) -> None:
    workspace = SimpleNamespace(id=USER_ID, organization_id=USER_ID, owner_id=USER_ID, name="dev")
    visited: Any = SimpleNamespace(request=REQUEST, view=SimpleNamespace(workspace=workspace), agent=None)
    await usage.log_request(visited, None, ip, user_agent, 200)


def _advance(world: World, by: timedelta) -> None:
    clock = world.ctx.clock
    assert isinstance(clock, FakeClock)
    clock.advance(by.total_seconds())
