"""Every route and endpoint has a budget of requests, so that guessing a secret is limited by address.

Read from the server's tables: a server with a route without a budget does not start (`rate_budgets.budgets_of`), and a
route that does not use its budget fails here.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import trio
import trio.testing

from coder.api.proxies.proxy_token import TOKEN_HEADER
from coder.appproxy.http.errors import envelope_of
from coder.appproxy.http.rate_limits import RateLimits
from coder.appproxy.upgrades.raw_links import EndpointTable, Upgrade, UpgradeRequest, draw_on, serve_endpoint
from coder.base.clock import FakeClock
from coder.base.secret import Secret
from coder.coderd.app import ENDPOINTS
from coder.coderd.config.settings import ServerConfig
from coder.coderd.http.people import scim
from coder.coderd.http.server.declarations import route_of
from coder.coderd.services.people import scim as provisioning
from coder.domain.access.rate_budgets import API, GUESSES, Budget, budgets_of
from coder.domain.access.route_scopes import AGENT, APPLICATION, BY_SECRET, PROVISIONER, PROXY, STREAM, Scope, Unscoped
from coder.net.carried_stream import MODE, WAIT
from tests.kit.agents.scripted_agent import AgentWorld, workspace_world
from tests.kit.api.api_description import application
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspace_proxy import new_proxy

LIMIT = 3
"Requests a minute of every budget in this file."
UNLIMITED = {
    "/",
    "/<page:path>",
    "/install.sh",
    "/install.ps1",
    "/bin/<name>",
    "/docs",
    "/docs/",
    "/docs/<path:path>",
    "/healthz",
    "/livez",
    "/readyz",
    "/latency-check",
    "/derp/latency-check",
}
SECRETS_IN_PATHS = {"/api/v2/provisionerkeys/<secret>", "/derp/streams/<secret>"}
"Routes with a separate path for each guess."
WRONG = {
    "Authorization": "Bearer wrong",
    "Coder-Session-Token": "aaaaaaaaaa-bbbbbbbbbbbbbbbbbbbbbb",
    "Coder-External-Proxy-Token": "3f9c2b1e-0000-4000-8000-000000000000:wrong",
    "Coder-Provisioner-Daemon-Key": "wrong",
}
PSK = "Coder-Provisioner-Daemon-Psk"
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
}


_QUERIES = {"serve": "?provisioner=echo&version=1.0", "reinit": "?wait=true"}
"Queries with which the valid secret is answered immediately."
_FORMS = {"/oauth2/tokens": {"grant_type": "refresh_token", "refresh_token": "x"}, "/oauth2/revoke": {"token": "x"}}
"Forms sent with an application's secret."
_NOTHING = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True)
class Door:
    method: str
    rule: str
    websocket: bool
    public: bool
    "Whether a route requires no session."
    budgets: tuple[Budget, ...]
    scope: Scope | None

    @property
    def shows_secret(self) -> bool:
        """Whether it takes a random secret: that of a program, or a session that the route itself checks."""
        by_session = self.scope is Unscoped.OPTIONAL or not isinstance(self.scope, Unscoped | None)
        return self.scope in BY_SECRET or (self.public and by_session)

    def path(self, guess: int) -> str:
        """Return the path with values for its parameters; a secret differs with each guess."""
        place = f"guess-{guess}" if self.rule in SECRETS_IN_PATHS else _NOTHING
        path = re.sub(r"<[^>]*>|\{[^}]*\}", place, self.rule.replace("{organization}", "default"))
        return path + _QUERIES.get(path.rpartition("/")[2], "")


def doors() -> Iterator[Door]:
    app = application()
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        declared, budgets = route_of(view), app.config["CODER_BUDGETS"][rule.rule, rule.endpoint]
        public = declared is None or (isinstance(declared.scope, Unscoped) and declared.scope is not Unscoped.ANY_KEY)
        if declared is None or declared.websocket:
            scope = declared.scope if declared else None
            yield Door(
                "GET", rule.rule, rule.websocket, public or bool(declared and declared.asks_itself), budgets, scope
            )
        else:
            for method in declared.methods:
                yield Door(method, rule.rule, False, public or declared.asks_itself, budgets, declared.scope)
    table = EndpointTable()
    for module in ENDPOINTS:
        module.register(table)
    for endpoint in table.endpoints:
        yield Door("GET", endpoint.pattern, True, True, endpoint.budgets, endpoint.scope)


DOORS = list(doors())


def test_unlimited_routes_are_listed() -> None:
    assert {door.rule for door in DOORS if any(item.unlimited_because for item in door.budgets)} == UNLIMITED
    assert all(len(door.budgets) == 1 for door in DOORS if door.rule in UNLIMITED)


def test_route_must_declare_budget() -> None:
    assert budgets_of("/api/v2/users", ()) == (API,)
    with pytest.raises(LookupError):
        budgets_of("/scim/v2/Users", ())
    with pytest.raises(LookupError):
        EndpointTable().add("/raw", ENDPOINTS[0].serve_provisioner, scope=Unscoped.PUBLIC)


def test_secret_paths_share_budget() -> None:
    named = {door.rule for door in DOORS if re.search("<(secret|ident|token|code|key)>", door.rule) and door.public}
    assert named - {"/scim/v2/Users/<ident>"} == SECRETS_IN_PATHS
    for door in DOORS:
        assert door.rule not in SECRETS_IN_PATHS or all(item.whole_route for item in door.budgets)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    _limit_all(monkeypatch)


def _limit_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        RateLimits, "limit_of", lambda limits, item: 0 if item.unlimited_because or not limits.enabled else LIMIT
    )


SETTINGS: dict[str, Any] = {
    "dangerous_disable_rate_limits": False,
    "scim_auth_header": Secret("right"),
    "provisioner_daemon_psk": Secret("right"),
    "experiments": ("oauth2",),
    "swagger_enable": True,
}


async def _ask(world: World, door: Door, guess: int) -> int:
    return await _status(world, door, door.path(guess), WRONG)


async def _status(world: World, door: Door, path: str, view: dict[str, str]) -> int:
    world.client.cookies.clear()
    headers = view | (HANDSHAKE if door.websocket else {})
    form = _FORMS.get(door.rule) if door.scope is APPLICATION else None
    async with world.client.stream(door.method, path, headers=headers, data=form) as response:
        return response.status_code


async def _guesses(world: World, asked: list[Door]) -> list[str]:
    wrong = []
    for door in asked:
        statuses = [await _ask(world, door, guess) for guess in range(LIMIT + 1)]
        limited = door.rule not in UNLIMITED
        if (statuses[-1] == 429) != limited or 500 in statuses:
            wrong.append(f"{door.method} {door.rule}: {statuses}")
    return wrong


@pytest.mark.usefixtures("few")
async def test_guessing_is_bounded() -> None:
    """Routes with a session share one function: some of them here, all of them in the long form."""
    public = [door for door in DOORS if door.public]
    assert len(public) > 80
    asked = public + [door for door in DOORS if not door.public][::23]
    async with running_coderd(first_user=True, clock=FakeClock(), **SETTINGS) as world:
        wrong = await _guesses(world, asked)
    assert not wrong, "\n".join(wrong)


@pytest.mark.soak
@pytest.mark.usefixtures("few")
async def test_guessing_sessions_is_bounded() -> None:
    async with running_coderd(first_user=True, clock=FakeClock(), **SETTINGS) as world:
        wrong = await _guesses(world, [door for door in DOORS if not door.public])
    assert not wrong, "\n".join(wrong)


@pytest.mark.usefixtures("few")
async def test_valid_key_is_not_counted() -> None:
    async with running_coderd(first_user=True, clock=FakeClock(), **SETTINGS) as world:

        async def users(key: str) -> httpx.Response:
            return await world.get("/scim/v2/Users", headers={"Authorization": f"Bearer {key}"}, token="")

        assert {(await users("right")).status_code for _ in range(10)} == {200}
        assert [(await users("wrong")).status_code for _ in range(4)] == [401, 401, 401, 429]
        assert (await users("right")).status_code == 429  # otherwise a valid guess would be distinguishable


async def test_guessing_spares_valid_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients behind the same address, for every route that takes a random secret."""
    doors, wrong = [door for door in DOORS if door.shows_secret], []
    assert {door.scope for door in doors} > BY_SECRET
    async with workspace_world(clock=FakeClock(), **SETTINGS) as scene:
        world = scene.world
        right = await _secrets(scene)
        applications = await _applications(scene.world, sum(door.scope is APPLICATION for door in doors))
        _limit_all(monkeypatch)
        for door in doors:
            guesses = [await _ask(world, door, number) for number in range(LIMIT + 1)]
            path = door.path(0).replace("guess-0", world.ctx.services.relay.carried_streams.open("127.0.0.1")[0])
            view = right.get(door.scope, {"Coder-Session-Token": world.token})
            if door.scope is APPLICATION:
                client = applications.pop()
                path = path.replace(_NOTHING, client["client_id"])
                view = {"Authorization": _credential_of(client, by_secret=door.rule in _FORMS)}
            status = await _status(world, door, path, view)
            if guesses[-1] != 429 or status == 429 or (door.scope in BY_SECRET and status in {401, 403}):
                wrong.append(f"{door.method} {door.rule}: wrong {guesses}, right {status}")
        serve = next(door for door in doors if door.rule.endswith("/serve"))
        by_psk = [await _status(world, serve, serve.path(0), {PSK: "wrong"}) for _ in range(LIMIT + 1)]
        by_psk.append(await _status(world, serve, serve.path(0), {PSK: "right"}))
        assert by_psk == [403] * LIMIT + [429] * 2, "users choose it, so it may be guessed"
        assert await _status(world, serve, serve.path(0), right[PROVISIONER]) == 101
    assert not wrong, "\n".join(wrong)


async def _secrets(scene: AgentWorld) -> dict[Scope | None, dict[str, str]]:
    """Return the valid secret of each."""
    world = scene.world
    owner = {"Coder-Session-Token": world.token}
    key = (await world.post("/api/v2/organizations/default/provisionerkeys", {"name": "k"}, headers=owner)).json()
    return {
        AGENT: {"Coder-Session-Token": scene.token},
        PROXY: {TOKEN_HEADER: await new_proxy(world)},
        PROVISIONER: {"Coder-Provisioner-Daemon-Key": key["key"]},
        STREAM: {MODE: "poll", WAIT: "0.1"},
    }


async def _applications(world: World, count: int) -> list[dict[str, str]]:
    """Registered applications: each has a secret, and a token for its registration."""
    owner = {"Coder-Session-Token": world.token}
    settings = {"dynamic_client_registration_enabled": True}
    response = await world.request("PUT", "/api/v2/oauth2-provider/settings", json=settings, headers=owner)
    assert response.status_code == 200, response.text
    created = []
    for number in range(count):
        asked = {"client_name": f"a{number}", "redirect_uris": ["http://localhost:1/cb"]}
        created.append((await world.post("/oauth2/register", asked, token="")).json())
    return created


def _credential_of(client: dict[str, str], *, by_secret: bool) -> str:
    if not by_secret:
        return f"Bearer {client['registration_access_token']}"
    return "Basic " + base64.b64encode(f"{client['client_id']}:{client['client_secret']}".encode()).decode()


@pytest.mark.usefixtures("few")
async def test_waiting_polls_are_not_guesses() -> None:
    """The id of a carried stream authorizes its polls: waiting polls are no guesses, however many there are."""
    async with running_coderd(first_user=True, **SETTINGS) as world:
        streams = world.ctx.services.relay.carried_streams
        secrets = [streams.open("127.0.0.1")[0] for _ in range(2 * LIMIT)]
        statuses = []

        async def poll(secret: str) -> None:
            headers = {MODE: "poll", WAIT: "0.5"}
            statuses.append((await world.get(f"/derp/streams/{secret}", headers=headers, token="")).status_code)

        async with trio.open_nursery() as nursery:
            for secret in secrets:
                nursery.start_soon(poll, secret)
        assert statuses == [200] * len(secrets)


@pytest.mark.usefixtures("few")
async def test_cancelled_request_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, left = trio.open_memory_channel[None](99), trio.open_memory_channel[None](99)

    async def slowly(*_arguments: Any, **_named: Any) -> None:
        try:
            asked[0].send_nowait(None)
            await trio.sleep_forever()
        finally:
            left[0].send_nowait(None)

    async with running_coderd(first_user=True, clock=FakeClock(), **SETTINGS) as world:
        url, wrong = "/scim/v2/Users", {"Authorization": "Bearer wrong"}
        with monkeypatch.context() as patched, trio.fail_after(60):
            patched.setattr(scim, "let_in", lambda: None)
            patched.setattr(provisioning, "search", slowly)
            for _ in range(2 * LIMIT):
                async with trio.open_nursery() as nursery:
                    right = {"Authorization": "Bearer right"}
                    nursery.start_soon(partial(world.get, url, headers=right, token=""))
                    await asked[1].receive()
                    nursery.cancel_scope.cancel()
                await left[1].receive()
        statuses = [(await world.get(url, headers=wrong, token="")).status_code for _ in range(LIMIT + 1)]
        assert statuses == [401] * LIMIT + [429]


async def test_unanswered_link_is_not_counted() -> None:
    """However its handler ends."""
    ctx: Any = SimpleNamespace(config=ServerConfig(), clock=FakeClock())
    limits, ends = RateLimits(ctx), (trio.BrokenResourceError, trio.ClosedResourceError, None)

    async def ask(how: type[Exception] | None) -> None:
        async def handler(_ctx: Any, upgrade: Upgrade) -> None:
            await upgrade.count(None, guess=True)
            scope.cancel()
            if how is not None:
                raise how
            await trio.lowlevel.checkpoint()

        table = EndpointTable()
        table.add("/link", handler, scope=PROVISIONER, budgets=(replace(GUESSES, limit=LIMIT),))
        scene = table.find("/link")
        assert scene is not None
        stream = trio.testing.memory_stream_pair()[0]
        upgrade = Upgrade(UpgradeRequest("GET", "/link", {}, {}, "192.0.2.1"), {}, stream, b"")
        draw_on(limits, scene[0], upgrade)
        with trio.CancelScope() as scope:
            await serve_endpoint(None, scene[0], upgrade, stream, envelope_of)
        assert not upgrade.answered

    with trio.fail_after(60):  # otherwise a waiting request would wait for ever: no response is in progress
        for how in ends * LIMIT:
            await ask(how)


async def test_disabled_limits_count_nothing() -> None:
    settings = SETTINGS | {"dangerous_disable_rate_limits": True}
    async with running_coderd(first_user=True, clock=FakeClock(), **settings) as world:
        for _ in range(80):
            response = await world.get("/scim/v2/Users", headers={"Authorization": "Bearer wrong"}, token="")
            assert response.status_code == 401
