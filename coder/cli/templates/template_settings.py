"""`coder templates edit`, `pull` and `archive`: commands on existing templates."""

from __future__ import annotations

import io
import sys
import tarfile
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

from coder.api.templates.template_versions import ArchiveTemplateVersionsResponse, TemplateVersion
from coder.api.templates.templates import Template
from coder.base.config import Option
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.base.tar_files import extract_all
from coder.cli.core import session
from coder.cli.core.command import ORG, YES, Command, Invocation
from coder.cli.core.failures import add_action_to_errors
from coder.cli.templates.pickers import ask_templates
from coder.cli.templates.templates import organization_of
from coder.cli.ui.output import confirm, say
from coder.client.answers import read
from coder.net.blocking import BlockingClient

WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def find_template(invocation: Invocation, client: BlockingClient, name: str, trying: str) -> Template:
    """Return a template of the selected organization. Raise CoderError that names the attempted action."""
    organization = organization_of(invocation, client)
    with add_action_to_errors(trying):
        path = f"/api/v2/organizations/{organization.id}/templates/{quote(name, safe='')}"
        return read(client.request("GET", path), Template)


# ---- edit

_TEXTS = (
    ("name", "name"),
    ("display_name", "display_name"),
    ("description", "description"),
    ("icon", "icon"),
    ("deprecated", "deprecation_message"),
)
_TIMES = (
    ("default_ttl", "default_ttl_ms"),
    ("activity_bump", "activity_bump_ms"),
    ("failure_ttl", "failure_ttl_ms"),
    ("dormancy", "time_til_dormant_ms"),
    ("deletion", "time_til_dormant_autodelete_ms"),
    ("autostop_reminder", "time_til_autostop_notify_ms"),
)
_SWITCHES = (
    ("cancel", "allow_user_cancel_workspace_jobs"),
    ("autostart", "allow_user_autostart"),
    ("autostop", "allow_user_autostop"),
    ("require_active_version", "require_active_version"),
)


def _edit(invocation: Invocation) -> int:
    client = session.client(invocation)
    template = find_template(invocation, client, invocation.args[0], "get workspace template")
    body = _changes(invocation, template)
    confirm(invocation, "Confirm save of template metadata?")
    with add_action_to_errors("update template metadata"):
        client.request("PATCH", f"/api/v2/templates/{template.id}", json=body)
    sys.stdout.write(f"Updated template metadata at {_now()}!\n")
    return 0


def _changes(invocation: Invocation, template: Template) -> dict[str, object]:
    """Return the changes from flags; settings without a flag keep their values."""
    body: dict[str, object] = {}
    for option, key in (*_TEXTS, *_SWITCHES):
        if invocation.given(option):
            body[key] = invocation[option]
    for option, key in _TIMES:
        if invocation.given(option):
            body[key] = int(invocation[option].total_seconds() * 1000)
    if invocation.given("private"):
        body["disable_everyone_group_access"] = invocation["private"]
    if invocation.given("stop_days") or invocation.given("stop_weeks"):
        before = template.autostop_requirement
        days = _days(invocation, "stop_days", "none") if invocation.given("stop_days") else before.days_of_week
        weeks = invocation["stop_weeks"] if invocation.given("stop_weeks") else before.weeks
        body["autostop_requirement"] = {"days_of_week": days, "weeks": weeks}
    if invocation.given("start_days"):
        body["autostart_requirement"] = {"days_of_week": _days(invocation, "start_days", "all")}
    return body


def _days(invocation: Invocation, option: str, word: str) -> list[str]:
    chosen = [day.lower() for day in invocation[option]]
    if word in chosen:
        if len(chosen) > 1:
            raise CoderError("usage", f"{quoted(word)} cannot be combined with days of the week")
        return list(WEEK) if word == "all" else []
    for day in chosen:
        if day not in WEEK:
            listed = " ".join((*WEEK, word))
            raise CoderError("usage", f"invalid choice: {day}, should be one of [{listed}]")
    return chosen


def _now() -> str:
    from datetime import datetime

    return datetime.now().astimezone().strftime("%b %d %H:%M:%S")


def _text(name: str, flag: str, text: str) -> Option:
    return Option(name, flag, help=text)


def _duration(name: str, flag: str, text: str) -> Option:
    return Option(name, flag, kind="duration", default=timedelta(), help=text)


def _switch(name: str, flag: str, default: bool, text: str) -> Option:
    return Option(name, flag, kind="bool", default=default, help=text)


EDIT = Command(
    words="templates edit",
    summary="Edit the metadata of a template by name.",
    usage="<template>",
    run=_edit,
    min_args=1,
    max_args=1,
    options=(
        _text("name", "name", "New name; links and scripts that use the old name stop working."),
        _text("display_name", "display-name", "New display name; the name for commands does not change."),
        _text("description", "description", "New description, shown in the list of templates."),
        _text(
            "deprecated",
            "deprecated",
            "Deprecate the template with this message, which blocks new workspaces; empty reverts it.",
        ),
        _text("icon", "icon", "Path or URL of the new icon, like /icon/docker.png."),
        _duration(
            "default_ttl", "default-ttl", "Stop new workspaces this long after each start, like 24h; 0 disables it."
        ),
        _duration(
            "activity_bump",
            "activity-bump",
            "Extend the stop time by this long on workspace activity, like 1h; 0 disables it.",
        ),
        _duration(
            "autostop_reminder",
            "autostop-reminder",
            "Notify owners this long before their workspace stops, like 30m; 0 disables it.",
        ),
        Option(
            "start_days",
            "autostart-requirement-weekdays",
            kind="string-array",
            default=(),
            choices=(*WEEK, "all"),
            help='Days on which autostart is allowed, separated by commas, or "all".',
        ),
        Option(
            "stop_days",
            "autostop-requirement-weekdays",
            kind="string-array",
            default=(),
            choices=(*WEEK, "none"),
            help='Days on which running workspaces must stop to get updates, or "none".',
        ),
        Option(
            "stop_weeks",
            "autostop-requirement-weeks",
            kind="int",
            default=0,
            help="Number of weeks between two required stops; 1 is every week.",
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
        _switch(
            "cancel",
            "allow-user-cancel-workspace-jobs",
            True,
            "Allow users to cancel running builds of their workspaces.",
        ),
        _switch(
            "autostart", "allow-user-autostart", True, "Allow users to set an autostart schedule for their workspaces."
        ),
        _switch("autostop", "allow-user-autostop", True, "Allow users to set an autostop time for their workspaces."),
        _switch(
            "require_active_version",
            "require-active-version",
            False,
            "Require the active version for workspace starts; administrators are exempt.",
        ),
        _switch(
            "private", "private", False, "Remove access of all users without an explicit grant to them or their group."
        ),
        ORG,
        YES,
    ),
)


# ---- pull


def _pull(invocation: Invocation) -> int:
    if invocation["tar"] and invocation["zip"]:
        raise CoderError("usage", "either tar or zip can be selected", "Use only one of them.")
    client = session.client(invocation)
    name = invocation.args[0]
    template = find_template(invocation, client, name, "get template by name")
    version = _selected_version(client, template, invocation["version"])
    shape = "?format=zip" if invocation["zip"] else ""
    data = client.request("GET", f"/api/v2/files/{version.job.file_id}{shape}").body
    if invocation["tar"] or invocation["zip"]:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return 0
    _unpack(invocation, data, Path(invocation.args[1] if len(invocation.args) > 1 else name))
    return 0


def _selected_version(client: BlockingClient, template: Template, name: str) -> TemplateVersion:
    if name in {"", "active"}:
        path = f"/api/v2/templateversions/{template.active_version_id}"
    elif name == "latest":
        versions = read(client.request("GET", f"/api/v2/templates/{template.id}/versions"), list[TemplateVersion])
        return max(versions, key=lambda version: version.created_at)
    else:
        path = f"/api/v2/templates/{template.id}/versions/{quote(name, safe='')}"
    with add_action_to_errors("get template version"):
        named = read(client.request("GET", path), TemplateVersion)
    say(f"Pulling template version {named.name}")
    return named


def _unpack(invocation: Invocation, data: bytes, directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise CoderError("exists", f"{directory} is not a directory", "Choose another destination.")
    if directory.is_dir() and any(directory.iterdir()):
        say(f"{directory} is not empty, existing files may be overwritten.")
        confirm(invocation, "Overwrite existing files?")
    directory.mkdir(parents=True, exist_ok=True)
    say(f"Extracting template to {quoted(directory)}")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        try:
            extract_all(tar, directory)
        except (tarfile.TarError, OSError) as error:
            raise CoderError("extract", f"cannot extract the template to {directory}") from error


PULL = Command(
    words="templates pull",
    summary="Download the active, latest, or specified version of a template to a path.",
    usage="<name> [destination]",
    run=_pull,
    min_args=1,
    max_args=2,
    options=(
        Option(
            "tar",
            "tar",
            kind="bool",
            default=False,
            help="Write the files to standard output as a tar archive instead of a directory.",
        ),
        Option(
            "zip",
            "zip",
            kind="bool",
            default=False,
            help="Write the files to standard output as a zip archive instead of a directory.",
        ),
        Option("version", "version", help='Version to download: a name, "active" (the default) or "latest".'),
        ORG,
        YES,
    ),
)


# ---- archive


def _archive(invocation: Invocation) -> int:
    client = session.client(invocation)
    names = invocation.args or ask_templates(client, organization_of(invocation, client).id)
    templates = [find_template(invocation, client, name, f'get template by name "{name}"') for name in names]
    kind = "all unused" if invocation["all"] else "failed"
    confirm(invocation, f"Archive {kind} versions of these templates: {', '.join(names)}?")
    for template in templates:
        path = f"/api/v2/templates/{template.id}/versions/archive"
        with add_action_to_errors(f'archive template versions for "{template.name}"'):
            answer = client.request("POST", path, json={"all": invocation["all"]})
        count = len(read(answer, ArchiveTemplateVersionsResponse).archived_ids)
        sys.stdout.write(f"Archived {count} versions from {template.name} at {_now()}!\n")
    return 0


ARCHIVE = Command(
    words="templates archive",
    summary="Archive unused or failed template versions from a given template(s)",
    usage="[template-name...]",
    run=_archive,
    options=(
        Option(
            "all",
            "all",
            kind="bool",
            default=False,
            help="Archive every version that no workspace uses, not only those that failed.",
        ),
        ORG,
        YES,
    ),
)
