"""Look-up of a workspace by its name."""

from __future__ import annotations

from urllib.parse import quote

from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.client.answers import read
from coder.net.blocking import BlockingClient, HttpAnswer


def find_workspace(client: BlockingClient, name: str) -> Workspace:
    """Return the workspace `[owner/]workspace`. Raise HttpError 404."""
    return read(ask_for_workspace(client, name), Workspace)


def ask_for_workspace(client: BlockingClient, name: str) -> HttpAnswer:
    """Return the server's answer for `[owner/]workspace`. Raise HttpError 404."""
    owner, slash, workspace = name.partition("/")
    if not slash:
        owner, workspace = "me", name
    if not workspace or "/" in workspace:
        raise CoderError(
            "bad_name", f"invalid workspace name: {quoted(name)}", "Write it as workspace or owner/workspace."
        )
    return client.request("GET", f"/api/v2/users/{quote(owner)}/workspace/{quote(workspace)}")
