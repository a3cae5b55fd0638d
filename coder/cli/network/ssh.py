"""`coder ssh`: runs a shell or a command, or copies raw bytes for an SSH ProxyCommand."""

from __future__ import annotations

import contextlib
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import trio

from coder.base import garbage
from coder.base.duration import parse_duration
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.base.threads import in_thread_or_here, run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.network.ssh import SSH, SshOptions
from coder.client.link import open_link
from coder.client.network_info import write_network_info
from coder.client.raw import copy_raw
from coder.client.ready import Preparation, ReadyAgent, print_to_stderr
from coder.client.shared_link import open_link_for_command
from coder.client.shell import ShellRequest, run_shell
from coder.client.tracing import log_to_directory, logging_trace
from coder.client.usage import report_usage, usage_app
from coder.net.http1 import HttpClient

if TYPE_CHECKING:
    import trio

    from coder.client.link import WorkspaceLink
    from coder.client.ready import WaitFor


LOST = 255
"Exit code if the connection ends before the command, as ssh's."


@implements(SSH)
def _run(invocation: Invocation[SshOptions]) -> int:
    garbage.pause()
    try:
        return run_trio(_main, invocation)
    finally:
        garbage.go_on()  # if the preparation did not reach that point


async def _main(invocation: Invocation[SshOptions]) -> int:

    if invocation.options.stdio and invocation.options.container:
        raise CoderError(
            "container_and_stdio",
            "--container cannot be combined with --stdio",
            "With --stdio the session is your SSH client's: ssh -o SetEnv=CODER_CONTAINER=name …",
        )
    for text in invocation.options.env:
        _pair(text)
    for text in invocation.options.remote_forward:
        _remote_forward(text)  # before starting a workspace for it
    policy = session.dial_policy(invocation)
    name = _target_name(invocation)
    async with contextlib.AsyncExitStack() as stack:
        if invocation.options.log_dir:
            stack.enter_context(log_to_directory(invocation.options.log_dir))
        http = await stack.enter_async_context(HttpClient(policy))
        nursery = await stack.enter_async_context(trio.open_nursery())
        # Imports take half of a short session's time; they run during the requests to the server.
        loaded = trio.Event()
        nursery.start_soon(_import_modules, bool(invocation.options.stdio), loaded)
        prepare = Preparation(http, print_to_stderr, autostart=not invocation.options.disable_autostart)
        target: ReadyAgent = await prepare.wait_connected(await prepare.find(name))
        await loaded.wait()
        code = await _run_session(invocation, policy, prepare, target)
        nursery.cancel_scope.cancel()
    return code


async def _import_modules(stdio: bool, loaded: trio.Event) -> None:
    """Import the session's modules in a thread: first the mesh, then SSH (if this process is the SSH client).

    Re-enable garbage collection afterwards.
    """

    await in_thread_or_here(import_module, "coder.client.link")
    loaded.set()
    if not stdio:
        await in_thread_or_here(import_module, "coder.client.shell")
    garbage.go_on()


async def _run_session(invocation: Invocation[SshOptions], policy: Any, prepare: Any, target: Any) -> int:

    direct = not invocation.globals.disable_direct
    wait: WaitFor = "no" if invocation.options.no_wait else invocation.options.wait
    code = LOST
    trace = None
    if invocation.options.log_dir:
        trace = logging_trace()
    async with (
        open_link(policy, target.agent.id, direct=direct, trace=trace)
        if _needs_own_node(invocation)
        else open_link_for_command(policy, session.config_dir(invocation), prepare, target, direct=direct) as link,
        trio.open_nursery() as nursery,
    ):
        if invocation.options.network_info_dir:
            interval = invocation.options.network_info_interval.total_seconds()
            nursery.start_soon(
                write_network_info, cast("WorkspaceLink", link), invocation.options.network_info_dir, interval
            )
        await link.wait_reachable()
        await prepare.wait_ready(target, wait)
        if app := usage_app(invocation.options.usage_app):
            nursery.start_soon(report_usage, policy, target, app)
        # Close it while the link still exists, so that the peer notices the disconnect.
        async with await link.connect(1) as stream:
            with trio.CancelScope() as session_scope:
                nursery.start_soon(
                    _end_when_stopped, prepare, target, invocation.options.poll.total_seconds(), session_scope
                )
                code = await _session(invocation, stream)
            if session_scope.cancelled_caught:
                print_to_stderr("The workspace is stopping; the connection is closed.")
        nursery.cancel_scope.cancel()
    return code


def _needs_own_node(invocation: Invocation[SshOptions]) -> bool:
    """Return whether the session needs its own node: by option, for connection logs, or for an editor's network
    display."""
    return bool(
        invocation.options.force_new_tunnel or invocation.options.log_dir or invocation.options.network_info_dir
    )


async def _session(invocation: Invocation[SshOptions], stream: Any) -> int:
    if invocation.options.stdio:
        await copy_raw(stream)
        return 0
    return await run_shell(stream, _request(invocation))


async def _end_when_stopped(prepare: Any, target: Any, interval: float, scope: trio.CancelScope) -> None:
    """End the session when a stop or delete build begins: the machine will vanish, perhaps without closing
    connections."""
    while interval > 0:
        await trio.sleep(interval)
        if await prepare.is_stopping(target):
            scope.cancel()
            return


def _target_name(invocation: Invocation[SshOptions]) -> str:
    """Return the workspace of a host name: without the prefix or suffix that config-ssh added."""
    name: str = invocation.args[0]
    prefix, suffix = invocation.options.ssh_host_prefix, invocation.options.hostname_suffix.lstrip(".")
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


def _request(invocation: Invocation[SshOptions]) -> Any:
    words = invocation.args[1:]
    command = " ".join(words) or None  # as ssh does: the remote shell gets one line
    env = dict(_pair(text) for text in invocation.options.env)
    if invocation.options.container:
        env |= {
            "CODER_CONTAINER": invocation.options.container,
            "CODER_CONTAINER_USER": invocation.options.container_user,
        }
    if app := invocation.options.usage_app:
        env["CODER_SSH_SESSION_TYPE"] = app
    tty = bool(invocation.options.tty or invocation.globals.force_tty) or (command is None and sys.stdin.isatty())
    return ShellRequest(
        command=command,
        tty=tty,
        env=env,
        forward_agent=invocation.options.forward_agent,
        agent_path=invocation.options.identity_agent,
        remote_forwards=tuple(_remote_forward(text) for text in invocation.options.remote_forward),
        forward_gpg=invocation.options.forward_gpg,
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
    return parse_duration(text)
