"""`coder rename`, `favorite`, `unfavorite`, `autoupdate`, `state …`: changes to a workspace without a build."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

from coder.api.workspaces.builds import WorkspaceBuild
from coder.api.workspaces.workspaces import Workspace
from coder.base.atomic_file import naming
from coder.base.errors import CoderError
from coder.base.files.private_files import write_private
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import Options, YesOption
from coder.cli.declarations.workspaces.workspace_settings import (
    AUTOUPDATE,
    FAVORITE,
    RENAME,
    STATE_PULL,
    STATE_PUSH,
    UNFAVORITE,
    StateBuildOption,
    StatePushOptions,
)
from coder.cli.ui.output import ask, confirm
from coder.cli.ui.progress import watch_build
from coder.cli.workspaces.find_workspace import find_workspace
from coder.client.answers import read
from coder.net.blocking import BlockingClient


def _workspace(client: BlockingClient, name: str) -> Workspace:
    with add_action_to_errors("get workspace"):
        return find_workspace(client, name)


@implements(RENAME)
def _rename(invocation: Invocation[YesOption]) -> int:
    client = session.client(invocation)
    workspace = _workspace(client, invocation.args[0])
    sys.stdout.write("WARNING: A rename can result in data loss if a resource references the workspace name in the ")
    sys.stdout.write("template (e.g volumes). Please backup any data before proceeding.\n\n")
    # --yes does not skip this prompt: the user types the name because volumes can depend on it (as upstream does).
    if ask(f'Type "{workspace.name}" to confirm rename:') != workspace.name:
        raise CoderError("canceled", "the typed name does not match the workspace", "Nothing was changed.")
    with add_action_to_errors("rename workspace"):
        client.request("PATCH", f"/api/v2/workspaces/{workspace.id}", json={"name": invocation.args[1]})
    sys.stdout.write(f'Workspace "{workspace.name}" renamed to "{invocation.args[1]}"\n')
    return 0


@implements(FAVORITE)
def _favorite(invocation: Invocation[Options]) -> int:
    client = session.client(invocation)
    workspace = _workspace(client, invocation.args[0])
    with add_action_to_errors("favorite workspace"):
        client.request("PUT", f"/api/v2/workspaces/{workspace.id}/favorite")
    sys.stdout.write(f'Workspace "{workspace.name}" added to favorites.\n')
    return 0


@implements(UNFAVORITE)
def _unfavorite(invocation: Invocation[Options]) -> int:
    client = session.client(invocation)
    workspace = _workspace(client, invocation.args[0])
    with add_action_to_errors("unfavorite workspace"):
        client.request("DELETE", f"/api/v2/workspaces/{workspace.id}/favorite")
    sys.stdout.write(f'Workspace "{workspace.name}" removed from favorites.\n')
    return 0


@implements(AUTOUPDATE)
def _autoupdate(invocation: Invocation[YesOption]) -> int:
    name, policy = invocation.args
    if policy not in {"always", "never"}:
        message = f'validate policy: invalid option "{policy}" must be either of "always" or "never"'
        raise CoderError("usage", message)
    client = session.client(invocation)
    workspace = _workspace(client, name)
    # No data is lost, so no confirmation is required.
    if sys.stdin.isatty() and policy == "always" and workspace.automatic_updates != policy:
        confirm(invocation.options.yes, "Every start will use the template's active version. Continue?")
    with add_action_to_errors("update workspace automatic updates policy"):
        path = f"/api/v2/workspaces/{workspace.id}/autoupdates"
        client.request("PUT", path, json={"automatic_updates": policy})
    sys.stdout.write(f'Updated workspace "{workspace.name}" auto-update policy to "{policy}"\n')
    return 0


# ---- state


def _build(client: BlockingClient, name: str, number: int) -> tuple[Workspace, WorkspaceBuild]:
    workspace = find_workspace(client, name)
    if not number:
        return workspace, workspace.latest_build
    path = f"/api/v2/users/{workspace.owner_id}/workspace/{workspace.name}/builds/{number}"
    return workspace, read(client.request("GET", path), WorkspaceBuild)


@implements(STATE_PULL)
def _pull(invocation: Invocation[StateBuildOption]) -> int:
    client = session.client(invocation)
    _, build = _build(client, invocation.args[0], invocation.options.build)
    state = client.request("GET", f"/api/v2/workspacebuilds/{build.id}/state").body
    if len(invocation.args) < 2:
        sys.stdout.buffer.write(state + b"\n")
        sys.stdout.flush()
        return 0
    # A state contains secrets, so the file is readable only by its owner.
    target = Path(invocation.args[1])
    with naming(target):
        write_private(target, state)
    return 0


@implements(STATE_PUSH)
def _push(invocation: Invocation[StatePushOptions]) -> int:
    client = session.client(invocation)
    name, source = invocation.args
    try:
        state = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise CoderError("state", f"cannot read the state from {source}") from error
    workspace, build = _build(client, name, invocation.options.build)
    encoded = base64.b64encode(state).decode()
    if invocation.options.no_build:
        client.request("PUT", f"/api/v2/workspacebuilds/{build.id}/state", json={"state": encoded})
        sys.stdout.write("State updated successfully.\n")
        return 0
    body = {
        "template_version_id": build.template_version_id,
        "transition": build.transition,
        "state": encoded,
    }
    answer = client.request("POST", f"/api/v2/workspaces/{workspace.id}/builds", json=body)
    watch_build(client, read(answer, WorkspaceBuild))
    return 0
