"""The API's description: valid OpenAPI, whole, and what the recorded facts say of the same operations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from coder.coderd.app import LINK_MODULES
from coder.coderd.http import swagger
from coder.coderd.links.door import LinkTable
from tests.conformance.scope import in_scope
from tests.kit.coderd import running_coderd
from tests.kit.openapi import application, document, operations

_WORDS_OF_THEIR_OWN = {
    # (method, path): why upstream's description says something else than its recorded answers, which we follow
    "DELETE /api/v2/organizations/{}/members/roles/{}": "204, recorded",
    "POST /api/v2/notifications/test": "204, recorded",
    "GET /api/v2/debug/ws": "a WebSocket",
    "GET /api/v2/debug/pprof": "leads on to its index",
    "POST /api/v2/organizations/{}/templates": "201, recorded",
    "POST /api/v2/workspaceagents/me/log-source": "201, recorded",
    "POST /api/v2/oauth2-provider/apps": "201, recorded",
    "POST /api/v2/oauth2-provider/apps/{}/secrets": "201, recorded",
    "POST /api/v2/workspaceagents/aws-instance-identity": "no cloud is known",
    "POST /api/v2/workspaceagents/azure-instance-identity": "no cloud is known",
    "POST /api/v2/workspaceagents/google-instance-identity": "no cloud is known",
    "GET /api/v2/notifications/inbox/watch": "a WebSocket",
    "GET /api/v2/workspaces/{}/watch-ws": "a WebSocket",
    "GET /api/v2/workspaceagents/{}/watch-metadata-ws": "a WebSocket",
    "GET /api/v2/workspaceagents/{}/containers": "what the agent answers",
    "GET /api/v2/workspaceagents/{}/containers/watch": "a WebSocket",
    "POST /api/v2/workspaceagents/{}/containers/devcontainers/{}/recreate": "what the agent answers",
    "DELETE /api/v2/workspaceagents/{}/containers/devcontainers/{}": "what the agent answers",
}


def _shape(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


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
        if rule.endpoint.startswith(("site.", "static")):
            continue
        for method in {"GET"} if rule.websocket else rule.methods - {"HEAD", "OPTIONS"}:
            yield method, _shape(re.sub(r"<[^>]*>", "{}", rule.rule))
    table = LinkTable()
    for name in LINK_MODULES:
        import_module(name).register(table)
    for pattern, _ in table.patterns:
        yield "GET", _shape(pattern)


def test_every_route_of_the_application_is_described() -> None:
    described = {(method, _shape(path)) for method, path, _ in operations()}
    assert described == set(_routes())


def test_it_agrees_with_the_recorded_operations() -> None:
    ours = {f"{method} {_shape(path)}": operation for method, path, operation in operations()}
    wrong = []
    for known in in_scope():
        name = f"{known.method} {_shape(known.path)}"
        operation = ours.get(name)
        if operation is None or not known.statuses or name in _WORDS_OF_THEIR_OWN:
            continue
        statuses = {int(status) for status in operation["responses"]}
        if not set(known.statuses) <= statuses:
            wrong.append(f"{name}: {known.statuses} expected, {sorted(statuses)} described")
        if known.request and "requestBody" not in operation:
            wrong.append(f"{name}: takes a {known.request}")
        if known.public and operation.get("security") == [{"CoderSessionToken": []}]:
            wrong.append(f"{name}: open to everybody")
    assert not wrong, "\n".join(wrong)


def test_types_are_told_where_they_are_known() -> None:
    """Inference is worth something only as long as it finds nearly everything."""
    silent = []
    for method, path, operation in operations():
        for status, answer in operation["responses"].items():
            content = answer.get("content", {}).get("application/json")
            if int(status) < 300 and content is not None and not content.get("schema"):
                silent.append(f"{method} {path}")
    assert len(silent) <= 12, silent


def test_queries_and_searches_are_described() -> None:
    found = {f"{method} {path}": operation for method, path, operation in operations()}
    listed = {item["name"]: item for item in found["GET /api/v2/workspaces"]["parameters"]}
    assert {"q", "limit", "offset"} <= set(listed)
    assert listed["limit"]["schema"]["type"] == "integer"
    assert "owner" in listed["q"]["description"] and "dormant" in listed["q"]["description"]
    window = {item["name"]: item for item in found["GET /api/v2/insights/templates"]["parameters"]}
    assert window["start_time"]["required"]
    body = found["POST /api/v2/users"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/CreateUserRequestWithOrgs"}


async def test_it_is_served_only_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = tmp_path / "openapi.json"
    packaged.write_text(json.dumps(document()))
    monkeypatch.setattr(swagger, "PACKAGED", packaged)  # as in a program without sources
    async with running_coderd() as world:
        for path in ("/swagger", "/swagger/", "/swagger/index.html", "/swagger/doc.json", "/swagger/x"):
            answer = await world.get(path)
            assert answer.status_code == 404
            assert answer.json()["message"] == "Swagger documentation is disabled."
    async with running_coderd(swagger_enable=True) as world:
        shown = await world.get("/swagger/doc.json")
        assert shown.status_code == 200
        assert shown.headers["content-type"] == "application/json; charset=utf-8"
        assert shown.json()["openapi"] == "3.1.0"
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
    """Nothing from other hosts, no inline script: our content security policy allows neither."""
    assert not re.findall(r"(?:src|href)=\"(?!/swagger/)[^\"]*\"", html)
    assert not re.findall(r"<script(?![^>]*src=)", html)


def test_starting_a_server_reads_no_sources() -> None:
    package = "coder.coderd.http.openapi"
    folder = Path(swagger.__file__).resolve().parents[1]
    importing = re.compile(rf"^(?:from|import) {re.escape(package)}", re.M)
    loud = [
        path.name
        for path in folder.rglob("*.py")
        if path.parent.name != "openapi" and importing.search(path.read_text())
    ]
    assert not loud, "import it where it is used: it costs a start of the server otherwise"
