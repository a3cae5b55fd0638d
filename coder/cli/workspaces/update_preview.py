"""`coder update --preview`: what the update of a workspace would change, without changing it."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from uuid import UUID

import msgspec

from coder.api.workspaces.update_previews import UpdatePreview, VersionChanges
from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.base.json_types import JsonObject
from coder.cli.core.command import Invocation
from coder.cli.declarations.workspaces.lifecycle import UpdateOptions
from coder.cli.ui.output import print_json, say
from coder.cli.workspaces import parameters
from coder.client.answers import read
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError

_POLL = 1.0
"""Seconds between requests for the plan."""
_FINAL = frozenset({"succeeded", "failed", "canceled"})
_FILE_MARKS = {"added": "+", "removed": "-", "changed": "~"}
_RESOURCE_WORDS = {
    "create": "created",
    "update": "changed in place",
    "replace": "replaced",
    "restart": "stopped and created again",
    "delete": "destroyed",
    "forget": "no longer managed",
    "unknown": "not known",
}


def print_preview(
    invocation: Invocation[UpdateOptions], client: BlockingClient, workspace: Workspace, version_id: UUID
) -> int:
    """Print what the update to a version would change. Raise CoderError when the plan failed."""
    values = parameters.requested_values(invocation)
    body: JsonObject = {
        "template_version_id": str(version_id),
        "rich_parameter_values": [{"name": name, "value": value} for name, value in values.items()],
    }
    path = f"/api/v2/workspaces/{workspace.id}/update-preview"
    try:
        preview = read(client.request("POST", path, json=body), UpdatePreview)
    except HttpError as error:
        if error.status == 405:
            raise CoderError("preview", "This server has no previews of updates.") from error
        raise
    changes = preview.changes
    is_json = invocation.options.output == "json"
    if not is_json:
        say("Planning the update. Nothing is changed. Ctrl-C cancels the plan.")
    if preview.id is not None:
        preview = _wait(client, f"{path}/{preview.id}", preview)
    preview.changes = changes
    if is_json:
        print_json(msgspec.to_builtins(preview))
    else:
        sys.stdout.write("\n".join([*_change_lines(changes), *_plan_lines(preview)]) + "\n")
    if preview.status != "succeeded":
        raise CoderError("preview", f"There is no plan: {preview.error or f'it was {preview.status}'}")
    return 0


def _wait(client: BlockingClient, path: str, preview: UpdatePreview) -> UpdatePreview:
    """Return the preview at its end; cancel it on Ctrl-C and on every failure."""
    try:
        while preview.status not in _FINAL:
            time.sleep(_POLL)
            preview = read(client.request("GET", path), UpdatePreview)
    except BaseException:
        with suppress(CoderError):  # the first failure is the one to report
            client.request("DELETE", path, expect=(204, 404))
        raise
    return preview


def _change_lines(changes: VersionChanges | None) -> list[str]:
    if changes is None:
        return []
    lines = [f"Version {changes.from_version_name} -> {changes.to_version_name}", ""]
    if changes.files is None:
        lines.append("Files: not shown, you may not read the template's files")
    elif not changes.files:
        lines.append("Files: no differences")
    for file in changes.files or ():
        lines.append(f"{_FILE_MARKS[file.change]} {file.path}")
        lines += [f"    {line}" for line in file.diff.splitlines()]
    if changes.files_omitted:
        lines.append(f"  and {changes.files_omitted} more files")
    lines += ["", "Parameters: no differences" if not changes.parameters else "Parameters:"]
    for parameter in changes.parameters:
        detail = f" ({', '.join(parameter.fields)})" if parameter.fields else ""
        value = f" = {parameter.value}" if parameter.value is not None else ""
        lines.append(f"  {_FILE_MARKS[parameter.change]} {parameter.name}{value}{detail}")
    return [*lines, ""]


def _plan_lines(preview: UpdatePreview) -> list[str]:
    plan = preview.plan
    if plan is None:
        return []
    lines = list(plan.summary)
    for resource in plan.resources:
        if resource.action == "keep":
            continue
        lines.append(f"  {resource.address}: {_RESOURCE_WORDS[resource.action]}")
        for item in resource.attributes:
            values = f": {item.before or '…'} -> {item.after or '…'}" if item.before or item.after else ""
            lines.append(f"      {item.path}{values}{' (forces replacement)' if item.forces_replacement else ''}")
    return lines
