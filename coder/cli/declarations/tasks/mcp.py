"""Declarations of the commands of `coder exp mcp`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, Url, option
from coder.cli.declarations.agents.sync import SocketOption

AGENTAPI: Url = option(
    "",
    "URL of the AgentAPI of the model's program, whose state is reported as the app's status too.",
    flag="ai-agentapi-url",
    env="CODER_MCP_AI_AGENTAPI_URL",
)


class ClientOptions(Options):
    """Environment of the MCP server that a client starts, also of commands without the flags."""

    app_status_slug: str = ""
    agentapi_url: Url = ""


class McpConfigureClaudeCodeOptions(ClientOptions):
    """Options of `coder exp mcp configure claude-code`."""

    claude_config_path: str = option(
        "~/.claude.json",
        "Settings file of Claude Code to add the MCP server to.",
        env="CODER_MCP_CLAUDE_CONFIG_PATH",
    )
    claude_md_path: str = option(
        "~/.claude/CLAUDE.md",
        "Instructions file of Claude Code to write the prompts to.",
        env="CODER_MCP_CLAUDE_MD_PATH",
    )
    claude_api_key: str = option(
        "",
        "API key for Claude Code; unchanged if not set.",
        env="CLAUDE_API_KEY",
        secret=True,
    )
    coder_prompt: str = option(
        "",
        "Prompt about work in a workspace; defaults to a built-in text.",
        flag="claude-coder-prompt",
        env="CODER_MCP_CLAUDE_CODER_PROMPT",
    )
    system_prompt: str = option(
        "Send a task status update to notify the user that you are ready for input, and then wait for user input.",
        "System prompt, which the model reads first in every session.",
        flag="claude-system-prompt",
        env="CODER_MCP_CLAUDE_SYSTEM_PROMPT",
    )
    app_status_slug: str = option(
        "",
        "Slug of the app whose status shows the model's progress.",
        flag="claude-app-status-slug",
        env="CODER_MCP_APP_STATUS_SLUG",
    )
    agentapi_url: Url = AGENTAPI


class McpConfigureCursorOptions(ClientOptions):
    """Options of `coder exp mcp configure cursor`."""

    project: bool = option(
        False,
        "Configure the project in the current directory instead of the whole account.",
        env="CODER_MCP_CURSOR_PROJECT",
    )


class McpServerOptions(SocketOption):
    """Options of `coder exp mcp server`."""

    instructions: str = option(
        "",
        "Instructions for the model; defaults to a built-in text.",
        env="CODER_MCP_INSTRUCTIONS",
    )
    allowed_tools: tuple[str, ...] = option(
        (),
        "Names of the tools to serve, separated by commas; defaults to all.",
        env="CODER_MCP_ALLOWED_TOOLS",
    )
    app_status_slug: str = option(
        "",
        "Slug of the app whose status shows the model's progress.",
        env="CODER_MCP_APP_STATUS_SLUG",
    )
    agentapi_url: Url = AGENTAPI
    socket_path: str = option(
        "",
        "Path of the agent's socket, for status reports if no agent token is set.",
        env="CODER_AGENT_SOCKET_PATH",
    )
    agent_url: Url = option(
        "",
        env="CODER_AGENT_URL",
        hidden=True,
    )
    agent_token: str = option(
        "",
        env="CODER_AGENT_TOKEN",
        hidden=True,
        secret=True,
    )


CLAUDE_CODE = Command(
    words="exp mcp configure claude-code",
    summary="Configure Claude Code to use the MCP server",
    options=McpConfigureClaudeCodeOptions,
    usage="[project directory]",
    max_args=1,
    examples=(("Connect Claude Code to this deployment", "coder exp mcp configure claude-code ."),),
)

CLAUDE_DESKTOP = Command(
    words="exp mcp configure claude-desktop",
    summary="Configure Claude Desktop to use the MCP server",
    options=ClientOptions,
    max_args=0,
    examples=(("Connect Claude Desktop to this deployment", "coder exp mcp configure claude-desktop"),),
)

CURSOR = Command(
    words="exp mcp configure cursor",
    summary="Configure Cursor to use the MCP server",
    options=McpConfigureCursorOptions,
    max_args=0,
    examples=(
        ("Connect Cursor to this deployment, for this project only", "coder exp mcp configure cursor --project"),
    ),
)

SERVER = Command(
    words="exp mcp server",
    summary="Run an MCP server on standard input and output",
    options=McpServerOptions,
    max_args=0,
    examples=(
        ("Serve all tools on standard input and output", "coder exp mcp server"),
        ("Serve read-only tools", "coder exp mcp server --allowed-tools coder_list_workspaces,coder_get_workspace"),
    ),
)
