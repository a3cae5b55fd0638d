"""`coder ssh`: runs a shell or a command, or copies raw bytes for an SSH ProxyCommand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.cli.core import session
from coder.cli.core.command import Command, Invocation
from coder.cli.network.options import DISABLE_AUTOSTART

if TYPE_CHECKING:
    import trio

    from coder.client.link import WorkspaceLink
    from coder.client.ready import WaitFor


LOST = 255
"Exit code if the connection ends before the command, as ssh's."


def _run(invocation: Invocation) -> int:
    from coder.base import garbage
    from coder.base.threads import run_trio

    garbage.pause()
    try:
        return run_trio(_main, invocation)
    finally:
        garbage.go_on()  # if the preparation did not reach that point


async def _main(invocation: Invocation) -> int:
    import contextlib

    import trio

    from coder.client.ready import Preparation, ReadyAgent, print_to_stderr
    from coder.net.http1 import HttpClient

    if invocation["stdio"] and invocation["container"]:
        raise CoderError(
            "container_and_stdio",
            "--container cannot be combined with --stdio",
            "With --stdio the session is your SSH client's: ssh -o SetEnv=CODER_CONTAINER=name …",
        )
    for text in invocation["env"]:
        _pair(text)
    for text in invocation["remote_forward"]:
        _remote_forward(text)  # before starting a workspace for it
    policy = session.dial_policy(invocation)
    name = _target_name(invocation)
    async with contextlib.AsyncExitStack() as stack:
        if invocation["log_dir"]:
            from coder.client.tracing import log_to_directory

            stack.enter_context(log_to_directory(invocation["log_dir"]))
        http = await stack.enter_async_context(HttpClient(policy))
        nursery = await stack.enter_async_context(trio.open_nursery())
        # Imports take half of a short session's time; they run during the requests to the server.
        loaded = trio.Event()
        nursery.start_soon(_import_modules, bool(invocation["stdio"]), loaded)
        prepare = Preparation(http, print_to_stderr, autostart=not invocation["disable_autostart"])
        target: ReadyAgent = await prepare.wait_connected(await prepare.find(name))
        await loaded.wait()
        code = await _run_session(invocation, policy, prepare, target)
        nursery.cancel_scope.cancel()
    return code


async def _import_modules(stdio: bool, loaded: trio.Event) -> None:
    """Import the session's modules in a thread: first the mesh, then SSH (if this process is the SSH client).

    Re-enable garbage collection afterwards.
    """
    from importlib import import_module

    from coder.base import garbage
    from coder.base.threads import in_thread_or_here

    await in_thread_or_here(import_module, "coder.client.link")
    loaded.set()
    if not stdio:
        await in_thread_or_here(import_module, "coder.client.shell")
    garbage.go_on()


async def _run_session(invocation: Invocation, policy: Any, prepare: Any, target: Any) -> int:
    import trio

    from coder.client.link import open_link
    from coder.client.ready import print_to_stderr
    from coder.client.shared_link import open_link_for_command
    from coder.client.usage import report_usage, usage_app

    direct = not invocation.globals["disable_direct"]
    wait: WaitFor = "no" if invocation["no_wait"] else invocation["wait"]
    code = LOST
    trace = None
    if invocation["log_dir"]:
        from coder.client.tracing import logging_trace

        trace = logging_trace()
    async with (
        open_link(policy, target.agent.id, direct=direct, trace=trace)
        if _needs_own_node(invocation)
        else open_link_for_command(policy, session.config_dir(invocation), prepare, target, direct=direct) as link,
        trio.open_nursery() as nursery,
    ):
        if invocation["network_info_dir"]:
            from coder.client.network_info import write_network_info

            interval = invocation["network_info_interval"].total_seconds()
            nursery.start_soon(
                write_network_info, cast("WorkspaceLink", link), invocation["network_info_dir"], interval
            )
        await link.wait_reachable()
        await prepare.wait_ready(target, wait)
        if app := usage_app(invocation["usage_app"]):
            nursery.start_soon(report_usage, policy, target, app)
        # Close it while the link still exists, so that the peer notices the disconnect.
        async with await link.connect(1) as stream:
            with trio.CancelScope() as session_scope:
                nursery.start_soon(
                    _end_when_stopped, prepare, target, invocation["poll"].total_seconds(), session_scope
                )
                code = await _session(invocation, stream)
            if session_scope.cancelled_caught:
                print_to_stderr("The workspace is stopping; the connection is closed.")
        nursery.cancel_scope.cancel()
    return code


def _needs_own_node(invocation: Invocation) -> bool:
    """Return whether the session needs its own node: by option, for connection logs, or for an editor's network
    display."""
    return bool(invocation["force_new_tunnel"] or invocation["log_dir"] or invocation["network_info_dir"])


async def _session(invocation: Invocation, stream: Any) -> int:
    if invocation["stdio"]:
        from coder.client.raw import copy_raw

        await copy_raw(stream)
        return 0
    from coder.client.shell import run_shell

    return await run_shell(stream, _request(invocation))


async def _end_when_stopped(prepare: Any, target: Any, interval: float, scope: trio.CancelScope) -> None:
    """End the session when a stop or delete build begins: the machine will vanish, perhaps without closing
    connections."""
    import trio

    while interval > 0:
        await trio.sleep(interval)
        if await prepare.is_stopping(target):
            scope.cancel()
            return


def _target_name(invocation: Invocation) -> str:
    """Return the workspace of a host name: without the prefix or suffix that config-ssh added."""
    name: str = invocation.args[0]
    prefix, suffix = invocation["ssh_host_prefix"], invocation["hostname_suffix"].lstrip(".")
    if prefix:
        name = name.removeprefix(prefix)
    if suffix and name.endswith(f".{suffix}"):
        name = name[: -len(suffix) - 1]
        # Desktop-style names put the agent first: agent.workspace[.owner].
        parts = name.split(".")
        if len(parts) == 3:
            return f"{parts[2]}/{parts[1]}.{parts[0]}"
        if len(parts) == 2:
            return f"{parts[1]}.{parts[0]}"
    return name


def _request(invocation: Invocation) -> Any:
    from coder.client.shell import ShellRequest

    words = invocation.args[1:]
    command = " ".join(words) or None  # as ssh does: the remote shell gets one line
    env = dict(_pair(text) for text in invocation["env"])
    if invocation["container"]:
        env |= {"CODER_CONTAINER": invocation["container"], "CODER_CONTAINER_USER": invocation["container_user"]}
    if app := invocation["usage_app"]:
        env["CODER_SSH_SESSION_TYPE"] = app
    tty = bool(invocation["tty"] or invocation.globals["force_tty"]) or (command is None and sys.stdin.isatty())
    return ShellRequest(
        command=command,
        tty=tty,
        env=env,
        forward_agent=invocation["forward_agent"],
        agent_path=invocation["identity_agent"],
        remote_forwards=tuple(_remote_forward(text) for text in invocation["remote_forward"]),
        forward_gpg=invocation["forward_gpg"],
    )


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise CoderError("bad_env", f"--env {quoted(text)} must have the form name=value")
    return name, value


def _remote_forward(text: str) -> tuple[str, str]:
    """Parse `remote_port:local_address:local_port` or `/remote.sock:/local.sock`."""
    if text.startswith("/"):
        listen, colon, target = text.partition(":")
    else:
        listen, colon, target = text.partition(":")
        if not _is_port(listen) or not _is_port(target.rpartition(":")[2]):
            colon = ""
    if not colon or not target:
        raise CoderError(
            "remote_forward", f"invalid remote forward {quoted(text)}", "Write remote_port:local_address:local_port."
        )
    return listen, target


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535


def _duration(text: str) -> Any:
    from coder.base.duration import parse_duration

    return parse_duration(text)


SSH = Command(
    words="ssh",
    summary="Start a shell into a workspace or run a command",
    usage="<workspace> [command]",
    run=_run,
    min_args=1,
    raw_after=1,
    options=(
        Option(
            "stdio",
            "stdio",
            "CODER_SSH_STDIO",
            kind="bool",
            default=False,
            help="Carry SSH over standard input and output, for OpenSSH's ProxyCommand.",
        ),
        Option(
            "ssh_host_prefix",
            "ssh-host-prefix",
            "CODER_SSH_SSH_HOST_PREFIX",
            help="Prefix to strip from the host name to get the workspace's name.",
        ),
        Option(
            "hostname_suffix",
            "hostname-suffix",
            "CODER_SSH_HOSTNAME_SUFFIX",
            help="Suffix to strip from the host name to get the workspace's name.",
        ),
        Option(
            "forward_agent",
            "forward-agent",
            "CODER_SSH_FORWARD_AGENT",
            short="A",
            kind="bool",
            default=False,
            help="Forward your SSH agent: the workspace can use your keys without storing them.",
        ),
        Option(
            "forward_gpg",
            "forward-gpg",
            "CODER_SSH_FORWARD_GPG",
            short="G",
            kind="bool",
            default=False,
            help="Forward your GPG agent: the workspace can sign with your keys without storing them.",
        ),
        Option(
            "identity_agent",
            "identity-agent",
            "CODER_SSH_IDENTITY_AGENT",
            help="Socket of the SSH agent to forward; defaults to SSH_AUTH_SOCK.",
        ),
        Option(
            "poll",
            "workspace-poll-interval",
            "CODER_WORKSPACE_POLL_INTERVAL",
            kind="duration",
            default=_duration("1m"),
            least=_duration("1s"),
            help="Interval of polls for a workspace stop; the session ends when it stops.",
        ),
        Option(
            "wait",
            "wait",
            "CODER_SSH_WAIT",
            default="auto",
            choices=("yes", "no", "auto"),
            help="Wait for start scripts before opening the shell; auto follows the template.",
        ),
        Option(
            "no_wait",
            "no-wait",
            "CODER_SSH_NO_WAIT",
            kind="bool",
            default=False,
            help="Open the shell while start scripts still run; the same as --wait=no.",
        ),
        Option(
            "log_dir",
            "log-dir",
            "CODER_SSH_LOG_DIR",
            short="l",
            help="Directory for a log file of the connection.",
        ),
        Option(
            "remote_forward",
            "remote-forward",
            "CODER_SSH_REMOTE_FORWARD",
            short="R",
            kind="string-array",
            default=(),
            help="Forward a workspace port to this machine: remote_port:local_address:local_port, or two sockets.",
        ),
        Option(
            "env",
            "env",
            "CODER_SSH_ENV",
            short="e",
            kind="string-array",
            default=(),
            help="Set an environment variable of the session, name=value; may be repeated.",
        ),
        Option(
            "tty",
            "tty",
            "CODER_SSH_TTY",
            short="t",
            kind="bool",
            default=False,
            help="Allocate a terminal for the remote command, as editors and pagers require.",
        ),
        Option(
            "usage_app",
            "usage-app",
            "CODER_SSH_USAGE_APP",
            hidden=True,
            help="Application to report in usage statistics.",
        ),
        Option(
            "force_new_tunnel",
            "force-new-tunnel",
            "CODER_SSH_FORCE_NEW_TUNNEL",
            kind="bool",
            default=False,
            hidden=True,
            help="Open a separate tunnel instead of sharing one with other commands.",
        ),
        Option(
            "network_info_dir",
            "network-info-dir",
            help="Directory for a file with latency, relay and throughput of the connection.",
        ),
        Option(
            "network_info_interval",
            "network-info-interval",
            kind="duration",
            default=_duration("5s"),
            least=_duration("100ms"),
            help="Interval between updates of that file, like 5s; at least 100ms.",
        ),
        Option("container", "container", short="c", help="Name or id of the workspace container to connect to."),
        Option("container_user", "container-user", help="User in the container; defaults to the container's user."),
        DISABLE_AUTOSTART,
    ),
)
