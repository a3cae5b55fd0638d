"""Template variables of dry runs: only callers who may create versions of the template override them."""

from __future__ import annotations

from uuid import UUID

from coder.coderd.store.templates import template_versions as store
from tests.kit.provisioners.scripted_provisioner import Answers, ended, new_template, new_version, working_daemon
from tests.kit.server.server_in_process import World, running_coderd

OURS, THEIRS = "https://cloud.example", "https://evil.example"
OVERRIDES = {"owner", "template-admin", "listed-admin", "author-key"}
IGNORED = {"member", "listed-user", "starter-key"}


async def _callers(world: World) -> tuple[dict[str, str], dict[str, str]]:
    """Return tokens by caller, and the template's access list."""
    tokens, listed = {"owner": world.token}, {}
    _, tokens["member"] = await world.member("member")
    _, tokens["template-admin"] = await world.member("template-admin", ["template-admin"])
    for role in ("admin", "use"):
        name = "listed-admin" if role == "admin" else "listed-user"
        user_id, tokens[name] = await world.member(name)
        listed[user_id] = role
    keys = {"author-key": ["coder:templates.author"], "starter-key": ["template:read", "template:update"]}
    for name, scopes in keys.items():
        body = {"scopes": [*scopes, "workspace:create", "organization:read", "user:read"]}
        tokens[name] = (await world.post("/api/v2/users/me/keys/tokens", body)).json()["key"]
    return tokens, listed


async def test_dry_run_variables_require_create() -> None:
    answers, seen = Answers(), {}
    async with running_coderd(first_user=True) as world, working_daemon(world, answers):
        tokens, listed = await _callers(world)
        template = await new_template(world)
        acl = await world.patch(f"/api/v2/templates/{template['id']}/acl", {"user_perms": listed})
        assert acl.status_code == 200, acl.text
        version = template["active_version_id"]
        await ended(world, f"/api/v2/templateversions/{version}")
        row = store.VariableRow(UUID(version), "backend", "", "string", OURS, OURS, required=False, sensitive=False)
        await world.ctx.db.run(store.replace_variables, UUID(version), [row])
        path = f"/api/v2/templateversions/{version}/dry-run"
        body = {"workspace_name": "dry", "user_variable_values": [{"name": "backend", "value": THEIRS}]}
        for caller, token in tokens.items():
            started = await world.post(path, body, token=token)
            assert started.status_code == 201, f"{caller}: {started.text}"
            await ended(world, f"{path}/{started.json()['id']}")
            (value,) = answers.seen[-1].template_dry_run.variable_values
            seen[caller] = value.value
    assert seen == dict.fromkeys(OVERRIDES, THEIRS) | dict.fromkeys(IGNORED, OURS)


async def test_dry_run_variables_without_template() -> None:
    """A version without a template belongs to the authors of its organization."""
    answers = Answers()
    async with running_coderd(first_user=True) as world, working_daemon(world, answers):
        version = (await new_version(world))["id"]
        await ended(world, f"/api/v2/templateversions/{version}")
        row = store.VariableRow(UUID(version), "backend", "", "string", OURS, OURS, required=False, sensitive=False)
        await world.ctx.db.run(store.replace_variables, UUID(version), [row])
        path = f"/api/v2/templateversions/{version}/dry-run"
        body = {"workspace_name": "dry", "user_variable_values": [{"name": "backend", "value": THEIRS}]}
        started = await world.post(path, body)
        await ended(world, f"{path}/{started.json()['id']}")
        (value,) = answers.seen[-1].template_dry_run.variable_values
        assert value.value == THEIRS
        _, member = await world.member("member")
        assert (await world.post(path, body, token=member)).status_code == 404
