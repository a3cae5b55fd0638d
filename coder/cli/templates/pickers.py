"""Prompts for templates and versions that the command line does not name."""

from __future__ import annotations

from uuid import UUID

from coder.api.templates.template_versions import TemplateVersion
from coder.api.templates.templates import Template
from coder.base.errors import CoderError
from coder.cli.ui.choices import is_interactive, select, select_many
from coder.cli.ui.chooser import Choice
from coder.cli.ui.output import ask
from coder.client.answers import read
from coder.net.blocking import BlockingClient


def ask_templates(client: BlockingClient, organization: UUID) -> list[str]:
    """Prompt for names of templates. Without a terminal, read one name without requests."""
    if not is_interactive():
        return [ask("Which template?")]
    chosen = select_many("Which templates?", _templates(client, organization))
    if not chosen:
        raise CoderError(
            "canceled", "no template was selected", "Select templates with the space bar, then press Enter."
        )
    return chosen


def ask_template(client: BlockingClient, organization: UUID) -> str:
    """Prompt for the name of a template."""
    if not is_interactive():
        return ask("Which template?")
    return select("Which template?", _templates(client, organization))


def ask_version(client: BlockingClient, template: Template) -> str:
    """Prompt for the name of a version, listing the newest first."""
    if not is_interactive():
        return ask("Which version?")
    versions = read(client.request("GET", f"/api/v2/templates/{template.id}/versions"), list[TemplateVersion])
    return select(
        "Which version?",
        [
            Choice(
                version.name, version.name, "active" if version.id == template.active_version_id else version.job.status
            )
            for version in sorted(versions, key=lambda item: item.created_at, reverse=True)
        ],
    )


def _templates(client: BlockingClient, organization: UUID) -> list[Choice]:
    templates = read(client.request("GET", f"/api/v2/organizations/{organization}/templates"), list[Template])
    return [
        Choice(template.name, template.name, template.display_name or template.description) for template in templates
    ]
