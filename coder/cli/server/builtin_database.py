"""`coder server postgres-builtin-…`: the built-in database without the server."""

from __future__ import annotations

import signal
import sys

import trio

from coder.base.threads import run_trio
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.server.builtin_database import BUILTIN_SERVE, BUILTIN_URL, RawOption
from coder.cli.server.direct_database import find_database, on_database, settings
from coder.coderd.store.engine.postgres import builtin_url, run_postgres


def _print_url(invocation: Invocation[RawOption], url: str) -> None:
    sys.stdout.write(f"{url}\n" if invocation.options.raw_url else f'psql "{url}"\n')
    sys.stdout.flush()


@implements(BUILTIN_URL)
@on_database
def _builtin_url(invocation: Invocation[RawOption]) -> int:
    _print_url(invocation, builtin_url(settings(invocation).data_path))
    return 0


@implements(BUILTIN_SERVE)
@on_database
def _builtin_serve(invocation: Invocation[RawOption]) -> int:
    """Run until a stop signal."""
    config = find_database(invocation)

    async def serve() -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with run_postgres(config.data_path, bin_dir=config.postgres_bin_dir) as url:
                _print_url(invocation, url)
                await signals.__anext__()

    run_trio(serve)
    return 0
