"""Options for the agent credentials of commands inside a workspace, and their values."""

from __future__ import annotations

from pathlib import Path

from coder.base.errors import CoderError
from coder.base.written_text import read_written
from coder.cli.core.command import Invocation
from coder.cli.declarations.agents.credentials import CredentialOptions


def read_token_option(invocation: Invocation[CredentialOptions]) -> str:
    """Return the token of the option or of the file without white space around it; "" without one.

    Raise CoderError if the file is unreadable, or if no token looks so: a line break inside it would end a header.
    """
    token, path = str(invocation.options.agent_token), invocation.options.agent_token_file
    if not token and path:
        try:
            token = read_written(Path(path))
        except (OSError, UnicodeError) as error:
            raise CoderError("agent_token", f"cannot read the agent's token from {path}") from error
    token = token.strip()
    if not token.isprintable() or not token.isascii() or " " in token:
        raise CoderError(
            "agent_token",
            "the agent's token contains a character that no token has, such as a space or a line break",
            "Copy it again: `coder external-workspaces agent-instructions` prints it in one line.",
        )
    return token


def require_token(invocation: Invocation[CredentialOptions]) -> str:
    """Return the token of `read_token_option`. Raise CoderError without one."""
    token = read_token_option(invocation)
    if not token:
        raise CoderError(
            "agent_token",
            "CODER_AGENT_TOKEN must be set for token auth",
            "`coder external-workspaces agent-instructions` prints a command with it.",
        )
    return token


def require_url(invocation: Invocation[CredentialOptions]) -> str:
    """Return the deployment's address. Raise CoderError without one."""
    url = invocation.options.agent_url or invocation.globals.url
    if not url:
        raise CoderError("agent_url", "CODER_AGENT_URL must be set", "It is the URL of the deployment.")
    return str(url)
