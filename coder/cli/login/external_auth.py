"""`coder external-auth access-token`: prints the owner's token of an external provider, inside a workspace."""

from __future__ import annotations

import json
import sys
from urllib.parse import quote

from coder.api.login.external_auth import AgentAuth
from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.base.quoted import quoted
from coder.base.secret import Secret
from coder.cli.agents.credentials import read_token_option
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.declarations.agents.credentials import AgentSessionOptions
from coder.cli.declarations.login.external_auth import ACCESS_TOKEN, ExternalAuthAccessTokenOptions
from coder.cli.ui.output import say
from coder.client.answers import read
from coder.net.blocking import BlockingClient
from coder.net.policy import DialPolicy


def agent_client(invocation: Invocation[AgentSessionOptions]) -> BlockingClient:
    """Return a client with the agent's token. Raise CoderError outside workspaces."""
    url, token = invocation.options.agent_url, read_token_option(invocation)
    for name, value in (("CODER_AGENT_URL", url), ("CODER_AGENT_TOKEN", token)):
        if not value:
            raise CoderError("agent_client", f"create agent client: {name} must be set")
    if invocation.options.auth != "token":
        raise CoderError(
            "agent_auth", f"the agent's authentication {quoted(invocation.options.auth)} is not supported here"
        )
    policy = DialPolicy(url=session.deployment_url(url), token=Secret(token))
    return BlockingClient(session.with_tls_files(policy, invocation))


@implements(ACCESS_TOKEN)
def _access_token(invocation: Invocation[ExternalAuthAccessTokenOptions]) -> int:
    """Print the token and return 0, or print the login URL and return 1."""
    client = agent_client(invocation)
    provider = quote(invocation.args[0], safe="")
    with add_action_to_errors("get external auth token"):
        answer = client.request("GET", f"/api/v2/workspaceagents/me/external-auth?id={provider}")
    auth = read(answer, AgentAuth)
    if not auth.access_token and not auth.url:
        raise CoderError("no_token", "the server sent neither a token nor a login URL")
    if not auth.access_token:
        output = json.dumps(answer.json()) if invocation.options.output == "json" else auth.url
        sys.stdout.write(f"{output}\n")
        if sys.stderr.isatty():
            say("Log in at the URL above, then retry.")
        return 1
    if invocation.options.extra:
        sys.stdout.write(_extra(auth, invocation.options.extra) + "\n")
    elif invocation.options.output == "json":
        sys.stdout.write(json.dumps(answer.json()) + "\n")
    else:
        sys.stdout.write(f"{auth.access_token}\n")
    return 0


def _extra(auth: AgentAuth, path: str) -> str:
    """Return one field of the provider's token response; dots separate nested fields."""
    value: Json = auth.token_extra
    for key in path.split("."):
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
            continue
        if not isinstance(value, dict) or key not in value:
            raise CoderError("no_extra", f"the provider's token response has no {quoted(path)}")
        value = value[key]
    return value if isinstance(value, str) else json.dumps(value)
