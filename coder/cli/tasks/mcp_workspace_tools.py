"""Tools of `coder exp mcp server` for the inside of a workspace: commands, files, ports.

Each call is a request to the workspace's agent over the overlay, with the user's permissions. Names and arguments are
the original's.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import trio

from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.base.json_types import Json, JsonObject
from coder.base.threads import run_trio
from coder.cli.tasks.mcp_protocol import Arguments, Tool
from coder.client.agent_api import (
    AgentApi,
    AgentRefusedError,
    CommandOutput,
    FolderListing,
    StartedCommand,
    open_agent_api,
)
from coder.client.answers import read
from coder.client.target import choose_agent, split_target
from coder.domain.apps.app_addresses import parse_port
from coder.net.blocking import BlockingClient
from coder.net.policy import DialPolicy

SHELL_TIME = 60_000
"""Default timeout of a command in milliseconds."""
LONGEST_SHELL = 300_000
"""Maximum timeout in milliseconds (our choice); longer commands must run in the background."""
LAST_TRY = 10.0
"""Seconds (our choice) to kill a command whose agent has stopped answering."""
_HAS_ENDED = 409
"Status of the agent for a signal to an ended process (docs/protocol/agent-services.md#http)."
MAX_READ = 1 << 20
"""Maximum bytes of a file per answer (our choice)."""

_WORKSPACE = {"workspace": ("string", "[owner/]workspace[.agent]")}
_PATH = {**_WORKSPACE, "path": ("string", "Absolute path in the workspace.")}
_EDITS = ("array", "Objects with search, replace, and replace_all to replace every occurrence.")

Ask = Callable[[AgentApi, Arguments], Awaitable[Json]]
_COMMAND = {
    **_WORKSPACE,
    "command": ("string", "The command line."),
    "timeout_ms": ("integer", f"Timeout in milliseconds: {SHELL_TIME} by default, at most {LONGEST_SHELL}."),
    "background": ("boolean", "Run the command in the background without waiting."),
}


def workspace_tools(client: BlockingClient, policy: DialPolicy, directory: Path) -> list[Tool]:
    """Return the tools for the workspaces of `policy`'s user; `directory` is the configuration directory."""

    def inside(ask: Ask) -> Callable[[Arguments], Json]:
        def call(arguments: Arguments) -> Json:
            async def asked() -> Json:
                async with open_agent_api(policy, directory, arguments.text("workspace")) as api:
                    return await ask(api, arguments)

            return run_trio(asked)

        return call

    return [
        Tool(
            "coder_workspace_bash",
            "Run a command in a workspace, with its user's shell.",
            inside(_bash),
            _COMMAND,
            ("workspace", "command"),
        ),
        Tool("coder_workspace_ls", "List a directory of a workspace.", inside(_list), _PATH, ("workspace", "path")),
        Tool(
            "coder_workspace_read_file",
            "Read bytes of a file in a workspace, as Base64.",
            inside(_read),
            {
                **_PATH,
                "offset": ("integer", "Offset of the first byte."),
                "limit": ("integer", f"Number of bytes, at most {MAX_READ}."),
            },
            ("workspace", "path"),
        ),
        Tool(
            "coder_workspace_write_file",
            "Write a file in a workspace, creating its directories.",
            inside(_write),
            {**_PATH, "content": ("string", "The whole content, as Base64.")},
            ("workspace", "path", "content"),
        ),
        Tool(
            "coder_workspace_edit_file",
            "Search and replace in a file of a workspace.",
            inside(_edit),
            {**_PATH, "edits": _EDITS},
            ("workspace", "path", "edits"),
        ),
        Tool(
            "coder_workspace_edit_files",
            "Search and replace in several files, atomically.",
            inside(_edit_all),
            {**_WORKSPACE, "files": ("array", "Objects with path and edits.")},
            ("workspace", "files"),
        ),
        Tool(
            "coder_workspace_port_forward",
            "Get the URL of a workspace port for browsers.",
            lambda arguments: _port_address(client, arguments),
            {**_WORKSPACE, "port": ("integer", "The port.")},
            ("workspace", "port"),
        ),
        Tool(
            "coder_workspace_list_apps",
            "List the applications of a workspace with their URLs.",
            lambda arguments: _apps(client, arguments),
            _WORKSPACE,
            ("workspace",),
        ),
    ]


async def _bash(api: AgentApi, arguments: Arguments) -> Json:
    limit = arguments.number("timeout_ms", SHELL_TIME)
    if not 0 < limit <= LONGEST_SHELL:
        raise CoderError("mcp", f"timeout_ms must be between 1 and {LONGEST_SHELL}")
    background = arguments.flag("background")
    request: dict[str, Json] = {"command": arguments.text("command"), "background": background}
    ident = (await api.ask_for(StartedCommand, "POST", "processes/start", request)).id
    if background:
        return {"output": f"It runs in the background as process {ident}.", "exit_code": 0}
    try:
        with trio.move_on_after(limit / 1000):
            output = await _output(api, ident)
            if not output.running:
                return {"output": output.output, "exit_code": output.exit_code}
        ended_by_us = await _end(api, ident)
        output = await _output(api, ident)
    except CoderError as error:
        raise CoderError("mcp", f"{error} ({await _kill_after_failure(api, ident)})") from error
    if not ended_by_us:
        return {"output": output.output, "exit_code": output.exit_code}
    return {"output": f"{output.output}\n(ended after {limit} ms)", "exit_code": 124}


async def _output(api: AgentApi, ident: str) -> CommandOutput:
    """Return when the command has ended, or when the agent ends the wait."""
    return await api.ask_for(CommandOutput, "GET", f"processes/{ident}/output", wait="true")


async def _end(api: AgentApi, ident: str) -> bool:
    """Kill the command; return False if it had already ended."""
    try:
        await api.ask("POST", f"processes/{ident}/signal", body=b'{"signal": "kill"}')
    except AgentRefusedError as error:
        if error.status != _HAS_ENDED:
            raise
        return False
    return True


async def _kill_after_failure(api: AgentApi, ident: str) -> str:
    """Kill a command whose wait failed, if its agent still answers, and return what happened."""
    with suppress(CoderError), trio.move_on_after(LAST_TRY):
        return f"its process {ident} was killed" if await _end(api, ident) else f"its process {ident} has ended"
    return f"the command may still run as process {ident}"


async def _list(api: AgentApi, arguments: Arguments) -> Json:
    listing = await api.ask_for(FolderListing, "POST", "list-directory", {}, path=arguments.text("path"))
    return {
        "contents": [{"path": content.absolute_path_string, "is_dir": content.is_dir} for content in listing.contents]
    }


async def _read(api: AgentApi, arguments: Arguments) -> Json:
    limit = min(arguments.number("limit") or MAX_READ, MAX_READ)
    query: JsonObject = {"path": arguments.text("path"), "offset": arguments.number("offset"), "limit": limit}
    content = await api.ask("GET", "read-file", query=query)
    return {"content": base64.b64encode(content).decode(), "mimeType": "application/octet-stream"}


async def _write(api: AgentApi, arguments: Arguments) -> str:
    try:
        content = base64.b64decode(arguments.text("content"), validate=True)
    except binascii.Error as error:
        raise CoderError("mcp", "content is not Base64") from error
    await api.ask("POST", "write-file", query={"path": arguments.text("path")}, body=content)
    return "File written successfully."


async def _edit(api: AgentApi, arguments: Arguments) -> str:
    return await _edit_files(api, [{"path": arguments.text("path"), "edits": arguments.value("edits")}])


async def _edit_all(api: AgentApi, arguments: Arguments) -> str:
    return await _edit_files(api, arguments.value("files"))


async def _edit_files(api: AgentApi, files: Json) -> str:
    await api.ask("POST", "edit-files", body=json.dumps({"files": files}).encode())
    return "Edited successfully."


def _workspace(client: BlockingClient, arguments: Arguments) -> tuple[Workspace, str]:
    """Return the workspace and the name of the selected agent ("" for its only one)."""
    owner, name, agent = split_target(arguments.text("workspace"))
    path = f"/api/v2/users/{quote(owner, safe='')}/workspace/{quote(name, safe='')}"
    return read(client.request("GET", path), Workspace), agent


def _port_address(client: BlockingClient, arguments: Arguments) -> Json:
    port = parse_port(str(arguments.number("port")))
    if port is None:
        raise CoderError(
            "mcp", f"{arguments.number('port')} is not a port that browsers can reach", "Use 1000 to 65535."
        )
    workspace, agent_name = _workspace(client, arguments)
    agent = choose_agent(workspace, agent_name)
    host = str(client.request("GET", "/api/v2/applications/host").json(dict).get("host") or "")
    if "*" not in host:
        raise CoderError("mcp", "this deployment has no wildcard access URL", "Use `coder port-forward` instead.")
    label = f"{port.number}--{agent.name}--{workspace.name}--{workspace.owner_name}"
    scheme = "https" if client.policy.url.startswith("https:") else "http"
    return {"url": f"{scheme}://{host.replace('*', label, 1)}"}


def _apps(client: BlockingClient, arguments: Arguments) -> Json:
    workspace, agent_name = _workspace(client, arguments)
    base, owner_path = client.policy.url.rstrip("/"), f"@{workspace.owner_name}/{workspace.name}"
    host = str(client.request("GET", "/api/v2/applications/host").json(dict).get("host") or "")
    scheme = base.partition(":")[0]
    urls: list[Json] = []
    for resource in workspace.latest_build.resources:
        for agent in resource.agents or []:
            for app in agent.apps if agent_name in ("", agent.name) else []:
                url = app.url or "" if app.external else f"{base}/{owner_path}.{agent.name}/apps/{app.slug}/"
                if app.subdomain and app.subdomain_name and "*" in host:
                    url = f"{scheme}://{host.replace('*', app.subdomain_name, 1)}"
                urls.append({"name": app.display_name or app.slug, "url": url})
    return {"apps": urls}
