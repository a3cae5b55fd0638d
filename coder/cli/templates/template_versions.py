"""`coder templates versions …` and `coder templates presets list`."""

from __future__ import annotations

import sys
from urllib.parse import quote
from uuid import UUID

from coder.api.templates.parameters import Preset
from coder.api.templates.template_versions import TemplateVersion
from coder.api.templates.templates import Template
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.organization_choice import organization_of
from coder.cli.core.parsing import UsageError
from coder.cli.declarations.templates.template_versions import (
    ARCHIVE,
    LIST,
    PRESETS,
    PROMOTE,
    UNARCHIVE,
    TemplatesPresetsListOptions,
    TemplatesVersionsListOptions,
    TemplatesVersionsPromoteOptions,
)
from coder.cli.declarations.templates.templates import TemplatesDeleteOptions
from coder.cli.templates.ended_rollouts import note_ended_rollout
from coder.cli.templates.pickers import ask_template, ask_version
from coder.cli.templates.template_settings import find_template
from coder.cli.ui.choices import is_interactive
from coder.cli.ui.output import Row, ask, clock_time, confirm, print_rows, say
from coder.client.answers import read, read_rows
from coder.net.blocking import BlockingClient


@implements(LIST)
def _list(invocation: Invocation[TemplatesVersionsListOptions]) -> int:
    client = session.client(invocation)
    template = find_template(invocation, client, invocation.args[0], "get template by name")
    query = "?include_archived=true" if invocation.options.include_archived else ""
    versions = read_rows(client.request("GET", f"/api/v2/templates/{template.id}/versions{query}"), TemplateVersion)
    active = template.active_version_id
    print_rows(
        invocation,
        lambda: [_row(version, active) for version, _ in versions],
        lambda: [{"TemplateVersion": raw, "active": version.id == active} for version, raw in versions],
    )
    return 0


def _row(version: TemplateVersion, active: UUID) -> Row:
    return {
        "id": version.id,
        "name": version.name,
        "created at": clock_time(version.created_at),
        "created by": version.created_by.username,
        "status": version.job.status.capitalize(),
        "active": "Active" if version.id == active else "",
        "archived": "Archived" if version.archived else "",
    }


@implements(PROMOTE)
def _promote(invocation: Invocation[TemplatesVersionsPromoteOptions]) -> int:
    options = invocation.options
    required = {"template": options.template, "template-version": options.template_version}
    missing = [name for name, value in required.items() if not value]
    if missing and not is_interactive():
        raise UsageError(f"Missing values for the required flags: {', '.join(missing)}")
    client = session.client(invocation)
    name = invocation.options.template or ask_template(client, organization_of(invocation, client).id)
    template = find_template(invocation, client, name, "get template by name")
    version = _by_name(client, template, invocation.options.template_version or ask_version(client, template))
    with add_action_to_errors("update active template version"), note_ended_rollout(client, template):
        client.request("PATCH", f"/api/v2/templates/{template.id}/versions", json={"id": version.id})
    sys.stdout.write(f'Successfully promoted version "{version.name}" to active for template "{name}"\n')
    return 0


def _by_name(client: BlockingClient, template: Template, name: str) -> TemplateVersion:
    with add_action_to_errors("get template version by name"):
        path = f"/api/v2/templates/{template.id}/versions/{quote(name, safe='')}"
        return read(client.request("GET", path), TemplateVersion)


@implements(ARCHIVE)
def _archive(invocation: Invocation[TemplatesDeleteOptions]) -> int:
    return _set_archived(invocation, archived=True)


@implements(UNARCHIVE)
def _unarchive(invocation: Invocation[TemplatesDeleteOptions]) -> int:
    return _set_archived(invocation, archived=False)


def _set_archived(invocation: Invocation[TemplatesDeleteOptions], *, archived: bool) -> int:
    client = session.client(invocation)
    name, *names = invocation.args
    verb = "archive" if archived else "unarchive"
    template = find_template(invocation, client, name, "get template by name")
    names = names or [ask(f"Which versions of {name}?")]
    versions = [_by_name(client, template, name) for name in names]
    changed = [version for version in versions if version.archived != archived]
    for version in versions:
        if version not in changed:
            say(f"Version {version.name} is already {verb}d.")
    if changed:
        confirm(
            invocation.options.yes, f"{verb.capitalize()} these versions: {', '.join(item.name for item in changed)}?"
        )
    for version in changed:
        with add_action_to_errors(f'{verb} template version "{version.name}"'):
            client.request("POST", f"/api/v2/templateversions/{version.id}/{verb}")
        sys.stdout.write(f"Version {version.name} {verb}d\n")
    return 0


@implements(PRESETS)
def _presets(invocation: Invocation[TemplatesPresetsListOptions]) -> int:
    client = session.client(invocation)
    template = find_template(invocation, client, invocation.args[0], "get template by name")
    version_id, version_name = template.active_version_id, ""
    if invocation.options.template_version:
        version = _by_name(client, template, invocation.options.template_version)
        version_id, version_name = version.id, version.name
    with add_action_to_errors("get template versions presets by template version"):
        presets = read_rows(client.request("GET", f"/api/v2/templateversions/{version_id}/presets"), Preset)
    if not presets and invocation.options.output != "json":
        which = f"template version {version_name}" if version_name else "the active version"
        say(f"No presets found for template {template.name} and {which}.")
        return 0
    print_rows(
        invocation,
        lambda: [_preset_row(preset) for preset, _ in presets],
        lambda: [{"TemplatePreset": raw} for _, raw in presets],
    )
    return 0


def _preset_row(preset: Preset) -> Row:
    desired = preset.DesiredPrebuildInstances
    return {
        "name": preset.Name,
        "description": preset.Description,
        "parameters": ",".join(f"{parameter.Name}={parameter.Value}" for parameter in preset.Parameters),
        "default": preset.Default,
        "desired prebuild instances": "-" if desired is None else str(desired),
    }
