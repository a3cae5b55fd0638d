"""`coder templates init`, `create` and `push`: an example, or a directory, becomes a template."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import quote

from coder.api.people.organizations import Organization
from coder.api.site.deployment import UploadResponse
from coder.api.templates.template_versions import TemplateVersion, TemplateVersionVariable
from coder.api.templates.templates import Template
from coder.base.errors import CoderError
from coder.base.json_types import JsonObject
from coder.base.quoted import quoted
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.organization_choice import organization_of
from coder.cli.core.value_text import milliseconds
from coder.cli.declarations.templates.push import (
    CREATE,
    INIT,
    PUSH,
    TemplatesCreateOptions,
    TemplatesInitOptions,
    TemplatesPushOptions,
)
from coder.cli.provisioning.no_provisioner import handle_no_provisioner
from coder.cli.templates.builder import asks_builder, print_next_step, run_builder
from coder.cli.templates.ended_rollouts import note_ended_rollout
from coder.cli.templates.examples import examples, unpack_example
from coder.cli.templates.push_source import source_of
from coder.cli.templates.template_variables import variable_values
from coder.cli.ui.choices import select
from coder.cli.ui.chooser import Choice
from coder.cli.ui.output import api_time, ask, say
from coder.cli.ui.progress import watch_job
from coder.cli.workspaces.parameters import pairs
from coder.client.answers import read
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError


@implements(INIT)
def _init(invocation: Invocation[TemplatesInitOptions]) -> int:
    """Write a bundled example, which works without a server: the examples are package data; or a composed template."""
    if asks_builder(invocation.options):
        return run_builder(invocation)
    known = examples()
    ident = invocation.options.id
    target = Path(invocation.args[0]) if invocation.args else None
    if not ident and target is not None and target.name in known:
        ident = target.name  # `templates init local-process` names both the example and the directory
    if not ident:
        choices = [Choice(name, name, example.description) for name, example in known.items()]
        ident = select("Choose a template:", choices, default=next(iter(known)))
    if ident not in known:  # the answer of the prompt
        raise CoderError("no_example", f"template {quoted(ident)} not found", f"Known: {', '.join(known)}")
    directory = target or Path(ident)
    unpack_example(ident, directory)
    print_next_step(ident, directory)
    return 0


@implements(CREATE)
@implements(PUSH)
def _push(invocation: Invocation[TemplatesPushOptions]) -> int:
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    source = source_of(invocation)
    name = invocation.args[0] if invocation.args else source.name()
    if len(name) > 32:
        raise CoderError("bad_name", "Template name must be no more than 32 characters", "Choose a shorter one.")
    template = _find_template(client, organization, name)
    tags = _tags(invocation, client, template)
    archive = source.archive(invocation, client)
    inputs = {"tags": tags, "values": variable_values(invocation, source.path)}
    version = _create_version(invocation, client, organization, template, archive, inputs)
    _finish_push(invocation, client, organization, name, template, version)
    return 0


def _find_template(client: BlockingClient, organization: Organization, name: str) -> Template | None:
    try:
        return read(client.request("GET", f"/api/v2/organizations/{organization.id}/templates/{quote(name)}"), Template)
    except HttpError as error:
        if error.status == 404:
            return None
        raise


def _create_version(
    invocation: Invocation[TemplatesPushOptions],
    client: BlockingClient,
    organization: Organization,
    template: Template | None,
    archive: bytes,
    inputs: dict[str, dict[str, str]],
) -> TemplateVersion:
    """Upload and import a version, printing the import's log; prompt for missing variables and retry."""
    kind = "application/zip" if archive[:4] == b"PK\x03\x04" else "application/x-tar"
    answer = client.request("POST", "/api/v2/files", body=archive, headers=(("Content-Type", kind),))
    values = dict(inputs["values"])
    body: JsonObject = {
        "storage_method": "file",
        "file_id": read(answer, UploadResponse).hash,
        "provisioner": "terraform" if not invocation.options.test_provisioner else invocation.options.test_provisioner,
        "tags": inputs["tags"],
        "message": invocation.options.message or "Uploaded from the CLI",
    }
    if invocation.options.name:
        body["name"] = invocation.options.name
    if template is not None:
        body["template_id"] = str(template.id)
    while True:
        body["user_variable_values"] = [{"name": key, "value": value} for key, value in values.items()]
        path = f"/api/v2/organizations/{organization.id}/templateversions"
        version = read(client.request("POST", path, json=body, expect=(201,)), TemplateVersion)
        path = f"/api/v2/templateversions/{version.id}"
        handle_no_provisioner(invocation, client, version, f"{path}/cancel")
        try:
            return watch_job(client, path, TemplateVersion)
        except CoderError:
            missing = _missing_variables(client, version, values)
            if not missing or invocation.options.yes:
                raise
            values |= {item.name: ask(f"{item.name} ({item.description}):") for item in missing}
            body.pop("name", None)


def _missing_variables(
    client: BlockingClient, version: TemplateVersion, values: dict[str, str]
) -> list[TemplateVersionVariable]:
    path = f"/api/v2/templateversions/{version.id}"
    if read(client.request("GET", path), TemplateVersion).job.error_code != "REQUIRED_TEMPLATE_VARIABLES":
        return []
    listed = read(client.request("GET", f"{path}/variables"), list[TemplateVersionVariable])
    return [item for item in listed if item.required and item.name not in values]


def _tags(
    invocation: Invocation[TemplatesPushOptions], client: BlockingClient, template: Template | None
) -> dict[str, str]:
    """Return and print the requested tags, or those of the active version."""
    requested = invocation.options.provisioner_tag
    tags: dict[str, str] = {}
    if requested and requested != ("-",):
        tags = pairs(requested, "provisioner-tag")
    elif not requested and template is not None:
        say("Re-using provisioner tags from the active template version.")
        say("Tip: You can override these tags by passing --provisioner-tag; a single - removes all of them.")
        active = read(client.request("GET", f"/api/v2/templateversions/{template.active_version_id}"), TemplateVersion)
        tags = {key: value for key, value in active.job.tags.items() if key != "owner" and value}
    say("Provisioner tags: " + (" ".join(f"{key}={tags[key]}" for key in sorted(tags)) or "<none>"))
    return tags


def _finish_push(
    invocation: Invocation[TemplatesPushOptions],
    client: BlockingClient,
    organization: Organization,
    name: str,
    template: Template | None,
    version: TemplateVersion,
) -> None:
    if template is None:
        body = {"name": name, "template_version_id": version.id, **_settings(invocation)}
        client.request("POST", f"/api/v2/organizations/{organization.id}/templates", json=body, expect=(201,))
        sys.stdout.write(f"The {name} template has been created! Developers can provision a workspace with it:\n\n")
        sys.stdout.write(f"  coder create --template={name} [workspace name]\n\n")
        return
    if invocation.options.activate:
        with note_ended_rollout(client, template):
            client.request("PATCH", f"/api/v2/templates/{template.id}/versions", json={"id": version.id})
    sys.stdout.write(f"Updated version at {api_time(version.created_at)}!\n")


def _settings(invocation: Invocation[TemplatesPushOptions]) -> JsonObject:
    settings: JsonObject = {}
    options = invocation.options
    if isinstance(options, TemplatesCreateOptions):
        times = {
            "default_ttl_ms": options.default_ttl,
            "failure_ttl_ms": options.failure_ttl,
            "dormant_ttl_ms": options.dormancy,
            "delete_ttl_ms": options.deletion,
        }
        settings |= {key: milliseconds(value) for key, value in times.items() if value}
    if options.private:
        settings["disable_everyone_group_access"] = True
    if options.require_active_version:
        settings["require_active_version"] = True
    return settings
