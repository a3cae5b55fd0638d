"""Start of a server of several processes, or of a trial of its program."""

from __future__ import annotations

import os
from collections.abc import Callable

from coder.base.errors import CoderError
from coder.coderd.app import ProvisionerFactory, prepare_application
from coder.coderd.config.settings import ServerConfig
from coder.coderd.processes import reload
from coder.coderd.processes.sockets import check_addresses
from coder.coderd.processes.supervisor import Supervisor


def run_processes(
    config: ServerConfig,
    factory: ProvisionerFactory | None,
    announce: Callable[[str], None],
    preload: Callable[[], None],
) -> None:
    """Run a server of several processes until SIGINT or SIGTERM; in a trial only load what it needs. `preload` imports
    what the processes share. Raises CoderError when it cannot start."""
    if not hasattr(os, "fork"):
        raise CoderError("bad_option", "--processes above 1 is not supported on this system", "Use --processes 1.")
    if reload.is_trial():
        preload()
        prepare_application(config)
        check_addresses(config, reload.known_addresses())
        return
    Supervisor(config, factory, announce, preload, reload.inherited_state()).run()
