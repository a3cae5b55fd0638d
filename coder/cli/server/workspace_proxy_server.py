"""`coder workspace-proxy server`: runs a workspace proxy with settings from flags and environment."""

from __future__ import annotations

from coder.base.config import Inputs
from coder.base.open_files import raise_open_files
from coder.base.threads import run_trio
from coder.cli.core.command import Invocation, implements
from coder.cli.core.log_files import open_logs
from coder.cli.core.options import Options
from coder.cli.core.unsupported import check_settings
from coder.cli.declarations.server.workspace_proxy_server import SERVER
from coder.cli.server.announcing import announce
from coder.wsproxy.config import WITHOUT_EFFECT, proxy_config
from coder.wsproxy.server import run_proxy


@implements(SERVER)
def _run(invocation: Invocation[Options]) -> int:
    config = proxy_config(Inputs(flags=invocation.raw, env=invocation.env))
    server = config.server
    paths = server.log_human, server.log_json, server.log_stackdriver
    open_logs(*paths, verbose=bool(invocation.globals.verbose), debug=server.log_filter)
    check_settings(invocation, WITHOUT_EFFECT, "wsproxy")

    async def main() -> None:
        await run_proxy(config, announce=announce)

    raise_open_files()
    run_trio(main)
    announce("Shut down cleanly.")
    return 0
