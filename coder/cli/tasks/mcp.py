"""`coder exp mcp`: an MCP server for the deployment, and the configuration of programs that use it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coder.base.atomic_file import read_lossless, write_atomically
from coder.base.config import Option
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.base.version import BUILD_VERSION
from coder.cli.agents.sync import SOCKET
from coder.cli.core import session
from coder.cli.core.command import Command, Invocation
from coder.cli.ui.output import say
from coder.net.policy import DialPolicy

if TYPE_CHECKING:
    from coder.cli.tasks.app_status import AppStatusReporter, Report


def _serve(invocation: Invocation) -> int:
    from coder.cli.tasks.mcp_protocol import McpServer

    reporter = _reporter(invocation)
    server = McpServer(BUILD_VERSION, _tools(invocation, reporter), invocation["instructions"])
    if invocation["agentapi_url"] and reporter is not None:
        from coder.base.threads import run_trio
        from coder.cli.tasks.agentapi import serve_watching

        policy = DialPolicy(session.normal_url(invocation["agentapi_url"]))
        run_trio(serve_watching, server.answer_line, policy, reporter)
        return 0
    for line in sys.stdin:
        if line.strip() and (answer := server.answer_line(line)) is not None:
            sys.stdout.write(answer + "\n")
            sys.stdout.flush()
    return 0


def _tools(invocation: Invocation, reporter: AppStatusReporter | None) -> list[Any]:
    """Return the allowed tools whose credentials exist. Raise CoderError if there are none."""
    from coder.cli.tasks.mcp_task_tools import task_tools, template_tools
    from coder.cli.tasks.mcp_tools import deployment_tools, report_tool
    from coder.cli.tasks.mcp_workspace_tools import workspace_tools

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
    allowed = set(invocation["allowed_tools"])
    if unknown := allowed - {tool.name for tool in tools}:
        say(f"Unknown tools: {', '.join(sorted(unknown))}")
    tools = [tool for tool in tools if not allowed or tool.name in allowed]
    if not tools:
        raise CoderError("mcp", "there are no tools to serve", reason or "Check --allowed-tools.")
    return tools


def _reporter(invocation: Invocation) -> AppStatusReporter | None:
    """Return the reporter of the app's status, by the agent's token or its socket; None without both."""
    from coder.cli.tasks.app_status import AppStatusReporter

    slug, token = invocation["app_status_slug"], invocation["agent_token"]
    url = invocation["agent_url"] or invocation.globals["url"]
    if not slug:
        return None
    if token and url and invocation.sources["socket_path"] != "flag":
        from coder.net.blocking import BlockingClient

        policy = session.with_tls_files(session.dial_policy(invocation, url=url, token=""), invocation)
        agent = BlockingClient(policy.with_token(Secret(token)))
        return AppStatusReporter(
            lambda report: agent.request("PATCH", "/api/v2/workspaceagents/me/app-status", json=_body(slug, report))
        )
    if invocation["socket_path"]:
        from coder.cli.agents.sync import ask_agent

        return AppStatusReporter(lambda report: ask_agent(invocation, "report", patience=60, **_body(slug, report)))
    return None


def _body(slug: str, report: Report) -> dict[str, str]:
    return {"app_slug": slug, "state": report.state, "message": report.summary, "uri": report.link}


# ---- configure


def _configure(
    invocation: Invocation, path: Path, keys: tuple[str, ...] = (), top: Mapping[str, Any] | None = None
) -> int:
    """Add the MCP server to a client's JSON file, and `top` at its top level; other entries stay."""
    try:
        document = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        document.update(top or {})
        node = document
        for name in keys:
            node = node.setdefault(name, {})
        env = {
            "CODER_MCP_APP_STATUS_SLUG": invocation.options.get("app_status_slug") or "",
            "CODER_MCP_AI_AGENTAPI_URL": invocation.options.get("agentapi_url") or "",
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


def _claude_code(invocation: Invocation) -> int:
    path = Path(invocation["claude_config_path"]).expanduser()
    project = str(Path(invocation.args[0]).absolute()) if invocation.args else ""
    key = invocation["claude_api_key"]
    # With an API key, Claude Code does not prompt for a login.
    top = {"primaryApiKey": key, "hasCompletedOnboarding": True} if key else {}
    _configure(invocation, path, ("projects", project) if project else (), top)
    prompts = {"coder-prompt": invocation["coder_prompt"], "system-prompt": invocation["system_prompt"]}
    _write_prompts(Path(invocation["claude_md_path"]).expanduser(), prompts)
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


def _claude_desktop(invocation: Invocation) -> int:
    home = Path.home()
    folder = {"darwin": home / "Library/Application Support", "win32": home / "AppData/Roaming"}
    return _configure(invocation, folder.get(sys.platform, home / ".config") / "Claude/claude_desktop_config.json")


def _cursor(invocation: Invocation) -> int:
    return _configure(invocation, (Path.cwd() if invocation["project"] else Path.home()) / ".cursor/mcp.json")


_SLUG = Option(
    "app_status_slug",
    "app-status-slug",
    "CODER_MCP_APP_STATUS_SLUG",
    help="Slug of the app whose status shows the model's progress.",
)
_AGENTAPI = Option(
    "agentapi_url",
    "ai-agentapi-url",
    "CODER_MCP_AI_AGENTAPI_URL",
    kind="url",
    help="URL of the AgentAPI of the model's program, whose state is reported as the app's status too.",
)
SERVER = Command(
    words="exp mcp server",
    summary="Run an MCP server on standard input and output",
    run=_serve,
    max_args=0,
    options=(
        Option(
            "instructions",
            "instructions",
            "CODER_MCP_INSTRUCTIONS",
            help="Instructions for the model; defaults to a built-in text.",
        ),
        Option(
            "allowed_tools",
            "allowed-tools",
            "CODER_MCP_ALLOWED_TOOLS",
            kind="string-array",
            default=(),
            help="Names of the tools to serve, separated by commas; defaults to all.",
        ),
        _SLUG,
        _AGENTAPI,
        replace(SOCKET, help="Path of the agent's socket, for status reports if no agent token is set."),
        Option("agent_url", "agent-url", "CODER_AGENT_URL", kind="url", hidden=True),
        Option("agent_token", "agent-token", "CODER_AGENT_TOKEN", secret=True, hidden=True),
    ),
)
CLAUDE_CODE = Command(
    words="exp mcp configure claude-code",
    summary="Configure Claude Code to use the MCP server",
    usage="[project directory]",
    run=_claude_code,
    max_args=1,
    options=(
        Option(
            "claude_config_path",
            "claude-config-path",
            "CODER_MCP_CLAUDE_CONFIG_PATH",
            default="~/.claude.json",
            help="Settings file of Claude Code to add the MCP server to.",
        ),
        Option(
            "claude_md_path",
            "claude-md-path",
            "CODER_MCP_CLAUDE_MD_PATH",
            default="~/.claude/CLAUDE.md",
            help="Instructions file of Claude Code to write the prompts to.",
        ),
        Option(
            "claude_api_key",
            "claude-api-key",
            "CLAUDE_API_KEY",
            secret=True,
            help="API key for Claude Code; unchanged if not set.",
        ),
        Option(
            "coder_prompt",
            "claude-coder-prompt",
            "CODER_MCP_CLAUDE_CODER_PROMPT",
            help="Prompt about work in a workspace; defaults to a built-in text.",
        ),
        Option(
            "system_prompt",
            "claude-system-prompt",
            "CODER_MCP_CLAUDE_SYSTEM_PROMPT",
            default="Send a task status update to notify the user that you are ready for input, "
            "and then wait for user input.",
            help="System prompt, which the model reads first in every session.",
        ),
        Option(
            "app_status_slug",
            "claude-app-status-slug",
            "CODER_MCP_APP_STATUS_SLUG",
            help="Slug of the app whose status shows the model's progress.",
        ),
        _AGENTAPI,
    ),
)
CLAUDE_DESKTOP = Command(
    words="exp mcp configure claude-desktop",
    summary="Configure Claude Desktop to use the MCP server",
    run=_claude_desktop,
    max_args=0,
)
CURSOR = Command(
    words="exp mcp configure cursor",
    summary="Configure Cursor to use the MCP server",
    run=_cursor,
    max_args=0,
    options=(
        Option(
            "project",
            "project",
            "CODER_MCP_CURSOR_PROJECT",
            kind="bool",
            default=False,
            help="Configure the project in the current directory instead of the whole account.",
        ),
    ),
)
