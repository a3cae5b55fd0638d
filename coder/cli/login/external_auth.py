"""`coder external-auth access-token`: prints the owner's token of an external provider, inside a workspace."""

from __future__ import annotations

import json
import sys
from urllib.parse import quote

from coder.api.login.external_auth import AgentAuth
from coder.base.config import Option
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.base.secret import Secret
from coder.cli.agents.credentials import AUTH, CREDENTIALS, NAME, read_token_option
from coder.cli.core import session
from coder.cli.core.command import Command, Invocation
from coder.cli.core.failures import add_action_to_errors
from coder.cli.ui.output import say
from coder.client.answers import read
from coder.net.blocking import BlockingClient
from coder.net.policy import DialPolicy


def agent_client(invocation: Invocation) -> BlockingClient:
    """Return a client with the agent's token. Raise CoderError outside workspaces."""
    url, token = invocation["agent_url"], read_token_option(invocation)
    for name, value in (("CODER_AGENT_URL", url), ("CODER_AGENT_TOKEN", token)):
        if not value:
            raise CoderError("agent_client", f"create agent client: {name} must be set")
    if invocation["auth"] != "token":
        raise CoderError("agent_auth", f"the agent's authentication {quoted(invocation['auth'])} is not supported here")
    policy = DialPolicy(url=session.deployment_url(url), token=Secret(token))
    return BlockingClient(session.with_tls_files(policy, invocation))


def _access_token(invocation: Invocation) -> int:
    """Print the token and return 0, or print the login URL and return 1."""
    client = agent_client(invocation)
    provider = quote(invocation.args[0], safe="")
    with add_action_to_errors("get external auth token"):
        answer = client.request("GET", f"/api/v2/workspaceagents/me/external-auth?id={provider}")
    auth = read(answer, AgentAuth)
    if not auth.access_token and not auth.url:
        raise CoderError("no_token", "the server sent neither a token nor a login URL")
    if not auth.access_token:
        output = json.dumps(answer.json()) if invocation["output"] == "json" else auth.url
        sys.stdout.write(f"{output}\n")
        if sys.stderr.isatty():
            say("Log in at the URL above, then retry.")
        return 1
    if invocation["extra"]:
        sys.stdout.write(_extra(auth, invocation["extra"]) + "\n")
    elif invocation["output"] == "json":
        sys.stdout.write(json.dumps(answer.json()) + "\n")
    else:
        sys.stdout.write(f"{auth.access_token}\n")
    return 0


def _extra(auth: AgentAuth, path: str) -> str:
    """Return one field of the provider's token response; dots separate nested fields."""
    value: object = auth.token_extra
    for key in path.split("."):
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
            continue
        if not isinstance(value, dict) or key not in value:
            raise CoderError("no_extra", f"the provider's token response has no {quoted(path)}")
        value = value[key]
    return value if isinstance(value, str) else json.dumps(value)


ACCESS_TOKEN = Command(
    words="external-auth access-token",
    summary="Print the access token of an external provider",
    usage="<provider>",
    run=_access_token,
    min_args=1,
    max_args=1,
    long="Exits with 0 and prints the token. "
    "If the owner has not logged in at the provider, exits with 1 and prints the login URL.",
    options=(
        AUTH,
        NAME,
        *CREDENTIALS,
        Option("extra", "extra", help="Print this field of the provider's token response instead of the token."),
        Option(
            "output",
            "output",
            default="text",
            choices=("text", "json"),
            help="Output format: text for people or JSON for scripts.",
        ),
    ),
)
