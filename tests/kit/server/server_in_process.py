"""A real server for tests: one Postgres a session, a fresh database a test, the application on a loopback port.

    async with running_coderd() as world:
        await world.first_user()
        me = await world.get("/api/v2/users/me")

Each `running_coderd` gets a copy of a migrated template database (tests/kit/server/postgres_server.py), so tests never
see each other's rows. With default settings and the system's clock, the template already holds the first user, logged
in. Do not use `autojump_clock` with it: waiting for the database is real time.

A run of the suite starts many hundred servers, so each is kept cheap: its database is ready, passwords are hashed by
the cheapest argon2id, all servers share one table of routes, compiled statements and evaluation processes, all clients
one TLS context.

Loops that a clock drives do not run (`ALL_LOOPS`), so nothing happens between two lines of a test because time has
passed. A test runs one iteration by hand, or starts a loop: `ctx.nursery.start_soon(reaper.run, ctx)`. Changes arrive
by notification only (`SECOND_LOOKS`), so no test needs a short timeout to prove that a notification was sent.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx
from argon2 import PasswordHasher
from quart import Blueprint

from coder.base.clock import Clock, FakeClock
from coder.base.secret import Secret
from coder.coderd import app, composition
from coder.coderd.app import RunningServer, open_server
from coder.coderd.config.settings import ServerConfig
from coder.coderd.http.blueprints import BLUEPRINTS
from coder.coderd.http.server import application
from coder.coderd.http.server.quart_fixes import Application
from coder.coderd.loops import last_use, notifications
from coder.coderd.rpc_endpoints import absent_clients, coordination, provisioners, proxies
from coder.coderd.services.access import passwords, recheck_rights, session_revocation
from coder.coderd.services.foundation import batches, documentation
from coder.coderd.services.foundation.context import Context
from coder.coderd.services.login import provider_tokens
from coder.coderd.services.provisioning import job_logs, job_queue
from coder.coderd.services.workspaces import prebuild_claims
from coder.coderd.store.engine import listening
from tests.kit.api.http_clients import http_client
from tests.kit.server.postgres_server import fresh_database, shared_postgres
from tests.kit.server.shared_sandbox import SharedSandbox

FIRST_USER: dict[str, Any] = {
    "email": "a@b.c",
    "username": "admin",
    "name": "",
    "password": "SomeSecure123!",
    "trial": False,
}
_LATER = frozenset({"experiments", "workspace_prebuilds_reconciliation_interval"})
"""Settings that say nothing about a server's first start, its first user and the first login."""

vars(composition)["Sandbox"] = SharedSandbox
passwords._hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)

ALL_LOOPS = app.LOOPS
"""What a server starts where no test runs it."""
app.LOOPS = (notifications.run, last_use.run)
"""Those that do what was told a moment ago, or when the server stops. The others would take a turn whenever the machine
is slow enough: end jobs, make workspaces, replace keys and purge rows under a test's hands."""

SECOND_LOOKS = (
    (absent_clients, "CHECK_INTERVAL"),
    (recheck_rights, "CHECK_INTERVAL"),
    (coordination, "CHECK_INTERVAL"),
    (job_logs, "_BACKUP_POLL"),
    (job_queue, "BACKUP_POLL"),
    (provider_tokens, "LINK_POLL_INTERVAL"),
    (provisioners, "CHECK_INTERVAL"),
    (proxies, "CHECK_INTERVAL"),
    (session_revocation, "CHECK_INTERVAL"),
    (listening, "PING_EVERY"),
    (prebuild_claims, "CHECK_INTERVAL"),
)
"""Seconds until something is looked at though nobody told of it, because notices may be lost."""
for _module, _name in SECOND_LOOKS:
    assert hasattr(_module, _name), f"{_module.__name__} has no {_name}"
    setattr(_module, _name, 3600.0)

batches.SPACING = 0.0
"""Seconds between transactions that write agents' reports. Tests send one after the other, and each would wait."""


@dataclass(frozen=True)
class Filled:
    """The content of a template database: its first user, and the result of what filled it."""

    token: str
    user_id: str
    organization_id: str
    extra: Mapping[str, Any]


_filled: dict[str, Filled] = {}
"""By name of the template database; filled on first use in this process."""
_used = 0
"""Number of their copies that a server has now."""


def _no_folder(name: str) -> Path:
    """In place of a folder at home, where the programs lie that whoever runs the suite has built."""
    return Path(tempfile.gettempdir()) / f"coder-test-{os.getpid()}-{name}"


@functools.cache
def _application_of(limited: bool) -> Application:
    """With all routes and nothing behind them: registering four hundred takes longer than all else of a start."""
    config = ServerConfig(dangerous_disable_rate_limits=not limited)
    return _make_application(SimpleNamespace(config=config), BLUEPRINTS)  # type: ignore[arg-type]


def _make_another(ctx: Context, blueprints: Iterable[Blueprint], links: Sequence[Any] = ()) -> Application:
    """Shares routes with the first application of this process, and nothing of a server."""
    made = copy.copy(_application_of(not ctx.config.dangerous_disable_rate_limits))
    made.config = copy.copy(made.config)
    made.config["CODER_CONTEXT"], made.config["CODER_LINKS"] = ctx, links
    made.background_tasks = set()
    return made


_make_application = application.make_application
application.make_application = _make_another
documentation.ARCHIVE = Path("/nonexistent/documentation.zip")
"""Links in recorded answers do not depend on a developer's `scripts/docs --pack`."""


@dataclass
class World:
    """One running server and a client that remembers who is logged in."""

    server: RunningServer
    client: httpx.AsyncClient
    token: str = ""
    user_id: str = ""
    organization_id: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def ctx(self) -> Context:
        return self.server.context

    async def request(
        self, method: str, path: str, *, token: str | None = None, headers: Mapping[str, str] = {}, **rest: Any
    ) -> httpx.Response:
        """Any request; `token` other than the logged-in user's, "" for signed out."""
        use = self.token if token is None else token
        sent = {**({"Coder-Session-Token": use} if use else {}), **headers}
        return await self.client.request(method, path, headers=sent, **rest)

    async def get(self, path: str, **rest: Any) -> httpx.Response:
        return await self.request("GET", path, **rest)

    async def post(self, path: str, json: Any = None, **rest: Any) -> httpx.Response:
        return await self.request("POST", path, json=json, **rest)

    async def put(self, path: str, json: Any = None, **rest: Any) -> httpx.Response:
        return await self.request("PUT", path, json=json, **rest)

    async def patch(self, path: str, json: Any = None, **rest: Any) -> httpx.Response:
        return await self.request("PATCH", path, json=json, **rest)

    async def delete(self, path: str, **rest: Any) -> httpx.Response:
        return await self.request("DELETE", path, **rest)

    async def left_an_entry(self, answer: httpx.Response) -> bool:
        """Does the audit log speak of the request that was answered so?"""
        found = await self.get("/api/v2/audit", params={"q": f"request_id:{answer.headers['x-coder-request-id']}"})
        return bool(found.json()["audit_logs"])

    async def first_user(self) -> str:
        """Creates `admin` and logs in; returns the session token."""
        created = await self.post("/api/v2/users/first", FIRST_USER)
        assert created.status_code == 201, created.text
        self.user_id = created.json()["user_id"]
        self.organization_id = created.json()["organization_id"]
        self.token = await self.login(FIRST_USER["email"], FIRST_USER["password"])
        return self.token

    async def login(self, email: str, password: str) -> str:
        answer = await self.post("/api/v2/users/login", {"email": email, "password": password}, token="")
        assert answer.status_code == 201, answer.text
        self.client.cookies.clear()
        return str(answer.json()["session_token"])

    async def member(
        self, name: str = "", roles: list[str] | None = None, organizations: list[str] | None = None
    ) -> tuple[str, str]:
        """A new user, in the default organization unless others are named: (user id, session token)."""
        name = name or f"member{uuid4().hex[:8]}"
        body: dict[str, Any] = {
            "email": f"{name}@b.c",
            "username": name,
            "password": FIRST_USER["password"],
            "organization_ids": organizations or [self.organization_id],
        }
        created = await self.post("/api/v2/users", body)
        assert created.status_code == 201, created.text
        user_id = created.json()["id"]
        if roles:
            changed = await self.put(f"/api/v2/users/{user_id}/roles", {"roles": roles})
            assert changed.status_code == 200, changed.text
        return user_id, await self.login(body["email"], FIRST_USER["password"])


@dataclass(frozen=True)
class Filling:
    """What many tests create on their server first: created once, and copied with the database."""

    name: str
    "Of the template database."
    fill: Callable[[World], Awaitable[Mapping[str, Any]]]
    "Returns the values of `World.extra`."


async def _no_more(_world: World) -> Mapping[str, Any]:
    return {}


FIRST_USER_ONLY = Filling("first_user", _no_more)


@contextlib.asynccontextmanager
async def running_coderd(
    *,
    first_user: bool = False,
    clock: Clock | None = None,
    provisioner: Any = None,
    filling: Filling = FIRST_USER_ONLY,
    **settings: Any,
) -> AsyncIterator[World]:
    """A server on a free loopback port; `settings` are attributes of `ServerConfig`.

    The server has the filling only with a first user and default settings; otherwise `extra` is empty.

    Where requests are counted, the clock stands unless a test brings one: what a minute allows begins anew at its
    end, wherever in a test that falls.
    """
    if clock is None and not settings.get("dangerous_disable_rate_limits", True):
        clock = FakeClock(datetime.now(UTC))
    plain = clock is None and provisioner is None and settings.keys() <= _LATER
    database = _filled_database(filling) if first_user and plain else _empty_database()
    async with database as (url, known), _server(url, clock, provisioner, settings) as world:
        if known is not None:
            world.token, world.user_id, world.organization_id = known.token, known.user_id, known.organization_id
            world.extra.update(copy.deepcopy(dict(known.extra)))
            # As after a login: the client's connection is open, and the server's first tasks for requests are there.
            assert (await world.get("/api/v2/buildinfo")).status_code == 200
        elif first_user:
            await world.first_user()
        yield world


@contextlib.asynccontextmanager
async def running_on(url: str, *, clock: Clock | None = None, **settings: Any) -> AsyncIterator[World]:
    """A server on a database that the test has filled."""
    async with _server(url, clock, None, settings) as world:
        yield world


@contextlib.asynccontextmanager
async def _empty_database() -> AsyncIterator[tuple[str, Filled | None]]:
    async with fresh_database() as url:
        yield url, None


@contextlib.asynccontextmanager
async def _filled_database(filling: Filling) -> AsyncIterator[tuple[str, Filled | None]]:
    """A copy of one that a server had, and what it holds. Two servers at a time share no keys: the second gets an
    empty one."""
    global _used
    if _used:
        async with _empty_database() as found:
            yield found
        return
    _used += 1
    try:
        if filling.name not in _filled:
            _filled[filling.name] = await _fill(filling)
        async with fresh_database(template=filling.name) as url:
            yield url, _filled[filling.name]
    finally:
        _used -= 1


async def _fill(filling: Filling) -> Filled:
    """Fills a template database: what the API does, once for this process."""
    cluster = await shared_postgres()
    await cluster.execute(
        f"DROP DATABASE IF EXISTS {filling.name} WITH (FORCE)",  # of a test that was ended while it waited here
        f"CREATE DATABASE {filling.name} TEMPLATE coder STRATEGY FILE_COPY",
    )
    async with _server(cluster.url(filling.name), None, None, {}) as world:
        await world.first_user()
        return Filled(world.token, world.user_id, world.organization_id, await filling.fill(world))


@contextlib.asynccontextmanager
async def _server(url: str, clock: Clock | None, provisioner: Any, settings: Mapping[str, Any]) -> AsyncIterator[World]:
    values: dict[str, Any] = {
        "http_address": "127.0.0.1:0",
        "postgres_url": Secret(url),
        "provisioner_daemons": 0 if provisioner is None else 1,
        "dangerous_disable_rate_limits": True,
        "derp_server_stun_addresses": ("disable",),
        "cache_dir": _no_folder("cache"),
        "data_dir": _no_folder("data"),
        **settings,
    }
    config = ServerConfig(**values)
    async with (
        open_server(config, provisioner, clock=clock) as server,
        http_client(server.url) as client,
    ):
        yield World(server, client)
