"""The builder's routes: shapes, rights, the switch that disables it, and templates created by it."""

from __future__ import annotations

import csv
import io
import tarfile
import threading
from typing import Any

import pytest

from coder.coderd.services.templates.builder import catalogue, template_builder
from tests.conformance.shapes import operation_of, problems_of
from tests.kit.api.api_description import check
from tests.kit.paths import DATA
from tests.kit.provisioners.scripted_provisioner import ended, working_daemon
from tests.kit.server.server_in_process import running_coderd

API = "/api/v2/templatebuilder"
SCRATCH: dict[str, Any] = {"base_template_id": "scratch", "modules": [{"id": "zed", "variables": {"folder": "/src"}}]}
SESSION = {"session_id": "s", "event_type": "wizard_entry"}
ROLES = "admin auditor template-admin user-admin workspace-creation-ban".split()


def problems(path: str, body: Any) -> list[str] | None:
    """Return how a body differs from the recorded shape. The documented type of a default is an object; none is."""
    operation = operation_of("GET", path)
    return None if operation is None else problems_of(operation, body)


def unpacked(data: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = ((member.name, archive.extractfile(member)) for member in archive)
        return {name: file.read().decode() for name, file in files if file is not None}


async def test_catalogue_has_documented_shapes() -> None:
    async with running_coderd(first_user=True) as world:
        bases = (await world.get(f"{API}/bases")).json()
        assert problems(f"{API}/bases", bases) == []
        modules = (await world.get(f"{API}/modules")).json()
        assert problems(f"{API}/modules", modules) == []
        windows = (await world.get(f"{API}/modules?base=aws-windows")).json()["modules"]
        assert {item["id"] for item in windows} < {item["id"] for item in modules["modules"]}
        assert all("windows" in item["compatible_os"] for item in windows)
        unknown = await world.get(f"{API}/modules?base=mainframe")
        assert (unknown.status_code, unknown.json()["validations"][0]["field"]) == (400, "base")
        port = next(
            variable
            for module in modules["modules"]
            for variable in module["variables"]
            if (module["id"], variable["name"]) == ("code-server", "port")
        )
        assert (port["type"], port["default"]) == ("number", 13337)


async def test_first_caller_reads_catalogue_in_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing the examples takes half a second, in which the server must serve others."""
    readers: list[threading.Thread] = []
    read = template_builder._read_catalogue

    def noted() -> None:
        readers.append(threading.current_thread())
        read()

    monkeypatch.setattr(template_builder, "_read_catalogue", noted)
    catalogue.bases.cache_clear()
    async with running_coderd(first_user=True) as world:
        for path in ("bases", "modules"):
            assert (await world.get(f"{API}/{path}")).status_code == 200
    assert len(readers) == 1 and readers[0] is not threading.main_thread()


async def test_compose_answers_tar() -> None:
    async with running_coderd(first_user=True) as world:
        answer = await world.post(f"{API}/compose", SCRATCH)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-tar")
        files = unpacked(answer.content)
        assert files.keys() == {"README.md", "main.tf", "modules/zed/README.md", "modules/zed/main.tf"}
        assert 'module "zed" {' in files["main.tf"]
        again = await world.post(f"{API}/compose", SCRATCH)
        assert again.content == answer.content, "a composition is stored once, however often it is uploaded"
        wrong = {"base_template_id": "mainframe", "modules": [{"id": "abacus"}]}
        refused = await world.post(f"{API}/compose", wrong)
        fields = [item["field"] for item in refused.json()["validations"]]
        assert (refused.status_code, fields) == (400, ["base_template_id", "modules.abacus"])


async def test_composed_template_is_created_and_imported() -> None:
    async with running_coderd(first_user=True) as world:
        body = {
            **SCRATCH,
            "organization_id": str(world.organization_id),
            "name": "built",
            "display_name": "Built",
            "icon": "/icon/zed.svg",
            "provisioner_tags": {"cluster": "a"},
        }
        answer = await world.post(f"{API}/compose/template", body)
        assert answer.status_code == 201, answer.text
        check("TemplateBuilderCreateTemplateResponse", answer.json())
        assert await world.left_an_entry(answer)
        template = answer.json()["template"]
        assert (template["name"], template["display_name"], template["icon"]) == ("built", "Built", "/icon/zed.svg")
        path = f"/api/v2/templateversions/{template['active_version_id']}"
        version = (await world.get(path)).json()
        assert version["job"]["tags"]["cluster"] == "a"
        stored = await world.get(f"/api/v2/files/{version['job']['file_id']}")
        assert 'module "zed" {' in unpacked(stored.content)["main.tf"]
        async with working_daemon(world, tags={"cluster": "a"}):
            assert (await ended(world, path))["job"]["status"] == "succeeded"
        taken = await world.post(f"{API}/compose/template", body)
        assert (taken.status_code, taken.json()["validations"][0]["field"]) == (409, "name")


WRONG: list[tuple[dict[str, Any], int, list[str]]] = [
    ({"name": "Bad Name"}, 400, ["name"]),
    ({"base_template_id": ""}, 400, ["base_template_id"]),
    ({"organization_id": "11111111-1111-4111-8111-111111111111"}, 404, []),
    ({"modules": [{"id": "git-clone"}]}, 400, ["modules.git-clone.url"]),
]


async def test_wrong_template_leaves_nothing() -> None:
    async with running_coderd(first_user=True) as world:
        for change, status, fields in WRONG:
            body = {**SCRATCH, "organization_id": str(world.organization_id), "name": "built", **change}
            answer = await world.post(f"{API}/compose/template", body)
            named = [item["field"] for item in answer.json().get("validations", [])]
            assert (answer.status_code, named) == (status, fields)
        assert (await world.get("/api/v2/templates")).json() == []


async def test_rights_are_those_of_creation() -> None:
    """The recorded matrix for reading; to compose, a caller may also create templates."""
    with (DATA / "api" / "recorded" / "permissions.tsv").open() as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["path"].startswith(API)]
    assert len(rows) == 2
    async with running_coderd(first_user=True) as world:
        organization = str(world.organization_id)
        tokens = {"anonymous": "", "owner": world.token}
        _, tokens["member"] = await world.member("plain")
        for role in ("auditor", "template-admin", "user-admin"):
            _, tokens[role] = await world.member(f"site-{role}", [role])
        for role in ROLES:
            user_id, tokens[f"organization-{role}"] = await world.member(f"org-{role}")
            roles = {"roles": [f"organization-{role}"]}
            await world.put(f"/api/v2/organizations/default/members/{user_id}/roles", roles)
        for row in rows:
            actual = {name: str((await world.get(row["path"], token=tokens[name])).status_code) for name in tokens}
            assert actual == {name: row[name] for name in tokens}
        creates = {"owner", "template-admin", "organization-admin", "organization-template-admin"}
        for name, token in tokens.items():
            readable = rows[0][name] == "200"
            expected = 200 if name in creates else 403 if readable else int(rows[0][name])
            assert (await world.post(f"{API}/compose", SCRATCH, token=token)).status_code == expected, name
            body = {**SCRATCH, "organization_id": organization, "name": f"of-{name}"[:32]}
            created = await world.post(f"{API}/compose/template", body, token=token)
            assert created.status_code == (201 if expected == 200 else expected), name


async def test_disabled_builder_refuses_everything() -> None:
    async with running_coderd(first_user=True, disable_template_builder=True) as world:
        body = {**SCRATCH, "organization_id": str(world.organization_id), "name": "built"}
        answers = [
            await world.get(f"{API}/bases"),
            await world.get(f"{API}/modules"),
            await world.post(f"{API}/compose", SCRATCH),
            await world.post(f"{API}/compose/template", body),
            await world.post(f"{API}/sessions", SESSION),
        ]
        assert {(item.status_code, item.json()["message"]) for item in answers} == {
            (403, "The template builder is disabled.")
        }
        config = (await world.get("/api/v2/deployment/config")).json()["config"]
        assert config["template_builder"]["disabled"] is True


async def test_registry_is_used_and_shown() -> None:
    async with running_coderd(first_user=True, template_builder_registry_url="https://registry.example.com") as world:
        modules = (await world.get(f"{API}/modules")).json()["modules"]
        assert {item["version"] for item in modules if item["id"] == "zed"} == {"1.1.4"}
        text = unpacked((await world.post(f"{API}/compose", SCRATCH)).content)["main.tf"]
        assert '"registry.example.com/coder/zed/coder"' in text


async def test_session_events_are_accepted() -> None:
    async with running_coderd(first_user=True) as world:
        assert (await world.post(f"{API}/sessions", SESSION)).status_code == 204
        complete = {**SESSION, "event_type": "compose_completion", "module_ids": ["zed"], "success": True}
        assert (await world.post(f"{API}/sessions", {**complete, "duration_seconds": 1.5})).status_code == 204
        wrong = await world.post(f"{API}/sessions", {"session_id": "", "event_type": "x"})
        assert {item["field"] for item in wrong.json()["validations"]} == {"session_id", "event_type"}
        assert (await world.post(f"{API}/other", {})).status_code == 404
