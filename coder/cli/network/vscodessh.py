"""`coder vscodessh`: the ProxyCommand that an editor's extension writes to its SSH configuration.

The extension passes the deployment in two files, and the workspace in the host name:
`coder-vscode.<deployment>--<owner>--<workspace>[--<agent>]`. The rest is `coder ssh --stdio`.
"""

from __future__ import annotations

from pathlib import Path

from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.base.written_text import read_written
from coder.cli.core.command import Invocation, implements
from coder.cli.core.parsing import parse
from coder.cli.declarations.network.ssh import SSH
from coder.cli.declarations.network.vscodessh import VSCODESSH, VscodesshOptions


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
        return read_written(Path(path)).strip()
    except (OSError, UnicodeError) as error:
        raise CoderError("vscodessh", f"cannot read {flag.replace('-', ' ')} {path}") from error


@implements(VSCODESSH)
def _run(invocation: Invocation[VscodesshOptions]) -> int:
    name = target(invocation.args[0])
    words = ["--stdio", f"--wait={invocation.options.wait}"]
    options = invocation.options
    if options.log_dir:
        words.append(f"--log-dir={options.log_dir}")
    if options.network_info_dir:
        words.append(f"--network-info-dir={options.network_info_dir}")
    session = parse(SSH, [*words, name], invocation.env)
    session.options = session.options.replaced(
        {"usage_app": "vscode", "network_info_interval": options.network_info_interval}
    )
    url = _read(options.url_file, "url-file")
    token = _read(options.session_token_file, "session-token-file")
    session.globals = invocation.globals.replaced({"url": url, "token": token})
    return SSH.run(session) or 0
