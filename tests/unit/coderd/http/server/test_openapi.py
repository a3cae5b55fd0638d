"""The API's description: valid OpenAPI, complete, equal to the recorded facts about its operations, and obeyed.

The last part sends a running server everything the description allows, and disallows: no response may be a 5xx, have an
undescribed status, or be an error without a message. The short run takes a seeded share, `--soak` all. One file,
because reading the description takes seconds.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
import trio
from openapi_spec_validator import OpenAPIV31SpecValidator

from coder.appproxy.upgrades.raw_links import EndpointTable
from coder.coderd.app import ENDPOINTS
from coder.coderd.http.server import swagger
from tests.conformance.scope import in_scope
from tests.conformance.world import Populated, populated
from tests.kit.api import api_fuzzer
from tests.kit.api.api_description import application, document, operations
from tests.kit.api.api_fuzzer import Sender, Strange, bodies, judge, paths, queries
from tests.kit.api.callable_operations import SAID_SO, SETTINGS, Described, described, shape
from tests.kit.server.server_in_process import running_coderd

_WORDS_OF_THEIR_OWN = {
    # (method, path): why upstream's description differs from its recorded responses, which we follow
    "DELETE /api/v2/organizations/{}/members/roles/{}": "204, recorded",
    "POST /api/v2/notifications/test": "204, recorded",
    "GET /api/v2/debug/ws": "a WebSocket",
    "GET /api/v2/debug/pprof": "leads on to its index",
    "POST /api/v2/organizations/{}/templates": "201, recorded",
    "POST /api/v2/workspaceagents/me/log-source": "201, recorded",
    "POST /api/v2/oauth2-provider/apps": "201, recorded",
    "POST /api/v2/oauth2-provider/apps/{}/secrets": "201, recorded",
    "POST /api/v2/workspaceagents/aws-instance-identity": "wants what a cloud signed",
    "POST /api/v2/workspaceagents/azure-instance-identity": "wants what a cloud signed",
    "POST /api/v2/workspaceagents/google-instance-identity": "wants what a cloud signed",
    "GET /api/v2/notifications/inbox/watch": "a WebSocket",
    "GET /api/v2/workspaces/{}/watch-ws": "a WebSocket",
    "GET /api/v2/workspaceagents/{}/watch-metadata-ws": "a WebSocket",
    "GET /api/v2/workspaceagents/{}/containers": "what the agent answers",
    "GET /api/v2/workspaceagents/{}/containers/watch": "a WebSocket",
    "POST /api/v2/workspaceagents/{}/containers/devcontainers/{}/recreate": "what the agent answers",
    "DELETE /api/v2/workspaceagents/{}/containers/devcontainers/{}": "what the agent answers",
}


def test_it_is_valid_openapi() -> None:
    wrong = [error.message for error in OpenAPIV31SpecValidator(document()).iter_errors()]
    assert not wrong
    text = json.dumps(document())
    named = set(re.findall(r"#/components/schemas/([^\"]+)", text))
    assert named <= set(document()["components"]["schemas"])
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(ids) == len(set(ids))


def _routes() -> Iterator[tuple[str, str]]:
    for rule in application().url_map.iter_rules():
        if rule.endpoint.startswith(("site.", "static")) or rule.rule.startswith("/docs"):
            continue
        for method in {"GET"} if rule.websocket else rule.methods - {"HEAD", "OPTIONS"}:
            yield method, shape(re.sub(r"<[^>]*>", "{}", rule.rule))
    table = EndpointTable()
    for module in ENDPOINTS:
        module.register(table)
    for endpoint in table.endpoints:
        yield "GET", shape(endpoint.pattern)


def test_every_route_is_described() -> None:
    described = {(method, shape(path)) for method, path, _ in operations()}
    assert described == set(_routes())


def test_document_matches_recorded_operations() -> None:
    own = {f"{method} {shape(path)}": operation for method, path, operation in operations()}
    wrong = []
    for known in in_scope():
        name = f"{known.method} {shape(known.path)}"
        operation = own.get(name)
        if operation is None or not known.statuses or name in _WORDS_OF_THEIR_OWN:
            continue
        statuses = {int(status) for status in operation["responses"]}
        if not set(known.statuses) <= statuses:
            wrong.append(f"{name}: {known.statuses} expected, {sorted(statuses)} described")
        if known.request and "requestBody" not in operation:
            wrong.append(f"{name}: takes a {known.request}")
        if known.public and operation.get("security") == [{"CoderSessionToken": []}]:
            wrong.append(f"{name}: public")
    assert not wrong, "\n".join(wrong)


def test_known_types_are_described() -> None:
    """Inference is useful only as long as it covers nearly everything."""
    silent = []
    for method, path, operation in operations():
        for status, answer in operation["responses"].items():
            content = answer.get("content", {}).get("application/json")
            if int(status) < 300 and content is not None and not content.get("schema"):
                silent.append(f"{method} {path}")
    assert len(silent) <= 12, silent


def test_queries_and_searches_are_described() -> None:
    results = {f"{method} {path}": operation for method, path, operation in operations()}
    listed = {item["name"]: item for item in results["GET /api/v2/workspaces"]["parameters"]}
    assert {"q", "limit", "offset"} <= set(listed)
    assert listed["limit"]["schema"]["type"] == "integer"
    assert "owner" in listed["q"]["description"] and "dormant" in listed["q"]["description"]
    window = {item["name"]: item for item in results["GET /api/v2/insights/templates"]["parameters"]}
    assert window["start_time"]["required"]
    body = results["POST /api/v2/users"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/CreateUserRequestWithOrgs"}


async def test_document_is_served_when_enabled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = tmp_path / "openapi.json"
    packaged.write_text(json.dumps(document()))
    monkeypatch.setattr(swagger, "PACKAGED", packaged)  # as in a program without sources
    async with running_coderd() as world:
        for path in ("/swagger", "/swagger/", "/swagger/index.html", "/swagger/doc.json", "/swagger/x"):
            answer = await world.get(path)
            assert answer.status_code == 404
            assert answer.json()["message"] == "Swagger documentation is disabled."
    async with running_coderd(swagger_enable=True) as world:
        response = await world.get("/swagger/doc.json")
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json; charset=utf-8"
        assert response.json()["openapi"] == "3.1.0"
        page = await world.get("/swagger/index.html")
        assert page.status_code == 200
        _only_our_own(page.text)
        assert "script-src 'self'" in page.headers["content-security-policy"]
        for name in ("page.js", "page.css"):
            answer = await world.get(f"/swagger/{name}")
            assert answer.status_code == 200
            assert (
                await world.get(f"/swagger/{name}", headers={"If-None-Match": answer.headers["etag"]})
            ).status_code == 304
        assert (await world.get("/swagger/document.py")).status_code == 404


def _only_our_own(html: str) -> None:
    """Check that nothing comes from other hosts or inline scripts: our content security policy allows neither."""
    assert not re.findall(r"(?:src|href)=\"(?!/swagger/)[^\"]*\"", html)
    assert not re.findall(r"<script(?![^>]*src=)", html)


def test_server_start_reads_no_sources() -> None:
    package = "coder.coderd.http.server.openapi"
    folder = Path(swagger.__file__).resolve().parents[1]
    importing = re.compile(rf"^(?:from|import) {re.escape(package)}", re.M)
    loud = [
        path.name
        for path in folder.rglob("*.py")
        if path.parent.name != "openapi" and importing.search(path.read_text())
    ]
    assert not loud, "import it where it is used: it costs a start of the server otherwise"


# ---- obeyed

SEED = 20261121
PATIENCE = 1200.0
"""Seconds for one of these tests. On a busy machine all strange requests took 4 minutes, Schemathesis 8 to 14."""
_NOT_OURS = pytest.mark.filterwarnings("ignore:Do not use the `random` module::")
"""Schemathesis inside Hypothesis."""


def _strange(item: Described) -> list[Strange]:
    requests = [
        *paths(item.path, item.values, item.method),
        *queries(item.path, item.values, item.operation, item.method),
    ]
    if item.body is not None:
        requests += bodies(item.path, item.values, item.method, item.body)
    return requests


def _send(url: str, item: Described, requests: list[Strange]) -> list[str]:
    sender, wrong = Sender(url, item.headers), []
    statuses = item.statuses - {500} | {status for name, status in SAID_SO if name == item.name}
    for strange in requests:
        try:
            result = judge(item.name, statuses, strange, sender.send(strange))
        except OSError as error:
            result = f"{item.name}: {type(error).__name__} {strange}"
        wrong += [result] * bool(result)
    sender.close()
    return wrong


async def _until_late(items: AsyncIterator[Described]) -> AsyncIterator[Described]:
    """Yield items while time remains: on a slow machine a soak test must end, too."""
    deadline = trio.current_time() + PATIENCE
    async with aclosing(items) as all_items:  # type: ignore[type-var]
        async for item in all_items:
            if trio.current_time() > deadline:
                return
            yield item


async def _send_strange_requests(world: Populated, chance: random.Random, share: float, names: set[str]) -> list[str]:
    wrong: list[str] = []
    async for item in _until_late(described(world, names.__contains__)):
        requests = [request for request in _strange(item) if chance.random() < share]
        wrong += await trio.to_thread.run_sync(_send, world.world.url, item, requests)
    return wrong


async def _send_by_schema(world: Populated, examples: int, names: set[str], number: int) -> api_fuzzer.Findings:
    result = api_fuzzer.Findings()
    known = api_fuzzer.load(document())
    async for item in _until_late(described(world, names.__contains__)):
        allowed = {status for name, status in SAID_SO if name == item.name}

        def ask(item: Described = item, allowed: set[int] = allowed) -> None:
            asked = known[item.name]
            url = world.world.url
            api_fuzzer.ask(
                asked, url, item.headers, result, examples=examples, known=item.values, number=number, allowed=allowed
            )

        await trio.to_thread.run_sync(ask)
    return result


def _names() -> list[str]:
    return [f"{method} {path}" for method, path, _ in operations()]


@_NOT_OURS
async def test_seeded_strange_requests() -> None:
    chance = random.Random(SEED)
    names = set(chance.sample(_names(), 40))
    async with populated(**SETTINGS) as world:
        wrong = await _send_strange_requests(world, chance, 0.05, names)
        result = await _send_by_schema(world, 1, set(chance.sample(_names(), 6)), SEED)
    assert not wrong, "\n".join(wrong)
    assert not result.wrong, "\n".join(f"{what}\n  {how}" for what, how in result.wrong.items())
    assert result.asked


@pytest.mark.soak
async def test_all_strange_requests() -> None:
    async with populated(**SETTINGS) as world:
        wrong = await _send_strange_requests(world, random.Random(SEED), 1.0, set(_names()))
    assert not wrong, "\n".join(wrong)


@_NOT_OURS
@pytest.mark.soak
async def test_schemathesis() -> None:
    async with populated(**SETTINGS) as world:
        result = await _send_by_schema(world, 20, set(_names()), SEED)
    assert not result.wrong, "\n".join(f"{what}\n  {how}" for what, how in result.wrong.items())
