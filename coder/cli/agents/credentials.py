"""Options for the agent credentials of commands inside a workspace, and their values."""

from __future__ import annotations

from pathlib import Path

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli.core.command import Invocation

AUTH = Option(
    "auth",
    "auth",
    "CODER_AGENT_AUTH",
    default="token",
    help='Method the agent authenticates with; "token" uses the agent\'s token.',
)
NAME = Option(
    "agent_name",
    "agent-name",
    "CODER_AGENT_NAME",
    help="Name of the agent, for a cloud instance with several agents.",
)
_TOKEN = Option(
    "agent_token",
    "agent-token",
    "CODER_AGENT_TOKEN",
    secret=True,
    help="Token of the agent; --agent-token-file keeps it out of the process list.",
)
_TOKEN_FILE = Option(
    "agent_token_file",
    "agent-token-file",
    "CODER_AGENT_TOKEN_FILE",
    help="File with the agent's token; no other user should be able to read it.",
)
_URL = Option(
    "agent_url",
    "agent-url",
    "CODER_AGENT_URL",
    kind="url",
    help="Address of the deployment, like https://coder.example.com; defaults to --url.",
)
CREDENTIALS = (_URL, _TOKEN, _TOKEN_FILE)


def read_token_option(invocation: Invocation) -> str:
    """Return the token of the option or of the file; "" without one. Raise CoderError if the file is unreadable."""
    token, path = str(invocation["agent_token"]), invocation["agent_token_file"]
    if token or not path:
        return token
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CoderError("agent_token", f"cannot read the agent's token from {path}") from error


def require_token(invocation: Invocation) -> str:
    """Return the token of `read_token_option`. Raise CoderError without one."""
    token = read_token_option(invocation)
    if not token:
        raise CoderError(
            "agent_token",
            "CODER_AGENT_TOKEN must be set for token auth",
            "`coder external-workspaces agent-instructions` prints a command with it.",
        )
    return token


def require_url(invocation: Invocation) -> str:
    """Return the deployment's address. Raise CoderError without one."""
    url = invocation["agent_url"] or invocation.globals["url"]
    if not url:
        raise CoderError("agent_url", "CODER_AGENT_URL must be set", "It is the URL of the deployment.")
    return str(url)
