"""`coder users access`: a row for each role, group, share and credential; refused parts are named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.api.api_description import described
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.stand_ins.scripted_http_servers import OddServer, odd_server, reply

ID = "6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"
ORGANIZATION = "0c6b0a8e-71c6-4f41-8f0e-3a1a5f0f2b22"
USER = {
    "id": ID,
    "username": "bob",
    "status": "active",
    "login_type": "oidc",
    "organization_ids": [ORGANIZATION],
    "roles": [{"name": "auditor", "display_name": "Auditor"}],
}
KEY = {"user_id": ID, "username": "bob", "last_used": "2026-01-02T03:04:05Z", "expires_at": "2026-02-01T00:00:00Z"}


def _answers(method: str, path: str) -> Any:
    bare = path.partition("?")[0]
    own = {
        "/api/v2/users/bob": described("GET", "/api/v2/users/bob") | USER,
        f"/api/v2/users/{ID}/organizations": [{"id": ORGANIZATION, "name": "crew", "is_default": False}],
        "/api/v2/groups": [
            {**described("GET", "/api/v2/groups")[0], "id": group, "name": name, "organization_id": ORGANIZATION}
            | {"organization_name": "crew", "source": source}
            for group, name, source in (
                (ORGANIZATION, "Everyone", "user"),
                (ID, "staff", "oidc"),
            )
        ],
        f"/api/v2/users/{ID}/keys/tokens": [
            described("GET", bare)[0] | KEY | {"token_name": "robot", "scopes": ["coder:all"]}
        ]
        if bare.endswith("/tokens")
        else None,
        f"/api/v2/users/{ID}/wireguard-clients": [],
        "/api/v2/oauth2-provider/apps": None,
        "/api/v2/authcheck": {"keys": True, "consents": True},
        "/api/v2/workspaces": {"workspaces": [], "count": 0},
    }
    return own[bare] if bare in own else described(method, path)


@pytest.fixture
def server() -> Iterator[OddServer]:
    with odd_server(patience=10**9) as found:
        yield found
        assert found.failed is None


REFUSED = reply('{"message": "Forbidden"}', status="403 Forbidden")


async def _run(server: OddServer, home: Path, instead: dict[str, bytes], *words: str) -> Result:
    """Run the command with other answers for the paths that end like the keys of `instead`."""

    def answer(method: str, path: str) -> bytes:
        for end, refusal in instead.items():
            if path.partition("?")[0].endswith(end):
                return refusal
        return reply(json.dumps(_answers(method, path)))

    server.answer = answer
    env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "AAAAAAAAAA-BBBBBBBBBBBBBBBBBBBBBB"}
    return await run_cli(["users", "access", "bob", *words], home=home, env=env)


async def test_access_lists_origin_of_grants(server: OddServer, tmp_path: Path) -> None:
    result = await _run(server, tmp_path, {}, "-o", "json")
    assert result.code == 0, result.stderr
    rows = {(row["kind"], row["name"]): row for row in json.loads(result.stdout)}
    assert rows["site role", "Auditor"]["from"] == "by hand, or the identity provider"
    assert rows["group", "crew/staff"]["from"] == "identity provider"
    assert rows["group", "crew/Everyone"]["from"] == "membership"
    assert rows["token", "robot"]["last_used"] == "2026-01-02T03:04:05Z"
    assert ("organization", "crew") in rows
    assert "session" in {kind for kind, _ in rows}


async def test_access_names_refused_part(server: OddServer, tmp_path: Path) -> None:
    result = await _run(server, tmp_path, {"/sessions": REFUSED})
    assert result.code == 0, result.stderr
    assert "Not shown: sessions" in result.stderr
    assert "session " not in result.stdout
    assert "robot" in result.stdout


async def test_hidden_keys_are_named(server: OddServer, tmp_path: Path) -> None:
    """The lists of a caller without the right are empty, not refused: they are not requested."""
    lists = ("/tokens", "/sessions", "/wireguard-clients", "/oauth2-provider/apps")
    broken = dict.fromkeys(lists, reply('{"message": "Requested."}', status="500 Internal Server Error"))
    result = await _run(server, tmp_path, {"/authcheck": reply("{}"), **broken})
    assert result.code == 0, result.stderr
    assert "Not shown: tokens, sessions and devices (you may not see them)" in result.stderr
    assert "Not shown: OAuth2 consents (you may not see them)" in result.stderr
    assert "robot" not in result.stdout


BAD = reply('{"message": "Bad request."}', status="400 Bad Request")


async def test_bad_request_means_oauth2_off(server: OddServer, tmp_path: Path) -> None:
    result = await _run(server, tmp_path, {"/oauth2-provider/apps": BAD})
    assert result.code == 0, result.stderr
    assert "Not shown: OAuth2 consents (this deployment has none)" in result.stderr


@pytest.mark.parametrize("part", ["/organizations", "/groups", "/workspaces", "/tokens", "/wireguard-clients"])
async def test_bad_request_elsewhere_fails(server: OddServer, tmp_path: Path, part: str) -> None:
    result = await _run(server, tmp_path, {part: BAD})
    assert result.code == 1
    assert "Bad request." in result.stderr
