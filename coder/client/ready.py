"""Preparation of a workspace for a connection: autostart, build, agent connection, start scripts.

Waits are reported on stderr; with `--stdio`, only long ones. `target.py` resolves names of workspaces and agents.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote
from uuid import UUID

import msgspec
import trio

from coder.api.agents.agents import WorkspaceAgent
from coder.api.workspaces.builds import WorkspaceBuild
from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.client.answers import read
from coder.client.logs import follow_agent_logs, follow_job_logs
from coder.client.offered_version import find_update_target
from coder.client.patience import aread_patiently
from coder.client.target import choose_agent, split_target
from coder.net.errors import HttpError, NetError
from coder.net.http1 import HttpClient

POLL = 0.5
ENDED = {"succeeded", "failed", "canceled"}
_BUILDS = 10
"""Builds to wait for: each can be a stop by another command."""
_GRACE = 5.0
"""Seconds to wait for the second half of a restart before an autostart."""
WaitFor = Literal["yes", "no", "auto"]


@dataclass(frozen=True, slots=True)
class ReadyAgent:
    """Workspace and the agent to use."""

    workspace: Workspace
    agent: WorkspaceAgent


class Preparation:
    """Preparation of one target until it can be dialled."""

    def __init__(self, http: HttpClient, say: Callable[[str], None], *, autostart: bool = True) -> None:
        self._http, self._say, self._autostart = http, say, autostart

    async def find(self, name: str) -> ReadyAgent:
        """Return the running workspace and its agent. Start it if it is stopped, and wait for a running build."""
        owner, workspace_name, agent_name = split_target(name)
        path = f"/api/v2/users/{quote(owner)}/workspace/{quote(workspace_name)}"
        workspace = read(await self._http.request("GET", path), Workspace)
        workspace = await self._ensure_running(workspace)
        return ReadyAgent(workspace, choose_agent(workspace, agent_name))

    async def _ensure_running(self, workspace: Workspace) -> Workspace:
        """Start the workspace if it is stopped. Follow a build of another command, which may start it meanwhile."""
        followed: set[UUID] = set()
        for _ in range(_BUILDS):
            workspace = await self._follow(workspace, followed)
            build = workspace.latest_build
            if build.transition == "delete":
                raise CoderError("deleted", f"workspace {quoted(workspace.name)} is deleted")
            if build.transition == "start" and build.job.status == "succeeded":
                return workspace
            if build.transition == "start" and build.id in followed:
                reason = build.job.error or "see `coder show`"
                raise CoderError("start_failed", f"workspace {quoted(workspace.name)} could not be started: {reason}")
            if build.transition == "stop" and build.id in followed and await self._is_started_soon(workspace):
                workspace = await self._refresh_state(workspace)
                continue
            if not self._autostart:
                raise CoderError("stopped", "workspace must be started", f"coder start {workspace.name}")
            self._say(f"Workspace {quoted(workspace.name)} is stopped. Starting it …")
            await self._start(workspace)
            workspace = await self._refresh_state(workspace)
        raise CoderError("start_failed", f"workspace {quoted(workspace.name)} has too many builds by other commands")

    async def _follow(self, workspace: Workspace, followed: set[UUID]) -> Workspace:
        """Return the workspace after its active build, if any. Add the builds to `followed`."""
        while workspace.latest_build.job.status not in ENDED:
            followed.add(workspace.latest_build.id)
            await self._watch(workspace.latest_build)
            workspace = read(await aread_patiently(self._http, f"/api/v2/workspaces/{workspace.id}"), Workspace)
            if workspace.latest_build.job.status not in ENDED:
                await trio.sleep(POLL)  # the log's stream can end before the build
        return workspace

    async def _is_started_soon(self, workspace: Workspace) -> bool:
        """Return whether another command queues a build after its stop: a restart or an update must not be disturbed
        by the reconnecting client of an editor."""
        for _ in range(round(_GRACE / POLL)):
            if (await self._refresh_state(workspace)).latest_build.id != workspace.latest_build.id:
                return True
            await trio.sleep(POLL)
        return False

    async def _start(self, workspace: Workspace) -> None:
        """Queue a start, unless another command has just queued a build (409).

        The server can reject the last build's version (403): members must use the active version of some templates.
        """
        path = f"/api/v2/workspaces/{workspace.id}/builds"
        last = workspace.latest_build.template_version_id
        target = (await find_update_target(self._http, workspace)).version_id
        versions = [target] if workspace.automatic_updates == "always" else list(dict.fromkeys((last, target)))
        for version in versions:
            body = {"transition": "start", "reason": "ssh_connection", "template_version_id": version}
            try:
                await self._http.request("POST", path, json=body)
            except HttpError as error:
                if error.status == 409:
                    self._say("Another command has queued a build of the workspace. Waiting for it …")
                elif error.status != 403 or version == versions[-1]:
                    if error.validations:
                        self._say(f"Give the values with `coder start {workspace.name}`, then connect again.")
                    raise
                else:
                    continue
            else:
                if version != last:
                    self._say("Your workspace has been updated to the current active template version.")
            return

    async def _refresh_state(self, workspace: Workspace) -> Workspace:
        return read(await self._http.request("GET", f"/api/v2/workspaces/{workspace.id}"), Workspace)

    async def _watch(self, build: WorkspaceBuild) -> None:
        stage = ""
        async for log in follow_job_logs(self._http.policy, f"/api/v2/workspacebuilds/{build.id}/logs"):
            if log.stage != stage:
                stage = log.stage
                self._say(f"==> {stage}")

    async def wait_connected(self, target: ReadyAgent) -> ReadyAgent:
        """Return when the agent is connected; report why it is not while waiting.

        Raises CoderError `not_attached` for a machine that was never attached, unless a user at a terminal can attach
        it meanwhile.
        """
        reported = ""
        while target.agent.status != "connected":
            if not target.agent.status:  # waiting for a status that this server never reports would never end
                raise CoderError("odd_answer", "The server does not report whether the agent is connected.")
            status, hint = target.agent.status, target.agent.troubleshooting_url
            if status == "timeout" and (text := _attach_text(target)) and not sys.stdin.isatty():
                raise CoderError("not_attached", text)
            if status != reported:
                self._say(_attach_text(target) or _waiting_text(target.agent, hint))
                reported = status
            await trio.sleep(POLL)
            target = await self._refresh(target)
        return target

    async def is_stopping(self, target: ReadyAgent) -> bool:
        """Return whether the workspace is stopped, stopping or deleted; False without an answer of the server."""
        try:
            build = (await self._refresh_state(target.workspace)).latest_build
        except HttpError as error:
            return error.status in (404, 410)
        except (NetError, OSError):
            return False
        return build.transition != "start"

    async def successor(self, target: ReadyAgent) -> ReadyAgent | None:
        """Return the agent of the same name in a later build of the workspace; None without one, or without an answer
        of the server."""
        try:
            workspace = await self._refresh_state(target.workspace)
            build = workspace.latest_build
            if build.transition != "start" or build.job.status != "succeeded":
                return None
            agent = choose_agent(workspace, target.agent.name)
        except (CoderError, OSError):
            return None
        return None if agent.id == target.agent.id else ReadyAgent(workspace, agent)

    async def may_connect(self, target: ReadyAgent) -> bool:
        """Return whether the server permits connections to this workspace now; False without an answer.

        Shares of single workspaces are not checked here: their users open their own tunnel, which the server checks in
        full.
        """
        workspace = target.workspace
        check = {
            "resource_type": "workspace_dormant" if workspace.dormant_at else "workspace",
            "resource_id": workspace.id,
            "owner_id": workspace.owner_id,
            "organization_id": workspace.organization_id,
        }
        body = {"checks": {"enter": {"object": check, "action": "ssh"}}}
        try:
            answer = read(await self._http.request("POST", "/api/v2/authcheck", json=body), dict[str, bool])
        except (HttpError, NetError, msgspec.ValidationError):
            return False
        return answer.get("enter", False)

    async def wait_ready(self, target: ReadyAgent, wait: WaitFor) -> None:
        """Stream the start scripts' log until they have ended, if they block the login or the user requested the
        wait."""
        blocking = any(script.start_blocks_login for script in target.agent.scripts)
        if wait == "no" or (wait == "auto" and not blocking):
            return
        if target.agent.lifecycle_state not in {"created", "starting"}:
            return
        self._say("Waiting for the workspace's start scripts …")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._stream_agent_log, target.agent.id)
            while target.agent.lifecycle_state in {"created", "starting"}:
                await trio.sleep(POLL)
                target = await self._refresh(target)
            nursery.cancel_scope.cancel()
        if target.agent.lifecycle_state != "ready":
            self._say("The start scripts did not all succeed; your workspace may be incomplete.")

    async def _stream_agent_log(self, agent_id: UUID) -> None:
        async for line in follow_agent_logs(self._http.policy, agent_id):
            self._say(line.output)

    async def _refresh(self, target: ReadyAgent) -> ReadyAgent:
        answer = await aread_patiently(self._http, f"/api/v2/workspaceagents/{target.agent.id}")
        return ReadyAgent(target.workspace, read(answer, WorkspaceAgent))


def _attach_text(target: ReadyAgent) -> str:
    """Return how to attach the machine of an external workspace that never connected; "" for any other agent."""
    workspace = target.workspace
    if workspace.latest_build.has_external_agent is not True or target.agent.first_connected_at:
        return ""
    name = f"{workspace.owner_name}/{workspace.name}"
    return (
        f"no machine is attached to {name}: run there the line that "
        f"`coder external-workspaces agent-instructions {name}` prints"
    )


def _waiting_text(agent: WorkspaceAgent, hint: str) -> str:
    texts = {
        "connecting": "Waiting for the agent to connect …",
        "timeout": "The agent is taking longer than expected to connect …",
        "disconnected": "The agent has lost its connection; waiting for it to reconnect …",
    }
    text = texts.get(agent.status, "Waiting for the agent …")
    return f"{text} ({hint})" if hint and agent.status != "connecting" else text


def print_to_stderr(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
