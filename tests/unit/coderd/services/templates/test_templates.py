"""Templates and their versions, as authors and members use them."""

from __future__ import annotations

import io
import tarfile
from typing import Any

from coder.coderd.services.templates.examples import examples, split_front_matter
from coder.coderd.services.templates.template_sources import unpack_untrusted
from coder.domain.hcl.parser import parse_file_untrusted
from coder.domain.rendering.module_scope import RenderRequest
from coder.domain.rendering.parameters import render
from coder.rpc.proto import provisioner_pb2
from tests.kit.api.api_description import check, check_list
from tests.kit.provisioners.scripted_provisioner import (
    Answers,
    ended,
    new_template,
    new_version,
    upload,
    working_daemon,
)
from tests.kit.recordings.exchange_replay import load_area
from tests.kit.server.server_in_process import World, running_coderd

ORG = "/api/v2/organizations/default"
UNKNOWN_ID = "11111111-1111-4111-8111-111111111111"


async def imported(world: World, **body: Any) -> Any:
    """Create a version and complete its import."""
    version = await new_version(world, **body)
    return await ended(world, f"/api/v2/templateversions/{version['id']}")


async def test_template_lifecycle() -> None:
    async with running_coderd(first_user=True) as world:
        template = await new_template(world, "full", display_name="Full one", default_ttl_ms=3600000)
        check("Template", template)
        path = f"/api/v2/templates/{template['id']}"
        assert template["autostart_requirement"]["days_of_week"][0] == "monday"
        assert (await world.get(path)).json() == template
        assert (await world.get(f"{ORG}/templates/FULL")).json() == template
        changed = (await world.patch(path, {"name": "full2", "description": "new", "cors_behavior": "passthru"})).json()
        assert (changed["name"], changed["description"], changed["cors_behavior"]) == ("full2", "new", "passthru")
        assert changed["default_ttl_ms"] == 3600000
        users = (await world.get(f"{path}/daus")).json()
        check("DAUsResponse", users)
        assert len(users["entries"]) == 61
        assert (await world.delete(path)).json() == {"message": "Template has been deleted!"}
        assert (await world.get(path)).status_code == 404
        again = await new_template(world, "full2")
        assert again["id"] != template["id"]
        listed = (await world.get("/api/v2/templates?q=deleted:true")).json()
        assert [item["id"] for item in listed] == [template["id"]]


async def test_build_of_unfinished_import() -> None:
    """Upstream's 406, with the message as detail; the version can be built once its import is over."""
    async with running_coderd(first_user=True) as world:
        template = await new_template(world, "early")
        wanted = {"name": "w", "template_id": template["id"]}
        answer = await world.post("/api/v2/users/me/workspaces", wanted)
        message = "The provided template version is pending. Wait for it to complete importing!"
        assert (answer.status_code, answer.json()) == (406, {"message": message, "detail": message})
        async with working_daemon(world):
            await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
            assert (await world.post("/api/v2/users/me/workspaces", wanted)).status_code == 201


REFUSED_TEMPLATES: list[tuple[dict[str, Any], int, str]] = [
    ({"name": ""}, 400, "name"),
    ({"name": "Bad Name"}, 400, "name"),
    ({"name": "new"}, 400, "name"),
    ({"name": "a" * 33}, 400, "name"),
    ({"display_name": " x"}, 400, "display_name"),
    ({"name": "TAKEN"}, 409, "name"),
    ({"template_version_id": UNKNOWN_ID}, 404, "template_version_id"),
    ({"default_ttl_ms": -1}, 400, "default_ttl_ms"),
    ({"activity_bump_ms": -1}, 400, "activity_bump_ms"),
    ({"cors_behavior": "zzz"}, 400, "cors_behavior"),
    ({"max_port_share_level": "invalid"}, 400, "max_port_share_level"),
]


async def test_invalid_templates_rejected() -> None:
    async with running_coderd(first_user=True) as world:
        await new_template(world, "taken")
        version = await new_version(world)
        for body, status, field in REFUSED_TEMPLATES:
            answer = await world.post(f"{ORG}/templates", {"name": "x", "template_version_id": version["id"], **body})
            assert answer.status_code == status, f"{body}: {answer.text}"
            assert answer.json()["validations"][0]["field"] == field, body


async def test_version_creates_one_template() -> None:
    async with running_coderd(first_user=True) as world:
        template = await new_template(world)
        body = {"name": "second", "template_version_id": template["active_version_id"]}
        answer = await world.post(f"{ORG}/templates", body)
        assert answer.status_code == 400
        assert "already part of a template" in answer.json()["message"]


async def test_template_permissions() -> None:
    async with running_coderd(first_user=True) as world:
        template = await new_template(world, "open")
        hidden = await new_template(world, "hidden", disable_everyone_group_access=True)
        user_id, member = await world.member("alice")
        listed = (await world.get("/api/v2/templates", token=member)).json()
        assert [item["name"] for item in listed] == ["open"]
        path = f"/api/v2/templates/{template['id']}"
        assert (await world.get(path, token=member)).status_code == 200
        assert (await world.patch(path, {"description": "x"}, token=member)).status_code == 403
        assert (await world.delete(path, token=member)).status_code == 403
        assert (await world.delete(f"/api/v2/templates/{hidden['id']}", token=member)).status_code == 404
        file_id = await upload(world, {"main.tf": ""})
        body = {"storage_method": "file", "provisioner": "echo", "tags": {}, "file_id": file_id}
        assert (await world.post(f"{ORG}/templateversions", body, token=member)).status_code == 404
        assert (await world.get("/api/v2/templates/examples", token=member)).status_code == 404
        version = f"/api/v2/templateversions/{template['active_version_id']}"
        assert (await world.get(version, token=member)).status_code == 200
        assert (await world.post(f"{version}/archive", token=member)).status_code == 404
        assert (await world.patch(f"{version}/cancel", token=member)).status_code == 403
        assert (await world.get(f"{ORG}/provisionerjobs", token=member)).status_code == 404
        assert (await world.get(f"{ORG}/provisionerdaemons", token=member)).status_code == 404
        changed = await world.patch(f"/api/v2/templates/{hidden['id']}/acl", {"user_perms": {user_id: "use"}})
        assert changed.status_code == 200, changed.text
        assert (await world.get(f"/api/v2/templates/{hidden['id']}", token=member)).status_code == 200
        acl = (await world.get(f"/api/v2/templates/{hidden['id']}/acl")).json()
        check("TemplateACL", acl)
        assert [(user["username"], user["role"]) for user in acl["users"]] == [("alice", "use")]
        check("ACLAvailable", (await world.get(f"{path}/acl/available")).json())
        for text, people in (("ALI", ["alice"]), ("no-such-user", [])):
            offered = (await world.get(f"{path}/acl/available?q={text}")).json()
            assert ([user["username"] for user in offered["users"]], offered["groups"]) == (people, [])
        _, admin = await world.member("tadm", ["template-admin"])
        assert (await world.patch(path, {"description": "x"}, token=admin)).status_code == 200


SEARCHES: list[tuple[str, list[str]]] = [
    ("", ["alpha", "beta"]),
    ("alph", ["alpha"]),
    ("display_name:one", ["beta"]),
    ("name:bet", ["beta"]),
    ("exact_name:alpha", ["alpha"]),
    ("author:me", ["alpha", "beta"]),
    ("author:unknown", []),
    ("organization:coder deprecated:false", ["alpha", "beta"]),
    ("deprecated:true", []),
    ("has_external_agent:true", ["beta"]),
    ("has-ai-task:true", []),
]


async def test_search() -> None:
    async with running_coderd(first_user=True) as world:

        def plan(job: Any) -> dict[str, Any]:
            return {"has_external_agents": b"external" in job.template_source_archive}

        async with working_daemon(world, Answers(import_=plan)):
            for name, display, text in (("alpha", "", "plain"), ("beta", "Number One", "external")):
                version = await imported(world, file_id=await upload(world, {"main.tf": text}))
                body = {"name": name, "display_name": display, "template_version_id": version["id"]}
                assert (await world.post(f"{ORG}/templates", body)).status_code == 201
        for path in ("/api/v2/templates", f"{ORG}/templates"):
            for query, names in SEARCHES:
                answer = await world.get(path, params={"q": query})
                assert [item["name"] for item in answer.json()] == names, query


async def test_search_reports_every_error() -> None:
    async with running_coderd(first_user=True) as world:
        answer = await world.get("/api/v2/templates", params={"q": "deprecated:maybe colour:red"})
        assert answer.status_code == 400
        assert [item["field"] for item in answer.json()["validations"]] == ["deprecated", "colour"]


async def test_list_template_versions() -> None:
    async with running_coderd(first_user=True) as world, working_daemon(world):
        template = await new_template(world)
        first = template["active_version_id"]
        path = f"/api/v2/templates/{template['id']}/versions"
        second = await imported(world, template_id=template["id"], name="v2.0.1-rc.1", message="second")
        check("TemplateVersion", second)
        listed = (await world.get(path)).json()
        assert [item["id"] for item in listed] == [first, second["id"]]
        assert [i["id"] for i in (await world.get(f"{path}?limit=1&offset=1")).json()] == [second["id"]]
        assert [i["id"] for i in (await world.get(f"{path}?after_id={first}")).json()] == [second["id"]]
        assert (await world.get(f"{path}?after_id={UNKNOWN_ID}")).status_code == 400
        assert (await world.get(f"{path}/v2.0.1-rc.1")).json()["id"] == second["id"]
        assert (await world.get(f"{path}/none")).status_code == 404
        names = f"{ORG}/templates/tpl/versions"
        assert (await world.get(f"{names}/v2.0.1-rc.1/previous")).json()["id"] == first
        assert (await world.get(f"{names}/{listed[0]['name']}/previous")).status_code == 204
        renamed = await world.patch(f"/api/v2/templateversions/{second['id']}", {"name": listed[0]["name"]})
        assert renamed.status_code == 409
        taken = {
            "storage_method": "file",
            "provisioner": "echo",
            "tags": {},
            "template_id": template["id"],
            "name": "v2.0.1-rc.1",
            "file_id": await upload(world, {"a": "b"}),
        }
        assert (await world.post(f"{ORG}/templateversions", taken)).status_code == 409


async def test_promotion_and_archives() -> None:
    def plan(job: Any) -> dict[str, Any]:
        if b"broken" in job.template_source_archive:
            raise_duplicate = provisioner_pb2.RichParameter(name="twice")
            return {"rich_parameters": [raise_duplicate, raise_duplicate]}
        return {}

    async with running_coderd(first_user=True) as world, working_daemon(world, Answers(import_=plan)):
        template = await new_template(world)
        path = f"/api/v2/templates/{template['id']}/versions"
        good = await imported(world, template_id=template["id"], name="good")
        broken_file = await upload(world, {"main.tf": "broken"})
        broken = await imported(world, template_id=template["id"], name="broken", file_id=broken_file)
        assert broken["job"]["status"] == "failed"
        stray = await imported(world)
        for version_id, status in ((broken["id"], 403), (stray["id"], 400), (UNKNOWN_ID, 404), (good["id"], 200)):
            assert (await world.patch(path, {"id": version_id})).status_code == status
        assert (await world.patch(path, {})).status_code == 400
        archive = f"/api/v2/templateversions/{template['active_version_id']}"
        answer = await world.post(f"{archive}/archive")
        assert answer.json() == f'template version "{template["active_version_id"]}" archived'
        assert (await world.post(f"{archive}/archive")).status_code == 400
        assert (await world.patch(path, {"id": template["active_version_id"]})).status_code == 400
        assert (await world.post(f"{archive}/unarchive")).status_code == 200
        assert (await world.post(f"/api/v2/templateversions/{good['id']}/archive")).status_code == 500
        failed = (await world.post(f"{path}/archive", {"all": False})).json()
        assert failed["archived_ids"] == [broken["id"]]
        rest = (await world.post(f"{path}/archive", {"all": True})).json()
        assert rest["archived_ids"] == [template["active_version_id"]]
        assert (await world.post(f"{path}/archive", {"all": True})).json()["archived_ids"] is None
        assert [item["name"] for item in (await world.get(path)).json()] == ["good"]
        assert len((await world.get(f"{path}?include_archived=true")).json()) == 3


async def test_import_results() -> None:
    pb = provisioner_pb2

    def plan(job: Any) -> dict[str, Any]:
        region = pb.RichParameter(
            name="region",
            description="Where *it* runs",
            type="string",
            default_value="eu",
            order=2,
            form_type=pb.RADIO,
            options=[pb.RichParameterOption(name="Europe", value="eu")],
        )
        cpu = pb.RichParameter(
            name="cpu",
            type="number",
            order=1,
            validation_min=0,
            validation_max=8,
            validation_monotonic="increasing",
            form_type=pb.SLIDER,
        )
        small = pb.Preset(name="Small", default=True, parameters=[pb.PresetParameter(name="cpu", value="1")])
        big = pb.Preset(name="Big", prebuild=pb.Prebuild(instances=2))
        return {"rich_parameters": [region, cpu], "presets": [small, big]}

    async with running_coderd(first_user=True) as world:
        version = await new_version(world)
        path = f"/api/v2/templateversions/{version['id']}"
        assert (await world.get(f"{path}/rich-parameters")).status_code == 425
        assert (await world.get(f"{path}/resources")).status_code == 400
        async with working_daemon(world, Answers(import_=plan)):
            await ended(world, path)
        parameters = (await world.get(f"{path}/rich-parameters")).json()
        check_list("TemplateVersionParameter", parameters)
        cpu, region = parameters
        assert (cpu["validation_min"], cpu["validation_max"], cpu["form_type"]) == (0, 8, "slider")
        assert "validation_regex" not in cpu
        assert (region["description_plaintext"], region["form_type"]) == ("Where it runs", "radio")
        assert "validation_min" not in region
        presets = (await world.get(f"{path}/presets")).json()
        check_list("Preset", presets)
        assert [(item["Name"], item["DesiredPrebuildInstances"]) for item in presets] == [("Big", 2), ("Small", None)]
        assert (await world.get(f"{path}/external-auth")).json() == []


async def test_unconfigured_provider_fails_import() -> None:
    def plan(job: Any) -> dict[str, Any]:
        return {"external_auth_providers": [provisioner_pb2.ExternalAuthProviderResource(id="github")]}

    async with running_coderd(first_user=True) as world, working_daemon(world, Answers(import_=plan)):
        version = await imported(world)
        assert version["job"]["error"] == 'external auth provider "github" is not configured'


async def test_active_version_values_are_kept() -> None:
    async with running_coderd(first_user=True) as world:
        answers = Answers()
        async with working_daemon(world, answers):
            template = await new_template(world)
            await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
        from tests.kit.provisioners.scripted_provisioner import connected_daemon

        async with connected_daemon(world) as daemon:
            values = [{"name": "image", "value": "debian"}]
            second = await new_version(world, template_id=template["id"], user_variable_values=values)
            job = await daemon.acquire()
            variables = [
                provisioner_pb2.TemplateVariable(name="image", type="string", default_value="ubuntu"),
                provisioner_pb2.TemplateVariable(name="size", type="string", default_value="small"),
            ]
            await daemon.update(job, template_variables=variables)
            await daemon.complete_import(job)
            path = f"/api/v2/templates/{template['id']}/versions"
            assert (await world.patch(path, {"id": second["id"]})).status_code == 200
            await new_version(world, template_id=template["id"])
            job = await daemon.acquire()
            kept = [(item.name, item.value) for item in job.template_import.user_variable_values]
            assert kept == [("image", "debian")]


REFUSED_VERSIONS: list[tuple[dict[str, Any], int]] = [
    ({"name": "a b"}, 400),
    ({"provisioner": "cook"}, 400),
    ({"storage_method": "tape"}, 400),
    ({"file_id": None}, 400),
    ({"file_id": UNKNOWN_ID}, 404),
    ({"file_id": None, "example_id": "nope"}, 404),
    ({"example_id": "scratch"}, 400),
    ({"template_id": UNKNOWN_ID}, 404),
    ({"tags": {"": "x"}}, 400),
]


async def test_invalid_versions_rejected() -> None:
    async with running_coderd(first_user=True) as world:
        request = {
            "storage_method": "file",
            "provisioner": "echo",
            "tags": {},
            "file_id": await upload(world, {"main.tf": ""}),
        }
        for body, status in REFUSED_VERSIONS:
            answer = await world.post(f"{ORG}/templateversions", {**request, **body})
            assert answer.status_code == status, f"{body}: {answer.text}"


async def test_version_from_example() -> None:
    async with running_coderd(first_user=True) as world:
        listed = (await world.get("/api/v2/templates/examples")).json()
        check_list("TemplateExample", listed)
        assert {"docker", "externally-managed-workspace", "local-process", "scratch"} <= {item["id"] for item in listed}
        first = await new_version(world, example_id="scratch", provisioner="terraform")
        second = await new_version(world, example_id="scratch", provisioner="terraform")
        assert first["job"]["file_id"] == second["job"]["file_id"]
        archive = (await world.get(f"/api/v2/files/{first['job']['file_id']}")).content
        with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
            assert "main.tf" in opened.getnames()


async def test_dry_runs() -> None:
    async with running_coderd(first_user=True) as world:
        _, member = await world.member("alice")
        _, other = await world.member("bob")
        template = await new_template(world)
        path = f"/api/v2/templateversions/{template['active_version_id']}/dry-run"
        body = {"workspace_name": "dry", "rich_parameter_values": [{"name": "a", "value": "b"}]}
        assert (await world.post(path, body)).status_code == 412
        answers = Answers()
        async with working_daemon(world, answers):
            await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
            started = await world.post(path, body, token=member)
            assert started.status_code == 201
            check("ProvisionerJob", started.json())
            run = f"{path}/{started.json()['id']}"
            assert (await ended(world, run))["status"] == "succeeded"
        dry = answers.seen[-1].template_dry_run
        assert [(item.name, item.value) for item in dry.rich_parameter_values] == [("a", "b")]
        assert dry.metadata.workspace_name == "dry"
        resources = (await world.get(f"{run}/resources", token=member)).json()
        check_list("WorkspaceResource", resources)
        assert [item["name"] for item in resources] == ["box"]
        assert len((await world.get(f"{run}/logs")).json()) == 1
        assert (await world.get(f"{run}/matched-provisioners")).json()["count"] == 1
        assert (await world.get(run, token=other)).status_code == 403
        assert (await world.patch(f"{run}/cancel")).status_code == 400
        assert (await world.get(f"{path}/{UNKNOWN_ID}")).status_code == 404


async def test_queue_for_administrators() -> None:
    async with running_coderd(first_user=True) as world:
        waiting = [await new_version(world) for _ in range(2)]
        moon = await new_version(world, tags={"region": "moon"})
        async with working_daemon(world, Answers(), name="busy", tags={"region": "mars"}):
            for version in waiting:
                await ended(world, f"/api/v2/templateversions/{version['id']}")
        jobs = (await world.get(f"{ORG}/provisionerjobs")).json()
        check_list("ProvisionerJob", jobs)
        assert [job["status"] for job in jobs] == ["pending", "succeeded", "succeeded"]
        assert (jobs[0]["queue_position"], jobs[0]["available_workers"]) == (0, [])
        assert jobs[1]["worker_name"] == "busy"
        pending = (await world.get(f"{ORG}/provisionerjobs?status=pending")).json()
        assert [job["id"] for job in pending] == [moon["job"]["id"]]
        assert (await world.get(f"{ORG}/provisionerjobs/{moon['job']['id']}")).json() == pending[0]
        assert len((await world.get(f"{ORG}/provisionerjobs?limit=1")).json()) == 1
        assert len((await world.get(f"{ORG}/provisionerjobs?initiator=me")).json()) == 3
        for bad in ("status=zzz", "foo=1", "limit=-1", "tags=zzz"):
            assert (await world.get(f"{ORG}/provisionerjobs?{bad}")).status_code == 400
        assert (await world.get(f"{ORG}/provisionerjobs/{UNKNOWN_ID}")).status_code == 404


def test_examples_match_recording_plus_ours() -> None:
    (line,) = (line for line in load_area("templates") if line["note"] == "starter templates")
    recorded = {item["id"].replace("<hostname>", "vm"): item for item in line["response"]["body"]}
    bundled = {example.id: example for example in examples()}
    assert set(bundled) == {*recorded, "azure-windows", "externally-managed-workspace", "local-process"}
    for name, recorded_example in recorded.items():
        found = bundled[name]
        tags = [tag.replace("<hostname>", "vm") for tag in recorded_example["tags"]]
        assert (found.name, found.icon, list(found.tags)) == (
            recorded_example["name"],
            recorded_example["icon"],
            tags,
        ), name
        assert found.description and found.markdown, name


def test_examples_have_page_content() -> None:
    for example in examples():
        assert example.name and example.description and example.markdown.startswith("# "), example.id
        files = unpack_untrusted(io.BytesIO(example.archive))
        for name in files:
            if name.endswith(".tf"):
                parse_file_untrusted(files[name].decode(), name)
        rendered = render(files, RenderRequest(owner={"name": "ada", "full_name": "Ada", "id": UNKNOWN_ID}))
        assert rendered.diagnostics == []
        assert [item["name"] for item in rendered.parameters if item["diagnostics"]] == [], example.id
    assert split_front_matter("no matter") == ({}, "no matter")
