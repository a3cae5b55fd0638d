"""Declarations of all routes: scopes that exist, bodies that are read, keys that stay within their scope.

Rules that need no server are checked on the declarations themselves; the rest against one running server.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import cast, get_args, get_origin
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import msgspec
import pytest
import trio
from msgspec import Struct

from coder.api.base.refusals import Refusal
from coder.appproxy.http.errors import STATUS
from coder.appproxy.http.request_bounds import PUBLIC_LIMIT
from coder.appproxy.upgrades.raw_links import EndpointTable
from coder.coderd.app import ENDPOINTS
from coder.coderd.http.server import fast_path, route
from coder.coderd.http.server.declarations import Route, route_of
from coder.coderd.services.access import authorization
from coder.domain.access import scopes
from coder.domain.access.policy import Subject, key_reaches
from coder.domain.access.resources import ACTIONS
from coder.domain.access.route_scopes import PUBLIC, Scope, named
from tests.kit.api.api_description import application
from tests.kit.provisioners.scripted_provisioner import upload
from tests.kit.server.server_in_process import World, running_coderd

_PARAMETER = re.compile(r"<[^>]*>")
_VALUES = {"<user>": "me", "<int:license_id>": "7"}


def _routes() -> Iterator[tuple[str, str, Route]]:
    """Yield (method, path with parameters filled in, declaration) of everything except WebSockets."""
    for rule in application().url_map.iter_rules():
        declaration = route_of(application().view_functions[rule.endpoint])
        if declaration is None or declaration.websocket:
            continue
        path = _PARAMETER.sub(lambda result: _VALUES.get(result[0], str(UUID(int=7))), rule.rule)
        for method in declaration.methods:
            yield method, path, declaration


def _scopes() -> Iterator[tuple[str, Scope]]:
    for method, path, declaration in _routes():
        yield f"{method} {path}", declaration.scope
    table = EndpointTable()
    for module in ENDPOINTS:
        module.register(table)
    for endpoint in table.endpoints:
        yield endpoint.pattern, endpoint.scope


def test_declared_scopes_exist() -> None:
    unknown = {
        f"{where}: {scope}"
        for where, asked in _scopes()
        for scope in named(asked)
        if scope.partition(":")[2] not in ACTIONS.get(scope.partition(":")[0], ())
    }
    assert not unknown


def test_refusal_kinds_have_a_status() -> None:
    waiting, missing = [Refusal], []
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        missing += [kind.__name__] * (kind.kind not in STATUS)
    assert not missing


def test_audit_fields_are_in_responses() -> None:
    """An object with the field, or a list of such objects; anything else would be an entry about no object."""
    wrong, seen = [], 0
    for method, path, declaration in _routes():
        source, _, name = (declaration.audit.key if declaration.audit else "").partition(":")
        if source != "body":
            continue
        seen += 1
        answer = get_args(declaration.answers)[0] if get_origin(declaration.answers) is list else declaration.answers
        fields = msgspec.structs.fields(answer) if isinstance(answer, type) and issubclass(answer, Struct) else ()
        if name not in {field.encode_name for field in fields}:
            wrong.append(f"{method} {path}: no {name} in {declaration.answers}")
    assert seen > 10
    assert not wrong, "\n".join(wrong)


def test_declared_body_is_read() -> None:
    wrong = []
    for method, path, declaration in _routes():
        source = inspect.getsource(inspect.unwrap(cast("Callable[[], None]", declaration.view)))
        read = re.findall(r"read_body\((\w+)\)", source)
        if read and [getattr(declaration.body, "__name__", "")] != sorted(set(read)):
            wrong.append(f"{method} {path}: reads {read}")
    assert not wrong


@pytest.fixture
def refused_scopes(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """Record the scopes that keys were refused for; invisible objects are answered like missing ones."""
    scope: list[Sequence[str]] = []

    def recording(subject: Subject, scopes: Sequence[str]) -> None:
        try:
            authorization.require_scope(subject, scopes)
        except Refusal:
            scope.append(scopes)
            raise

    for asking in (route, fast_path):
        monkeypatch.setattr(asking, "require_scope", recording)
    return scope


async def test_keys_stay_within_scope(refused_scopes: list[Sequence[str]]) -> None:
    async with running_coderd(first_user=True) as world:
        for scope in ("coder:application_connect", "template:read"):
            assert not await _overreached(world, scope, refused_scopes)
        await _large_bodies_of_strangers_are_refused(world)


@pytest.mark.soak
async def test_every_operation_with_every_scope(refused_scopes: list[Sequence[str]]) -> None:
    async with running_coderd(first_user=True) as world:
        for scope in scopes.external():
            if scope != "coder:all":
                assert not await _overreached(world, scope, refused_scopes), scope


async def _overreached(world: World, scope: str, refused_scopes: list[Sequence[str]]) -> list[str]:
    """Return the routes that accept a key beyond its scope."""
    created = await world.post("/api/v2/users/me/keys/tokens", {"scopes": [scope]})
    assert created.status_code == 201, created.text
    token, key = created.json()["key"], scopes.combined([scope])
    wrong = []
    for method, path, declaration in _routes():
        wanted = named(declaration.scope)
        if not declaration.signed_in or not wanted or any(key_reaches(key, item) for item in wanted):
            continue
        refused_scopes.clear()
        answer = await world.client.request(method, path, headers={"Coder-Session-Token": token}, json={})
        if answer.status_code not in {403, 404} or [tuple(item) for item in refused_scopes] != [tuple(wanted)]:
            wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:100]}")
    return wrong


async def _large_bodies_of_strangers_are_refused(world: World) -> None:
    world.client.cookies.clear()
    public = [
        (method, path)
        for method, path, declaration in _routes()
        if declaration.scope is PUBLIC and declaration.limit == PUBLIC_LIMIT and path.startswith("/api/")
    ]
    assert public
    large = b'{"a":"' + b"x" * PUBLIC_LIMIT + b'"}'
    for method, path in public:
        answer = await world.client.request(method, path, content=large)
        assert answer.status_code == 413, (path, answer.status_code, answer.text)


async def test_foreign_file_creates_no_version() -> None:
    """Another user's archive is answered like a missing one, even for template administrators."""
    async with running_coderd(first_user=True) as world:
        user_id, token = await world.member("author")
        roles = {"roles": ["organization-template-admin"]}
        granted = await world.put(f"/api/v2/organizations/{world.organization_id}/members/{user_id}/roles", roles)
        assert granted.status_code == 200, granted.text
        own = await upload(world, {"main.tf": "# mine"}, token=token)
        foreign = await upload(world, {"main.tf": "# the owner's"})
        answers = [await _version_of(world, token, file_id) for file_id in (own, foreign, str(UUID(int=7)))]
        assert [answer.status_code for answer in answers] == [201, 404, 404]
        assert answers[1].json() == answers[2].json()


async def _version_of(world: World, token: str, file_id: str) -> httpx.Response:
    body = {"storage_method": "file", "provisioner": "echo", "tags": {}, "file_id": file_id}
    return await world.post(f"/api/v2/organizations/{world.organization_id}/templateversions", body, token=token)


async def test_ambiguous_requests_are_refused() -> None:
    async with running_coderd() as world:
        parts = urlsplit(world.url)
        twice = (
            b"POST /api/v2/users/login HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"
        )
        upgrade = (
            b"GET /api/v2/nowhere HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        for sent, status in ((twice, b" 400 "), (upgrade, b" 404 "), (upgrade.replace(b"nowhere", b"users"), b" 404 ")):
            async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 0) as stream:
                await stream.send_all(sent)
                received = b""
                with trio.fail_after(60):
                    while piece := await stream.receive_some():  # to the end: the connection is closed
                        received += piece
            assert status in received.splitlines()[0], received
