"""`coder start`, `stop`, `restart`, `update`, `delete`: start a build and watch it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from uuid import UUID

from coder.api.templates.parameters import WorkspaceBuildParameter
from coder.api.workspaces.builds import WorkspaceBuild
from coder.api.workspaces.workspace_inventory import WorkspaceInventory
from coder.api.workspaces.workspaces import Workspace
from coder.base.json_types import Json, JsonObject
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.parsing import UsageError
from coder.cli.declarations.workspaces.lifecycle import (
    DELETE,
    RESTART,
    START,
    STOP,
    UPDATE,
    AnyBuildOptions,
    DeleteOptions,
    RestartOptions,
    StartOptions,
    StopOptions,
    UpdateOptions,
)
from coder.cli.declarations.workspaces.parameters import ParameterOptions
from coder.cli.provisioning.no_provisioner import handle_build
from coder.cli.ui.output import confirm, parse_time, say
from coder.cli.ui.progress import ENDED, watch_build
from coder.cli.workspaces import parameters
from coder.cli.workspaces.external_logins import require_logins
from coder.cli.workspaces.find_workspace import find_workspace
from coder.cli.workspaces.parameter_form import START as START_ACTION
from coder.cli.workspaces.parameter_form import UPDATE as UPDATE_ACTION
from coder.cli.workspaces.parameter_form import KnownValues, VersionParameters, resolve_values
from coder.cli.workspaces.update_preview import print_preview
from coder.client.answers import read
from coder.client.offered_version import update_target
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError

_STARTS = 3
"""Attempts to start a workspace that other commands start, too."""


def build(
    invocation: Invocation[AnyBuildOptions],
    client: BlockingClient,
    workspace: Workspace,
    transition: str,
    **extra: Json,
) -> WorkspaceBuild:
    """Queue a build and watch it unless `--no-wait` is set. A build of another command that does the same is shared.

    Raise HttpError 409 if a different build is active.
    """
    body = {"transition": transition, "reason": invocation.options.reason or "cli", **extra}
    if invocation.options.log_debug:
        body["log_level"] = "debug"
    path = f"/api/v2/workspaces/{workspace.id}/builds"
    try:
        created = read(client.request("POST", path, json=body), WorkspaceBuild)
    except HttpError as error:
        if error.status != 409:
            raise
        created = _shared_build(client, workspace, body, error)
    wait = not invocation.options.no_wait
    handle_build(invocation, client, created, waits=wait)
    return watch_build(client, created) if wait else created


def _shared_build(
    client: BlockingClient, workspace: Workspace, body: JsonObject, conflict: HttpError
) -> WorkspaceBuild:
    """Return the active build if it does what `body` requests. Otherwise print the way out, and raise `conflict`."""
    latest = _latest_build(client, workspace)
    is_same = (
        latest.transition == body["transition"]
        and body.get("template_version_id") in {None, str(latest.template_version_id)}
        and not body.get("rich_parameter_values")
        and not body.get("orphan")
    )
    if is_same:
        say(f"Build {latest.build_number} of another command already does this.")
        return latest
    if latest.job.status not in ENDED:
        name = f"{workspace.owner_name}/{workspace.name}"
        say(f"Build {latest.build_number} of {name} ({latest.transition}) is {latest.job.status}.")
        say(
            f"Follow it with `coder logs -f {name}`, or cancel it with `coder provisioner jobs cancel {latest.job.id}`."
        )
    raise conflict


def _latest_build(client: BlockingClient, workspace: Workspace) -> WorkspaceBuild:
    return read(client.request("GET", f"/api/v2/workspaces/{workspace.id}"), Workspace).latest_build


@implements(START)
def _start(invocation: Invocation[StartOptions]) -> int:
    client = session.client(invocation)
    workspace = find_workspace(client, invocation.args[0])
    latest = workspace.latest_build
    if latest.status == "running":
        sys.stdout.write(f"\nThe {workspace.name} workspace is already running!\n")
        return 0
    if latest.status == "starting":
        watch_build(client, latest)
    else:
        build(invocation, client, workspace, "start", **_start_extra(invocation, client, workspace))
    verb = "has been queued to start" if invocation.options.no_wait else "has been started"
    sys.stdout.write(f"\nThe {workspace.name} workspace {verb} at {_now()}!\n")
    return 0


def _start_extra(
    invocation: Invocation[ParameterOptions], client: BlockingClient, workspace: Workspace, *, stops_first: bool = False
) -> JsonObject:
    version = workspace.latest_build.template_version_id
    if workspace.automatic_updates == "always" or workspace.template_require_active_version:
        version = update_target(client, workspace).version_id
    return _values_for(invocation, client, workspace, version, START_ACTION, stops_first=stops_first)


def _values_for(
    invocation: Invocation[ParameterOptions],
    client: BlockingClient,
    workspace: Workspace,
    version: UUID,
    action: str,
    *,
    stops_first: bool = False,
) -> JsonObject:
    """Return the version and the values for a start. With `stops_first`, raise CoderError for values that the server
    will reject: otherwise the rejected start would leave the workspace stopped."""
    require_logins(invocation, client, version, workspace.owner_id)
    known = KnownValues(action, previous=_values_of_last_build(client, workspace), is_checked=stops_first)
    values = resolve_values(invocation, VersionParameters(client, version, workspace.owner_name), known)
    return {"template_version_id": str(version), "rich_parameter_values": values}


def _values_of_last_build(client: BlockingClient, workspace: Workspace) -> dict[str, str]:
    path = f"/api/v2/workspacebuilds/{workspace.latest_build.id}/parameters"
    items = read(client.request("GET", path), list[WorkspaceBuildParameter])
    return {item.name: item.value for item in items}


@implements(UPDATE)
def _update(invocation: Invocation[UpdateOptions]) -> int:
    is_json = invocation.options.output == "json"
    if is_json and not invocation.options.preview:
        raise UsageError("--output json prints a preview and needs --preview")
    client = session.client(invocation)
    workspace = find_workspace(client, invocation.args[0])
    target = update_target(client, workspace)
    # A script that reads JSON gets a plan in any case: of an up-to-date workspace, one that keeps everything.
    if not is_json and not target.outdated and not _is_change_requested(invocation, client, workspace):
        sys.stdout.write("Workspace is up-to-date.\n")
        return 0
    if invocation.options.preview:
        return print_preview(invocation, client, workspace, target.version_id)
    is_started = workspace.latest_build.transition == "start"
    extra = _values_for(
        invocation,
        client,
        workspace,
        target.version_id,
        UPDATE_ACTION,
        stops_first=is_started,
    )
    if is_started:
        # Stop the old version, so that its resources are released before the new one starts.
        sys.stdout.write("Stopping the workspace before it is updated.\n")
        _stop_and_start(invocation, client, workspace, extra)
    else:
        build(invocation, client, workspace, "start", **extra)
    return 0


def _stop_and_start(
    invocation: Invocation[AnyBuildOptions], client: BlockingClient, workspace: Workspace, extra: JsonObject
) -> None:
    """Stop the workspace and start it with `extra`. Repeat it if another command, such as the reconnecting SSH client
    of an editor, starts the stopped workspace as it was. Raise HttpError 409 if that does not end."""
    for attempt in range(_STARTS):
        build(invocation, client, workspace, "stop")
        try:
            build(invocation, client, workspace, "start", **extra)
        except HttpError as error:
            latest = _latest_build(client, workspace)
            if error.status != 409 or latest.transition != "start" or attempt == _STARTS - 1:
                raise
            say("Another command has started the workspace meanwhile. Stopping it again.")
            watch_build(client, latest)
        else:
            return


def _is_change_requested(invocation: Invocation[UpdateOptions], client: BlockingClient, workspace: Workspace) -> bool:
    """Return whether flags request a build of an up-to-date workspace.

    Values that the workspace already has are no change, so that a script can repeat the command. Ephemeral values count
    for one build and are always a change.
    """
    options = invocation.options
    prompts = (options.always_prompt, options.build_options, options.prompt_ephemeral)
    if any(prompts) or options.ephemeral_parameter or options.build_option:
        return True
    requested = parameters.requested_values(invocation)
    if not requested:
        return False
    if workspace.latest_build.job.status != "succeeded":
        return True
    before = _values_of_last_build(client, workspace)
    return any(before.get(name) not in {value, parameters.bool_text(value)} for name, value in requested.items())


@implements(STOP)
def _stop(invocation: Invocation[StopOptions]) -> int:
    client = session.client(invocation)
    workspace = find_workspace(client, invocation.args[0])
    confirm(invocation.options.yes, "Confirm stop workspace?")
    latest = workspace.latest_build
    if latest.job.status == "pending":
        say("The last build is still queued; waiting for it first.")
        latest = watch_build(client, latest)
    if latest is workspace.latest_build or latest.transition != "stop":
        build(invocation, client, workspace, "stop")
    sys.stdout.write(f"\nThe {workspace.name} workspace has been stopped at {_now()}!\n")
    return 0


@implements(RESTART)
def _restart(invocation: Invocation[RestartOptions]) -> int:
    client = session.client(invocation)
    workspace = find_workspace(client, invocation.args[0])
    extra = _start_extra(invocation, client, workspace, stops_first=True)
    confirm(invocation.options.yes, "Restart workspace?")
    _stop_and_start(invocation, client, workspace, extra)
    sys.stdout.write(f"\nThe {workspace.name} workspace has been restarted at {_now()}!\n")
    return 0


@implements(DELETE)
def _delete(invocation: Invocation[DeleteOptions]) -> int:
    client = session.client(invocation)
    workspace = find_workspace(client, invocation.args[0])
    used = parse_time(workspace.last_used_at)
    days = (datetime.now(UTC) - used).days if used else 0
    owner = f"{workspace.owner_name}/{workspace.name}"
    say(f"{owner} was last used {days} days ago")
    if invocation.options.abandon or invocation.options.orphan:
        _print_remaining(client, workspace)
    confirm(invocation.options.yes, "Confirm delete workspace?")
    if invocation.options.abandon:
        client.request("POST", f"/api/v2/workspaces/{workspace.id}/abandon")
        sys.stdout.write(f"\n{workspace.name} has been abandoned at {_now()}!\n")
        return 0
    extra = {"orphan": True} if invocation.options.orphan else {}
    build(invocation, client, workspace, "delete", **extra)
    sys.stdout.write(f"\n{workspace.name} has been deleted at {_now()}!\n")
    return 0


def _print_remaining(client: BlockingClient, workspace: Workspace) -> None:
    """Print the resources that the user has to remove manually."""
    try:
        inventory = read(client.request("GET", f"/api/v2/workspaces/{workspace.id}/inventory"), WorkspaceInventory)
    except HttpError:
        return  # an older server
    if not inventory.readable:
        say("The workspace's Terraform state cannot be read, so the remaining resources are unknown.")
    elif not inventory.resources:
        say("The Terraform state lists no resources that would remain.")
    else:
        say("These are not removed and may remain:")
    for resource in inventory.resources:
        say(f"  {resource.address}" + (f" ({resource.id})" if resource.id else ""))


def _now() -> str:
    return datetime.now().astimezone().strftime("%b %d %H:%M:%S")
