"""`coder support bundle`: an archive with diagnostics for support, without secrets.

A failed request is noted in the archive and does not end the command. The deployment masks its own secrets; this module
masks environment variables of agents.
"""

from __future__ import annotations

import io
import json
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

from coder.api.workspaces.workspaces import Workspace, WorkspacesResponse
from coder.base.errors import CoderError
from coder.base.files.private_files import write_private
from coder.base.json_types import Json, as_list, as_object
from coder.base.version import BUILD_VERSION
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.written_text import read_written
from coder.cli.declarations.server.support import BUNDLE, SupportBundleOptions
from coder.cli.ui.output import confirm, say
from coder.cli.workspaces.find_workspace import ask_for_workspace
from coder.client.answers import read
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError

_CAP = 10
"""Default number of workspaces to collect."""
_DEPLOYMENT = {
    "deployment/buildinfo.json": "/api/v2/buildinfo",
    "deployment/config.json": "/api/v2/deployment/config",
    "deployment/experiments.json": "/api/v2/experiments",
    "deployment/health.json": "/api/v2/debug/health",
    "deployment/prometheus.txt": "/api/v2/debug/metrics",
    "deployment/replicas.json": "/api/v2/replicas",
    "deployment/provisioner_daemons.json": "/api/v2/organizations/default/provisionerdaemons",
    "deployment/provisioner_jobs.json": "/api/v2/organizations/default/provisionerjobs?limit=50",
    "deployment/workspace_proxies.json": "/api/v2/workspaceproxies",
    "deployment/stats.json": "/api/v2/deployment/stats",
    "deployment/workspaces.json": "/api/v2/workspaces?limit=25",
    "deployment/entitlements.json": "/api/v2/entitlements",
    "deployment/licenses.json": "/api/v2/licenses",
    "network/coordinator_debug.html": "/api/v2/debug/coordinator",
    "network/tailnet_debug.html": "/api/v2/debug/tailnet",
    "network/connection_info.json": "/api/v2/workspaceagents/connection",
}
_PPROF = {
    "pprof/server/cmdline.txt": "/api/v2/debug/pprof/cmdline",
    "pprof/server/profile.txt": "/api/v2/debug/pprof/profile?seconds=1",
}


class _Bundle:
    """Archive that is being written; it records every failure as a line."""

    def __init__(self, archive: zipfile.ZipFile, client: BlockingClient) -> None:
        self._archive, self._client = archive, client
        self.log: list[str] = []

    def text(self, name: str, content: str) -> None:
        self._archive.writestr(name, content)

    def json(self, name: str, value: Json) -> None:
        self.text(name, json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def collect(self, name: str, path: str, change: Callable[[Json], Json] | None = None) -> Json | bytes:
        """Add the server's answer for `path` to the archive and return it; None if the request failed."""
        begun = time.monotonic()
        try:
            answer = self._client.request("GET", path)
        except CoderError as error:
            status = f" ({error.status})" if isinstance(error, HttpError) else ""
            self.log.append(f"{path}: {error.message}{status}")
            return None
        self.log.append(f"{path}: {answer.status}, {len(answer.body)} bytes in {time.monotonic() - begun:.3f} s")
        if "json" not in answer.headers.get("content-type", ""):
            self._archive.writestr(name, answer.body)
            return answer.body
        value: Json = answer.json()
        self.json(name, change(value) if change else value)
        return value


def mask_environment(value: Json) -> Json:
    """Mask values of environment variables anywhere in an answer of the API."""
    if isinstance(value, list):
        return [mask_environment(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: dict.fromkeys(inner, "***") if key == "environment_variables" and inner else mask_environment(inner)
        for key, inner in value.items()
    }


@implements(BUNDLE)
def _bundle(invocation: Invocation[SupportBundleOptions]) -> int:
    client = session.client(invocation)
    sys.stdout.write(
        "The bundle contains the deployment's settings and health, and the workspace's builds, logs and network.\n"
        "Known secrets are masked; review it before you share it.\n"
    )
    confirm(invocation.options.yes, "Proceed?")
    if invocation.options.url_override:
        client = BlockingClient(session.dial_policy(invocation, url=invocation.options.url_override))
    path = Path(invocation.options.output_file or f"coder-support-{int(time.time())}.zip")
    workspaces = _workspaces(invocation, client)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        bundle = _Bundle(archive, client)
        for name, address in {**_DEPLOYMENT, **(_PPROF if invocation.options.pprof else {})}.items():
            bundle.collect(name, address, mask_environment)
        for index, (workspace, raw) in enumerate(workspaces):
            say(f"Collecting workspace {workspace.owner_name}/{workspace.name} …")
            agent = invocation.args[1] if len(invocation.args) > 1 else ""
            prefix = "" if len(workspaces) == 1 else f"workspaces/{index}-"
            bundle.json(f"{prefix}workspace/workspace.json", mask_environment(raw))
            _collect_workspace(bundle, prefix, workspace, agent)
        bundle.json(
            "manifest.json", {"version": BUILD_VERSION, "platform": sys.platform, "workspaces": len(workspaces)}
        )
        bundle.text("cli_logs.txt", "\n".join(bundle.log) + "\n")
    try:
        write_private(path, buffer.getvalue())
    except OSError as error:
        raise CoderError("no_file", f"cannot write {path}") from error
    sys.stdout.write(f"Wrote support bundle to {path}\n")
    return 0


def _workspaces(invocation: Invocation[SupportBundleOptions], client: BlockingClient) -> list[tuple[Workspace, Json]]:
    """Return the named workspaces and those of `--template`, each with the server's answer."""
    names = list(invocation.args[:1])
    for path in invocation.options.workspace_file:
        try:
            names += [line.strip() for line in read_written(Path(path)).splitlines() if line.strip()]
        except (OSError, UnicodeError) as error:
            raise CoderError("no_file", f"cannot read {path}") from error
    answers = [ask_for_workspace(client, name) for name in names]
    workspaces = [(read(answer, Workspace), answer.json()) for answer in answers]
    if invocation.options.template:
        query = quote(f"template:{invocation.options.template}")
        answer = client.request("GET", f"/api/v2/workspaces?q={query}")
        workspaces += zip(
            read(answer, WorkspacesResponse).workspaces, as_list(as_object(answer.json())["workspaces"]), strict=True
        )
    cap = invocation.options.workspaces_total_cap or _CAP
    if len(workspaces) > cap:
        say(
            f"{len(workspaces)} workspaces were requested; only the first {cap} are collected (--workspaces-total-cap)."
        )
    return workspaces[:cap] if cap > 0 else workspaces


def _collect_workspace(bundle: _Bundle, prefix: str, workspace: Workspace, agent_name: str) -> None:
    build = workspace.latest_build
    bundle.collect(f"{prefix}workspace/parameters.json", f"/api/v2/workspacebuilds/{build.id}/parameters")
    bundle.collect(f"{prefix}workspace/build_logs.json", f"/api/v2/workspacebuilds/{build.id}/logs")
    bundle.collect(f"{prefix}workspace/timings.json", f"/api/v2/workspacebuilds/{build.id}/timings")
    bundle.collect(f"{prefix}workspace/template.json", f"/api/v2/templates/{workspace.template_id}")
    bundle.collect(f"{prefix}workspace/template_version.json", f"/api/v2/templateversions/{build.template_version_id}")
    for resource in build.resources:
        for agent in resource.agents or []:
            if agent_name in {"", agent.name}:
                _collect_agent(bundle, f"{prefix}agent/{quote(agent.name, safe='')}", agent.id)


def _collect_agent(bundle: _Bundle, folder: str, agent_id: UUID) -> None:
    root = f"/api/v2/workspaceagents/{agent_id}"
    bundle.collect(f"{folder}/agent.json", root, mask_environment)
    bundle.collect(f"{folder}/logs.json", f"{root}/logs")
    bundle.collect(f"{folder}/connection.json", f"{root}/connection")
    bundle.collect(f"{folder}/listening_ports.json", f"{root}/listening-ports")
