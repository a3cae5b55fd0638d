"""The built-in provisioner daemons of `coder server`."""

from __future__ import annotations

import socket
from functools import partial

import trio

from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.cli.declarations.provisioning.provisioner_daemons import PROVIDERS
from coder.cli.provisioning.executors import provisioner_cache, terraform_executors
from coder.coderd.rpc_endpoints.provisioners import connect_built_in
from coder.coderd.services.foundation.context import Context
from coder.provisionerd.config import DaemonConfig, Shutdown
from coder.provisionerd.daemon import run_daemon


async def builtin_daemons(context: Context) -> None:
    """Run the server's built-in daemons: the code of external daemons over an in-memory connection."""
    config = context.config
    host = socket.gethostname().split(".")[0]
    cache = provisioner_cache(str(config.cache_dir))
    if config.terraform_provider not in PROVIDERS:
        chosen = config.terraform_provider
        raise CoderError("bad_option", f"--terraform-provider {quoted(chosen)}", f"One of: {', '.join(PROVIDERS)}.")
    executors = terraform_executors(
        cache, config.terraform_path, config.terraform_provider, builtin=config.provisioner_daemons
    )
    patience = config.provisioner_force_cancel_interval.total_seconds()
    shutdown = Shutdown()

    async def drain_on(event: trio.Event) -> None:
        await event.wait()
        shutdown.drain()

    async with trio.open_nursery() as watching:
        for event in (context.stopping, context.process.retiring):
            if event is not None:
                watching.start_soon(drain_on, event)
        async with trio.open_nursery() as nursery:
            for index in range(config.provisioner_daemons):
                name = f"{host}-{index}"
                connect = partial(connect_built_in, context, name, list(config.provisioner_types))
                work = DaemonConfig(
                    name=name,
                    work_dir=cache / f"work-{index}",
                    force_cancel=patience,
                    job_timeout=config.provisioner_job_timeout.total_seconds(),
                )
                nursery.start_soon(partial(run_daemon, connect, work, executors, shutdown))
        watching.cancel_scope.cancel()
