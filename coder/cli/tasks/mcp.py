"""`coder exp mcp`: the deployment as tools for a model, and the files by which its programs find them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.base.version import BUILD_VERSION
from coder.cli import session
from coder.cli.command import Command, Invocation
from coder.cli.output import say


def _serve(invocation: Invocation) -> int:
    from coder.cli.tasks.mcp_protocol import McpServer

    server = McpServer(BUILD_VERSION, _tools(invocation), invocation["instructions"])
    for line in sys.stdin:
        if line.strip() and (answer := server.answer_line(line)) is not None:
            sys.stdout.write(answer + "\n")
            sys.stdout.flush()
    return 0


def _tools(invocation: Invocation) -> list[Any]:
    """The tools whose credentials are at hand, of those that are allowed. Raises CoderError when none is left."""
    from coder.cli.tasks.mcp_tools import person_tools, report_tool
    from coder.net.blocking import BlockingClient

    found, why = [], ""
    try:
        found += person_tools(session.client(invocation))
    except CoderError as error:
        why = error.message
        say(f"No login: tools that need one are left out ({why})")
    token, url = invocation["agent_token"], invocation["agent_url"] or invocation.globals["url"]
    if token and url and invocation["app_status_slug"]:
        policy = session.with_tls_files(session.dial_policy(invocation, url=url, token=""), invocation)
        found.append(report_tool(BlockingClient(policy.with_token(Secret(token))), invocation["app_status_slug"]))
    allowed = set(invocation["allowed_tools"])
    if unknown := allowed - {tool.name for tool in found}:
        say(f"These tools are not here: {', '.join(sorted(unknown))}")
    found = [tool for tool in found if not allowed or tool.name in allowed]
    if not found:
        raise CoderError("mcp", "there is no tool to serve", why or "Check --allowed-tools.")
    return found


# ---- configure


def _configure(invocation: Invocation, path: Path, place: tuple[str, ...] = ()) -> int:
    """Adds our server to a client's JSON file; what else stands there stays."""
    try:
        whole = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        node = whole
        for name in place:
            node = node.setdefault(name, {})
        env = {"CODER_MCP_APP_STATUS_SLUG": invocation.options.get("app_status_slug") or ""}
        node.setdefault("mcpServers", {})["coder"] = {
            "type": "stdio",
            "command": session.program(),
            "args": ["exp", "mcp", "server"],
            "env": {name: value for name, value in env.items() if value},
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise CoderError("mcp", f"{path} holds something else than settings", "Move it away, or mend it.") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.coder")
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
    say(f"{path} names this server now.")
    return 0


def _claude_code(invocation: Invocation) -> int:
    path = Path(invocation["claude_config_path"]).expanduser()
    project = str(Path(invocation.args[0]).absolute()) if invocation.args else ""
    return _configure(invocation, path, ("projects", project) if project else ())


def _claude_desktop(invocation: Invocation) -> int:
    home = Path.home()
    folder = {"darwin": home / "Library/Application Support", "win32": home / "AppData/Roaming"}
    return _configure(invocation, folder.get(sys.platform, home / ".config") / "Claude/claude_desktop_config.json")


def _cursor(invocation: Invocation) -> int:
    return _configure(invocation, (Path.cwd() if invocation["project"] else Path.home()) / ".cursor/mcp.json")


_SLUG = Option("app_status_slug", "app-status-slug", "CODER_MCP_APP_STATUS_SLUG", help="App whose status is reported.")
SERVER = Command(
    words="exp mcp server",
    summary="Serve tools for a model on standard input and output",
    run=_serve,
    max_args=0,
    options=(
        Option("instructions", "instructions", "CODER_MCP_INSTRUCTIONS", help="What the model is told about them."),
        Option(
            "allowed_tools",
            "allowed-tools",
            "CODER_MCP_ALLOWED_TOOLS",
            kind="string-array",
            default=(),
            help="Only these tools.",
        ),
        _SLUG,
        Option("agent_url", "agent-url", "CODER_AGENT_URL", hidden=True),
        Option("agent_token", "agent-token", "CODER_AGENT_TOKEN", secret=True, hidden=True),
    ),
)
CLAUDE_CODE = Command(
    words="exp mcp configure claude-code",
    summary="Let Claude Code use the tools",
    usage="[project directory]",
    run=_claude_code,
    max_args=1,
    options=(
        Option(
            "claude_config_path",
            "claude-config-path",
            "CODER_MCP_CLAUDE_CONFIG_PATH",
            default="~/.claude.json",
            help="Its settings.",
        ),
        _SLUG,
    ),
)
CLAUDE_DESKTOP = Command(
    words="exp mcp configure claude-desktop",
    summary="Let Claude Desktop use the tools",
    run=_claude_desktop,
    max_args=0,
)
CURSOR = Command(
    words="exp mcp configure cursor",
    summary="Let Cursor use the tools",
    run=_cursor,
    max_args=0,
    options=(Option("project", "project", "CODER_MCP_CURSOR_PROJECT", kind="bool", default=False, help="Here only."),),
)
