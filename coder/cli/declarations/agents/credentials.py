"""Options of the agent's session, which several commands have."""

from __future__ import annotations

from coder.cli.core.options import Options, Url, option

AUTH: str = option(
    "token",
    'Method the agent authenticates with; "token" uses the agent\'s token.',
    env="CODER_AGENT_AUTH",
)
AGENT_NAME: str = option(
    "",
    "Name of the agent, for a cloud instance with several agents.",
    env="CODER_AGENT_NAME",
)


class CredentialOptions(Options):
    """Credentials of an agent."""

    agent_url: Url = option(
        "",
        "Address of the deployment, like https://coder.example.com; defaults to --url.",
        env="CODER_AGENT_URL",
    )
    agent_token: str = option(
        "",
        "Token of the agent; --agent-token-file keeps it out of the process list.",
        env="CODER_AGENT_TOKEN",
        secret=True,
    )
    agent_token_file: str = option(
        "",
        "File with the agent's token; no other user should be able to read it.",
        env="CODER_AGENT_TOKEN_FILE",
    )


class AgentNameOption(Options):
    """The option `--agent-name`."""

    agent_name: str = AGENT_NAME


class AgentSessionOptions(CredentialOptions):
    """Authentication as an agent."""

    auth: str = AUTH


class NamedAgentOptions(AgentSessionOptions):
    """Authentication as one of several agents."""

    auth: str = AUTH
    agent_name: str = AGENT_NAME
