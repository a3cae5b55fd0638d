"""Version to which an update brings a workspace: the one that a staged rollout offers, or the active one.

Clients of the original request the active version. Ours ask the server; one without rollouts answers 404.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.templates.rollouts import OfferedVersion
from coder.client.answers import Answer, read
from coder.net.errors import HttpError

if TYPE_CHECKING:
    from coder.api.workspaces.workspaces import Workspace
    from coder.net.blocking import BlockingClient
    from coder.net.http1 import HttpClient


@dataclass(frozen=True, slots=True)
class UpdateTarget:
    """Version of an update, and whether the workspace has another one."""

    version_id: UUID
    outdated: bool


def update_target(client: BlockingClient, workspace: Workspace) -> UpdateTarget:
    """Return the version that an update of the workspace brings."""
    try:
        answer = client.request("GET", _path(workspace))
    except HttpError as error:
        return _without_rollouts(workspace, error)
    return _read(workspace, answer)


async def find_update_target(http: HttpClient, workspace: Workspace) -> UpdateTarget:
    """Do the same as `update_target` in trio."""
    try:
        answer = await http.request("GET", _path(workspace))
    except HttpError as error:
        return _without_rollouts(workspace, error)
    return _read(workspace, answer)


def _path(workspace: Workspace) -> str:
    return f"/api/v2/workspaces/offered-versions?ids={workspace.id}"


def _read(workspace: Workspace, answer: Answer) -> UpdateTarget:
    for offer in read(answer, list[OfferedVersion]):
        if offer.workspace_id == workspace.id:
            return UpdateTarget(offer.template_version_id, offer.outdated)
    return _active(workspace)


def _without_rollouts(workspace: Workspace, error: HttpError) -> UpdateTarget:
    """Return the active version if the server does not know the route. The original takes its last word for an id."""
    if error.status not in {400, 404}:
        raise error
    return _active(workspace)


def _active(workspace: Workspace) -> UpdateTarget:
    return UpdateTarget(workspace.template_active_version_id, workspace.outdated)
