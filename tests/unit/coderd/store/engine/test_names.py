"""Lookups by an id or a name, which never confuse a name with another object's id."""

from __future__ import annotations

import base64
import os
from typing import Any
from uuid import UUID

import pytest

from coder.coderd.store.engine.names import as_id, find_group, find_organization, find_user
from tests.kit.api.api_description import application
from tests.kit.paths import ROOT
from tests.kit.provisioners.scripted_provisioner import new_template
from tests.kit.server.server_in_process import FIRST_USER, World, running_coderd
from tests.kit.server.workspaces import TASKS, new_task, task_world

IDENTITY = UUID("6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11")


@pytest.mark.parametrize("text", [str(IDENTITY), str(IDENTITY).upper(), f"urn:uuid:{IDENTITY}", f"{{{IDENTITY}}}"])
def test_id_is_never_a_name(text: str) -> None:
    assert as_id(text) == IDENTITY


@pytest.mark.parametrize("text", [IDENTITY.hex, IDENTITY.hex.upper(), "me", "", "a" * 32, str(IDENTITY)[:-1]])
def test_possible_name_is_a_name(text: str) -> None:
    assert as_id(text) is None


async def test_name_like_an_id_matches_only_its_user() -> None:
    """Users of an identity provider often choose their names."""
    async with running_coderd(first_user=True) as world:
        victim, _ = await world.member("victim")
        organization = UUID(world.organization_id)
        eve, _ = await world.member(UUID(victim).hex)
        view = (await world.get(f"/api/v2/users/{UUID(victim).hex}")).json()
        assert view["id"] == eve
        for name in (UUID(victim).hex, UUID(victim).hex.upper()):
            assert str(await world.ctx.db.read(find_user, name)) == eve
            suspended = await world.put(f"/api/v2/users/{name}/status/suspend")
            assert (suspended.status_code, suspended.json()["id"]) == (200, eve)
        assert (await world.get(f"/api/v2/users/{victim}")).json()["status"] == "active"
        logged = (await world.get("/api/v2/audit", params={"q": "resource_type:user action:write"})).json()
        assert {entry["resource_id"] for entry in logged["audit_logs"]} == {eve}, "nor in what is written of it"
        assert await world.ctx.db.read(find_organization, organization.hex) is None
        everyone = await world.ctx.db.read(find_group, world.organization_id)
        assert everyone is not None and await world.ctx.db.read(find_group, everyone.id.hex) is None


ID_OR_NAME = {
    "user": "/api/v2/users",
    "organization": "/api/v2/organizations",
    "task": f"{TASKS}/me",
    "client": "/api/v2/users/me/wireguard-clients",
    "proxy": "/api/v2/workspaceproxies",
}
"""Parameters of paths that are an id or a name, each with a route that looks it up."""
NAMES_ALONE = frozenset({"_rest", "action", "agent", "arch", "name", "number", "path", "provider", "system", "version"})
KEYS_ALONE = frozenset({"ident", "key_id", "license_id", "secret"})


def test_every_path_parameter_is_checked() -> None:
    """Parameters outside the table have a converter for ids, or are a name or a key but never both."""
    results = {
        name
        for rule in application().url_map.iter_rules()
        for name, converter in rule._converters.items()
        if type(converter).__name__ != "Identifier"
    }
    assert results == {*ID_OR_NAME} | NAMES_ALONE | KEYS_ALONE


async def test_name_is_never_read_as_id() -> None:
    """A name of 32 digits belongs to its own object, wherever an id is also allowed; the id in canonical form is the
    other's."""
    wrong: list[str] = []
    async with task_world(wireguard_address="127.0.0.1:0") as (world, _):
        for parameter, path in ID_OR_NAME.items():
            result = await _new(world, parameter, f"one-{parameter}")
            two = await _new(world, parameter, UUID(result).hex)
            for text, expected in (
                (UUID(result).hex, two),
                (UUID(result).hex.upper(), two),
                (result, result),
                (two, two),
            ):
                match = (await world.get(f"{path}/{text}")).json()
                if match.get("id") != expected:
                    wrong.append(f"{parameter} {text}: {match}")
    assert not wrong, "\n".join(wrong)


async def test_group_named_like_an_id() -> None:
    """Names of groups are longer than ids: the id takes precedence, and the name matches if no object has it as its
    id."""
    async with running_coderd(first_user=True) as world:
        result = await _new(world, "group", "one")
        two = await _new(world, "group", result)
        lonely = await _new(world, "group", str(IDENTITY))
        for text, expected in (
            (result, result),
            (two, two),
            (str(IDENTITY), lonely),
            ("one", result),
            (UUID(result).hex, None),
        ):
            match = await world.ctx.db.read(find_group, text)
            assert (str(match.id) if match else None) == expected, text


async def _new(world: World, parameter: str, name: str) -> str:
    bodies: dict[str, tuple[str, dict[str, Any]]] = {
        "organization": ("/api/v2/organizations", {"name": name}),
        "group": (f"/api/v2/organizations/{world.organization_id}/groups", {"name": name}),
        "client": (ID_OR_NAME["client"], {"name": name, "public_key": base64.b64encode(os.urandom(32)).decode()}),
        "proxy": (ID_OR_NAME["proxy"], {"name": name, "display_name": "", "icon": "/emojis/1f310.png"}),
    }
    if parameter == "user":
        return (await world.member(name))[0]
    if parameter == "task":
        return str((await new_task(world, name=name))["id"])
    path, body = bodies[parameter]
    answer = await world.post(path, body)
    assert answer.status_code in {200, 201}, answer.text
    created = answer.json()
    return str(created.get("proxy", created.get("client", created))["id"])


async def test_case_folding_of_non_ascii_names() -> None:
    """Postgres' lower() and ours differ beyond ASCII: one of them must convert both sides of a comparison."""
    async with running_coderd(first_user=True) as world:
        body = {
            "email": "\u00c4DA@b.c",
            "username": "ada",
            "password": FIRST_USER["password"],
            "organization_ids": [world.organization_id],
        }
        assert (await world.post("/api/v2/users", body)).status_code == 201
        login = {"email": body["email"], "password": body["password"]}
        assert (await world.post("/api/v2/users/login", login, token="")).status_code == 201
        world.client.cookies.clear()
        template = await new_template(world, display_name="\u00dcber alles")
        for query in ("display_name:\u00dcber", 'exact_display_name:"\u00dcber alles"'):
            result = (await world.get("/api/v2/templates", params={"q": query})).json()
            assert [item["id"] for item in result] == [template["id"]], query


def test_queries_lower_case_in_sql() -> None:
    for path in (ROOT / "coder" / "coderd" / "store").rglob("*.py"):
        assert ".lower()" not in path.read_text(), f"{path}: use func.lower on both sides"
