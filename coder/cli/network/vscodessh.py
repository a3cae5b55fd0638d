"""`coder vscodessh`: the ProxyCommand that an editor's extension writes to its SSH configuration.

The extension passes the deployment in two files, and the workspace in the host name:
`coder-vscode.<deployment>--<owner>--<workspace>[--<agent>]`. The rest is `coder ssh --stdio`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.cli.core.command import Command, Invocation, parse
from coder.cli.network.ssh import SSH


def target(host: str) -> str:
    """Return `owner/workspace[.agent]` of the extension's host name. Raise CoderError."""
    parts = host.split("--")
    if len(parts) not in (3, 4) or not all(parts):
        message = f"invalid argument format: {quoted(host)}; expected <prefix>--<owner>--<workspace>[--<agent>]"
        raise CoderError("usage", message)
    return f"{parts[1]}/{'.'.join(parts[2:])}"


def _read(path: str, flag: str) -> str:
    if not path:
        raise CoderError("usage", f"--{flag} is required")
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CoderError("vscodessh", f"cannot read {flag.replace('-', ' ')} {path}") from error


def _run(invocation: Invocation) -> int:
    name = target(invocation.args[0])
    words = ["--stdio", f"--wait={invocation['wait']}"]
    for option in ("log_dir", "network_info_dir"):
        if invocation[option]:
            words.append(f"--{option.replace('_', '-')}={invocation[option]}")
    session = parse(SSH, [*words, name], invocation.env)
    options = {
        **session.options,
        "usage_app": "vscode",
        "network_info_interval": invocation["network_info_interval"],
    }
    session_values = {"url": _read(invocation["url_file"], "url-file")}
    session_values["token"] = _read(invocation["session_token_file"], "session-token-file")
    return SSH.run(replace(session, options=options, globals={**invocation.globals, **session_values})) or 0


VSCODESSH = Command(
    words="vscodessh",
    summary="Connect an editor extension to a workspace over SSH, on standard input and output",
    usage="<host>",
    run=_run,
    min_args=1,
    max_args=1,
    options=(
        Option(
            "url_file",
            "url-file",
            "CODER_VSCODESSH_URL_FILE",
            help="File that contains the URL of the deployment.",
        ),
        Option(
            "session_token_file",
            "session-token-file",
            "CODER_VSCODESSH_SESSION_TOKEN_FILE",
            help="File that contains the session token.",
        ),
        *(
            option
            for option in SSH.options
            if option.name in {"log_dir", "network_info_dir", "network_info_interval", "wait"}
        ),
    ),
)
