"""`coder provisioner start`: connection and configuration of an external daemon."""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import trio

from coder.api.provisioning.provisioner_keys import ProvisionerKey
from coder.base.config import process_environment
from coder.base.errors import CoderError
from coder.base.host import HostWatch
from coder.base.open_files import raise_open_files
from coder.base.secret import Secret
from coder.base.threads import run_trio
from coder.base.version import PROVISIONER_API_VERSION
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.log_files import open_logs
from coder.cli.core.unsupported import DAEMON, check_settings
from coder.cli.declarations.provisioning.provisioner_daemons import (
    LEGACY_START,
    START,
    ProvisionerStartOptions,
)
from coder.cli.provisioning.executors import provisioner_cache, terraform_executors
from coder.cli.server.start_checks import check_terraform
from coder.cli.ui.output import say
from coder.cli.workspaces.parameters import pairs
from coder.client.answers import read
from coder.net.errors import HttpError
from coder.net.http1 import HttpClient
from coder.net.websocket import connect_websocket
from coder.provisionerd.activity import ProvisionerActivity
from coder.provisionerd.config import RELEASES_VARIABLE, DaemonConfig, Shutdown
from coder.provisionerd.daemon import run_daemon
from coder.provisionerd.metrics import serve_metrics
from coder.provisionerd.overlay import DaemonOverlay
from coder.rpc.session import open_session

if TYPE_CHECKING:
    from coder.net.policy import DialPolicy
    from coder.provisionerd.config import DaemonConfig, Shutdown
    from coder.rpc.session import Session


MAX_MESSAGE = 256 << 10


@implements(START)
@implements(LEGACY_START)
def _start(invocation: Invocation[ProvisionerStartOptions]) -> int:
    paths = invocation.options.log_human, invocation.options.log_json, invocation.options.log_stackdriver
    open_logs(*paths, verbose=bool(invocation.options.verbose), debug=invocation.options.log_filter)
    check_settings(invocation, DAEMON, "provisionerd")
    if invocation.options.key and (invocation.options.psk or invocation.options.tag or invocation.options.org):
        raise CoderError("usage", "--key cannot be used with --psk, --tag or --org", "The key has its own tags.")
    _check_terraform(invocation.options.terraform_path)
    raise_open_files()
    try:
        run_trio(_serve, invocation)
    except* HttpError as refused:
        leaf: BaseException = refused
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        message, way = _refusal(invocation.options)
        raise CoderError("refused", message, way) from leaf
    return 0


def _refusal(options: ProvisionerStartOptions) -> tuple[str, str]:
    """Return what the server refused, and the next step: one credential of three is used."""
    if options.key:
        return "connect with the provisioner key", "It may be wrong or deleted: `coder provisioner keys list`."
    if options.psk:
        return "connect with --psk", "It must equal the server's CODER_PROVISIONER_DAEMON_PSK."
    return "connect with the session token", ""


def _check_terraform(path: str) -> None:
    """Refuse to start without a usable Terraform: the provisioner would fail each job that it takes."""
    environment = process_environment()
    check_terraform(path, environment, can_download=environment.get(RELEASES_VARIABLE, "") != "off")


async def _serve(invocation: Invocation[ProvisionerStartOptions]) -> None:
    with_token = not (invocation.options.key or invocation.options.psk)
    policy = session.dial_policy(invocation, token=None if with_token else "")
    organization = (
        invocation.options.org or session.read_file(session.config_dir(invocation), "organization") or "default"
    )
    name = invocation.options.name or socket.gethostname().split(".")[0]
    tags = pairs(invocation.options.tag, "tag")
    knock = _DaemonCredentials(
        policy, organization, name, tags, Secret(invocation.options.key or ""), Secret(invocation.options.psk or "")
    )
    cache = provisioner_cache(invocation.options.cache_dir)
    executors = terraform_executors(cache, invocation.options.terraform_path, invocation.options.terraform_provider)
    config = _daemon_config(invocation, name, cache)
    activity = ProvisionerActivity()
    overlay = DaemonOverlay(policy, HostWatch(cache), activity)
    async with trio.open_nursery() as nursery:
        if invocation.options.prometheus:
            await nursery.start(serve_metrics, invocation.options.prometheus_address, activity)
        await nursery.start(overlay.run)
        run = partial(run_daemon, knock.connect, config, executors, beside=overlay.coordinate, activity=activity)
        await _run_until_signal(run, forceful=bool(invocation.options.forceful))
        nursery.cancel_scope.cancel()


def _daemon_config(invocation: Invocation[ProvisionerStartOptions], name: str, cache: Path) -> DaemonConfig:
    return DaemonConfig(
        name=name,
        work_dir=cache / "work",
        # Twice a second, because the replies report that the job was canceled.
        heartbeat=0.5,
        job_timeout=invocation.options.job_timeout.total_seconds(),
    )


async def _run_until_signal(run: Callable[[Shutdown], Awaitable[None]], *, forceful: bool) -> None:
    """Stop on signals. SIGTERM drains: the running job finishes first. SIGINT cancels it gracefully; a second signal
    stops immediately.

    `forceful`: the first signal acts as the second.
    """

    shutdown = Shutdown()

    async def watch(scope: trio.CancelScope) -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                if shutdown.draining or forceful:
                    say("Stopping now; a running job fails with its current state.")
                    scope.cancel()
                elif number == signal.SIGTERM:
                    say("Draining: waiting for the running job to finish. Repeat the signal to stop immediately.")
                    shutdown.drain()
                else:
                    say("Canceling the running job, then stopping. Repeat the signal to stop immediately.")
                    shutdown.cancel_job()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch, nursery.cancel_scope)
        await run(shutdown)
        nursery.cancel_scope.cancel()


@dataclass
class _DaemonCredentials:
    """Credentials of this daemon, and how to connect with them."""

    policy: DialPolicy
    organization: str
    name: str
    tags: dict[str, str]
    key: Secret
    psk: Secret
    is_checked: bool = False
    "Whether the server has accepted the session token."

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Session]:
        """Open a connection. Raise HttpError if the server rejects it."""
        await self._check_token()
        await self._learn_organization()
        socket_ = await connect_websocket(self.policy, self._path(), headers=self._headers(), max_message=MAX_MESSAGE)
        try:
            async with open_session(socket_, "client") as opened:
                yield opened
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(socket_)

    async def _check_token(self) -> None:
        """Raise HttpError for a rejected session token. Here, so that an answer of a proxy in between is retried."""
        if self.is_checked or self.key.reveal() or self.psk.reveal():
            return
        async with HttpClient(self.policy) as http:
            await http.request("GET", "/api/v2/users/me")
        self.is_checked = True

    async def _learn_organization(self) -> None:
        """Read the organization of a provisioner key, so that no flag is required."""
        secret = self.key.reveal()
        if not secret:
            return
        async with HttpClient(self.policy) as http:
            path = f"/api/v2/provisionerkeys/{quote(secret, safe='')}"
            answer = await http.request("GET", path, headers=[("Coder-Provisioner-Daemon-Key", secret)])
        self.organization = read(answer, ProvisionerKey).organization

    def _path(self) -> str:
        query = [
            ("version", PROVISIONER_API_VERSION),
            ("name", self.name),
            ("provisioner", "terraform"),
            ("provisioner", "echo"),
        ]
        query += [("tag", f"{key}={value}") for key, value in self.tags.items()]
        return f"/api/v2/organizations/{quote(self.organization)}/provisionerdaemons/serve?{urlencode(query)}"

    def _headers(self) -> list[tuple[str, str]]:
        known = (("Coder-Provisioner-Daemon-Key", self.key), ("Coder-Provisioner-Daemon-PSK", self.psk))
        return [(name, secret.reveal()) for name, secret in known if secret.reveal()]
