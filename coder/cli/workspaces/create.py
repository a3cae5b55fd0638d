"""`coder create`: creates a workspace from a template and watches its first build."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from urllib.parse import quote

from coder.api.templates.parameters import Preset, WorkspaceBuildParameter
from coder.api.templates.template_versions import TemplateVersion
from coder.api.templates.templates import Template
from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.base.json_types import JsonObject
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.suggestions import name_hint
from coder.cli.declarations.workspaces.create import CREATE, CreateOptions
from coder.cli.provisioning.no_provisioner import handle_build
from coder.cli.ui.choices import select
from coder.cli.ui.chooser import Choice
from coder.cli.ui.output import ask_until, confirm
from coder.cli.ui.progress import watch_build
from coder.cli.workspaces.external_logins import require_logins
from coder.cli.workspaces.find_workspace import find_workspace
from coder.cli.workspaces.parameter_form import CREATE as CREATE_ACTION
from coder.cli.workspaces.parameter_form import KnownValues, VersionParameters, resolve_values
from coder.cli.workspaces.resource_tree import show_plan
from coder.cli.workspaces.schedules import parse_schedule
from coder.client.answers import read
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError

NAME = re.compile(r"[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*")
VersionCheck = Callable[[TemplateVersion], None]


@implements(CREATE)
def _create(invocation: Invocation[CreateOptions]) -> int:
    create_workspace(invocation, session.client(invocation))
    return 0


def create_workspace(
    invocation: Invocation[CreateOptions], client: BlockingClient, *, check_version: VersionCheck | None = None
) -> Workspace:
    """Ask for confirmation, create the workspace and watch its build. Return the workspace after the build has
    ended."""
    owner, name = _owner_and_name(invocation, client)
    source = _source_workspace(invocation, client)
    template, version = _template_of(invocation, client, source) if source else choose_template(invocation, client)
    if check_version is not None:
        check_version(version)
    require_logins(invocation, client, version.id, owner)
    preset = _preset(invocation, client, version)
    set_by_preset = {parameter.Name: parameter.Value for parameter in preset.Parameters} if preset else {}
    known = KnownValues(CREATE_ACTION, copied=_parameters_of(client, source), preset=set_by_preset)
    values = resolve_values(invocation, VersionParameters(client, version.id, owner), known)
    _print_template(template, version, name)
    show_plan(invocation, client, version.id, name, values)
    confirm(invocation.options.yes, "Confirm create?", default=True)
    body = _request_body(invocation, name, template, version, values)
    if preset:
        body["template_version_preset_id"] = preset.ID
    workspace = read(client.request("POST", f"/api/v2/users/{quote(owner)}/workspaces", json=body), Workspace)
    handle_build(invocation, client, workspace.latest_build, waits=not invocation.options.no_wait)
    if not invocation.options.no_wait:
        watch_build(client, workspace.latest_build)
        workspace = read(client.request("GET", f"/api/v2/workspaces/{workspace.id}"), Workspace)
        sys.stdout.write(f"\nThe {workspace.name} workspace has been created!\n")
    return workspace


def _owner_and_name(invocation: Invocation[CreateOptions], client: BlockingClient) -> tuple[str, str]:
    def fault(name_text: str) -> str:
        return _name_fault(name_text.rpartition("/")[2]) or _name_in_use(client, *_split(name_text))

    if invocation.args:
        name_text = invocation.args[0]
        if message := fault(name_text):
            raise CoderError("bad_name", message)
    else:
        name_text = ask_until("Specify a name for your workspace:", fault)
    return _split(name_text)


def _split(text: str) -> tuple[str, str]:
    owner, slash, name = text.partition("/")
    return (owner, name) if slash else ("me", text)


def _name_fault(name: str) -> str:
    if NAME.fullmatch(name) and len(name) <= 32:
        return ""
    reason = "must be alphanumeric with hyphens" if len(name) <= 32 else "it must be at most 32 characters long"
    return f'workspace name "{name}" is invalid: {reason}'


def _name_in_use(client: BlockingClient, owner: str, name: str) -> str:
    try:
        find_workspace(client, f"{owner}/{name}")
    except HttpError as error:
        if error.status == 404:
            return ""
        raise
    return f'a workspace already exists named "{name}"'


def choose_template(invocation: Invocation[CreateOptions], client: BlockingClient) -> tuple[Template, TemplateVersion]:
    """Return the template and the version to build from, by flags or by a prompt on a terminal."""
    templates = read(client.request("GET", "/api/v2/templates"), list[Template])
    organization = invocation.options.org
    if organization:
        templates = [item for item in templates if organization in {str(item.organization_id), item.organization_name}]
    template_name = invocation.options.template
    if not template_name:
        if not templates:
            raise CoderError("no_templates", "there are no templates", "Create one with `coder templates push`.")
        template_name = templates[0].name if len(templates) == 1 else _ask_template(templates)
    matches = [item for item in templates if item.name == template_name]
    if not matches:
        message = f'no template found with the name "{template_name}"'
        raise CoderError(
            "no_template", message, name_hint(template_name, (item.name for item in templates), "coder templates list")
        )
    if len(matches) > 1:
        raise CoderError(
            "ambiguous", f'several organizations have a template "{template_name}"', "Choose one with --org."
        )
    template = matches[0]
    if invocation.options.template_version:
        path = f"/api/v2/templates/{template.id}/versions/{quote(invocation.options.template_version)}"
    else:
        path = f"/api/v2/templateversions/{template.active_version_id}"
    return template, read(client.request("GET", path), TemplateVersion)


def _ask_template(templates: list[Template]) -> str:
    """Prompt for the name of a template; the most used come first."""
    ordered = sorted(templates, key=lambda item: (-item.active_user_count, item.name))
    return select(
        "Select a template:",
        [Choice(item.name, item.name, item.display_name or item.description) for item in ordered],
    )


def _source_workspace(invocation: Invocation[CreateOptions], client: BlockingClient) -> Workspace | None:
    """Return the workspace whose values, template and version are copied. Raise CoderError."""
    name = invocation.options.copy_parameters_from
    if not name:
        return None
    with add_action_to_errors("get source workspace"):
        source = find_workspace(client, name)
    template_name = invocation.options.template
    if template_name and template_name != source.template_name:
        message = f'{name} was created from template "{source.template_name}", not from "{template_name}"'
        raise CoderError("template", message, "Omit --template, or set the values with --parameter.")
    sys.stdout.write(f'Using the template "{source.template_name}" of {name}.\n')
    return source


def _template_of(
    invocation: Invocation[CreateOptions], client: BlockingClient, source: Workspace
) -> tuple[Template, TemplateVersion]:
    template = read(client.request("GET", f"/api/v2/templates/{source.template_id}"), Template)
    if invocation.options.template_version:
        path = f"/api/v2/templates/{template.id}/versions/{quote(invocation.options.template_version)}"
    else:
        path = f"/api/v2/templateversions/{source.latest_build.template_version_id}"
    return template, read(client.request("GET", path), TemplateVersion)


def _parameters_of(client: BlockingClient, source: Workspace | None) -> dict[str, str]:
    if source is None:
        return {}
    path = f"/api/v2/workspacebuilds/{source.latest_build.id}/parameters"
    return {
        parameter.name: parameter.value
        for parameter in read(client.request("GET", path), list[WorkspaceBuildParameter])
    }


def _preset(invocation: Invocation[CreateOptions], client: BlockingClient, version: TemplateVersion) -> Preset | None:
    """Return the preset of the flag, the default one, or the user's choice. Print the values it sets."""
    name = invocation.options.preset
    if name.lower() == "none":
        return None
    presets = read(client.request("GET", f"/api/v2/templateversions/{version.id}/presets"), list[Preset])
    label = ""
    if name:
        preset = next((preset for preset in presets if preset.Name == name), None)
        if preset is None:
            known = ", ".join(preset.Name for preset in presets) or "none"
            raise CoderError("preset", f'preset "{name}" not found', f"Known: {known}")
    else:
        preset = next((preset for preset in presets if preset.Default), None)
        label = " (default)"
        if preset is None:
            return _ask_preset(invocation, presets)
    sys.stdout.write(f"Preset '{preset.Name}'{label} applied:\n")
    for parameter in preset.Parameters:
        sys.stdout.write(f"  {parameter.Name}: '{parameter.Value}'\n")
    return preset


def _ask_preset(invocation: Invocation[CreateOptions], presets: list[Preset]) -> Preset | None:
    if not presets or invocation.options.yes or invocation.options.use_defaults:
        return None
    sys.stdout.write("\nPresets of this template\n")
    choices = [Choice(preset.Name, preset.Name, preset.Description) for preset in presets]
    choices.append(Choice("none", "none", "values from flags and prompts"))
    answer = select("Select a preset:", choices, default="none")
    return next((preset for preset in presets if preset.Name == answer), None)


def _print_template(template: Template, version: TemplateVersion, name: str) -> None:
    title = template.display_name or template.name
    sys.stdout.write(f"Creating workspace {name} from template {title}, version {version.name}\n")


def _request_body(
    invocation: Invocation[CreateOptions],
    name: str,
    template: Template,
    version: TemplateVersion,
    values: list[dict[str, str]],
) -> JsonObject:
    body: JsonObject = {
        "name": name,
        "rich_parameter_values": values,
        "automatic_updates": invocation.options.automatic_updates,
    }
    if invocation.options.template_version or invocation.options.copy_parameters_from:
        body["template_version_id"] = str(version.id)
    else:
        body["template_id"] = str(template.id)
    if invocation.options.stop_after:
        body["ttl_ms"] = int(invocation.options.stop_after.total_seconds() * 1000)
    if invocation.options.start_at:
        body["autostart_schedule"] = parse_schedule(invocation.options.start_at.split())
    return body
