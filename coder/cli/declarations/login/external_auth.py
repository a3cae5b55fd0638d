"""Declaration of `coder external-auth access-token`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import option
from coder.cli.declarations.agents.credentials import NamedAgentOptions


class ExternalAuthAccessTokenOptions(NamedAgentOptions, bases_first=True):
    """Options of `coder external-auth access-token`."""

    extra: str = option(
        "",
        "Print this field of the provider's token response instead of the token.",
    )
    output: str = option(
        "text",
        "Output format: text for people or JSON for scripts.",
        choices=("text", "json"),
    )


ACCESS_TOKEN = Command(
    words="external-auth access-token",
    summary="Print the access token of an external provider",
    options=ExternalAuthAccessTokenOptions,
    usage="<provider>",
    min_args=1,
    max_args=1,
    long="Exits with 0 and prints the token. "
    "If the owner has not logged in at the provider, exits with 1 and prints the login URL.",
    examples=(
        ("Print the token of a Git provider in a workspace script", "coder external-auth access-token github"),
        (
            "Print another field of the provider's answer",
            "coder external-auth access-token slack --extra authed_user.id",
        ),
    ),
)
