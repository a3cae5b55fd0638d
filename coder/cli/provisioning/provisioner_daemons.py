"""`coder provisioner start`, and the built-in daemons of `coder server`: connection and configuration."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.base.secret import Secret
from coder.cli import session
from coder.cli.command import ORG, Command, Invocation
from coder.cli.output import say
from coder.cli.workspaces.parameters import pairs
from coder.client.answers import read
from coder.net.errors import HttpError

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.net.policy import DialPolicy
    from coder.provisionerd.config import DaemonConfig, Shutdown
    from coder.rpc.session import Session


MAX_MESSAGE = 256 << 10

PROVIDERS = ("builtin", "upstream")
"""Source of the coder/coder provider: this process, or Terraform's installation."""


def _start(invocation: Invocation) -> int:
    from coder.base.open_files import raise_open_files
    from coder.base.threads import run_trio
    from coder.cli.log_files import open_logs
    from coder.cli.unsupported import DAEMON, check_settings

    paths = invocation["log_human"], invocation["log_json"], invocation["log_stackdriver"]
    open_logs(*paths, verbose=bool(invocation["verbose"]), debug=invocation["log_filter"])
    check_settings(invocation, DAEMON, "provisionerd")
    if invocation["key"] and (invocation["psk"] or invocation["tag"] or invocation["org"]):
        raise CoderError("usage", "--key cannot be used with --psk, --tag or --org", "The key has its own tags.")
    _check_terraform(invocation["terraform_path"])
    raise_open_files()
    try:
        run_trio(_serve, invocation)
    except* HttpError as refused:
        leaf: BaseException = refused
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        message, way = _refusal(invocation)
        raise CoderError("refused", message, way) from leaf
    return 0


def _refusal(invocation: Invocation) -> tuple[str, str]:
    """Return what the server refused, and the next step: one credential of three is used."""
    if invocation["key"]:
        return "connect with the provisioner key", "It may be wrong or deleted: `coder provisioner keys list`."
    if invocation["psk"]:
        return "connect with --psk", "It must equal the server's CODER_PROVISIONER_DAEMON_PSK."
    return "connect with the session token", ""


def _check_terraform(path: str) -> None:
    """Refuse to start without a usable Terraform: the provisioner would fail each job that it takes."""
    from coder.base.config import process_environment
    from coder.cli.server.start_checks import check_terraform
    from coder.provisionerd.config import RELEASES_VARIABLE

    environment = process_environment()
    check_terraform(path, environment, can_download=environment.get(RELEASES_VARIABLE, "") != "off")


async def _serve(invocation: Invocation) -> None:
    import trio

    from coder.base.host import HostWatch
    from coder.net.http1 import HttpClient
    from coder.provisionerd.activity import ProvisionerActivity
    from coder.provisionerd.daemon import run_daemon
    from coder.provisionerd.metrics import serve_metrics
    from coder.provisionerd.overlay import DaemonOverlay

    with_token = not (invocation["key"] or invocation["psk"])
    policy = session.dial_policy(invocation, token=None if with_token else "")
    organization = invocation["org"] or session.read_file(session.config_dir(invocation), "organization") or "default"
    if with_token:
        async with HttpClient(policy) as http:
            await http.request("GET", "/api/v2/users/me")  # a rejected token is an error, not retried forever
    name = invocation["name"] or socket.gethostname().split(".")[0]
    tags = pairs(invocation["tag"], "tag")
    knock = _DaemonCredentials(
        policy, organization, name, tags, Secret(invocation["key"] or ""), Secret(invocation["psk"] or "")
    )
    cache = _cache(invocation["cache_dir"])
    executors = _executors(cache, invocation["terraform_path"], invocation["terraform_provider"])
    config = _daemon_config(invocation, name, cache)
    activity = ProvisionerActivity()
    overlay = DaemonOverlay(policy, HostWatch(cache), activity)
    async with trio.open_nursery() as nursery:
        if invocation["prometheus"]:
            await nursery.start(serve_metrics, invocation["prometheus_address"], activity)
        await nursery.start(overlay.run)
        run = partial(run_daemon, knock.connect, config, executors, beside=overlay.coordinate, activity=activity)
        await _run_until_signal(run, forceful=bool(invocation["forceful"]))
        nursery.cancel_scope.cancel()


def _daemon_config(invocation: Invocation, name: str, cache: Path) -> DaemonConfig:
    from coder.provisionerd.config import DaemonConfig

    return DaemonConfig(
        name=name,
        work_dir=cache / "work",
        # Twice a second, because the replies report that the job was canceled.
        heartbeat=0.5,
        job_timeout=invocation["job_timeout"].total_seconds(),
    )


async def _run_until_signal(run: Callable[[Shutdown], Awaitable[None]], *, forceful: bool) -> None:
    """Stop on signals. SIGTERM drains: the running job finishes first. SIGINT cancels it gracefully; a second signal
    stops immediately.

    `forceful`: the first signal acts as the second.
    """
    import signal

    import trio

    from coder.provisionerd.config import Shutdown

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


def _executors(cache: Path, binary: str = "terraform", provider: str = "builtin", *, builtin: int = 0) -> Any:
    """Return the executors; `builtin` is the number of daemons that share the server's machine."""
    from coder.base.config import process_environment
    from coder.provisionerd.config import RELEASES, RELEASES_VARIABLE, TerraformConfig
    from coder.provisionerd.executors.terraform import executor_kinds
    from coder.provisionerd.terraform.limits import NO_LIMITS, builtin_limits

    environment = process_environment()
    releases = environment.get(RELEASES_VARIABLE, "") or RELEASES
    return executor_kinds(
        TerraformConfig(
            binary=binary,
            provider=provider,
            releases="" if releases == "off" else releases,
            cache_dir=cache / "terraform",
            environment=environment,
            limits=builtin_limits(builtin, environment) if builtin else NO_LIMITS,
        )
    )


@dataclass
class _DaemonCredentials:
    """Credentials of this daemon, and how to connect with them."""

    policy: DialPolicy
    organization: str
    name: str
    tags: dict[str, str]
    key: Secret
    psk: Secret

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Session]:
        """Open a connection. Raise HttpError if the server rejects it."""
        import trio

        from coder.net.websocket import connect_websocket
        from coder.rpc.session import open_session

        await self._learn_organization()
        socket_ = await connect_websocket(self.policy, self._path(), headers=self._headers(), max_message=MAX_MESSAGE)
        try:
            async with open_session(socket_, "client") as opened:
                yield opened
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(socket_)

    async def _learn_organization(self) -> None:
        """Read the organization of a provisioner key, so that no flag is required."""
        secret = self.key.reveal()
        if not secret:
            return
        from coder.api.provisioning.provisioner_keys import ProvisionerKey
        from coder.net.http1 import HttpClient

        async with HttpClient(self.policy) as http:
            path = f"/api/v2/provisionerkeys/{quote(secret, safe='')}"
            answer = await http.request("GET", path, headers=[("Coder-Provisioner-Daemon-Key", secret)])
        self.organization = read(answer, ProvisionerKey).organization

    def _path(self) -> str:
        from coder.base.version import PROVISIONER_API_VERSION

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


def _cache(text: str) -> Path:
    return Path(text or "~/.cache/coder").expanduser() / "provisioner"


async def builtin_daemons(context: Context) -> None:
    """Run the server's built-in daemons: the code of external daemons over an in-memory connection."""
    import trio

    from coder.coderd.rpc_endpoints.provisioners import connect_built_in
    from coder.provisionerd.config import DaemonConfig, Shutdown
    from coder.provisionerd.daemon import run_daemon

    config = context.config
    host = socket.gethostname().split(".")[0]
    cache = _cache(str(config.cache_dir))
    if config.terraform_provider not in PROVIDERS:
        chosen = config.terraform_provider
        raise CoderError("bad_option", f"--terraform-provider {quoted(chosen)}", f"One of: {', '.join(PROVIDERS)}.")
    executors = _executors(cache, config.terraform_path, config.terraform_provider, builtin=config.provisioner_daemons)
    patience = config.provisioner_force_cancel_interval.total_seconds()
    shutdown = Shutdown()

    async def drain_on_stop() -> None:
        await context.stopping.wait()
        shutdown.drain()

    async with trio.open_nursery() as watching, trio.open_nursery() as nursery:
        watching.start_soon(drain_on_stop)
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


_START_OPTIONS = (
    Option(
        "cache_dir",
        "cache-dir",
        "CODER_CACHE_DIRECTORY",
        short="c",
        default="",
        help="Directory for work files and downloaded programs; defaults to the user's cache directory.",
    ),
    Option(
        "tag",
        "tag",
        "CODER_PROVISIONERD_TAGS",
        short="t",
        kind="string-array",
        default=(),
        help="Tag, key=value, of this provisioner; it takes jobs whose tags are a subset; may be repeated.",
    ),
    Option(
        "name",
        "name",
        "CODER_PROVISIONER_DAEMON_NAME",
        help="Name of this provisioner; defaults to the host name.",
    ),
    Option(
        "key",
        "key",
        "CODER_PROVISIONER_DAEMON_KEY",
        secret=True,
        help="Provisioner key to authenticate with; it sets organization and tags.",
    ),
    Option(
        "psk",
        "psk",
        "CODER_PROVISIONER_DAEMON_PSK",
        secret=True,
        help="Pre-shared key to authenticate with instead of a provisioner key.",
    ),
    Option(
        "terraform_path",
        "terraform-path",
        "CODER_PROVISIONER_TERRAFORM_PATH",
        default="terraform",
        help="Terraform or OpenTofu program: a path, or a name to look up in PATH.",
    ),
    Option(
        "terraform_provider",
        "terraform-provider",
        "CODER_PROVISIONER_TERRAFORM_PROVIDER",
        default="builtin",
        choices=PROVIDERS,
        help="Serve the coder/coder provider in this process, or let Terraform install upstream's.",
    ),
    Option(
        "job_timeout",
        "job-timeout",
        "CODER_PROVISIONER_JOB_TIMEOUT",
        kind="duration",
        default=timedelta(hours=4),
        help="Timeout after which a job is interrupted and fails; 0 disables it.",
    ),
    Option(
        "forceful",
        "forceful",
        "CODER_PROVISIONER_FORCEFUL",
        kind="bool",
        default=False,
        help="Exit at the first signal instead of waiting for the running job to finish.",
    ),
    Option("poll_interval", "poll-interval", "CODER_PROVISIONERD_POLL_INTERVAL", hidden=True),
    Option("poll_jitter", "poll-jitter", "CODER_PROVISIONERD_POLL_JITTER", hidden=True),
    Option(
        "log_human",
        "log-human",
        "CODER_PROVISIONER_DAEMON_LOGGING_HUMAN",
        default="/dev/stderr",
        help="File to append log lines to as text; empty disables it.",
    ),
    Option(
        "log_json",
        "log-json",
        "CODER_PROVISIONER_DAEMON_LOGGING_JSON",
        help="File to append log lines to as JSON, one object a line.",
    ),
    Option("log_stackdriver", "log-stackdriver", "CODER_PROVISIONER_DAEMON_LOGGING_STACKDRIVER", hidden=True),
    Option(
        "log_filter", "log-filter", "CODER_PROVISIONER_DAEMON_LOG_FILTER", kind="string-array", default=(), hidden=True
    ),
    Option("experiments", "experiments", "CODER_EXPERIMENTS", kind="string-array", default=(), hidden=True),
    Option("prometheus", "prometheus-enable", "CODER_PROMETHEUS_ENABLE", kind="bool", default=False, hidden=True),
    Option(
        "prometheus_address", "prometheus-address", "CODER_PROMETHEUS_ADDRESS", default="127.0.0.1:2112", hidden=True
    ),
    Option(
        "verbose",
        "verbose",
        "CODER_PROVISIONER_DAEMON_VERBOSE",
        kind="bool",
        default=False,
        help="Log debug messages: every step of a job and each call to the server.",
    ),
    ORG,
)

START = Command(words="provisioner start", summary="Run a provisioner", run=_start, options=_START_OPTIONS, max_args=0)

LEGACY_START = Command(
    words="provisionerd start", summary="Run a provisioner", run=_start, options=_START_OPTIONS, max_args=0
)
