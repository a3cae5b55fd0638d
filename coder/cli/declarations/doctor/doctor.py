"""Declaration of `coder doctor`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import option, output_option
from coder.cli.declarations.agents.credentials import CredentialOptions
from coder.cli.declarations.server.direct_database import DatabaseOptions, postgres_url_option


class DoctorOptions(DatabaseOptions, CredentialOptions):
    """Options of `coder doctor`."""

    postgres_url: str = postgres_url_option(running=True)
    socket_path: str = option(
        "",
        "Unix socket of this workspace's agent.",
        env="CODER_AGENT_SOCKET_PATH",
    )
    output: str = output_option(("text", "json"), "text")


DOCTOR = Command(
    words="doctor",
    summary="Diagnose this machine, its connection and its server",
    options=DoctorOptions,
    usage="[workspace]",
    max_args=1,
    long=(
        "Checks what this machine can check: the way to the deployment, its certificate, the clocks, the versions, the "
        "session, the disks, the agent, and on the server's machine its database and provisioners. It changes nothing, "
        "and works without a session. The exit code is 1 if a check fails; warnings do not count."
    ),
    examples=(
        ("Check this machine", "coder doctor"),
        ("Also check the agents of a workspace", "coder doctor my-workspace"),
        ("Print the findings as JSON", "coder doctor --output json"),
    ),
)
