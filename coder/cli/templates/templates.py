"""`coder templates`: create from an example, push a directory, list, delete."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.cli.core import session
from coder.cli.core.command import ORG, YES, Command, Invocation, column_option, output_option
from coder.cli.provisioning.no_provisioner import WAIT, handle_no_provisioner
from coder.cli.templates.examples import example_ids
from coder.cli.templates.push_source import source_of
from coder.cli.templates.template_variables import variable_values
from coder.cli.ui.output import Row, api_time, ask, confirm, print_rows, say
from coder.cli.ui.progress import watch_job
from coder.cli.workspaces.parameters import pairs
from coder.client.answers import read, read_rows
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError

if TYPE_CHECKING:
    from coder.api.people.organizations import Organization
    from coder.api.templates.template_versions import TemplateVersion, TemplateVersionVariable
    from coder.api.templates.templates import Template

LIST_COLUMNS = (
    "name", "created at", "last updated", "organization id", "organization name", "provisioner", "active version id",
    "used by", "default ttl",
)  # fmt: skip


def organization_of(invocation: Invocation, client: BlockingClient) -> Organization:
    """Return the organization of the flag or the saved file, else the only one. Raise CoderError for several."""
    return find_organization(invocation, client)[0]


def find_organization(invocation: Invocation, client: BlockingClient) -> tuple[Organization, object]:
    """Return the result of `organization_of` with the server's answer."""
    from coder.api.people.organizations import Organization

    chosen = invocation["org"] or session.read_file(session.config_dir(invocation), "organization")
    if chosen:
        return named_organization(client, chosen)
    organizations = read_rows(client.request("GET", "/api/v2/users/me/organizations"), Organization)
    if not organizations:
        raise CoderError("no_organization", "you are not a member of any organization", "Ask an administrator.")
    if len(organizations) > 1:
        names = ", ".join(sorted(item.name for item, _ in organizations))
        raise CoderError(
            "organization", f"you are a member of several organizations: choose one with --org (one of: {names})"
        )
    return organizations[0]


def named_organization(client: BlockingClient, name: str) -> tuple[Organization, object]:
    """Return the organization with this name or id, with the server's answer."""
    from coder.api.people.organizations import Organization

    answer = client.request("GET", f"/api/v2/organizations/{quote(name, safe='')}")
    return read(answer, Organization), answer.json()


def _list(invocation: Invocation) -> int:
    from coder.api.templates.templates import Template

    client = session.client(invocation)
    templates = read_rows(client.request("GET", "/api/v2/templates"), Template)
    if invocation["org"]:
        organization = organization_of(invocation, client)
        templates = [template for template in templates if template[0].organization_id == organization.id]
    if not templates and invocation["output"] != "json":
        say("No templates found! Create one:\n\n  coder templates push\n")
        return 0
    print_rows(
        invocation,
        lambda: [_row(template) for template, _ in templates],
        lambda: [{"Template": raw} for _, raw in templates],
    )
    return 0


def _row(template: Template) -> Row:
    count = template.active_user_count
    users = "" if count < 0 else f"{count} developer{'' if count == 1 else 's'}"
    return {
        "name": template.name,
        "created at": api_time(template.created_at),
        "last updated": api_time(template.updated_at)[:10],
        "organization id": template.organization_id,
        "organization name": template.organization_name,
        "provisioner": template.provisioner,
        "active version id": template.active_version_id,
        "used by": users,
        "default ttl": _ttl(template.default_ttl_ms),
    }


def _ttl(milliseconds: int) -> str:
    from coder.base.duration import format_duration

    return format_duration(timedelta(milliseconds=milliseconds)) if milliseconds else ""


def _init(invocation: Invocation) -> int:
    """Write a bundled example. This works without a server: the examples are package data."""
    from coder.cli.templates.examples import examples, unpack_example

    known = examples()
    ident = invocation["id"]
    target = Path(invocation.args[0]) if invocation.args else None
    if not ident and target is not None and target.name in known:
        ident = target.name  # `templates init local-process` names both the example and the directory
    if not ident:
        from coder.cli.ui.choices import Choice, select

        choices = [Choice(name, name, example.description) for name, example in known.items()]
        ident = select("Choose a template:", choices, default=next(iter(known)))
    if ident not in known:  # the answer of the prompt
        raise CoderError("no_example", f"template {quoted(ident)} not found", f"Known: {', '.join(known)}")
    directory = target or Path(ident)
    unpack_example(ident, directory)
    sys.stdout.write(f"Extracting {ident} to ./{directory}...\nCreate your template by running:\n\n")
    sys.stdout.write(f"  cd {directory} && coder templates push\n\n")
    return 0


def _push(invocation: Invocation) -> int:
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
    from coder.api.templates.templates import Template

    try:
        return read(client.request("GET", f"/api/v2/organizations/{organization.id}/templates/{quote(name)}"), Template)
    except HttpError as error:
        if error.status == 404:
            return None
        raise


def _create_version(
    invocation: Invocation,
    client: BlockingClient,
    organization: Organization,
    template: Template | None,
    archive: bytes,
    inputs: dict[str, dict[str, str]],
) -> TemplateVersion:
    """Upload and import a version, printing the import's log; prompt for missing variables and retry."""
    from coder.api.site.deployment import UploadResponse
    from coder.api.templates.template_versions import TemplateVersion

    kind = "application/zip" if archive[:4] == b"PK\x03\x04" else "application/x-tar"
    answer = client.request("POST", "/api/v2/files", body=archive, headers=(("Content-Type", kind),))
    values = dict(inputs["values"])
    body: dict[str, object] = {
        "storage_method": "file",
        "file_id": read(answer, UploadResponse).hash,
        "provisioner": "terraform" if not invocation["test_provisioner"] else invocation["test_provisioner"],
        "tags": inputs["tags"],
        "message": invocation["message"] or "Uploaded from the CLI",
    }
    if invocation["name"]:
        body["name"] = invocation["name"]
    if template is not None:
        body["template_id"] = template.id
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
            if not missing or invocation["yes"]:
                raise
            values |= {item.name: ask(f"{item.name} ({item.description}):") for item in missing}
            body.pop("name", None)


def _missing_variables(
    client: BlockingClient, version: TemplateVersion, values: dict[str, str]
) -> list[TemplateVersionVariable]:
    from coder.api.templates.template_versions import TemplateVersion, TemplateVersionVariable

    path = f"/api/v2/templateversions/{version.id}"
    if read(client.request("GET", path), TemplateVersion).job.error_code != "REQUIRED_TEMPLATE_VARIABLES":
        return []
    listed = read(client.request("GET", f"{path}/variables"), list[TemplateVersionVariable])
    return [item for item in listed if item.required and item.name not in values]


def _tags(invocation: Invocation, client: BlockingClient, template: Template | None) -> dict[str, str]:
    """Return and print the requested tags, or those of the active version."""
    from coder.api.templates.template_versions import TemplateVersion

    requested = invocation["provisioner_tag"]
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
    invocation: Invocation,
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
    if invocation["activate"]:
        client.request("PATCH", f"/api/v2/templates/{template.id}/versions", json={"id": version.id})
    sys.stdout.write(f"Updated version at {api_time(version.created_at)}!\n")


def _settings(invocation: Invocation) -> dict[str, object]:
    settings: dict[str, object] = {}
    for option, key in (
        ("default_ttl", "default_ttl_ms"),
        ("failure_ttl", "failure_ttl_ms"),
        ("dormancy", "dormant_ttl_ms"),
        ("deletion", "delete_ttl_ms"),
    ):
        if invocation.options.get(option):
            settings[key] = int(invocation[option].total_seconds() * 1000)
    if invocation.options.get("private"):
        settings["disable_everyone_group_access"] = True
    if invocation.options.get("require_active_version"):
        settings["require_active_version"] = True
    return settings


def _delete(invocation: Invocation) -> int:
    from coder.api.templates.templates import Template

    client = session.client(invocation)
    organization = organization_of(invocation, client)
    from coder.cli.templates.pickers import ask_templates

    names = invocation.args or ask_templates(client, organization.id)
    confirm(invocation, f"Delete these templates: {', '.join(names)}?")
    for name in names:
        path = f"/api/v2/organizations/{organization.id}/templates/{quote(name)}"
        template = read(client.request("GET", path), Template)
        try:
            client.request("DELETE", f"/api/v2/templates/{template.id}")
        except HttpError as error:
            raise CoderError("delete", f'delete template "{name}"') from error
        sys.stdout.write(f"Deleted template {name}!\n")
    return 0


def _duration(name: str, flag: str, text: str, default: timedelta = timedelta()) -> Option:
    return Option(name, flag, kind="duration", default=default, help=text)


_PUSH_OPTIONS = (
    Option(
        "directory",
        "directory",
        short="d",
        default=".",
        help='Directory with the template\'s files; "-" reads a tar archive from standard input, as does a pipe '
        "without this flag.",
    ),
    Option(
        "include",
        "include",
        kind="string-array",
        default=(),
        help="Pattern of paths to upload although they are hidden, state, values of variables, links out of the "
        "template, or large; may be repeated.",
    ),
    Option(
        "variables_file",
        "variables-file",
        help='YAML file with values of Terraform variables, one "name: value" per line.',
    ),
    Option(
        "variable",
        "variable",
        kind="string-array",
        default=(),
        help="Value of a Terraform variable, like image=debian; may be repeated.",
    ),
    Option(
        "var",
        "var",
        kind="string-array",
        default=(),
        help="Value of a Terraform variable, name=value; the same as --variable.",
    ),
    Option(
        "provisioner_tag",
        "provisioner-tag",
        kind="string-array",
        default=(),
        help='Required provisioner tag, key=value; "-" removes all tags.',
    ),
    Option("name", "name", help="Name of the new version; generated if not set."),
    Option(
        "always_prompt",
        "always-prompt",
        kind="bool",
        default=False,
        help="Prompt for every variable, including those that have a value.",
    ),
    Option(
        "activate",
        "activate",
        kind="bool",
        default=True,
        help="Make this the active version; =false keeps the current one.",
    ),
    Option(
        "ignore_lockfile",
        "ignore-lockfile",
        kind="bool",
        default=False,
        help="Suppress the warning about a missing .terraform.lock.hcl, which pins providers.",
    ),
    Option(
        "message",
        "message",
        short="m",
        help="Message that describes the change, shown in the list of versions.",
    ),
    Option("test_provisioner", "test.provisioner", hidden=True),
    WAIT,
    ORG,
    YES,
)
PUSH = Command(
    words="templates push",
    summary="Create or update a template from the current directory or as specified by flag",
    usage="[template]",
    run=_push,
    max_args=1,
    options=_PUSH_OPTIONS,
)
CREATE = Command(
    words="templates create",
    summary="Create a template from the current directory or as specified by flag",
    usage="[template]",
    run=_push,
    max_args=1,
    options=(
        *_PUSH_OPTIONS,
        Option(
            "private",
            "private",
            kind="bool",
            default=False,
            help="Restrict the template to you and administrators until you grant access to others.",
        ),
        Option(
            "require_active_version",
            "require-active-version",
            kind="bool",
            default=False,
            help="Require the active version for workspace starts; administrators are exempt.",
        ),
        _duration(
            "default_ttl",
            "default-ttl",
            "Stop new workspaces this long after each start, like 24h; 0 disables it.",
            timedelta(hours=24),
        ),
        _duration(
            "failure_ttl",
            "failure-ttl",
            "Stop workspaces this long after a failed build, like 1h; 0 disables it.",
        ),
        _duration(
            "dormancy",
            "dormancy-threshold",
            "Mark workspaces dormant after this long without use, like 720h; 0 disables it.",
        ),
        _duration(
            "deletion",
            "dormancy-auto-deletion",
            "Delete workspaces that are dormant for this long, like 720h; 0 disables it.",
        ),
    ),
)
LIST = Command(
    words="templates list",
    summary="List all the templates available for the organization",
    run=_list,
    max_args=0,
    options=(
        column_option(LIST_COLUMNS, ("name", "organization name", "last updated", "used by")),
        output_option(),
        ORG,
    ),
)
INIT = Command(
    words="templates init",
    summary="Get started with a templated template",
    usage="[directory]",
    run=_init,
    max_args=1,
    options=(Option("id", "id", choices=example_ids(), help="Id of the example template; prompted for if not set."),),
)
DELETE = Command(
    words="templates delete",
    summary="Delete templates",
    usage="[name...]",
    run=_delete,
    options=(ORG, YES),
)
