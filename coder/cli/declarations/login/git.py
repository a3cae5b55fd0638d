"""Declarations of `coder gitaskpass` and `coder gitssh`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.declarations.agents.credentials import AgentSessionOptions

GITASKPASS = Command(
    words="gitaskpass",
    summary="Answer git's prompt for a user name or password",
    options=AgentSessionOptions,
    usage="<question>",
    min_args=1,
    max_args=1,
    examples=(("Answer a prompt of git", "coder gitaskpass \"Username for 'https://github.com': \""),),
)

GITSSH = Command(
    words="gitssh",
    summary="Run ssh with the SSH key of the workspace's owner, as git's SSH command",
    options=AgentSessionOptions,
    usage="-- [ssh arguments]",
    raw_after=0,
    examples=(("Test your key at a Git provider", "coder gitssh -- git@github.com"),),
)
