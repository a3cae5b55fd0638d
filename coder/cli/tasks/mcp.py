"""`coder exp mcp`: an MCP server for the deployment, and the configuration of programs that use it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from coder.base.atomic_file import read_lossless, write_atomically
from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.base.secret import Secret
from coder.base.threads import run_trio
from coder.base.version import BUILD_VERSION
from coder.cli.agents.sync import ask_agent
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.tasks.mcp import (
    CLAUDE_CODE,
    CLAUDE_DESKTOP,
    CURSOR,
    SERVER,
    ClientOptions,
    McpConfigureClaudeCodeOptions,
    McpConfigureCursorOptions,
    McpServerOptions,
)
from coder.cli.tasks.agentapi import serve_watching
from coder.cli.tasks.app_status import AppStatusReporter
from coder.cli.tasks.mcp_protocol import McpServer, Tool
from coder.cli.tasks.mcp_task_tools import task_tools, template_tools
from coder.cli.tasks.mcp_tools import deployment_tools, report_tool
from coder.cli.tasks.mcp_workspace_tools import workspace_tools
from coder.cli.ui.output import say
from coder.net.blocking import BlockingClient
from coder.net.policy import DialPolicy

if TYPE_CHECKING:
    from coder.cli.tasks.app_status import Report


@implements(SERVER)
def _serve(invocation: Invocation[McpServerOptions]) -> int:
    reporter = _reporter(invocation)
    server = McpServer(BUILD_VERSION, _tools(invocation, reporter), invocation.options.instructions)
    if invocation.options.agentapi_url and reporter is not None:
        policy = DialPolicy(session.normal_url(invocation.options.agentapi_url))
        run_trio(serve_watching, server.answer_line, policy, reporter)
        return 0
    for line in sys.stdin:
        if line.strip() and (answer := server.answer_line(line)) is not None:
            sys.stdout.write(answer + "\n")
            sys.stdout.flush()
    return 0


def _tools(invocation: Invocation[McpServerOptions], reporter: AppStatusReporter | None) -> list[Tool]:
    """Return the allowed tools whose credentials exist. Raise CoderError if there are none."""
    tools, reason = [], ""
    try:
        client = session.client(invocation)
        tools += deployment_tools(client) + task_tools(client) + template_tools(client)
        tools += workspace_tools(client, client.policy, session.config_dir(invocation))
    except CoderError as error:
        reason = error.message
        say(f"Not logged in: tools that require a login are skipped ({reason})")
    if reporter is not None:
        tools.append(report_tool(reporter.report))
    allowed = set(invocation.options.allowed_tools)
    if unknown := allowed - {tool.name for tool in tools}:
        say(f"Unknown tools: {', '.join(sorted(unknown))}")
    tools = [tool for tool in tools if not allowed or tool.name in allowed]
    if not tools:
        raise CoderError("mcp", "there are no tools to serve", reason or "Check --allowed-tools.")
    return tools


def _reporter(invocation: Invocation[McpServerOptions]) -> AppStatusReporter | None:
    """Return the reporter of the app's status, by the agent's token or its socket; None without both."""
    slug, token = invocation.options.app_status_slug, invocation.options.agent_token
    url = invocation.options.agent_url or invocation.globals.url
    if not slug:
        return None
    if token and url and invocation.sources["socket_path"] != "flag":
        policy = session.with_tls_files(session.dial_policy(invocation, url=url, token=""), invocation)
        agent = BlockingClient(policy.with_token(Secret(token)))
        return AppStatusReporter(
            lambda report: agent.request("PATCH", "/api/v2/workspaceagents/me/app-status", json=_body(slug, report))
        )
    if invocation.options.socket_path:
        return AppStatusReporter(lambda report: ask_agent(invocation, "report", patience=60, **_body(slug, report)))
    return None


def _body(slug: str, report: Report) -> dict[str, str]:
    return {"app_slug": slug, "state": report.state, "message": report.summary, "uri": report.link}


# ---- configure


def _configure(
    invocation: Invocation[ClientOptions], path: Path, keys: tuple[str, ...] = (), top: Mapping[str, Json] | None = None
) -> int:
    """Add the MCP server to a client's JSON file, and `top` at its top level; other entries stay."""
    try:
        document = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        document.update(top or {})
        node = document
        for name in keys:
            node = node.setdefault(name, {})
        env = {
            "CODER_MCP_APP_STATUS_SLUG": invocation.options.app_status_slug or "",
            "CODER_MCP_AI_AGENTAPI_URL": invocation.options.agentapi_url or "",
        }
        node.setdefault("mcpServers", {})["coder"] = {
            "type": "stdio",
            "command": session.program(),
            "args": ["exp", "mcp", "server"],
            "env": {name: value for name, value in env.items() if value},
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise CoderError("mcp", f"{path} does not contain settings", "Rename or fix it.") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(document, indent=2) + "\n")
    say(f"{path} now contains this server.")
    return 0


@implements(CLAUDE_CODE)
def _claude_code(invocation: Invocation[McpConfigureClaudeCodeOptions]) -> int:
    path = Path(invocation.options.claude_config_path).expanduser()
    project = str(Path(invocation.args[0]).absolute()) if invocation.args else ""
    key = invocation.options.claude_api_key
    # With an API key, Claude Code does not prompt for a login.
    top: dict[str, Json] = {"primaryApiKey": key, "hasCompletedOnboarding": True} if key else {}
    _configure(invocation, path, ("projects", project) if project else (), top)
    prompts = {"coder-prompt": invocation.options.coder_prompt, "system-prompt": invocation.options.system_prompt}
    _write_prompts(Path(invocation.options.claude_md_path).expanduser(), prompts)
    return 0


def _write_prompts(path: Path, prompts: dict[str, str]) -> None:
    """Write each prompt between tags of its name, replacing the old text between them; the user's text stays."""
    original = text = read_lossless(path) if path.exists() else ""
    for name, prompt in reversed(prompts.items()):
        original = re.sub(rf"<{name}>.*?</{name}>\r?\n?", "", original, flags=re.DOTALL)
        original = f"<{name}>\n{prompt}\n</{name}>\n{original}" if prompt else original
    if original != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, original, mode=0o644)
        say(f"{path} now contains the prompts.")


@implements(CLAUDE_DESKTOP)
def _claude_desktop(invocation: Invocation[ClientOptions]) -> int:
    home = Path.home()
    folder = {"darwin": home / "Library/Application Support", "win32": home / "AppData/Roaming"}
    return _configure(invocation, folder.get(sys.platform, home / ".config") / "Claude/claude_desktop_config.json")


@implements(CURSOR)
def _cursor(invocation: Invocation[McpConfigureCursorOptions]) -> int:
    return _configure(invocation, (Path.cwd() if invocation.options.project else Path.home()) / ".cursor/mcp.json")
