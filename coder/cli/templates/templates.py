"""`coder templates list` and `delete`."""

from __future__ import annotations

import sys
from datetime import timedelta
from urllib.parse import quote

from coder.api.templates.templates import Template
from coder.base.duration import format_duration
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.organization_choice import organization_of
from coder.cli.declarations.templates.templates import (
    DELETE,
    LIST,
    TemplatesDeleteOptions,
    TemplatesListOptions,
)
from coder.cli.templates.pickers import ask_templates
from coder.cli.ui.output import Row, api_time, confirm, print_rows, say
from coder.client.answers import read, read_rows
from coder.net.errors import HttpError


@implements(LIST)
def _list(invocation: Invocation[TemplatesListOptions]) -> int:
    client = session.client(invocation)
    templates = read_rows(client.request("GET", "/api/v2/templates"), Template)
    if invocation.options.org:
        organization = organization_of(invocation, client)
        templates = [template for template in templates if template[0].organization_id == organization.id]
    if not templates and invocation.options.output != "json":
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
    return format_duration(timedelta(milliseconds=milliseconds)) if milliseconds else ""


@implements(DELETE)
def _delete(invocation: Invocation[TemplatesDeleteOptions]) -> int:
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    names = invocation.args or ask_templates(client, organization.id)
    confirm(invocation.options.yes, f"Delete these templates: {', '.join(names)}?")
    for name in names:
        path = f"/api/v2/organizations/{organization.id}/templates/{quote(name)}"
        template = read(client.request("GET", path), Template)
        try:
            client.request("DELETE", f"/api/v2/templates/{template.id}")
        except HttpError as error:
            raise CoderError("delete", f'delete template "{name}"') from error
        sys.stdout.write(f"Deleted template {name}!\n")
    return 0
