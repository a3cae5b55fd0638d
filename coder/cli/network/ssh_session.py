"""Session of `coder ssh`, from the link to the agent on. Loaded while the workspace is looked up."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import trio

from coder.cli.core import session
from coder.cli.core.command import Invocation
from coder.cli.declarations.network.ssh import SshOptions
from coder.cli.network.ssh_arguments import environment_pair, remote_forward
from coder.client.link import WorkspaceLink, open_link
from coder.client.network_info import write_network_info
from coder.client.raw import copy_raw
from coder.client.ready import Preparation, ReadyAgent, WaitFor, print_to_stderr
from coder.client.shared_link import open_link_for_command
from coder.client.tracing import logging_trace
from coder.client.usage import report_usage, usage_app
from coder.net.policy import DialPolicy

if TYPE_CHECKING:
    from coder.client.shell import ShellRequest

LOST = 255
"Exit code if the connection ends before the command, as ssh's."


async def run_session(
    invocation: Invocation[SshOptions], policy: DialPolicy, prepare: Preparation, target: ReadyAgent
) -> int:
    """Connect to the agent, run the session, and return the exit code."""
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
        if invocation.options.network_info_dir and isinstance(link, WorkspaceLink):
            interval = invocation.options.network_info_interval.total_seconds()
            nursery.start_soon(write_network_info, link, invocation.options.network_info_dir, interval)
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


async def _session(invocation: Invocation[SshOptions], stream: trio.abc.HalfCloseableStream) -> int:
    if invocation.options.stdio:
        await copy_raw(stream)
        return 0
    from coder.client.shell import run_shell  # not for --stdio

    return await run_shell(stream, _request(invocation))


async def _end_when_stopped(prepare: Preparation, target: ReadyAgent, interval: float, scope: trio.CancelScope) -> None:
    """End the session when a stop or delete build begins: the machine will vanish, perhaps without closing
    connections."""
    while interval > 0:
        await trio.sleep(interval)
        if await prepare.is_stopping(target):
            scope.cancel()
            return


def _request(invocation: Invocation[SshOptions]) -> ShellRequest:
    from coder.client.shell import ShellRequest

    words = invocation.args[1:]
    command = " ".join(words) or None  # as ssh does: the remote shell gets one line
    env = dict(environment_pair(text) for text in invocation.options.env)
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
        remote_forwards=tuple(remote_forward(text) for text in invocation.options.remote_forward),
        forward_gpg=invocation.options.forward_gpg,
    )
