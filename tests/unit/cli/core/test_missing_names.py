"""A name that the server does not know is named in the error, with the names that the caller may have meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coder.cli.core.command import load
from coder.cli.core.command_table import COMMANDS
from coder.cli.core.failures import error_text, missing_note
from coder.cli.core.missing_names import LOOKUPS, advice, missing_resource, suggested_names
from coder.cli.program.completion_names import argument_kind
from coder.net.errors import HttpError, refused_request
from tests.kit.api.api_description import described
from tests.kit.programs.command_line import run_cli
from tests.kit.stand_ins.scripted_http_servers import OddServer, odd_server, reply

ENVELOPE = b'{"message": "Resource not found or you do not have access to this resource"}'
ORGANIZATION = {"id": "6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11", "name": "nosuch-name", "is_default": True}


def not_found(path: str, method: str = "GET") -> HttpError:
    return refused_request(method, f"/api/v2{path}", 404, ENVELOPE)


LISTS: dict[str, Any] = {
    "/api/v2/workspaces?q=owner:me": {"workspaces": [{"name": "devbox", "owner_name": "ann"}]},
    "/api/v2/workspaces?q=owner:ben": {"workspaces": [{"name": "devbox", "owner_name": "ben"}]},
    "/api/v2/workspaces": {"workspaces": [{"name": "gpu-box", "owner_name": "ben"}], "count": 1},
    "/api/v2/users": {"users": [{"username": "alice", "name": "Alice A."}], "count": 1},
    "/api/v2/users/me/organizations": [{"name": "research"}],
    "/api/v2/organizations/o/templates": [{"name": "python"}, {"name": "pytorch"}, {"name": "go"}],
    "/api/v2/templates/t/versions": [{"name": "brave_fox1"}],
    "/api/v2/organizations/o/groups": [{"name": "developers"}],
    "/api/v2/organizations/o/members": [{"username": "alice"}],
    "/api/v2/organizations/o/provisionerkeys": [{"name": "chicago"}],
    "/api/v2/users/me/secrets": [{"name": "db-password"}],
    "/api/v2/users/me/keys/tokens": [{"id": "x", "token_name": "nightly"}],
    "/api/v2/users/me/wireguard-clients": [{"name": "phone"}],
    "/api/v2/tasks?q=owner:me": {"tasks": [{"name": "fix-it", "owner_name": "ann"}]},
    "/api/v2/workspaceproxies": {"regions": [{"name": "sydney"}]},
    "/api/v2/external-auth": {"providers": [{"id": "github"}], "links": []},
}


@pytest.mark.parametrize(
    ("path", "text", "step"),
    [
        ("/users/me/workspace/devbx", 'no workspace "devbx"', '"devbox"'),
        ("/users/ben/workspace/devbx", 'no workspace "ben/devbx"', '"ben/devbox"'),
        ("/users/me/workspace/gpu_box", 'no workspace "gpu_box"', '"ben/gpu-box"'),
        ("/users/me/workspace/zzz", 'no workspace "zzz"', "`coder list --all`"),
        ("/users/alicia", 'no user "alicia"', '"alice"'),
        ("/users/alicia/keys", 'no user "alicia"', '"alice"'),
        ("/organizations/reserch", 'no organization "reserch"', '"research"'),
        ("/organizations/o/templates/pythn", 'no template "pythn"', '"python"'),
        ("/templates/t/versions/brave_fox", 'no template version "brave_fox"', '"brave_fox1"'),
        ("/organizations/o/groups/developrs", 'no group "developrs"', '"developers"'),
        ("/organizations/o/members/alic", 'no member "alic"', '"alice"'),
        ("/organizations/o/provisionerkeys/chicgo", 'no provisioner key "chicgo"', '"chicago"'),
        ("/organizations/o/provisionerjobs/1", 'no provisioner job "1"', "jobs list"),
        ("/users/me/secrets/db-passwort", 'no secret "db-passwort"', '"db-password"'),
        ("/users/me/keys/tokens/nightli", 'no token "nightli"', '"nightly"'),
        ("/users/me/keys/nightli", 'no token "nightli"', '"nightly"'),
        ("/users/me/wireguard-clients/fone", 'no WireGuard client "fone"', '"phone"'),
        ("/tasks/me/fix_it", 'no task "fix_it"', '"fix-it"'),
        ("/workspaces/w/external-agent/dev/credentials", 'no agent "dev"', "coder show"),
        ("/workspaceproxies/sidney", 'no workspace proxy "sidney"', '"sydney"'),
        ("/external-auth/gitub", 'no external login "gitub"', '"github"'),
        ("/licenses/7", 'no license "7"', "coder licenses list"),
        ("/templates/x", 'no template "x"', "coder templates list"),
        ("/workspaces/x", 'no workspace "x"', "coder list"),
    ],
)
def test_path_names_resource(path: str, text: str, step: str) -> None:
    missing = missing_resource(not_found(path))
    assert missing is not None and text in missing.text
    assert step in advice(missing, suggested_names(missing, lambda names: LISTS.get(names, [])))


def test_every_lookup_has_case() -> None:
    cases = next(mark for mark in test_path_names_resource.pytestmark if mark.name == "parametrize").args[1]  # type: ignore[attr-defined]
    for lookup in LOOKUPS:
        assert any(re.fullmatch(lookup.path, path) and lookup.noun in text for path, text, _ in cases), lookup.noun


@pytest.mark.parametrize("collection", ["templates", "templateversions", "provisionerkeys", "groups", "members/roles"])
def test_refused_creation_names_permission(collection: str) -> None:
    missing = missing_resource(not_found(f"/organizations/6f2d9a5e/{collection}", "POST"))
    assert missing is not None and missing.text.startswith("you are not allowed to create")
    assert "administrator" in advice(missing, [])


def test_named_resource_is_not_named_twice() -> None:
    body = b'{"message": "No template version found by name \\"v9\\"."}'
    assert missing_resource(refused_request("GET", "/api/v2/templates/t/versions/v9", 404, body)) is None


def test_other_errors_stay_as_they_are() -> None:
    assert missing_resource(HttpError(404, "no envelope")) is None
    assert missing_resource(refused_request("GET", "/api/v2/users/x", 403, ENVELOPE)) is None
    assert missing_resource(not_found("/buildinfo")) is None
    by_id = missing_resource(not_found("/workspaces/6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"))
    assert by_id is not None and suggested_names(by_id, lambda _path: [{"name": "x"}]) == []


def test_terminals_get_name_instead_of_message() -> None:
    error = not_found("/users/me/workspace/devbx")
    assert error_text(error, is_terminal=True, suggest=lambda _missing: ["a", "b"]).splitlines() == [
        'there is no workspace "devbx" that you can see',
        'Suggestion: Did you mean "a" or "b"?',
    ]
    assert error_text(error, is_terminal=False) == "Resource not found or you do not have access to this resource"
    assert missing_note(error, lambda _missing: ["devbox"]) == (
        'there is no workspace "devbx" that you can see. Did you mean "devbox"?\n'
    )


NAMED_KINDS = {"workspaces", "templates", "users", "tasks", "organizations", "groups", "secrets", "tokens", "proxies"}
OTHER_WAYS = {
    "doctor": "prints findings",
    "reset-password": "asks the database",
    "templates push": "creates the template",
}
MORE_ARGUMENTS = {
    "autoupdate": ["always"],
    "rename": ["other"],
    "schedule start": ["9:00AM"],
    "schedule stop": ["2h"],
    "schedule extend": ["2h"],
    "ssh": ["true"],
    "port-forward": ["--tcp", "8080"],
    "state push": ["file"],
    "sharing add": ["--user", "ann"],
    "sharing remove": ["--user", "ann"],
    "users edit-roles": ["--roles", "owner", "-y"],
    "organizations members edit-roles": ["organization-admin"],
    "templates edit": ["--description", "x", "-y"],
    "workspace-proxy edit": ["--display-name", "x"],
    "secret update": ["--value", "x"],
    "task send": ["more"],
    "open app": ["code"],
    "groups edit": ["--name", "x"],
    "external-workspaces create": ["-t", "x"],
}


def commands_with_names() -> list[str]:
    return [name for name in COMMANDS if argument_kind(load(name), 0) in NAMED_KINDS and name not in OTHER_WAYS]


@pytest.fixture
def server() -> Iterator[OddServer]:
    def answer(method: str, path: str) -> bytes:
        plain = path.partition("?")[0]
        if "nosuchname" in plain:
            return reply(ENVELOPE.decode(), status="404 Not Found")
        if plain == "/api/v2/users/me/organizations":
            return reply(json.dumps([ORGANIZATION]))
        item = {"name": "nosuch-name", "username": "nosuch-name", "token_name": "nosuch-name", "owner_name": "ann"}
        for names in ("workspaces", "users", "tasks"):
            if plain == f"/api/v2/{names}":
                return reply(json.dumps({names: [item], "count": 1}))
        if plain == "/api/v2/workspaceproxies":
            return reply(json.dumps({"regions": [item]}))
        if plain.rpartition("/")[2] in {"templates", "groups", "secrets", "tokens", "members", "organizations"}:
            return reply(json.dumps([item]))
        return reply(json.dumps(described(method, path)))

    with odd_server(patience=10**9) as server:
        server.answer = answer
        yield server


@pytest.mark.parametrize("name", commands_with_names())
async def test_every_command_names_what_is_missing(name: str, server: OddServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{}")
    env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "AAAAAAAAAA-BBBBBBBBBBBBBBBBBBBBBB", "CODER_NO_OPEN": "true"}
    words = [*name.split(), "nosuchname", *MORE_ARGUMENTS.get(name, [])]
    if any(option.flag == "yes" for option in load(name).options) and "-y" not in words:
        words.append("-y")
    result = await run_cli(words, home=tmp_path, env=env)
    assert result.code == 1, result.stdout
    assert "nosuchname" in result.stderr, result.stderr
    assert "nosuch-name" in result.stderr, result.stderr
