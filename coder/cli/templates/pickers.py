"""Which templates and versions are meant, asked where the command line does not say."""

from __future__ import annotations

from typing import Any

from coder.base.errors import CoderError
from coder.cli.choices import Choice, is_interactive, select, select_many
from coder.cli.output import ask
from coder.net.blocking import BlockingClient


def ask_templates(client: BlockingClient, organization: str) -> list[str]:
    """Names of any number of templates. On a line it is one name, which nothing is fetched for."""
    if not is_interactive():
        return [ask("Which template?")]
    chosen = select_many("Which templates?", _templates(client, organization))
    if not chosen:
        raise CoderError("canceled", "no template was chosen", "Mark templates with the space bar, then press Enter.")
    return chosen


def ask_template(client: BlockingClient, organization: str) -> str:
    """The name of one template."""
    if not is_interactive():
        return ask("Which template?")
    return select("Which template?", _templates(client, organization))


def ask_version(client: BlockingClient, template: dict[str, Any]) -> str:
    """The name of one version, the newest first."""
    if not is_interactive():
        return ask("Which version?")
    rows = client.request("GET", f"/api/v2/templates/{template['id']}/versions").json() or []
    active = template["active_version_id"]
    return select(
        "Which version?",
        [
            Choice(row["name"], row["name"], "active" if row["id"] == active else row["job"]["status"])
            for row in sorted(rows, key=lambda row: row["created_at"], reverse=True)
        ],
    )


def _templates(client: BlockingClient, organization: str) -> list[Choice]:
    rows = client.request("GET", f"/api/v2/organizations/{organization}/templates").json() or []
    return [Choice(row["name"], row["name"], row["display_name"] or row["description"]) for row in rows]
