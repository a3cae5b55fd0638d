"""`coder templates edit`, `pull` and `archive`: commands on existing templates."""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from coder.api.templates.template_versions import ArchiveTemplateVersionsResponse, TemplateVersion
from coder.api.templates.templates import Template
from coder.base.config import OptionValue
from coder.base.errors import CoderError
from coder.base.files.tar_files import extract_all
from coder.base.quoted import quoted
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import OrgOption
from coder.cli.core.organization_choice import organization_of
from coder.cli.core.value_text import milliseconds
from coder.cli.declarations.templates.template_settings import (
    ARCHIVE,
    EDIT,
    PULL,
    TemplatesArchiveOptions,
    TemplatesEditOptions,
    TemplatesPullOptions,
)
from coder.cli.templates.pickers import ask_templates
from coder.cli.ui.output import confirm, say
from coder.client.answers import read
from coder.net.blocking import BlockingClient

WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def find_template(invocation: Invocation[OrgOption], client: BlockingClient, name: str, trying: str) -> Template:
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


@implements(EDIT)
def _edit(invocation: Invocation[TemplatesEditOptions]) -> int:
    client = session.client(invocation)
    template = find_template(invocation, client, invocation.args[0], "get workspace template")
    body = _changes(invocation, template)
    confirm(invocation.options.yes, "Confirm save of template metadata?")
    with add_action_to_errors("update template metadata"):
        client.request("PATCH", f"/api/v2/templates/{template.id}", json=body)
    sys.stdout.write(f"Updated template metadata at {_now()}!\n")
    return 0


def _changes(invocation: Invocation[TemplatesEditOptions], template: Template) -> dict[str, OptionValue]:
    """Return the changes from flags; settings without a flag keep their values."""
    body: dict[str, OptionValue] = invocation.given_values(dict((*_TEXTS, *_SWITCHES)))
    times = invocation.given_values(dict(_TIMES))
    body |= {key: milliseconds(value) for key, value in times.items() if isinstance(value, timedelta)}
    if invocation.given("private"):
        body["disable_everyone_group_access"] = invocation.options.private
    if invocation.given("stop_days") or invocation.given("stop_weeks"):
        before = template.autostop_requirement
        days = _days(invocation.options.stop_days, "none") if invocation.given("stop_days") else before.days_of_week
        weeks = invocation.options.stop_weeks if invocation.given("stop_weeks") else before.weeks
        body["autostop_requirement"] = {"days_of_week": days, "weeks": weeks}
    if invocation.given("start_days"):
        body["autostart_requirement"] = {"days_of_week": _days(invocation.options.start_days, "all")}
    return body


def _days(given: Sequence[str], word: str) -> list[str]:
    chosen = [day.lower() for day in given]
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
    return datetime.now().astimezone().strftime("%b %d %H:%M:%S")


# ---- pull


@implements(PULL)
def _pull(invocation: Invocation[TemplatesPullOptions]) -> int:
    if invocation.options.tar and invocation.options.zip:
        raise CoderError("usage", "either tar or zip can be selected", "Use only one of them.")
    client = session.client(invocation)
    name = invocation.args[0]
    template = find_template(invocation, client, name, "get template by name")
    version = _selected_version(client, template, invocation.options.version)
    shape = "?format=zip" if invocation.options.zip else ""
    data = client.request("GET", f"/api/v2/files/{version.job.file_id}{shape}").body
    if invocation.options.tar or invocation.options.zip:
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


def _unpack(invocation: Invocation[TemplatesPullOptions], data: bytes, directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise CoderError("exists", f"{directory} is not a directory", "Choose another destination.")
    if directory.is_dir() and any(directory.iterdir()):
        say(f"{directory} is not empty, existing files may be overwritten.")
        confirm(invocation.options.yes, "Overwrite existing files?")
    directory.mkdir(parents=True, exist_ok=True)
    say(f"Extracting template to {quoted(directory)}")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        try:
            extract_all(tar, directory)
        except (tarfile.TarError, OSError) as error:
            raise CoderError("extract", f"cannot extract the template to {directory}") from error


# ---- archive


@implements(ARCHIVE)
def _archive(invocation: Invocation[TemplatesArchiveOptions]) -> int:
    client = session.client(invocation)
    names = invocation.args or ask_templates(client, organization_of(invocation, client).id)
    templates = [find_template(invocation, client, name, f'get template by name "{name}"') for name in names]
    kind = "all unused" if invocation.options.all else "failed"
    confirm(invocation.options.yes, f"Archive {kind} versions of these templates: {', '.join(names)}?")
    for template in templates:
        path = f"/api/v2/templates/{template.id}/versions/archive"
        with add_action_to_errors(f'archive template versions for "{template.name}"'):
            answer = client.request("POST", path, json={"all": invocation.options.all})
        count = len(read(answer, ArchiveTemplateVersionsResponse).archived_ids)
        sys.stdout.write(f"Archived {count} versions from {template.name} at {_now()}!\n")
    return 0
