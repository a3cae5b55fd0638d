"""Declaration of `coder vscodessh`."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from coder.cli.core.command import Command
from coder.cli.core.options import Options, option


class VscodesshOptions(Options):
    """Options of `coder vscodessh`."""

    url_file: str = option(
        "",
        "File that contains the URL of the deployment.",
        env="CODER_VSCODESSH_URL_FILE",
    )
    session_token_file: str = option(
        "",
        "File that contains the session token.",
        env="CODER_VSCODESSH_SESSION_TOKEN_FILE",
    )
    wait: Literal["yes", "no", "auto"] = option(
        "auto",
        "Wait for start scripts before opening the shell; auto follows the template.",
        env="CODER_SSH_WAIT",
        choices=("yes", "no", "auto"),
    )
    log_dir: str = option(
        "",
        "Directory for a log file of the connection.",
        env="CODER_SSH_LOG_DIR",
        short="l",
    )
    network_info_dir: str = option(
        "",
        "Directory for a file with latency, relay and throughput of the connection.",
    )
    network_info_interval: timedelta = option(
        timedelta(seconds=5),
        "Interval between updates of that file, like 5s; at least 100ms.",
        least=timedelta(milliseconds=100),
    )


VSCODESSH = Command(
    words="vscodessh",
    summary="Connect an editor extension to a workspace over SSH, on standard input and output",
    options=VscodesshOptions,
    usage="<host>",
    min_args=1,
    max_args=1,
    examples=(
        (
            "Connect as an editor extension does",
            "coder vscodessh --url-file url --session-token-file token --network-info-dir net coder-vscode--alice--dev",
        ),
    ),
)
