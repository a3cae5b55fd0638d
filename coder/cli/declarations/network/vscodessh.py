"""Declaration of `coder vscodessh`."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from coder.cli.core.command import Command
from coder.cli.core.options import Options, option
from coder.cli.declarations.network.options import LOG_DIR, NETWORK_INFO_DIR, NETWORK_INFO_INTERVAL, WAIT


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
    wait: Literal["yes", "no", "auto"] = WAIT
    log_dir: str = LOG_DIR
    network_info_dir: str = NETWORK_INFO_DIR
    network_info_interval: timedelta = NETWORK_INFO_INTERVAL


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
