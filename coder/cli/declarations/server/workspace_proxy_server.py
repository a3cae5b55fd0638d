"""Declaration of `coder workspace-proxy server`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options
from coder.wsproxy.config import PROXY_OPTIONS

SERVER = Command(
    words="workspace-proxy server",
    summary="Start a workspace proxy",
    options=Options,
    more_options=PROXY_OPTIONS,
    max_args=0,
    long="Serves applications, terminals and a relay close to users, for a server elsewhere. Stores nothing and asks "
    "that server for every decision.",
    examples=(
        (
            "Run a workspace proxy",
            "coder workspace-proxy server --primary-access-url https://coder.example.com --access-url "
            "https://eu.coder.example.com --proxy-session-token ABCDEF",
        ),
    ),
)
