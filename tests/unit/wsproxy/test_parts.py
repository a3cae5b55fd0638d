"""Parts of a workspace proxy: settings, registration, keys, transported rejections."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast, get_args
from uuid import UUID, uuid4

import pytest
import trio
import trio.testing

from coder.api.proxies.proxies import (
    CryptoKey,
    IssueTokenRequest,
    MayStayRequest,
    RegisterWorkspaceProxyRequest,
    RegisterWorkspaceProxyResponse,
)
from coder.api.site.build_info import BuildInfoResponse
from coder.appproxy.apps import app_pages as pages
from coder.appproxy.apps.app_refusals import AppLocation, AppRefusedError, Reason, from_fields, to_fields
from coder.appproxy.apps.app_tickets import (
    TICKET_FEATURE,
    Ticket,
    read_ticket_untrusted,
    terminal_request,
    ticket_claims,
)
from coder.appproxy.apps.app_visitor import Visitor
from coder.base.config import Inputs
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.coderd.config.settings import ServerConfig
from coder.domain.access.credentials import Credentials
from coder.domain.foundation.signed_tokens import SigningKey, TokenRefused, sign
from coder.domain.foundation.zero import ZERO_TIME
from coder.net.errors import HttpError, NetError
from coder.wsproxy.authorizer import MAX_CONCURRENT_CHECKS, RemoteAppAuthorizer
from coder.wsproxy.config import ProxyConfig, proxy_config
from coder.wsproxy.keys import KeyRing
from coder.wsproxy.primary import TIMEOUT
from coder.wsproxy.registration import INTERVAL_SECONDS, MAX_SILENCE, Registration
from coder.wsproxy.server import _close, with_address

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GIVEN = {
    "access-url": "https://sydney.test",
    "primary-access-url": "https://coder.test/",
    "proxy-session-token": f"{uuid4()}:secret",
}

# ---- settings


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"primary-access-url": ""}, "--primary-access-url: it is missing"),
        ({"primary-access-url": "coder.test"}, "is not a URL"),
        ({"proxy-session-token": ""}, "--proxy-session-token: it is missing"),
        ({"proxy-session-token": "s3cret"}, "not a token of a workspace proxy"),
        ({"derp-only": "true", "derp-server-enable": "false"}, "leaves nothing to do"),
        ({"wildcard-access-url": "apps.test"}, "--wildcard-access-url"),
    ],
)
def test_invalid_settings(changed: dict[str, str], words: str) -> None:
    with pytest.raises(CoderError) as refused:
        proxy_config(Inputs(flags={**GIVEN, **changed}))
    assert words in refused.value.message
    assert "s3cret" not in str(refused.value)


def test_default_access_url() -> None:
    config = proxy_config(Inputs(flags={**GIVEN, "access-url": ""}))
    assert with_address(config, ["http://127.0.0.1:81", "https://[::1]:82"]).server.access_url == "http://127.0.0.1:81"
    given = proxy_config(Inputs(flags=GIVEN))
    assert with_address(given, ["http://127.0.0.1:81"]) is given


def test_settings_of_server_options() -> None:
    env = {"CODER_WILDCARD_ACCESS_URL": "*.apps.test", "CODER_TLS_ADDRESS": ":444", "CODER_TRACE_ENABLE": "true"}
    config = proxy_config(Inputs(flags=GIVEN, env=env))
    assert (config.primary_access_url, config.server.wildcard_access_url) == ("https://coder.test", "*.apps.test")
    assert config.server.tls_address == ":444"
    assert not config.server.trace, "settings without effect are not passed on"
    assert config.token.reveal() not in repr(config)


# ---- registration


class FakePrimary:
    """Server with queued answers; the last one repeats."""

    url = "https://coder.test"

    def __init__(self, *answers: Exception | None, is_proxy: bool = False) -> None:
        self.answers = list(answers)
        self.is_proxy = is_proxy
        self.said: list[tuple[float, RegisterWorkspaceProxyRequest]] = []

    async def build_info(self) -> BuildInfoResponse:
        return cast(
            "BuildInfoResponse", type("Info", (), {"workspace_proxy": self.is_proxy, "dashboard_url": "https://up"})
        )

    async def register(self, body: RegisterWorkspaceProxyRequest) -> RegisterWorkspaceProxyResponse:
        self.said.append((trio.current_time(), body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is not None:
            raise answer
        return RegisterWorkspaceProxyResponse("", 10_001, {}, False, [])


def _registration(primary: FakePrimary) -> Registration:
    server = ServerConfig(access_url="https://sydney.test")
    return Registration(cast("Any", primary), ProxyConfig(primary.url, Secret("x"), server))


AWAY = NetError("unreachable", "cannot connect")


async def test_unreachable_server_is_retried(autojump_clock: Any) -> None:
    primary = FakePrimary(AWAY, AWAY, AWAY, None, AWAY)
    registration = _registration(primary)
    assert "has just started" in registration.unhealthy_reason()
    with trio.move_on_after(20):
        await registration.keep(lambda _told: None)
    times = [at for at, _ in primary.said]
    assert len(times) == 4
    assert times[1] - times[0] < times[2] - times[1] < times[3] - times[2] < INTERVAL_SECONDS
    assert (registration.problem, registration.unhealthy_reason()) == ("", "")
    assert primary.said[0][1].access_url == "https://sydney.test"
    with trio.move_on_after(MAX_SILENCE + INTERVAL_SECONDS):
        await registration.keep(lambda _told: None)
    assert "cannot connect" in registration.unhealthy_reason()


async def test_registers_periodically_and_on_doubt(autojump_clock: Any) -> None:
    primary = FakePrimary(None)
    registration = _registration(primary)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(registration.keep, lambda _told: None)
        await trio.sleep(INTERVAL_SECONDS * 2 + 1)
        assert len(primary.said) == 3
        registration.check_now()
        await trio.sleep(0)
        await trio.testing.wait_all_tasks_blocked()
        assert len(primary.said) == 4
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("answer", "is_proxy", "code"),
    [
        (HttpError(401, "Invalid external proxy token"), False, "proxy_token"),
        (
            HttpError(400, "No.", validations=[{"field": "access_url", "detail": "no"}]),
            False,
            "proxy_refused",
        ),
        (None, True, "primary_is_proxy"),
    ],
)
async def test_final_errors_end_wait(answer: Exception | None, is_proxy: bool, code: str) -> None:
    with pytest.raises(CoderError) as ended:
        await _registration(FakePrimary(answer, is_proxy=is_proxy)).keep(lambda _told: None)
    assert ended.value.code == code
    assert ended.value.hint


# ---- keys


def _key(number: int, deletes_at: datetime = ZERO_TIME) -> CryptoKey:
    return CryptoKey(TICKET_FEATURE, bytes([number] * 64).hex(), deletes_at, number, NOW)


def _ticket(number: int, agent_id: UUID) -> str:
    ticket = Ticket(terminal_request(agent_id), uuid4(), agent_id, "", uuid4())
    return sign(SigningKey(str(number), bytes([number] * 64)), ticket_claims(ticket, NOW + timedelta(minutes=1)))


async def test_unknown_key_triggers_fetch(autojump_clock: Any) -> None:
    keys, fetches, agent_id = [_key(1)], list[str](), uuid4()

    async def fetch(feature: str) -> list[CryptoKey]:
        fetches.append(feature)
        return list(keys)

    ring = KeyRing(fetch, lambda: NOW)
    assert (await read_ticket_untrusted(ring, NOW, _ticket(1, agent_id)))[0].agent_id == agent_id
    await read_ticket_untrusted(ring, NOW, _ticket(1, agent_id))
    assert len(fetches) == 1
    keys[:] = [_key(2), _key(1, NOW + timedelta(hours=1))]
    for _ in range(50):  # visitors can invent key names
        with pytest.raises(TokenRefused):
            await read_ticket_untrusted(ring, NOW, _ticket(2, agent_id))
    assert len(fetches) == 1
    await trio.sleep(5)
    for number in (2, 1):
        await read_ticket_untrusted(ring, NOW, _ticket(number, agent_id))
    assert len(fetches) == 2


async def test_waits_for_first_keys(autojump_clock: Any) -> None:
    async def fetch(_feature: str) -> list[CryptoKey]:
        await trio.sleep(1)
        return [_key(1)]

    ring, agent_id = KeyRing(fetch, lambda: NOW), uuid4()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ring.keep_fresh)
        await trio.sleep(0.1)
        assert (await read_ticket_untrusted(ring, NOW, _ticket(1, agent_id)))[0].agent_id == agent_id
        nursery.cancel_scope.cancel()


async def test_expired_key_decrypts_nothing(autojump_clock: Any) -> None:
    async def fetch(_feature: str) -> list[CryptoKey]:
        return [_key(2), _key(1, NOW - timedelta(seconds=1))]

    with pytest.raises(TokenRefused):
        await read_ticket_untrusted(KeyRing(fetch, lambda: NOW), NOW, _ticket(1, uuid4()))


async def test_no_keys_rejects_token(autojump_clock: Any) -> None:
    async def fetch(_feature: str) -> list[CryptoKey]:
        raise AWAY

    with pytest.raises(TokenRefused):
        await read_ticket_untrusted(KeyRing(fetch, lambda: NOW), NOW, _ticket(1, uuid4()))


# ---- refusals


@pytest.mark.parametrize("reason", get_args(Reason))
@pytest.mark.parametrize(
    "spot", [None, AppLocation("admin", "dev"), AppLocation("admin", "dev", "main", "https://x.test")]
)
def test_rejection_survives_transport(reason: Reason, spot: AppLocation | None) -> None:
    refused = AppRefusedError(reason, "stopped", spot)
    arrived = from_fields(dict(to_fields(refused)))
    assert arrived is not None
    assert pages.refused(arrived, "https://coder.test") == pages.refused(refused, "https://coder.test")


def test_unknown_fields_are_no_rejection() -> None:
    assert from_fields({}) is from_fields({"reason": "because"}) is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AWAY, "primary_away"),
        (HttpError(401, "You are signed out"), "sign_in"),
        (HttpError(303, "unexpected status 303"), "sign_in"),
        (HttpError(401, "Invalid external proxy token"), "primary_away"),
        (HttpError(403, "", is_enveloped=True), "not_found"),
        (HttpError(404, "", is_enveloped=True), "not_found"),
        (HttpError(404, "a proxy in between"), "primary_away"),
        (HttpError(500, ""), "primary_away"),
        (HttpError(502, "", validations=[{"field": "reason", "detail": "agent_offline"}]), "agent_offline"),
    ],
)
def test_server_answer_becomes_reason(error: CoderError, reason: str) -> None:
    doubts: list[int] = []
    registration = type("Registration", (), {"check_now": lambda self: doubts.append(1)})()
    world = type("World", (), {"settings": None, "stopping": None, "pool": None, "registration": registration})()
    world.clock = type("Clock", (), {"now": staticmethod(lambda: NOW)})
    assert RemoteAppAuthorizer(world)._refusal(error).reason == reason
    assert bool(doubts) == ("proxy token" in error.message)


# ---- open streams


class SlowPrimary:
    """Answer each request after a second: only ids in `stay` have permission. Requests for silent ids never return."""

    def __init__(self, stay: set[UUID], silent: set[UUID]) -> None:
        self.stay, self.silent = stay, silent
        self.most = self.now = self.asked = 0

    async def may_stay(self, body: MayStayRequest) -> bool:
        self.asked += 1
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await self._answer(body.user_id)
        finally:
            self.now -= 1

    async def issue_ticket(self, body: IssueTokenRequest) -> str:
        user_id = UUID(body.session_token)
        if await self.may_stay(MayStayRequest(body.app_request, user_id, user_id, user_id)):
            raise HttpError(502, "", validations=[{"field": "reason", "detail": "agent_offline"}])
        raise HttpError(401, "You are signed out")

    async def _answer(self, user_id: UUID) -> bool:
        if user_id in self.silent:
            await trio.sleep(TIMEOUT)
            raise NetError("timeout", "no answer")
        await trio.sleep(1)
        return user_id in self.stay


@asynccontextmanager
async def streams(
    authorizer: RemoteAppAuthorizer, people: list[UUID], *, by_ticket: bool = True
) -> AsyncIterator[dict[UUID, trio.CancelScope]]:
    """Open one stream per ticket, in this order, in separate tasks: a cancelled one must not end the test."""
    scopes: dict[UUID, trio.CancelScope] = {}

    async def hold(user_id: UUID, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        visitor = Visitor(Credentials("" if by_ticket else str(user_id)), user_id)
        ticket = Ticket(terminal_request(UUID(int=1)), UUID(int=2), UUID(int=1), "", user_id)
        with authorizer.watched(visitor, ticket) as scopes[user_id]:
            task_status.started()
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        for user_id in people:
            await nursery.start(hold, user_id)
        yield scopes
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("by_ticket", [True, False])
async def test_concurrent_checks_stop_without_server(by_ticket: bool, autojump_clock: Any) -> None:
    people = [uuid4() for _ in range(40)]
    primary = SlowPrimary(set(people[::2]), silent=set(people))
    authorizer = RemoteAppAuthorizer(_world_of(primary))
    async with streams(authorizer, people, by_ticket=by_ticket) as scopes:
        await authorizer.judge()
        assert trio.current_time() <= TIMEOUT * 1.5, "one silence is enough"
        assert not any(scope.cancel_called for scope in scopes.values())
        primary.silent, began = set(), trio.current_time()
        await authorizer.judge()
        assert trio.current_time() - began <= len(people) / MAX_CONCURRENT_CHECKS
        assert {person for person in people if scopes[person].cancel_called} == set(people) - primary.stay
        assert primary.most <= MAX_CONCURRENT_CHECKS


async def test_failed_check_moves_last(autojump_clock: Any) -> None:
    """The order holds for any number of streams and any task order."""
    people = [uuid4() for _ in range(4 * MAX_CONCURRENT_CHECKS)]
    silent = people[: 2 * MAX_CONCURRENT_CHECKS - 1]
    authorizer = RemoteAppAuthorizer(_world_of(SlowPrimary(set(), silent=set(silent))))
    for _ in range(10):
        async with streams(authorizer, people) as scopes:
            for _ in range(2):
                await authorizer.judge()
            assert {person for person in people if scopes[person].cancel_called} == set(people) - set(silent)


def _world_of(primary: Any) -> Any:
    registration = type("Registration", (), {"check_now": lambda self: None})()
    clock = type("Clock", (), {"now": staticmethod(lambda: NOW)})
    settings = type("Settings", (), {"own_url": "https://sydney.test", "wildcard": ""})()
    parts = {"settings": settings, "stopping": None, "pool": None, "registration": registration, "clock": clock}
    return type("World", (), {**parts, "primary": primary})()


@pytest.mark.parametrize("problem", ["", "the server did not answer"])
async def test_silent_primary_delays_no_end(problem: str, autojump_clock: trio.testing.MockClock) -> None:
    """A service manager that stops the proxy waits less than a second, whatever the server does."""

    async def nothing() -> None:
        return

    registration = SimpleNamespace(problem=problem, deregister_proxy=trio.sleep_forever)
    world: Any = SimpleNamespace(stopping=trio.Event(), registration=registration, relay=None)
    silent: Any = SimpleNamespace(report=trio.sleep_forever, drained=nothing)
    began = trio.current_time()
    await _close(world, silent, silent)
    assert trio.current_time() - began < 1
